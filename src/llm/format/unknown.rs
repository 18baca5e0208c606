//! Calls as text that name no tool: written as calls, so that what is said about them can be said
//! as their results.

use super::text::Parsed;
use super::text::Parser;
use super::text::Tools;

/// Reads a whole answer anew with `parser`, which takes any name where a token marks a call.
/// `known` is what came of it with `tools` alone.
///
/// Returns nothing where no such call is in it, or one is cut off.
pub(crate) fn read(
    text: &str,
    mut parser: Parser,
    known: &Parsed,
    tools: &Tools,
) -> Option<Parsed> {
    // A mark has one of these.
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
