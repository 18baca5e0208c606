use super::body::Body;
use super::body::is_counted;
use super::content;
use super::sections::check;
use podbay_wire::BytesPath;
use podbay_wire::FilePatch;
use podbay_wire::Hunk;
use podbay_wire::PatchAction;
use podbay_wire::PatchLine;
use podbay_wire::unquoted;

/// Prefixes that git puts before the old and the new name.
const PREFIXES: [(&str, &str); 5] = [
    ("a/", "b/"),
    ("i/", "w/"),
    ("c/", "i/"),
    ("c/", "w/"),
    ("o/", "w/"),
];

/// The name of an absent file.
const NULL: &str = "/dev/null";

/// Parses the diffs in a text; other text, such as a commit message, is skipped.
pub(super) fn parse(lines: &[&str]) -> Result<Vec<FilePatch>, String> {
    let mut files = Vec::new();
    let mut open: Option<Section> = None;
    let mut body: Option<Body> = None;
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        let names = is_names(lines, at, body.is_some());
        // An indented line could be part of a hunk that expects more lines.
        let is_padded = body.as_ref().is_none_or(Body::is_full)
            && open.as_ref().is_some_and(|open| open.old.is_some());
        let head = if is_padded && is_counted(line.trim_start()) {
            line.trim_start()
        } else {
            line
        };
        // The last two lines that a hunk expects may look like file names, unless they name one
        // file and its hunks follow; then the header's counts are wrong.
        let wanted = body.as_ref().is_some_and(|body| body.left == Some((1, 1)))
            && !(names && name_one_file(lines, at));
        let starts_file = line.starts_with("diff --git ") || names && !wanted;
        if !starts_file
            && !head.starts_with("@@")
            && let Some(body) = &mut body
        {
            // Only another hunk may follow a complete one; `-- ` begins the signature of a mail.
            let goes_on = line.starts_with([' ', '+', '-', '\\']) && line.trim_end() != "--";
            if (!body.is_full() || goes_on) && !line.starts_with("```") {
                if !body.push(line) {
                    let section = open.as_ref().expect("a hunk is in a section");
                    let number = section.hunks.len() + 1;
                    let shown = section.shown();
                    return Err(format!(
                        "hunk {number} of {shown} has the line {line:?}, which begins with none of ` `, `-` and `+`"
                    ));
                }
                at += 1;
                continue;
            }
        }
        if let (Some(body), Some(section)) = (body.take(), &mut open) {
            section.hunks.push(body.end());
        }
        if let Some(both) = line.strip_prefix("diff --git ") {
            files.extend(open.take().map(Section::end).transpose()?);
            open = Some(Section {
                git: Some(both.trim_end().to_owned()),
                ..Section::default()
            });
        } else if names {
            // The names of a section that git began, or a section of their own.
            if open
                .as_ref()
                .is_none_or(|section| section.old.is_some() || !section.hunks.is_empty())
            {
                files.extend(open.take().map(Section::end).transpose()?);
            }
            let section = open.get_or_insert_default();
            section.old = Some(unquote(&line[4..]));
            section.new = Some(unquote(&lines[at + 1][4..]));
            at += 1;
        } else if head.starts_with("@@") {
            let Some(section) = &open else {
                return Err(format!(
                    "line {} begins a hunk before any file is named",
                    at + 1
                ));
            };
            if section.old.is_none() {
                return Err(format!(
                    "hunk 1 of {} comes before its `---` and `+++` lines",
                    section.shown()
                ));
            }
            body = Some(Body::begin(head));
        } else if let Some(section) = &mut open {
            if section.hunks.is_empty()
                && section.old.as_deref() == Some(NULL)
                && line.starts_with('+')
            {
                let mut begun = Body::default();
                begun.push(line);
                body = Some(begun);
            } else {
                section.head(line)?;
            }
        }
        at += 1;
    }
    if let (Some(body), Some(section)) = (body, &mut open) {
        let number = section.hunks.len() + 1;
        let mut body = body;
        if let Some((0..=1, 0..=1)) = body.missing().filter(|_| body.hunk.old().next().is_some()) {
            // It has lines that locate it; a miscounted header or an omitted empty line at the end
            // does no harm.
            body.hunk.miscounted = true;
            let check = match body.hunk.lines.last() {
                Some(PatchLine::Keep(_)) => "",
                _ => "; it ends in a changed line, so check that none is missing behind it",
            };
            section.notes.push(format!(
                "the head of hunk {number} counts one line more than it has, so it was taken where its lines stand once{check}"
            ));
        } else if let Some((old, new)) = body.missing() {
            // Half of a hunk would be applied as if it were the whole.
            return Err(format!(
                "hunk {} of {}: the hunk ends before the lines that its header counts ({old} of the old text and {new} of the new are missing); \
                 send all of the patch, or a header that counts the lines which are there",
                number,
                section.shown()
            ));
        }
        section.hunks.push(body.end());
    }
    files.extend(open.map(Section::end).transpose()?);
    Ok(files)
}

