//! Tool calls as JSON text, for models whose chat template does not support tools.
//! llama-server silently drops the tools of such a request, but always honours `response_format`:
//! it becomes a grammar that constrains the sampler. So the system prompt describes the tools and
//! the answer must be one of
//! ```json
//! {"tool": "NAME", "arguments": {...}}
//! {"answer": "text for the user"}
//! ```
//! The first key decides between them, so a small model commits with its first word and repeats
//! nothing. One call per answer: small models lose track of several. Results are sent as user
//! messages, since these templates have no role `tool` either.

use std::fmt::Write;

use serde_json::Map;
use serde_json::Value;
use serde_json::json;
use serde_json::value::RawValue;

use super::json_answer::AnswerPiece;
use super::json_answer::JsonAnswerReader;
use super::native;
use super::schema::reduce;
use crate::control::ControlTokens;
use crate::dialect::ChatMessage;
use crate::message::ToolSpec;
use podbay_event::ToolCall;

/// How many positions in an answer are tried as the beginning of a JSON object.
const MAX_TRIES: usize = 16;

/// Returns the part of the system prompt that describes the tools and the form of an answer.
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

/// Lists the tools with their arguments.
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

/// Describes a reduced schema in a few words.
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
    wrap("reply", &schema(tools))
}

/// Returns the schema of an answer that is a call of one of the tools or text.
pub(crate) fn schema(tools: &[ToolSpec]) -> Value {
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
    if let [only] = choices.as_mut_slice() {
        only.take()
    } else {
        json!({ "anyOf": choices })
    }
}

/// Returns the `response_format` for the caller's own schema.
pub(crate) fn wrap(name: &str, schema: &Value) -> String {
    json!({"type": "json_schema", "json_schema": {"name": name, "strict": true, "schema": schema}})
        .to_string()
}

/// The result of parsing an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ConstrainedAnswer {
    Answer(String),
    Call {
        /// Text in answers before or beside the call; usually empty.
        said: String,
        /// The tool's name.
        name: String,
        /// Byte for byte as written.
        arguments: String,
    },
    /// Meant as a call or an answer, but malformed; the text is the message for the model.
    Faulty(String),
}

/// Parses an answer, with or without a grammar having constrained it.
pub(crate) fn parse(text: &str) -> ConstrainedAnswer {
    let trimmed = text.trim();
    let undressed = trimmed
        .trim_start_matches("```json")
        .trim_start_matches('`')
        .trim_start();
    if is_unfinished_object(undressed) {
        // Objects nested in it are part of it, whatever they look like.
        return ConstrainedAnswer::Faulty(
            "Your reply was cut off or is not valid JSON. Reply with one JSON object: {\"tool\": \"NAME\", \"arguments\": {...}} or {\"answer\": \"text\"}.".to_owned(),
        );
    }
    for (at, _) in trimmed.match_indices('{').take(MAX_TRIES) {
        let mut values =
            serde_json::Deserializer::from_str(&trimmed[at..]).into_iter::<&RawValue>();
        let Some(Ok(object)) = values.next() else {
            continue;
        };
        if let Some(parsed) = parse_object(object.get()) {
            let (before, behind) = (&trimmed[..at], &trimmed[at + values.byte_offset()..]);
            // Text around them proves that no schema was enforced, and then an unmarked call counts
            // only alone.
            let (before, behind) = (without_tag_behind(before), without_tags_before(behind));
            return match parsed {
                ConstrainedAnswer::Call { .. } if !is_bare(before) || has_prose(behind) => {
                    ConstrainedAnswer::Answer(trimmed.to_owned())
                }
                ConstrainedAnswer::Answer(answer) => with_following(answer, behind),
                parsed => parsed,
            };
        }
        // A complete object of another kind: JSON within prose. Its contents are not searched.
        return ConstrainedAnswer::Answer(text.trim().to_owned());
    }
    ConstrainedAnswer::Answer(trimmed.to_owned())
}

