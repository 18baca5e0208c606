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
    parser.parse_with_options(&mut |at, _| bytes.get(at..).unwrap_or_default(), None, Some(options))
}

fn is_too_deep(text: &str) -> bool {
    // `n_counted` are backquotes, functions, and what closes nothing: each makes the parser look back over all of them.
    let (mut n_open, mut n_counted, mut last) = (0_usize, 0_usize, b' ');
    text.bytes().any(|byte| {
        match byte {
            b'(' | b'{' => n_open += 1,
            b')' | b'}' => {
                n_counted += usize::from(n_open == 0 || (last == b'(' && byte == b')'));
                n_open = n_open.saturating_sub(1);
            }
            b'`' => n_counted += 1,
            _ => {}
        }
        last = byte;
        n_open > OPEN_MAX || n_counted > OPEN_MAX
    })
}
