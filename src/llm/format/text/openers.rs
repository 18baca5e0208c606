//! The tokens that are searched for everywhere in a text: those that begin a call or a thought, and
//! those without meaning.

use super::cursor::Cursor;
use super::cursor::Read;
use super::cursor::Stop;
use super::kimi_minimax;
use super::markers;
use super::parsed_calls::ParsedCalls;
use super::tag_body;
use super::tools::Tools;
use super::turns;
use super::turns::Speaker;
use super::xml;

/// What a token begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opener {
    /// Calls up to one of these tokens.
    Calls(&'static [&'static str]),
    /// `<tool_call` with attributes, which no template teaches.
    Attributed,
    /// `<function=`.
    Function,
    /// `<invoke name=`, with or without a prefix.
    Invoke,
    /// One call of `DeepSeek` or Kimi.
    Marker,
    Mistral,
    /// Functionary's `<|recipient|>`.
    Recipient,
    /// Kimi K3's `<|open|>call tool="`.
    Opened,
    /// `MiniMax` M3's `<invoke name=` with its mark.
    Minimax,
    /// A header of gpt-oss, which announces a thought, a call or an answer.
    Channel,
    /// A thought up to one of these tokens.
    Thought(&'static [&'static str]),
    /// The end of a thought that began in the prompt.
    ThoughtEnd,
    /// Precedes the first call of a list, each of which has its own token: ignored where none
    /// follows.
    Section,
    /// A token of the template without meaning.
    Noise,
    /// The turn of another speaker: the answer is over.
    Other,
}

impl Opener {
    /// Returns whether calls follow, or may follow.
    pub(super) fn begins_call(self) -> bool {
        !matches!(self, Noise | Other | ThoughtEnd | Thought(_))
    }
}

use Opener::Calls;
use Opener::Channel;
use Opener::Noise;
use Opener::Other;
use Opener::Section;
use Opener::Thought;
use Opener::ThoughtEnd;

/// Begins a list of calls of LFM2.
pub(super) const LFM2: &str = "<|tool_call_start|>";

/// Ends a list of calls whose tag also occurs as an element in ordinary files: it counts only with
/// an object right after it.
pub(super) const TOOLS: &[&str] = &["</tools>"];

