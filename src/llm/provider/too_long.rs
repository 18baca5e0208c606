//! Recognizes refusals because the conversation is longer than the model's window. Servers word it
//! differently, so the meaning is derived: first from the status and the name of the error, then
//! from its words.

use serde_json::Value;

use crate::error::Error;

/// Tokens of the conversation and of the window, as far as a refusal reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sizes {
    prompt: Option<u64>,
    context: Option<u64>,
}

impl From<Sizes> for Error {
    fn from(sizes: Sizes) -> Self {
        Self::ContextExceeded {
            prompt: sizes.prompt,
            context: sizes.context,
        }
    }
}

/// Statuses about authorization, payment or rate: a shorter request would not help.
const OTHER_STATUSES: [u16; 6] = [401, 402, 403, 404, 408, 429];

/// Names of errors are split into a subject and what is wrong with it.
const ABOUT: [&str; 3] = ["context", "prompt", "input"];
const WRONG: [&str; 5] = ["exceed", "toolong", "toolarge", "overflow", "limitreached"];
/// z.ai's number for it.
const CODES: [&str; 1] = ["1261"];

/// Subjects of a sentence that mean only the window.
const WINDOW: [&str; 13] = [
    "context length",
    "context size",
    "context window",
    "context limit",
    "context shift",
    "model length",
    "max_seq_len",
    "max_model_len",
    "n_ctx",
    "kv size",
    "token limit",
    "token count",
    "total tokens",
];
/// Other subjects, if the sentence also mentions a length.
const SUBJECTS: [&str; 7] = [
    "prompt",
    "input",
    "context",
    "conversation",
    "message",
    "sequence",
    "request",
];
const MEASURES: [&str; 7] = ["length", "long", "token", "size", "large", "big", "window"];
/// What is wrong with it.
const RELATIONS: [&str; 19] = [
    "exceed",
    "overflow",
    "too long",
    "too large",
    "too big",
    "too many",
    "longer than",
    "greater than",
    "larger than",
    "more than",
    "less than",
    "at most",
    "maximum",
    "limit",
    "must be",
    "should be",
    "reduce",
    "shorten",
    "only",
];
/// The same for the window only.
const WINDOW_RELATIONS: [&str; 4] = ["reached", "disabled", ">", "compared to"];
/// Other things that have a length, and other kinds of limits.
const OTHERS: [&str; 20] = [
    "image",
    "audio",
    "file",
    "tool",
    "function",
    "name",
    "string",
    "array",
    "list",
    "items",
    "characters",
    "character",
    "per minute",
    "per day",
    "rate limit",
    "quota",
    "max_tokens",
    "max_completion_tokens",
    "completion tokens",
    "output tokens",
];

/// Units other than tokens, as words or right after a number (`4MB`).
const SIZES: [&str; 13] = [
    "byte", "octet", "b", "kb", "kib", "mb", "mib", "gb", "gib", "kilobyte", "megabyte",
    "mebibyte", "gigabyte",
];
/// Other things that are counted, right after a number.
const COUNTED: [&str; 9] = [
    "character",
    "char",
    "letter",
    "word",
    "line",
    "page",
    "pixel",
    "message",
    "second",
];

/// Returns whether a text measures something in another unit than tokens.
fn has_other_unit(text: &str) -> bool {
    let singular = |word: &str| word.strip_suffix('s').unwrap_or(word).to_owned();
    let mut is_behind_number = false;
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .any(|word| {
            let unit = word.trim_start_matches(|c: char| c.is_ascii_digit());
            let is_counted = is_behind_number || unit.len() < word.len();
            is_behind_number = unit.is_empty();
            let unit = singular(unit);
            // A single letter is a unit only after a number.
            SIZES.contains(&unit.as_str()) && (is_counted || unit.len() > 1)
                || is_counted && COUNTED.contains(&unit.as_str())
        })
}

/// Returns the sizes of a conversation that is refused as too long; `None` if the refusal means
/// something else.
pub(crate) fn sizes(error: &Value, code: u16, message: &str) -> Option<Sizes> {
    let lower = without_commas(&message.to_ascii_lowercase());
    let is_so =
        is_named(error) || !OTHER_STATUSES.contains(&code) && lower.split(is_end).any(says_so);
    is_so.then(|| told(error, &without_status(&lower, code)))
}

