//! Recognizes from a server's error message which feature of the request it objects to.

use super::error::Error;
use super::error::is_template_error;
use super::refusal::Refusal;

/// Why the same conversation may be answered if it is sent differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objection {
    /// The template requires user and assistant to alternate, and counts tool results as neither.
    Roles,
    /// The template does not support system messages, or not in that position.
    System,
    /// The server or its model does not support tools.
    Tools,
    /// The server cannot constrain an answer to a schema.
    Schema,
    /// The server cannot parse its model's output.
    Unreadable,
    /// The server cannot read an image, or its model has no vision.
    Image,
    /// The model's reasoning must be sent back with its messages.
    Thinking,
}

impl Error {
    /// Returns what the server objects to, if the request can be sent differently.
    pub fn objection(&self) -> Option<Objection> {
        let message = match self.root() {
            Self::Unreadable { .. } => return Some(Objection::Unreadable),
            Self::Status { code: 429, .. } => return None,
            Self::Status { message, .. }
            | Self::Reported { message }
            | Self::Refused {
                what: Refusal::Request,
                message,
                ..
            } => message.to_ascii_lowercase(),
            _ => return None,
        };
        let has = |words: &[&str]| words.iter().any(|word| message.contains(word));
        if has(&[
            "failed to load image",
            "failed to decode image",
            "failed to process image",
            "could not process image",
            "unable to process image",
            "cannot identify image",
            "invalid image",
            "image input is not supported",
            "images are not supported",
            "support image",
            "not a multimodal model",
        ]) {
            Some(Objection::Image)
        } else if has(&["reasoning_content"])
            && has(&["missing", "must be", "required", "passed back", "expected"])
        {
            Some(Objection::Thinking)
        } else if has(&["got system", "developer instruction is not enabled"]) {
            Some(Objection::System)
        } else if has(&[
            "must alternate",
            "roles should alternate",
            "expected last role",
            "only user and assistant roles",
            "only user, system and assistant roles",
            "only system, user and assistant roles",
            "unknown role: tool",
            "unexpected message role: tool",
        ]) || has(&["unexpected role"]) && has(&["after role"])
        {
            Some(Objection::Roles)
        } else if has(&[
            "system role",
            "system message",
            "system prompt",
            "role 'system'",
            "role system",
            "role: system",
        ]) && has(&[
            "not support",
            "unsupported",
            "must be",
            "only",
            "unexpected",
            "not allowed",
            "invalid",
        ]) {
            Some(Objection::System)
        } else if has(&[
            "response_format",
            "json_schema",
            "grammar",
            "structured output",
            "guided decoding",
        ]) {
            Some(Objection::Schema)
        } else if has(&["tool"])
            && has(&[
                "not support",
                "unsupported",
                "support tool use",
                "only supports single",
                "ids should be",
                "--enable-auto-tool-choice",
                "--tool-call-parser",
                "--jinja",
            ])
        {
            Some(Objection::Tools)
        } else if is_template_error(&message) || names_roles(&message) {
            // Whatever the template wants: every template supports plain turns of user and
            // assistant.
            Some(Objection::Roles)
        } else {
            None
        }
    }
}

/// Returns whether a message is a template's complaint about the roles of a conversation, passed on
/// unchanged.
fn names_roles(message: &str) -> bool {
    const WORDS: [&str; 6] = [
        "unexpected message role",
        "tool roles are supported",
        "no user query found",
        "no previous assistant message",
        "invalid role",
        "expected role",
    ];
    WORDS.iter().any(|words| message.contains(words))
}

/// Returns the model's output in an error that says it cannot be parsed; llama-server repeats it
/// from where it stopped parsing.
pub(super) fn unreadable(message: &str) -> Option<&str> {
    let lower = message.to_ascii_lowercase();
    let at = [
        "failed to parse input",
        "failed to parse tool call",
        "failed to parse model output",
        "failed to parse response",
    ]
    .iter()
    .find_map(|words| lower.find(words));
    match at {
        // A colon ends the server's own words: "Failed to parse input at pos 12: <tool_call>...".
        Some(at) => Some(message[at..].split_once(": ").map_or("", |(_, raw)| raw)),
        None => (lower.contains("model produced output that does not match")).then_some(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(message: &str, expected: Option<Objection>) {
        for code in [400, 500] {
            let error = Error::Status {
                code,
                message: message.to_owned(),
                retry_after: None,
            };
            assert_eq!(error.objection(), expected, "{message}");
        }
    }

    #[test]
    fn objections_are_recognized_by_templates_and_servers_messages() {
        for words in [
            "After the optional system message, conversation roles must alternate user/assistant/user/assistant/...",
            "Jinja Exception: Conversation roles must alternate user/assistant",
            "Unexpected role 'user' after role 'tool'",
            "Jinja Exception: Only user and assistant roles are supported!",
            "Only user and assistant roles are supported, with the exception of an initial optional system message!",
            "Only user, system and assistant roles are supported!",
            "Unknown role: tool",
            "Unexpected message role: tool",
            "Unexpected message role.",
            "Only user, assistant and tool roles are supported!",
            "No user query found in messages.",
            "Message has tool role, but there was no previous assistant message with a tool call!",
            "Invalid role: tool",
            "Expected role user but found tool",
            "Jinja Exception: whatever this template does not like",
            "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant",
        ] {
            check(words, Some(Objection::Roles));
        }
        for words in [
            "System role not supported",
            "System message must be at the beginning.",
            "Unexpected message role system: not allowed",
            "Only user, assistant and tool roles are supported, got system.",
            "Developer instruction is not enabled for models/gemma-3",
        ] {
            check(words, Some(Objection::System));
        }
        for words in [
            "registry.ollama.ai/library/gemma:2b does not support tools",
            "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set",
            "No endpoints found that support tool use.",
            "tools param requires --jinja flag",
            "This model only supports single tool-calls at once!",
            "Tool call IDs should be alphanumeric strings with length 9!",
        ] {
            check(words, Some(Objection::Tools));
        }
        for words in [
            "Missing `reasoning_content` field in the assistant message at message index 2.",
            "thinking is enabled but reasoning_content is missing in assistant tool call message at index 3",
        ] {
            check(words, Some(Objection::Thinking));
        }
        for words in [
            "response_format is not supported by this model",
            "failed to parse grammar",
        ] {
            check(words, Some(Objection::Schema));
        }
        for words in [
            "Failed to load image or audio file",
            "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
            "This model does not support image input",
            "No endpoints found that support image input",
            "Invalid image data",
        ] {
            check(words, Some(Objection::Image));
        }
        for words in [
            "boom",
            "no image was asked for",
            "the file system is full",
            "tool not found",
            "context deadline exceeded",
        ] {
            check(words, None);
        }
    }

    #[test]
    fn the_models_output_follows_the_servers_own_words() {
        assert_eq!(
            unreadable("Failed to parse input at pos 12: <tool_call>{\"a\": 1}\nx"),
            Some("<tool_call>{\"a\": 1}\nx")
        );
        assert_eq!(
            unreadable("Failed to parse tool call arguments as JSON: oops"),
            Some("oops")
        );
        assert_eq!(
            unreadable("The model produced output that does not match the expected format"),
            Some("")
        );
        assert_eq!(
            [unreadable("failed to parse grammar"), unreadable("boom")],
            [None, None]
        );
    }
}
