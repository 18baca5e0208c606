use super::body::Body;
use super::content;
use crate::arguments::written;
use podbay_wire::BytesPath;
use podbay_wire::FilePatch;
use podbay_wire::Hunk;
use podbay_wire::PatchAction;
use podbay_wire::PatchForm;
use podbay_wire::PatchLine;

pub(super) const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
pub(super) const ADD: &str = "*** Add File:";
pub(super) const UPDATE: &str = "*** Update File:";
pub(super) const DELETE: &str = "*** Delete File:";
const MOVE: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";

/// Parses the sections that begin at a line. After the end there may be another patch, and text.
pub(super) fn parse(lines: &[&str], begin: usize) -> Result<Vec<FilePatch>, String> {
    let mut has_begin = lines[begin].trim() == BEGIN;
    let mut files = Vec::new();
    let mut at = begin + usize::from(has_begin);
    let mut ended = false;
    while at < lines.len() {
        let line = lines[at].trim();
        at += 1;
        if line == END {
            ended = true;
            let Some(next) = lines[at..].iter().position(|line| is_patch(line)) else {
                break;
            };
            at += next + 1;
            if lines[at - 1].trim() != BEGIN {
                return Err(format!(
                    "continues behind `{END}` with {:?}; put all files into one patch, in front of it",
                    lines[at - 1]
                ));
            }
            (has_begin, ended) = (true, false);
            continue;
        }
        let section = |word: &str| line.strip_prefix(word).map(str::trim);
        let takes_blanks = line.starts_with(UPDATE);
        let ends = |end: &usize| {
            is_head(lines[*end]) || is_padded_head(&lines[at..], *end - at, takes_blanks)
        };
        let body_end = (at..lines.len()).find(ends).unwrap_or(lines.len());
        let body = &lines[at..body_end];
        if let Some(path) = section(ADD) {
            files.push(FilePatch {
                path: name(path, at)?,
                action: add(path, body)?,
                notes: Vec::new(),
            });
        } else if let Some(path) = section(DELETE) {
            if let Some(more) = body.iter().find(|line| !line.trim().is_empty()) {
                return Err(format!(
                    "deletes {path} and continues with {more:?}; after `{DELETE}` comes the next file"
                ));
            }
            files.push(FilePatch {
                path: name(path, at)?,
                action: PatchAction::Delete { hunks: Vec::new() },
                notes: Vec::new(),
            });
        } else if let Some(path) = section(UPDATE) {
            files.push(FilePatch {
                path: name(path, at)?,
                action: update(path, body, at)?,
                notes: Vec::new(),
            });
        } else if !line.is_empty() && line != "```" {
            return Err(format!(
                "line {at} is {line:?} where `{UPDATE} PATH`, `{ADD} PATH`, `{DELETE} PATH` or `{END}` should stand"
            ));
        } else {
            continue;
        }
        at = body_end;
    }
    // A truncated patch would be half a change.
    if has_begin && !ended {
        return Err(format!("ends without `{END}`; send all of it"));
    }
    Ok(files)
}

fn is_head(line: &str) -> bool {
    let line = line.trim_end();
    line == END
        || [ADD, UPDATE, DELETE]
            .iter()
            .any(|word| line.starts_with(word))
}

/// Returns whether an indented line is a section's header, or the end. Where lines of a file are
/// indented too, it is one only if it cannot be such a line: a change comes before it, and what
/// follows it fits a header.
fn is_padded_head(body: &[&str], at: usize, takes_blanks: bool) -> bool {
    let line = body[at].trim();
    if !is_head(line) || !takes_blanks {
        return is_head(line);
    }
    let hunk = body[..at]
        .iter()
        .rposition(|line| line.trim_start().starts_with("@@"))
        .map_or(&body[..at], |head| &body[head + 1..at]);
    let changes = |lines: &[&str]| lines.iter().any(|line| line.starts_with(['+', '-']));
    let mut behind = body[at + 1..].iter().filter(|line| !line.trim().is_empty());
    let is_next = |line: &str| is_head(line.trim());
    let follows = match line {
        END => !behind.any(|line| is_head(line)),
        _ if line.starts_with(UPDATE) => behind
            .next()
            .is_some_and(|line| line.starts_with("@@") || line.trim().starts_with(MOVE)),
        _ if line.starts_with(DELETE) => behind.next().is_some_and(|line| is_next(line)),
        _ => {
            behind
                .clone()
                .next()
                .is_some_and(|line| line.starts_with('+'))
                && behind
                    .take_while(|line| !is_next(line))
                    .all(|line| line.starts_with('+'))
        }
    };
    // A file that is only moved has no hunk.
    let is_moved = body[..at]
        .iter()
        .all(|line| line.trim().is_empty() || line.trim().starts_with(MOVE));
    follows && (is_moved || changes(hunk))
}

