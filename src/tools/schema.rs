use std::sync::OnceLock;

use serde_json::Value;

/// The schema of one tool's arguments, with errors that a small model can act on.
pub(super) struct Schema {
    source: Value,
    /// Compiled on first use: it takes time, and most tools are never called in a session.
    validator: OnceLock<jsonschema::Validator>,
    /// Name, type and choices of each argument.
    types: Vec<(String, String, Vec<String>)>,
}

impl Schema {
    pub(super) fn new(schema: &Value) -> Self {
        let properties = schema["properties"].as_object();
        let types = properties
            .into_iter()
            .flatten()
            .filter_map(|(name, property)| {
                let words = property["enum"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect();
                Some((name.clone(), property["type"].as_str()?.to_owned(), words))
            })
            .collect();
        Self {
            source: schema.clone(),
            validator: OnceLock::new(),
            types,
        }
    }

    /// Coerces values where only one meaning is possible: `"5"` to 5, `"true"` to true, `null` to
    /// absent. Changed values are noted.
    pub(super) fn coerce(&self, value: &mut Value, notes: &mut Vec<String>) {
        let Some(object) = value.as_object_mut() else {
            return;
        };
        object.retain(|_, value| !value.is_null());
        for (name, wanted, choices) in &self.types {
            let Some(value) = object.get_mut(name) else {
                continue;
            };
            let mended = match (wanted.as_str(), &*value) {
                ("integer", Value::String(text)) => {
                    text.trim().parse::<i64>().ok().map(Value::from)
                }
                // A number out of range becomes the largest integer, and is then bounded like any
                // other.
                ("integer", Value::Number(number)) if !number.is_i64() => number
                    .as_f64()
                    .filter(|number| number.fract() == 0.0)
                    .map(|number| Value::from(number as i64)),
                ("boolean", Value::String(text)) => match text.trim().to_ascii_lowercase().as_str()
                {
                    "true" | "yes" => Some(Value::Bool(true)),
                    "false" | "no" => Some(Value::Bool(false)),
                    _ => None,
                },
                ("boolean", Value::Number(number)) => number
                    .as_i64()
                    .filter(|n| (0..=1).contains(n))
                    .map(|n| Value::Bool(n == 1)),
                ("object", Value::String(text)) => {
                    serde_json::from_str(text).ok().filter(Value::is_object)
                }
                // An array that was written as a string, or as its only item.
                ("array", Value::String(text)) => {
                    serde_json::from_str(text).ok().filter(Value::is_array)
                }
                ("array", item @ Value::Object(_)) => Some(Value::Array(vec![item.clone()])),
                ("string", Value::String(text)) => choice(choices, text).map(Value::from),
                ("string", other) => text(name, other).map(Value::from),
                _ => None,
            };
            if let Some(mended) = mended {
                let is_other_number = mended.is_number() && value.is_number();
                if !is_other_number {
                    notes.push(format!(
                        "{name} {} was taken as {}",
                        short(value),
                        short(&mended)
                    ));
                }
                *value = mended;
            }
        }
    }

    /// Returns the schema as JSON.
    pub(super) fn source(&self) -> &Value {
        &self.source
    }

    /// Returns whether the schema has an argument of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.source["properties"].get(name).is_some()
    }

    /// Checks the arguments; each problem names its field.
    pub(super) fn check(&self, value: &Value) -> Result<(), Vec<String>> {
        // All drafts agree on the few keywords we use; this one compiles fastest.
        let make = || {
            jsonschema::draft7::new(&self.source)
                .expect("the catalogue's schemas are checked by its tests")
        };
        let problems: Vec<String> = self
            .validator
            .get_or_init(make)
            .iter_errors(value)
            .take(5)
            .map(|error| describe(&error))
            .collect();
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems)
        }
    }
}

/// Returns the choice that differs from the text only in case.
fn choice<'a>(choices: &'a [String], written: &str) -> Option<&'a str> {
    let found = choices
        .iter()
        .find(|choice| choice.eq_ignore_ascii_case(written.trim()))?;
    (found != written).then_some(found)
}

/// Returns the string for a value of another type.
fn text(name: &str, value: &Value) -> Option<String> {
    match value {
        Value::Number(_) | Value::Bool(_) if is_exact(value) => Some(value.to_string()),
        // A command as an argument vector, as models trained on exec APIs write it.
        Value::Array(words) if name == "command" => match words.as_slice() {
            [shell, flag, script]
                if ["bash", "sh", "/bin/bash", "/bin/sh"]
                    .iter()
                    .any(|name| shell == name)
                    && (flag == "-c" || flag == "-lc") =>
            {
                script.as_str().map(str::to_owned)
            }
            _ => None,
        },
        _ => None,
    }
}

/// Returns whether a number is exact: a fraction, or a large number, may have lost digits in
/// parsing.
fn is_exact(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_i64() || number.is_u64(),
        _ => true,
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    let end = text.floor_char_boundary(120);
    if end < text.len() {
        format!("{}…", &text[..end])
    } else {
        text
    }
}

fn describe(error: &jsonschema::ValidationError<'_>) -> String {
    use jsonschema::error::ValidationErrorKind as Kind;
    let place = error.instance_path().to_string();
    let place = place.trim_start_matches('/').replace('/', ".");
    // For an edit in an array, says which one.
    let within = if place.is_empty() {
        String::new()
    } else {
        format!(" in `{place}`")
    };
    match error.kind() {
        Kind::Required { property } => format!(
            "`{}` is missing{within}",
            property.as_str().unwrap_or_default()
        ),
        Kind::AdditionalProperties { unexpected } => {
            let names: Vec<String> = unexpected
                .iter()
                .map(|name| format!("`{}`", name.chars().take(60).collect::<String>()))
                .collect();
            format!("{} is not known{within}", names.join(", "))
        }
        // All of them, however many: the model is to choose one.
        Kind::Enum { options } => {
            let words: Vec<String> = options
                .as_array()
                .into_iter()
                .flatten()
                .map(Value::to_string)
                .collect();
            format!(
                "`{place}`: {} is none of {}",
                short(error.instance()),
                words.join(", ")
            )
        }
        _ => format!(
            "`{place}`: {}",
            error.to_string().chars().take(200).collect::<String>()
        ),
    }
}
