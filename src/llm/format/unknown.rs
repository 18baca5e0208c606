//! Calls as text that name no tool: written as calls, so that what is said about them can be said as their results.

use super::text;
use super::text::Parsed;
use super::text::Parser;
use super::text::Piece;
use super::text::Tools;

/// An answer that calls tools which do not exist, perhaps beside others.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) parsed: Parsed,
    /// How much was said before the first call, in bytes.
    pub(crate) n_before: Option<usize>,
}

/// Reads a whole answer anew with `parser`, which takes any name where a token marks a call. `known` is what came of it with `tools` alone.
///
/// Returns nothing where no such call is in it, or nobody knows whether it was meant: words follow, it stands within a sentence, or is cut
/// off.
pub(crate) fn read(text: &str, mut parser: Parser, known: &Parsed, tools: &Tools) -> Option<Read> {
    // A mark has one of these.
    if !text.contains(['<', '[', '>']) || tools.is_empty() {
        return None;
    }
    let (mut parsed, mut n_before) = (Parsed::default(), None);
    let mut take = |piece: Piece| {
        if matches!(piece, Piece::Call(_)) {
            n_before = Some(text::before_call(&parsed.content, n_before));
        }
        parsed.add(piece);
    };
    parser.feed(text, &mut take);
    let incomplete = parser.close(&mut take);
    let has_others = parsed.calls.iter().any(|call| !tools.has(&call.name));
    let has_all = known.calls.iter().all(|call| parsed.calls.contains(call));
    let line = n_before.and_then(|n| parsed.content.get(..n)).and_then(|before| before.rsplit('\n').next()).unwrap_or_default().trim_end();
    // Within a sentence it may be quoted.
    let is_apart = line.is_empty() || line.ends_with(['.', '!', '?', '\u{2026}']);
    let is_meant =
        is_apart && parsed.mentions.is_empty() && incomplete.is_none() && (parser.marks_ends() || !text::goes_on(&parsed, n_before));
    (has_others && has_all && is_meant).then_some(Read { parsed, n_before })
}