/// Returns whether a line after the end of a patch belongs to another one, so that it must not be
/// skipped.
fn is_patch(line: &str) -> bool {
    line.trim() == BEGIN
        || is_head(line)
        || ["--- ", "+++ ", "@@ ", "diff --git "]
            .iter()
            .any(|mark| line.starts_with(mark))
}

fn name(path: &str, line: usize) -> Result<BytesPath, String> {
    if path.is_empty() {
        Err(format!("line {line} names no file"))
    } else {
        Ok(written(path))
    }
}

fn add(path: &str, body: &[&str]) -> Result<PatchAction, String> {
    let mut read = Body::default();
    for line in body {
        if !read.push(line) {
            return Err(format!(
                "adds {path} with the line {line:?}; each line of a new file begins with `+`"
            ));
        }
    }
    let content = content(&[read.end()]).ok_or_else(|| {
        format!(
            "adds {path} with lines that do not begin with `+`, as each line of a new file does"
        )
    })?;
    Ok(PatchAction::Add { content })
}

fn update(path: &str, body: &[&str], first: usize) -> Result<PatchAction, String> {
    let mut to = None;
    let mut hunks: Vec<Hunk> = Vec::new();
    let mut open: Option<Body> = None;
    for (number, line) in body.iter().enumerate() {
        let behind = &body[number + 1..];
        let plain = if is_mark(line, open.as_ref(), behind) {
            line.trim()
        } else {
            line.trim_end()
        };
        if let Some(new) = plain.strip_prefix(MOVE) {
            to = Some(name(new.trim(), first + number + 1)?);
        } else if plain == END_OF_FILE {
            open.get_or_insert_default().hunk.at_end = true;
        } else if plain.starts_with("@@") {
            let mut begun = Body::begin(plain);
            match open.take() {
                // Several in a row lead from the outermost to the innermost.
                Some(body) if body.hunk.lines.is_empty() => {
                    begun.hunk.anchors.splice(0..0, body.hunk.anchors);
                }
                Some(body) => hunks.push(body.end()),
                None => {}
            }
            open = Some(begun);
        } else if open.is_none() && plain.is_empty() {
            // Nothing has begun yet.
        } else if !open.get_or_insert_default().push(line) {
            return Err(format!(
                "hunk {} of {path} has the line {line:?}, which begins with none of ` `, `-` and `+`",
                hunks.len() + 1
            ));
        }
    }
    hunks.extend(open.map(Body::end));
    for hunk in &mut hunks {
        hunk.form = PatchForm::Sections;
    }
    check(path, &hunks)?;
    if hunks.is_empty() && to.is_none() {
        return Err(format!("updates {path} and says nothing of what changes"));
    }
    Ok(PatchAction::Update { hunks, to })
}

/// Returns whether an indented line is one of the format's own: no hunk could begin with it as a
/// line of the file, or there are changes before and after it.
fn is_mark(line: &str, open: Option<&Body>, behind: &[&str]) -> bool {
    let plain = line.trim();
    let is_anchor = |line: &str| line == "@@" || line.starts_with("@@ ");
    let begins = |line: &&&str| is_anchor(line.trim());
    if plain == END_OF_FILE {
        return behind
            .iter()
            .find(|line| !line.trim().is_empty())
            .is_none_or(|next| is_anchor(next.trim()));
    }
    let is_first = open.is_none_or(|body| body.hunk.lines.is_empty());
    let hunk = || behind.iter().take_while(|line| !begins(line));
    let goes_on = || hunk().any(|line| line.starts_with(['+', '-']));
    match open {
        _ if plain.starts_with(MOVE) => open.is_none(),
        _ if !is_anchor(plain) => false,
        // It may be the first context line.
        Some(_) if is_first => false,
        Some(body) => body.changes() && goes_on(),
        None => goes_on(),
    }
}

/// Refuses hunks that change nothing: the intended change is missing.
pub(super) fn check(path: &str, hunks: &[Hunk]) -> Result<(), String> {
    for (number, hunk) in (1..).zip(hunks) {
        if hunk
            .lines
            .iter()
            .all(|line| matches!(line, PatchLine::Keep(_)))
        {
            return Err(format!(
                "hunk {number} of {path} has no line with `+` or `-`, so it changes nothing"
            ));
        }
    }
    Ok(())
}
