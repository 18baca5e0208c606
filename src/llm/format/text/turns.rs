//! Detects whose turn it is: the beginning of another speaker's turn ends the answer, since a model
//! that continues invents what others say.

use super::cursor::Cursor;
use super::cursor::Read;
use super::cursor::Stop;
use super::markers;

/// The speaker of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    /// The model itself, again.
    Model,
    /// The user, the system, a tool.
    Other,
}

/// Begins a turn; the speaker's name follows, then what ends the header.
const HEADS: [(&str, &str); 7] = [
    ("<|im_start|>", ""),
    ("<|start_header_id|>", "<|end_header_id|>"),
    ("<|header_start|>", "<|header_end|>"),
    ("<|start_of_role|>", "<|end_of_role|>"),
    ("<start_of_turn>", ""),
    ("<|turn>", ""),
    ("<|from|>", ""),
];
/// Begins a turn of gpt-oss; where the model itself speaks, its header follows.
const CHANNEL: &str = "<|start|>";
const MODELS: [&str; 2] = ["assistant", "model"];
const OTHERS: [&str; 10] = [
    "user",
    "system",
    "tool",
    "developer",
    "ipython",
    "environment",
    "observation",
    "human",
    "function",
    "functions",
];

/// Begins a turn by itself.
const TOKENS: [(&str, Speaker); 23] = [
    ("<|assistant|>", Speaker::Model),
    ("<|open|>message role=\"assistant\"<|sep|>", Speaker::Model),
    ("<|open|>message role=\"user\"", Speaker::Other),
    ("<|open|>message role=\"system\"", Speaker::Other),
    ("<|open|>message role=\"tool\"", Speaker::Other),
    ("<|im_assistant|>assistant<|im_middle|>", Speaker::Model),
    ("<|user|>", Speaker::Other),
    ("<|system|>", Speaker::Other),
    ("<|observation|>", Speaker::Other),
    ("<|im_user|>", Speaker::Other),
    ("<|im_system|>", Speaker::Other),
    ("<|USER_TOKEN|>", Speaker::Other),
    ("<|SYSTEM_TOKEN|>", Speaker::Other),
    ("<|START_TOOL_RESULT|>", Speaker::Other),
    ("<|tool_response>", Speaker::Other),
    ("<|tool_response|>", Speaker::Other),
    ("<tool_response>", Speaker::Other),
    ("<tool_result>", Speaker::Other),
    ("<function_results>", Speaker::Other),
    ("<start_function_response>", Speaker::Other),
    ("[INST]", Speaker::Other),
    ("[SYSTEM_PROMPT]", Speaker::Other),
    ("[TOOL_RESULTS]", Speaker::Other),
];

/// The same for `DeepSeek`, whose bars and gaps have several variants.
const OF_DEEPSEEK: [(&[&str], Speaker); 4] = [
    (&["Assistant"], Speaker::Model),
    (&["User"], Speaker::Other),
    (&["tool", "outputs", "begin"], Speaker::Other),
    (&["tool", "output", "begin"], Speaker::Other),
];

/// Ends a text; base models begin another one after it.
const ENDS: [&str; 9] = [
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|im_end|>",
    "<|eot_id|>",
    "<|end|>",
    "<end_of_turn>",
    "<\u{ff5c}end\u{2581}of\u{2581}sentence\u{ff5c}>",
    "</s>",
    "[e~[",
];
/// How other speakers are named there.
const NAMES: [&str; 11] = [
    "Human:",
    "User:",
    "System:",
    "### Human",
    "### User",
    "### Instruction",
    "USER:",
    "HUMAN:",
    "]~b]user",
    "]~b]tool",
    "]~b]system",
];

