//! Tool calls as JSON text, for models whose chat template knows no tools.
//!
//! llama-server drops the tools of such a request without a word, while `response_format` always
//! holds: it becomes a grammar that the sampler cannot leave. So the system prompt describes the
//! tools and the answer must be one of
//!
//! ```json
//! {"tool": "NAME", "arguments": {...}}
//! {"answer": "text for the person"}
//! ```
//!
//! The first key decides between them, so a small model commits with its first word and nothing is
//! said twice. One call per answer: small models lose track of several. Results come back as user
//! messages, since these templates know no role `tool` either.

use std::fmt::Write;

use serde_json::Map;
use serde_json::Value;
use serde_json::json;
use serde_json::value::RawValue;

use super::Wire;
use super::answer::Reader;
use super::answer::Seen;
use super::native;
use super::schema::reduce;
use crate::control::Tokens;
use crate::message::ToolSpec;
use podbay_event::ToolCall;

/// How many places of an answer are tried as the beginning of a JSON object.
const MAX_TRIES: usize = 16;

/// Returns what the system prompt says of the tools and of the answer's form.
pub(crate) fn instructions(tools: &[ToolSpec]) -> String {
    let mut out =
        String::from("\n\n# How to answer\n\nEvery reply is one JSON object and nothing else.\n");
    if tools.is_empty() {
        out.push_str("Reply with {\"answer\": \"your text\"}.");
        return out;
    }
    out.push_str(
        "To use a tool: {\"tool\": \"NAME\", \"arguments\": {...}}\n\
         To finish, or to speak to the user: {\"answer\": \"your text\"}\n\
         Use one tool at a time. Its result comes in the next message. Answer only when the task is done.\n\n# Tools\n",
    );
    list(tools, &mut out);
    out
}

/// Lists the tools with what they take.
pub(super) fn list(tools: &[ToolSpec], out: &mut String) {
    for tool in tools {
        let _ = write!(out, "\n{}: {}\n", tool.name, tool.description.trim());
        describe(&tool.parameters, out);
    }
}

/// Lists the arguments, one per line: small models read this better than a schema.
fn describe(parameters: &Value, out: &mut String) {
    let Some(properties) = parameters.get("properties").and_then(Value::as_object) else {
        return;
    };
    let required: Vec<&str> = parameters
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let shapes = reduce(parameters);
    for (name, property) in properties {
        let kind = shapes
            .get("properties")
            .and_then(|all| all.get(name))
            .map_or_else(String::new, kind);
        let optional = if required.contains(&name.as_str()) {
            ""
        } else {
            ", optional"
        };
        let description = property
            .get("description")
            .and_then(Value::as_str)
            .map_or_else(String::new, |text| format!(": {}", text.trim()));
        let _ = writeln!(out, "  {name} ({kind}{optional}){description}");
    }
}

/// Returns a reduced schema in a few words.
fn kind(schema: &Value) -> String {
    if let Some(Value::Array(choices)) = schema.get("enum") {
        return choices
            .iter()
            .map(Value::to_string)
            .collect::<Vec<_>>()
            .join(" or ");
    }
    if let Some(Value::Array(choices)) = schema.get("anyOf") {
        return choices
            .iter()
            .map(kind)
            .filter(|kind| kind != "null")
            .collect::<Vec<_>>()
            .join(" or ");
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("array") => {
            let items = schema.get("items").unwrap_or(&Value::Null);
            format!("list of {}", kind(items))
        }
        Some("object") => match schema.get("properties").and_then(Value::as_object) {
            Some(fields) => {
                let fields: Vec<String> = fields
                    .iter()
                    .map(|(name, value)| format!("{name}: {}", kind(value)))
                    .collect();
                format!("object {{{}}}", fields.join(", "))
            }
            None => "object".to_owned(),
        },
        Some(other) => other.to_owned(),
        None => schema
            .get("const")
            .map_or_else(|| "any".to_owned(), Value::to_string),
    }
}

