use serde::de::DeserializeOwned;
use toml::Table;
use toml::Value;

use super::Error;
use super::Flag;
use super::Origin;
use super::key::Known;
use super::layer::Layer;
use super::secret::is_secret;

const PREFIX: &str = "PODBAY_";
/// Other tools' names for these settings. They are weaker than our own variables.
const ALIAS_BASE_URL: &str = "OPENAI_BASE_URL";
const ALIASES: [(&str, &str); 2] = [(ALIAS_BASE_URL, ENDPOINT), ("OPENAI_MODEL", MODEL)];
const ALIAS_KEY: &str = "OPENAI_API_KEY";
const ENDPOINT: &str = "llm.endpoint";
const MODEL: &str = "llm.model";
const KEY_VARIABLE: &str = "llm.api_key_env";
const KEY_FILE: &str = "llm.api_key_file";

/// Makes layers of the variables that are settings, and warnings about misspelt ones.
pub(super) fn layers<C: DeserializeOwned>(
    variables: &[(String, String)],
    known: &Known,
    files: &Table,
    flags: &[Flag],
    warnings: &mut Vec<String>,
) -> Result<Vec<Layer>, Error> {
    let value_of = |name: &str| {
        variables
            .iter()
            .find(|(key, value)| key == name && !value.is_empty())
            .map(|(_, value)| value.as_str())
    };
    let mut layers = Vec::new();
    for (variable, key) in ALIASES {
        if let Some(value) = value_of(variable)
            && known.has(key)
        {
            layers.push(single::<C>(
                key,
                Value::String(value.to_owned()),
                &from(variable),
            )?);
        }
    }
    if value_of(ALIAS_KEY).is_some()
        && known.has(KEY_VARIABLE)
        && key_is_meant(files, flags, &value_of)
    {
        layers.push(single::<C>(
            KEY_VARIABLE,
            Value::String(ALIAS_KEY.to_owned()),
            &from(ALIAS_KEY),
        )?);
    }
    let mut ours: Vec<&(String, String)> = variables
        .iter()
        .filter(|(name, value)| name.starts_with(PREFIX) && !value.is_empty())
        .collect();
    ours.sort();
    for (variable, value) in ours {
        if let Some(key) = known.leaves.iter().find(|key| name_of(key) == *variable) {
            if is_secret(key) {
                return Err(Error::Secret {
                    origin: from(variable),
                    key: key.clone(),
                });
            }
            layers.push(text::<C>(key, value, &from(variable), Guess::Toml)?);
        } else if variable == "PODBAY_LLM_API_KEY" && known.has(KEY_VARIABLE) {
            // The settings name the variable and do not contain the key.
            layers.push(single::<C>(
                KEY_VARIABLE,
                Value::String(variable.clone()),
                &from(variable),
            )?);
        } else if let Some(warning) = misspelt(variable, known) {
            warnings.push(warning);
        }
    }
    Ok(layers)
}

/// Returns the variable that sets a key: `PODBAY_SANDBOX_MEMORY` for `sandbox.memory`.
pub(super) fn name_of(key: &str) -> String {
    let name: String = key
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_uppercase()
            } else {
                '_'
            }
        })
        .collect();
    format!("{PREFIX}{name}")
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Guess {
    /// A variable: `5` is a number, unless the key is a string.
    Toml,
    /// A flag: `5` is a string, unless the key is a number.
    Text,
}

/// Makes a layer of a textual value, using the first interpretation that fits the key.
pub(super) fn text<C: DeserializeOwned>(
    key: &str,
    value: &str,
    origin: &Origin,
    guess: Guess,
) -> Result<Layer, Error> {
    let mut first = None;
    for reading in readings(value, guess) {
        match single::<C>(key, reading, origin) {
            Ok(layer) => return Ok(layer),
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.expect("text can always be read as text"))
}

/// Returns what a textual value may mean, the most likely first.
pub(super) fn readings(value: &str, guess: Guess) -> impl Iterator<Item = Value> {
    let toml: Option<Value> = value.parse().ok();
    let plain = Some(Value::String(value.to_owned()));
    let list = Value::Array(
        value
            .split(',')
            .map(|part| Value::String(part.trim().to_owned()))
            .collect(),
    );
    let (first, second) = if guess == Guess::Toml {
        (toml, plain)
    } else {
        (plain, toml)
    };
    [first, second, Some(list)].into_iter().flatten()
}

pub(super) fn single<C: DeserializeOwned>(
    key: &str,
    value: Value,
    origin: &Origin,
) -> Result<Layer, Error> {
    let layer = Layer::single(key, value, origin.clone());
    layer.check::<C>().map(|_| layer)
}

fn from(variable: &str) -> Origin {
    Origin::Environment {
        variable: variable.to_owned(),
    }
}

/// Returns whether `OPENAI_API_KEY` applies to the endpoint.
///
/// Many shells have that variable set for other tools, and a key must not be sent to an endpoint it
/// was not meant for: it applies only if the endpoint comes from `OPENAI_BASE_URL` or is the one of
/// OpenAI, and no key is configured.
fn key_is_meant<'a>(
    files: &Table,
    flags: &[Flag],
    value_of: &impl Fn(&str) -> Option<&'a str>,
) -> bool {
    let in_files = |key: &str| {
        let (section, name) = key.split_once('.').expect("these keys are in a section");
        files
            .get(section)
            .and_then(|section| section.get(name))
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let in_flags = |key: &str| {
        flags
            .iter()
            .rfind(|flag| flag.key == key)
            .and_then(|flag| flag.value.as_str())
            .map(str::to_owned)
    };
    let ours = |key: &str| in_flags(key).or_else(|| value_of(&name_of(key)).map(str::to_owned));
    if [KEY_VARIABLE, KEY_FILE]
        .iter()
        .any(|key| in_files(key).is_some() || ours(key).is_some())
    {
        return false;
    }
    let own = |endpoint: String| {
        endpoint.starts_with("https://api.openai.com/") || endpoint == "https://api.openai.com"
    };
    match ours(ENDPOINT) {
        Some(endpoint) => own(endpoint),
        None => value_of(ALIAS_BASE_URL).is_some() || in_files(ENDPOINT).is_some_and(own),
    }
}

/// Warns about a variable that starts like a setting and is none. Others with our prefix
/// (`PODBAY_HOME`) have other uses.
fn misspelt(variable: &str, known: &Known) -> Option<String> {
    let rest = variable.strip_prefix(PREFIX)?.to_ascii_lowercase();
    let (section, name) = rest.split_once('_')?;
    if !known.has_table(section) {
        return None;
    }
    let near = known
        .near(&format!("{section}.{name}"))
        .map(|key| format!("; did you mean `{}`?", name_of(key)))
        .unwrap_or_default();
    Some(format!("{variable}: there is no such setting{near}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn variables_of_other_tools_set_existing_keys() {
        let known = Known::of(&Config::default());
        for key in [ENDPOINT, MODEL, KEY_VARIABLE, KEY_FILE] {
            assert!(known.has(key), "{key}: rename it here too");
        }
    }
}
