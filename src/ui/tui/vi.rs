//! Keys of vi in the editor of the screen: a key of normal mode becomes a motion or an edit.
//!
//! Counts, `h l 0 ^ $ w b e j k`, `i I a A o O`, `x X D C s S p P u`, and `d c y` with a motion or
//! doubled. `j` and `k` at the last and first line are the history, as the arrows are.

use unicode_segmentation::UnicodeSegmentation;

use super::editor::Editor;

const MOST_COUNT: usize = 999;
const MOST_UNDO: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Delete,
    Change,
    Copy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Blank,
    Word,
    Sign,
}

/// What vi keeps between two keys.
#[derive(Default)]
pub(super) struct Vi {
    is_normal: bool,
    operator: Option<Operator>,
    count: Option<usize>,
    /// The text and the cursor before each change.
    before: Vec<(String, usize)>,
}

impl Vi {
    pub(super) fn is_normal(&self) -> bool {
        self.is_normal
    }

    /// Begins normal mode.
    pub(super) fn leave_insert(&mut self, editor: &mut Editor) {
        self.is_normal = true;
        if editor.cursor() > line_start(editor.text(), editor.cursor()) {
            editor.left();
        }
    }

    /// Forgets a command of which only the beginning was typed.
    pub(super) fn forget_command(&mut self) {
        (self.operator, self.count) = (None, None);
    }

    /// Begins anew: another text takes the place of this one.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Takes a letter of normal mode.
    pub(super) fn key(&mut self, letter: char, editor: &mut Editor) {
        if let Some(digit) = letter.to_digit(10)
            && (digit > 0 || self.count.is_some())
        {
            let count = self.count.unwrap_or(0) * 10 + digit as usize;
            self.count = Some(count.min(MOST_COUNT));
            return;
        }
        if let Some(operator) = operator(letter)
            && self.operator.is_none()
        {
            self.operator = Some(operator);
            return;
        }
        let n = self.count.take().unwrap_or(1);
        match self.operator.take() {
            Some(pending) if operator(letter) == Some(pending) => self.lines(pending, n, editor),
            Some(pending) => {
                if let Some((from, to)) = range(pending, letter, n, editor) {
                    self.apply(pending, from, to, editor);
                }
            }
            None => self.command(letter, n, editor),
        }
        if self.is_normal {
            stay_on_a_letter(editor);
        }
    }

    fn command(&mut self, letter: char, n: usize, editor: &mut Editor) {
        let at = editor.cursor();
        let (start, end) = line(editor.text(), at);
        match letter {
            'i' => self.change(editor),
            'a' => {
                self.change(editor);
                editor.go_to(right(editor.text(), at).min(end));
            }
            'I' => {
                self.change(editor);
                editor.go_to(first_letter(editor.text(), start));
            }
            'A' => {
                self.change(editor);
                editor.go_to(end);
            }
            'o' => {
                self.change(editor);
                editor.go_to(end);
                editor.insert("\n");
            }
            'O' => {
                self.change(editor);
                editor.go_to(start);
                editor.insert("\n");
                editor.go_to(start);
            }
            'x' => self.apply_motion(Operator::Delete, 'l', n, editor),
            'X' => self.apply_motion(Operator::Delete, 'h', n, editor),
            's' => self.apply_motion(Operator::Change, 'l', n, editor),
            'D' => self.apply(Operator::Delete, at, end, editor),
            'C' => self.apply(Operator::Change, at, end, editor),
            'S' => self.lines(Operator::Change, n, editor),
            'p' | 'P' => self.put(letter == 'p', n, editor),
            'u' => {
                if let Some((text, cursor)) = self.before.pop() {
                    editor.restore(&text, cursor);
                }
            }
            'j' => {
                for _ in 0..n {
                    editor.down();
                }
            }
            'k' => {
                for _ in 0..n {
                    editor.up();
                }
            }
            _ => {
                if let Some(to) = motion(letter, n, editor) {
                    editor.go_to(to);
                }
            }
        }
    }

    /// Begins insert mode; what is typed in it is one change.
    fn change(&mut self, editor: &Editor) {
        self.keep(editor);
        self.is_normal = false;
    }

    fn keep(&mut self, editor: &Editor) {
        if self.before.len() == MOST_UNDO {
            self.before.remove(0);
        }
        self.before
            .push((editor.text().to_owned(), editor.cursor()));
    }

    fn apply_motion(&mut self, operator: Operator, letter: char, n: usize, editor: &mut Editor) {
        if let Some((from, to)) = range(operator, letter, n, editor) {
            self.apply(operator, from, to, editor);
        }
    }