/// Returns the `response_format` of a request: any of the tools, or an answer. Without tools only
/// the answer.
pub(crate) fn response_format(tools: &[ToolSpec]) -> String {
    let fixed = |properties: Value| {
        let required: Vec<String> = properties
            .as_object()
            .into_iter()
            .flat_map(Map::keys)
            .cloned()
            .collect();
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
    };
    let mut choices: Vec<Value> = tools
        .iter()
        .map(|tool| {
            fixed(json!({"tool": {"const": tool.name}, "arguments": reduce(&tool.parameters)}))
        })
        .collect();
    choices.push(fixed(json!({"answer": {"type": "string"}})));
    let schema = if let [only] = choices.as_mut_slice() {
        only.take()
    } else {
        json!({ "anyOf": choices })
    };
    wrap("reply", &schema)
}

/// Returns the `response_format` for a schema of the caller's own.
pub(crate) fn wrap(name: &str, schema: &Value) -> String {
    json!({"type": "json_schema", "json_schema": {"name": name, "strict": true, "schema": schema}})
        .to_string()
}

/// What an answer turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    Answer(String),
    Call {
        /// What it says in answers before or beside the call; empty for almost all.
        said: String,
        /// The tool.
        name: String,
        /// Byte for byte.
        arguments: String,
    },
    /// Meant as a call or an answer, but not one; the text tells the model so.
    Faulty(String),
}

/// Understands an answer, also one that no grammar held to its form.
pub(crate) fn parse(text: &str) -> Parsed {
    let trimmed = text.trim();
    let undressed = trimmed
        .trim_start_matches("```json")
        .trim_start_matches('`')
        .trim_start();
    if is_half(undressed) {
        // What lies inside of it is a part of it, whatever it looks like.
        return Parsed::Faulty(
            "Your reply was cut off or is not valid JSON. Reply with one JSON object: {\"tool\": \"NAME\", \"arguments\": {...}} or {\"answer\": \"text\"}.".to_owned(),
        );
    }
    for (at, _) in trimmed.match_indices('{').take(MAX_TRIES) {
        let mut values =
            serde_json::Deserializer::from_str(&trimmed[at..]).into_iter::<&RawValue>();
        let Some(Ok(object)) = values.next() else {
            continue;
        };
        if let Some(parsed) = understand(object.get()) {
            let (before, behind) = (&trimmed[..at], &trimmed[at + values.byte_offset()..]);
            // Words around it prove that no schema held, and a call that no mark tells from words
            // is one only alone.
            let (before, behind) = (without_tag_behind(before), without_tags_before(behind));
            return match parsed {
                Parsed::Call { .. } if !is_bare(before) || has_words(behind) => {
                    Parsed::Answer(trimmed.to_owned())
                }
                Parsed::Answer(answer) => followed(answer, behind),
                parsed => parsed,
            };
        }
        // A whole object that is something else: JSON within prose. What lies inside of it is not
        // looked at.
        return Parsed::Answer(text.trim().to_owned());
    }
    Parsed::Answer(trimmed.to_owned())
}

/// Returns what an answer comes to by what stands behind it: no schema held that, so a further
/// answer, a call, or words count as well.
fn followed(first: String, mut behind: &str) -> Parsed {
    let (mut said, mut last) = (first.clone(), first);
    for _ in 0..MAX_TRIES {
        behind = without_tags_before(behind.trim_start_matches(is_dress));
        let mut values = serde_json::Deserializer::from_str(behind).into_iter::<&RawValue>();
        let Some(Ok(object)) = behind.starts_with('{').then(|| values.next()).flatten() else {
            break;
        };
        match understand(object.get()) {
            // One that is repeated says nothing new.
            Some(Parsed::Answer(more)) => {
                if more != last {
                    said = format!("{}\n\n{}", said.trim_end(), more.trim_start());
                    last = more;
                }
                behind = &behind[values.byte_offset()..];
            }
            Some(Parsed::Call {
                name, arguments, ..
            }) if !has_words(without_tags_before(&behind[values.byte_offset()..])) => {
                return Parsed::Call {
                    said,
                    name,
                    arguments,
                };
            }
            _ => break,
        }
    }
    let behind = behind.trim_start_matches(is_dress).trim_end();
    let rest = if is_half(behind) {
        begun_answer(behind)
    } else {
        (behind.starts_with('{') || has_words(behind)).then(|| behind.to_owned())
    };
    Parsed::Answer(rest.map_or_else(
        || said.clone(),
        |rest| format!("{}\n\n{rest}", said.trim_end()),
    ))
}

