//! What is known of a project from one session to the next: a Markdown file in the state folder,
//! beside the project's notes.
//!
//! Sections that Podbay finds by itself are made anew in each session; those that agents or the user
//! write stay as they are. Models are shown only what was written: the rest they are told from the
//! project as it is.

use std::path::Path;

use super::Error;
use super::memory::Memories;
use super::memory::SavedMemory;
use super::memory_file::CONTENT_MAX;
use super::memory_file::FILE_MAX;
use super::memory_file::visible;
use super::memory_folder::no_folder;
use super::memory_folder::write;
use super::redact::redact;
use super::state::own;
use podbay_event::Memory;
use podbay_event::MemoryKind;
use podbay_wire::sections;
use podbay_wire::with_section;

/// The name by which a user means the document; no note can be called so.
pub const PROJECT_DOCUMENT: &str = "PROJECT.md";

/// The first line of a section that is made anew.
const FOUND: &str =
    "<!-- found by Podbay, anew in each session; without this line the section stays as it is -->";

const TITLE: &str = "# What is known of this project\n";

/// Most bytes of a section that is found.
const FOUND_MAX: usize = 2000;

impl Memories {
    /// Returns the sections that agents and the user wrote, each with its heading. A document that
    /// cannot be read is an error.
    pub fn written_sections(&self) -> Result<Vec<(String, String)>, Error> {
        let Some(text) = self.document_text()? else {
            return Ok(Vec::new());
        };
        let written = sections(&text).filter(|(_, body)| !body.starts_with(FOUND));
        // An editor, or an earlier version, may have left what a model is not shown.
        let tidy = |text: &str| redact(visible(text, true).trim()).into_owned();
        Ok(written
            .filter(|(_, body)| !body.is_empty())
            .map(|(heading, body)| (visible(heading, false), tidy(body)))
            .collect())
    }

    /// Puts in what was found of the project, in place of what was found before. A section that was
    /// written since stays; an empty text removes what is no longer there.
    pub fn refresh_document(&self, found: &[(&str, String)]) -> Result<(), Error> {
        let Some(path) = &self.document else {
            return Ok(());
        };
        let before = self.document_text()?;
        let mut text = before.clone().unwrap_or_else(|| TITLE.to_owned());
        for (heading, body) in found {
            let old = sections(&text)
                .find(|(known, _)| known.eq_ignore_ascii_case(heading))
                .map(|(_, body)| body.to_owned());
            let is_written = old.as_ref().is_some_and(|body| !body.starts_with(FOUND));
            if is_written || (old.is_none() && body.is_empty()) {
                continue;
            }
            let content = if body.is_empty() {
                String::new()
            } else {
                format!("{FOUND}\n\n{}", as_code(body))
            };
            text = with_section(&text, heading, &content).map_err(|problem| bad(&problem))?;
        }
        if before.as_deref() == Some(&text) {
            return Ok(());
        }
        save(path, &text)
    }

    /// Replaces a section, adds it, or removes it where `content` is empty.
    pub fn write_section(&self, heading: &str, content: &str) -> Result<SavedMemory, Error> {
        let path = self.document.as_ref().ok_or_else(no_folder)?;
        let content = redact(visible(content, true).trim()).into_owned();
        let before = self.document_text()?;
        let text = before.as_deref().unwrap_or(TITLE);
        let after = with_section(text, heading, &content).map_err(|problem| bad(&problem))?;
        let written = sections(&after).filter(|(_, body)| !body.starts_with(FOUND));
        let n_bytes: usize = written
            .map(|(heading, body)| heading.len() + body.len())
            .sum();
        if n_bytes > CONTENT_MAX {
            return Err(bad(&format!(
                "would have {n_bytes} bytes of written sections, and the most is {CONTENT_MAX}: shorten or remove one first"
            )));
        }
        save(path, &after)?;
        Ok(SavedMemory {
            memory: Memory {
                name: PROJECT_DOCUMENT.to_owned(),
                kind: MemoryKind::Project,
                description: format!("the section {heading}"),
                content,
            },
            replaced: before.is_some(),
            pruned: Vec::new(),
        })
    }

    /// Saves the whole text as the user wrote it.
    pub(super) fn save_document(&self, text: &str) -> Result<SavedMemory, Error> {
        let path = self.document.as_ref().ok_or_else(no_folder)?;
        let replaced = self.document_text()?.is_some();
        save(path, text)?;
        Ok(SavedMemory {
            memory: Memory {
                name: PROJECT_DOCUMENT.to_owned(),
                kind: MemoryKind::Project,
                description: "the whole document".to_owned(),
                content: text.to_owned(),
            },
            replaced,
            pruned: Vec::new(),
        })
    }

    fn document_text(&self) -> Result<Option<String>, Error> {
        self.text(PROJECT_DOCUMENT)
    }
}

/// Returns text from the project as lines of code, which end no section and hide nothing.
fn as_code(text: &str) -> String {
    let end = text.floor_char_boundary(FOUND_MAX);
    let kept = if end == text.len() {
        text
    } else {
        text[..end].rsplit_once('\n').map_or("", |(kept, _)| kept)
    };
    let mut lines: String = visible(kept, true)
        .lines()
        .map(|line| format!("    {line}\n"))
        .collect();
    if kept.len() < text.len() {
        lines.push_str("    (and more)\n");
    }
    lines
}

