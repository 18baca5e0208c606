//! A command's output as a terminal would show it at its end.
//!
//! A command that shows progress prints the same line again and again, with a carriage return or by
//! moving the cursor up and erasing. Only the last state of each line is kept. Colours and other
//! escape sequences are removed, and bytes that are not UTF-8 are escaped. Text without any of
//! these is unchanged.

use std::collections::VecDeque;
use std::fmt::Write;

use vte::Params;
use vte::Parser;
use vte::Perform;

use podbay_wire::shown_text;

const ESC: u8 = 0x1b;

/// Rows that can still be overwritten; those above are final.
const LIVE: usize = 512;

/// Rows of the terminal that a command without one assumes; used only by sequences that concern the
/// whole screen.
const HEIGHT: usize = 24;

/// The farthest that a command may move the cursor to the right.
const WIDTH: usize = 200;

/// Blanks that cursor movements may create in all.
const MOST_BLANKS: usize = 1 << 20;

/// A command's output as text.
pub(super) struct ScreenText {
    pub(super) text: String,
    /// Whether bytes were escaped.
    pub(super) has_bytes: bool,
}

/// Returns what a terminal shows after this output.
pub(super) fn shown(printed: &[u8]) -> ScreenText {
    let has_bytes = std::str::from_utf8(printed).is_err();
    let text = shown_text(printed);
    if !text.chars().any(is_control) {
        return ScreenText {
            text: text.into_owned(),
            has_bytes,
        };
    }
    let mut screen = Screen::new();
    for line in text.split_inclusive('\n') {
        let (line, ends) = line
            .strip_suffix('\n')
            .map_or((line, false), |line| (line, true));
        screen.draw(line);
        if ends {
            screen.line_feed();
        }
    }
    ScreenText {
        text: screen.into_text(),
        has_bytes,
    }
}

/// Returns where the first line of a text starts to be redrawn, if it does.
pub(super) fn redrawn_at(printed: &[u8]) -> Option<usize> {
    const TO_BEGINNING: [&[u8]; 4] = [b"\r", b"\x1b[2K", b"\x1b[1G", b"\x1b[G"];
    let line = printed.split(|byte| *byte == b'\n').next()?;
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    (0..line.len()).find(|at| {
        TO_BEGINNING
            .iter()
            .any(|sequence| line[*at..].starts_with(sequence))
    })
}

fn is_control(char: char) -> bool {
    char.is_control() && !matches!(char, '\n' | '\t')
}

#[derive(Default)]
struct Row {
    cells: Vec<char>,
    /// Something was overwritten or erased, so trailing blanks are leftovers.
    is_redrawn: bool,
}

struct Screen {
    done: String,
    rows: VecDeque<Row>,
    row: usize,
    column: usize,
    saved: (usize, usize),
    /// A program uses the whole screen: it clears it, or moves the cursor to an absolute position.
    /// Earlier output stays.
    is_taken: bool,
    blanks_left: usize,
    /// Whether the parser acted on the last byte, so that no sequence is open.
    acted: bool,
}

impl Screen {
    fn new() -> Self {
        Self {
            done: String::new(),
            rows: VecDeque::from([Row::default()]),
            row: 0,
            column: 0,
            saved: (0, 0),
            is_taken: false,
            blanks_left: MOST_BLANKS,
            acted: false,
        }
    }

    /// Draws the text between two line feeds. A sequence that is not complete by then is shown, so
    /// that it cannot hide what follows.
    fn draw(&mut self, mut line: &str) {
        while !line.is_empty() {
            if !line.chars().any(is_control) {
                line.chars().for_each(|char| self.put(char));
                return;
            }
            let mut parser = Parser::new();
            let mut open = None;
            for (at, byte) in line.bytes().enumerate() {
                self.acted = false;
                parser.advance(self, &[byte]);
                // An ESC may end an open sequence, which acts then.
                if byte == ESC {
                    open = Some(at);
                } else if self.acted {
                    open = None;
                }
            }
            let Some(at) = open else { return };
            self.show(char::from(ESC));
            line = &line[at + 1..];
        }
    }

