//! Arguments that stand as bare text between tags: Qwen3-Coder, Nemotron, Seed-OSS, `MiniMax`, GLM, `DeepSeek` V3.2.
//!
//! A value goes to its own closing tag, past the elements within it: a file that is written may tell of calls. A closing tag is the value's
//! own only where the call goes on or ends behind it; else it is part of the value. Models forget closing tags, so a line that begins with
//! the next element ends a value as well, and where an element within it has no end, or takes the value's for its own, none is followed. A
//! value may even quote the end of its own call: where another such end follows with no call begun between them, the first one is part of
//! the value.

use serde_json::Map;
use serde_json::Value;

use super::Call;
use super::cursor::Cursor;
use super::cursor::Read;
use super::cursor::Stop;
use super::exact;
use super::family;
use super::family::Found;
use super::tools::Tools;

/// What may stand before the names of elements.
const PREFIXES: [&str; 3] = ["", "\u{ff5c}DSML\u{ff5c}", "antml:"];
/// Longest name of a tool or an argument, in bytes.
const MAX_NAME: usize = 256;
/// What ends a call, or begins the next one, behind an argument: all that may follow one besides its call's own end.
const AROUND: [&str; 15] = [
    "</tool_call>",
    "</seed:tool_call>",
    "</minimax:tool_call>",
    "</longcat_tool_call>",
    "</tool_calls>",
    "</function_calls>",
    "</function_call>",
    "</tool>",
    "</think>",
    "<tool_call>",
    "<function=",
    "<invoke name=",
    "<|im_end|>",
    "<|eot_id|>",
    "</s>",
];

/// Reads `NAME>`, parameters or an object, and `</function>`; `<function=` was passed.
pub(super) fn function(c: &mut Cursor, tools: &Tools, found: &mut Found) -> Read<()> {
    let name = family::name(attribute(c)?, tools, found)?;
    c.spaces();
    if c.peek_or_end()? == Some(b'{') {
        let arguments = family::arguments(c)?;
        let end = c.at();
        found.push([Call { name, arguments }], end);
        c.spaces();
        if c.close("</function>")? {
            found.end = c.at();
        } else {
            c.go(end);
        }
        return Ok(());
    }
    let mut fields = Map::new();
    loop {
        c.spaces();
        if c.close("</function>")? {
            break;
        }
        let at = c.at();
        if c.take("</")? {
            // The element around it ends, and this one with it.
            c.go(at);
            break;
        }
        if !fields.is_empty() && c.close_any(&AROUND)? {
            c.go(at);
            break;
        }
        c.expect("<parameter=")?;
        let key = attribute(c)?.to_owned();
        let tags = Tags {
            opener: "<parameter=".to_owned(),
            closer: "</parameter>".to_owned(),
            ends: &["</function>", "</tool_call>", "</seed:tool_call>"],
            end: "</function>".to_owned(),
        };
        let value = value(c, &tags, |c| is_next(attribute(c), &name, &key, &fields, tools))?;
        fields.insert(key.clone(), tools.typed(&name, &key, &value));
    }
    found.push([Call { name, arguments: exact::write(&Value::Object(fields)) }], c.at());
    Ok(())
}

/// Reads a name up to `>`, with or without quotes.
fn attribute<'t>(c: &mut Cursor<'t>) -> Read<&'t str> {
    let text = c.run(|byte| !matches!(byte, b'>' | b'<' | b'\n'))?;
    if text.len() > MAX_NAME {
        return Err(Stop::No);
    }
    c.expect(">")?;
    Ok(text.trim().trim_matches(['"', '\'']))
}

/// Returns whether `<invoke name="` or one of its variants is here.
pub(super) fn is_invoke(c: &mut Cursor) -> Read<bool> {
    let begin = c.at();
    for prefix in PREFIXES {
        c.go(begin + 1);
        if c.take(prefix)? && c.take("invoke name=")? {
            c.go(begin);
            return Ok(true);
        }
    }
    c.go(begin);
    Ok(false)
}

