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

    /// Returns whether the line under way is one that quotes: of a quotation, a table or a comment, or an open quotation mark.
    pub(super) fn quotes(&self) -> bool {
        let line = self.text.rsplit('\n').next().unwrap_or_default().trim();
        line.starts_with(['>', '|']) || line.contains("<!--") || line.ends_with(['"', '\'', '\u{201c}'])
    }
}

fn introduces(line: &str) -> bool {
    let begin = line.ceil_char_boundary(line.len().saturating_sub(MAX));
    let line = line[begin..].to_lowercase();
    WORDS.iter().any(|word| line.contains(word))
}