/// Combines an answer with what follows it: no schema was enforced, so a further answer, a call, or
/// text counts as well.
fn with_following(first: String, mut behind: &str) -> ConstrainedAnswer {
    let (mut said, mut last) = (first.clone(), first);
    for _ in 0..MAX_TRIES {
        behind = without_tags_before(behind.trim_start_matches(is_wrapping));
        let mut values = serde_json::Deserializer::from_str(behind).into_iter::<&RawValue>();
        let Some(Ok(object)) = behind.starts_with('{').then(|| values.next()).flatten() else {
            break;
        };
        match parse_object(object.get()) {
            // A repeated answer adds nothing.
            Some(ConstrainedAnswer::Answer(more)) => {
                if more != last {
                    said = format!("{}\n\n{}", said.trim_end(), more.trim_start());
                    last = more;
                }
                behind = &behind[values.byte_offset()..];
            }
            Some(ConstrainedAnswer::Call {
                name, arguments, ..
            }) if !has_prose(without_tags_before(&behind[values.byte_offset()..])) => {
                return ConstrainedAnswer::Call {
                    said,
                    name,
                    arguments,
                };
            }
            _ => break,
        }
    }
    let behind = behind.trim_start_matches(is_wrapping).trim_end();
    let rest = if is_unfinished_object(behind) {
        partial_answer(behind)
    } else {
        (behind.starts_with('{') || has_prose(behind)).then(|| behind.to_owned())
    };
    ConstrainedAnswer::Answer(rest.map_or_else(
        || said.clone(),
        |rest| format!("{}\n\n{rest}", said.trim_end()),
    ))
}

/// Returns whether an answer is one object in our form, or the beginning of one where it `is_cut`,
/// so that a schema may have been enforced.
pub(crate) fn is_single_object(text: &str, is_cut: bool) -> bool {
    let trimmed = text.trim();
    match parse(trimmed) {
        ConstrainedAnswer::Faulty(_) => true,
        ConstrainedAnswer::Answer(answer) => {
            trimmed.is_empty() || answer != trimmed || is_cut && partial_answer(trimmed).is_some()
        }
        ConstrainedAnswer::Call { .. } => serde_json::from_str::<&RawValue>(trimmed).is_ok(),
    }
}

/// Returns whether an object begins in our form, as far as it goes.
fn is_reply_object(object: &str) -> bool {
    let Some(rest) = object.strip_prefix('{').map(str::trim_start) else {
        return false;
    };
    ["\"answer\"", "\"tool\""]
        .iter()
        .any(|key| rest.starts_with(key) || key.starts_with(rest))
}

/// Returns whether a text begins with an object in our form that is unterminated or invalid JSON.
fn is_unfinished_object(text: &str) -> bool {
    is_reply_object(text)
        && !matches!(
            serde_json::Deserializer::from_str(text)
                .into_iter::<&RawValue>()
                .next(),
            Some(Ok(_))
        )
}

/// Returns the text in the beginning of a truncated answer, wherever its object begins; `None`
/// where there is none.
pub(crate) fn partial_answer(text: &str) -> Option<String> {
    let is_answer = |at: &usize| text[at + 1..].trim_start().starts_with("\"answer\"");
    let at = text
        .match_indices('{')
        .take(MAX_TRIES)
        .map(|(at, _)| at)
        .find(is_answer)?;
    let mut words = String::new();
    JsonAnswerReader::default().feed(&text[at..], |seen| {
        if let AnswerPiece::Text(more) = seen {
            words.push_str(&more);
        }
    });
    Some(words).filter(|words| !words.trim().is_empty())
}

/// Returns whether a sentence follows an object: words separated by whitespace, before any further
/// object.
fn has_prose(behind: &str) -> bool {
    let line = behind.trim_start_matches(is_wrapping);
    line.starts_with(char::is_alphabetic) && line.contains(' ')
}

/// Returns whether at most the beginning of a fence precedes an object.
fn is_bare(before: &str) -> bool {
    before
        .trim()
        .trim_end_matches("json")
        .chars()
        .all(is_wrapping)
}

