//! Values that servers write in other shapes than the API says: what can be read of them is, and nothing else is lost for them.

use serde::Deserialize;
use serde::Deserializer;
use serde_json::Value;

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
