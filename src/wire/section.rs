//! Sections of a Markdown text: what stands below a heading, up to the next one of its level.

use std::ops::Range;

use crate::headings::Heading;
use crate::headings::outline;

/// Byte order mark.
const MARK: char = '\u{feff}';

/// Returns the text with the section replaced, appended where there is none of that name, or
/// removed.
pub fn with_section(text: &str, section: &str, content: &str) -> Result<String, String> {
    // Without the byte order mark the first heading is one like the others.
    if let Some(text) = text.strip_prefix(MARK) {
        return Ok(format!("{MARK}{}", with_section(text, section, content)?));
    }
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let content = content.trim().replace("\r\n", "\n").replace('\n', newline);
    let content = without_heading(&content, section);
    if content.contains('\0') {
        return Err(format!(
            "would no longer be text: the new text of the section `{section}` has a zero byte in it; write it without"
        ));
    }
    if outline(content).is_open {
        return Err(format!(
            "would become code or a comment from the section `{section}` on: its new text begins one that does not end; write the line that ends it, \
             of code with as many marks as the one that begins it, of a comment with `-->`"
        ));
    }
    let level = find(text, section).map_or(2, |found| found.level);
    if let Some(other) = ends_section(content, level) {
        let marks = "#".repeat(level + 1);
        return Err(format!(
            "would end the section `{section}` with the heading `{other}` in its new text: what follows it would no longer be of the section; write \
             headings in it with `{marks}` or more, or put what follows into a section of its own"
        ));
    }
    let Some(Section { heading, body, .. }) = find(text, section) else {
        if content.is_empty() {
            return Err(format!("has no section `{section}` that could be removed"));
        }
        let before = text.trim_end();
        let gap = if before.is_empty() {
            String::new()
        } else {
            newline.repeat(2)
        };
        return Ok(format!(
            "{before}{gap}## {section}{newline}{newline}{content}{newline}"
        ));
    };
    let (head, rest) = (&text[..heading.start], &text[body.end..]);
    if content.is_empty() {
        return Ok(format!("{head}{rest}"));
    }
    let gap = if rest.is_empty() { "" } else { newline };
    let heading = text[heading].trim_end();
    Ok(format!(
        "{head}{heading}{newline}{newline}{content}{newline}{gap}{rest}"
    ))
}

/// Removes a heading that the new text of a section repeats.
fn without_heading<'a>(content: &'a str, section: &str) -> &'a str {
    let first = outline(content)
        .headings
        .into_iter()
        .next()
        .filter(|first| first.range.start == 0);
    let Some(first) = first.filter(|first| first.title.to_lowercase() == section.to_lowercase())
    else {
        return content;
    };
    let rest = &content[first.range.end..];
    // Nothing else would remain, which removes a section.
    if rest.trim().is_empty() {
        content
    } else {
        rest.trim_start_matches(['\r', '\n'])
    }
}

/// Returns a heading in a text that would end a section of this level.
fn ends_section(content: &str, level: usize) -> Option<&str> {
    outline(content)
        .headings
        .iter()
        .find(|heading| heading.level <= level)
        .map(|heading| heading.title)
}

/// The position of a section.
struct Section {
    heading: Range<usize>,
    level: usize,
    /// Up to the next heading of its level or above it.
    body: Range<usize>,
}

fn find(text: &str, section: &str) -> Option<Section> {
    let mut headings = outline(text).headings.into_iter();
    let Heading { range, level, .. } =
        headings.find(|heading| heading.title.to_lowercase() == section.to_lowercase())?;
    let end = headings
        .find(|heading| heading.level <= level)
        .map_or(text.len(), |next| next.range.start);
    Some(Section {
        body: range.end..end,
        heading: range,
        level,
    })
}

