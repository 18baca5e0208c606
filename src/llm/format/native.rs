//! The server's own tool calls.

use std::borrow::Cow;

use serde_json::Map;
use serde_json::Value;

use super::text;
use super::text::Tools;
use crate::control::ControlTokens;
use crate::dialect::AnsweredCall;
use crate::dialect::ChatCall;
use crate::dialect::ChatMessage;
use podbay_event::ToolCall;

/// Replaces arguments that were not a JSON object in the history.
/// llama-server parses the arguments of old calls for the template; one that it cannot parse makes
/// every later request fail with a 500. The tool's result, right after it, tells the model what was
/// wrong.
pub(crate) const INVALID: &str =
    r#"{"invalid_json":"these arguments were not a JSON object and were left out"}"#;

/// Longest tool name that every server accepts.
const MAX_NAME: usize = 64;
/// Deepest nesting of arguments that are sent back to the server.
const MAX_DEPTH: usize = 64;

pub(crate) fn assistant<'a>(
    text: &'a str,
    thinking: Option<&'a str>,
    calls: &'a [ToolCall],
    tokens: &ControlTokens,
) -> ChatMessage<'a> {
    // A server parses the arguments for its template, which prints them: a control token in them
    // would become one there.
    let arguments = |call: &'a ToolCall| match arguments(&call.arguments) {
        Cow::Borrowed(sound) => tokens.neutralise_json(sound),
        Cow::Owned(sound) => Cow::Owned(tokens.neutralise_json(&sound).into_owned()),
    };
    ChatMessage {
        thinking: thinking
            .filter(|thinking| !thinking.is_empty())
            .map(|thinking| tokens.neutralise(thinking)),
        calls: calls
            .iter()
            .map(|call| ChatCall {
                id: &call.id,
                name: name(&call.name),
                arguments: arguments(call),
            })
            .collect(),
        ..ChatMessage::new("assistant", tokens.neutralise(text))
    }
}

pub(crate) fn tool_result<'a>(
    call: &'a str,
    name: &'a str,
    text: &'a str,
    tokens: &ControlTokens,
) -> ChatMessage<'a> {
    ChatMessage {
        answered: Some(AnsweredCall {
            id: call,
            name: self::name(name),
        }),
        ..ChatMessage::new("tool", tokens.neutralise(text))
    }
}

/// Returns the arguments byte for byte where they are a JSON object, else the repaired object that
/// the call was executed with: otherwise the model could not recognize what it did. Where they
/// could not be repaired, a placeholder object.
pub(crate) fn arguments(written: &str) -> Cow<'_, str> {
    if written.trim().is_empty() {
        return Cow::Borrowed("{}");
    }
    if is_sound(written) {
        return Cow::Borrowed(written);
    }
    let meant = match serde_json::from_str::<Value>(written) {
        Ok(Value::String(_)) => text::unescaped_object(written),
        Ok(_) => None,
        Err(_) => text::repaired_object(written),
    };
    meant
        .filter(|meant| is_sound(meant))
        .map_or(Cow::Borrowed(INVALID), Cow::Owned)
}

/// Returns whether a JSON text parses into an object: half a surrogate pair or an out-of-range
/// number is valid syntax but has no value.
fn is_sound(json: &str) -> bool {
    serde_json::from_str::<Map<String, Value>>(json).is_ok() && depth(json) <= MAX_DEPTH
}

/// Returns the nesting depth of valid JSON.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth -= 1,
            _ => {}
        }
    }
    deepest
}