/// Returns whether a character after an object is part of a fence or a superfluous closing bracket
/// rather than prose.
fn is_wrapping(c: char) -> bool {
    c.is_whitespace() || matches!(c, '`' | '}' | ']' | ',' | ';' | '"' | '.')
}

/// Strips the opening tag of the call that follows from the end of a text: `<tool_call>`.
fn without_tag_behind(text: &str) -> &str {
    let words = text.trim_end();
    let tag = words
        .strip_suffix('>')
        .and_then(|rest| rest.rfind('<'))
        .filter(|at| is_tag(&words[*at + 1..words.len() - 1]));
    tag.map_or(text, |at| &words[..at])
}

/// Strips the closing tags of a call from what follows it.
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

/// Returns whether this is the name in a tag, rather than text between two angle brackets of prose.
fn is_tag(name: &str) -> bool {
    name.chars().all(|c| {
        c.is_alphanumeric()
            || matches!(
                c,
                '/' | '|' | '_' | ':' | '-' | '=' | '\u{ff5c}' | '\u{2581}'
            )
    })
}

/// Parses an object under the names that models use for its fields; `None` where it is neither a
/// call nor an answer.
fn parse_object(object: &str) -> Option<ConstrainedAnswer> {
    let fields: Map<String, Value> = serde_json::from_str(object).ok()?;
    let raw: std::collections::BTreeMap<String, &RawValue> = serde_json::from_str(object).ok()?;
    let name = ["tool", "name"].iter().find_map(|key| fields.get(*key));
    let arguments = ["arguments", "parameters", "params", "args"]
        .iter()
        .find_map(|key| raw.get(*key));
    if let Some(answer) = fields.get("answer") {
        // Text beside a call cannot know the call's result; beside a call without arguments the
        // answer is more likely meant.
        if let (Some(Value::String(name)), Some(arguments)) = (name, arguments)
            && !name.is_empty()
            && serde_json::from_str::<Map<String, Value>>(arguments.get())
                .is_ok_and(|arguments| !arguments.is_empty())
        {
            let said = answer.as_str().unwrap_or_default().to_owned();
            return Some(ConstrainedAnswer::Call {
                said,
                name: name.clone(),
                arguments: arguments.get().to_owned(),
            });
        }
        return Some(ConstrainedAnswer::Answer(
            answer
                .as_str()
                .map_or_else(|| answer.to_string(), str::to_owned),
        ));
    }
    let name = name?;
    match (name.as_str(), arguments) {
        (Some(name), Some(arguments)) => Some(call(name, arguments.get())),
        (Some(name), None) if fields.contains_key("tool") => {
            // The arguments may lie beside the name.
            let beside: Map<String, Value> = fields
                .iter()
                .filter(|(key, _)| *key != "tool")
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            Some(call(name, &Value::Object(beside).to_string()))
        }
        (None, _) if fields.contains_key("tool") => Some(ConstrainedAnswer::Faulty(
            "\"tool\" must be the name of a tool, as a string.".to_owned(),
        )),
        // `{"name": "x"}` alone is ordinary JSON.
        _ => None,
    }
}

fn call(name: &str, arguments: &str) -> ConstrainedAnswer {
    ConstrainedAnswer::Call {
        said: String::new(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    }
}

/// Returns an assistant's message as the model would have written it.
pub(crate) fn assistant<'a>(
    text: &str,
    calls: &[ToolCall],
    raw: Option<&'a str>,
    tokens: &ControlTokens,
) -> ChatMessage<'a> {
    if let Some(raw) = raw {
        return ChatMessage::new("assistant", tokens.neutralise(raw));
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
    ChatMessage::new("assistant", tokens.neutralise(&content).into_owned())
}

/// Returns the text of the user message that carries a result.
pub(crate) fn tool_result(name: &str, text: &str, is_error: bool) -> String {
    let how = if is_error { "failed" } else { "returned" };
    format!("Tool {name} {how}:\n{text}")
}

#[cfg(test)]
mod tests;
