//! Neutralizes control tokens in texts that are not the model's own.
//! A chat template separates messages with control tokens such as `<|im_end|>`, and llama-server
//! recognizes them anywhere in the finished prompt. A file or a command's output that contains one
//! could end its own message and begin a system message. So on the wire, and only there, each gets
//! a zero-width space after its first character: the tokenizer then sees ordinary text, a reader
//! sees no difference, and [`ControlTokens::restore`] undoes it in what the model copies into its
//! answer or a call. Users, logs and tools see the original text ([`super::reply_restorer`]), and
//! what is sent again is neutralized again, to the same bytes.
//! The tokens of known models are in [`TOKENS`] and apply to every model. Others of the loaded
//! model are found in its template ([`template`]), if the server exposes that.

mod arguments;
mod stream_restorer;
mod template;

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::LazyLock;

pub use stream_restorer::StreamRestorer;

/// U+200B, inserted after the token's first character.
const BREAK: char = '\u{200b}';

/// Longest name between `<|` and `|>`, in characters; no known model has a longer one.
const MAX_NAME: usize = 48;
/// Longest token of a template, in bytes.
const MAX_TOKEN: usize = 64;
/// How many characters after the first are examined for a token: each of them may be followed by a
/// zero-width space.
const LOOKED_AT: usize = 2 * MAX_TOKEN;
/// Most tokens that are taken from one template.
const MAX_OWN: usize = 256;

/// Tokens that do not follow the pattern `<|name|>`. From the chat templates of Llama 2, Mistral,
/// Gemma 2 to 4, Qwen, `DeepSeek`, Phi, Granite, Command-R, gpt-oss, `MiniMax`, Seed-OSS, GLM,
/// Nemotron, EXAONE, Kimi and `LongCat`.
const TOKENS: &[&str] = &[
    "<s>",
    "</s>",
    "<bos>",
    "<eos>",
    "<unk>",
    "<pad>",
    "[INST]",
    "[/INST]",
    "<<SYS>>",
    "<</SYS>>",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_CALL]",
    "[/TOOL_CALL]",
    "[TOOL_REQUEST]",
    "[END_TOOL_REQUEST]",
    "[TOOL_CALLS]",
    "[/TOOL_CALLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
    "[TOOL_CONTENT]",
    "[CALL_ID]",
    "[ARGS]",
    "[THINK]",
    "[/THINK]",
    "[gMASK]",
    "[sMASK]",
    "[MASK]",
    "[|endofturn|]",
    "[|system|]",
    "[|user|]",
    "[|assistant|]",
    "[|tool|]",
    "[|thought|]",
    "[|/thought|]",
    "<end_of_utterance>",
    "<arg_key>",
    "</arg_key>",
    "<arg_value>",
    "</arg_value>",
    "<AVAILABLE_TOOLS>",
    "</AVAILABLE_TOOLS>",
    "<|\"|>",
    "<SPECIAL_12>",
    "[e~[",
    "]~b]",
    "]~!b[",
    "]<]minimax[>[",
    "<mm:think>",
    "</mm:think>",
    "<sop>",
    "<eop>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<tool_calls>",
    "</tool_calls>",
    "<tool_response>",
    "</tool_response>",
    "<tool_result>",
    "</tool_result>",
    "<function_call>",
    "</function_call>",
    "<function_calls>",
    "</function_calls>",
    "<function_results>",
    "</function_results>",
    "<start_function_call>",
    "<end_function_call>",
    "<start_function_response>",
    "<end_function_response>",
    "<start_function_declaration>",
    "<end_function_declaration>",
    "<longcat_tool_call>",
    "</longcat_tool_call>",
    "<TOOLCALL>",
    "</TOOLCALL>",
    "<TOOL_RESPONSE>",
    "</TOOL_RESPONSE>",
    "<turn|>",
    "<channel|>",
    "<tool|>",
    "<tool_call|>",
    "<tool_response|>",
    "\u{25c1}think\u{25b7}",
    "\u{25c1}/think\u{25b7}",
    "\u{ff5c}DSML\u{ff5c}",
    "<|DSML|",
    "</|DSML|",
    "<steptml:",
    "</steptml:",
];
/// Prefixes of tokens with a free name up to `>`, with or without a slash before them.
const NAMED: [&str; 2] = ["seed:", "minimax:"];
/// Prefixes of tokens with a number up to `>`.
const NUMBERED: [&str; 3] = ["SPECIAL_", "unused", "extra_id_"];

/// [`TOKENS`], sorted.
static COMMON: LazyLock<Vec<Box<str>>> =
    LazyLock::new(|| ordered(TOKENS.iter().map(|token| (*token).into())));

/// Control tokens: those common to all models, and those of one template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControlTokens {
    /// Sorted.
    own: Arc<[Box<str>]>,
    /// First characters of tokens that no common token begins with.
    firsts: Arc<str>,
}

