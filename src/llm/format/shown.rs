//! Calls that stand in a text which the model is shown, in whatever dress: nobody makes them there, but who repeats one most likely quotes it.

use std::borrow::Cow;

use serde_json::Value;

use super::fences::Fences;
use super::text;
use super::text::Call;
use super::text::Tools;

/// How many braces of a text that begin no JSON are tried.
const MAX_IN_VAIN: usize = 1024;
/// How far an object may go, in bytes.
const MAX_OBJECT: usize = 128 * 1024;
/// Deeper no call lies in an object.
const MAX_DEPTH: usize = 8;

/// Returns all calls in a text, in the form of any model, within other JSON, in strings of JSON, in blocks of code, and with lines that are numbered.
pub fn calls(text: &str, tools: &Tools) -> Vec<Call> {
    let plain = undressed(text);
    let mut found = Vec::new();
    let mut look = |text: &str| {
        let parsed = text::parse(text, tools, None);
        found.extend(parsed.calls);
        found.extend(parsed.mentions.into_iter().flat_map(|mention| mention.calls));
        objects(text, &mut found);
    };
    look(&plain);
    if plain.contains("\\\"") {
        look(&unescaped(&plain));
    }
    found
}

/// Returns all texts in the arguments of a call, as they were meant: what a file is to hold, a command.
pub fn written(arguments: &str) -> Vec<String> {
    fn add(value: Value, texts: &mut Vec<String>) {
        match value {
            Value::String(text) => texts.push(text),
            Value::Array(items) => items.into_iter().for_each(|item| add(item, texts)),
            Value::Object(fields) => fields.into_iter().for_each(|(_, field)| add(field, texts)),
            _ => {}
        }
    }
    let mut texts = Vec::new();
    match serde_json::from_str(arguments) {
        Ok(value) => add(value, &mut texts),
        Err(_) => texts.push(arguments.to_owned()),
    }
    texts
}

/// Returns a text without the numbers of its lines and without fences.
pub fn undressed(text: &str) -> Cow<'_, str> {
    let mut fences = Fences::default();
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let line = match line.trim_start().split_once('\t') {
            Some((number, rest)) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => rest,
            _ => line,
        };
        if !fences.take(line) {
            out.push_str(line);
            out.push('\n');
        }
    }
    if out.trim_end() == text.trim_end() { Cow::Borrowed(text) } else { Cow::Owned(out) }
}

/// Returns a text as it is where it stands within a string of JSON.
fn unescaped(text: &str) -> String {
    let (mut out, mut chars) = (String::with_capacity(text.len()), text.chars());
    while let Some(c) = chars.next() {
        out.extend(if c == '\\' {
            chars.next().map(|escaped| match escaped {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                other => other,
            })
        } else {
            Some(c)
        });
    }
    out
}

/// Adds the calls in all JSON objects of a text.
fn objects(text: &str, found: &mut Vec<Call>) {
    let (mut at, mut n_in_vain) = (0, 0);
    while let Some(next) = text[at..].find('{') {
        at += next;
        let end = text.floor_char_boundary(at.saturating_add(MAX_OBJECT));
        let mut values = serde_json::Deserializer::from_str(&text[at..end]).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                within(&value, MAX_DEPTH, found);
                at += values.byte_offset();
            }
            _ if n_in_vain == MAX_IN_VAIN => return,
            _ => {
                n_in_vain += 1;
                at += 1;
            }
        }
    }
}

fn within(value: &Value, depth: usize, found: &mut Vec<Call>) {
    let Some(depth) = depth.checked_sub(1) else { return };
    match value {
        Value::Array(items) => items.iter().for_each(|item| within(item, depth, found)),
        Value::Object(fields) => {
            let name = ["tool", "name", "function"].iter().find_map(|key| fields.get(*key)?.as_str());
            let arguments = ["arguments", "parameters", "params", "args", "input"].iter().find_map(|key| fields.get(*key));
            if let (Some(name), Some(arguments)) = (name, arguments) {
                // Some write them as a string of JSON.
                let arguments = arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
                found.push(Call { name: name.to_owned(), arguments });
            }
            fields.values().for_each(|field| within(field, depth, found));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ToolSpec;

    #[track_caller]
    fn check(text: &str, expected: bool) {
        let schema = serde_json::json!({"type": "object", "properties": {"command": {"type": "string"}}});
        let tools = Tools::new(&[ToolSpec { name: "bash".into(), description: String::new(), parameters: schema }]);
        let found = calls(text, &tools);
        let is_it = |call: &Call| {
            call.name == "bash" && serde_json::from_str::<Value>(&call.arguments).is_ok_and(|value| value["command"] == "ls \"a b\"")
        };
        assert_eq!(found.iter().any(is_it), expected, "{text}: {found:?}");
    }

    #[test]
    fn what_a_call_wrote_is_read_without_its_json() {
        let arguments = r#"{"path": "a", "edits": [{"old": 1, "new": "x\n\"y\""}], "content": ""}"#;
        let mut texts = written(arguments);
        texts.sort();
        assert_eq!(texts, ["", "a", "x\n\"y\""]);
        assert_eq!(written("{\"path\": "), ["{\"path\": "]);
    }

    #[test]
    fn a_call_is_found_in_every_dress() {
        let call = r#"{"name": "bash", "arguments": {"command": "ls \"a b\""}}"#;
        let escaped = Value::from(call).to_string();
        for text in [
            call.to_owned(),
            format!("It says {call} there."),
            format!("1\tDo this:\n2\t<tool_call>\n3\t{call}\n4\t</tool_call>\n"),
            format!("For example:\n```json\n{call}\n```\nis a call."),
            format!("{{\"text\": {escaped}}}"),
            format!("fn main() {{ let it = {escaped}; }}"),
            r#"{"choices": [{"message": {"tool_calls": [{"function": {"arguments": "{\"command\": \"ls \\\"a b\\\"\"}", "name": "bash"}}]}}]}"#.to_owned(),
            "{\n  \"arguments\":\n  {\"command\":\"ls \\u0022a b\\u0022\"},\n  \"tool\": \"bash\"\n}".to_owned(),
            "7\t<function=bash>\n8\t<parameter=command>\n9\tls \"a b\"\n10\t</parameter>\n11\t</function>".to_owned(),
        ] {
            check(&text, true);
        }
        for text in
            ["", "Run `bash` with ls \"a b\".", "bash: ls \"a b\"", r#"{"name": "bash", "command": "ls \"a b\""}"#, &"{".repeat(100_000)]
        {
            check(text, false);
        }
    }
}