    fn apply(&mut self, operator: Operator, from: usize, to: usize, editor: &mut Editor) {
        match operator {
            Operator::Copy => {
                editor.copy_between(from, to);
                editor.go_to(from);
            }
            Operator::Delete => {
                self.keep(editor);
                editor.cut_between(from, to);
            }
            Operator::Change => {
                self.change(editor);
                editor.cut_between(from, to);
            }
        }
    }

    /// Applies it to whole lines, from that of the cursor on.
    fn lines(&mut self, operator: Operator, n: usize, editor: &mut Editor) {
        let text = editor.text().to_owned();
        let (from, mut to) = line(&text, editor.cursor());
        for _ in 1..n {
            if to < text.len() {
                to = line(&text, to + 1).1;
            }
        }
        let lines = format!("{}\n", &text[from..to]);
        match operator {
            Operator::Copy => editor.keep_cut(&lines),
            Operator::Change => {
                self.apply(operator, from, to, editor);
                editor.keep_cut(&lines);
            }
            Operator::Delete => {
                let (from, to) = match (from, to) {
                    (from, to) if to < text.len() => (from, to + 1),
                    (0, to) => (0, to),
                    // The last line goes with the line break before it.
                    (from, to) => (from - 1, to),
                };
                self.apply(operator, from, to, editor);
                editor.keep_cut(&lines);
                let start = line_start(editor.text(), editor.cursor());
                editor.go_to(first_letter(editor.text(), start));
            }
        }
    }

    /// Puts what was cut behind the cursor, or before it.
    fn put(&mut self, is_behind: bool, n: usize, editor: &mut Editor) {
        let cut = editor.cut().to_owned();
        if cut.is_empty() {
            return;
        }
        self.keep(editor);
        let at = editor.cursor();
        let (start, end) = line(editor.text(), at);
        let all = cut.repeat(n);
        if let Some(lines) = all.strip_suffix('\n') {
            let from = if is_behind {
                editor.go_to(end);
                editor.insert_text(&format!("\n{lines}"));
                end + 1
            } else {
                editor.go_to(start);
                editor.insert_text(&all);
                start
            };
            editor.go_to(first_letter(editor.text(), from));
            return;
        }
        if is_behind {
            editor.go_to(right(editor.text(), at).min(end));
        }
        editor.insert_text(&all);
        editor.left();
    }
}

fn operator(letter: char) -> Option<Operator> {
    match letter {
        'd' => Some(Operator::Delete),
        'c' => Some(Operator::Change),
        'y' => Some(Operator::Copy),
        _ => None,
    }
}

/// Returns what an operator with a motion is about.
fn range(operator: Operator, letter: char, n: usize, editor: &Editor) -> Option<(usize, usize)> {
    let (text, at) = (editor.text(), editor.cursor());
    // At a word, `cw` leaves the blank behind it, as `ce` does.
    let is_on_word = text[at..]
        .chars()
        .next()
        .is_some_and(|c| class(c) != Class::Blank);
    let letter = if (operator, letter) == (Operator::Change, 'w') && is_on_word {
        'e'
    } else {
        letter
    };
    let to = motion(letter, n, editor)?;
    let to = match letter {
        'e' => right(text, to),
        // It takes no line break that it does not reach over.
        'w' if to == text.len() || to <= line(text, at).1 || n > 1 => to,
        'w' => line(text, at).1,
        _ => to,
    };
    Some((at.min(to), at.max(to)))
}

/// Returns where a motion leads, so many times over.
fn motion(letter: char, n: usize, editor: &Editor) -> Option<usize> {
    let text = editor.text();
    let mut at = editor.cursor();
    for _ in 0..n {
        let (start, end) = line(text, at);
        at = match letter {
            'h' => left(text, at).max(start),
            'l' | ' ' => right(text, at).min(end),
            '0' => start,
            '^' => first_letter(text, start),
            '$' => end,
            'w' => next_word(text, at),
            'b' => word_before(text, at),
            'e' => word_end(text, at),
            _ => return None,
        };
    }
    Some(at)
}

/// In normal mode the cursor is on a letter, where the line has one.
fn stay_on_a_letter(editor: &mut Editor) {
    let (start, end) = line(editor.text(), editor.cursor());
    if editor.cursor() == end && end > start {
        editor.left();
    }
}

fn line(text: &str, at: usize) -> (usize, usize) {
    let end = text[at..].find('\n').map_or(text.len(), |n| at + n);
    (line_start(text, at), end)
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |found| found + 1)
}

/// Returns where the text of a line begins behind its blanks.
fn first_letter(text: &str, start: usize) -> usize {
    let end = line(text, start).1;
    let blank = text[start..end].len() - text[start..end].trim_start().len();
    start + blank
}

fn left(text: &str, at: usize) -> usize {
    let before = text[..at].grapheme_indices(true).next_back();
    before.map_or(0, |(found, _)| found)
}