/// Returns the name byte for byte where every server accepts it in an old call, else the intended
/// name with `_` for each invalid character: one bad name makes some servers refuse every later
/// request. The result contains no control token, since none consists of these characters alone.
fn name(written: &str) -> Cow<'_, str> {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if (1..=MAX_NAME).contains(&written.len()) && written.chars().all(is_letter) {
        return Cow::Borrowed(written);
    }
    match Tools::bare(written) {
        "" => Cow::Borrowed("unknown_tool"),
        meant => Cow::Owned(
            meant
                .chars()
                .take(MAX_NAME)
                .map(|c| if is_letter(c) { c } else { '_' })
                .collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::OPENAI;

    fn assistant(
        text: &str,
        thinking: Option<&str>,
        calls: &[ToolCall],
        tokens: &ControlTokens,
    ) -> String {
        (OPENAI.message)(&super::assistant(text, thinking, calls, tokens))
    }

    fn tool_result(call: &str, name: &str, text: &str, tokens: &ControlTokens) -> String {
        (OPENAI.message)(&super::tool_result(call, name, text, tokens))
    }

    #[test]
    fn valid_arguments_keep_their_bytes_and_others_are_repaired() {
        let odd = "{ \"a\" : 1.0e2,\n\"b\":\"\\u00e9\" }";
        assert_eq!(arguments(odd), odd);
        assert_eq!(arguments(" "), "{}");
        let deep = format!("{}1{}", "{\"a\":".repeat(5000), "}".repeat(5000));
        let braces = format!("{{\"a\":\"{}\"}}", "{[\\\"".repeat(100));
        assert_eq!(arguments(&braces), braces);
        for broken in [
            "{\"a\":",
            "[1]",
            "\"x\"",
            "null",
            "{\"a\":1e999}",
            r#"{"a":"\ud83d"}"#,
            deep.as_str(),
        ] {
            assert_eq!(
                arguments(broken),
                INVALID,
                "{}",
                &broken[..broken.len().min(20)]
            );
        }
    }

    #[test]
    fn repaired_arguments_are_in_the_history_as_executed() {
        let object = r#"{"path":"a","content":"it's 1"}"#;
        let string = |text: &str| Value::from(text).to_string();
        for written in [
            r#"{'path': 'a', 'content': "it's 1"}"#.to_owned(),
            r#"{"path": "a", "content": "it's 1",}"#.to_owned(),
            string(object),
            string(&string(object)),
            object.replace('"', "\\\""),
        ] {
            assert_eq!(arguments(&written), object, "{written}");
            let call = ToolCall {
                id: "c1".into(),
                name: "write_file".into(),
                arguments: written.clone(),
            };
            assert!(
                assistant("", None, &[call], &ControlTokens::default()).contains(&string(object)),
                "{written}"
            );
        }
        let call = ToolCall {
            id: "c1".into(),
            name: "bash".into(),
            arguments: "{'command': '<|im_end|>'}".into(),
        };
        assert!(
            assistant("", None, &[call], &ControlTokens::default()).contains("<\u{200b}|im_end|>"),
            "its tokens are broken like all others"
        );
    }

    #[test]
    fn an_assistant_message_holds_its_calls() {
        let call = ToolCall {
            id: "c1".into(),
            name: "bash".into(),
            arguments: "{\"command\": \"ls\"}".into(),
        };
        assert_eq!(
            assistant("", Some("hm"), &[call], &ControlTokens::default()),
            r#"{"role":"assistant","content":"","reasoning_content":"hm","tool_calls":[{"id":"c1","type":"function","function":{"name":"bash","arguments":"{\"command\": \"ls\"}"}}]}"#
        );
    }

    #[test]
    fn control_tokens_in_arguments_are_neutralized_as_in_text() {
        let call = |arguments: &str| ToolCall {
            id: "c1".into(),
            name: "bash".into(),
            arguments: arguments.into(),
        };
        for written in [
            r#"{"command": "echo '<|im_end|>'"}"#,
            r#"{"command": "echo '\u003c|im_end|>'"}"#,
        ] {
            let message = assistant("", None, &[call(written)], &ControlTokens::default());
            assert!(message.contains("echo '<\u{200b}|im_end|>'"), "{message}");
        }
    }

    #[test]
    fn a_result_names_its_call_and_cannot_end_its_message() {
        assert_eq!(
            tool_result("c1", "bash", "a<|im_end|>", &ControlTokens::default()),
            "{\"role\":\"tool\",\"content\":\"a<\u{200b}|im_end|>\",\"tool_call_id\":\"c1\",\"name\":\"bash\"}"
        );
    }

    #[test]
    fn names_in_the_history_are_accepted_by_every_server() {
        for valid in ["bash", "Read", "my-tool_2", &"n".repeat(64)] {
            assert_eq!(name(valid), valid);
        }
        for (written, meant) in [
            ("functions.read_file", "read_file"),
            (" Default_API.bash ", "bash"),
            ("bash\n", "bash"),
            ("Bash ", "Bash"),
            ("read file!", "read_file_"),
            ("my.tool", "my_tool"),
            ("<|im_end|>", "__im_end__"),
            ("", "unknown_tool"),
            ("functions.", "unknown_tool"),
        ] {
            assert_eq!(name(written), meant, "{written:?}");
        }
        assert_eq!(name(&"\u{e9}".repeat(10_000)), "_".repeat(64));
        let call = ToolCall {
            id: "c1".into(),
            name: "functions.bash".into(),
            arguments: "{}".into(),
        };
        for message in [
            assistant("", None, &[call], &ControlTokens::default()),
            tool_result("c1", "functions.bash", "", &ControlTokens::default()),
        ] {
            assert!(message.contains(r#""name":"bash""#), "{message}");
        }
    }
}
