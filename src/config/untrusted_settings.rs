use std::fmt;

use serde_json::Value as Json;
use toml::Table;
use toml::Value;

use super::Latitude;
use super::Origin;
use super::key;
use super::key::Known;
use super::layer::Layer;

/// A setting of an untrusted project that was ignored.
#[derive(Clone, Debug, PartialEq)]
pub struct IgnoredSetting {
    pub origin: Origin,
    pub key: String,
    /// The value in the file.
    pub value: String,
    /// The effective value.
    pub holds: String,
    pub latitude: Latitude,
}

impl fmt::Display for IgnoredSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            origin,
            key,
            holds,
            latitude,
            ..
        } = self;
        write!(f, "{origin}: `{key}` is ignored: a project may {latitude}")?;
        if *latitude == Latitude::Never {
            Ok(())
        } else {
            write!(f, ", and {holds} holds")
        }
    }
}

/// Removes from a project's layer what would loosen the weaker layers, and returns it.
pub(super) fn narrow(
    layer: &mut Layer,
    known: &Known,
    below: &Table,
    defaults: &Json,
) -> Vec<IgnoredSetting> {
    let mut refused = Vec::new();
    let set = |key: &str| {
        let mut parts = key.split('.');
        let first = below.get(parts.next()?)?;
        parts
            .try_fold(first, |value, part| value.get(part))
            .map(json)
    };
    let default = |key: &str| {
        key.split('.')
            .try_fold(defaults, |value, part| value.get(part))
            .cloned()
    };
    let now = |key: &str| set(key).or_else(|| default(key)).unwrap_or(Json::Null);
    retain("", &mut layer.table, known, &mut |key, value| {
        let (latitude, now, new) = (Latitude::of(key), now(key), json(value));
        let lets = latitude.lets(&now, &new);
        if !lets {
            refused.push((key.to_owned(), latitude, shown(&new), shown(&now)));
        }
        lets
    });
    let mut refused: Vec<IgnoredSetting> = refused
        .into_iter()
        .map(|(key, latitude, value, holds)| IgnoredSetting {
            origin: layer.origin(&key),
            key,
            value,
            holds,
            latitude,
        })
        .collect();
    refused.sort_by_key(|passed| layer.line(&passed.key));
    refused
}

/// Visits the values; unknown keys stay, to be warned about, and have no effect.
fn retain(
    parent: &str,
    table: &mut Table,
    known: &Known,
    lets: &mut impl FnMut(&str, &Value) -> bool,
) {
    table.retain(|part, value| {
        let key = key::join(parent, part);
        match value {
            Value::Table(inner) if known.has_table(&key) => {
                retain(&key, inner, known, lets);
                true
            }
            value => !known.has(&key) || lets(&key, value),
        }
    });
}

fn json(value: &Value) -> Json {
    serde_json::to_value(value).unwrap_or(Json::Null)
}

fn shown(value: &Json) -> String {
    match value {
        Json::Null => "nothing".to_owned(),
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}
