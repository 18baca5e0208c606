//! `update_config`: one section of the project's instructions for agents.

use std::ops::Range;

use super::Workspace;
use super::edit_report::diff;
use super::encoded_text::EncodedText;
use super::headings::Heading;
use super::headings::outline;
use super::save::Parents;
use super::save::TargetFile;
use super::seen::SeenFiles;
use super::target_entry::refused;
use super::transaction::read;
use podbay_wire::BytesPath;
use podbay_wire::Edited;
use podbay_wire::Fault;
use podbay_wire::OTHER_INSTRUCTIONS;
use podbay_wire::UpdateConfig;

/// The file with the instructions.
const FILE: &str = podbay_wire::INSTRUCTIONS;

/// Byte order mark.
const MARK: char = '\u{feff}';

pub(super) fn run(
    workspace: &Workspace,
    seen: &SeenFiles,
    call: &UpdateConfig,
) -> Result<Edited, Fault> {
    let path = BytesPath::from_text(FILE);
    let _changing = workspace.changing();
    let place = TargetFile::find(&workspace.root, &path, false, Parents::MustExist)?;
    let created = !place.exists();
    if created
        && !call.beside
        && let Some(other) = OTHER_INSTRUCTIONS
            .into_iter()
            .find(|name| is_in_use(workspace, name))
    {
        return Err(refused(
            &path,
            format!(
                "would be a second file of instructions beside {other}, which this project uses: change that one, or call again with `beside` true, \
                 about which the user is asked"
            ),
        ));
    }
    let (before, stat) = if created {
        (Vec::new(), None)
    } else {
        let (text, stat) = read(&place, &path, true)?;
        (text, Some(stat))
    };
    let encoded_text = EncodedText::of(&before);
    let text = encoded_text.text.as_ref();
    let after =
        replace(text, &call.section, &call.content).map_err(|problem| refused(&path, problem))?;
    if after == text {
        return Err(refused(
            &path,
            format!(
                "the section `{}` says that already; nothing was changed",
                call.section
            ),
        ));
    }
    let real = seen.real(&workspace.root, &place)?;
    let _ = seen.last(&real);
    seen.settle()?;
    let bytes = encoded_text.edited(&path, after.as_bytes())?;
    place.save(&bytes, stat.as_ref())?;
    if created {
        seen.wrote(&real, &bytes);
    } else {
        seen.changed(&real, &before, &bytes);
    }
    let diff = diff(FILE, text.as_bytes(), after.as_bytes());
    Ok(Edited {
        path,
        replaced: 1,
        created,
        tolerant: Vec::new(),
        unescaped: Vec::new(),
        alike: Vec::new(),
        notes: encoded_text.notes(),
        diff,
        memos: Vec::new(),
    })
}

/// Returns whether a file of this name exists and is not empty; an unreadable one counts.
fn is_in_use(workspace: &Workspace, name: &str) -> bool {
    let path = BytesPath::from_text(name);
    let place = match TargetFile::find(&workspace.root, &path, false, Parents::MustExist) {
        Ok(place) => place,
        // A link is refused; what it leads to may be read.
        Err(fault) => return matches!(fault, Fault::Refused { .. }),
    };
    place.exists()
        && read(&place, &path, true).map_or(true, |(text, _)| !text.trim_ascii().is_empty())
}

/// Returns the text with the section replaced, appended where there is none of that name, or
/// removed.
fn replace(text: &str, section: &str, content: &str) -> Result<String, String> {
    // Without the byte order mark the first heading is one like the others.
    if let Some(text) = text.strip_prefix(MARK) {
        return Ok(format!("{MARK}{}", replace(text, section, content)?));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, section: &str, content: &str, expected: &str) {
        assert_eq!(replace(text, section, content).as_deref(), Ok(expected));
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
            replace("## A\n", "B", " \n")
                .expect_err("is not there")
                .contains("no section `B`")
        );
    }

    #[test]
    fn a_text_with_an_open_block_is_refused() {
        let said = |content| replace("## A\n\nold\n\n## B\n", "A", content).expect_err(content);
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
            let said = replace(text, section, content).expect_err(content);
            assert!(
                said.contains("would end the section") && said.contains("of its own"),
                "{said}"
            );
        }
    }
}
