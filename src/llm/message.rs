use base64::Engine;
use serde::Deserialize;
use serde::Serialize;

use podbay_event::ToolCall;

/// One message of a conversation, as the agent keeps it. `format` decides how it is sent to the
/// server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// Sent as a user's message unless it is the first: many templates accept a system message only
    /// there.
    System {
        text: String,
    },
    User {
        text: String,
    },
    /// An image for the model, sent as a user's message.
    Image {
        /// A description of it.
        text: String,
        /// Its bytes, as a `data:` URL.
        url: String,
    },
    Assistant {
        text: String,
        /// The model's visible reasoning; sent back only to servers that want it.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        thinking: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolCall>,
        /// The whole answer as the model wrote it, in constrained and text mode: repeated byte for
        /// byte it is found in the server's cache. Without it the message is rebuilt from the other
        /// fields.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw: Option<String>,
    },
    ToolResult {
        /// The id of the call that it answers.
        call: String,
        /// The tool's name.
        name: String,
        text: String,
        is_error: bool,
    },
}

impl Message {
    pub fn user(text: impl Into<String>) -> Self {
        Self::User { text: text.into() }
    }

    /// Returns a message that shows an image; `media_type` is for example `image/png`.
    pub fn image(text: impl Into<String>, media_type: &str, data: &[u8]) -> Self {
        Self::Image {
            text: text.into(),
            url: format!(
                "data:{media_type};base64,{}",
                base64::engine::general_purpose::STANDARD.encode(data)
            ),
        }
    }

    /// Returns an assistant's message of text alone.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::Assistant {
            text: text.into(),
            thinking: String::new(),
            calls: Vec::new(),
            raw: None,
        }
    }
}

/// A tool's description for the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// A JSON schema whose type is `object`.
    pub parameters: serde_json::Value,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_written_and_read_back() {
        let call = ToolCall {
            id: "c1".into(),
            name: "bash".into(),
            arguments: "{ }".into(),
        };
        let message = Message::Assistant {
            text: String::new(),
            thinking: String::new(),
            calls: vec![call],
            raw: None,
        };
        let json = r#"{"role":"assistant","text":"","calls":[{"id":"c1","name":"bash","arguments":"{ }"}]}"#;
        assert_eq!(serde_json::to_string(&message).expect("writes"), json);
        assert_eq!(
            serde_json::from_str::<Message>(json).expect("reads"),
            message
        );
    }
}