fn right(text: &str, at: usize) -> usize {
    text[at..]
        .graphemes(true)
        .next()
        .map_or(at, |cluster| at + cluster.len())
}

fn class(c: char) -> Class {
    if c.is_whitespace() {
        Class::Blank
    } else if c.is_alphanumeric() || c == '_' {
        Class::Word
    } else {
        Class::Sign
    }
}

/// Returns where the letters of this class end that begin here.
fn past(text: &str, at: usize, which: Class) -> usize {
    let rest = &text[at..];
    at + rest.len() - rest.trim_start_matches(|c| class(c) == which).len()
}

fn next_word(text: &str, at: usize) -> usize {
    let Some(c) = text[at..].chars().next() else {
        return at;
    };
    past(text, past(text, at, class(c)), Class::Blank)
}

/// Returns the last letter of the next word.
fn word_end(text: &str, at: usize) -> usize {
    let next = past(text, right(text, at), Class::Blank);
    match text[next..].chars().next() {
        Some(c) => left(text, past(text, next, class(c))),
        None => left(text, text.len()).max(at),
    }
}

fn word_before(text: &str, at: usize) -> usize {
    let before = text[..at].trim_end();
    let Some(c) = before.chars().next_back() else {
        return 0;
    };
    let which = class(c);
    before.trim_end_matches(|c| class(c) == which).len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types keys in normal mode, from the end of a text; `|` is where the cursor is then.
    fn typed(text: &str, keys: &str) -> String {
        let (mut editor, mut vi) = (Editor::default(), Vi::default());
        editor.set(text);
        vi.leave_insert(&mut editor);
        for key in keys.chars() {
            match key {
                '\x1b' => vi.leave_insert(&mut editor),
                key if vi.is_normal() => vi.key(key, &mut editor),
                key => editor.insert(&key.to_string()),
            }
        }
        let mut shown = editor.text().to_owned();
        shown.insert(editor.cursor(), '|');
        shown
    }

    #[test]
    fn motions_go_where_those_of_vi_go() {
        for (keys, expected) in [
            ("", "one two.thre|e"),
            ("0", "|one two.three"),
            ("0w", "one |two.three"),
            ("02w", "one two|.three"),
            ("03w", "one two.|three"),
            ("0e", "on|e two.three"),
            ("0ee", "one tw|o.three"),
            ("b", "one two.|three"),
            ("3b", "one |two.three"),
            ("9h", "one| two.three"),
            ("0$", "one two.thre|e"),
            ("02l", "on|e two.three"),
        ] {
            assert_eq!(typed("one two.three", keys), expected, "{keys}");
        }
    }

    #[test]
    fn operators_take_motions_counts_and_whole_lines() {
        for (text, keys, expected) in [
            ("one two three", "0dw", "|two three"),
            ("one two three", "0d2w", "|three"),
            ("one two three", "02dw", "|three"),
            ("one two three", "0cwfour\x1b", "fou|r two three"),
            ("one two three", "0de", "| two three"),
            ("one two three", "0wD", "one| "),
            ("one two three", "0wCx", "one x|"),
            ("one two three", "0wd0", "|two three"),
            ("one", "0x", "|ne"),
            ("one", "02x", "|e"),
            ("one", "X", "o|e"),
            ("one", "0sX", "X|ne"),
            ("one\ntwo\nthree", "kdd", "one\n|three"),
            ("one\ntwo", "dd", "|one"),
            ("one\ntwo", "ddp", "one\n|two"),
            ("one\ntwo", "kyyp", "one\n|one\ntwo"),
            ("one\ntwo", "ddP", "|two\none"),
            ("one\ntwo\nthree", "2kd2d", "|three"),
            ("one\ntwo", "ccx", "one\nx|"),
            ("ab", "0xp", "b|a"),
            ("one two", "0yw$p", "one twoone| "),
            ("one\ntwo", "kox", "one\nx|\ntwo"),
            ("one\ntwo", "Ox", "one\nx|\ntwo"),
            ("  one", "Ix", "  x|one"),
            ("one", "0Ax", "onex|"),
            ("one\ntwo", "k$dw", "o|n\ntwo"),
            ("äöü 日本", "0dw", "|日本"),
            ("", "dwxpbe", "|"),
        ] {
            assert_eq!(typed(text, keys), expected, "{text:?} {keys:?}");
        }
    }

    #[test]
    fn u_undoes_a_change_and_what_was_typed_in_it() {
        assert_eq!(typed("one two", "0cwxyz\x1bu"), "|one two");
        assert_eq!(typed("one two three", "0dwdwu"), "|two three");
        assert_eq!(typed("one two three", "0dwdwuuu"), "|one two three");
    }
}
