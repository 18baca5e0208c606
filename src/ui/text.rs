//! The one place where foreign text is made safe for a terminal.
//!
//! [`Cleaner`] and [`clean`] are for reading: whole escape sequences vanish, so that coloured
//! output of a compiler stays readable.
//! [`escape`] is for deciding: nothing vanishes, so that what a user is asked about is what will
//! happen. [`line`] is `escape` for names, which stay on one line. Out of all of them comes text
//! without any control but newline and tab, without bidi controls, and without characters that
//! cannot be seen. [`patch`] is `escape` for what is no terminal, where lines may end as they do in
//! a file.

use std::fmt::Write as _;

use vte::Params;
use vte::Parser;
use vte::Perform;

use podbay_event::is_hidden;

/// A sequence that is longer than this hides text rather than colouring it; it is then shown.
const SEQUENCE_MAX: usize = 4096;
const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
/// These two end every sequence.
const CANCEL: u8 = 0x18;
const SUBSTITUTE: u8 = 0x1a;

/// Returns text for reading: whole sequences are dropped, other controls are shown.
pub fn clean(text: &str) -> String {
    let mut cleaner = Cleaner::new();
    let mut out = cleaner.push(text.as_bytes());
    out.push_str(&cleaner.finish());
    out
}

/// Returns text for deciding: every character is there, and the hidden ones are shown as `\x1b` or
/// `\u{202e}`.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(c),
            c if is_suspect(c) => show(&mut out, c),
            c => out.push(c),
        }
    }
    out
}

/// Returns [`escape`]d text for a file or another program: what ends a line stays as it is, with a
/// carriage return before it as without.
pub fn patch(text: &str) -> String {
    let shown = |line: &str| {
        line.strip_suffix("\r\n")
            .map_or_else(|| escape(line), |start| escape(start) + "\r\n")
    };
    text.split_inclusive('\n').map(shown).collect()
}

/// Returns [`escape`]d text that stays on its line.
pub fn line(text: &str) -> String {
    let escaped = escape(text);
    if escaped.contains(['\n', '\t']) {
        escaped.replace('\n', "\\n").replace('\t', "\\t")
    } else {
        escaped
    }
}

/// Returns text in which every character beyond ASCII is shown by its number, for names where
/// look-alikes matter.
pub fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c == ' ' || c.is_ascii_graphic() {
            out.push(c);
        } else {
            show(&mut out, c);
        }
    }
    out
}

/// Returns whether [`escape`] would show a character by its number: it cannot be seen, or it looks
/// like a plain space and is none.
pub fn is_suspect(c: char) -> bool {
    !matches!(c, '\n' | '\t')
        && (is_hidden(c)
            || matches!(c, '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' | '\u{fe00}'..='\u{fe0f}'))
}

fn show(out: &mut String, c: char) {
    let code = u32::from(c);
    if code <= 0xff {
        write!(out, "\\x{code:02x}")
    } else {
        write!(out, "\\u{{{code:x}}}")
    }
    .expect("a string takes all that is written");
}

/// Makes a stream of bytes safe to show, however it is cut into pieces.
///
/// An escape sequence is held until it ends and is then dropped. One that does not end (a newline
/// comes, or it grows too long, or the stream ends) is shown instead: an opened title sequence must
/// not swallow the rest of an answer.
pub struct Cleaner {
    parser: Parser,
    held: Vec<u8>,
    screen: Screen,
}

impl Default for Cleaner {
    fn default() -> Self {
        Self::new()
    }
}

impl Cleaner {
    pub fn new() -> Self {
        Self {
            parser: Parser::new(),
            held: Vec::new(),
            screen: Screen {
                out: String::new(),
                acted: false,
                after_cr: false,
                last: ' ',
            },
        }
    }