    fn put(&mut self, char: char) {
        let row = &mut self.rows[self.row];
        let n_blanks = self
            .column
            .saturating_sub(row.cells.len())
            .min(self.blanks_left);
        self.blanks_left -= n_blanks;
        row.cells.resize(row.cells.len() + n_blanks, ' ');
        self.column = self.column.min(row.cells.len());
        match row.cells.get_mut(self.column) {
            Some(cell) => {
                *cell = char;
                row.is_redrawn = true;
            }
            None => row.cells.push(char),
        }
        self.column += 1;
    }

    /// Shows an invisible character.
    fn show(&mut self, char: char) {
        let mut text = String::new();
        let code = u32::from(char);
        let _ = if code <= 0xff {
            write!(text, "\\x{code:02x}")
        } else {
            write!(text, "\\u{{{code:x}}}")
        };
        text.chars().for_each(|char| self.put(char));
    }

    fn line_feed(&mut self) {
        self.column = 0;
        self.row += 1;
        self.make_rows();
    }

    /// Adds rows down to the cursor; the first ones become final when there are too many.
    fn make_rows(&mut self) {
        while self.rows.len() <= self.row {
            self.rows.push_back(Row::default());
        }
        while self.rows.len() > LIVE {
            if let Some(row) = self.rows.pop_front() {
                finish(&mut self.done, &row);
                self.done.push('\n');
            }
            self.row = self.row.saturating_sub(1);
            self.saved.0 = self.saved.0.saturating_sub(1);
        }
    }

    /// Makes the output so far final. It may belong to another command.
    fn take(&mut self) {
        if self.is_taken {
            return;
        }
        self.is_taken = true;
        for row in std::mem::take(&mut self.rows) {
            finish(&mut self.done, &row);
            self.done.push('\n');
        }
        // A line that has not started is none.
        if self.done.ends_with("\n\n") || self.done == "\n" {
            self.done.pop();
        }
        self.rows.push_back(Row::default());
        (self.row, self.column, self.saved) = (0, 0, (0, 0));
    }

    /// The row at the top of the terminal.
    fn top(&self) -> usize {
        self.rows.len().saturating_sub(HEIGHT)
    }

    fn move_to_column(&mut self, column: usize) {
        self.column = column.min(self.rows[self.row].cells.len().max(WIDTH));
    }

    fn move_to(&mut self, row: usize, column: usize) {
        self.take();
        self.row = self.top() + row.min(HEIGHT - 1);
        self.make_rows();
        self.move_to_column(column);
    }

    fn erase_in_line(&mut self, how: u16) {
        let column = self.column;
        let row = &mut self.rows[self.row];
        row.is_redrawn = true;
        match how {
            0 => row.cells.truncate(column),
            1 => row
                .cells
                .iter_mut()
                .take(column + 1)
                .for_each(|cell| *cell = ' '),
            2 => row.cells.clear(),
            _ => {}
        }
    }

    fn erase_in_screen(&mut self, how: u16) {
        match how {
            0 => {
                self.erase_in_line(0);
                self.rows.truncate(self.row + 1);
            }
            1 => {
                let top = self.top().min(self.row);
                self.rows
                    .range_mut(top..self.row)
                    .for_each(|row| row.cells.clear());
                self.erase_in_line(1);
            }
            2 => {
                self.take();
                let top = self.top();
                self.rows.range_mut(top..).for_each(|row| row.cells.clear());
                // The output restarts at the top, or continues here with nothing above it.
                self.rows.truncate(top + 1);
                (self.row, self.column) = (top, 0);
            }
            _ => {}
        }
    }

    fn edit_line(&mut self, action: char, n: usize) {
        let (row, column) = (&mut self.rows[self.row], self.column);
        if column >= row.cells.len() {
            return;
        }
        row.is_redrawn = true;
        let n = n.min(row.cells.len() - column);
        match action {
            'P' => drop(row.cells.drain(column..column + n)),
            'X' => row.cells[column..column + n]
                .iter_mut()
                .for_each(|cell| *cell = ' '),
            _ => drop(
                row.cells
                    .splice(column..column, std::iter::repeat_n(' ', n)),
            ),
        }
    }

