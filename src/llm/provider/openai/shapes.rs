//! Values that servers write in other shapes than the API says: what can be read of them is, and nothing else is lost for them.

use serde::Deserialize;
use serde::Deserializer;
use serde_json::Value;
use serde_json::value::RawValue;

/// Words of a delta: a text, or a list of parts of which some are thought.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "Value")]
pub(super) struct Words {
    pub(super) text: String,
    pub(super) thinking: String,
}

impl Words {
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.thinking.is_empty()
    }

    /// Returns all of them, where the field says what they are.
    pub(super) fn together(self) -> String {
        self.thinking + &self.text
    }

    fn add(&mut self, value: Value) {
        match value {
            Value::String(text) => self.text.push_str(&text),
            Value::Array(parts) => parts.into_iter().for_each(|part| self.add(part)),
            Value::Object(mut part) => {
                for name in ["thinking", "reasoning"] {
                    let words = part.remove(name).map(Self::from).unwrap_or_default();
                    self.thinking.push_str(&words.together());
                }
                for name in ["text", "refusal"] {
                    self.add(part.remove(name).unwrap_or_default());
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

impl From<Value> for Words {
    fn from(value: Value) -> Self {
        let mut words = Self::default();
        words.add(value);
        words
    }
}

/// Reads a number, also one that stands in a text; anything else is none.
pub(super) fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    })
}

/// Reads an index, also one that stands in a text; anything else, such as -1, is none.
pub(super) fn index<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    })
}

/// Reads a text, or a number as one; anything else is none.
pub(super) fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
}

/// Reads what it should be; anything else is none.
pub(super) fn maybe<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    Ok(one(<&RawValue>::deserialize(from)?))
}

/// Reads a list, or what it should hold as the only one in it; what is something else is left out.
pub(super) fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    Ok(some_list(from)?.unwrap_or_default())
}

/// Like [`list`]; what is neither is none.
pub(super) fn some_list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<Vec<T>>, D::Error> {
    let raw = <&RawValue>::deserialize(from)?;
    Ok(match serde_json::from_str::<Vec<&RawValue>>(raw.get()) {
        Ok(items) => Some(items.into_iter().filter_map(one).collect()),
        Err(_) => one(raw).map(|item| vec![item]),
    })
}

fn one<'de, T: Deserialize<'de>>(raw: &'de RawValue) -> Option<T> {
    // A list would be read as the fields of an object, in their order.
    if raw.get().starts_with('{') { serde_json::from_str(raw.get()).ok() } else { None }
}
