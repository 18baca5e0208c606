//! GLM's arguments: alternating `<arg_key>` and `<arg_value>`.

use serde_json::Map;
use serde_json::Value;

use super::Call;
use super::cursor::Cursor;
use super::cursor::Read;
use super::cursor::Stop;
use super::long_numbers;
use super::parsed_calls::ParsedCalls;
use super::tools::Tools;
use super::value::AROUND;
use super::value::EndLookahead;
use super::value::is_text;
use super::value::trimmed;

/// Parses GLM's `<arg_key>…</arg_key><arg_value>…</arg_value>` pairs after a name, up to one of
/// `closers`.
pub(super) fn pairs(
    c: &mut Cursor,
    name: &str,
    closers: &[&str],
    tools: &Tools,
    found: &mut ParsedCalls,
) -> Read<()> {
    let mut fields = Map::new();
    loop {
        c.spaces();
        let at = c.at();
        if c.close_any(closers)? {
            c.go(at);
            break;
        }
        c.expect("<arg_key>")?;
        found.is_tagged = true;
        let key = c.until("</arg_key>")?.trim().to_owned();
        c.spaces();
        c.expect("<arg_value>")?;
        let text = arg_value(c, closers)?;
        fields.insert(
            key.clone(),
            tools.typed(name, &key, trimmed(text, is_text(&key))),
        );
    }
    found.push(
        [Call {
            name: name.to_owned(),
            arguments: long_numbers::write(&Value::Object(fields)),
        }],
        c.at(),
    );
    Ok(())
}

/// Parses GLM's value up to the closing tag after which the call continues or ends.
/// Where the value itself opens values that tag belongs to one of them, unless it is the only one:
/// some values only mention the tags. With several candidates the call counts as incomplete: half a
/// value would be worse than none.
fn arg_value<'t>(c: &mut Cursor<'t>, closers: &[&str]) -> Read<&'t str> {
    const OPENER: &str = "<arg_value>";
    const CLOSER: &str = "</arg_value>";
    let begin = c.at();
    let mut n_open = 0_usize;
    // The tags that could end it.
    let mut ends: Vec<(usize, usize)> = Vec::new();
    let mut later = EndLookahead::new(CLOSER, closers, &["<arg_key>", OPENER]);
    loop {
        let piece = match c.until(CLOSER) {
            Ok(piece) => piece,
            Err(_) if c.is_last() && ends.len() == 1 => {
                let (end, behind) = ends[0];
                let text = &c.since(begin)[..end - begin];
                if text.contains("<arg_key>") {
                    // It ends a truncated call within the value.
                    return Err(Stop::NeedsMore);
                }
                c.go(behind);
                return Ok(text);
            }
            Err(stop) => return Err(stop),
        };
        n_open += memchr::memmem::find_iter(piece.as_bytes(), OPENER).count();
        let behind = c.at();
        c.spaces();
        let fits = c.peek_or_end()?.is_none()
            || c.close_any(closers)?
            || c.close_any(&AROUND)?
            || c.close("<arg_key>")?;
        c.go(behind);
        if fits && n_open == 0 && later.is_quoted(c, false)? {
            continue;
        }
        if fits && n_open == 0 {
            let text = c.since(begin);
            return Ok(&text[..text.len() - CLOSER.len()]);
        }
        if fits {
            ends.push((behind - CLOSER.len(), behind));
        }
        n_open = n_open.saturating_sub(1);
    }
}
