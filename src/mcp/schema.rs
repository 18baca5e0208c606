//! The schema of a tool's arguments, as a server sends it, made small and plain.
//!
//! Model servers compile schemas to grammars, so that none with a loop may reach them. References
//! within the schema are replaced by what they name, loops and what is too deep by "anything". The
//! server checks the arguments itself: a schema that says less is still right.

use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use super::plain_text::plain_text;

/// Deepest nesting that is kept.
const DEEPEST: usize = 12;
/// Most schemas in one, the expanded ones counted.
const MOST_NODES: usize = 500;
/// Most arguments of one object.
const MOST_PROPERTIES: usize = 64;
/// Most choices of one argument, and most alternatives.
const MOST_CHOICES: usize = 100;
/// Longest description of one argument.
const LONGEST_DESCRIPTION: usize = 400;
/// Longest name of an argument and longest choice.
const LONGEST_NAME: usize = 100;
/// A longer schema is replaced by an object of anything.
const LONGEST: usize = 16 << 10;

/// Keywords whose numbers and words are copied.
const PLAIN: [&str; 13] = [
    "type",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "default",
    "const",
];

/// Returns the schema of an object with the arguments that a server's schema names.
pub(super) fn bounded(schema: &Map<String, Value>) -> Value {
    let root = Value::Object(schema.clone());
    let mut expansion = Expansion {
        root: &root,
        n_nodes: 0,
        open: Vec::new(),
    };
    let mut out = expansion.schema(&root, 0);
    if !out["properties"].is_object() || out.to_string().len() > LONGEST {
        let properties = Map::new();
        out = json!({ "properties": properties });
    }
    out["type"] = json!("object");
    out
}

struct Expansion<'a> {
    root: &'a Value,
    n_nodes: usize,
    /// The references that are being expanded.
    open: Vec<&'a str>,
}

impl<'a> Expansion<'a> {
    fn schema(&mut self, schema: &'a Value, depth: usize) -> Value {
        self.n_nodes += 1;
        let Value::Object(fields) = schema else {
            return json!({});
        };
        if depth > DEEPEST || self.n_nodes > MOST_NODES {
            return json!({});
        }
        if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
            return self.reference(reference, depth);
        }
        let mut out = Map::new();
        for key in PLAIN {
            if let Some(value) = fields.get(key).and_then(plain_value) {
                out.insert(key.to_owned(), value);
            }
        }
        if let Some(text) = fields.get("description").and_then(Value::as_str) {
            let text = plain_text(text, LONGEST_DESCRIPTION);
            out.insert("description".to_owned(), text.into());
        }
        if let Some(Value::Array(choices)) = fields.get("enum") {
            let choices = choices.iter().take(MOST_CHOICES).filter_map(plain_value);
            out.insert("enum".to_owned(), choices.collect());
        }
        if let Some(Value::Object(properties)) = fields.get("properties") {
            let known: Map<String, Value> = properties
                .iter()
                .filter(|(name, _)| is_name(name))
                .take(MOST_PROPERTIES)
                .map(|(name, property)| (name.clone(), self.schema(property, depth + 1)))
                .collect();
            if let Some(Value::Array(required)) = fields.get("required") {
                let required = required
                    .iter()
                    .filter(|name| name.as_str().is_some_and(|name| known.contains_key(name)));
                out.insert("required".to_owned(), required.cloned().collect());
            }
            out.insert("properties".to_owned(), known.into());
        }
        for key in ["items", "additionalProperties"] {
            match fields.get(key) {
                Some(Value::Bool(lets)) => drop(out.insert(key.to_owned(), (*lets).into())),
                Some(inner @ Value::Object(_)) => {
                    out.insert(key.to_owned(), self.schema(inner, depth + 1));
                }
                _ => {}
            }
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(Value::Array(all)) = fields.get(key) {
                let all = all.iter().take(MOST_CHOICES);
                let all: Vec<Value> = all.map(|inner| self.schema(inner, depth + 1)).collect();
                out.insert(key.to_owned(), all.into());
            }
        }
        Value::Object(out)
    }

    /// Returns what a reference within the schema names; anything else may be anything.
    fn reference(&mut self, reference: &'a str, depth: usize) -> Value {
        let target = reference
            .strip_prefix('#')
            .and_then(|pointer| self.root.pointer(pointer));
        let Some(target) = target.filter(|_| !self.open.contains(&reference)) else {
            return json!({});
        };
        self.open.push(reference);
        let out = self.schema(target, depth + 1);
        self.open.pop();
        out
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= LONGEST_NAME && plain_text(name, LONGEST_NAME) == name
}