/// Reads `<invoke name="NAME">`, its parameters and `</invoke>`.
pub(super) fn invoke(c: &mut Cursor, tools: &Tools, found: &mut Found) -> Read<()> {
    c.expect("<")?;
    let prefix = prefix(c)?;
    c.expect("invoke name=")?;
    let name = family::name(attribute(c)?, tools, found)?;
    let mut fields = Map::new();
    loop {
        c.spaces();
        let at = c.at();
        if !fields.is_empty() && c.close_any(&AROUND)? {
            c.go(at);
            break;
        }
        c.expect("<")?;
        if c.take("/")? {
            let at = c.at();
            if !(c.take(prefix)? && c.close("invoke>")?) {
                c.go(at - 2);
            }
            break;
        }
        c.expect(prefix)?;
        c.expect("parameter name=")?;
        let attributes = c.run(|byte| !matches!(byte, b'>' | b'<' | b'\n'))?;
        c.expect(">")?;
        let key = attributes.split_whitespace().next().unwrap_or_default().trim_matches(['"', '\'']).to_owned();
        let tags = Tags {
            opener: format!("<{prefix}parameter name="),
            closer: format!("</{prefix}parameter>"),
            ends: &["</invoke>"],
            end: format!("</{prefix}invoke>"),
        };
        let value = value(c, &tags, |c| is_next(attribute(c), &name, &key, &fields, tools))?;
        let value = if attributes.contains("string=\"true\"") { Value::String(value) } else { tools.typed(&name, &key, &value) };
        fields.insert(key, value);
    }
    found.push([Call { name, arguments: exact::write(&Value::Object(fields)) }], c.at());
    Ok(())
}

fn prefix(c: &mut Cursor) -> Read<&'static str> {
    for prefix in &PREFIXES[1..] {
        if c.take(prefix)? {
            return Ok(prefix);
        }
    }
    Ok("")
}

/// Returns whether an element within a value, by what was read of its name, is the next argument rather than text.
fn is_next(attribute: Read<&str>, tool: &str, key: &str, fields: &Map<String, Value>, tools: &Tools) -> Read<bool> {
    let next = match attribute {
        Ok(attributes) => attributes.split_whitespace().next().unwrap_or_default().trim_matches(['"', '\'']),
        Err(Stop::More) => return Err(Stop::More),
        Err(Stop::No) => return Ok(false),
    };
    Ok(next != key && !fields.contains_key(next) && tools.may_have(tool, next))
}

/// What begins a call: an end that stands behind it is that call's.
const CALLS: [&str; 8] = [
    "<tool_call>",
    "<seed:tool_call>",
    "<minimax:tool_call>",
    "<tool_calls>",
    "<function_calls>",
    "<function=",
    "<invoke name=",
    "<\u{ff5c}DSML\u{ff5c}invoke name=",
];

/// Elements that may stand in a value as a whole, with what ends them.
const INNER: [(&str, &str); 5] = [
    ("<tool_call>", "</tool_call>"),
    ("<seed:tool_call>", "</seed:tool_call>"),
    ("<function=", "</function>"),
    ("<invoke name=", "</invoke>"),
    ("<\u{ff5c}DSML\u{ff5c}invoke name=", "</\u{ff5c}DSML\u{ff5c}invoke>"),
];
/// Deeper elements than any text about calls has.
const MAX_INNER: usize = 32;

/// The tags around the arguments of a call.
struct Tags<'a> {
    /// The beginning of the tag that opens an argument.
    opener: String,
    closer: String,
    /// What ends an argument without its closing tag, at the beginning of a line.
    ends: &'a [&'a str],
    /// The call's own end.
    end: String,
}

/// Reads the text of a parameter up to its closing tag, or up to a line that begins with one of the ends or with the next argument. One
/// line end after the opening tag and one before the closing tag belong to the tags. `next` reads the name of an argument and returns
/// whether it is the next one.
fn value(c: &mut Cursor, tags: &Tags, next: impl Fn(&mut Cursor) -> Read<bool>) -> Read<String> {
    let begin = c.at();
    if !c.is_flat() {
        match balanced(c, tags, &next) {
            Err(Stop::More) if c.flatten() => c.go(begin),
            Ok(None) => {
                c.stay_flat();
                c.go(begin);
            }
            Ok(Some(value)) => return Ok(value),
            Err(stop) => return Err(stop),
        }
    }
    balanced(c, tags, &next)?.ok_or(Stop::No)
}

