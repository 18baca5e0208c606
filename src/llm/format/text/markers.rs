//! A name and its arguments between control tokens: `DeepSeek` V3 and R1, Kimi K2, Mistral,
//! Functionary.

use super::Call;
use super::call::CallForm;
use super::cursor::Cursor;
use super::cursor::Read;
use super::cursor::Stop;
use super::parsed_calls;
use super::parsed_calls::ParsedCalls;
use super::tag_body;
use super::tools::Tools;

/// Longest name of a tool with its surroundings, in bytes.
const MAX_NAME: usize = 256;
/// Separates the recipient from the text or the arguments in Functionary's format.
pub(super) const CONTENT: &str = "<|content|>";

/// Begins a list of calls.
pub(super) const LIST: &[&str] = &["tool", "calls", "begin"];
/// Begins a call.
pub(super) const BEGIN: &[&str] = &["tool", "call", "begin"];
/// The closing tokens, for a text that ends within one: `DeepSeek`'s full-width characters, ASCII,
/// and a mixture.
pub(super) const ENDS: &[&str] = &[
    "<\u{ff5c}tool\u{2581}call\u{2581}end\u{ff5c}>",
    "<|tool_call_end|>",
    "<|tool\u{2581}call\u{2581}end|>",
    "<\u{ff5c}tool_call_end\u{ff5c}>",
];

/// Parses one call of `DeepSeek` or Kimi, from its opening token to its closing one; in ASCII both
/// are alike.
pub(super) fn read(c: &mut Cursor, tools: &Tools, found: &mut ParsedCalls) -> Read<()> {
    if token(c, BEGIN)? {
        call(c, tools, found)
    } else {
        Err(Stop::NoMatch)
    }
}

/// Consumes a token of `DeepSeek`, such as `<｜tool▁call▁begin｜>`, whose bars and gaps have several
/// variants.
pub(super) fn token(c: &mut Cursor, words: &[&str]) -> Read<bool> {
    let begin = c.at();
    let is_here = signs(c, words);
    if is_here != Ok(true) {
        c.go(begin);
    }
    is_here
}

fn signs(c: &mut Cursor, words: &[&str]) -> Read<bool> {
    if !(c.take("<")? && bar(c)?) {
        return Ok(false);
    }
    for (n, word) in words.iter().enumerate() {
        if !((n == 0 || gap(c)?) && c.take(word)?) {
            return Ok(false);
        }
    }
    Ok(bar(c)? && c.take(">")?)
}

fn bar(c: &mut Cursor) -> Read<bool> {
    Ok(c.take("\u{ff5c}")? || c.take("|")?)
}

fn gap(c: &mut Cursor) -> Read<bool> {
    Ok(c.take("\u{2581}")? || c.take("_")? || c.take(" ")? || c.take("\\_")?)
}

/// Parses `function<｜tool▁sep｜>NAME` and the arguments: R1 omits the token before it.
pub(super) fn unmarked(c: &mut Cursor, tools: &Tools, found: &mut ParsedCalls) -> Read<()> {
    let begin = c.at();
    if !(c.take("function")? && token(c, &["tool", "sep"])?) {
        return Err(Stop::NoMatch);
    }
    c.go(begin);
    call(c, tools, found)
}

/// Parses `NAME<｜tool▁sep｜>{…}`, preceded by `function<｜tool▁sep｜>` in V3 and R1, which put the
/// arguments into a fence below, or Kimi's `functions.NAME:0<|tool_call_argument_begin|>{…}`.
fn call(c: &mut Cursor, tools: &Tools, found: &mut ParsedCalls) -> Read<()> {
    c.spaces();
    let mut word = name_with_number(c)?;
    if word == "function" && separator(c)? {
        c.spaces();
        word = name_with_number(c)?;
    }
    let name = named(c, word, tools, found)?;
    c.spaces();
    separator(c)?;
    let arguments = parsed_calls::arguments(c)?;
    let end = c.at();
    found.push([Call { name, arguments }], end);
    c.spaces();
    if token(c, &["tool", "call", "end"])? || c.close_any(ENDS)? {
        found.end = c.at();
    } else {
        c.go(end);
    }
    Ok(())
}

