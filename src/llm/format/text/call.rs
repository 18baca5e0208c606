//! Turns a JSON object into a call.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::Map;
use serde_json::Value;
use serde_json::value::RawValue;

use super::cursor::Cursor;
use super::json;
use super::long_numbers;
use super::tools::Tools;

/// A tool's name and its arguments, a JSON object.
/// Where the model wrote valid JSON, the arguments are its own bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub name: String,
    pub arguments: String,
}

impl Call {
    /// Returns the arguments on one line, without insignificant whitespace; long numbers keep their
    /// digits.
    pub fn compact(&self) -> String {
        match json::value(&mut Cursor::new(&self.arguments, 0, true), 0) {
            Ok(value) => long_numbers::write(&value),
            // Deeper than any tool's arguments.
            Err(_) => serde_json::from_str::<Value>(&self.arguments)
                .map_or_else(|_| "null".to_owned(), |value| value.to_string()),
        }
    }
}

const NAMES: [&str; 7] = [
    "name",
    "tool",
    "tool_name",
    "function_name",
    "function",
    "recipient_name",
    ACTION,
];
/// Where its value is not a tool's name it is a field like any other.
const ACTION: &str = "action";
pub(super) const ARGUMENTS: [&str; 8] = [
    "arguments",
    "parameters",
    "params",
    "args",
    "input",
    "tool_input",
    "kwargs",
    "action_input",
];
/// Fields that wrap the call.
const WRAPPERS: [&str; 3] = ["function", "tool_call", "function_call"];
/// Fields of a call besides name and arguments.
const BESIDES: [&str; 5] = ["id", "type", "call_id", "tool_call_id", "index"];
/// How many times arguments may be encoded as a string.
const MAX_LAYERS: usize = 4;

/// What an object must have to be a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallForm {
    /// At a position where only calls occur: the arguments may be missing, or lie beside the name.
    Marked,
    /// The text ends before the object does: name and arguments must both be present, in a field of
    /// their own.
    Cut,
    /// Anywhere else: name and arguments must both be present, the arguments in a field of their
    /// own or, beside a field that only names tools, with all required ones. Many files have a
    /// `name` and a `command`.
    Open,
}

impl CallForm {
    /// Returns the tool that a call of this form means by `written`.
    fn name<'n>(self, written: &'n str, tools: &'n Tools) -> Option<&'n str> {
        match self {
            Self::Marked => tools.called(written),
            Self::Cut | Self::Open => tools.resolve(written),
        }
    }
}

/// Returns the calls that a value represents: an object, or a list of them. `text` is its source.
pub(super) fn calls(text: &str, value: &Value, form: CallForm, tools: &Tools) -> Vec<Call> {
    if let Some(call) = raw(text, form, tools, 0) {
        return vec![call];
    }
    if let Value::Array(items) = value {
        let whole: Option<Vec<&RawValue>> = serde_json::from_str(text).ok();
        let texts = whole.filter(|texts| texts.len() == items.len());
        return items
            .iter()
            .enumerate()
            .filter(|(_, item)| item.is_object())
            .flat_map(|(n, item)| {
                calls(
                    texts.as_ref().map_or("", |texts| texts[n].get()),
                    item,
                    form,
                    tools,
                )
            })
            .collect();
    }
    let Value::Object(fields) = value else {
        return Vec::new();
    };
    if let Some(list @ Value::Array(_)) = fields.get("tool_calls") {
        return calls("", list, form, tools);
    }
    of_fields(fields, form, tools, 0).into_iter().collect()
}

/// Returns the call in valid JSON with its arguments byte for byte.
fn raw(text: &str, form: CallForm, tools: &Tools, depth: usize) -> Option<Call> {
    if depth > WRAPPERS.len() || !text.starts_with('{') {
        return None;
    }
    let fields: HashMap<Cow<str>, &RawValue> = serde_json::from_str(text).ok()?;
    if defines(|key| fields.contains_key(key)) {
        return None;
    }
    let arguments = ARGUMENTS
        .iter()
        .find_map(|key| fields.get(*key))
        .filter(|value| value.get().starts_with('{'));
    if let Some(arguments) = arguments
        && let Some(name) = NAMES
            .iter()
            .find_map(|key| serde_json::from_str::<String>(fields.get(*key)?.get()).ok())
    {
        let is_schema = arguments.get().contains("\"properties\"")
            && serde_json::from_str(arguments.get()).is_ok_and(|value| is_schema(&value));
        let name = form.name(&name, tools).filter(|_| !is_schema)?;
        return Some(Call {
            name: name.to_owned(),
            arguments: arguments.get().to_owned(),
        });
    }
    WRAPPERS
        .iter()
        .find_map(|key| raw(fields.get(*key)?.get(), form, tools, depth + 1))
}

