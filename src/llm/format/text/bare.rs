//! Calls without a tag, at the beginning of a line: bare JSON, Llama's and xLAM's; Python's lists;
//! `functools[…]` of Phi; `Action:` of Command-R and of agents that reason and act in turns; a name
//! above its arguments, as Functionary and GLM-4 write.

use super::Call;
use super::call::Form;
use super::channel;
use super::channel::Follows;
use super::cursor::Cursor;
use super::cursor::Read;
use super::cursor::Stop;
use super::family;
use super::family::Found;
use super::fence;
use super::fence::Certainty;
use super::markers;
use super::pairs;
use super::pythonic;
use super::tagged;
use super::tools::Tools;
use super::turns;
use super::turns::Speaker;

/// Reads what begins at the first character of a line.
pub(super) fn read(c: &mut Cursor, tools: &Tools, found: &mut Found) -> Read<Certainty> {
    let begin = c.at();
    match c.peek()? {
        b'{' => {
            family::objects(c, Form::Open, tools, found)?;
            // Llama separates several of them by semicolons, others by nothing at all.
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
                family::objects(c, Form::Open, tools, found)?;
                if found.calls.len() == before {
                    c.go(end);
                    break;
                }
            }
            family::superfluous(c, found)?;
            end_of_line(c)?;
            Ok(Certainty::Likely)
        }
        b'[' => {
            c.next()?;
            c.spaces();
            let is_json = c.peek()? == b'{';
            c.go(begin);
            if is_json {
                family::objects(c, Form::Open, tools, found)?;
            } else {
                pythonic::list(c, &tools.only_known(), found)?;
            }
            family::superfluous(c, found)?;
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
            // Ordinary words are told apart at once, so that they are not held back.
            let word = c.ahead(tagged::is_name);
            if !tools.may_begin(word)
                && !["functools", "Action", "to"]
                    .iter()
                    .any(|other| other.starts_with(word))
            {
                return Err(Stop::No);
            }
            if c.take("functools[")? {
                found.is_marked = true;
                c.go(c.at() - 1);
                family::objects(c, Form::Marked, tools, found)?;
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
                    family::objects(c, Form::Open, tools, found)?;
                }
                return Ok(Certainty::Certain);
            }
            let word = c.run(tagged::is_name)?;
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
                return Err(Stop::No);
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

/// Reads `NAME`, and `Action Input:` with an object on the next line; `Action:` was passed.
fn react(c: &mut Cursor, tools: &Tools, found: &mut Found) -> Read<()> {
    let tools = tools.only_known();
    let word = c.run(tagged::is_name)?;
    let name = family::name(word, &tools, found)?;
    c.spaces();
    c.expect("Action Input:")?;
    c.spaces();
    let at = c.at();
    if c.take("\"")?
        && c.peek_or_end()?
            .is_some_and(|byte| !matches!(byte, b'{' | b'\\'))
    {
        // Words in quotes are no object that was written into a string.
        return Err(Stop::No);
    }
    c.go(at);
    let arguments = family::arguments(c)?;
    found.push([Call { name, arguments }], c.at());
    Ok(())
}

/// Reads `to=functions.NAME<|channel|>…<|message|>{…}`: gpt-oss may name the tool behind its role,
/// with which the prompt ends.
fn addressed(c: &mut Cursor, tools: &Tools, found: &mut Found) -> Read<Certainty> {
    let begin = c.at();
    c.expect("to=")?;
    let word = c.run(tagged::is_name)?;
    family::name(word, tools, found)?;
    c.spaces();
    c.expect("<|")?;
    c.go(begin);
    found.is_marked = true;
    match channel::read(c, tools, found)? {
        Follows::Call => Ok(Certainty::Certain),
        _ => Err(Stop::No),
    }
}

/// Reads GLM's name and pairs up to the end of the call, whose beginning the model forgot or its
/// server dropped; returns whether they are here.
fn untagged(c: &mut Cursor, tools: &Tools, found: &mut Found) -> Read<bool> {
    const CLOSERS: [&str; 1] = ["</tool_call>"];
    let begin = c.at();
    let word = c.run(tagged::is_name)?;
    c.spaces();
    let at = c.at();
    if c.peek_or_end()? != Some(b'<') || !c.take("<arg_key>")? {
        c.go(begin);
        return Ok(false);
    }
    c.go(at);
    found.is_marked = true;
    let name = family::name(word, tools, found)?;
    pairs::pairs(c, &name, &CLOSERS, tools, found)?;
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
        let word = c.run(tagged::is_name)?;
        (word == "all" || tools.resolve(word).is_some())
            && matches!(c.peek_or_end()?, None | Some(b'\n' | b'\r' | b' '))
    };
    c.go(at);
    Ok(is_header)
}

/// Steps over Functionary's header of words for everybody, with the line that it stands on:
/// `>>>all`, and `<|content|>` below in version 2.
pub(super) fn everybody(c: &mut Cursor, mark: &str) -> Read<bool> {
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

/// A call in the open has its line for itself: with words behind it, it is spoken of.
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
    if ends { Ok(()) } else { Err(Stop::No) }
}
