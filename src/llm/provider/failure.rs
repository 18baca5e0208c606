//! Reads what servers say when something goes wrong, in all the shapes they say it in.

use std::time::Duration;

use serde_json::Value;

use crate::error::Error;
use crate::error::plain;
use crate::objection::unreadable;
use crate::provider::instead::Instead;
use crate::refusal::KeyFrom;
use crate::refusal::Refusal;
use podbay_event::Secret;

/// Longest message of a server that is shown, in characters.
const MAX_MESSAGE: usize = 600;

/// Where and how a failing answer came.
#[derive(Debug, Default)]
pub(crate) struct Failure<'a> {
    pub(crate) endpoint: &'a str,
    /// Stands as `***` wherever the server repeats it.
    pub(crate) key: Option<&'a str>,
    pub(crate) code: u16,
    pub(crate) location: Option<&'a str>,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) is_html: bool,
    /// How its head says that it is packed.
    pub(crate) packed: Option<&'static str>,
}

impl Failure<'_> {
    /// Returns the error behind an answer that is no success.
    pub(crate) fn of_body(&self, body: &[u8]) -> Error {
        if (300..400).contains(&self.code) {
            return Error::Redirect { code: self.code, location: self.clean(self.location.unwrap_or("nowhere")) };
        }
        let text = String::from_utf8_lossy(body);
        if let Ok(value) = serde_json::from_str::<Value>(&text)
            && let Some(error) = self.of_value(&value)
        {
            return error;
        }
        match Instead::of(body, self.packed, self.is_html) {
            Instead::Nothing | Instead::Other => self.status(&text),
            // What such a status means is known, whatever came with it.
            what if (500..600).contains(&self.code) || matches!(self.code, 401 | 402 | 403 | 408 | 413 | 429) => {
                self.status(&format!("{what} from {}", self.endpoint))
            }
            _ => self.not_json(body),
        }
    }

    /// Returns the error of a body that should have been JSON.
    pub(crate) fn not_json(&self, body: &[u8]) -> Error {
        let what = match Instead::of(body, self.packed, self.is_html) {
            Instead::Page { title } => Instead::Page { title: self.hide(&title) },
            other => other,
        };
        Error::NotJson { endpoint: self.endpoint.to_owned(), what }
    }

    /// Returns the error that a JSON value reports, in the body or within the stream; `None` where it reports none.
    pub(crate) fn of_value(&self, value: &Value) -> Option<Error> {
        let error = match value {
            // Google's errors come in a list of one.
            Value::Array(errors) if matches!(errors.as_slice(), [Value::Object(_)]) => return self.of_value(&errors[0]),
            Value::Object(fields) => fields.get("error").filter(|error| !error.is_null()).or_else(|| {
                // FastAPI's `detail`, and errors that stand bare.
                let bare = fields.contains_key("message") && (fields.contains_key("code") || fields.contains_key("type"));
                fields.get("detail").or(bare.then_some(value)).filter(|_| !fields.contains_key("choices"))
            })?,
            _ => return None,
        };
        let message =
            error.get("message").or(Some(error)).map(|message| message.as_str().map_or_else(|| message.to_string(), str::to_owned));
        let mut message = message.unwrap_or_default();
        // `OpenRouter` says that somebody behind it failed, and beside that in whose words.
        if let Some(raw) = error.pointer("/metadata/raw").filter(|raw| !raw.is_null()) {
            let raw = raw.as_str().map_or_else(|| raw.to_string(), str::to_owned);
            message = format!("{message}: {raw}");
        }
        // Some name the parameter that they refuse there alone.
        if let Some(parameter) = error.get("param").and_then(Value::as_str).filter(|name| !name.is_empty() && !message.contains(name)) {
            message = format!("{message} (`{parameter}`)");
        }
        if let Some(exceeded) = exceeded(error, &message) {
            return Some(exceeded);
        }
        // Groq's, which repeats all that its model wrote.
        if let Some(raw) = error.get("failed_generation").and_then(Value::as_str) {
            return Some(Error::Unreadable { message: self.clean(&message), raw: Secret::new(raw) });
        }
        if let Some(raw) = unreadable(&message) {
            return Some(Error::Unreadable { message: self.clean(&message), raw: Secret::new(raw) });
        }
        let code = error.get("code").and_then(number).and_then(|code| u16::try_from(code).ok()).filter(|code| (400..600).contains(code));
        let code = if self.code >= 400 { Some(self.code) } else { code };
        Some(match (Refusal::of(error), code) {
            // A quota that is used up comes with the status of one who asks too often.
            (Some(what @ (Refusal::Key | Refusal::Account | Refusal::Model)), _) | (Some(what), None) => self.refused(what, code, &message),
            (_, Some(code)) => Self { code, ..*self }.status(&message),
            (None, None) => Error::Reported { message: self.clean(&message) },
        })
    }

    fn status(&self, message: &str) -> Error {
        let message = self.clean(message);
        let message = if message.is_empty() { "no explanation".to_owned() } else { message };
        match self.code {
            503 if message.to_ascii_lowercase().contains("loading model") => {
                Error::ModelLoading { endpoint: self.endpoint.to_owned(), waited: Duration::ZERO }
            }
            // It may be the bytes that are too many and not the tokens: less is the remedy for both.
            413 => Error::ContextExceeded { prompt: None, context: None },
            401 | 403 => self.refused(Refusal::Key, Some(self.code), &message),
            402 => self.refused(Refusal::Account, None, &message),
            code => Error::Status { code, message, retry_after: self.retry_after },
        }
    }

    fn refused(&self, what: Refusal, code: Option<u16>, message: &str) -> Error {
        let (message, key) = (self.clean(message), KeyFrom::default());
        match what {
            Refusal::Key => Error::Unauthorized { code, message, key },
            Refusal::Account | Refusal::Model | Refusal::Request => Error::Refused { what, message, key },
        }
    }

    fn clean(&self, text: &str) -> String {
        plain(&self.hide(text), MAX_MESSAGE)
    }

    fn hide(&self, text: &str) -> String {
        match self.key.filter(|key| !key.is_empty()) {
            Some(key) => Secret::new(key).hide_encoded_in(text.replace(key, "***")),
            None => text.to_owned(),
        }
    }
}