/// Returns whether an answer is one object of ours, or the beginning of one where it `is_cut`, so
/// that a schema may have held it to that.
pub(crate) fn is_held(text: &str, is_cut: bool) -> bool {
    let trimmed = text.trim();
    match parse(trimmed) {
        Parsed::Faulty(_) => true,
        Parsed::Answer(answer) => {
            trimmed.is_empty() || answer != trimmed || is_cut && begun_answer(trimmed).is_some()
        }
        Parsed::Call { .. } => serde_json::from_str::<&RawValue>(trimmed).is_ok(),
    }
}

/// Returns whether an object begins as ours do, as far as there is any of it.
fn is_ours(object: &str) -> bool {
    let Some(rest) = object.strip_prefix('{').map(str::trim_start) else {
        return false;
    };
    ["\"answer\"", "\"tool\""]
        .iter()
        .any(|key| rest.starts_with(key) || key.starts_with(rest))
}

/// Returns whether a text begins with an object of ours that has no end, or none that JSON has.
fn is_half(text: &str) -> bool {
    is_ours(text)
        && !matches!(
            serde_json::Deserializer::from_str(text)
                .into_iter::<&RawValue>()
                .next(),
            Some(Ok(_))
        )
}

/// Returns the words in the beginning of an answer that was cut, wherever its object begins; `None`
/// where there are none.
pub(crate) fn begun_answer(text: &str) -> Option<String> {
    let is_answer = |at: &usize| text[at + 1..].trim_start().starts_with("\"answer\"");
    let at = text
        .match_indices('{')
        .take(MAX_TRIES)
        .map(|(at, _)| at)
        .find(is_answer)?;
    let mut words = String::new();
    Reader::default().feed(&text[at..], |seen| {
        if let Seen::Text(more) = seen {
            words.push_str(&more);
        }
    });
    Some(words).filter(|words| !words.trim().is_empty())
}

/// Returns whether a sentence stands behind an object: words with a blank between them, and no
/// further object before.
fn has_words(behind: &str) -> bool {
    let line = behind.trim_start_matches(is_dress);
    line.starts_with(char::is_alphabetic) && line.contains(' ')
}

/// Returns whether nothing but the beginning of a fence stands before an object.
fn is_bare(before: &str) -> bool {
    before.trim().trim_end_matches("json").chars().all(is_dress)
}

/// Returns whether a character behind an object is no word: a part of a fence, or one that closes
/// too much.
fn is_dress(c: char) -> bool {
    c.is_whitespace() || matches!(c, '`' | '}' | ']' | ',' | ';' | '"' | '.')
}

/// Returns words without the tag that ends them, which is that of the call behind them:
/// `<tool_call>`.
fn without_tag_behind(text: &str) -> &str {
    let words = text.trim_end();
    let tag = words
        .strip_suffix('>')
        .and_then(|rest| rest.rfind('<'))
        .filter(|at| is_tag(&words[*at + 1..words.len() - 1]));
    tag.map_or(text, |at| &words[..at])
}

/// Returns what stands behind a call without the tags that end it.
fn without_tags_before(text: &str) -> &str {
    let mut words = text.trim_start();
    while let Some(end) = words
        .strip_prefix('<')
        .and_then(|rest| rest.find('>'))
        .filter(|end| is_tag(&words[1..=*end]))
    {
        words = words[end + 2..].trim_start();
    }
    words
}

/// Returns whether this stands in a tag, and not between two signs of prose.
fn is_tag(name: &str) -> bool {
    name.chars().all(|c| {
        c.is_alphanumeric()
            || matches!(
                c,
                '/' | '|' | '_' | ':' | '-' | '=' | '\u{ff5c}' | '\u{2581}'
            )
    })
}

