//! Lenient parsing of values that deviate from the API: what can be parsed is kept, and the rest
//! does not make the whole fail.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;
use serde::Deserializer;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::provider::half::Halved;
use crate::provider::half::mended;

/// The text of a delta: a string, or a list of parts of which some are reasoning.
#[derive(Debug, Default)]
pub(super) struct Words {
    pub(super) text: Halved,
    pub(super) thinking: Halved,
}

impl Words {
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.thinking.is_empty()
    }

    /// Returns all of it, if the field name decides its kind.
    pub(super) fn together(self) -> Halved {
        let mut all = self.thinking;
        all.push(self.text);
        all
    }

    fn of(raw: &RawValue) -> Self {
        let mut words = Self::default();
        words.add(raw);
        words
    }

    fn add(&mut self, raw: &RawValue) {
        match raw.get().as_bytes().first() {
            Some(b'"') => self
                .text
                .push(Halved::of_json(raw.get()).unwrap_or_default()),
            Some(b'[') => {
                let parts: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
                for part in parts {
                    self.add(part);
                }
            }
            Some(b'{') => {
                let part: HashMap<Cow<'_, str>, &RawValue> =
                    serde_json::from_str(raw.get()).unwrap_or_default();
                for name in ["thinking", "reasoning"] {
                    let words = part.get(name).map(|raw| Self::of(raw)).unwrap_or_default();
                    self.thinking.push(words.together());
                }
                for name in ["text", "refusal"] {
                    if let Some(raw) = part.get(name) {
                        self.add(raw);
                    }
                }
            }
            _ => {}
        }
    }
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self::of(<&RawValue>::deserialize(from)?))
    }
}

/// Parses any value, with U+FFFD for lone surrogates.
pub(super) fn value<'de, D: Deserializer<'de>>(from: D) -> Result<Value, D::Error> {
    Ok(serde_json::from_str(&mended(<&RawValue>::deserialize(from)?.get())).unwrap_or_default())
}

/// Parses a number, also in a string; anything else is `None`.
pub(super) fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    Ok(match value(from)? {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    })
}

/// Parses an index, also in a string; anything else, such as -1, is `None`.
pub(super) fn index<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    Ok(match value(from)? {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    })
}

/// Parses a string, or a number as one; anything else is `None`.
pub(super) fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(match value(from)? {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
}

/// Parses the expected type; anything else is `None`.
pub(super) fn maybe<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    Ok(one(<&RawValue>::deserialize(from)?))
}

/// Parses a list, or its only element without a list; other elements are dropped.
pub(super) fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Vec<T>, D::Error> {
    Ok(some_list(from)?.unwrap_or_default())
}

/// Like [`list`]; anything else is `None`.
pub(super) fn some_list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<Vec<T>>, D::Error> {
    let raw = <&RawValue>::deserialize(from)?;
    Ok(match serde_json::from_str::<Vec<&RawValue>>(raw.get()) {
        Ok(items) => Some(items.into_iter().filter_map(one).collect()),
        Err(_) => one(raw).map(|item| vec![item]),
    })
}

fn one<'de, T: Deserialize<'de>>(raw: &'de RawValue) -> Option<T> {
    // A list would be parsed as the fields of an object, in their order.
    if raw.get().starts_with('{') {
        serde_json::from_str(raw.get()).ok()
    } else {
        None
    }
}