/// Returns a number, also one in quotation marks.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// Recognises that the conversation is longer than the window, as llama.cpp, LM Studio, vLLM, TGI, Ollama, `OpenAI`, Anthropic and Google say it.
fn exceeded(error: &Value, message: &str) -> Option<Error> {
    let number = |key: &str| error.get(key).and_then(Value::as_u64);
    let is = |key: &str, name: &str| error.get(key).and_then(Value::as_str) == Some(name);
    let lower = message.to_ascii_lowercase();
    let said = [
        "exceeds the available context size",
        "context size has been exceeded",
        "maximum context length",
        "exceeded max context length",
        "context the overflows",
        "context length exceeded",
        "exceed context window",
        "greater than the context length",
        "longer than the maximum model length",
        "exceeds the context length",
        "too big compared to kv size",
        "input is too large to process",
        "reached context length of",
        "mid-generation context overflow",
        "prompt is too long",
        "exceeds the maximum number of tokens",
        "`max_new_tokens` must be",
        "`inputs` must have less than",
        // SGLang, then Bedrock, Azure, xAI, Cohere, TabbyAPI.
        "longer than the model's context length",
        "requested token count exceeds",
        "input is too long for requested model",
        "maximum prompt length",
        "too many tokens:",
        "greater than max_seq_len",
        // vLLM, LM Studio, llama.cpp and `OpenAI` in other versions.
        "context length is only",
        "truncate prompt with n_keep",
        "context shift is disabled",
        "exceeds the context window",
        "exceeds context window",
        "too long to fit into the model",
        "prompt too long",
    ];
    if !is("type", "exceed_context_size_error")
        && !is("code", "context_length_exceeded")
        && !is("code", "model_max_prompt_tokens_exceeded")
        && !said.iter().any(|words| lower.contains(words))
    {
        return None;
    }
    // What the conversation is by itself, where the sum with the answer is too much: vLLM's and `OpenAI`'s words for it.
    let own = before(&lower, " in the messages").or_else(|| before(&lower, " input tokens")).or_else(|| before(&lower, " in your prompt"));
    let mut numbers = tokens(&lower);
    // "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens" names the window first.
    if lower.contains("maximum context length") {
        numbers.reverse();
    }
    let only = after(&lower, "context length is only ").or_else(|| after(&lower, "n_ctx ("));
    let own = own.or_else(|| after(&lower, "n_keep ("));
    let (first, second) = match (own, numbers.as_slice()) {
        (Some(own), _) if only.is_some() => (Some(own), only),
        (Some(own), [.., context]) => (Some(own), Some(*context)),
        (_, numbers) => sizes(numbers, &lower),
    };
    Some(Error::ContextExceeded { prompt: number("n_prompt_tokens").or(first), context: number("n_ctx").or(second) })
}