const TOKENS: &[(&str, Opener)] = &[
    // Hermes, Qwen, GLM, Granite, Nemotron 3.
    ("<tool_call>", Calls(&["</tool_call>"])),
    ("<tool_call ", Opener::Attributed),
    (
        "<|tool_call|>",
        Calls(&["<|/tool_call|>", "<|tool_call|>", "</tool_call>"]),
    ),
    ("[TOOL_CALL]", Calls(&["[/TOOL_CALL]"])),
    // What LM Studio teaches models without a format of their own.
    ("[TOOL_REQUEST]", Calls(&["[END_TOOL_REQUEST]"])),
    ("<function_call>", Calls(&["</function_call>"])),
    ("<tool>", Calls(&["</tool>"])),
    // Qwen 2.5's tag for the list of tools, which it also uses for calls; Gemma 3's code.
    ("<tools>", Calls(TOOLS)),
    ("<tool_code>", Calls(&["</tool_code>"])),
    ("<function-call>", Calls(&["</function-call>"])),
    // MiniMax M1, Hunyuan, Apriel, Jamba.
    ("<tool_calls>", Calls(&["</tool_calls>"])),
    ("<minimax:tool_call>", Calls(&["</minimax:tool_call>"])),
    ("<seed:tool_call>", Calls(&["</seed:tool_call>"])),
    ("<longcat_tool_call>", Calls(&["</longcat_tool_call>"])),
    ("<function_calls>", Calls(&["</function_calls>"])),
    // DeepSeek V3.2, and V4 with another name for the enclosing tag; quantized templates have ASCII
    // bars.
    (
        "<\u{ff5c}DSML\u{ff5c}function_calls>",
        Calls(&["</\u{ff5c}DSML\u{ff5c}function_calls>"]),
    ),
    (
        "<\u{ff5c}DSML\u{ff5c}tool_calls>",
        Calls(&["</\u{ff5c}DSML\u{ff5c}tool_calls>"]),
    ),
    ("<\u{ff5c}DSML\u{ff5c}invoke name=", Opener::Invoke),
    (
        "<|DSML|function_calls>",
        Calls(&["</|DSML|function_calls>"]),
    ),
    ("<|DSML|tool_calls>", Calls(&["</|DSML|tool_calls>"])),
    ("<|DSML|invoke name=", Opener::Invoke),
    ("<invoke name=", Opener::Invoke),
    ("<function=", Opener::Function),
    ("<function name=", Opener::Invoke),
    // Nemotron 1 and 2.
    ("<TOOLCALL>", Calls(&["</TOOLCALL>"])),
    // Llama 3.
    ("<|python_tag|>", Calls(&["<|eom_id|>", "<|eot_id|>"])),
    // Llama 4.
    (
        "<|python_start|>",
        Calls(&["<|python_end|>", "<|eom|>", "<|eot|>"]),
    ),
    // Command-R7B and later.
    ("<|START_ACTION|>", Calls(&["<|END_ACTION|>"])),
    // Apertus.
    ("<|tools_prefix|>", Calls(&["<|tools_suffix|>"])),
    // Step 3, whose calls are not parsed but reported.
    ("<steptml:invoke name=", Opener::Invoke),
    // LFM2.
    (LFM2, Calls(&["<|tool_call_end|>"])),
    // Gemma 4 and FunctionGemma.
    ("<|tool_call>", Calls(&["<tool_call|>"])),
    ("<start_function_call>", Calls(&["<end_function_call>"])),
    // InternLM.
    ("<|action_start|><|plugin|>", Calls(&["<|action_end|>"])),
    ("[TOOL_CALLS]", Opener::Mistral),
    ("<|tool_call_begin|>", Opener::Marker),
    ("<|recipient|>", Opener::Recipient),
    ("<|open|>call tool=\"", Opener::Opened),
    ("]<]minimax[>[<invoke name=", Opener::Minimax),
    ("<|channel|>", Channel),
    ("<|start|>", Channel),
    ("<think>", Thought(&["</think>"])),
    ("<thinking>", Thought(&["</thinking>"])),
    ("<thought>", Thought(&["</thought>"])),
    ("<reasoning>", Thought(&["</reasoning>"])),
    ("<seed:think>", Thought(&["</seed:think>"])),
    ("[THINK]", Thought(&["[/THINK]"])),
    (
        "<|START_THINKING|>",
        Thought(&["<|END_THINKING|>", "<|START_RESPONSE|>", "<|START_TEXT|>"]),
    ),
    // MiniMax M3.
    ("<mm:think>", Thought(&["</mm:think>"])),
    // Kimi K3.
    (
        "<|open|>think<|sep|>",
        Thought(&["<|close|>think<|sep|>", "<|open|>response<|sep|>"]),
    ),
    ("<|channel>thought", Thought(&["<channel|>"])),
    ("<|begin_of_thought|>", Thought(&["<|end_of_thought|>"])),
    (
        "\u{25c1}think\u{25b7}",
        Thought(&["\u{25c1}/think\u{25b7}"]),
    ),
    ("</think>", ThoughtEnd),
    ("</seed:think>", ThoughtEnd),
    ("[/THINK]", ThoughtEnd),
    ("<|END_THINKING|>", ThoughtEnd),
    ("</mm:think>", ThoughtEnd),
    ("<|close|>think<|sep|>", ThoughtEnd),
    ("\u{25c1}/think\u{25b7}", ThoughtEnd),
    ("<assistant>", Noise),
    ("</assistant>", Noise),
    // Hunyuan.
    ("<answer>", Noise),
    ("</answer>", Noise),
    ("<response>", Noise),
    ("</response>", Noise),
    ("<|START_RESPONSE|>", Noise),
    ("<|END_RESPONSE|>", Noise),
    ("<|START_TEXT|>", Noise),
    ("<|END_TEXT|>", Noise),
    ("<|begin_of_solution|>", Noise),
    ("<|end_of_solution|>", Noise),
    ("<|open|>response<|sep|>", Noise),
    ("<|close|>response<|sep|>", Noise),
    ("<|open|>tools<|sep|>", Noise),
    ("<|close|>tools<|sep|>", Noise),
    ("<|close|>message<|sep|>", Noise),
    ("<|end_of_msg|>", Noise),
    ("]<]minimax[>[<tool_call>", Section),
    ("]<]minimax[>[</tool_call>", Noise),
    ("<channel|>", Noise),
    ("[/TOOL_CALLS]", Noise),
    ("<|tool_calls_section_begin|>", Section),
    ("<|tool_calls_section_end|>", Noise),
    ("<|tool_call_section_begin|>", Section),
    ("<|tool_call_section_end|>", Noise),
    ("<|im_end|>", Noise),
    ("<|eot_id|>", Noise),
    ("<|eom_id|>", Noise),
    ("<|eot|>", Noise),
    ("<|eom|>", Noise),
    ("<|python_end|>", Noise),
    ("<|end_of_text|>", Noise),
    ("<|endoftext|>", Noise),
    ("<|end|>", Noise),
    ("<|return|>", Noise),
    ("<|call|>", Noise),
    ("<|message|>", Noise),
    ("<|stop|>", Noise),
    ("<|content|>", Noise),
    ("<end_of_turn>", Noise),
    ("<turn|>", Noise),
    ("</s>", Noise),
    ("[e~[", Noise),
    ("<eos>", Noise),
    // Seed-OSS.
    ("<seed:eos>", Noise),
    // Command-R.
    ("<|END_OF_TURN_TOKEN|>", Noise),
    // EXAONE.
    ("[|endofturn|]", Noise),
    // Granite, Llama 4, Ling, Nemotron.
    ("<|end_of_role|>", Noise),
    ("<|header_end|>", Noise),
    ("<|role_end|>", Noise),
    ("<|assistant_end|>", Noise),
    ("<SPECIAL_12>", Noise),
    ("</tool_call>", Noise),
    ("</function>", Noise),
];

