//! `update_config`: one section of the project's instructions for agents.

use std::ops::Range;

use super::Workspace;
use super::edit_report::diff;
use super::save::Parents;
use super::save::Place;
use super::seen::Seen;
use super::spot::refused;
use super::transaction::read;
use crate::wire::BytesPath;
use crate::wire::Edited;
use crate::wire::Fault;
use crate::wire::UpdateConfig;

/// Where the instructions stand.
const FILE: &str = crate::wire::INSTRUCTIONS;

pub(super) fn run(workspace: &Workspace, seen: &Seen, call: &UpdateConfig) -> Result<Edited, Fault> {
    let path = BytesPath::from_text(FILE);
    let _changing = workspace.changing();
    let place = Place::find(&workspace.root, &path, false, Parents::MustExist)?;
    let created = !place.exists();
    let (before, stat) = if created {
        (Vec::new(), None)
    } else {
        let (text, stat) = read(&place, &path, true)?;
        (text, Some(stat))
    };
    let text = String::from_utf8(before).map_err(|_| Fault::NotUtf8 { path: path.clone() })?;
    let after = replace(&text, &call.section, &call.content).map_err(|problem| refused(&path, problem))?;
    if after == text {
        return Err(refused(&path, format!("the section `{}` says that already; nothing was changed", call.section)));
    }
    let real = place.real(&workspace.root)?;
    let _ = seen.last(&real);
    seen.settle()?;
    place.save(after.as_bytes(), stat.as_ref())?;
    if created {
        seen.wrote(&real, after.as_bytes());
    } else {
        seen.changed(&real, text.as_bytes(), after.as_bytes());
    }
    let diff = diff(FILE, text.as_bytes(), after.as_bytes());
    Ok(Edited { path, replaced: 1, created, tolerant: Vec::new(), unescaped: Vec::new(), diff, memos: Vec::new() })
}

/// Returns the text with the section in the place of the one of that name, at its end where there is none, or without it.
fn replace(text: &str, section: &str, content: &str) -> Result<String, String> {
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let content = content.trim().replace("\r\n", "\n").replace('\n', newline);
    let Some(Found { heading, body }) = find(text, section) else {
        if content.is_empty() {
            return Err(format!("has no section `{section}` that could be removed"));
        }
        let before = text.trim_end();
        let gap = if before.is_empty() { String::new() } else { newline.repeat(2) };
        return Ok(format!("{before}{gap}## {section}{newline}{newline}{content}{newline}"));
    };
    let (head, rest) = (&text[..heading.start], &text[body.end..]);
    if content.is_empty() {
        return Ok(format!("{head}{rest}"));
    }
    let gap = if rest.is_empty() { "" } else { newline };
    let heading = text[heading].trim_end();
    Ok(format!("{head}{heading}{newline}{newline}{content}{newline}{gap}{rest}"))
}

/// Where a section stands.
struct Found {
    heading: Range<usize>,
    /// To the next heading of its level or above it.
    body: Range<usize>,
}

fn find(text: &str, section: &str) -> Option<Found> {
    let mut found: Option<(usize, Range<usize>)> = None;
    let mut fence: Option<&str> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let range = at..at + line.len();
        at = range.end;
        let bare = line.trim();
        if let Some(open) = fence {
            // At least as long as what opened it, and nothing behind it.
            fence = if bare.starts_with(open) && bare.trim_start_matches(&open[..1]).is_empty() { None } else { fence };
            continue;
        }
        let mark = ["`", "~"].into_iter().find(|mark| bare.starts_with(&mark.repeat(3)));
        fence = mark.map(|mark| &bare[..bare.len() - bare.trim_start_matches(mark).len()]);
        let Some((level, title)) = heading(line) else { continue };
        match &found {
            None if title.to_lowercase() == section.to_lowercase() => found = Some((level, range)),
            Some((own, heading)) if level <= *own => {
                return Some(Found { heading: heading.clone(), body: heading.end..range.start });
            }
            _ => {}
        }
    }
    found.map(|(_, heading)| Found { body: heading.end..text.len(), heading })
}

/// Returns level and words of a heading.
fn heading(line: &str) -> Option<(usize, &str)> {
    // Further in it is code.
    let bare = line.trim_start_matches(' ');
    let line = if line.len() - bare.len() <= 3 { bare } else { line };
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let rest = &line[level..];
    ((1..=6).contains(&level) && rest.starts_with([' ', '\t'])).then(|| (level, rest.trim().trim_end_matches('#').trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, section: &str, content: &str, expected: &str) {
        assert_eq!(replace(text, section, content).as_deref(), Ok(expected));
    }

    #[test]
    fn a_section_is_put_where_it_stood_and_the_rest_stays() {
        let text = "# About\n\nA tool.\n\n## Tests\n\nold\n\n### Slow\n\nones\n\n## Style\n\nplain\n";
        check(text, "tests", "make test\n", "# About\n\nA tool.\n\n## Tests\n\nmake test\n\n## Style\n\nplain\n");
        check(text, "Slow", "none", "# About\n\nA tool.\n\n## Tests\n\nold\n\n### Slow\n\nnone\n\n## Style\n\nplain\n");
        check(text, "Style", "terse", "# About\n\nA tool.\n\n## Tests\n\nold\n\n### Slow\n\nones\n\n## Style\n\nterse\n");
        check(text, "Tests", "", "# About\n\nA tool.\n\n## Style\n\nplain\n");
        check(text, "Names", "short", &format!("{text}\n## Names\n\nshort\n"));
        check("", "Names", "short", "## Names\n\nshort\n");
        check("a\r\n\r\n## B\r\n\r\nc", "b", "d\ne", "a\r\n\r\n## B\r\n\r\nd\r\ne\r\n");
        check("```\n## B\n```\n", "B", "x", "```\n## B\n```\n\n## B\n\nx\n");
        check("````\n```\n## B\n```sh\n````\n", "B", "x", "````\n```\n## B\n```sh\n````\n\n## B\n\nx\n");
        check("  ## B\n\nold\n\n   # C\n", "B", "x", "  ## B\n\nx\n\n   # C\n");
        check("    ## B\n", "B", "x", "    ## B\n\n## B\n\nx\n");
        check("## B #\n\nx\n\n## C", "B", "y", "## B #\n\ny\n\n## C");
        assert!(replace("## A\n", "B", " \n").expect_err("is not there").contains("no section `B`"));
    }
}