    /// Takes some bytes and returns the text that can be shown by now.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        for byte in bytes {
            self.byte(*byte);
        }
        std::mem::take(&mut self.screen.out)
    }

    /// Ends the stream, and returns what was held.
    pub fn finish(&mut self) -> String {
        if !self.held.is_empty() {
            self.give_up();
        }
        // An escape makes the parser let go of half a character.
        self.parser.advance(&mut self.screen, &[ESC]);
        self.parser = Parser::new();
        self.held.clear();
        self.screen.after_cr = false;
        self.screen.last = ' ';
        std::mem::take(&mut self.screen.out)
    }

    // Bytes go in one by one: only so is the outcome the same for every way of cutting the stream.
    fn byte(&mut self, byte: u8) {
        // The parser would carry such a control out and continue the sequence, which could then
        // hide whatever follows.
        let ends_string = byte == BEL && self.held.starts_with(b"\x1b]");
        if !self.held.is_empty()
            && byte < 0x20
            && !ends_string
            && !matches!(byte, CANCEL | SUBSTITUTE | ESC)
        {
            self.give_up();
        }
        self.screen.acted = false;
        self.parser.advance(&mut self.screen, &[byte]);
        if self.screen.acted {
            self.held.clear();
        }
        if byte == ESC || !(self.screen.acted || self.held.is_empty()) {
            self.held.push(byte);
        }
        if self.held.len() > SEQUENCE_MAX {
            self.give_up();
        }
    }

    fn give_up(&mut self) {
        let held = std::mem::take(&mut self.held);
        self.parser = Parser::new();
        show(&mut self.screen.out, char::from(ESC));
        // What stood before it has no neighbour to be joined with any more.
        self.screen.last = ' ';
        self.screen.after_cr = false;
        // The rest may hold another escape, but never as much as would make this go deep.
        for byte in &held[1..] {
            self.byte(*byte);
        }
        if !self.held.is_empty() {
            let rest = std::mem::take(&mut self.held);
            self.parser = Parser::new();
            self.screen
                .out
                .push_str(&escape(&String::from_utf8_lossy(&rest)));
            self.screen.last = ' ';
            self.screen.after_cr = false;
        }
    }
}

struct Screen {
    out: String,
    /// Whether the last byte had an outcome, so that no sequence is under way.
    acted: bool,
    after_cr: bool,
    last: char,
}

impl Screen {
    fn put(&mut self, c: char) {
        self.acted = true;
        let after_cr = std::mem::replace(&mut self.after_cr, c == '\r');
        match c {
            '\n' if after_cr => {}
            '\n' | '\r' => self.out.push('\n'),
            '\t' => self.out.push('\t'),
            c if is_hidden(c) && !joins(self.last, c) => show(&mut self.out, c),
            c => self.out.push(c),
        }
        self.last = c;
    }
}

/// Returns whether a zero-width joiner does what it is for: emoji are made of several, and some
/// scripts need it within words.
fn joins(last: char, c: char) -> bool {
    match c {
        '\u{200d}' => {
            matches!(last, '\u{2600}'..='\u{27bf}' | '\u{fe0f}' | '\u{1f000}'..='\u{1faff}' | '\u{900}'..='\u{dff}')
        }
        '\u{200c}' => matches!(last, '\u{620}'..='\u{6ff}' | '\u{900}'..='\u{dff}'),
        _ => false,
    }
}

impl Perform for Screen {
    fn print(&mut self, c: char) {
        self.put(c);
    }

    fn execute(&mut self, byte: u8) {
        self.put(char::from(byte));
    }

    fn unhook(&mut self) {
        self.acted = true;
    }

    fn osc_dispatch(&mut self, _params: &[&[u8]], _bell_terminated: bool) {
        self.acted = true;
    }

    fn csi_dispatch(
        &mut self,
        _params: &Params,
        _intermediates: &[u8],
        _ignore: bool,
        _action: char,
    ) {
        self.acted = true;
    }

