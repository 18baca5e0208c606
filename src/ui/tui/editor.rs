//! The line that the user types: several lines if need be, with pastes kept as one sign each.

use unicode_segmentation::UnicodeSegmentation;

/// A paste of more lines, or more characters, is shown as how much it is.
const PASTE_LINES: usize = 4;
const PASTE_CHARS: usize = 1000;
/// Signs of a private plane of Unicode stand for pastes in the text under way.
const FIRST_PASTE: u32 = 0xF_0000;
const MOST_PASTES: usize = 1000;
const MOST_HISTORY: usize = 1000;

/// Returns whether a paste is shown as how much it is.
pub(crate) fn is_long_paste(text: &str) -> bool {
    text.lines().count() > PASTE_LINES || text.chars().nth(PASTE_CHARS).is_some()
}

/// Returns the words that stand for a paste.
pub(crate) fn paste_label(text: &str) -> String {
    match text.lines().count() {
        0 | 1 => format!("[pasted {} characters]", text.chars().count()),
        n => format!("[pasted {n} lines]"),
    }
}

/// Text with a cursor, and what was sent before.
#[derive(Default)]
pub(super) struct Editor {
    text: String,
    /// In bytes, on a boundary of what is one letter to a reader.
    cursor: usize,
    pastes: Vec<String>,
    history: Vec<String>,
    /// Which entry of the history is shown.
    at: Option<usize>,
    /// What was typed before the history was looked at.
    draft: String,
    /// What was cut last.
    cut: String,
}

impl Editor {
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn cursor(&self) -> usize {
        self.cursor
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(super) fn set_history(&mut self, history: Vec<String>) {
        self.history = history;
        self.at = None;
    }

    pub(super) fn history(&self) -> &[String] {
        &self.history
    }

    /// Returns what a sign of the text stands for.
    pub(super) fn paste(&self, c: char) -> Option<&str> {
        let at = (c as u32).checked_sub(FIRST_PASTE)? as usize;
        self.pastes.get(at).map(String::as_str)
    }

    pub(super) fn insert(&mut self, text: &str) {
        let text: String = text
            .replace("\r\n", "\n")
            .chars()
            .map(|c| if c == '\r' { '\n' } else { c })
            .filter(|c| *c == '\n' || *c == '\t' || !c.is_control())
            .filter(|c| !is_paste(*c))
            .collect();
        self.at = None;
        self.text.insert_str(self.cursor, &text);
        self.cursor += text.len();
    }

    /// Takes a paste; a long one is one sign.
    pub(super) fn insert_paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        if !is_long_paste(&text) || self.pastes.len() >= MOST_PASTES {
            self.insert(&text);
            return;
        }
        let Some(sign) = char::from_u32(FIRST_PASTE + self.pastes.len() as u32) else {
            return;
        };
        self.pastes.push(text);
        self.at = None;
        self.text.insert(self.cursor, sign);
        self.cursor += sign.len_utf8();
    }

    /// Puts the paste before the cursor there in full; returns whether there is one.
    pub(super) fn expand_paste(&mut self) -> bool {
        let Some(sign) = self.text[..self.cursor].chars().next_back() else {
            return false;
        };
        let Some(text) = self.paste(sign).map(str::to_owned) else {
            return false;
        };
        self.backspace();
        self.insert(&text);
        true
    }

    /// Returns the text with all pastes in full.
    pub(super) fn whole(&self) -> String {
        let mut out = String::with_capacity(self.text.len());
        for c in self.text.chars() {
            match self.paste(c) {
                Some(paste) => out.push_str(paste),
                None => out.push(c),
            }
        }
        out
    }

    /// Takes the message; it is the newest of the history.
    pub(super) fn take(&mut self) -> String {
        let whole = self.whole();
        self.remember(&whole);
        self.clear();
        whole
    }