/// Returns whether a line and the next one are file names; in a hunk these may be lines of a file
/// as well.
fn is_names(lines: &[&str], at: usize, in_hunk: bool) -> bool {
    let begins = |at: usize, word: &str| lines.get(at).is_some_and(|line| line.starts_with(word));
    let is_last = lines[at + 1..].len() <= 1;
    begins(at, "--- ")
        && begins(at + 1, "+++ ")
        && (!in_hunk
            || is_last
            || begins(at + 2, "@@")
            || begins(at, "--- /dev/null")
            || begins(at + 1, "+++ /dev/null"))
}

/// Returns whether both names at a line are of one file, or of one that is created or deleted, with
/// a hunk after them.
fn name_one_file(lines: &[&str], at: usize) -> bool {
    let is_begun = lines.get(at + 2).is_some_and(|line| line.starts_with("@@"));
    let (old, new) = (unquote(&lines[at][4..]), unquote(&lines[at + 1][4..]));
    let is_same = |(a, b): &(&str, &str)| {
        old.strip_prefix(a)
            .is_some_and(|name| Some(name) == new.strip_prefix(b))
    };
    is_begun && (old == new || old == NULL || new == NULL || PREFIXES.iter().any(is_same))
}

/// The part of a patch for one file.
#[derive(Debug, Default)]
struct Section {
    /// Both names, as in git's first line.
    git: Option<String>,
    old: Option<String>,
    new: Option<String>,
    from: Option<String>,
    to: Option<String>,
    is_new: bool,
    is_gone: bool,
    notes: Vec<String>,
    hunks: Vec<Hunk>,
}

impl Section {
    /// Parses a line between the names and the hunks; unknown lines are ignored.
    fn head(&mut self, line: &str) -> Result<(), String> {
        let line = line.trim_end();
        let refused = |what: &str| Err(format!("{}: {what}", self.shown()));
        if line.starts_with("GIT binary patch") || line.starts_with("Binary files ") {
            return refused(
                "the patch of a binary file cannot be applied; write the file with a command",
            );
        }
        if line.starts_with("copy from ") {
            return refused("a patch cannot copy; use copy_file first and then patch the copy");
        }
        if let Some(from) = line.strip_prefix("rename from ") {
            self.from = Some(unquote(from));
        } else if let Some(to) = line.strip_prefix("rename to ") {
            self.to = Some(unquote(to));
        } else if let Some(mode) = line.strip_prefix("new file mode ") {
            if mode == "120000" || mode == "160000" {
                return refused("a patch cannot make a link or a submodule");
            }
            self.is_new = true;
            if mode != "100644" {
                self.notes.push(format!("its mode {mode} was not set"));
            }
        } else if line.starts_with("deleted file mode ") {
            self.is_gone = true;
        } else if let Some(mode) = line.strip_prefix("new mode ") {
            self.notes.push(format!("its mode {mode} was not set"));
        }
        Ok(())
    }

    fn shown(&self) -> String {
        let named = [&self.new, &self.old, &self.to, &self.git]
            .into_iter()
            .flatten()
            .find(|name| *name != NULL);
        named.cloned().unwrap_or_else(|| "a file".to_owned())
    }