/// What Granite writes before a thought and before the answer after it, at the very beginning of a
/// message.
pub(super) const THOUGHT_WORDS: [&str; 2] =
    ["Here is my thought process:", "Here's my thought process:"];
pub(super) const ANSWER_WORDS: &[&str] = &["Here is my response:", "Here's my response:"];

/// Shortest prefix of a token that counts where the text ends within it.
const MIN_CUT: usize = 6;

/// Returns whether a token may begin with this byte.
pub(super) const fn may_begin(byte: u8) -> bool {
    matches!(byte, b'<' | b'[' | b']' | 0xE2)
}

/// Returns whether a token may have these first two bytes: a cheap test that rules out most
/// brackets and quotes.
pub(super) fn may_go_on(first: u8, second: u8) -> bool {
    match first {
        b'<' => matches!(
            second,
            b'|' | 0xEF
                | b'/'
                | b'a'
                | b'c'
                | b'e'
                | b'f'
                | b'i'
                | b'l'
                | b'm'
                | b'r'
                | b's'
                | b't'
                | b'S'
                | b'T'
        ),
        b'[' => matches!(second, b'/' | b'|' | b'e' | b'I' | b'S' | b'T'),
        b']' => second == b'<',
        _ => second == 0x97,
    }
}

/// Consumes and returns the token here; `None` where there is none.
pub(super) fn find(c: &mut Cursor) -> Read<Option<Opener>> {
    let begin = c.at();
    let first = c.peek()?;
    c.go(begin + 1);
    let second = c.peek_or_end();
    c.go(begin);
    if second?.is_some_and(|second| !may_go_on(first, second)) {
        return Ok(None);
    }
    // Before the tokens: the beginning of a turn may be one of them, followed by a speaker's name.
    let mut cut = match turns::find(c) {
        Ok(Some(Speaker::Other)) => return Ok(Some(Other)),
        Ok(Some(Speaker::Model)) => return Ok(Some(Noise)),
        Ok(None) => false,
        Err(_) => true,
    };
    for (token, opener) in TOKENS {
        match c.take(token) {
            Ok(true) if cut => return Err(Stop::NeedsMore),
            Ok(true) => return Ok(Some(*opener)),
            Ok(false) => {}
            Err(_) => cut = true,
        }
    }
    // The variants of `DeepSeek` are too many for the table.
    for (words, opener) in [
        (markers::LIST, Section),
        (&["tool", "calls"][..], Noise),
        (&["tool", "calls", "end"], Noise),
        (&["tool", "call", "end"], Noise),
        (&["end", "of", "sentence"], Noise),
        (markers::BEGIN, Opener::Marker),
    ] {
        match markers::token(c, words) {
            Ok(true) => return Ok(Some(opener)),
            Ok(false) => {}
            Err(_) => cut = true,
        }
    }
    if cut { Err(Stop::NeedsMore) } else { Ok(None) }
}

