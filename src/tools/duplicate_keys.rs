//! JSON objects with duplicate keys. Parsers disagree on which value counts, so the user might
//! approve one value and another might be executed.

use std::cell::RefCell;
use std::fmt;

use serde::de::DeserializeSeed;
use serde::de::Deserializer;
use serde::de::MapAccess;
use serde::de::SeqAccess;
use serde::de::Visitor;
use serde_json::Map;
use serde_json::Value;

use podbay_llm::is_same;

/// Parses a JSON text; also returns the first key that an object has twice with different values.
pub(super) fn read(text: &str) -> serde_json::Result<(Value, Option<String>)> {
    let doubled = RefCell::new(None);
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = Reading(&doubled).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok((value, doubled.into_inner()))
}

#[derive(Clone, Copy)]
struct Reading<'a>(&'a RefCell<Option<String>>);

impl<'de> DeserializeSeed<'de> for Reading<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reading<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            let value = fields.next_value_seed(self)?;
            let before = all.insert(key.clone(), value);
            if before.is_some_and(|before| !all.get(&key).is_some_and(|now| is_same(now, &before)))
            {
                self.0.borrow_mut().get_or_insert(key);
            }
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duplicate_key_is_found_at_any_depth() {
        for (text, doubled) in [
            (r#"{"a": 1, "a": 2}"#, Some("a")),
            (r#"{"a": 1, "a": 1}"#, None),
            (r#"{"a": 1, "a": 1.0}"#, None),
            (
                r#"{"a": {"b": [{"c": null, "d": 1, "c": false}]}}"#,
                Some("c"),
            ),
            (r#"{"a": 1, "\u0061": "x"}"#, Some("a")),
            (r#"[{"a": 1}, {"a": 2}]"#, None),
        ] {
            let (value, found) = read(text).expect("JSON");
            assert_eq!(found.as_deref(), doubled, "{text}");
            assert_eq!(
                value,
                serde_json::from_str::<Value>(text).expect("JSON"),
                "{text}"
            );
        }
        for text in ["", "{", "{} x", r#"{"a" 1}"#] {
            assert_eq!(
                read(text).expect_err("none").to_string(),
                serde_json::from_str::<Value>(text)
                    .expect_err("none")
                    .to_string()
            );
        }
        let numbers = "[0, -1, 18446744073709551615, 1e3, 0.1, -0.0]";
        assert_eq!(
            read(numbers).expect("JSON").0,
            serde_json::from_str::<Value>(numbers).expect("JSON")
        );
    }
}