    fn end(self) -> Result<FilePatch, String> {
        let shown = self.shown();
        let (old, new) = self.names()?;
        let Self {
            is_new,
            is_gone,
            notes,
            hunks,
            to,
            ..
        } = self;
        check(&shown, &hunks)?;
        let named = |name: String| {
            if name.is_empty() {
                Err(format!("{shown}: names no file"))
            } else {
                Ok(BytesPath::from_text(&name))
            }
        };
        let (path, action) = match (old, new) {
            (None, None) => return Err(format!("{shown}: names no file")),
            (_, Some(new)) if is_new => (named(new)?, added(&shown, &hunks)?),
            (None, Some(new)) => (named(new)?, added(&shown, &hunks)?),
            (Some(old), None) => (named(old)?, PatchAction::Delete { hunks }),
            (Some(old), Some(_)) if is_gone => (named(old)?, PatchAction::Delete { hunks }),
            (Some(old), Some(new)) => {
                if hunks.is_empty() && to.is_none() {
                    if notes.is_empty() {
                        return Err(format!("{shown}: has no hunks, so it changes nothing"));
                    }
                    return Err(format!(
                        "{shown}: changes only the mode of the file, which a patch does not here; use chmod"
                    ));
                }
                let to = if to.is_some() && old != new {
                    Some(named(new)?)
                } else {
                    None
                };
                (named(old)?, PatchAction::Update { hunks, to })
            }
        };
        Ok(FilePatch {
            path,
            action,
            notes,
        })
    }

    /// Returns the names of the file before and after.
    fn names(&self) -> Result<(Option<String>, Option<String>), String> {
        if let (Some(from), Some(to)) = (&self.from, &self.to) {
            return Ok((Some(from.clone()), Some(to.clone())));
        }
        let (old, new) = match (&self.old, &self.new, &self.git) {
            (Some(old), Some(new), _) => (old.clone(), new.clone()),
            (_, _, Some(git)) => halves(git).ok_or_else(|| {
                format!(
                    "`diff --git {git}`: the names cannot be told apart; add `---` and `+++` lines"
                )
            })?,
            _ => return Err("a file has no name".to_owned()),
        };
        let is_null = |name: &str| name == NULL;
        let strip = |(a, b): &(&str, &str)| {
            let old = if is_null(&old) {
                Some(None)
            } else {
                old.strip_prefix(a).map(|name| Some(name.to_owned()))
            };
            let new = if is_null(&new) {
                Some(None)
            } else {
                new.strip_prefix(b).map(|name| Some(name.to_owned()))
            };
            old.zip(new)
        };
        let whole = |name: &str| {
            if is_null(name) {
                None
            } else {
                Some(name.to_owned())
            }
        };
        let (before, after) = PREFIXES
            .iter()
            .find_map(strip)
            .unwrap_or_else(|| (whole(&old), whole(&new)));
        match (before, after) {
            (Some(before), Some(after)) if before != after => {
                // diff is often given a backup copy as the old file.
                if [".orig", ".old", ".bak", "~"]
                    .iter()
                    .any(|ending| before.strip_suffix(ending) == Some(after.as_str()))
                {
                    return Ok((Some(after.clone()), Some(after)));
                }
                Err(format!(
                    "the names {before} and {after} differ; give the file's name in both, or add `rename from` and `rename to` lines"
                ))
            }
            both => Ok(both),
        }
    }
}

fn added(shown: &str, hunks: &[Hunk]) -> Result<PatchAction, String> {
    let content = content(hunks)
        .ok_or_else(|| format!("{shown}: is new by its names, so all its lines begin with `+`"))?;
    Ok(PatchAction::Add { content })
}

/// Splits git's first line where both halves have the same name after their prefixes.
fn halves(git: &str) -> Option<(String, String)> {
    if let Some(quoted) = git.strip_prefix('"') {
        let end = quoted.find("\" ")? + 2;
        return Some((unquote(&git[..end]), unquote(git[end..].trim_start())));
    }
    let name = |half: &str| half.split_once('/').map(|(_, name)| name.to_owned());
    let at = git.match_indices(' ').map(|(at, _)| at).find(|&at| {
        let (old, new) = (&git[..at], &git[at + 1..]);
        old == new || name(old).is_some() && name(old) == name(new)
    })?;
    Some((git[..at].to_owned(), git[at + 1..].to_owned()))
}

/// Parses a name: without the timestamp behind a tab, and unquoted.
fn unquote(text: &str) -> String {
    let text = text.trim_end_matches('\r');
    match unquoted(text.as_bytes()) {
        Some((name, _)) => BytesPath::from_bytes(name).to_text(),
        None => text
            .split('\t')
            .next()
            .unwrap_or_default()
            .trim_end()
            .to_owned(),
    }
}
