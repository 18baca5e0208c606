//! Tells a call from talk of one, by the words before it.
//!
//! A file may be called an example, and reading it is a call all the same; so the words must speak of one.

/// What introduces an example.
const WORDS: [&str; 14] = [
    "for example",
    "an example:",
    "an example of",
    "an example call",
    "as an example",
    "example:",
    "examples:",
    "example call",
    "e.g.",
    "for instance",
    "looks like",
    "look like",
    "format is",
    "hypothetical",
];
/// How much of the text before counts, in bytes.
const MAX: usize = 240;

/// The last words before what may be a call.
#[derive(Debug, Default)]
pub(super) struct Before {
    text: String,
}

impl Before {
    pub(super) fn add(&mut self, text: &str) {
        let begin = text.ceil_char_boundary(text.len().saturating_sub(MAX));
        self.text.push_str(&text[begin..]);
        if self.text.len() > 2 * MAX {
            let begin = self.text.ceil_char_boundary(self.text.len() - MAX);
            self.text.drain(..begin);
        }
    }

    pub(super) fn clear(&mut self) {
        self.text.clear();
    }

    /// Returns whether the line under way, or the last one with words where it has none, introduces an example.
    pub(super) fn introduces_example(&self) -> bool {
        introduces(self.text.trim_end().rsplit('\n').next().unwrap_or_default())
    }

    /// Returns whether the line under way is one that quotes: of a quotation, a table, a comment, a list or an indented block of code, with
    /// an open quotation mark, or with words that introduce an example.
    pub(super) fn quotes(&self) -> bool {
        let raw = self.text.rsplit('\n').next().unwrap_or_default();
        let line = raw.trim();
        let is_indented = raw.starts_with('\t') || raw.starts_with("    ");
        is_indented
            || line.starts_with(['>', '|'])
            || is_item(line)
            || line.contains("<!--")
            || line.ends_with(['"', '\'', '\u{201c}'])
            || introduces(line)
    }
}

/// Returns whether a line is an item of a list: `- `, `* `, `1. `, `2) `.
fn is_item(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let after_number = if rest.len() < line.len() { rest.strip_prefix(['.', ')']) } else { None };
    let after_mark = after_number.or_else(|| line.strip_prefix(['-', '*', '+']));
    after_mark.is_some_and(|after| after.is_empty() || after.starts_with(' '))
}

fn introduces(line: &str) -> bool {
    let begin = line.ceil_char_boundary(line.len().saturating_sub(MAX));
    let line = line[begin..].to_lowercase();
    WORDS.iter().any(|word| line.contains(word))
}