/// Returns a value that is short and plain: a type may be a list of types.
fn plain_value(value: &Value) -> Option<Value> {
    match value {
        Value::String(text) => is_name(text).then(|| value.clone()),
        Value::Array(items) if items.len() <= 8 => items
            .iter()
            .map(|item| plain_value(item).filter(|item| !item.is_array()))
            .collect(),
        Value::Array(_) | Value::Object(_) => None,
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(value.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: Value, expected: &Value) {
        let Value::Object(schema) = schema else {
            panic!("an object")
        };
        assert_eq!(bounded(&schema), *expected);
    }

    #[test]
    fn what_a_real_server_says_is_kept() {
        check(
            json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "title": "GitLog",
                "type": "object",
                "properties": {
                    "repo_path": {"title": "Repo Path", "type": "string"},
                    "max_count": {"default": 10, "type": "integer"},
                    "since": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null, "description": "From"},
                    "unit": {"$ref": "#/$defs/Unit"},
                },
                "required": ["repo_path", "gone"],
                "$defs": {"Unit": {"enum": ["s", "ms"], "type": "string"}},
            }),
            &json!({
                "type": "object",
                "properties": {
                    "repo_path": {"type": "string"},
                    "max_count": {"type": "integer", "default": 10},
                    "since": {"default": null, "description": "From", "anyOf": [{"type": "string"}, {"type": "null"}]},
                    "unit": {"type": "string", "enum": ["s", "ms"]},
                },
                "required": ["repo_path"],
            }),
        );
    }

    #[test]
    fn a_loop_of_references_ends() {
        check(
            json!({"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#/$defs/b"}, "c": {"$ref": "https://example.com/x"}},
                "$defs": {"b": {"$ref": "#/$defs/c"}, "c": {"$ref": "#/$defs/b"}}}),
            &json!({"type": "object", "properties": {
                "a": {"type": "object", "properties": {"a": {}, "b": {}, "c": {}}},
                "b": {}, "c": {},
            }}),
        );
    }

    #[test]
    fn what_doubles_at_each_step_is_bounded() {
        let mut defs = Map::new();
        for n in 0..40 {
            let next = json!({"$ref": format!("#/$defs/n{}", n + 1)});
            let two = json!({"type": "object", "properties": {"a": next, "b": next}});
            defs.insert(format!("n{n}"), two);
        }
        let schema = json!({"properties": {"x": {"$ref": "#/$defs/n0"}}, "$defs": defs});
        let Value::Object(schema) = schema else {
            panic!("an object")
        };
        assert!(bounded(&schema).to_string().len() <= LONGEST + 64);
    }

    #[test]
    fn names_and_texts_are_plain_and_short() {
        check(
            json!({"type": "array", "properties": {"a\u{1b}[2J": {}, "b": {"description": "x\u{202e}y", "pattern": "(a+)+$"}}}),
            &json!({"type": "object", "properties": {"b": {"description": "xy"}}}),
        );
        check(
            json!({"type": "object"}),
            &json!({"type": "object", "properties": {}}),
        );
        check(
            json!({"properties": {"a": {"enum": ["x".repeat(101), "y"]}}}),
            &json!({"type": "object", "properties": {"a": {"enum": ["y"]}}}),
        );
    }
}