impl ControlTokens {
    /// Extracts everything that looks like a control token from a chat template; `named` are those
    /// that the server lists besides.
    /// A template does not declare its tokens, so what has the form of one counts. Ordinary markup
    /// does not.
    pub fn of_template<'a>(template: &'a str, named: impl IntoIterator<Item = &'a str>) -> Self {
        let named = named.into_iter().filter(|token| template::is_named(token));
        let mut own = ordered(
            template::markers(template)
                .chain(named.map(Into::into))
                .filter(|token| !is_common(token)),
        );
        own.truncate(MAX_OWN);
        let mut firsts: Vec<char> = own
            .iter()
            .filter_map(|token| token.chars().next())
            .filter(|c| !may_begin(*c))
            .collect();
        firsts.dedup();
        Self {
            own: own.into(),
            firsts: firsts.into_iter().collect::<String>().into(),
        }
    }

    /// Neutralizes every control token in `text`. Linear in the length of the text; a text without
    /// any is not copied.
    pub fn neutralise<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut out = String::new();
        let mut copied = 0;
        for (at, first) in text.char_indices().filter(|(_, c)| self.may_begin(*c)) {
            if self.is_token(&text[at..]) {
                let behind = at + first.len_utf8();
                out.push_str(&text[copied..behind]);
                out.push(BREAK);
                copied = behind;
            }
        }
        if copied == 0 {
            return Cow::Borrowed(text);
        }
        out.push_str(&text[copied..]);
        Cow::Owned(out)
    }

    /// Restores the tokens that [`ControlTokens::neutralise`] changed, in text that the model
    /// copied from its prompt.
    pub fn restore<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if text.contains(BREAK) {
            Cow::Owned(self.restore_before(text, text.len()))
        } else {
            Cow::Borrowed(text)
        }
    }

    /// Restores the text up to `end`; what follows decides whether a token precedes it.
    fn restore_before(&self, text: &str, end: usize) -> String {
        let mut out = String::with_capacity(end);
        let mut copied = 0;
        for (at, first) in text[..end]
            .char_indices()
            .filter(|(_, c)| self.may_begin(*c))
        {
            if self.is_neutralized(&text[at..]) {
                let behind = at + first.len_utf8();
                out.push_str(&text[copied..behind]);
                copied = behind + BREAK.len_utf8();
            }
        }
        out.push_str(&text[copied..end]);
        out
    }

    /// Returns whether `rest` begins with a neutralized control token.
    fn is_neutralized(&self, rest: &str) -> bool {
        let mut chars = rest.chars();
        let Some(first) = chars.next() else {
            return false;
        };
        chars.next() == Some(BREAK) && self.is_token(&self.whole(first, chars.as_str()))
    }

    /// Returns the beginning of the original text: one token may contain another.
    fn whole(&self, first: char, after: &str) -> String {
        let mut head = String::from(first);
        let mut last = first;
        for c in after.chars().take(LOOKED_AT) {
            if c != BREAK || !self.may_begin(last) {
                head.push(c);
            }
            last = c;
        }
        head
    }

    fn may_begin(&self, c: char) -> bool {
        may_begin(c) || self.firsts.contains(c)
    }

    /// Returns whether `rest` begins with a control token; examines a bounded number of bytes.
    fn is_token(&self, rest: &str) -> bool {
        begins(&self.own, rest) || is_common(rest)
    }
}

/// Neutralizes every token common to all models.
pub fn neutralise(text: &str) -> Cow<'_, str> {
    ControlTokens::default().neutralise(text)
}

/// Returns whether a token common to all models may begin with this character.
fn may_begin(c: char) -> bool {
    matches!(c, '<' | '[' | ']' | '\u{25c1}' | '\u{ff5c}')
}

fn ordered(tokens: impl Iterator<Item = Box<str>>) -> Vec<Box<str>> {
    let mut tokens: Vec<Box<str>> = tokens.collect();
    tokens.sort_unstable();
    tokens.dedup();
    tokens
}

/// Returns whether one of these sorted tokens is a prefix of `rest`. Only those with the same first
/// two bytes are compared.
fn begins(tokens: &[Box<str>], rest: &str) -> bool {
    let Some(two) = rest.as_bytes().get(..2) else {
        return false;
    };
    let from =
        tokens.partition_point(|token| token.as_bytes().get(..2).is_some_and(|begin| begin < two));
    tokens[from..]
        .iter()
        .take_while(|token| token.as_bytes().starts_with(two))
        .any(|token| rest.starts_with(&**token))
}

/// Returns whether `rest` begins with a token common to all models.
fn is_common(rest: &str) -> bool {
    if begins(&COMMON, rest) {
        return true;
    }
    let Some(inner) = rest.strip_prefix('<') else {
        return false;
    };
    let Some(name) = inner.strip_prefix(['|', '\u{ff5c}']) else {
        return is_of_family(inner);
    };
    // `<|name|>`, also with DeepSeek's full-width bars, and `<|name>` as in Gemma 4.
    let name = name.strip_prefix('/').unwrap_or(name);
    let mut end = name
        .chars()
        .take(MAX_NAME + 2)
        .skip_while(|&c| is_name(c))
        .take(2);
    name.starts_with(is_name)
        && matches!(
            (end.next(), end.next()),
            (Some('>'), _) | (Some('|' | '\u{ff5c}'), Some('>'))
        )
}

/// Returns whether a named or numbered token follows the bracket.
fn is_of_family(inner: &str) -> bool {
    let closed = |rest: &str, is_part: fn(char) -> bool| {
        rest.starts_with(is_part) && rest.chars().take(MAX_NAME).find(|&c| !is_part(c)) == Some('>')
    };
    let name = inner.strip_prefix('/').unwrap_or(inner);
    NAMED
        .iter()
        .filter_map(|begin| name.strip_prefix(begin))
        .any(|rest| closed(rest, is_name))
        || NUMBERED
            .iter()
            .filter_map(|begin| inner.strip_prefix(begin))
            .any(|rest| closed(rest, |c| c.is_ascii_digit()))
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '\u{2581}')
}

#[cfg(test)]
mod tests;