/// Reads a value; `None` where an element within it took for its own what ends the value, so that none of them can be followed.
fn balanced(c: &mut Cursor, tags: &Tags, next: &impl Fn(&mut Cursor) -> Read<bool>) -> Read<Option<String>> {
    let begin = c.at();
    // Only at the beginning of a line: within one it is more likely what the value is about.
    let mut is_line_start = false;
    // What ends the elements that are open here, the innermost last.
    let mut inner: Vec<&str> = Vec::new();
    // Arguments that the value opens by itself. They may have no end, so they only decide where the rest does not.
    let mut n_open = 0_usize;
    // The same within the elements, and whether one of them was ended there.
    let mut n_inner = 0_usize;
    let mut has_ended = false;
    let any_opener = format!("<{}", &tags.closer[2..tags.closer.len() - 1]);
    let mut later = Later::of(tags);
    loop {
        let at = c.at();
        match c.peek()? {
            b'<' => {
                let text = c.since(begin);
                if inner.is_empty() {
                    if c.close(&tags.closer)? {
                        let behind = c.at();
                        let goes_on = follows(c, tags, n_open > 0, next)?;
                        c.go(behind);
                        if goes_on && !later.is_quoted(c, false)? {
                            c.go(behind);
                            return Ok(Some(trimmed(text).to_owned()));
                        }
                        n_open = n_open.saturating_sub(1);
                        is_line_start = false;
                        continue;
                    }
                    c.go(at);
                    if is_line_start && c.close_any(tags.ends)? {
                        c.go(at);
                        if later.is_quoted(c, true)? {
                            is_line_start = false;
                            continue;
                        }
                        c.go(at);
                        if has_ended && !c.take(&tags.end)? {
                            // Neither the argument nor the call would have an end.
                            return Ok(None);
                        }
                        c.go(at);
                        return Ok(Some(trimmed(text.trim_end_matches([' ', '\t'])).to_owned()));
                    }
                    c.go(at);
                    if is_line_start && c.take(&tags.opener)? && next(c)? {
                        c.go(at);
                        return Ok(Some(trimmed(text.trim_end_matches([' ', '\t'])).to_owned()));
                    }
                    c.go(at);
                    if c.take(&tags.opener)? {
                        n_open += 1;
                        is_line_start = false;
                        continue;
                    }
                } else if c.take(&any_opener)? {
                    n_inner += 1;
                    is_line_start = false;
                    continue;
                } else if c.take(&tags.closer)? {
                    let behind = c.at();
                    if n_inner == 0 && follows(c, tags, false, next)? {
                        return Ok(None);
                    }
                    c.go(behind);
                    has_ended |= n_inner > 0;
                    n_inner = n_inner.saturating_sub(1);
                    is_line_start = false;
                    continue;
                }
                is_line_start = false;
                if let Some(end) = inner.last()
                    && c.take(end)?
                {
                    inner.pop();
                    if inner.is_empty() {
                        n_inner = 0;
                    }
                    continue;
                }
                if !c.is_flat()
                    && inner.len() < MAX_INNER
                    && let Some(end) = inner_element(c)?
                {
                    inner.push(end);
                    continue;
                }
                c.go(at + 1);
            }
            byte => {
                c.next()?;
                is_line_start = byte == b'\n' || is_line_start && matches!(byte, b' ' | b'\t');
            }
        }
    }
}

/// Looks behind the end of a call for another one.
struct Later<'a> {
    closer: &'a str,
    /// What ends the call behind its last argument.
    ends: Vec<&'a str>,
    /// What begins another call, or another argument.
    begins: Vec<&'a str>,
    /// Up to where it was looked, and what was found there: whoever asks again before that place need not look again.
    known: Option<(usize, bool)>,
}

impl<'a> Later<'a> {
    fn of(tags: &'a Tags) -> Self {
        Self::new(&tags.closer, &[&tags.end], &[&tags.opener])
    }

    fn new(closer: &'a str, ends: &[&'a str], begins: &[&'a str]) -> Self {
        let around = AROUND.into_iter().filter(|token| token.starts_with("</"));
        let (ends, begins) = (ends.iter().copied().chain(around).collect(), begins.iter().copied().chain(CALLS).collect());
        Self { closer, ends, begins, known: None }
    }

    /// Steps over the ends that are here, and returns whether they are part of the value: the call has another end behind them, and none
    /// begins before that. `with_closer` says that the argument's own closing tag may stand among them, where models mix up their order.
    ///
    /// Steps over nothing where nothing ends.
    fn is_quoted(&mut self, c: &mut Cursor, with_closer: bool) -> Read<bool> {
        let mut behind = c.at();
        let begin = behind;
        loop {
            c.spaces();
            if !(c.close_any(&self.ends)? || with_closer && c.close(self.closer)?) {
                break;
            }
            behind = c.at();
        }
        c.go(behind);
        let is_quoted = behind > begin && self.another(c)?;
        c.go(if is_quoted { behind } else { begin });
        Ok(is_quoted)
    }

