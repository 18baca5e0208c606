//! JSON schemas, reduced to what llama.cpp can turn into a grammar.
//! Its converter supports the shape of values, not their bounds: keywords such as `format`,
//! `default` and `minimum` are ignored or refused, lengths and counts are unrolled into grammars of
//! millions of rules. The tools module validates the arguments against the full schema later; the
//! reduced one only has to make the model write JSON of the right shape.

use serde_json::Map;
use serde_json::Value;
use serde_json::json;

/// How deep schemas may nest after following references; deeper parts accept any object.
const MAX_DEPTH: usize = 12;

/// Returns the reduced schema: only keywords about shape, references inlined, required properties
/// first, no additional properties.
pub(crate) fn reduce(schema: &Value) -> Value {
    part(schema, schema, 0)
}

fn part(schema: &Value, root: &Value, depth: usize) -> Value {
    let Value::Object(fields) = schema else {
        return json!({"type": "object"});
    };
    if depth > MAX_DEPTH {
        return json!({"type": "object"});
    }
    if let Some(target) = fields
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|path| root.pointer(path.strip_prefix('#')?))
    {
        return part(target, root, depth + 1);
    }
    for keyword in ["const", "enum"] {
        if let Some(value) = fields.get(keyword) {
            return json!({ keyword: value });
        }
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(Value::Array(choices)) = fields.get(keyword) {
            return json!({"anyOf": choices.iter().map(|choice| part(choice, root, depth + 1)).collect::<Vec<_>>()});
        }
    }
    if let Some(Value::Array(parts)) = fields.get("allOf")
        && let [only] = parts.as_slice()
    {
        return part(only, root, depth + 1);
    }
    match fields.get("type") {
        Some(Value::Array(types)) => {
            let choice = |kind: &Value| {
                let mut one = fields.clone();
                one.insert("type".to_owned(), kind.clone());
                part(&Value::Object(one), root, depth + 1)
            };
            json!({"anyOf": types.iter().map(choice).collect::<Vec<_>>()})
        }
        Some(Value::String(kind)) if kind == "array" => {
            let items = fields
                .get("items")
                .map_or_else(|| json!({}), |items| part(items, root, depth + 1));
            json!({"type": "array", "items": items})
        }
        Some(Value::String(kind)) if kind != "object" => json!({"type": kind}),
        Some(_) => object(fields, root, depth),
        None if fields.contains_key("properties") => object(fields, root, depth),
        // An empty schema accepts anything; to the converter it means any object.
        None => json!({}),
    }
}

fn object(fields: &Map<String, Value>, root: &Value, depth: usize) -> Value {
    let Some(Value::Object(properties)) = fields.get("properties") else {
        // A map with arbitrary keys; the schema of its values may be kept.
        return match fields.get("additionalProperties") {
            Some(values @ Value::Object(_)) => {
                json!({"type": "object", "additionalProperties": part(values, root, depth + 1)})
            }
            _ => json!({"type": "object"}),
        };
    };
    let required: Vec<&str> = fields
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let is_required = |name: &str| required.contains(&name);
    let (first, rest): (Vec<_>, Vec<_>) =
        properties.iter().partition(|(name, _)| is_required(name));
    let first_names: Vec<&String> = first.iter().map(|(name, _)| *name).collect();
    let reduced: Map<String, Value> = first
        .iter()
        .chain(&rest)
        .map(|(name, value)| ((*name).clone(), part(value, root, depth + 1)))
        .collect();
    json!({"type": "object", "properties": reduced, "required": first_names, "additionalProperties": false})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: &Value, expected: &Value) {
        assert_eq!(
            serde_json::to_string(&reduce(schema)).expect("writes"),
            serde_json::to_string(expected).expect("writes")
        );
    }

    #[test]
    fn bounds_are_dropped_and_required_properties_come_first() {
        check(
            &json!({
                "$schema": "x", "title": "T", "type": "object",
                "properties": {
                    "limit": {"type": "integer", "format": "uint32", "minimum": 0, "default": 5, "description": "d"},
                    "path": {"type": "string", "maxLength": 4096, "pattern": "^a$"},
                },
                "required": ["path"],
            }),
            &json!({"type": "object", "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}}, "required": ["path"], "additionalProperties": false}),
        );
    }

    #[test]
    fn references_are_inlined_and_endless_ones_end() {
        check(
            &json!({"type": "object", "properties": {"e": {"type": "array", "maxItems": 9, "items": {"$ref": "#/$defs/E"}}}, "$defs": {"E": {"enum": ["a", "b"], "type": "string"}}}),
            &json!({"type": "object", "properties": {"e": {"type": "array", "items": {"enum": ["a", "b"]}}}, "required": [], "additionalProperties": false}),
        );
        let endless = json!({"$ref": "#/$defs/L", "$defs": {"L": {"anyOf": [{"$ref": "#/$defs/L"}, {"type": "null"}]}}});
        assert!(reduce(&endless).to_string().len() < 10_000);
    }

    #[test]
    fn unions_keep_their_choices() {
        check(
            &json!({"type": ["string", "null"], "minLength": 1}),
            &json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
        );
        check(
            &json!({"oneOf": [{"const": 1}, {"type": "boolean"}]}),
            &json!({"anyOf": [{"const": 1}, {"type": "boolean"}]}),
        );
        check(
            &json!({"type": "object", "additionalProperties": {"type": "string", "minLength": 3}}),
            &json!({"type": "object", "additionalProperties": {"type": "string"}}),
        );
    }
}
