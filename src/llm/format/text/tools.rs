//! The tools that a text may call: only their names are calls, and their schemas give the types of
//! bare text.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::cursor::Cursor;
use super::json;
use super::long_numbers;
use crate::message::ToolSpec;
use podbay_event::is_same_name;

/// What some servers and models put before a name.
const PREFIXES: [&str; 4] = ["functions.", "default_api.", "tools.", "function."];

/// Placeholders for a name where the form of a call is shown.
const PLACEHOLDERS: [&str; 9] = [
    "name",
    "tool",
    "function",
    "tool_name",
    "tool-name",
    "toolname",
    "function_name",
    "function-name",
    "functionname",
];
/// Longest name of an unknown tool, in bytes.
const MAX_NAME: usize = 64;

/// The known tools, by name. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Tools {
    by_name: Arc<HashMap<String, Vec<Parameter>>>,
    /// A call that a token marks counts whatever tool it names.
    takes_any: bool,
}

#[derive(Clone, Debug)]
struct Parameter {
    name: String,
    /// JSON types that the schema allows; empty where it does not say.
    types: Vec<String>,
    is_required: bool,
}

impl Tools {
    pub fn new<'s>(specs: impl IntoIterator<Item = &'s ToolSpec>) -> Self {
        Self {
            by_name: Arc::new(
                specs
                    .into_iter()
                    .map(|spec| (spec.name.clone(), parameters(&spec.parameters)))
                    .collect(),
            ),
            takes_any: false,
        }
    }

    /// Returns these tools, and any other name for calls that a token marks.
    pub(crate) fn and_any(&self) -> Self {
        Self {
            takes_any: true,
            ..self.clone()
        }
    }

    /// Returns these tools and no other, for unmarked calls.
    pub(super) fn only_known(&self) -> Self {
        Self {
            takes_any: false,
            ..self.clone()
        }
    }

    /// Returns whether a name, as a model writes it, is one of these tools.
    pub(crate) fn has(&self, written: &str) -> bool {
        self.resolve(written).is_some()
    }

    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Strips whitespace and, in any case, the prefixes that some servers and models put before all
    /// names.
    pub fn bare(written: &str) -> &str {
        let written = written.trim();
        let behind = |prefix: &str| {
            written
                .split_at_checked(prefix.len())
                .filter(|(begin, _)| begin.eq_ignore_ascii_case(prefix))
        };
        PREFIXES
            .iter()
            .find_map(|prefix| behind(prefix))
            .map_or(written, |(_, name)| name)
    }

    /// Returns the known name that `written` stands for.
    pub(super) fn resolve(&self, written: &str) -> Option<&str> {
        let written = written.trim().trim_matches(['"', '\'']);
        let find = |name: &str| {
            self.by_name
                .get_key_value(name)
                .map(|(name, _)| name.as_str())
        };
        find(written).or_else(|| {
            PREFIXES
                .iter()
                .find_map(|prefix| find(written.strip_prefix(prefix)?))
        })
    }

    /// Returns the name that a marked call means by `written`: a known one, or any where any is
    /// accepted.
    pub(super) fn called<'n>(&'n self, written: &'n str) -> Option<&'n str> {
        self.resolve(written)
            .or_else(|| other(written).filter(|_| self.takes_any))
    }

    /// Returns whether `written` is a prefix of a known name in some spelling.
    pub(super) fn may_begin(&self, written: &str) -> bool {
        let begins = |begin: &str| self.by_name.keys().any(|name| name.starts_with(begin));
        begins(written)
            || PREFIXES.iter().any(|prefix| {
                prefix.starts_with(written) || written.strip_prefix(prefix).is_some_and(begins)
            })
    }

    /// Returns the argument at an index, for calls with positional arguments.
    pub(super) fn parameter(&self, tool: &str, place: usize) -> Option<&str> {
        self.by_name
            .get(tool)?
            .get(place)
            .map(|parameter| parameter.name.as_str())
    }

    /// Returns whether a tool may have an argument of that name; without a schema it may have any.
    pub(super) fn may_have(&self, tool: &str, parameter: &str) -> bool {
        self.by_name.get(tool).is_none_or(|all| {
            all.is_empty() || all.iter().any(|one| is_same_name(&one.name, parameter))
        })
    }

    /// Returns the arguments that a tool may have, as far as they are known.
    pub(super) fn parameters(&self, tool: &str) -> impl Iterator<Item = &str> {
        self.by_name
            .get(tool)
            .into_iter()
            .flatten()
            .map(|parameter| parameter.name.as_str())
    }

    /// Returns the required arguments of a known tool.
    pub(super) fn required(&self, tool: &str) -> Option<Vec<&str>> {
        let all = self.by_name.get(tool)?;
        Some(
            all.iter()
                .filter(|parameter| parameter.is_required)
                .map(|parameter| parameter.name.as_str())
                .collect(),
        )
    }

    /// Converts an argument written as bare text to its type.
    pub(super) fn typed(&self, tool: &str, parameter: &str, text: &str) -> Value {
        let find = |is_it: fn(&str, &str) -> bool| {
            self.by_name
                .get(tool)?
                .iter()
                .find(|one| is_it(&one.name, parameter))
        };
        let known = find(|one, other| one == other).or_else(|| find(is_same_name));
        let types = known.map_or(&[][..], |parameter| &parameter.types);
        let as_text = || Value::String(text.to_owned());
        if types.iter().any(|kind| kind == "string") {
            return as_text();
        }
        let trimmed = text.trim();
        if let Some(number) = long_numbers::number(trimmed) {
            return number;
        }
        let value = match trimmed {
            "True" => Value::Bool(true),
            "False" => Value::Bool(false),
            "None" => Value::Null,
            _ => match serde_json::from_str(trimmed)
                .ok()
                .or_else(|| nearly(trimmed, types))
            {
                Some(value) => value,
                None => return as_text(),
            },
        };
        // Without a schema a quoted text keeps its quotes: they may be meant.
        if value.is_string() { as_text() } else { value }
    }
}