/// Returns what an object says, under the names that models use for it; `None` where it is no reply
/// at all.
fn understand(object: &str) -> Option<Parsed> {
    let fields: Map<String, Value> = serde_json::from_str(object).ok()?;
    let raw: std::collections::BTreeMap<String, &RawValue> = serde_json::from_str(object).ok()?;
    let name = ["tool", "name"].iter().find_map(|key| fields.get(*key));
    let arguments = ["arguments", "parameters", "params", "args"]
        .iter()
        .find_map(|key| raw.get(*key));
    if let Some(answer) = fields.get("answer") {
        // What is said beside a call it cannot know yet; beside one without arguments the answer is
        // more likely meant.
        if let (Some(Value::String(name)), Some(arguments)) = (name, arguments)
            && !name.is_empty()
            && serde_json::from_str::<Map<String, Value>>(arguments.get())
                .is_ok_and(|arguments| !arguments.is_empty())
        {
            let said = answer.as_str().unwrap_or_default().to_owned();
            return Some(Parsed::Call {
                said,
                name: name.clone(),
                arguments: arguments.get().to_owned(),
            });
        }
        return Some(Parsed::Answer(
            answer
                .as_str()
                .map_or_else(|| answer.to_string(), str::to_owned),
        ));
    }
    let name = name?;
    match (name.as_str(), arguments) {
        (Some(name), Some(arguments)) => Some(call(name, arguments.get())),
        (Some(name), None) if fields.contains_key("tool") => {
            // Arguments may lie beside the name.
            let beside: Map<String, Value> = fields
                .iter()
                .filter(|(key, _)| *key != "tool")
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            Some(call(name, &Value::Object(beside).to_string()))
        }
        (None, _) if fields.contains_key("tool") => Some(Parsed::Faulty(
            "\"tool\" must be the name of a tool, as a string.".to_owned(),
        )),
        // `{"name": "x"}` alone is ordinary JSON.
        _ => None,
    }
}

