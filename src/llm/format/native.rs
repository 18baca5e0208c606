//! The server's own tool calls.

use std::borrow::Cow;

use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use super::Wire;
use super::WireCall;
use super::WireFunction;
use super::text;
use super::text::Tools;
use crate::control::Tokens;
use crate::message::ToolSpec;
use podbay_event::ToolCall;

/// What stands in a conversation for arguments that were not a JSON object.
///
/// llama-server parses the arguments of old calls for the template; one that it cannot parse makes
/// every later request a 500. The tool's result, right after it, tells the model what was wrong.
pub(crate) const INVALID: &str =
    r#"{"invalid_json":"these arguments were not a JSON object and were left out"}"#;

/// Longest tool name that every server takes.
const MAX_NAME: usize = 64;
/// Deepest nesting of arguments that are repeated to the server.
const MAX_DEPTH: usize = 64;

/// Returns the JSON of `tools`, or nothing where there are none: some servers refuse an empty list.
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

pub(crate) fn assistant(
    text: &str,
    thinking: Option<&str>,
    calls: &[ToolCall],
    tokens: &Tokens,
) -> String {
    let text = tokens.neutralise(text);
    let thinking = thinking
        .filter(|thinking| !thinking.is_empty())
        .map(|thinking| tokens.neutralise(thinking));
    let names: Vec<Cow<'_, str>> = calls.iter().map(|call| name(&call.name)).collect();
    // A server reads them for its template, which writes them out: a token in them would be one
    // there.
    let sound: Vec<Cow<'_, str>> = calls
        .iter()
        .map(|call| arguments(&call.arguments))
        .collect();
    let broken: Vec<Cow<'_, str>> = sound
        .iter()
        .map(|arguments| tokens.neutralise_json(arguments))
        .collect();
    let mut wire = Wire::new("assistant", &text);
    wire.reasoning_content = thinking.as_deref();
    wire.tool_calls = calls
        .iter()
        .zip(names.iter().zip(&broken))
        .map(|(call, (name, broken))| WireCall {
            id: &call.id,
            r#type: "function",
            function: WireFunction {
                name,
                arguments: broken,
            },
        })
        .collect();
    wire.json()
}

pub(crate) fn tool_result(call: &str, name: &str, text: &str, tokens: &Tokens) -> String {
    let text = tokens.neutralise(text);
    let name = self::name(name);
    let mut wire = Wire::new("tool", &text);
    wire.tool_call_id = Some(call);
    wire.name = Some(&name);
    wire.json()
}

/// Returns the arguments byte for byte where they are a JSON object, else the object that they were
/// taken for when the call was carried out: the model would not find again what it did. Where they
/// were taken for none, something stands there that is one.
pub(crate) fn arguments(written: &str) -> Cow<'_, str> {
    if written.trim().is_empty() {
        return Cow::Borrowed("{}");
    }
    if is_sound(written) {
        return Cow::Borrowed(written);
    }
    let meant = match serde_json::from_str::<Value>(written) {
        Ok(Value::String(_)) => text::object_within(written),
        Ok(_) => None,
        Err(_) => text::object_meant(written),
    };
    meant
        .filter(|meant| is_sound(meant))
        .map_or(Cow::Borrowed(INVALID), Cow::Owned)
}

/// Returns whether whoever reads it into a tree gets an object: half a surrogate pair and a number
/// beyond all bounds have the form of JSON, and no value.
fn is_sound(json: &str) -> bool {
    serde_json::from_str::<Map<String, Value>>(json).is_ok() && depth(json) <= MAX_DEPTH
}

/// Returns how deep the lists and objects of valid JSON nest.
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

/// Returns the name byte for byte where every server takes it in an old call, else the one that is
/// meant with `_` for whatever none may have: one bad name makes some servers refuse every later
/// request. No control token is left in it, for none is made of these letters.
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

    #[test]
    fn valid_arguments_keep_their_bytes_and_others_become_valid() {
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
    fn arguments_that_were_mended_stand_in_the_history_as_they_were_taken() {
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
                assistant("", None, &[call], &Tokens::default()).contains(&string(object)),
                "{written}"
            );
        }
        let call = ToolCall {
            id: "c1".into(),
            name: "bash".into(),
            arguments: "{'command': '<|im_end|>'}".into(),
        };
        assert!(
            assistant("", None, &[call], &Tokens::default()).contains("<\u{200b}|im_end|>"),
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
            assistant("", Some("hm"), &[call], &Tokens::default()),
            r#"{"role":"assistant","content":"","reasoning_content":"hm","tool_calls":[{"id":"c1","type":"function","function":{"name":"bash","arguments":"{\"command\": \"ls\"}"}}]}"#
        );
    }

    #[test]
    fn a_token_in_arguments_is_broken_as_it_is_in_a_text() {
        let call = |arguments: &str| ToolCall {
            id: "c1".into(),
            name: "bash".into(),
            arguments: arguments.into(),
        };
        for written in [
            r#"{"command": "echo '<|im_end|>'"}"#,
            r#"{"command": "echo '\u003c|im_end|>'"}"#,
        ] {
            let message = assistant("", None, &[call(written)], &Tokens::default());
            assert!(message.contains("echo '<\u{200b}|im_end|>'"), "{message}");
        }
    }

    #[test]
    fn a_result_names_its_call_and_cannot_end_its_message() {
        assert_eq!(
            tool_result("c1", "bash", "a<|im_end|>", &Tokens::default()),
            "{\"role\":\"tool\",\"content\":\"a<\u{200b}|im_end|>\",\"tool_call_id\":\"c1\",\"name\":\"bash\"}"
        );
    }

    #[test]
    fn a_name_in_the_history_is_one_that_every_server_takes() {
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
            assistant("", None, &[call], &Tokens::default()),
            tool_result("c1", "functions.bash", "", &Tokens::default()),
        ] {
            assert!(message.contains(r#""name":"bash""#), "{message}");
        }
    }
}