/// Consumes the header of a turn that begins here; returns its speaker.
pub(super) fn find(c: &mut Cursor) -> Read<Option<Speaker>> {
    let begin = c.at();
    let mut cut = false;
    for (token, speaker) in TOKENS {
        match c.take(token) {
            Ok(true) => return Ok(Some(speaker)),
            Ok(false) => {}
            Err(_) => cut = true,
        }
    }
    for (words, speaker) in OF_DEEPSEEK {
        match markers::token(c, words) {
            Ok(true) => return Ok(Some(speaker)),
            Ok(false) => {}
            Err(_) => cut = true,
        }
    }
    for (token, end) in HEADS.into_iter().chain([(CHANNEL, "")]) {
        match c.take(token) {
            Ok(true) => {
                let speaker = named(c)?;
                if speaker == Some(Speaker::Model) && token != CHANNEL {
                    c.take(end)?;
                    return Ok(speaker);
                }
                c.go(begin);
                return Ok(speaker.filter(|speaker| *speaker == Speaker::Other));
            }
            Ok(false) => {}
            Err(_) => cut = true,
        }
    }
    for end in ENDS {
        match c.take(end) {
            Ok(true) => {
                c.spaces();
                let is_other = match c.peek_or_end()? {
                    Some(_) => c.take_any(&NAMES)?,
                    None => false,
                };
                c.go(begin);
                return Ok(is_other.then_some(Speaker::Other));
            }
            Ok(false) => {}
            Err(_) => cut = true,
        }
    }
    if cut { Err(Stop::NeedsMore) } else { Ok(None) }
}

/// Returns whether the header just consumed is only mentioned in a sentence: in a turn a line end
/// follows it, or its closing token.
/// Applies only to templates that begin a new line there.
pub(super) fn is_spoken_of(c: &mut Cursor) -> Read<bool> {
    let begin = c.at();
    for (token, _) in HEADS.into_iter().chain([(CHANNEL, "")]) {
        if c.take(token)? {
            return match named(c)? {
                Some(_) => Ok(!matches!(
                    c.peek_or_end()?,
                    None | Some(b'\n' | b'\r' | b'<')
                )),
                None => Ok(false),
            };
        }
    }
    for token in ["<|user|>", "<|system|>", "<|observation|>"] {
        if c.take(token)? {
            return Ok(!matches!(c.peek_or_end()?, None | Some(b'\n' | b'\r')));
        }
    }
    // In a turn of DeepSeek the text follows at once.
    if markers::token(c, &["User"])? {
        return Ok(matches!(
            c.peek_or_end()?,
            Some(b' ' | b')' | b',' | b'.' | b':' | b';')
        ));
    }
    c.go(begin);
    Ok(false)
}

/// Reads a speaker's name.
fn named(c: &mut Cursor) -> Read<Option<Speaker>> {
    let at = c.at();
    let word = c.run(|byte| byte.is_ascii_alphanumeric() || byte == b'_')?;
    let word = word.split('_').next().unwrap_or_default();
    if let Some(model) = MODELS.into_iter().find(|model| word.starts_with(model)) {
        c.go(at + model.len());
        return Ok(Some(Speaker::Model));
    }
    Ok(OTHERS.contains(&word).then_some(Speaker::Other))
}

#[cfg(test)]
mod tests {
    use super::super::openers;
    use super::*;
    use crate::control::neutralise;

    #[test]
    fn tokens_that_begin_a_turn_are_neutralized_in_requests() {
        let heads = HEADS
            .iter()
            .flat_map(|(head, end)| [*head, *end])
            .filter(|token| !token.is_empty());
        let tokens = TOKENS.iter().map(|(token, _)| *token);
        // A name alone is content, and ends no turn without the token before it.
        let names = NAMES
            .into_iter()
            .filter(|name| name.starts_with(|c: char| !c.is_alphanumeric() && c != '#'));
        for token in heads
            .chain([CHANNEL])
            .chain(tokens)
            .chain(ENDS)
            .chain(names)
        {
            let first_two = (token.as_bytes()[0], token.as_bytes()[1]);
            assert!(
                NAMES.contains(&token) || openers::may_go_on(first_two.0, first_two.1),
                "{token}"
            );
            let broken = neutralise(token);
            assert!(
                !broken.contains(token) && broken.replace('\u{200b}', "") == token,
                "{token}"
            );
        }
    }
}