/// Returns the name of an unknown tool, unless it is a placeholder.
fn other(written: &str) -> Option<&str> {
    let written = written.trim().trim_matches(['"', '\'']);
    let name = PREFIXES
        .iter()
        .find_map(|prefix| written.strip_prefix(prefix))
        .unwrap_or(written);
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
        && name.len() <= MAX_NAME;
    (is_name && !PLACEHOLDERS.contains(&name.to_ascii_lowercase().as_str())).then_some(name)
}

/// Parses a list or an object in nearly JSON, such as Python's, where it can be nothing else.
fn nearly(text: &str, types: &[String]) -> Option<Value> {
    let is_meant =
        |kind: &str, begin: char| text.starts_with(begin) && types.iter().any(|one| one == kind);
    if !is_meant("array", '[') && !is_meant("object", '{') {
        return None;
    }
    let mut c = Cursor::new(text, 0, true);
    // Depth 1: an unterminated value is refused.
    json::value(&mut c, 1).ok().filter(|_| c.at() == text.len())
}

fn parameters(schema: &Value) -> Vec<Parameter> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let parameter = |(name, property): (&String, &Value)| Parameter {
        name: name.clone(),
        types: types(property, schema, 0),
        is_required: required.contains(&name.as_str()),
    };
    let mut all: Vec<Parameter> = properties.iter().map(parameter).collect();
    // For positional arguments, required ones come first.
    all.sort_by_key(|parameter| {
        required
            .iter()
            .position(|name| *name == parameter.name)
            .unwrap_or(usize::MAX)
    });
    all
}

/// Collects the types that a schema allows, also through references and unions.
fn types(property: &Value, root: &Value, depth: usize) -> Vec<String> {
    if depth > 8 {
        return Vec::new();
    }
    if let Some(target) = property
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|path| root.pointer(path.strip_prefix('#')?))
    {
        return types(target, root, depth + 1);
    }
    match property.get("type") {
        Some(Value::String(one)) => return vec![one.clone()],
        Some(Value::Array(some)) => {
            return some
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect();
        }
        _ => {}
    }
    if let Some(values) = property.get("enum").and_then(Value::as_array) {
        return if values.iter().any(Value::is_string) {
            vec!["string".to_owned()]
        } else {
            Vec::new()
        };
    }
    let choices = ["anyOf", "oneOf", "allOf"]
        .iter()
        .filter_map(|key| property.get(*key))
        .filter_map(Value::as_array)
        .flatten();
    choices
        .flat_map(|choice| types(choice, root, depth + 1))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tools() -> Tools {
        let parameters = json!({
            "properties": {
                "limit": {"$ref": "#/$defs/N"}, "mode": {"enum": ["1", "2"]}, "path": {"type": "string"},
                "names": {"anyOf": [{"type": "array"}, {"type": "null"}]}, "deep": {"type": ["boolean", "null"]},
            },
            "required": ["path"], "$defs": {"N": {"type": "integer"}},
        });
        Tools::new([&ToolSpec {
            name: "read".into(),
            description: String::new(),
            parameters,
        }])
    }

    #[test]
    fn names_are_resolved_with_prefixes_and_whitespace() {
        for name in [
            "read",
            " read\n",
            "\"read\"",
            "functions.read",
            "default_api.read",
        ] {
            assert_eq!(tools().resolve(name), Some("read"), "{name}");
        }
        assert!(
            ["r", "rea", "read", "func", "functions.re"]
                .iter()
                .all(|begin| tools().may_begin(begin))
        );
        assert!(
            ["x", "reads", "functions.x", "functional"]
                .iter()
                .all(|begin| !tools().may_begin(begin))
        );
        for name in ["", "reader", "rea", "functions.", "x.read", "READ"] {
            assert_eq!(tools().resolve(name), None, "{name}");
        }
    }

    #[test]
    fn the_schema_gives_the_type_of_bare_text() {
        let typed = |parameter, text| tools().typed("read", parameter, text);
        assert_eq!(typed("path", "12"), json!("12"));
        assert_eq!(typed("limit", " 12 "), json!(12));
        assert_eq!(
            [typed("Path", "12"), typed("LIMIT", "12")],
            [json!("12"), json!(12)]
        );
        assert_eq!(typed("limit", "many"), json!("many"));
        assert_eq!(typed("mode", "1"), json!("1"));
        assert_eq!(typed("names", "[\"a\"]"), json!(["a"]));
        assert_eq!(
            [
                typed("names", "['a', \"it's\",]"),
                typed("names", "['a'"),
                typed("names", "['a'] b")
            ],
            [json!(["a", "it's"]), json!("['a'"), json!("['a'] b")]
        );
        assert_eq!(
            [typed("deep", "True"), typed("deep", "None")],
            [json!(true), json!(null)]
        );
        assert_eq!(
            [typed("other", "{}"), typed("other", "\"x\"")],
            [json!({}), json!("\"x\"")]
        );
        assert_eq!(tools().parameter("read", 0), Some("path"));
    }
}