fn call(name: &str, arguments: &str) -> Parsed {
    Parsed::Call {
        said: String::new(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    }
}

/// Returns an assistant's message as the model would have written it.
pub(crate) fn assistant(
    text: &str,
    calls: &[ToolCall],
    raw: Option<&str>,
    tokens: &Tokens,
) -> String {
    if let Some(raw) = raw {
        return Wire::new("assistant", &tokens.neutralise(raw)).json();
    }
    let written: Vec<String> = calls
        .iter()
        .map(|call| {
            format!(
                "{{\"tool\": {}, \"arguments\": {}}}",
                Value::from(call.name.as_str()),
                native::arguments(&call.arguments)
            )
        })
        .collect();
    let content = if written.is_empty() {
        json!({ "answer": text }).to_string()
    } else {
        written.join("\n")
    };
    Wire::new("assistant", &tokens.neutralise(&content)).json()
}

/// Returns the text of the user message that carries a result.
pub(crate) fn tool_result(name: &str, text: &str, is_error: bool) -> String {
    let how = if is_error { "failed" } else { "returned" };
    format!("Tool {name} {how}:\n{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool() -> ToolSpec {
        ToolSpec {
            name: "read_file".into(),
            description: "Reads a file.".into(),
            parameters: json!({
                "type": "object",
                "properties": {"path": {"type": "string", "description": "which"}, "limit": {"type": ["integer", "null"], "minimum": 1}},
                "required": ["path"],
            }),
        }
    }

    #[test]
    fn the_tools_are_told_in_few_words() {
        insta::assert_snapshot!(instructions(&[tool()]).trim(), @r#"
        # How to answer

        Every reply is one JSON object and nothing else.
        To use a tool: {"tool": "NAME", "arguments": {...}}
        To finish, or to speak to the user: {"answer": "your text"}
        Use one tool at a time. Its result comes in the next message. Answer only when the task is done.

        # Tools

        read_file: Reads a file.
          path (string): which
          limit (integer, optional)
        "#);
    }

    #[test]
    fn the_schema_is_a_union_of_tools_and_answer() {
        insta::assert_snapshot!(response_format(&[tool()]), @r#"{"type":"json_schema","json_schema":{"name":"reply","strict":true,"schema":{"anyOf":[{"type":"object","properties":{"tool":{"const":"read_file"},"arguments":{"type":"object","properties":{"path":{"type":"string"},"limit":{"anyOf":[{"type":"integer"},{"type":"null"}]}},"required":["path"],"additionalProperties":false}},"required":["tool","arguments"],"additionalProperties":false},{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"],"additionalProperties":false}]}}}"#);
        insta::assert_snapshot!(response_format(&[]), @r#"{"type":"json_schema","json_schema":{"name":"reply","strict":true,"schema":{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"],"additionalProperties":false}}}"#);
    }

    #[test]
    fn replies_are_understood_in_many_dresses() {
        let call = |arguments: &str| super::call("bash", arguments);
        assert_eq!(
            parse(r#"{"tool": "bash", "arguments": { "command":"ls" }}"#),
            call(r#"{ "command":"ls" }"#)
        );
        assert_eq!(
            parse("```json\n{\"name\": \"bash\", \"parameters\": {}}\n```"),
            call("{}")
        );
        assert_eq!(parse(r#"{"tool": "bash"}"#), call("{}"));
        assert_eq!(
            parse(r#"{"tool": "bash", "command": "ls"}"#),
            call(r#"{"command":"ls"}"#)
        );
        for both in [
            r#"{"tool": "bash", "arguments": {"a": 1}, "answer": "I did it."}"#,
            r#"{"answer": "I did it.", "tool": "bash", "arguments": {"a": 1}}"#,
        ] {
            let expected = Parsed::Call {
                said: "I did it.".into(),
                name: "bash".into(),
                arguments: r#"{"a": 1}"#.into(),
            };
            assert_eq!(parse(both), expected, "{both}");
        }
        assert_eq!(
            parse(r#"{"tool": "none", "arguments": {}, "answer": "Hi."}"#),
            Parsed::Answer("Hi.".to_owned())
        );
        let answer = |text: &str| Parsed::Answer(text.to_owned());
        // Where no schema held it is one only alone.
        let shown = "{\"tool\": \"bash\", \"arguments\": {}}";
        for talk in [
            format!("Never run this:\n{shown}"),
            format!("Sure!\n```json\n{shown}\n```"),
            format!("{{broken}} {shown}"),
            format!("I read it.\n{shown}\n{shown}"),
            format!("For example, a call looks like `{shown}` and nobody should run it."),
            format!("The README says \"{shown}\" which is an injection. I am done."),
            format!("It says this, and I refused:\n\n> {shown}\n\nThat is all."),
            format!("Here:\n```text\n{shown}\n```"),
            format!("A call has this form:\n{shown}"),
            format!("{shown} is what it says there."),
            format!("Never do this:\n\n<tool_call>\n{shown}\n</tool_call>\n\nIt breaks things."),
            format!("Never do this:\n<|tool_call|>{shown}"),
            format!("<tool_call>{shown}</tool_call></s> is what it says."),
        ] {
            assert_eq!(parse(&talk), answer(&talk));
        }
        assert_eq!(parse(r#" {"answer": "done\n"} "#), answer("done\n"));
        assert_eq!(parse("Just words."), answer("Just words."));
        assert_eq!(
            parse("Set {\"name\": \"x\"} in the file."),
            answer("Set {\"name\": \"x\"} in the file.")
        );
        assert_eq!(parse(""), answer(""));
        assert!(matches!(
            parse(r#"{"tool": "bash", "arguments": {"comm"#),
            Parsed::Faulty(_)
        ));
        assert!(matches!(parse(r#"{"tool": 5}"#), Parsed::Faulty(_)));
    }

    #[test]
    fn what_stands_behind_an_answer_counts() {
        let answer = |text: &str| Parsed::Answer(text.to_owned());
        assert_eq!(
            parse("{\"answer\":\"hi\"}\n{\"answer\":\"ho\"}"),
            answer("hi\n\nho")
        );
        assert_eq!(
            parse("```json\n{\"answer\":\"hi\"}\n```\n```\n{\"answer\":\"hi\"}\n```"),
            answer("hi"),
            "the same again"
        );
        assert_eq!(parse("{\"answer\":\"hi\"}</s><|im_end|>"), answer("hi"));
        assert_eq!(
            parse("{\"answer\":\"hi\"}}\n```\nThere is more to say."),
            answer("hi\n\nThere is more to say.")
        );
        assert_eq!(
            parse(
                "{\"answer\":\"I look.\"}\n{\"tool\":\"bash\",\"arguments\":{\"command\":\"ls\"}}"
            ),
            Parsed::Call {
                said: "I look.".into(),
                name: "bash".into(),
                arguments: "{\"command\":\"ls\"}".into()
            }
        );
        let talk = "{\"tool\":\"bash\",\"arguments\":{}} is what it wrote.";
        assert_eq!(
            parse(&format!("{{\"answer\":\"hi\"}}\n{talk}")),
            answer(&format!("hi\n\n{talk}")),
            "a call within words is none"
        );
        assert_eq!(
            parse("{\"answer\":\"hi\"}\n{\"answer\":\"and the re"),
            answer("hi\n\nand the re"),
            "cut"
        );
        // A call comes first: what the model says of its result it cannot know.
        assert_eq!(
            parse("{\"tool\":\"bash\",\"arguments\":{}}\n{\"answer\":\"done\"}"),
            call("bash", "{}")
        );
    }

    #[test]
    fn what_lies_in_half_an_object_is_a_part_of_it() {
        for half in [
            r#"{"tool": "write_file", "arguments": {"path": "a", "content": {"tool": "bash", "arguments": {"command": "ls"}}"#,
            r#"{"tool": "write_file", "arguments": {"content": {"tool": "bash", "arguments": {}}, oops}}"#,
            r#"{"answer": "It is `fn main() {}` and"#,
            "{\n  \"answer\": \"It is {} and",
            "```json\n{\n\t\"tool\": \"bash\"",
            r#"{"tool": "bash", "arguments": {"command": "ls"},}"#,
            "{",
            "{\"ans",
        ] {
            assert!(
                matches!(parse(half), Parsed::Faulty(_)),
                "{half} {:?}",
                parse(half)
            );
        }
    }

    #[test]
    fn half_an_answer_is_its_words() {
        let begun = |text: &str| begun_answer(text).unwrap_or_default();
        for text in [
            r#"{"answer": "It is {} and"#,
            "{\n  \"answer\" :\n  \"It is {} and",
            "```json\n{\"answer\": \"It is {} and",
            "Sure, {name}!\n{\"answer\": \"It is {} and",
            "{\"answer\": \"It is {} and\\u26",
        ] {
            assert_eq!(begun(text), "It is {} and", "{text}");
        }
        for text in [
            "",
            "{\"answer\"",
            "{\"answer\": \" ",
            "{\"tool\": \"x",
            "Words {alone}.",
        ] {
            assert_eq!(begun_answer(text), None, "{text}");
        }
    }

    #[test]
    fn a_megabyte_of_braces_is_given_up_soon() {
        let started = std::time::Instant::now();
        for text in [
            "{".repeat(1 << 20),
            "{\"a\":".repeat(1 << 18),
            "{\"".repeat(1 << 19),
        ] {
            assert!(matches!(
                parse(&text),
                Parsed::Answer(_) | Parsed::Faulty(_)
            ));
        }
        assert!(started.elapsed().as_secs() < 120);
    }

    #[test]
    fn history_repeats_what_the_model_wrote() {
        let call = ToolCall {
            id: "c".into(),
            name: "bash".into(),
            arguments: "{\"a\":1}".into(),
        };
        let common = Tokens::default();
        assert_eq!(
            assistant("", &[], Some("{\"answer\" :\"x\"}"), &common),
            r#"{"role":"assistant","content":"{\"answer\" :\"x\"}"}"#
        );
        assert_eq!(
            assistant("", &[call], None, &common),
            r#"{"role":"assistant","content":"{\"tool\": \"bash\", \"arguments\": {\"a\":1}}"}"#
        );
        assert_eq!(
            assistant("hi", &[], None, &common),
            r#"{"role":"assistant","content":"{\"answer\":\"hi\"}"}"#
        );
    }
}