    fn remember(&mut self, text: &str) {
        if text.trim().is_empty() || self.history.last().is_some_and(|last| last == text) {
            return;
        }
        self.history.push(text.to_owned());
        if self.history.len() > MOST_HISTORY {
            self.history.remove(0);
        }
    }

    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.pastes.clear();
        self.cursor = 0;
        self.at = None;
    }

    pub(super) fn set(&mut self, text: &str) {
        self.clear();
        self.insert_paste(text);
    }

    /// Puts words in the place of what stands between `from` and the cursor.
    pub(super) fn complete(&mut self, from: usize, words: &str) {
        self.text.replace_range(from..self.cursor, "");
        self.cursor = from;
        self.insert(words);
    }

    pub(super) fn left(&mut self) {
        self.cursor = self.before();
    }

    pub(super) fn right(&mut self) {
        self.cursor = self.after();
    }

    pub(super) fn word_left(&mut self) {
        self.cursor = self.word_start();
    }

    pub(super) fn word_right(&mut self) {
        self.cursor = self.word_end();
    }

    pub(super) fn home(&mut self) {
        self.cursor = self.line_start();
    }

    pub(super) fn end(&mut self) {
        self.cursor = self.line_end();
    }

    pub(super) fn backspace(&mut self) {
        let before = self.before();
        self.remove(before, self.cursor);
    }

    pub(super) fn delete(&mut self) {
        let after = self.after();
        self.remove(self.cursor, after);
    }

    pub(super) fn delete_word(&mut self) {
        self.cut_between(self.word_start(), self.cursor);
    }

    pub(super) fn delete_word_after(&mut self) {
        self.cut_between(self.cursor, self.word_end());
    }

    pub(super) fn delete_to_start(&mut self) {
        self.cut_between(self.line_start(), self.cursor);
    }

    pub(super) fn delete_to_end(&mut self) {
        let end = self.line_end();
        // At the end of a line it takes the line break.
        let end = if end == self.cursor {
            self.after()
        } else {
            end
        };
        self.cut_between(self.cursor, end);
    }

    pub(super) fn insert_cut(&mut self) {
        let cut = self.cut.clone();
        self.insert_text(&cut);
    }

    /// Inserts what was in the editor before, pastes included.
    pub(super) fn insert_text(&mut self, text: &str) {
        self.at = None;
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    /// Returns what was cut or copied last.
    pub(super) fn cut(&self) -> &str {
        &self.cut
    }

    pub(super) fn keep_cut(&mut self, text: &str) {
        text.clone_into(&mut self.cut);
    }

    pub(super) fn copy_between(&mut self, from: usize, to: usize) {
        self.cut = self.text[from..to].to_owned();
    }

    /// Puts the cursor there.
    pub(super) fn go_to(&mut self, at: usize) {
        self.cursor = self.text.floor_char_boundary(at);
    }

    /// Puts a text of this editor back, of before a change.
    pub(super) fn restore(&mut self, text: &str, cursor: usize) {
        text.clone_into(&mut self.text);
        self.at = None;
        self.go_to(cursor);
    }

    /// Goes a line up, or to an older message; returns whether it did.
    pub(super) fn up(&mut self) -> bool {
        let start = self.line_start();
        if start > 0 {
            self.go_to_line_before(start);
            return true;
        }
        self.older()
    }

    pub(super) fn down(&mut self) -> bool {
        let end = self.line_end();
        if end < self.text.len() {
            let column = self.text[self.line_start()..self.cursor].chars().count();
            let next = end + 1;
            let next_end = self.text[next..]
                .find('\n')
                .map_or(self.text.len(), |at| next + at);
            self.cursor = column_at(&self.text[next..next_end], column) + next;
            return true;
        }
        self.newer()
    }

    fn go_to_line_before(&mut self, start: usize) {
        let column = self.text[start..self.cursor].chars().count();
        let end = start - 1;
        let begin = self.text[..end].rfind('\n').map_or(0, |at| at + 1);
        self.cursor = column_at(&self.text[begin..end], column) + begin;
    }

    fn older(&mut self) -> bool {
        let at = match self.at {
            None => {
                if self.history.is_empty() {
                    return false;
                }
                self.draft = self.whole();
                self.history.len() - 1
            }
            Some(0) => return false,
            Some(at) => at - 1,
        };
        self.show(at);
        true
    }

    fn newer(&mut self) -> bool {
        let Some(at) = self.at else { return false };
        if at + 1 < self.history.len() {
            self.show(at + 1);
        } else {
            let draft = std::mem::take(&mut self.draft);
            self.set(&draft);
        }
        true
    }

    fn show(&mut self, at: usize) {
        let text = self.history[at].clone();
        self.set(&text);
        self.at = Some(at);
    }

    fn remove(&mut self, from: usize, to: usize) {
        if from < to {
            self.text.replace_range(from..to, "");
            self.cursor = from;
            self.at = None;
        }
    }

    pub(super) fn cut_between(&mut self, from: usize, to: usize) {
        if from < to {
            self.cut = self.text[from..to].to_owned();
            self.remove(from, to);
        }
    }

    fn before(&self) -> usize {
        self.text[..self.cursor]
            .grapheme_indices(true)
            .next_back()
            .map_or(0, |(at, _)| at)
    }

    fn after(&self) -> usize {
        self.text[self.cursor..]
            .graphemes(true)
            .next()
            .map_or(self.cursor, |cluster| self.cursor + cluster.len())
    }

    fn word_start(&self) -> usize {
        let before = &self.text[..self.cursor];
        let bare = before.trim_end_matches(|c: char| !is_word(c));
        let word = bare.trim_end_matches(is_word);
        word.len()
    }

    fn word_end(&self) -> usize {
        let after = &self.text[self.cursor..];
        let bare = after.trim_start_matches(|c: char| !is_word(c));
        let rest = bare.trim_start_matches(is_word);
        self.text.len() - rest.len()
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..]
            .find('\n')
            .map_or(self.text.len(), |at| self.cursor + at)
    }
}

