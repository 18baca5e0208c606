//! Calls as text that name an unknown tool: parsed as calls, so that the error is sent as their
//! result.

use super::text::Parsed;
use super::text::Parser;
use super::text::Tools;

/// Parses a whole answer again with `parser`, which accepts any name where a token marks a call.
/// `known` is the result of parsing it with `tools` alone.
/// Returns `None` where it contains no such call, or a truncated one.
pub(crate) fn read(
    text: &str,
    mut parser: Parser,
    known: &Parsed,
    tools: &Tools,
) -> Option<Parsed> {
    // Every mark contains one of these.
    if !text.contains(['<', '[', '>']) || tools.is_empty() {
        return None;
    }
    let mut parsed = Parsed::default();
    parser.feed(text, &mut |piece| parsed.add(piece));
    let incomplete = parser.close(&mut |piece| parsed.add(piece));
    let has_others = parsed.calls.iter().any(|call| !tools.has(&call.name));
    let has_all = known.calls.iter().all(|call| parsed.calls.contains(call));
    (has_others && has_all && incomplete.is_none()).then_some(parsed)
}
