use std::ops::ControlFlow;

use tree_sitter::ParseOptions;
use tree_sitter::ParseState;
use tree_sitter::Parser;
use tree_sitter::Tree;

/// The parser calls back after so many steps each.
const STEPS: usize = 100;
/// Steps that a text may take at the least, and for each of its bytes. Ordinary text takes one or two a byte; repairing broken text that was
/// made for it takes any number. Steps and not time, so that the same text is always read the same way.
const STEPS_AT_LEAST: usize = 20_000;
const STEPS_A_BYTE: usize = 8;

/// The text is handed out in pieces of so many bytes, and this often at the least, and for each of them, since one step may look at all that
/// follows: what stands behind an open `[` is searched for its end at each word.
const PIECE: usize = 1024;
const PIECES_AT_LEAST: usize = 1000;
const PIECES_EACH: usize = 64;

/// Parentheses and braces that may be open at once, and others that make the parser look back, in all.
const OPEN_MAX: usize = 400;

/// Parses a text; `None` where that takes too long for its length.
pub(super) fn parse(text: &str) -> Option<Tree> {
    if is_too_deep(text) {
        return None;
    }
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).expect("the grammar was made for this version of the parser");
    let mut left = (STEPS_AT_LEAST + STEPS_A_BYTE * text.len()) / STEPS;
    let mut step = |_: &ParseState| match left.checked_sub(1) {
        Some(rest) => {
            left = rest;
            ControlFlow::Continue(())
        }
        None => ControlFlow::Break(()),
    };
    let options = ParseOptions::new().progress_callback(&mut step);
    let bytes = text.as_bytes();
    let mut n_pieces = PIECES_AT_LEAST + PIECES_EACH * bytes.len() / PIECE;
    let mut piece = |at: usize, _| {
        n_pieces = n_pieces.saturating_sub(1);
        let end = bytes.len().min(at + PIECE);
        bytes.get(at..end).filter(|_| n_pieces > 0).unwrap_or_default()
    };
    let tree = parser.parse_with_options(&mut piece, None, Some(options))?;
    // What it read is not all of the text then.
    (n_pieces > 0).then_some(tree)
}

/// Pipes in a row: with a quoted word in front of them the parser goes back over all of them at the end.
const PIPES_MAX: usize = 4000;

fn is_too_deep(text: &str) -> bool {
    // `n_counted` are backquotes, functions, and what closes nothing: each makes the parser look back over all of them.
    let (mut n_open, mut n_counted, mut n_pipes, mut last, mut last_sign) = (0_usize, 0_usize, 0_usize, b' ', b' ');
    let mut is_first = true;
    text.bytes().any(|byte| {
        match byte {
            b'(' | b'{' => n_open += 1,
            b')' | b'}' => {
                n_counted += usize::from(n_open == 0 || (last == b'(' && byte == b')'));
                n_open = n_open.saturating_sub(1);
            }
            b'`' => n_counted += 1,
            // A line of a table begins with one.
            b'|' if is_first && last_sign != b'\\' => n_pipes = 1,
            b'|' => n_pipes += 1,
            b'\n' if !matches!(last_sign, b'|' | b'\\') => n_pipes = 0,
            _ => {}
        }
        last = byte;
        is_first = byte == b'\n' || is_first && byte.is_ascii_whitespace();
        last_sign = if byte.is_ascii_whitespace() { last_sign } else { byte };
        n_open > OPEN_MAX || n_counted > OPEN_MAX || n_pipes > PIPES_MAX
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_parsed_but_for_those_that_are_looked_through_at_every_word() {
        for line in [
            "if [ -f x ]; then make a; fi\n",
            "[ -n \"$a\" ] && [[ $b == *.c ]] || git status\n",
            "[[ $a =~ ^x(y|z)+$ ]] && make\n",
            "cat <<E > a\nit's a line (of text) with $x and [\nE\n",
            "a=${b//[a-z]/x} c=${d##*/} make\n",
            "echo 'some text, quoted' \"and $more\"; ",
        ] {
            let text = line.repeat(100_000 / line.len());
            assert!(parse(&text).is_some(), "{line}");
        }
        assert!(parse(&"case $1 in a|b) make;; *.c) ls;; esac\n".repeat(190)).is_some());
        let text = "x ".repeat(60_000);
        assert!(parse(&text).is_some() && parse(&format!("echo {text}")).is_some());
        assert!(parse(&format!("[ {}", "cd a;".repeat(25_000))).is_none());
        assert!(parse(&format!("echo \"x\" {}", "| cat ".repeat(1000))).is_some());
        assert!(parse(&format!("echo \"x\" {}", "| cat ".repeat(4001))).is_none());
        assert!(parse(&format!("echo \"x\" {}", "|\ncat ".repeat(4001))).is_none());
        assert!(parse(&format!("cat <<E\n{}E\n", "| a | b |\n".repeat(3000))).is_some());
    }
}
