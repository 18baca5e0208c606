use serde_json::Value;

/// A compiled schema of one tool's arguments, with errors that a small model can act on.
pub(super) struct Schema {
    validator: jsonschema::Validator,
    types: Vec<(String, String)>,
}

impl Schema {
    pub(super) fn new(schema: &Value) -> Self {
        let validator = jsonschema::validator_for(schema).expect("the catalogue's schemas are checked by its tests");
        let properties = schema["properties"].as_object();
        let types = properties
            .into_iter()
            .flatten()
            .filter_map(|(name, property)| Some((name.clone(), property["type"].as_str()?.to_owned())))
            .collect();
        Self { validator, types }
    }

    /// Mends what small models get wrong and what can only be meant one way: `"5"` for 5, `"true"` for true, `null` for nothing.
    pub(super) fn coerce(&self, value: &mut Value) {
        let Some(object) = value.as_object_mut() else { return };
        object.retain(|_, value| !value.is_null());
        for (name, wanted) in &self.types {
            let Some(value) = object.get_mut(name) else { continue };
            let mended = match (wanted.as_str(), &*value) {
                ("integer", Value::String(text)) => text.trim().parse::<i64>().ok().map(Value::from),
                // What is beyond all bounds becomes the largest number there is, and is bounded like any other.
                ("integer", Value::Number(number)) if !number.is_i64() => {
                    number.as_f64().filter(|number| number.fract() == 0.0).map(|number| Value::from(number as i64))
                }
                ("boolean", Value::String(text)) => match text.trim().to_ascii_lowercase().as_str() {
                    "true" | "yes" => Some(Value::Bool(true)),
                    "false" | "no" => Some(Value::Bool(false)),
                    _ => None,
                },
                // An array that was written as text.
                ("array", Value::String(text)) => serde_json::from_str(text).ok().filter(Value::is_array),
                _ => None,
            };
            if let Some(mended) = mended {
                *value = mended;
            }
        }
    }

    /// Checks the arguments; each problem names its field.
    pub(super) fn check(&self, value: &Value) -> Result<(), Vec<String>> {
        let problems: Vec<String> = self.validator.iter_errors(value).take(5).map(|error| describe(&error)).collect();
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }
}

fn describe(error: &jsonschema::ValidationError<'_>) -> String {
    use jsonschema::error::ValidationErrorKind as Kind;
    let place = error.instance_path().to_string();
    let place = place.trim_start_matches('/').replace('/', ".");
    match error.kind() {
        Kind::Required { property } => format!("`{}` is missing", property.as_str().unwrap_or_default()),
        Kind::AdditionalProperties { unexpected } => {
            let names: Vec<String> = unexpected.iter().map(|name| format!("`{}`", name.chars().take(60).collect::<String>())).collect();
            format!("{} is not known", names.join(", "))
        }
        Kind::Type { .. } | Kind::Enum { .. } => {
            let text: String = error.to_string().chars().take(200).collect();
            format!("`{place}`: {text}")
        }
        _ => format!("`{place}`: {}", error.to_string().chars().take(200).collect::<String>()),
    }
}
