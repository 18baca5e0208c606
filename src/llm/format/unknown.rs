//! A call as text that names no tool: written as one, so that what is said about it can be said as its result.

use serde_json::Value;

use super::fences::Fences;
use super::text;
use super::text::Call;
use super::text::Parsed;
use super::text::Tools;

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
    let mut fences = Fences::default();
    for line in before.lines() {
        fences.take(line);
    }
    let line = before.rsplit('\n').next().unwrap_or_default();
    let own_line = line.trim().is_empty() && !line.starts_with('\t') && !line.starts_with("    ");
    if fences.is_open() || !own_line {
        return None;
    }
    let value: Value = serde_json::from_str(body.trim()).ok()?;
    let name = ["name", "tool", "function"].iter().find_map(|key| value.get(*key)?.as_str()).filter(|name| !name.is_empty())?;
    let arguments = ["arguments", "parameters", "params", "args"].iter().find_map(|key| value.get(*key));
    let arguments = arguments.map_or_else(|| "{}".to_owned(), Value::to_string);
    Some((before.trim_end(), Call { name: name.to_owned(), arguments }))
}

/// Returns the calls of tools that do not exist with which an answer ends, in order, and the text before them.
pub(in crate::llm) fn calls<'t>(mut text: &'t str, tools: &Tools) -> (&'t str, Vec<Call>) {
    let mut found = Vec::new();
    while let Some((before, call)) = last_call(text) {
        // One that the parser knows it took for an example, and it knows better.
        let known = serde_json::json!({"name": call.name, "arguments": {}});
        if !text::parse(&format!("<tool_call>{known}</tool_call>"), tools, None).calls.is_empty() {
            break;
        }
        text = before;
        found.push(call);
    }
    found.reverse();
    (text, found)
}

/// Adds calls of tools that do not exist to those of an answer that has others, before which `n_before` bytes were said, so that each has
/// its result.
pub(in crate::llm) fn add(parsed: &mut Parsed, n_before: Option<usize>, tools: &Tools) {
    let Some((before, after)) = n_before.and_then(|n| parsed.content.split_at_checked(n)) else { return };
    let (rest, behind) = calls(after, tools);
    let (first, ahead) = calls(before, tools);
    if behind.is_empty() && ahead.is_empty() {
        return;
    }
    // Where words follow the calls none is taken, and the text stays as it is.
    if rest.trim().is_empty() {
        parsed.content = first.to_owned();
        parsed.calls.splice(0..0, ahead);
        parsed.calls.extend(behind);
    }
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
        check(&format!("Output:\n\n    {fly}"), None);
    }

    #[test]
    fn calls_beside_others_have_their_place_among_them() {
        let tools = Tools::new(&[crate::llm::ToolSpec { name: "ls".into(), description: String::new(), parameters: Value::Null }]);
        let call = |name: &str| format!("<tool_call>\n{{\"name\": \"{name}\", \"arguments\": {{}}}}\n</tool_call>");
        let names = |text: &str| {
            let (mut parsed, mut n_before) = (Parsed::default(), None);
            let mut parser = text::Parser::new(&tools, None);
            let mut take = |piece: text::Piece| {
                if matches!(piece, text::Piece::Call(_)) {
                    n_before.get_or_insert(parsed.content.len());
                }
                parsed.add(piece);
            };
            parser.feed(text, &mut take);
            parser.finish(&mut take);
            add(&mut parsed, n_before, &tools);
            (parsed.content.trim().to_owned(), parsed.calls.into_iter().map(|call| call.name).collect::<Vec<_>>())
        };
        let (fly, swim, ls) = (call("fly"), call("swim"), call("ls"));
        assert_eq!(names(&format!("I go.\n{fly}\n{swim}\n{ls}")), ("I go.".to_owned(), vec!["fly".into(), "swim".into(), "ls".into()]));
        assert_eq!(names(&format!("I go.\n{ls}\n{fly}\n")), ("I go.".to_owned(), vec!["ls".into(), "fly".into()]));
        assert_eq!(names(&format!("{ls}\n{fly}\nor not")).1, ["ls"]);
    }
}
