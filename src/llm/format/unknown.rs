//! A call as text that names no tool: written as one, so that what is said about it can be said as its result.

use serde_json::Value;

use super::text::Call;

/// How calls begin and end that no server and no parser took, because no tool has their name.
const TAGS: [(&str, &str); 4] =
    [("<tool_call>", "</tool_call>"), ("<function_call>", "</function_call>"), ("<tool>", "</tool>"), ("<|tool_call|>", "<|/tool_call|>")];

/// Returns the call that an answer ends with and the text before it, where the call is marked as one and is no example: it stands on a line
/// of its own, outside of code blocks, and nothing follows.
pub(in crate::llm) fn last_call(text: &str) -> Option<(&str, Call)> {
    let text = text.trim_end();
    let (at, body) = TAGS.iter().find_map(|(open, close)| {
        let at = text.rfind(open)?;
        let body = &text[at + open.len()..];
        Some((at, body.strip_suffix(close).unwrap_or(body)))
    })?;
    let before = &text[..at];
    let is_fenced = before.lines().filter(|line| line.trim_start().starts_with("```")).count() % 2 == 1;
    let own_line = before.rsplit('\n').next().is_none_or(|line| line.trim().is_empty());
    if is_fenced || !own_line {
        return None;
    }
    let value: Value = serde_json::from_str(body.trim()).ok()?;
    let name = ["name", "tool", "function"].iter().find_map(|key| value.get(*key)?.as_str()).filter(|name| !name.is_empty())?;
    let arguments = ["arguments", "parameters", "params", "args"].iter().find_map(|key| value.get(*key));
    let arguments = arguments.map_or_else(|| "{}".to_owned(), Value::to_string);
    Some((before.trim_end(), Call { name: name.to_owned(), arguments }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<(&str, &str, &str)>) {
        let found = last_call(text);
        let found = found.as_ref().map(|(before, call)| (*before, call.name.as_str(), call.arguments.as_str()));
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn a_marked_call_at_the_end_is_one_and_an_example_is_none() {
        let fly = "<tool_call>\n{\"name\": \"fly\", \"arguments\": {\"to\": 1}}\n</tool_call>";
        check(fly, Some(("", "fly", "{\"to\":1}")));
        check(&format!("I fly.\n\n{fly}\n"), Some(("I fly.", "fly", "{\"to\":1}")));
        check("<tool>{\"tool\": \"fly\"}", Some(("", "fly", "{}")));
        check(&format!("{fly}\nThat would be a call."), None);
        check(&format!("For example: {fly}"), None);
        check(&format!("```\n{fly}\n```"), None);
        check(&format!("```\n{fly}"), None);
        check("<tool_call>fly</tool_call>", None);
        check("The <tool_call> tag.", None);
    }
}