/// Returns whether `rest`, the end of the text, is a prefix of a token for calls.
pub(super) fn is_cut_off(rest: &str) -> bool {
    let begins_marker = || {
        [markers::LIST, markers::BEGIN]
            .iter()
            .any(|words| markers::token(&mut Cursor::new(rest, 0, false), words).is_err())
    };
    rest.len() >= MIN_CUT
        && (TOKENS
            .iter()
            .any(|(token, opener)| opener.begins_call() && token.starts_with(rest))
            || begins_marker())
}

/// Returns whether a text begins with a complete token that begins calls and nothing else.
pub(super) fn begins_with_calls(text: &str) -> bool {
    let opener = find(&mut Cursor::new(text, 0, true)).ok().flatten();
    opener.is_some_and(|opener| {
        opener.begins_call() && !matches!(opener, Channel | Opener::Recipient)
    })
}

/// Returns whether `rest`, the end of the text, is a prefix of any token.
pub(super) fn is_begun(rest: &str) -> bool {
    find(&mut Cursor::new(rest, 0, false)).is_err()
}

/// Parses the calls after a consumed opener that began at `begin`.
pub(super) fn read(
    c: &mut Cursor,
    opener: Opener,
    begin: usize,
    tools: &Tools,
    found: &mut ParsedCalls,
) -> Read<()> {
    match opener {
        Calls(closers) => return tag_body::read(c, closers, tools, found),
        Opener::Function => {
            xml::function(c, &[], tools, found)?;
        }
        Opener::Invoke => {
            c.go(begin);
            xml::invoke(c, &[], tools, found)?;
        }
        Opener::Marker => {
            c.go(begin);
            markers::read(c, tools, found)?;
        }
        Opener::Mistral => markers::mistral(c, tools, found)?,
        Opener::Recipient => markers::recipient(c, tools, found)?,
        Opener::Opened => kimi_minimax::kimi(c, tools, found)?,
        Opener::Minimax => kimi_minimax::minimax(c, tools, found)?,
        Opener::Attributed | Channel | Thought(_) | ThoughtEnd | Section | Noise | Other => {
            return Err(Stop::NoMatch);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::ControlTokens;
    use crate::control::neutralise;

    /// Markup that is common in ordinary files and not a token of any known model.
    const ORDINARY: [&str; 25] = [
        "<tool_call ",
        "<tool>",
        "</tool>",
        "<tools>",
        "</tools>",
        "<tool_code>",
        "</tool_code>",
        "<function-call>",
        "</function-call>",
        "<invoke name=",
        "<function=",
        "<function name=",
        "</function>",
        "<thinking>",
        "</thinking>",
        "<thought>",
        "</thought>",
        "<reasoning>",
        "</reasoning>",
        "<assistant>",
        "</assistant>",
        "<answer>",
        "</answer>",
        "<response>",
        "</response>",
    ];

    #[test]
    fn tokens_of_calls_and_thoughts_are_neutralized_in_requests() {
        for (token, opener) in TOKENS {
            assert!(
                may_begin(token.as_bytes()[0])
                    && may_go_on(token.as_bytes()[0], token.as_bytes()[1]),
                "{token}"
            );
            let ends: &[&str] = if let Calls(ends) | Thought(ends) = opener {
                ends
            } else {
                &[]
            };
            for token in ends
                .iter()
                .chain([token])
                .filter(|token| !ORDINARY.contains(token))
            {
                let broken = neutralise(token);
                assert!(
                    !broken.contains(token) && broken.replace('\u{200b}', "") == **token,
                    "{token}"
                );
            }
        }
        let own = ControlTokens::of_template("{{ '<thought>' }}<answer>", []);
        assert_eq!(
            own.neutralise("<thought><answer><response>"),
            "<\u{200b}thought><\u{200b}answer><response>",
            "but where its template has them"
        );
    }
}