    fn esc_dispatch(&mut self, _intermediates: &[u8], _ignore: bool, _byte: u8) {
        self.acted = true;
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::any;
    use proptest::prop_oneof;
    use proptest::proptest;
    use proptest::strategy::Just;
    use proptest::strategy::Strategy;

    use super::*;

    #[track_caller]
    fn check(text: &str, cleaned: &str, escaped: &str) {
        assert_eq!(
            (clean(text).as_str(), escape(text).as_str()),
            (cleaned, escaped)
        );
    }

    #[test]
    fn plain_text_of_any_script_stays_as_it_is() {
        for text in ["", "plain\ttext\n", "naïve 日本語 🦀", "فارسی"] {
            check(text, text, text);
        }
        let family = "👨\u{200d}👩\u{200d}👧 می\u{200c}خواهم";
        assert_eq!(clean(family), family);
        assert_eq!(escape(family), "👨\\u{200d}👩\\u{200d}👧 می\\u{200c}خواهم");
        assert_eq!(clean("a\u{200d}b"), "a\\u{200d}b");
        assert_eq!(
            clean("a\r\x1b\nb"),
            "a\n\\x1b\nb",
            "and that is no line end in two parts"
        );
        assert_eq!(
            clean("🫎\x1b]0;\x1b\u{200d}"),
            "🫎\\x1b\\u{200d}",
            "what is shown between them parts them"
        );
    }

    #[test]
    fn whole_sequences_are_dropped_for_reading_and_shown_for_deciding() {
        check("\x1b[31mred\x1b[0m", "red", "\\x1b[31mred\\x1b[0m");
        check("\x1b]52;c;aGk=\x07x", "x", "\\x1b]52;c;aGk=\\x07x");
        check(
            "\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\",
            "link",
            "\\x1b]8;;http://a\\x1b\\link\\x1b]8;;\\x1b\\",
        );
        check("\x1bPq#0;2;0\x1b\\x", "x", "\\x1bPq#0;2;0\\x1b\\x");
        check(
            "\x1b_apc\x1b\\\x1b^pm\x1b\\\x1bXsos\x1b\\x",
            "x",
            "\\x1b_apc\\x1b\\\\x1b^pm\\x1b\\\\x1bXsos\\x1b\\x",
        );
        check(
            "\x1bc\x1b[?1049h\x1b[6nx",
            "x",
            "\\x1bc\\x1b[?1049h\\x1b[6nx",
        );
    }

    #[test]
    fn an_unterminated_escape_sequence_hides_nothing() {
        check(
            "\x1b]0;title\nthe answer",
            "\\x1b]0;title\nthe answer",
            "\\x1b]0;title\nthe answer",
        );
        check("text\x1b[", "text\\x1b[", "text\\x1b[");
        let long = "x".repeat(3 * SEQUENCE_MAX);
        assert_eq!(clean(&format!("\x1bP{long}")), format!("\\x1bP{long}"));
        assert_eq!(clean("\x1b_a\x1b]b\nc"), "\\x1b_a\\x1b]b\nc");
        for begun in ["\x1b", "\x1b(", "\x1b[", "\x1b[3", "\x1bP", "\x1b]0;"] {
            assert_eq!(
                clean(&format!("{begun}\nthe answer")),
                format!("{}\nthe answer", escape(begun))
            );
        }
        assert_eq!(clean("\x1b[\x07the answer"), "\\x1b[\\x07the answer");
    }

    #[test]
    fn controls_and_what_cannot_be_seen_are_shown() {
        check("a\rb\r\nc", "a\nb\nc", "a\\x0db\\x0d\nc");
        check(
            "a\u{8}\u{b}\u{c}\0\u{7f}",
            "a\\x08\\x0b\\x0c\\x00\\x7f",
            "a\\x08\\x0b\\x0c\\x00\\x7f",
        );
        check("\u{85}\u{9b}31m", "\\x85\\x9b31m", "\\x85\\x9b31m");
        check(
            "\u{2028}\u{202e}\u{2066}",
            "\\u{2028}\\u{202e}\\u{2066}",
            "\\u{2028}\\u{202e}\\u{2066}",
        );
        check(
            "\u{e0041}\u{3164}",
            "\\u{e0041}\\u{3164}",
            "\\u{e0041}\\u{3164}",
        );
        check("rm\u{a0}-rf", "rm\u{a0}-rf", "rm\\xa0-rf");
        assert_eq!(line("a\nb\tc"), "a\\nb\\tc");
        assert_eq!(ascii("gіthub.com"), "g\\u{456}thub.com");
    }

    #[test]
    fn in_a_patch_only_what_ends_a_line_stays() {
        assert_eq!(
            patch("+a\r\n-b\rc\n d\r\r\n\x1b[2Je\t\r"),
            "+a\r\n-b\\x0dc\n d\\x0d\r\n\\x1b[2Je\t\\x0d"
        );
        assert_eq!(escape("+a\r\n"), "+a\\x0d\n");
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_too() {
        let mut cleaner = Cleaner::new();
        assert_eq!(cleaner.push(b"a\xffb\x9bc\xe2\x82"), "a\u{fffd}b\\x9bc");
        assert_eq!(cleaner.finish(), "\u{fffd}", "half a character at the end");
        assert_eq!(
            cleaner.push("é".as_bytes()),
            "é",
            "and the next stream starts anew"
        );
    }

    fn nasty() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            any::<Vec<u8>>(),
            any::<String>().prop_map(String::into_bytes),
            prop_oneof![
                "\x1b",
                "\x1b\\[",
                "\x1b\\]0;",
                "\x1bP",
                "\x1b_",
                "\x1b\\\\",
                "\x07",
                "\r",
                "\n",
                "m",
                "\u{9b}",
                "\u{202e}",
                "\u{200d}"
            ]
            .prop_map(String::into_bytes),
            Just(vec![0x9b]),
        ];
        vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    fn is_safe(text: &str) -> bool {
        let mut last = ' ';
        text.chars().all(|c| {
            let fine = matches!(c, '\n' | '\t') || !is_hidden(c) || joins(last, c);
            last = c;
            fine
        })
    }

    /// The control: what goes past the sanitiser is seen by the measure that the tests below judge
    /// by.
    #[test]
    fn what_a_terminal_would_obey_is_seen_where_nobody_takes_it_out() {
        let attacks = [
            "\x1b]52;c;aGk=\x07",
            "\x1b]0;t\x07",
            "\x1b]8;;http://a\x1b\\",
            "\x1b[2J",
            "\x1b[6n",
            "\x1bPq\x1b\\",
            "\x1b_a\x1b\\",
            "\x1bc",
            "\x1b[?1049h",
            "a\rb",
            "a\u{8}b",
            "\u{9b}31m",
            "\u{85}",
            "\u{2028}",
            "\u{202e}",
        ];
        for attack in attacks {
            let seen = (
                is_safe(attack),
                is_safe(&clean(attack)),
                is_safe(&escape(attack)),
            );
            assert_eq!(seen, (false, true, true), "{attack:?}");
        }
    }

    proptest! {
        #[test]
        fn nothing_hides_the_line_after_it(bytes in nasty()) {
            let mut cleaner = Cleaner::new();
            let out = cleaner.push(&bytes) + &cleaner.push(b"\nSENTINEL\n") + &cleaner.finish();
            assert!(out.ends_with("\nSENTINEL\n"), "{out:?}");
        }

        #[test]
        fn nothing_that_a_terminal_obeys_comes_out(bytes in nasty()) {
            let mut cleaner = Cleaner::new();
            let out = cleaner.push(&bytes) + &cleaner.finish();
            assert!(is_safe(&out), "{out:?}");
            let text = String::from_utf8_lossy(&bytes);
            assert!(escape(&text).chars().all(|c| matches!(c, '\n' | '\t') || !is_suspect(c)));
            assert!(!line(&text).contains(['\n', '\t']));
        }

        #[test]
        fn the_outcome_does_not_depend_on_how_the_stream_is_cut(bytes in nasty(), cut in 1_usize..7) {
            let mut whole = Cleaner::new();
            let expected = whole.push(&bytes) + &whole.finish();
            let mut cleaner = Cleaner::new();
            let mut out: String = bytes.chunks(cut).map(|chunk| cleaner.push(chunk)).collect();
            out.push_str(&cleaner.finish());
            assert_eq!(out, expected);
        }
    }
}