fn of_fields(
    fields: &Map<String, Value>,
    form: CallForm,
    tools: &Tools,
    depth: usize,
) -> Option<Call> {
    if depth > WRAPPERS.len() {
        return None;
    }
    if defines(|key| fields.contains_key(key)) {
        return None;
    }
    let is_name = |key: &str, name: &str| key != ACTION || tools.resolve(name).is_some();
    let name = NAMES
        .iter()
        .find_map(|key| Some((*key, fields.get(*key)?.as_str()?)))
        .filter(|(key, name)| is_name(key, name));
    let Some((name_key, name)) = name else {
        return WRAPPERS
            .iter()
            .find_map(|key| of_fields(fields.get(*key)?.as_object()?, form, tools, depth + 1));
    };
    let name = form.name(name, tools)?;
    let arguments = match (ARGUMENTS.iter().find_map(|key| fields.get(*key)), form) {
        (Some(written), _) => arguments(written)?,
        (None, CallForm::Cut) => return None,
        (None, CallForm::Open | CallForm::Marked) => {
            let beside = |key: &String| key != name_key && !BESIDES.contains(&key.as_str());
            let beside: Map<String, Value> = fields
                .iter()
                .filter(|(key, _)| beside(key))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            let says_tool = matches!(name_key, "tool" | "tool_name" | "action")
                && beside.len() + 1 == fields.len();
            if form == CallForm::Open && !(says_tool && are_all(&beside, name, tools)) {
                return None;
            }
            Value::Object(beside)
        }
    };
    (!is_schema(&arguments)).then(|| Call {
        name: name.to_owned(),
        arguments: long_numbers::write(&arguments),
    })
}

/// Returns whether these are arguments of a tool and nothing else, with all required ones present.
fn are_all(fields: &Map<String, Value>, tool: &str, tools: &Tools) -> bool {
    let required = tools.required(tool).unwrap_or_default();
    // Without required arguments the name alone decides, if it is not an everyday word.
    let is_known = || fields.is_empty() || tools.parameters(tool).next().is_some();
    let is_said = !required.is_empty() || tool.contains('_') && is_known();
    is_said
        && required.iter().all(|name| fields.contains_key(*name))
        && fields.keys().all(|key| tools.may_have(tool, key))
}

/// Returns whether an object with these keys defines a tool, as the tool list does.
fn defines(has: impl Fn(&str) -> bool) -> bool {
    has("description") && has("parameters") && !has("arguments")
}

/// Returns whether arguments are a tool's schema: a model that repeats the tool list calls nothing.
fn is_schema(arguments: &Value) -> bool {
    let says = |property: &Value| {
        let words = [
            "type",
            "description",
            "enum",
            "anyOf",
            "oneOf",
            "allOf",
            "$ref",
            "items",
        ];
        property
            .as_object()
            .is_some_and(|property| words.iter().any(|word| property.contains_key(*word)))
    };
    let is_object = arguments.get("type").is_some_and(|kind| kind == "object")
        || arguments.get("$schema").is_some();
    let properties = arguments.get("properties").and_then(Value::as_object);
    is_object && properties.is_some_and(|properties| properties.values().all(says))
}

/// Returns the object that arguments represent; some models encode it as a string, even twice.
pub(super) fn arguments(written: &Value) -> Option<Value> {
    match written {
        Value::Object(_) => Some(written.clone()),
        Value::Null => Some(Value::Object(Map::new())),
        Value::String(text) if text.trim().is_empty() => Some(Value::Object(Map::new())),
        Value::String(text) => embedded_value(text, 0)
            .filter(|inner| !inner.is_string())
            .and_then(|inner| arguments(&inner)),
        _ => None,
    }
}

/// Returns the value encoded in a text as a JSON string, possibly several times.
pub(super) fn embedded_value(text: &str, depth: usize) -> Option<Value> {
    let text = text.trim();
    let inner = json::value(&mut Cursor::new(text, 0, true), 0)
        .ok()
        .or_else(|| serde_json::from_str(text).ok())?;
    match inner {
        Value::String(text) if !text.trim().is_empty() && depth < MAX_LAYERS => {
            embedded_value(&text, depth + 1)
        }
        Value::String(text) if text.trim().is_empty() => Some(Value::Null),
        other => Some(other),
    }
}

/// Returns the name in the beginning of a truncated object, as written.
pub(super) fn partial_name(text: &str) -> Option<&str> {
    let after = NAMES.iter().find_map(|key| {
        let at = text
            .find(&format!("\"{key}"))
            .filter(|at| *key != ACTION || !text[..*at].contains(':'))?;
        text[at + key.len() + 1..]
            .trim_start_matches(['\\', '"', ' ', '\n'])
            .strip_prefix(':')
    })?;
    let after = after
        .trim_start_matches(['\\', ' ', '\n'])
        .strip_prefix('"')?;
    after.find(['"', '\\']).map(|end| &after[..end])
}
