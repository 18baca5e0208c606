//! Calls without a tag, at the beginning of a line: bare JSON (Llama, xLAM), Python lists,
//! `functools[…]` (Phi), `Action:` (Command-R and `ReAct` agents), a name above its arguments
//! (Functionary, GLM-4).

use super::Call;
use super::call::CallForm;
use super::channel;
use super::channel::HeaderTarget;
use super::cursor::Cursor;
use super::cursor::Read;
use super::cursor::Stop;
use super::fence;
use super::fence::Certainty;
use super::glm_pairs;
use super::markers;
use super::parsed_calls;
use super::parsed_calls::ParsedCalls;
use super::pythonic;
use super::tag_body;
use super::tools::Tools;
use super::turns;
use super::turns::Speaker;

/// Parses a call that starts at the first character of a line.
pub(super) fn read(c: &mut Cursor, tools: &Tools, found: &mut ParsedCalls) -> Read<Certainty> {
    let begin = c.at();
    match c.peek()? {
        b'{' => {
            parsed_calls::objects(c, CallForm::Open, tools, found)?;
            // Llama separates several calls by semicolons, other models by nothing.
            while !found.calls.is_empty() {
                let end = c.at();
                c.spaces();
                c.take_any(&[";", ","])?;
                c.spaces();
                if c.peek_or_end()? != Some(b'{') {
                    c.go(end);
                    break;
                }
                let before = found.calls.len();
                parsed_calls::objects(c, CallForm::Open, tools, found)?;
                if found.calls.len() == before {
                    c.go(end);
                    break;
                }
            }
            parsed_calls::skip_extra_brackets(c, found)?;
            end_of_line(c)?;
            Ok(Certainty::Likely)
        }
        b'[' => {
            c.next()?;
            c.spaces();
            let is_json = c.peek()? == b'{';
            c.go(begin);
            if is_json {
                parsed_calls::objects(c, CallForm::Open, tools, found)?;
            } else {
                pythonic::list(c, &tools.only_known(), found)?;
            }
            parsed_calls::skip_extra_brackets(c, found)?;
            end_of_line(c)?;
            Ok(Certainty::Likely)
        }
        b'>' => {
            c.expect(">>>")?;
            found.is_marked = true;
            markers::name_line(c, tools, found)?;
            Ok(Certainty::Certain)
        }
        _ => {
            // Ordinary words are ruled out at once, so that they are not buffered.
            let word = c.ahead(tag_body::is_name);
            if !tools.may_begin(word)
                && !["functools", "Action", "to"]
                    .iter()
                    .any(|other| other.starts_with(word))
            {
                return Err(Stop::NoMatch);
            }
            if c.take("functools[")? {
                found.is_marked = true;
                c.go(c.at() - 1);
                parsed_calls::objects(c, CallForm::Marked, tools, found)?;
                return Ok(Certainty::Certain);
            }
            if c.take("Action:")? {
                found.is_marked = true;
                c.spaces();
                if c.take("```")? {
                    fence::read(c, "```", tools, found)?;
                } else if c.peek()?.is_ascii_alphabetic() {
                    react(c, tools, found)?;
                } else {
                    parsed_calls::objects(c, CallForm::Open, tools, found)?;
                }
                return Ok(Certainty::Certain);
            }
            let word = c.run(tag_body::is_name)?;
            if word == "to" && c.peek_or_end()? == Some(b'=') {
                c.go(begin);
                return addressed(c, tools, found);
            }
            if word == "function" && c.peek_or_end()? == Some(b'<') {
                c.go(begin);
                found.is_marked = true;
                markers::unmarked(c, tools, found)?;
                return Ok(Certainty::Certain);
            }
            if tools.resolve(word).is_none() {
                return Err(Stop::NoMatch);
            }
            let next = c.peek_or_end()?;
            c.go(begin);
            if next == Some(b'(') {
                pythonic::call(c, tools, found)?;
                end_of_line(c)?;
            } else if untagged(c, tools, found)? {
                return Ok(Certainty::Certain);
            } else {
                markers::name_line(c, tools, found)?;
                if header_follows(c, tools)? {
                    return Ok(Certainty::Certain);
                }
            }
            Ok(Certainty::Likely)
        }
    }
}

