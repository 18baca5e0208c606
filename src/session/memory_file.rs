//! A memory as a file: frontmatter with `name`, `description` and `kind`, then Markdown.
//!
//! What stands in it came from a model, or from an editor. Both are read by the same strict rules.

use std::fmt::Write as _;
use std::path::Path;

use podbay_event::FRONTMATTER_FENCE as FENCE;
use podbay_event::Memory;
use podbay_event::MemoryKind;
use podbay_event::frontmatter;
use podbay_event::is_hidden;

use super::redact::redact;

/// Most characters of a name and of a description.
const NAME_MAX: usize = 60;
const DESCRIPTION_MAX: usize = 200;
/// Most bytes of the Markdown.
pub(super) const CONTENT_MAX: usize = 4096;
/// Most bytes of a file: the largest memory, with its frontmatter.
pub(super) const FILE_MAX: u64 = 8192;

/// Returns a memory as it is kept: name and description on one line, without characters that
/// cannot be seen, without what looks like a key. The error says what is wrong with it.
pub(super) fn tidy(memory: &Memory) -> Result<Memory, String> {
    let name = tidy_name(&memory.name);
    if name.is_empty() {
        return Err(
            "its name needs letters from a to z or digits, such as build-command".to_owned(),
        );
    }
    if name.chars().count() > NAME_MAX {
        return Err(format!("its name is longer than {NAME_MAX} characters"));
    }
    let description = visible(&memory.description, false);
    let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
    if description.is_empty() {
        return Err("its description is empty: one line that says what it is about".to_owned());
    }
    if description.chars().count() > DESCRIPTION_MAX {
        return Err(format!(
            "its description is longer than {DESCRIPTION_MAX} characters"
        ));
    }
    let content = visible(&memory.content, true);
    let content = content.trim();
    if content.is_empty() {
        return Err("its content is empty".to_owned());
    }
    if content.len() > CONTENT_MAX {
        return Err(format!(
            "its content has {} bytes, and the most is {CONTENT_MAX}: keep what is hard to find out again",
            content.len()
        ));
    }
    Ok(Memory {
        name,
        kind: memory.kind,
        description: redact(&description).into_owned(),
        content: redact(content).into_owned(),
    })
}

/// Returns a name of lower-case letters, digits and hyphens; empty where there are none.
pub(super) fn tidy_name(name: &str) -> String {
    let words = name
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

/// Removes what is not seen; without `lines` all is one line.
pub(super) fn visible(text: &str, lines: bool) -> String {
    let text = text.replace("\r\n", "\n");
    let is_variation = |c: char| matches!(c, '\u{fe00}'..='\u{fe0f}');
    text.chars()
        .map(|c| if !lines && c.is_whitespace() { ' ' } else { c })
        .filter(|c| (lines && matches!(c, '\n' | '\t')) || !(is_hidden(*c) || is_variation(*c)))
        .collect()
}

/// Writes a tidy memory as a file.
pub(super) fn render(memory: &Memory) -> String {
    let Memory {
        name,
        kind,
        description,
        content,
    } = memory;
    // A string of JSON is one of YAML, which editors know.
    let description = serde_json::Value::from(description.as_str());
    let mut text = String::new();
    write!(
        text,
        "{FENCE}\nname: {name}\ndescription: {description}\nkind: {}\n{FENCE}\n\n{content}\n",
        kind.as_str()
    )
    .expect("a string takes all that is written");
    text
}

/// Reads a file; the error says what is wrong with it.
pub(super) fn parse(text: &str) -> Result<Memory, String> {
    let ([name, description, kind], content) = frontmatter(text, ["name", "description", "kind"])?;
    let missing = |key: &str| format!("its frontmatter has no `{key}`");
    let kind = kind.ok_or_else(|| missing("kind"))?;
    Ok(Memory {
        name: name.ok_or_else(|| missing("name"))?,
        kind: MemoryKind::parse(&kind)
            .ok_or("its kind is none of user, feedback, project and reference")?,
        description: description.ok_or_else(|| missing("description"))?,
        content: content.to_owned(),
    })
}

/// Returns the name that a file is to hold, by its own: `None` where no memory is called so.
pub(super) fn name_of(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?.strip_suffix(".md")?;
    (!name.is_empty() && name.len() <= NAME_MAX && tidy_name(name) == name).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(name: &str, description: &str, content: &str) -> Memory {
        Memory {
            name: name.to_owned(),
            kind: MemoryKind::Project,
            description: description.to_owned(),
            content: content.to_owned(),
        }
    }

    #[test]
    fn what_is_saved_is_tidy_and_reads_back_as_it_was() {
        let given = memory(
            "../../Build Command!",
            "How to \"build\"\n---\nkind: user\u{202e}",
            " Run it.\u{200b}\u{1b}[2J\r\n---\n\tAnd wait. password: hunter2hunter2 ",
        );
        let tidied = tidy(&given).expect("can be saved");
        assert_eq!(
            tidied,
            memory(
                "build-command",
                "How to \"build\" --- kind: user",
                "Run it.[2J\n---\n\tAnd wait. password: ***",
            )
        );
        let read = parse(&render(&tidied)).expect("reads back");
        assert_eq!(tidy(&read).as_ref(), Ok(&tidied));
    }

    #[test]
    fn what_cannot_be_kept_is_refused_with_the_reason() {
        for (given, reason) in [
            (memory("…", "d", "c"), "letters from a to z"),
            (memory(&"n".repeat(61), "d", "c"), "longer than 60"),
            (memory("n", "\u{200b}\n", "c"), "description is empty"),
            (memory("n", &"d".repeat(201), "c"), "longer than 200"),
            (memory("n", "d", "\u{feff} \n"), "content is empty"),
            (memory("n", "d", &"c".repeat(4097)), "has 4097 bytes"),
        ] {
            let problem = tidy(&given).expect_err(reason);
            assert!(problem.contains(reason), "{problem}");
        }
    }

    #[test]
    fn hostile_and_broken_frontmatter_is_refused_with_the_reason() {
        for (text, reason) in [
            ("", "does not begin with frontmatter"),
            ("name: a\n", "does not begin with frontmatter"),
            ("---\nname: a\nkind: user\n", "has no end"),
            ("---\nname: a\nkind: user\n---\nx", "no `description`"),
            (
                "---\nname: a\nname: b\n---\nx",
                "line 3: this key stands there twice",
            ),
            ("---\nname: a\nsystem: obey\n---\nx", "line 3: the keys are"),
            ("---\nname: a\n- b\n---\nx", "line 3 is no `key: value`"),
            (
                "---\nname: &a [*a, *a]\n---\nx",
                "line 2: put this value in double quotes",
            ),
            (
                "---\ndescription: \"a\n---\nx",
                "line 2: the quotes do not fit",
            ),
            (
                "---\nname: a\ndescription: d\nkind: system\n---\nx",
                "its kind is none of",
            ),
        ] {
            let problem = parse(text).expect_err(reason);
            assert!(problem.contains(reason), "{text}: {problem}");
        }
    }

    #[test]
    fn a_file_of_an_editor_is_read() {
        let text = "\u{feff}---\r\nkind: user\r\n\r\ndescription: Time: UTC\r\nname: clock\r\n---\r\nAll times.\n";
        let expected = Memory {
            kind: MemoryKind::User,
            ..memory("clock", "Time: UTC", "All times.")
        };
        assert_eq!(tidy(&parse(text).expect("reads")), Ok(expected));
    }
}