fn column_at(line: &str, column: usize) -> usize {
    line.char_indices()
        .nth(column)
        .map_or(line.len(), |(at, _)| at)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || is_paste(c)
}

fn is_paste(c: char) -> bool {
    (FIRST_PASTE..FIRST_PASTE + MOST_PASTES as u32).contains(&(c as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> Editor {
        let mut editor = Editor::default();
        editor.insert(text);
        editor
    }

    #[test]
    fn a_long_paste_is_one_sign_and_one_message() {
        let paste: String = (0..214).map(|n| format!("line {n}\r\n")).collect();
        let mut editor = typed("see ");
        editor.insert_paste(&paste);
        editor.insert(" and say");
        assert_eq!(editor.text().chars().count(), 13);
        assert_eq!(
            paste_label(editor.paste('\u{f0000}').expect("it")),
            "[pasted 214 lines]"
        );
        let message = editor.whole();
        assert!(
            message.starts_with("see line 0\nline 1\n") && message.ends_with("line 213\n and say")
        );
        for _ in 0.." and say".len() {
            editor.left();
        }
        assert!(editor.expand_paste());
        assert_eq!(editor.text(), message);
        editor.set("x");
        editor.insert_paste("two\nlines");
        assert_eq!(editor.text(), "xtwo\nlines");
        editor.clear();
        editor.insert_paste(&"y".repeat(1 << 20));
        editor.backspace();
        assert!(editor.is_empty(), "it goes as one");
    }

    #[test]
    fn words_lines_and_history_have_their_keys() {
        let mut editor = typed("one two-three");
        editor.word_left();
        assert_eq!(editor.cursor(), 8);
        editor.delete_word();
        assert_eq!(editor.text(), "one three");
        editor.insert_cut();
        editor.delete_to_end();
        assert_eq!(editor.text(), "one two-");
        editor.home();
        editor.word_right();
        editor.delete_to_start();
        assert_eq!(editor.text(), " two-");
        editor.clear();
        for message in ["first", "second\nline", "second\nline"] {
            editor.insert(message);
            editor.take();
        }
        editor.insert("draft");
        assert!(editor.up());
        assert_eq!(editor.text(), "second\nline");
        assert!(editor.up() && editor.up());
        assert_eq!(editor.text(), "first");
        assert!(!editor.up());
        assert!(editor.down() && editor.down());
        assert_eq!(editor.text(), "draft");
        assert!(!editor.down());
    }

    #[test]
    fn a_letter_of_several_parts_is_one() {
        let mut editor = typed("ae\u{301}👨\u{200d}👩\u{200d}👧");
        editor.backspace();
        editor.backspace();
        assert_eq!(editor.text(), "a");
        editor.insert("\u{1b}[31m\u{f0000}\r\nb");
        assert_eq!(editor.text(), "a[31m\nb", "keys alone make signs");
    }
}