/// Parses `NAME`, and `Action Input:` with an object on the next line; `Action:` is already
/// consumed.
fn react(c: &mut Cursor, tools: &Tools, found: &mut ParsedCalls) -> Read<()> {
    let tools = tools.only_known();
    let word = c.run(tag_body::is_name)?;
    let name = parsed_calls::name(word, &tools, found)?;
    c.spaces();
    c.expect("Action Input:")?;
    c.spaces();
    let at = c.at();
    if c.take("\"")?
        && c.peek_or_end()?
            .is_some_and(|byte| !matches!(byte, b'{' | b'\\'))
    {
        // Quoted words are not an object escaped into a string.
        return Err(Stop::NoMatch);
    }
    c.go(at);
    let arguments = parsed_calls::arguments(c)?;
    found.push([Call { name, arguments }], c.at());
    Ok(())
}

/// Parses `to=functions.NAME<|channel|>…<|message|>{…}`: gpt-oss may name the tool after its role,
/// with which the prompt ends.
fn addressed(c: &mut Cursor, tools: &Tools, found: &mut ParsedCalls) -> Read<Certainty> {
    let begin = c.at();
    c.expect("to=")?;
    let word = c.run(tag_body::is_name)?;
    parsed_calls::name(word, tools, found)?;
    c.spaces();
    c.expect("<|")?;
    c.go(begin);
    found.is_marked = true;
    match channel::read(c, tools, found)? {
        HeaderTarget::Call => Ok(Certainty::Certain),
        _ => Err(Stop::NoMatch),
    }
}

/// Parses GLM's name and pairs up to the end of a call whose opening tag is missing (forgotten by
/// the model or dropped by its server); returns whether they are here.
fn untagged(c: &mut Cursor, tools: &Tools, found: &mut ParsedCalls) -> Read<bool> {
    const CLOSERS: [&str; 1] = ["</tool_call>"];
    let begin = c.at();
    let word = c.run(tag_body::is_name)?;
    c.spaces();
    let at = c.at();
    if c.peek_or_end()? != Some(b'<') || !c.take("<arg_key>")? {
        c.go(begin);
        return Ok(false);
    }
    c.go(at);
    found.is_marked = true;
    let name = parsed_calls::name(word, tools, found)?;
    glm_pairs::pairs(c, &name, &CLOSERS, tools, found)?;
    if c.close_any(&CLOSERS)? {
        found.end = c.at();
    }
    Ok(true)
}

/// Returns whether Functionary's next header follows.
fn header_follows(c: &mut Cursor, tools: &Tools) -> Read<bool> {
    let at = c.at();
    c.spaces();
    let is_header = c.take(">>>")? && {
        let word = c.run(tag_body::is_name)?;
        (word == "all" || tools.resolve(word).is_some())
            && matches!(c.peek_or_end()?, None | Some(b'\n' | b'\r' | b' '))
    };
    c.go(at);
    Ok(is_header)
}

/// Skips Functionary's header for text addressed to all, with the rest of its line: `>>>all`, and
/// `<|content|>` below it in version 2.
pub(super) fn skip_all_header(c: &mut Cursor, mark: &str) -> Read<bool> {
    let begin = c.at();
    if c.take(mark)? && c.take("all")? {
        c.run(|byte| matches!(byte, b' ' | b'\t' | b'\r'))?;
        if c.peek_or_end()?.is_none() && !mark.is_empty() || c.take("\n")? {
            return Ok(true);
        }
    }
    c.go(begin);
    Ok(false)
}

/// An untagged call must be alone on its line: with text after it, it is only mentioned.
fn end_of_line(c: &mut Cursor) -> Read<()> {
    let at = c.at();
    c.run(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b';'))?;
    let ends = match c.peek_or_end()? {
        None | Some(b'\n') => true,
        Some(b'<') => {
            c.next()?;
            matches!(c.peek_or_end()?, None | Some(b'|' | b'/' | 0xEF | b'e'))
                || c.take_any(&["turn|>", "start_of_turn>", "tool_response>"])?
        }
        Some(b'[') => turns::find(c)? == Some(Speaker::Other),
        Some(_) => false,
    };
    c.go(at);
    if ends { Ok(()) } else { Err(Stop::NoMatch) }
}
