//! Argument names: maps spellings and aliases to the names in the schema.

use serde_json::Map;
use serde_json::Value;

use podbay_event::is_same_name;

/// Renames all arguments to the names in the schema, also in nested objects. A name in the schema
/// is never an alias of another.
pub(super) fn normalize(
    schema: &Value,
    renamed: &[(&str, &str)],
    value: &mut Value,
    notes: &mut Vec<String>,
) {
    match value {
        Value::Object(fields) => {
            let Some(properties) = schema["properties"].as_object() else {
                return;
            };
            let known: Vec<&str> = properties.keys().map(String::as_str).collect();
            rename(&known, renamed, fields, notes);
            for (name, property) in properties {
                if let Some(value) = fields.get_mut(name) {
                    normalize(property, renamed, value, notes);
                }
            }
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| normalize(&schema["items"], renamed, item, notes)),
        _ => {}
    }
}

/// Renames arguments: first other spellings of known names, then aliases. `renamed` has pairs of
/// alias and name.
pub(super) fn rename(
    known: &[&str],
    renamed: &[(&str, &str)],
    fields: &mut Map<String, Value>,
    notes: &mut Vec<String>,
) {
    let spelled = known.iter().map(|name| (*name, *name));
    for (wrong, right) in spelled.chain(renamed.iter().copied()) {
        if fields.contains_key(right) || !known.contains(&right) {
            continue;
        }
        let is_other =
            |name: &&String| !known.contains(&name.as_str()) && is_same_name(name, wrong);
        let Some(name) = fields
            .keys()
            .find(|name| *name == wrong)
            .filter(is_other)
            .or_else(|| fields.keys().find(is_other))
            .cloned()
        else {
            continue;
        };
        let value = fields.remove(&name).expect("it is there");
        fields.insert(right.to_owned(), value);
        let note = format!("{name} was taken as {right}");
        // The same note for several objects is made once.
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(given: &Value, expected: &Value, notes: &[&str]) {
        let edit = json!({ "properties": { "old_string": {}, "new_string": {} } });
        let schema = json!({ "properties": { "path": {}, "old_string": {}, "edits": { "items": edit }, "options": edit } });
        let (mut value, mut said) = (given.clone(), Vec::new());
        normalize(
            &schema,
            &[
                ("file_path", "path"),
                ("old", "old_string"),
                ("-o", "options"),
            ],
            &mut value,
            &mut said,
        );
        assert_eq!(value, *expected);
        assert_eq!(said, notes);
    }

    #[test]
    fn an_argument_name_is_recognized_in_any_spelling() {
        check(
            &json!({ "oldString": 1 }),
            &json!({ "old_string": 1 }),
            &["oldString was taken as old_string"],
        );
        check(
            &json!({ "Old-String": 1 }),
            &json!({ "old_string": 1 }),
            &["Old-String was taken as old_string"],
        );
        check(
            &json!({ "filePath": 1 }),
            &json!({ "path": 1 }),
            &["filePath was taken as path"],
        );
        check(
            &json!({ "FILE-PATH": 1, "OLD": 2 }),
            &json!({ "path": 1, "old_string": 2 }),
            &["FILE-PATH was taken as path", "OLD was taken as old_string"],
        );
        let nested = json!({ "edits": [{ "oldString": 1, "NEW_STRING": 2 }, { "oldString": 3 }], "options": { "newString": 4 } });
        let right = json!({ "edits": [{ "old_string": 1, "new_string": 2 }, { "old_string": 3 }], "options": { "new_string": 4 } });
        check(
            &nested,
            &right,
            &[
                "oldString was taken as old_string",
                "NEW_STRING was taken as new_string",
                "newString was taken as new_string",
            ],
        );
    }

    #[test]
    fn an_exact_argument_name_takes_precedence() {
        for given in [
            json!({ "old_string": 1, "oldString": 2 }),
            json!({ "path": 1, "filePath": 2, "Path": 3 }),
            json!({ "-O": 1, "o": 2 }),
        ] {
            check(&given, &given, &[]);
        }
        check(
            &json!({ "Path": 1, "filePath": 2 }),
            &json!({ "filePath": 2, "path": 1 }),
            &["Path was taken as path"],
        );
    }
}
