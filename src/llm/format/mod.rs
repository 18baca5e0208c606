//! How a conversation is written for the server, one file per way of offering tools.
//! [`native`] uses the server's own tool calls. [`constrained`] describes the tools in the system
//! prompt and has the server constrain the answer to a JSON schema. [`prompted`] only describes
//! them, for servers without schema support; [`text`] parses the result, and also the calls that
//! models write as text although the tools were offered natively.

pub mod call_tail;
pub(super) mod constrained;
pub(super) mod fences;
pub(super) mod json_answer;
pub(super) mod native;
pub(super) mod prompted;
pub(super) mod schema;
pub mod text;
pub(super) mod unknown_tool;

use serde::Serialize;

/// One message in `OpenAI`'s format. The order of the fields is the order in the JSON, so that
/// equal messages are equal bytes.
#[derive(Serialize)]
pub(super) struct Wire<'a> {
    pub(super) role: &'static str,
    pub(super) content: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tool_calls: Vec<WireCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<&'a str>,
}

#[derive(Serialize)]
pub(super) struct WireCall<'a> {
    pub(super) id: &'a str,
    pub(super) r#type: &'static str,
    pub(super) function: WireFunction<'a>,
}

#[derive(Serialize)]
pub(super) struct WireFunction<'a> {
    pub(super) name: &'a str,
    pub(super) arguments: &'a str,
}

impl<'a> Wire<'a> {
    pub(super) fn new(role: &'static str, content: &'a str) -> Self {
        Self {
            role,
            content,
            reasoning_content: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
            name: None,
        }
    }

    pub(super) fn json(&self) -> String {
        serde_json::to_string(self).expect("strings and lists of strings always have a JSON form")
    }
}
