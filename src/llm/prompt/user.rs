//! User messages: consecutive ones, and images in them.

use super::Prompt;
use crate::dialect::ChatMessage;
use crate::format::constrained;
use crate::format::native;
use crate::format::prompted;
use podbay_event::ToolMode;

/// Stands between two user messages if the model never answered the first: many templates require
/// alternating roles.
const NO_ANSWER: &str = "(no answer)";

#[derive(Clone, Debug)]
pub(super) struct LastUser {
    text: String,
    /// Its images, as the API writes them.
    images: Vec<String>,
    /// Where its JSON begins.
    begin: usize,
}

impl Prompt {
    /// Appends the user's text, to the last message as long as no request has carried that.
    pub(super) fn push_user(&mut self, text: &str, image: Option<&String>) {
        let mut text = self.tokens.neutralise(text).into_owned();
        let mut images = Vec::new();
        if let Some(LastUser {
            text: last,
            images: shown,
            begin,
        }) = self.last_user.take()
        {
            if self.n_messages > *self.n_sent.get_mut() {
                self.messages.truncate(begin);
                self.n_messages -= 1;
                text = format!("{last}\n\n{text}");
                images = shown;
            } else {
                let message = match self.mode {
                    ToolMode::Native => native::assistant(NO_ANSWER, None, &[], &self.tokens),
                    ToolMode::Constrained => {
                        constrained::assistant(NO_ANSWER, &[], None, &self.tokens)
                    }
                    ToolMode::Text => prompted::assistant(NO_ANSWER, &[], None, &self.tokens),
                };
                self.append(&message);
            }
        }
        if let Some(system) = self.folded.take() {
            text = format!("{system}\n\n{text}");
        }
        let begin = self.messages.len();
        images.extend(image.map(|url| (self.dialect.image)(url)));
        self.append(&ChatMessage {
            images: &images,
            ..ChatMessage::new("user", text.as_str())
        });
        self.last_user = Some(LastUser {
            text,
            images,
            begin,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::body;
    use super::super::tests::call;
    use super::super::tests::result;
    use super::*;
    use crate::message::Message;
    use serde_json::json;

    #[test]
    fn a_sent_user_message_stays_and_gets_a_placeholder_answer() {
        let mut prompt = Prompt::new("", &[], ToolMode::Native);
        prompt.push(&Message::user("a"));
        prompt.push(&Message::user("b"));
        prompt.sent();
        let before = prompt.head();
        prompt.push(&Message::System { text: "c".into() });
        assert!(prompt.head().starts_with(&before));
        let texts: Vec<String> = body(&prompt)["messages"]
            .as_array()
            .expect("messages")
            .iter()
            .map(|m| format!("{}: {}", m["role"], m["content"]))
            .collect();
        assert_eq!(
            texts,
            [
                r#""user": "a\n\nb""#,
                r#""assistant": "(no answer)""#,
                r#""user": "c""#
            ]
        );
    }

    #[test]
    fn an_image_is_part_of_a_users_message() {
        for mode in [ToolMode::Native, ToolMode::Constrained] {
            let mut prompt = Prompt::new("", &[], ToolMode::Native).rebuilt(mode, []);
            for message in [
                Message::user("Look."),
                call("{}"),
                result("a.png: image/png"),
                Message::image("a.png", "image/png", b"abc"),
                Message::user("Well?"),
            ] {
                prompt.push(&message);
            }
            let body = body(&prompt);
            let last = body["messages"]
                .as_array()
                .and_then(|messages| messages.last())
                .expect("a message");
            assert_eq!(
                last["content"][1],
                json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,YWJj"}})
            );
            let text = last["content"][0]["text"].as_str().expect("a text");
            assert!(text.ends_with("a.png\n\nWell?"), "{text}");
            assert_eq!(
                text.contains("Tool bash returned"),
                mode == ToolMode::Constrained
            );
        }
    }
}