/// Returns heading and text of each section of the second level.
pub fn sections(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let headings = outline(text).headings;
    let above: Vec<Heading<'_>> = headings
        .into_iter()
        .filter(|heading| heading.level <= 2)
        .collect();
    let ends: Vec<usize> = above
        .iter()
        .skip(1)
        .map(|next| next.range.start)
        .chain([text.len()])
        .collect();
    above
        .into_iter()
        .zip(ends)
        .filter(|(heading, _)| heading.level == 2)
        .map(|(heading, end)| (heading.title, text[heading.range.end..end].trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, section: &str, content: &str, expected: &str) {
        assert_eq!(
            with_section(text, section, content).as_deref(),
            Ok(expected)
        );
    }

    #[test]
    fn a_section_is_replaced_in_place_and_the_rest_is_kept() {
        let text =
            "# About\n\nA tool.\n\n## Tests\n\nold\n\n### Slow\n\nones\n\n## Style\n\nplain\n";
        check(
            text,
            "tests",
            "make test\n",
            "# About\n\nA tool.\n\n## Tests\n\nmake test\n\n## Style\n\nplain\n",
        );
        check(
            text,
            "Slow",
            "none",
            "# About\n\nA tool.\n\n## Tests\n\nold\n\n### Slow\n\nnone\n\n## Style\n\nplain\n",
        );
        check(
            text,
            "Style",
            "terse",
            "# About\n\nA tool.\n\n## Tests\n\nold\n\n### Slow\n\nones\n\n## Style\n\nterse\n",
        );
        check(
            text,
            "Tests",
            "",
            "# About\n\nA tool.\n\n## Style\n\nplain\n",
        );
        check(
            text,
            "Names",
            "short",
            &format!("{text}\n## Names\n\nshort\n"),
        );
        check("", "Names", "short", "## Names\n\nshort\n");
        check(
            "a\r\n\r\n## B\r\n\r\nc",
            "b",
            "d\ne",
            "a\r\n\r\n## B\r\n\r\nd\r\ne\r\n",
        );
        check(
            "```\n## B\n```\n",
            "B",
            "x",
            "```\n## B\n```\n\n## B\n\nx\n",
        );
        check(
            "````\n```\n## B\n```sh\n````\n",
            "B",
            "x",
            "````\n```\n## B\n```sh\n````\n\n## B\n\nx\n",
        );
        check(
            "  ## B\n\nold\n\n   # C\n",
            "B",
            "x",
            "  ## B\n\nx\n\n   # C\n",
        );
        check("    ## B\n", "B", "x", "    ## B\n\n## B\n\nx\n");
        check("## B #\n\nx\n\n## C", "B", "y", "## B #\n\ny\n\n## C");
        check(
            "Tests\n-----\n\nold\n\nStyle\n-----\n\nplain\n",
            "tests",
            "new",
            "Tests\n-----\n\nnew\n\nStyle\n-----\n\nplain\n",
        );
        check(
            "## A\n\nold\n\n    ```\n\n## B\n\nx\n",
            "A",
            "new",
            "## A\n\nnew\n\n## B\n\nx\n",
        );
        assert!(
            with_section("## A\n", "B", " \n")
                .expect_err("is not there")
                .contains("no section `B`")
        );
    }

    #[test]
    fn sections_are_those_of_the_second_level() {
        let text = "# About\n\nA tool.\n\n## Tests\n\nmake\n\n### Slow\n\nones\n\n```\n## not one\n```\n\n## Style\n";
        let found: Vec<_> = sections(text).collect();
        assert_eq!(
            found,
            [
                ("Tests", "make\n\n### Slow\n\nones\n\n```\n## not one\n```"),
                ("Style", ""),
            ]
        );
        assert_eq!(sections("no heading").count(), 0);
    }

    #[test]
    fn a_text_with_an_open_block_is_refused() {
        let said =
            |content| with_section("## A\n\nold\n\n## B\n", "A", content).expect_err(content);
        assert!(said("```sh\nmake").contains("does not end"));
        assert!(said("~~~\nmake\n    ~~~").contains("does not end"));
        assert!(said("<!-- make").contains("does not end"));
        assert!(said("a\0b").contains("zero byte"));
        check(
            "## A\n\nold\n\n<!--\n## B\n-->\n\n## B\n\nx\n",
            "B",
            "y",
            "## A\n\nold\n\n<!--\n## B\n-->\n\n## B\n\ny\n",
        );
        check(
            "## A\n\nold\n",
            "A",
            "<!-- make -->",
            "## A\n\n<!-- make -->\n",
        );
    }

    #[test]
    fn a_repeated_heading_is_dropped_and_one_that_ends_the_section_refused() {
        let text = "# A\n\n## Tests\n\nold\n\n## Style\n\nplain\n";
        check(
            text,
            "Tests",
            "## Tests\n\nnew\n",
            "# A\n\n## Tests\n\nnew\n\n## Style\n\nplain\n",
        );
        check(
            text,
            "Tests",
            "# tests\nnew",
            "# A\n\n## Tests\n\nnew\n\n## Style\n\nplain\n",
        );
        check(
            text,
            "Tests",
            "new\n\n### Slow\n\nones",
            "# A\n\n## Tests\n\nnew\n\n### Slow\n\nones\n\n## Style\n\nplain\n",
        );
        check(
            text,
            "Tests",
            "```sh\n# make\n```",
            "# A\n\n## Tests\n\n```sh\n# make\n```\n\n## Style\n\nplain\n",
        );
        check("", "Names", "## Names\nshort", "## Names\n\nshort\n");
        for (section, content) in [
            ("Tests", "## Tests\n"),
            ("Tests", "new\n\n## More\n\nx"),
            ("Tests", "# More"),
            ("New", "x\n\n## Tests\n\ny"),
            ("a", "x\n# B"),
            ("Tests", "x\n\nMore\n----\n\ny"),
        ] {
            let said = with_section(text, section, content).expect_err(content);
            assert!(
                said.contains("would end the section") && said.contains("of its own"),
                "{said}"
            );
        }
    }
}
