//! The headings of a Markdown text, which bound its sections.

use std::ops::Range;

/// The headings of a text.
pub(crate) struct Outline<'a> {
    pub(crate) headings: Vec<Heading<'a>>,
    /// A code block or comment starts in it and does not end: text that follows would become part
    /// of it.
    pub(crate) is_open: bool,
}

pub(crate) struct Heading<'a> {
    /// Its lines, with their ends.
    pub(crate) range: Range<usize>,
    pub(crate) level: usize,
    pub(crate) title: &'a str,
}

/// What the lines above belong to.
#[derive(Clone, Copy)]
enum Preceding {
    Nothing,
    /// A paragraph that begins here; a line of `=` or `-` below makes it a heading.
    Paragraph(usize),
    /// A list or a quote, up to the next empty line.
    Other,
}

/// Parses a text's headings outside of code and comments: ATX (`#`) and setext (underlined) ones.
pub(crate) fn outline(text: &str) -> Outline<'_> {
    let mut headings = Vec::new();
    let mut fence: Option<&str> = None;
    let mut in_comment = false;
    let mut above = Preceding::Nothing;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let range = at..at + line.len();
        at = range.end;
        let bare = line.trim();
        // A line indented further is code.
        let is_code = indent(line) > 3;
        if let Some(open) = fence {
            // A closing fence is at least as long as the opening one, with nothing behind it.
            let ends = !is_code
                && bare.starts_with(open)
                && bare.trim_start_matches(&open[..1]).is_empty();
            fence = fence.filter(|_| !ends);
            continue;
        }
        if in_comment || (!is_code && bare.starts_with("<!--")) {
            in_comment = !bare.contains("-->");
            above = Preceding::Nothing;
            continue;
        }
        fence = opened(bare).filter(|_| !is_code);
        above = match above {
            _ if fence.is_some() || bare.is_empty() => Preceding::Nothing,
            Preceding::Paragraph(start) if !is_code && underline(bare).is_some() => {
                let level = underline(bare).expect("it was just looked at");
                headings.push(Heading {
                    range: start..range.end,
                    level,
                    title: text[start..range.start].trim(),
                });
                Preceding::Nothing
            }
            _ if !is_code && marked(bare).is_some() => {
                let (level, title) = marked(bare).expect("it was just looked at");
                headings.push(Heading {
                    range,
                    level,
                    title,
                });
                Preceding::Nothing
            }
            Preceding::Paragraph(_) if is_code => above,
            _ if !is_code && begins_other(bare) => Preceding::Other,
            Preceding::Nothing if !is_code => Preceding::Paragraph(range.start),
            above => above,
        };
    }
    Outline {
        headings,
        is_open: fence.is_some() || in_comment,
    }
}

/// Returns the indentation of a line, in columns.
fn indent(line: &str) -> usize {
    line.chars()
        .take_while(|c| matches!(c, ' ' | '\t'))
        .map(|c| if c == '\t' { 4 } else { 1 })
        .sum()
}

/// Returns the fence with which a line opens a code block.
fn opened(bare: &str) -> Option<&str> {
    let mark = ['`', '~']
        .into_iter()
        .find(|mark| bare.starts_with(&mark.to_string().repeat(3)))?;
    let behind = bare.trim_start_matches(mark);
    (mark == '~' || !behind.contains('`')).then(|| &bare[..bare.len() - behind.len()])
}

/// Returns the level of a setext underline.
fn underline(bare: &str) -> Option<usize> {
    [('=', 1), ('-', 2)]
        .into_iter()
        .find(|(mark, _)| bare.chars().all(|c| c == *mark))
        .map(|(_, level)| level)
}

/// Returns level and title of a heading with `#` in front.
fn marked(bare: &str) -> Option<(usize, &str)> {
    let level = bare.bytes().take_while(|byte| *byte == b'#').count();
    let rest = &bare[level..];
    let is_one = (1..=6).contains(&level) && (rest.is_empty() || rest.starts_with([' ', '\t']));
    is_one.then(|| (level, rest.trim().trim_end_matches('#').trim_end()))
}

/// Returns whether a line starts a list or a quote, or is a thematic break: a line of `-` below
/// makes no heading of it.
fn begins_other(bare: &str) -> bool {
    let behind_number = bare.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = behind_number.len() < bare.len()
        && [". ", ") "]
            .iter()
            .any(|end| behind_number.starts_with(end));
    let is_drawn = bare.len() > 2
        && ['-', '*', '_']
            .iter()
            .any(|mark| bare.chars().all(|c| c == *mark || c == ' '));
    is_numbered
        || is_drawn
        || bare.starts_with('>')
        || ["- ", "* ", "+ "].iter().any(|mark| bare.starts_with(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[(usize, &str)], is_open: bool) {
        let outline = outline(text);
        let found: Vec<_> = outline
            .headings
            .iter()
            .map(|heading| (heading.level, heading.title))
            .collect();
        assert_eq!(
            (found.as_slice(), outline.is_open),
            (expected, is_open),
            "{text}"
        );
    }

    #[test]
    fn headings_are_told_from_text_that_looks_like_them() {
        check("# A\n## B ##\n", &[(1, "A"), (2, "B")], false);
        check("A\n===\n\nB\n-\n", &[(1, "A"), (2, "B")], false);
        check("a\nb\n---\n", &[(2, "a\nb")], false);
        check("- a\n---\n\n> a\n---\n\n1. a\n---\n", &[], false);
        check("a\n\n---\n---\n", &[], false);
        check("a\n    ---\n    # b\n", &[], false);
        check("|a|b|\n|-|-|\n", &[], false);
        check("```\na\n---\n    ```\n# b\n", &[], true);
        check("```\na\n---\n  ```\n# b\n", &[(1, "b")], false);
        check("    ```\n# b\n", &[(1, "b")], false);
        check("```x``` y\n# b\n", &[(1, "b")], false);
        check("#a\n", &[], false);
        check("<!-- a\n# b\n-->\n# c\n", &[(1, "c")], false);
        check("<!-- a -->\n# c\n", &[(1, "c")], false);
        check("a\n<!--\n---\n", &[], true);
        check("    <!--\n# c\n", &[(1, "c")], false);
        check("```\n<!--\n```\n# c\n", &[(1, "c")], false);
    }
}