/// Returns the number that stands right before these words.
fn before(message: &str, words: &str) -> Option<u64> {
    let head = message.split_once(words)?.0;
    head[head.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1)..].parse().ok()
}

/// Returns the number that stands right behind these words.
fn after(message: &str, words: &str) -> Option<u64> {
    let rest = message.split_once(words)?.1;
    rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())].parse().ok()
}

/// Returns the tokens of the conversation and of the window.
fn sizes(numbers: &[u64], message: &str) -> (Option<u64>, Option<u64>) {
    match numbers {
        [prompt, context, ..] => (Some(*prompt), Some(*context)),
        // LM Studio names the window alone.
        [context] if message.contains("reached context length of") => (None, Some(*context)),
        _ => (None, None),
    }
}

/// Returns the first two numbers that stand before the word "tokens" or "maximum".
fn tokens(message: &str) -> Vec<u64> {
    let mut before = "";
    let mut found = Vec::new();
    for word in message.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()) {
        if matches!(word, "tokens" | "maximum")
            && let Ok(number) = before.parse()
        {
            found.push(number);
        }
        before = word;
    }
    found.truncate(2);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(code: u16, body: &str) -> Error {
        Failure { endpoint: "http://h/v1", key: Some("sesame"), code, ..Failure::default() }.of_body(body.as_bytes())
    }

    #[track_caller]
    fn check(code: u16, body: &str, expected: &str) {
        assert_eq!(read(code, body).to_string(), expected);
    }

    #[test]
    fn the_servers_own_words_are_found() {
        check(500, r#"{"error":{"code":500,"message":"boom","type":"server_error"}}"#, "the model server answered with status 500: boom");
        check(200, r#"{"error":{"code":"404","message":"gone"}}"#, "the model server answered with status 404: gone");
        check(400, r#"{"error":"bad"}"#, "the model server answered with status 400: bad");
        check(422, r#"{"detail":[{"msg":"x"}]}"#, r#"the model server answered with status 422: [{"msg":"x"}]"#);
        check(
            404,
            r#"{"object":"error","message":"no model","type":"NotFoundError","code":404}"#,
            "the model server answered with status 404: no model",
        );
        check(502, "bad gateway\u{1b}[2J", "the model server answered with status 502: bad gateway [2J");
        check(500, "", "the model server answered with status 500: no explanation");
        check(401, r#"{"error":{"message":"Invalid key sesame"}}"#, "the model server refused the key (status 401): Invalid key ***");
    }

    /// A call in it would do something else than its model wrote, wherever that has the letters of the key.
    #[test]
    fn what_a_model_wrote_is_read_as_it_stands_and_shown_without_the_key() {
        let wrote = r#"<tool_call>{"name": "bash", "arguments": {"command": "echo sesame* > out.txt"}}</tool_call>"#;
        for error in [
            serde_json::json!({"code": 500, "message": format!("Failed to parse input at pos 0: {wrote}")}),
            serde_json::json!({"message": "Failed to call a function for sesame.", "failed_generation": wrote}),
        ] {
            let error = read(500, &serde_json::json!({ "error": error }).to_string());
            assert!(!error.to_string().contains("sesame") && !format!("{error:?}").contains("sesame"), "{error:?}");
            let Error::Unreadable { raw, .. } = error else { panic!("{error:?}") };
            assert_eq!(raw.expose(), wrote);
        }
    }

    #[test]
    fn a_key_that_a_server_repeats_in_another_form_is_hidden_too() {
        for repeated in [
            "sesame%2Fopen",
            "sesame%2fopen",
            "sesame\\/open",
            "sesame&#47;open",
            "c2VzYW1lL29wZW4=",
            "OnNlc2FtZS9vcGVu",
            "dTpzZXNhbWUvb3Blbg",
        ] {
            for body in [serde_json::json!({"error": {"message": format!("No: {repeated}")}}).to_string(), format!("No: {repeated}")] {
                let failure = Failure { endpoint: "http://h/v1", key: Some("sesame/open"), code: 400, ..Failure::default() };
                assert_eq!(failure.of_body(body.as_bytes()).to_string(), "the model server answered with status 400: No: ***", "{body}");
            }
        }
    }

    #[test]
    fn what_a_server_refuses_for_good_is_told_from_what_passes() {
        let quota = r#"{"error":{"message":"You exceeded your quota, sesame.","type":"insufficient_quota","code":"insufficient_quota"}}"#;
        for code in [200, 429, 503] {
            check(code, quota, "the model server refuses to work for this account any more: You exceeded your quota, ***.");
        }
        check(402, "Pay.", "the model server refuses to work for this account any more: Pay.");
        let key = r#"{"error":{"message":"No.","type":"invalid_request_error","code":"invalid_api_key"}}"#;
        check(200, key, "the model server refused the key: No.");
        check(400, key, "the model server refused the key (status 400): No.");
        // Google's.
        let google = r#"[{"error":{"code":401,"message":"No such key.","status":"UNAUTHENTICATED"}}]"#;
        check(200, google, "the model server refused the key (status 401): No such key.");
        let model = r#"{"error":{"message":"No model `x`.","type":"invalid_request_error","code":"model_not_found"}}"#;
        for code in [200, 404, 503] {
            check(code, model, "the model server refuses the model: No model `x`.");
        }
        let request = r#"{"error":{"message":"Bad.","type":"invalid_request_error"}}"#;
        check(200, request, "the model server refuses the request: Bad.");
        check(400, request, "the model server answered with status 400: Bad.");
        let often = r#"{"error":{"message":"Slowly.","type":"tokens","code":"rate_limit_exceeded"}}"#;
        assert!(read(429, often).is_retryable() && read(200, often).is_retryable());
        for (code, body) in [(200, quota), (429, quota), (402, ""), (200, key), (503, model), (200, request)] {
            assert!(!read(code, body).is_retryable(), "{code} {body}");
        }
    }

    #[test]
    fn a_web_page_is_called_one() {
        check(404, "<!DOCTYPE html><h1>x", "http://h/v1 answered with a web page, not with JSON");
        check(
            502,
            " <html><title>502 Bad Gateway sesame</title>",
            "the model server answered with status 502: a web page (\"502 Bad Gateway ***\") from http://h/v1",
        );
        check(404, "<title>sesame</title>", "http://h/v1 answered with a web page (\"***\"), not with JSON");
    }

    #[test]
    fn loading_is_not_a_failure() {
        assert!(matches!(
            read(503, r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#),
            Error::ModelLoading { .. }
        ));
    }

    #[test]
    fn a_full_window_is_recognised_in_many_words() {
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
            (r#"{"error":"Cannot truncate prompt with n_keep (9000) >= n_ctx (4096)"}"#, Some(9000), Some(4096)),
            (r#"{"error":{"code":500,"message":"context shift is disabled","type":"server_error"}}"#, None, None),
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
            (r#"{"error":"The number of tokens to keep from the initial prompt is greater than the context length."}"#, None, None),
            (
                r#"{"error":{"message":"The input (5000 tokens) is longer than the model's context length (4096 tokens)."}}"#,
                Some(5000),
                Some(4096),
            ),
            (r#"{"error":{"message":"too long","code":"model_max_prompt_tokens_exceeded"}}"#, None, None),
            (r#"{"error":{"message":"The decoder prompt (length 5000) is longer than the maximum model length of 4096."}}"#, None, None),
            (r#"{"error":"Input prompt is too big compared to KV size. Please try increasing KV size."}"#, None, None),
            (r#"{"error":"prompt too long; exceeded max context length by 12 tokens"}"#, None, None),
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
                None,
                None,
            ),
            (
                r#"{"error":"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and 512 `max_new_tokens`","error_type":"validation"}"#,
                None,
                None,
            ),
            (
                r#"{"error":"Input validation error: `inputs` must have less than 4096 tokens. Given: 5000","error_type":"validation"}"#,
                None,
                None,
            ),
        ] {
            for code in [200, 400, 422, 500] {
                let Error::ContextExceeded { prompt: p, context: c } = read(code, body) else { panic!("{body}") };
                assert_eq!((p, c), (prompt, context), "{body}");
            }
        }
    }

    #[test]
    fn too_much_for_the_server_is_too_long_whatever_it_says() {
        for body in
            ["", "Payload Too Large", "<html><h1>413 Request Entity Too Large</h1>", r#"{"error":{"message":"too large","code":413}}"#]
        {
            assert!(matches!(read(413, body), Error::ContextExceeded { prompt: None, context: None }), "{body}");
        }
    }

    #[test]
    fn a_completion_is_no_error() {
        let failure = Failure::default();
        assert!(failure.of_value(&serde_json::json!({"choices": [], "error": null})).is_none());
        assert!(failure.of_value(&serde_json::json!([1])).is_none());
    }
}
