//! A name and its arguments between control tokens: `DeepSeek` V3 and R1, Kimi K2, Mistral,
//! Functionary.

use super::Call;
use super::call::Form;
use super::cursor::Cursor;
use super::cursor::Read;
use super::cursor::Stop;
use super::family;
use super::family::Found;
use super::tagged;
use super::tools::Tools;

/// Longest name of a tool with what surrounds it, in bytes.
const MAX_NAME: usize = 256;
/// What stands before the words, or the arguments, behind Functionary's name of whom they are for.
pub(super) const CONTENT: &str = "<|content|>";

/// What begins a list of calls.
pub(super) const LIST: &[&str] = &["tool", "calls", "begin"];
/// What begins a call.
pub(super) const BEGIN: &[&str] = &["tool", "call", "begin"];
/// How the end of one is written, for where the text ends within it: the wide signs of `DeepSeek`,
/// those of a keyboard, and a mixture.
pub(super) const ENDS: &[&str] = &[
    "<\u{ff5c}tool\u{2581}call\u{2581}end\u{ff5c}>",
    "<|tool_call_end|>",
    "<|tool\u{2581}call\u{2581}end|>",
    "<\u{ff5c}tool_call_end\u{ff5c}>",
];

/// Reads one call of `DeepSeek` or Kimi, from its opening token to its closing one: written with
/// the signs of a keyboard both are alike.
pub(super) fn read(c: &mut Cursor, tools: &Tools, found: &mut Found) -> Read<()> {
    if token(c, BEGIN)? {
        call(c, tools, found)
    } else {
        Err(Stop::No)
    }
}

/// Reads a token of `DeepSeek`, such as `<｜tool▁call▁begin｜>`, whose bars and gaps come in several
/// forms.
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

/// Reads `function<｜tool▁sep｜>NAME` and the arguments: R1 leaves out the token before it.
pub(super) fn unmarked(c: &mut Cursor, tools: &Tools, found: &mut Found) -> Read<()> {
    let begin = c.at();
    if !(c.take("function")? && token(c, &["tool", "sep"])?) {
        return Err(Stop::No);
    }
    c.go(begin);
    call(c, tools, found)
}

/// Reads `NAME<｜tool▁sep｜>{…}`, with `function<｜tool▁sep｜>` before the name as V3 and R1 write, who
/// put the arguments into a fence below, or Kimi's
/// `functions.NAME:0<|tool_call_argument_begin|>{…}`.
fn call(c: &mut Cursor, tools: &Tools, found: &mut Found) -> Read<()> {
    c.spaces();
    let mut word = name_with_number(c)?;
    if word == "function" && separator(c)? {
        c.spaces();
        word = name_with_number(c)?;
    }
    let name = named(c, word, tools, found)?;
    c.spaces();
    separator(c)?;
    let arguments = family::arguments(c)?;
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

/// Reads a name without the number that Kimi puts behind it.
fn name_with_number<'t>(c: &mut Cursor<'t>) -> Read<&'t str> {
    let word = c.run(|byte| tagged::is_name(byte) || byte == b':')?;
    let name = word
        .rsplit_once(':')
        .filter(|(_, n)| n.bytes().all(|byte| byte.is_ascii_digit()))
        .map_or(word, |(name, _)| name);
    Ok(name)
}

/// Steps over what stands between a name and its arguments; a text that ends within it decides
/// nothing.
fn separator(c: &mut Cursor) -> Read<bool> {
    if c.ends_in_tag() {
        return Err(Stop::More);
    }
    Ok(token(c, &["tool", "sep"])? || c.take("<|tool_call_argument_begin|>")?)
}

/// Notes the tool that a word calls, unless the text ends with it: then the name may go on.
fn named(c: &mut Cursor, word: &str, tools: &Tools, found: &mut Found) -> Read<String> {
    if word.len() > MAX_NAME {
        return Err(Stop::No);
    }
    match family::name(word, tools, found) {
        Err(_) if c.peek_or_end()?.is_none() => Err(Stop::More),
        other => other,
    }
}

/// Reads what follows Mistral's `[TOOL_CALLS]`: a list, or a name, perhaps an id, and arguments.
pub(super) fn mistral(c: &mut Cursor, tools: &Tools, found: &mut Found) -> Read<()> {
    c.spaces();
    match c.peek()? {
        b'[' | b'{' => {
            family::objects(c, Form::Marked, tools, found)?;
            return family::superfluous(c, found);
        }
        _ => {}
    }
    loop {
        let word = c.run(tagged::is_name)?;
        let name = named(c, word, tools, found)?;
        if c.take("[CALL_ID]")? {
            c.run(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))?;
        }
        c.take("[ARGS]")?;
        let arguments = family::arguments(c)?;
        found.push([Call { name, arguments }], c.at());
        c.spaces();
        // The next call may come with its own marker or without.
        match c.peek_or_end()? {
            Some(byte) if byte.is_ascii_alphabetic() => {
                let at = c.at();
                let word = c.run(tagged::is_name)?;
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

/// Reads what follows Functionary's `<|recipient|>`: a name, `<|content|>` and arguments.
pub(super) fn recipient(c: &mut Cursor, tools: &Tools, found: &mut Found) -> Read<()> {
    c.spaces();
    let word = c.run(tagged::is_name)?;
    let name = named(c, word, tools, found)?;
    c.spaces();
    c.expect(CONTENT)?;
    let arguments = family::arguments(c)?;
    found.push([Call { name, arguments }], c.at());
    Ok(())
}

/// Reads a name on a line of its own with its arguments below: Functionary (`>>>name`) and GLM-4.
pub(super) fn name_line(c: &mut Cursor, tools: &Tools, found: &mut Found) -> Read<()> {
    let word = c.run(tagged::is_name)?;
    if word.len() > MAX_NAME {
        return Err(Stop::No);
    }
    let name = family::name(word, tools, found)?;
    c.run(|byte| matches!(byte, b' ' | b'\t' | b'\r'))?;
    c.expect("\n")?;
    // Functionary 2, whose template ends with the mark before the name.
    c.take(CONTENT)?;
    c.spaces();
    if c.peek()? != b'{' {
        return Err(Stop::No);
    }
    let arguments = family::arguments(c)?;
    found.push([Call { name, arguments }], c.at());
    Ok(())
}