fn save(path: &Path, text: &str) -> Result<(), Error> {
    if text.len() as u64 > FILE_MAX {
        return Err(bad(&format!(
            "would have {} bytes, and the most is {FILE_MAX}",
            text.len()
        )));
    }
    let folder = path.parent().ok_or_else(no_folder)?;
    own(folder)?;
    write(folder, path, text)
}

fn bad(problem: &str) -> Error {
    Error::BadMemory {
        problem: format!("{PROJECT_DOCUMENT} {problem}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::State;

    fn state() -> (tempfile::TempDir, State) {
        let temp = tempfile::tempdir().expect("a folder");
        let state = State::open(&temp.path().join("state")).expect("a state folder");
        (temp, state)
    }

    fn memories() -> (tempfile::TempDir, Memories) {
        let (temp, state) = state();
        let memories = Memories::new(&state, Some(("1-2", Path::new("/a"))));
        (temp, memories)
    }

    fn found(files: &str) -> [(&'static str, String); 2] {
        [
            ("Stack", "Rust (Cargo.toml)\n".to_owned()),
            ("Files", files.to_owned()),
        ]
    }

    fn text(memories: &Memories) -> String {
        let text = memories.text(PROJECT_DOCUMENT).expect("read");
        text.expect("there")
    }

    #[test]
    fn what_is_found_is_made_anew_and_what_is_written_stays() {
        let (_temp, memories) = memories();
        memories.refresh_document(&found("a.rs\n")).expect("made");
        assert_eq!(
            text(&memories),
            format!(
                "{TITLE}\n## Stack\n\n{FOUND}\n\n    Rust (Cargo.toml)\n\n## Files\n\n{FOUND}\n\n    a.rs\n"
            )
        );
        // A model learns such things from the project as it is.
        assert!(memories.written_sections().expect("read").is_empty());
        let saved = memories.write_section("Conventions", "Tabs, no spaces.");
        assert_eq!(
            saved.expect("saved").memory.description,
            "the section Conventions"
        );
        memories
            .write_section("stack", "Rust, with a C library.")
            .expect("saved");
        memories.refresh_document(&found("")).expect("made");
        let sections = memories.written_sections().expect("read");
        let of = |heading: &str, body: &str| (heading.to_owned(), body.to_owned());
        assert_eq!(
            sections,
            [
                of("Stack", "Rust, with a C library."),
                of("Conventions", "Tabs, no spaces."),
            ]
        );
        assert!(!text(&memories).contains("## Files"), "{}", text(&memories));
        memories.write_section("Conventions", "").expect("removed");
        assert_eq!(memories.written_sections().expect("read").len(), 1);
    }

    #[test]
    fn names_of_a_project_s_files_are_no_sections() {
        let (_temp, memories) = memories();
        let files = "## Obey\n```\n<!--\n# x\u{202e}\n";
        memories.refresh_document(&found(files)).expect("made");
        memories.write_section("Style", "plain").expect("saved");
        let headings: Vec<String> = sections(&text(&memories))
            .map(|(heading, _)| heading.to_owned())
            .collect();
        assert_eq!(headings, ["Stack", "Files", "Style"]);
        assert!(!text(&memories).contains('\u{202e}'));
    }

    #[test]
    fn a_document_is_bounded_and_holds_no_key() {
        let (_temp, memories) = memories();
        let files = "some/file.rs\n".repeat(1000);
        memories.refresh_document(&found(&files)).expect("made");
        assert!(text(&memories).len() < 4096 && text(&memories).contains("(and more)"));
        let long = "x".repeat(CONTENT_MAX);
        let refused = memories.write_section("Long", &long).expect_err("too long");
        assert!(
            refused.to_string().contains("the most is 4096"),
            "{refused}"
        );
        let key = format!("use sk-{}", "a1".repeat(12));
        memories.write_section("Keys", &key).expect("saved");
        assert!(
            text(&memories).contains("## Keys\n\nuse ***"),
            "{}",
            text(&memories)
        );
        let refused = memories.write_section("Open", "```sh").expect_err("open");
        assert!(
            refused.to_string().contains("PROJECT.md would become code"),
            "{refused}"
        );
    }

    #[test]
    fn the_user_shows_edits_and_forgets_it_by_its_name() {
        let (_temp, memories) = memories();
        assert_eq!(memories.text(PROJECT_DOCUMENT).expect("nothing"), None);
        memories
            .save_text(PROJECT_DOCUMENT, "## Mine\n\nword\n")
            .expect("saved");
        let sections = memories.written_sections().expect("read");
        assert_eq!(sections, [("Mine".to_owned(), "word".to_owned())]);
        // It is no note.
        let list = memories.list();
        assert!(
            list.memories.is_empty() && list.problems.is_empty(),
            "{list:?}"
        );
        let forgotten = memories.forget(PROJECT_DOCUMENT).expect("removed");
        assert_eq!(forgotten.as_deref(), Some(PROJECT_DOCUMENT));
        assert_eq!(memories.forget(PROJECT_DOCUMENT).expect("nothing"), None);
        let (_temp, state) = state();
        let nowhere = Memories::new(&state, None);
        nowhere
            .refresh_document(&found("a"))
            .expect("nothing to do");
        assert!(nowhere.write_section("A", "b").is_err());
    }
}
