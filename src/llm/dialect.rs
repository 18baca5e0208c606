//! How an API writes tools and messages.
//!
//! A conversation is written message by message, and what was written stays: each API only says
//! what one message looks like.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::json;

use super::message::ToolSpec;

/// One message of a conversation, before an API writes it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChatMessage<'a> {
    pub(crate) role: &'static str,
    pub(crate) text: Cow<'a, str>,
    /// Each as [`Dialect::image`] wrote it.
    pub(crate) images: &'a [String],
    /// The model's reasoning, where the server wants it back.
    pub(crate) thinking: Option<Cow<'a, str>>,
    pub(crate) calls: Vec<ChatCall<'a>>,
    /// The call whose result this is.
    pub(crate) answered: Option<AnsweredCall<'a>>,
}

/// A call that the model made.
#[derive(Clone, Debug)]
pub(crate) struct ChatCall<'a> {
    pub(crate) id: &'a str,
    pub(crate) name: Cow<'a, str>,
    /// A JSON object.
    pub(crate) arguments: Cow<'a, str>,
}

#[derive(Clone, Debug)]
pub(crate) struct AnsweredCall<'a> {
    pub(crate) id: &'a str,
    /// The tool's name.
    pub(crate) name: Cow<'a, str>,
}

impl<'a> ChatMessage<'a> {
    pub(crate) fn new(role: &'static str, text: impl Into<Cow<'a, str>>) -> Self {
        Self {
            role,
            text: text.into(),
            ..Self::default()
        }
    }
}

/// How an API writes the parts of a conversation. Equal parts must become equal bytes.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    pub(crate) name: &'static str,
    /// Writes the list of tools; `None` where there are none: some servers refuse an empty list.
    pub(crate) tools: fn(&[ToolSpec]) -> Option<String>,
    pub(crate) message: fn(&ChatMessage<'_>) -> String,
    /// Writes an image, given as a `data:` URL, as it is in a message. It is written once: writing
    /// megabytes again for every further image would be slow.
    pub(crate) image: fn(&str) -> String,
}

/// `OpenAI`'s chat completions.
pub(crate) const OPENAI: Dialect = Dialect {
    name: "openai",
    tools,
    message,
    image: |url| json!({"image_url": {"url": url}, "type": "image_url"}).to_string(),
};

/// Writes the list of tools, which other APIs have from `OpenAI`.
pub(crate) fn tools(specs: &[ToolSpec]) -> Option<String> {
    if specs.is_empty() {
        return None;
    }
    let list: Vec<_> = specs
        .iter()
        .map(|spec| json!({"type": "function", "function": {"name": spec.name, "description": spec.description, "parameters": spec.parameters}}))
        .collect();
    Some(serde_json::to_string(&list).expect("JSON values always have a JSON form"))
}

/// The order of the fields is the order in the JSON.
#[derive(Serialize)]
struct Wire<'a> {
    role: &'static str,
    content: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: WireFunction<'a>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: &'a str,
    arguments: &'a str,
}

fn message(message: &ChatMessage<'_>) -> String {
    if !message.images.is_empty() {
        let text = json!({"type": "text", "text": message.text}).to_string();
        return format!(
            "{{\"content\":[{text},{}],\"role\":\"{}\"}}",
            message.images.join(","),
            message.role
        );
    }
    let wire = Wire {
        role: message.role,
        content: &message.text,
        reasoning_content: message.thinking.as_deref(),
        tool_calls: message
            .calls
            .iter()
            .map(|call| WireCall {
                id: call.id,
                r#type: "function",
                function: WireFunction {
                    name: &call.name,
                    arguments: &call.arguments,
                },
            })
            .collect(),
        tool_call_id: message.answered.as_ref().map(|answered| answered.id),
        name: message
            .answered
            .as_ref()
            .map(|answered| answered.name.as_ref()),
    };
    serde_json::to_string(&wire).expect("strings and lists of strings always have a JSON form")
}
