use std::fmt::Write as _;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::Value;

use super::Latitude;
use super::Loaded;
use super::Origin;
use super::env_vars;
use super::key;
use podbay_event::shown_address;

/// The documentation of one key.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    pub key: String,
    /// Null if it has none.
    pub default: Value,
    /// What the key is for; empty if it is undocumented.
    pub doc: String,
    /// The variable that sets it.
    pub variable: String,
}

/// Returns every setting, in the order of the structs that hold them.
pub fn settings<C: Default + Serialize + JsonSchema>() -> Vec<Setting> {
    let generator = SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator();
    let schema = generator.into_root_schema_for::<C>().to_value();
    let defaults = serde_json::to_value(C::default())
        .expect("settings are made of tables, lists, strings and numbers");
    let mut all = Vec::new();
    walk("", &defaults, Some(&schema), &mut all);
    all
}

fn walk(key: &str, value: &Value, schema: Option<&Value>, all: &mut Vec<Setting>) {
    match value {
        Value::Object(fields) if key.is_empty() || !fields.is_empty() => {
            for (part, value) in fields {
                let property = schema
                    .and_then(|schema| schema.get("properties"))
                    .and_then(|properties| properties.get(part));
                walk(&key::join(key, part), value, property, all);
            }
        }
        _ => {
            let doc = schema
                .and_then(|schema| schema.get("description"))
                .and_then(Value::as_str)
                .unwrap_or_default();
            let doc = doc.split_whitespace().collect::<Vec<_>>().join(" ");
            all.push(Setting {
                key: key.to_owned(),
                default: value.clone(),
                doc,
                variable: env_vars::name_of(key),
            });
        }
    }
}

/// A setting with its effective value and where that came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Explained {
    pub setting: Setting,
    /// Without the passwords of addresses; null if it is not set.
    pub value: Value,
    /// One of them, or all that a list was put together from.
    pub origins: Vec<Origin>,
}

/// Returns every setting with its value and origin.
pub fn explain<C: Default + Serialize + JsonSchema>(loaded: &Loaded<C>) -> Vec<Explained> {
    let values = serde_json::to_value(&loaded.config)
        .expect("settings are made of tables, lists, strings and numbers");
    settings::<C>()
        .into_iter()
        .map(|setting| {
            let value = below(&values, &setting.key).unwrap_or(&Value::Null);
            Explained {
                value: without_passwords(value),
                origins: origins(loaded, &setting.key),
                setting,
            }
        })
        .collect()
}

/// Returns one value, also one below a table of free names, and where it came from; `None`: there is
/// no such key.
pub fn value<C: Serialize>(loaded: &Loaded<C>, key: &str) -> Option<(Value, Vec<Origin>)> {
    let values = serde_json::to_value(&loaded.config)
        .expect("settings are made of tables, lists, strings and numbers");
    below(&values, key).map(|value| (without_passwords(value), origins(loaded, key)))
}

fn below<'a>(values: &'a Value, key: &str) -> Option<&'a Value> {
    key::parts(key)
        .iter()
        .try_fold(values, |value, part| value.get(part))
}

fn origins<C>(loaded: &Loaded<C>, key: &str) -> Vec<Origin> {
    match loaded.origins.all(key) {
        // A table of free names has its origins below it.
        [] => vec![loaded.origins.of(key).clone()],
        all => all.to_vec(),
    }
}

/// Returns the JSON Schema of a settings file, for editors.
pub fn schema<C: JsonSchema>() -> Value {
    let mut schema = SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<C>();
    schema.insert("title".to_owned(), "Podbay settings".into());
    schema.to_value()
}

/// Renders every key with its value, origin and documentation.
pub fn render<C: Default + Serialize + JsonSchema>(loaded: &Loaded<C>) -> String {
    shown(&explain(loaded))
}

/// Renders settings, each with its value, origin and documentation.
pub fn shown(all: &[Explained]) -> String {
    let mut text = String::new();
    for Explained {
        setting,
        value,
        origins,
    } in all
    {
        let from: Vec<String> = origins.iter().map(Origin::to_string).collect();
        writeln!(
            text,
            "{} = {}  ({})",
            setting.key,
            show(value),
            from.join(", ")
        )
        .expect(TAKES_ALL);
        if !setting.doc.is_empty() {
            writeln!(text, "    {}", setting.doc).expect(TAKES_ALL);
        }
    }
    text
}

/// Renders all settings as a Markdown page, `docs/configuration.md`.
pub fn markdown<C: Default + Serialize + JsonSchema>() -> String {
    let mut text = String::new();
    let mut section = None;
    for setting in settings::<C>() {
        let (table, name) = setting.key.rsplit_once('.').unwrap_or(("", &setting.key));
        if section.as_deref() != Some(table) {
            let title = if table.is_empty() {
                "Top level".to_owned()
            } else {
                format!("`[{table}]`")
            };
            let gap = if section.is_some() { "\n" } else { "" };
            write!(text, "{gap}## {title}\n\n| key | default | variable | meaning | a project may |\n| --- | --- | --- | --- | --- |\n")
                .expect(TAKES_ALL);
            section = Some(table.to_owned());
        }
        let cell = |text: &str| text.replace('|', "\\|");
        let default = if setting.default.is_null() {
            "not set".to_owned()
        } else {
            format!("`{}`", cell(&show(&setting.default)))
        };
        let latitude = Latitude::of(&setting.key);
        writeln!(
            text,
            "| `{name}` | {default} | `{}` | {} | {latitude} |",
            setting.variable,
            cell(&setting.doc)
        )
        .expect(TAKES_ALL);
    }
    text
}

const TAKES_ALL: &str = "a string takes all that is written";

fn show(value: &Value) -> String {
    if value.is_null() {
        "not set".to_owned()
    } else {
        value.to_string()
    }
}

/// Removes passwords from the URLs in a value.
fn without_passwords(value: &Value) -> Value {
    match value {
        // An image's name has an `@` too, and no password.
        Value::String(text) if text.contains("://") => Value::String(shown_address(text)),
        Value::Array(values) => values.iter().map(without_passwords).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), without_passwords(value)))
            .collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_url_in_a_value_is_shown_without_its_password() {
        let value = json!({"a": ["https://u:sesame@h/x", "plain"], "b": "https://h/?token=sesame", "image": "debian@sha256:00", "n": 1});
        let shown = json!({"a": ["https://***@h/x", "plain"], "b": "https://h/?***", "image": "debian@sha256:00", "n": 1});
        assert_eq!(without_passwords(&value), shown);
    }
}