    fn into_text(mut self) -> String {
        let last = self.rows.len() - 1;
        for (number, row) in self.rows.iter().enumerate() {
            finish(&mut self.done, row);
            if number < last {
                self.done.push('\n');
            }
        }
        self.done
    }
}

fn finish(text: &mut String, row: &Row) {
    let start = text.len();
    text.extend(&row.cells);
    if row.is_redrawn {
        text.truncate(start + text[start..].trim_end_matches(' ').len());
    }
}

impl Perform for Screen {
    fn print(&mut self, char: char) {
        self.acted = true;
        if is_control(char) {
            self.show(char);
        } else {
            self.put(char);
        }
    }

    fn execute(&mut self, byte: u8) {
        self.acted = true;
        match byte {
            b'\r' => self.column = 0,
            0x08 => self.column = self.column.saturating_sub(1),
            b'\t' => self.put('\t'),
            // The bell, and character set selection.
            0x07 | 0x0e | 0x0f => {}
            byte => self.show(char::from(byte)),
        }
    }

    fn unhook(&mut self) {
        self.acted = true;
    }

    fn osc_dispatch(&mut self, _params: &[&[u8]], _bell_terminated: bool) {
        self.acted = true;
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], _ignore: bool, action: char) {
        self.acted = true;
        // Sequences for modes and the terminal itself, which do not change the text.
        if !intermediates.is_empty() {
            return;
        }
        let mut given = params
            .iter()
            .map(|part| part.first().copied().unwrap_or_default());
        let first = given.next().unwrap_or_default();
        let n = usize::from(first.max(1));
        match action {
            'A' | 'F' => self.row = self.row.saturating_sub(n),
            // A terminal has no rows below the last.
            'B' | 'E' => self.row = (self.row + n).min(self.rows.len() - 1),
            'C' => self.move_to_column(self.column + n),
            'D' => self.column = self.column.saturating_sub(n),
            'G' | '`' => self.move_to_column(n - 1),
            'd' => self.move_to(n - 1, self.column),
            'H' | 'f' => self.move_to(
                n - 1,
                usize::from(given.next().unwrap_or_default().max(1)) - 1,
            ),
            'J' => self.erase_in_screen(first),
            'K' => self.erase_in_line(first),
            'P' | 'X' | '@' => self.edit_line(action, n),
            's' => self.saved = (self.row, self.column),
            'u' => (self.row, self.column) = (self.saved.0.min(self.rows.len() - 1), self.saved.1),
            _ => {}
        }
        if matches!(action, 'E' | 'F') {
            self.column = 0;
        }
    }

    fn esc_dispatch(&mut self, intermediates: &[u8], _ignore: bool, byte: u8) {
        self.acted = true;
        match (intermediates, byte) {
            ([], b'7') => self.saved = (self.row, self.column),
            ([], b'8') => {
                (self.row, self.column) = (self.saved.0.min(self.rows.len() - 1), self.saved.1);
            }
            ([], b'M') => self.row = self.row.saturating_sub(1),
            ([], b'c') => self.erase_in_screen(2),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(printed: &str, expected: &str) {
        assert_eq!(shown(printed.as_bytes()).text, expected, "{printed:?}");
    }

    #[test]
    fn plain_text_is_unchanged() {
        for text in [
            "",
            "a",
            "a\n",
            "a  \n\tb  \n\n",
            "na\u{ef}ve \u{1f980}\n",
            "\\x1b[31m",
        ] {
            check(text, text);
        }
        check("a\r\nb  \r\n", "a\nb  \n");
    }

    #[test]
    fn only_the_last_state_of_a_redrawn_line_is_shown() {
        check(" 10%\r 50%\r100%\ndone\n", "100%\ndone\n");
        check("fetching a\rfetched\x1b[K\n", "fetched\n");
        check("fetching all of it\rdone              \n", "done\n");
        check("\x1b[2K\x1b[1G 1/2\x1b[2K\x1b[1G 2/2\n", " 2/2\n");
        check("abc\x08\x08X\n", "aXc\n");
        check("N\x08NA\x08AM\x08ME\x08E\n", "NAME\n");
        check("working |\x08/\x08-\x08\\\x08 done\n", "working  done\n");
        check("loading...\r\x1b[Kready", "ready");
        check("abcdef\x1b[3D\x1b[P\n", "abcef\n");
        check("a\x1b[3Cb\n", "a   b\n");
    }

    #[test]
    fn only_the_last_state_of_redrawn_rows_is_shown() {
        check("a: 1\nb: 1\n\x1b[2Aa: 2\nb: 2\n", "a: 2\nb: 2\n");
        check("a\nb\nc\n\x1b[3A\x1b[Jall done\n", "all done\n");
        check(
            "keep\n[+] 1/3\n x\n y\n\x1b[3F\x1b[0J[+] 3/3\n x done\n",
            "keep\n[+] 3/3\n x done\n",
        );
        check(
            "a\x1b[5Cb\n\x1b[2J\x1b[Hold\n\x1b[2J\x1b[Hnew\n",
            "a     b\nnew\n",
        );
        check(
            "FAILED: one\n\x1b[H\x1b[2J\x1b[3Jbuild ok\n",
            "FAILED: one\nbuild ok\n",
        );
        check("before\x1bcafter\n", "before\nafter\n");
        check("before\n\x1b[1;1Hstatus line", "before\nstatus line");
        check("\x1b[H\x1b[2Jone\x1b[H\x1b[2Jtwo\n", "two\n");
        check("a\n\x1b[9Ab", "b\n");
        check("a\x1b7b\x1b8c\n", "ac\n");
    }

    #[test]
    fn colours_and_other_escape_sequences_are_removed() {
        check("\x1b[1;31merror\x1b[0m: no\n", "error: no\n");
        check("\x1b[38;5;9mx\x1b[39m \x1b[38;2;1;2;3my\x1b[m", "x y");
        check(
            "\x1b]0;title\x07text \x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\",
            "text link",
        );
        check("\x1b(B\x1b[?25lx\x1b[?25h\x1b=\x07", "x");
    }

    #[test]
    fn bytes_that_are_not_utf8_are_escaped() {
        let latin = shown(b"caf\xe9\n");
        assert_eq!((latin.text.as_str(), latin.has_bytes), ("caf\\xe9\n", true));
        check("a\0b\x0c\n", "a\\x00b\\x0c\n");
        check("\u{9b}31m\u{7f}", "\\x9b31m\\x7f");
        check("\u{fffd}", "\u{fffd}");
        let mixed = shown(b"\x1b[31m\xff\x80\x1b[0m\r\xfe");
        assert_eq!(mixed.text, "\\xfe\\x80");
    }

    #[test]
    fn an_unterminated_escape_sequence_hides_nothing() {
        check("\x1b]0;title\nthe answer\n", "\\x1b]0;title\nthe answer\n");
        check("text\x1b[", "text\\x1b[");
        check("\x1bPq\nx", "\\x1bPq\nx");
    }

    #[test]
    fn far_cursor_moves_are_bounded() {
        let far = "\x1b[65535C.\x1b[65535B\n".repeat(20_000);
        let text = shown(far.as_bytes()).text;
        assert!(text.len() <= MOST_BLANKS + 20_000 * 2, "{}", text.len());
        assert_eq!(text.matches('.').count(), 20_000);
        let many: String = (0..5000).map(|n| format!("{n}\r\n")).collect();
        assert_eq!(shown(many.as_bytes()).text, many.replace('\r', ""));
    }

    proptest! {
        #[test]
        fn no_control_character_remains_and_nothing_hides_later_text(printed in "([a-c\r\n\t\u{8}\u{7}\u{1b}\u{9b}é]|\u{1b}\\[[0-9;?]{0,4}[A-Za-z]|\u{1b}[\\]P_]){0,40}") {
            let text = shown(format!("{printed}\nSENTINEL\n").as_bytes()).text;
            prop_assert!(!text.chars().any(is_control), "{text:?}");
            prop_assert!(text.contains("SENTINEL"), "{text:?}");
        }
    }
}