/// Parses a name and drops the number that Kimi appends.
fn name_with_number<'t>(c: &mut Cursor<'t>) -> Read<&'t str> {
    let word = c.run(|byte| tag_body::is_name(byte) || byte == b':')?;
    let name = word
        .rsplit_once(':')
        .filter(|(_, n)| n.bytes().all(|byte| byte.is_ascii_digit()))
        .map_or(word, |(name, _)| name);
    Ok(name)
}

/// Consumes the separator between a name and its arguments; needs more text where it ends within
/// one.
fn separator(c: &mut Cursor) -> Read<bool> {
    if c.ends_in_tag() {
        return Err(Stop::NeedsMore);
    }
    Ok(token(c, &["tool", "sep"])? || c.take("<|tool_call_argument_begin|>")?)
}

/// Records the tool that a word calls, unless the text ends with it: then the name may continue.
fn named(c: &mut Cursor, word: &str, tools: &Tools, found: &mut ParsedCalls) -> Read<String> {
    if word.len() > MAX_NAME {
        return Err(Stop::NoMatch);
    }
    match parsed_calls::name(word, tools, found) {
        Err(_) if c.peek_or_end()?.is_none() => Err(Stop::NeedsMore),
        other => other,
    }
}

/// Parses what follows Mistral's `[TOOL_CALLS]`: a list, or a name, an optional id, and arguments.
pub(super) fn mistral(c: &mut Cursor, tools: &Tools, found: &mut ParsedCalls) -> Read<()> {
    c.spaces();
    match c.peek()? {
        b'[' | b'{' => {
            parsed_calls::objects(c, CallForm::Marked, tools, found)?;
            return parsed_calls::skip_extra_brackets(c, found);
        }
        _ => {}
    }
    loop {
        let word = c.run(tag_body::is_name)?;
        let name = named(c, word, tools, found)?;
        if c.take("[CALL_ID]")? {
            c.run(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))?;
        }
        c.take("[ARGS]")?;
        let arguments = parsed_calls::arguments(c)?;
        found.push([Call { name, arguments }], c.at());
        c.spaces();
        // The next call may come with its own marker or without.
        match c.peek_or_end()? {
            Some(byte) if byte.is_ascii_alphabetic() => {
                let at = c.at();
                let word = c.run(tag_body::is_name)?;
                let next = c.peek_or_end()?;
                c.go(at);
                if tools.called(word).is_none() || !matches!(next, Some(b'[' | b'{')) {
                    return Ok(());
                }
            }
            _ => return Ok(()),
        }
    }
}

/// Parses what follows Functionary's `<|recipient|>`: a name, `<|content|>` and arguments.
pub(super) fn recipient(c: &mut Cursor, tools: &Tools, found: &mut ParsedCalls) -> Read<()> {
    c.spaces();
    let word = c.run(tag_body::is_name)?;
    let name = named(c, word, tools, found)?;
    c.spaces();
    c.expect(CONTENT)?;
    let arguments = parsed_calls::arguments(c)?;
    found.push([Call { name, arguments }], c.at());
    Ok(())
}

/// Parses a name on a line of its own with its arguments below: Functionary (`>>>name`) and GLM-4.
pub(super) fn name_line(c: &mut Cursor, tools: &Tools, found: &mut ParsedCalls) -> Read<()> {
    let word = c.run(tag_body::is_name)?;
    if word.len() > MAX_NAME {
        return Err(Stop::NoMatch);
    }
    let name = parsed_calls::name(word, tools, found)?;
    c.run(|byte| matches!(byte, b' ' | b'\t' | b'\r'))?;
    c.expect("\n")?;
    // Functionary 2, whose template ends with the mark before the name.
    c.take(CONTENT)?;
    c.spaces();
    if c.peek()? != b'{' {
        return Err(Stop::NoMatch);
    }
    let arguments = parsed_calls::arguments(c)?;
    found.push([Call { name, arguments }], c.at());
    Ok(())
}