    fn another(&mut self, c: &mut Cursor) -> Read<bool> {
        if let Some((until, found)) = self.known
            && c.at() <= until
        {
            return Ok(found);
        }
        let found = loop {
            let Some(at) = c.ahead_to(b'<')? else {
                self.known = Some((usize::MAX, false));
                return Ok(false);
            };
            if c.take_any(&self.begins)? {
                break (at, false);
            }
            if c.take(self.closer)? {
                c.spaces();
                if c.close_any(&self.ends)? {
                    break (at, true);
                }
                continue;
            }
            c.go(at + 1);
        };
        self.known = Some(found);
        Ok(found.1)
    }
}

/// Returns whether the call goes on or ends behind a closing tag, so that the tag ends a value. An argument that no tool has may follow
/// too, models invent them, but not where the value itself has opened one.
fn follows(c: &mut Cursor, tags: &Tags, is_within: bool, next: &impl Fn(&mut Cursor) -> Read<bool>) -> Read<bool> {
    c.spaces();
    if c.peek_or_end()?.is_none() || c.close(&tags.end)? || c.close_any(tags.ends)? || c.close_any(&AROUND)? {
        return Ok(true);
    }
    if c.close(&tags.opener)? {
        return Ok(!is_within || next(c)?);
    }
    Ok(false)
}

/// Steps over the beginning of an element and returns what ends it.
fn inner_element(c: &mut Cursor) -> Read<Option<&'static str>> {
    for (begin, end) in INNER {
        if c.take(begin)? {
            return Ok(Some(end));
        }
    }
    Ok(None)
}

fn trimmed(text: &str) -> &str {
    let text = text.strip_prefix("\r\n").or_else(|| text.strip_prefix('\n')).unwrap_or(text);
    text.strip_suffix("\r\n").or_else(|| text.strip_suffix('\n')).unwrap_or(text)
}

/// Reads GLM's `<arg_key>…</arg_key><arg_value>…</arg_value>` pairs behind a name, up to one of `closers`.
pub(super) fn pairs(c: &mut Cursor, name: &str, closers: &[&str], tools: &Tools, found: &mut Found) -> Read<()> {
    let mut fields = Map::new();
    loop {
        c.spaces();
        let at = c.at();
        if c.close_any(closers)? {
            c.go(at);
            break;
        }
        c.expect("<arg_key>")?;
        let key = c.until("</arg_key>")?.trim().to_owned();
        c.spaces();
        c.expect("<arg_value>")?;
        let text = arg_value(c, closers)?;
        fields.insert(key.clone(), tools.typed(name, &key, trimmed(text)));
    }
    found.push([Call { name: name.to_owned(), arguments: exact::write(&Value::Object(fields)) }], c.at());
    Ok(())
}

/// Reads GLM's value up to the closing tag behind which the call goes on or ends.
///
/// Where the value opens values itself that tag is one of theirs, unless it is the only one: some only speak of them. Several leave the
/// call incomplete: half a value would be worse than none.
fn arg_value<'t>(c: &mut Cursor<'t>, closers: &[&str]) -> Read<&'t str> {
    const OPENER: &str = "<arg_value>";
    const CLOSER: &str = "</arg_value>";
    let begin = c.at();
    let mut n_open = 0_usize;
    // The tags that could end it.
    let mut ends: Vec<(usize, usize)> = Vec::new();
    let mut later = Later::new(CLOSER, closers, &["<arg_key>", OPENER]);
    loop {
        let piece = match c.until(CLOSER) {
            Ok(piece) => piece,
            Err(_) if c.is_last() && ends.len() == 1 => {
                let (end, behind) = ends[0];
                let text = c.since(begin);
                c.go(behind);
                return Ok(&text[..end - begin]);
            }
            Err(stop) => return Err(stop),
        };
        n_open += memchr::memmem::find_iter(piece.as_bytes(), OPENER).count();
        let behind = c.at();
        c.spaces();
        let fits = c.peek_or_end()?.is_none() || c.close_any(closers)? || c.close_any(&AROUND)? || c.close("<arg_key>")?;
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

/// Reads `NAME</name><arguments>{…}</arguments>`; `<name>` was passed.
pub(super) fn name_and_arguments(c: &mut Cursor, tools: &Tools, found: &mut Found) -> Read<()> {
    let name = family::name(c.run(|byte| byte != b'<')?, tools, found)?;
    c.expect("</name>")?;
    c.spaces();
    for tag in ["arguments>", "parameters>"] {
        let at = c.at();
        if c.take("<")? && c.take(tag)? {
            let arguments = family::arguments(c)?;
            found.push([Call { name, arguments }], c.at());
            let end = c.at();
            c.spaces();
            if c.close("</arguments>")? || c.close("</parameters>")? {
                found.end = c.at();
            } else {
                c.go(end);
            }
            return Ok(());
        }
        c.go(at);
    }
    Err(Stop::No)
}