/// Removes the number of the HTTP status from a text, which is no size.
fn without_status(text: &str, code: u16) -> String {
    let code = code.to_string();
    let is_digit = |c: char| c.is_ascii_digit();
    let mut parted = text.match_indices(&code).filter(|(at, _)| {
        !text[..*at].ends_with(is_digit) && !text[at + code.len()..].starts_with(is_digit)
    });
    match parted.next() {
        Some((at, _)) => format!("{}{}", &text[..at], &text[at + code.len()..]),
        None => text.to_owned(),
    }
}

/// Returns whether a message may be about a length, so that a shorter conversation might be
/// answered.
pub(crate) fn may_be(message: &str) -> bool {
    let lower = message.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let says_nothing =
        lower == "no explanation" || !lower.contains(|c: char| c.is_ascii_alphabetic());
    says_nothing || has(&MEASURES) || has(&["exceed", "context", "limit", "maximum"])
}

/// Returns two numbers, the larger of which may be the conversation's length and the other its
/// window.
pub(crate) fn two_sizes(message: &str) -> Option<(u64, u64)> {
    let mut numbers = if has_other_unit(&message.to_ascii_lowercase()) {
        Vec::new()
    } else {
        numbers(message)
    };
    numbers.retain(|number| *number >= LEAST_SIZE);
    numbers.sort_unstable();
    numbers.dedup();
    if let [less, more] = numbers[..] {
        Some((more, less))
    } else {
        None
    }
}

/// No window is smaller.
const LEAST_SIZE: u64 = 256;

fn is_named(error: &Value) -> bool {
    let names = ["code", "type", "status"]
        .into_iter()
        .filter_map(|key| error.get(key));
    let mut names = names.filter_map(|name| {
        name.as_str()
            .map(str::to_owned)
            .or_else(|| name.as_u64().map(|name| name.to_string()))
    });
    names.any(|name| {
        let name: String = name
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .collect::<String>()
            .to_ascii_lowercase();
        let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
        CODES.contains(&name.as_str())
            || has(&ABOUT) && has(&WRONG)
            || name.contains("maxprompttokens")
    })
}

fn is_end(c: char) -> bool {
    matches!(c, ';' | '\n' | '!')
}

/// Returns whether a sentence says that the conversation is too long.
fn says_so(sentence: &str) -> bool {
    sentence.split(". ").any(|sentence| {
        let has = |words: &[&str]| words.iter().any(|word| sentence.contains(word));
        if has(&WINDOW) {
            return has(&RELATIONS) || has(&WINDOW_RELATIONS);
        }
        has(&SUBJECTS)
            && has(&MEASURES)
            && has(&RELATIONS)
            && !OTHERS.iter().any(|other| has_word(sentence, other))
    })
}

/// Returns whether a sentence contains a word, in the singular or the plural.
fn has_word(sentence: &str, word: &str) -> bool {
    sentence.match_indices(word).any(|(at, _)| {
        let behind = sentence[at + word.len()..].trim_start_matches('s');
        !sentence[..at].ends_with(is_letter) && !behind.starts_with(is_letter)
    })
}

fn is_letter(c: char) -> bool {
    c.is_alphanumeric()
}

/// Returns the sizes in a refusal.
fn told(error: &Value, lower: &str) -> Sizes {
    let number = |key: &str| error.get(key).and_then(Value::as_u64);
    // The conversation's own length, if its sum with the answer is too much, in the words of vLLM
    // and `OpenAI`.
    let own = before(lower, " in the messages")
        .or_else(|| before(lower, " input tokens"))
        .or_else(|| before(lower, " in your prompt"));
    let numbers = tokens(lower);
    let only = after(lower, "context length is only ").or_else(|| after(lower, "n_ctx ("));
    let own = own.or_else(|| after(lower, "n_keep ("));
    let (prompt, context) = match (own, numbers.as_slice()) {
        (Some(own), _) if only.is_some() => (Some(own), only),
        (Some(own), [one]) => (Some(own), Some(*one)),
        (Some(own), [one, other, ..]) => (Some(own), Some(if *one == own { *other } else { *one })),
        // Some name the window first.
        (_, [one, other, ..]) => (Some(*one.max(other)), Some(*one.min(other))),
        // LM Studio names the window only.
        (_, [context]) if lower.contains("reached context length of") => (None, Some(*context)),
        _ => two_sizes(lower).map_or((None, None), |(more, less)| (Some(more), Some(less))),
    };
    Sizes {
        prompt: number("n_prompt_tokens").or(prompt),
        context: number("n_ctx").or(context),
    }
}

