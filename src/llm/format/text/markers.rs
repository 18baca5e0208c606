//! A name and its arguments between control tokens: `DeepSeek` V3 and R1, Kimi K2, Mistral, Functionary.

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

/// Reads one call of `DeepSeek` or Kimi, from its opening token to its closing one.
pub(super) fn read(c: &mut Cursor, tools: &Tools, found: &mut Found) -> Read<()> {
    let begin = c.at();
    if c.take("<|tool_call_begin|>")? {
        return kimi(c, tools, found);
    }
    c.go(begin);
    if token(c, &["tool", "call", "begin"])? {
        return deepseek(c, tools, found);
    }
    Err(Stop::No)
}

/// Reads a token of `DeepSeek`, such as `<｜tool▁call▁begin｜>`, whose bars and gaps come in several forms.
pub(super) fn token(c: &mut Cursor, words: &[&str]) -> Read<bool> {
    let begin = c.at();
    if c.take("<")? && bar(c)? {
        let mut fits = true;
        for (n, word) in words.iter().enumerate() {
            fits = fits && (n == 0 || gap(c)?) && c.take(word)?;
        }
        if fits && bar(c)? && c.take(">")? {
            return Ok(true);
        }
    }
    c.go(begin);
    Ok(false)
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
    deepseek(c, tools, found)
}

fn deepseek(c: &mut Cursor, tools: &Tools, found: &mut Found) -> Read<()> {
    let begin = c.at();
    let mut word = c.run(tagged::is_name)?;
    if word == "function" && token(c, &["tool", "sep"])? {
        // R1 and V3 name the kind first, and put the arguments into a fence on the next line.
        word = c.run(tagged::is_name)?;
    } else {
        c.go(begin + word.len());
    }
    let name = family::name(bounded(word)?, tools, found)?;
    c.spaces();
    token(c, &["tool", "sep"])?;
    let arguments = family::arguments(c)?;
    let end = c.at();
    found.push([Call { name, arguments }], end);
    c.spaces();
    if close(c, &["tool", "call", "end"])? {
        found.end = c.at();
    } else {
        c.go(end);
    }
    Ok(())
}

/// Like [`token`]; where the text ends within it, it counts as here.
fn close(c: &mut Cursor, words: &[&str]) -> Read<bool> {
    if token(c, words)? {
        return Ok(true);
    }
    c.close("<\u{ff5c}tool\u{2581}call\u{2581}end\u{ff5c}>")
}

/// Reads `functions.NAME:0<|tool_call_argument_begin|>{…}<|tool_call_end|>`.
fn kimi(c: &mut Cursor, tools: &Tools, found: &mut Found) -> Read<()> {
    c.spaces();
    let word = bounded(c.run(|byte| byte != b'<' && byte != b'{')?)?.trim();
    let word = word.rsplit_once(':').filter(|(_, n)| n.bytes().all(|byte| byte.is_ascii_digit())).map_or(word, |(name, _)| name);
    let name = family::name(word, tools, found)?;
    c.take("<|tool_call_argument_begin|>")?;
    let arguments = family::arguments(c)?;
    let end = c.at();
    found.push([Call { name, arguments }], end);
    c.spaces();
    if c.close("<|tool_call_end|>")? {
        found.end = c.at();
    } else {
        c.go(end);
    }
    Ok(())
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
        let name = family::name(bounded(c.run(tagged::is_name)?)?, tools, found)?;
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
                if tools.resolve(word).is_none() || !matches!(next, Some(b'[' | b'{')) {
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
    let name = family::name(bounded(c.run(tagged::is_name)?)?, tools, found)?;
    c.spaces();
    c.expect("<|content|>")?;
    let arguments = family::arguments(c)?;
    found.push([Call { name, arguments }], c.at());
    Ok(())
}

/// Reads a name on a line of its own with its arguments below: Functionary (`>>>name`) and GLM-4.
pub(super) fn name_line(c: &mut Cursor, tools: &Tools, found: &mut Found) -> Read<()> {
    let name = family::name(bounded(c.run(tagged::is_name)?)?, tools, found)?;
    c.run(|byte| matches!(byte, b' ' | b'\t' | b'\r'))?;
    c.expect("\n")?;
    c.spaces();
    if c.peek()? != b'{' {
        return Err(Stop::No);
    }
    let arguments = family::arguments(c)?;
    found.push([Call { name, arguments }], c.at());
    Ok(())
}

fn bounded(word: &str) -> Read<&str> {
    if word.len() > MAX_NAME { Err(Stop::No) } else { Ok(word) }
}