/// Returns the number right before these words.
fn before(message: &str, words: &str) -> Option<u64> {
    let head = message.split_once(words)?.0;
    head[head
        .rfind(|c: char| !c.is_ascii_digit())
        .map_or(0, |at| at + 1)..]
        .parse()
        .ok()
}

/// Returns the number right after these words.
fn after(message: &str, words: &str) -> Option<u64> {
    let rest = message.split_once(words)?.1;
    rest[..rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len())]
        .parse()
        .ok()
}

/// Returns the first two numbers before the word "tokens" or "maximum".
fn tokens(message: &str) -> Vec<u64> {
    let other_unit = has_other_unit(message);
    let mut before = "";
    let mut found = Vec::new();
    for word in message
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
    {
        if (word == "tokens" || word == "maximum" && !other_unit)
            && let Ok(number) = before.parse()
        {
            found.push(number);
        }
        before = word;
    }
    found.truncate(2);
    found
}

/// Returns all numbers of a text, also with commas between their digits.
fn numbers(text: &str) -> Vec<u64> {
    without_commas(text)
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|number| number.parse().ok())
        .collect()
}

/// Removes the commas between digits.
fn without_commas(text: &str) -> String {
    let bytes = text.as_bytes();
    let is_digit = |at: Option<usize>| {
        at.and_then(|at| bytes.get(at))
            .is_some_and(u8::is_ascii_digit)
    };
    let parts =
        |at: usize| bytes[at] == b',' && is_digit(at.checked_sub(1)) && is_digit(Some(at + 1));
    text.char_indices()
        .filter(|(at, _)| !parts(*at))
        .map(|(_, c)| c)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::failure::Failure;

    fn read(code: u16, body: &str) -> Error {
        Failure {
            endpoint: "http://h/v1",
            code,
            ..Failure::default()
        }
        .of_body(body.as_bytes())
    }

    #[test]
    fn a_full_window_is_recognized_in_many_wordings() {
        for (body, prompt, context) in [
            (
                r#"{"error":{"code":400,"message":"request (9001 tokens) exceeds the available context size (8192 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9001,"n_ctx":8192}}"#,
                Some(9001),
                Some(8192),
            ),
            (
                r#"{"error":{"code":500,"message":"request (9001 tokens) exceeds the available context size (8192 tokens)"}}"#,
                Some(9001),
                Some(8192),
            ),
            (
                r#"{"error":{"message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4500 in the messages).","code":"context_length_exceeded"}}"#,
                Some(4500),
                Some(4096),
            ),
            (
                r#"{"error":{"message":"'max_tokens' or 'max_completion_tokens' is too large: 2000. This model's maximum context length is 4096 tokens and your request has 2500 input tokens (2000 > 4096 - 2500)."}}"#,
                Some(2500),
                Some(4096),
            ),
            (
                r#"{"error":{"message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens."}}"#,
                Some(5000),
                Some(4096),
            ),
            (
                r#"{"error":{"message":"You passed 9000 input tokens and requested 1024 output tokens. However, the model's context length is only 8192 tokens, resulting in a maximum input length of 7168 tokens."}}"#,
                Some(9000),
                Some(8192),
            ),
            (
                r#"{"error":"Cannot truncate prompt with n_keep (9000) >= n_ctx (4096)"}"#,
                Some(9000),
                Some(4096),
            ),
            (
                r#"{"error":{"code":500,"message":"context shift is disabled","type":"server_error"}}"#,
                None,
                None,
            ),
            (
                r#"{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again."}}"#,
                None,
                None,
            ),
            (
                r#"{"error":{"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.\"}}"}}}"#,
                Some(5000),
                Some(4096),
            ),
            (r#"{"error":"Context size has been exceeded."}"#, None, None),
            (
                r#"{"error":"The number of tokens to keep from the initial prompt is greater than the context length."}"#,
                None,
                None,
            ),
            (
                r#"{"error":{"message":"The input (5000 tokens) is longer than the model's context length (4096 tokens)."}}"#,
                Some(5000),
                Some(4096),
            ),
            (
                r#"{"error":{"message":"too long","code":"model_max_prompt_tokens_exceeded"}}"#,
                None,
                None,
            ),
            (
                r#"{"error":{"message":"The decoder prompt (length 5000) is longer than the maximum model length of 4096."}}"#,
                Some(5000),
                Some(4096),
            ),
            (
                r#"{"error":"Input prompt is too big compared to KV size. Please try increasing KV size."}"#,
                None,
                None,
            ),
            (
                r#"{"error":"prompt too long; exceeded max context length by 12 tokens"}"#,
                None,
                None,
            ),
            (
                r#"{"error":{"message":"Reached context length of 4096 tokens with model (arch: qwen3vlmoe) that does not currently support mid-generation context overflow. Try reloading with a larger context length or shortening the prompt/chat."}}"#,
                None,
                Some(4096),
            ),
            (
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
                Some(210_000),
                Some(200_000),
            ),
            (
                r#"{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
                Some(1_200_000),
                Some(1_048_576),
            ),
            (
                r#"{"error":"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and 512 `max_new_tokens`","error_type":"validation"}"#,
                None,
                None,
            ),
            (
                r#"{"error":"Input validation error: `inputs` must have less than 4096 tokens. Given: 5000","error_type":"validation"}"#,
                Some(5000),
                Some(4096),
            ),
        ] {
            for code in [200, 400, 422, 500] {
                let Error::ContextExceeded {
                    prompt: p,
                    context: c,
                } = read(code, body)
                else {
                    panic!("{body}")
                };
                assert_eq!((p, c), (prompt, context), "{body}");
            }
        }
    }

    /// Wordings that were not considered when the rules were made.
    #[test]
    fn unforeseen_wordings_for_a_full_window_are_recognized() {
        for (body, prompt, context) in [
            (
                r#"{"error":{"message":"Invalid request: Your request exceeded model token limit: 131072 (requested: 140211)","type":"invalid_request_error"}}"#,
                Some(140_211),
                Some(131_072),
            ),
            (
                r#"{"error":{"code":"1261","message":"Prompt exceeds max length"}}"#,
                None,
                None,
            ),
            (
                r#"{"error":{"code":1261,"message":"输入过长"}}"#,
                None,
                None,
            ),
            (
                r#"{"error":{"message":"Range of input length should be [1, 30720]","code":"invalid_parameter_error"}}"#,
                None,
                None,
            ),
            (
                r#"{"error":{"message":"Prompt contains 40,000 tokens and 0 draft tokens, too large for model with 32,768 maximum context length"}}"#,
                Some(40_000),
                Some(32_768),
            ),
            (
                r#"{"error":{"message":"Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 280000 tokens."}}"#,
                Some(280_000),
                Some(272_000),
            ),
            (
                r#"{"error":{"message":"Please reduce the length of the messages or completion."}}"#,
                None,
                None,
            ),
            (
                r#"{"error":{"message":"input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again"}}"#,
                None,
                None,
            ),
            (
                r#"{"message":"invalid params, context window exceeds limit (2013)","type":"bad_request"}"#,
                None,
                None,
            ),
            (
                r#"{"error":{"message":"No.","type":"context_window_exceeded_error"}}"#,
                None,
                None,
            ),
            (
                r#"{"error":{"message":"No.","code":"prompt_too_long"}}"#,
                None,
                None,
            ),
            (
                r#"{"detail":"The conversation is too long for this model"}"#,
                None,
                None,
            ),
            (
                r#"{"error":{"message":"Please shorten your prompt: it has 9000 tokens of 8192."}}"#,
                Some(9000),
                Some(8192),
            ),
            (
                r#"{"error":{"message":"Total tokens exceed what this model takes"}}"#,
                None,
                None,
            ),
            ("The prompt is too long.", None, None),
        ] {
            let Error::ContextExceeded {
                prompt: p,
                context: c,
            } = read(400, body)
            else {
                panic!("{body}: {:?}", read(400, body))
            };
            assert_eq!((p, c), (prompt, context), "{body}");
        }
    }

    /// Shortening helps in these cases too, but they say nothing about the window.
    #[test]
    fn a_size_in_another_unit_is_not_a_number_of_tokens() {
        for message in [
            "Request body too large: 5242880 bytes exceeds the limit of 4194304 bytes",
            "Payload Too Large: request size 6291456 > 4194304 byte limit",
            "request entity too large: limit 1048576B, got 2097152B",
            "The request is too large (5120 KB); the maximum is 4096 KB",
            "Request exceeds 4096MB: 5120MB",
            "Your input has 150000 characters, the limit is 100000 characters",
            "input too large: 5242880 of 4194304 bytes maximum",
            "the request exceeds the maximum size of 4,194,304 bytes by 1,048,576",
        ] {
            for code in [400, 413] {
                let body = serde_json::json!({ "error": { "message": message } }).to_string();
                let error = read(code, &body);
                let is_unknown = matches!(
                    error,
                    Error::ContextExceeded {
                        prompt: None,
                        context: None
                    }
                );
                assert!(
                    is_unknown || code == 400 && matches!(error, Error::Status { .. }),
                    "{code} {message}: {error:?}"
                );
            }
            assert_eq!(two_sizes(message), None, "{message}");
        }
        // Tokens mentioned beside bytes are still tokens.
        let both = r#"{"error":{"message":"The prompt (36000 bytes) has 9000 tokens, which exceeds the context length of 8192 tokens"}}"#;
        assert!(
            matches!(
                read(413, both),
                Error::ContextExceeded {
                    prompt: Some(9000),
                    context: Some(8192)
                }
            ),
            "{:?}",
            read(413, both)
        );
    }

    #[test]
    fn other_refusals_are_not_about_the_window() {
        for message in [
            "The value of top_k is out of range [1, 100]",
            "max_tokens is too large: 5000. This model supports at most 4096 completion tokens, whereas you provided 5000.",
            "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 200 instead.",
            "Invalid 'messages[1].name': string too long. Expected a string with maximum length 64.",
            "Input should be less than or equal to 2",
            "Invalid value: 'messages[0].role' must be one of 'user', 'assistant'",
            "context deadline exceeded",
            "The image in your input is too large",
            "max_tokens of this request exceeds the limit of output tokens",
            "Unsupported parameter: 'parallel_tool_calls'",
        ] {
            let body = serde_json::json!({ "error": { "message": message, "type": "invalid_request_error" } }).to_string();
            assert!(
                matches!(read(400, &body), Error::Status { code: 400, .. }),
                "{message}: {:?}",
                read(400, &body)
            );
        }
        let often = r#"{"error":{"message":"Limit of input tokens exceeded: 5000 tokens per minute","code":"rate_limit_exceeded"}}"#;
        assert!(matches!(read(429, often), Error::Status { code: 429, .. }));
    }

    #[test]
    fn messages_that_may_be_about_a_length_are_recognized() {
        for message in [
            "no explanation",
            "输入过长",
            "max_tokens is too large: 5000",
            "string too long",
            "the request exceeds what is allowed",
        ] {
            assert!(may_be(message), "{message}");
        }
        for message in [
            "The value of top_k is out of range [1, 100]",
            "Unsupported parameter: 'logprobs'",
            "bad request",
        ] {
            assert!(!may_be(message), "{message}");
        }
        assert_eq!(
            two_sizes("limit 131,072 (requested: 140211)"),
            Some((140_211, 131_072))
        );
        for message in ["of 4096", "[1, 100]", "100000 + 4096 > 65536"] {
            assert_eq!(two_sizes(message), None, "{message}");
        }
    }
}
