//! Integers of any length, which a `serde_json::Value` would round.
//! Between parsing and serializing they are strings that begin with a noncharacter, which no model
//! writes.

use serde::Serialize;
use serde::Serializer;
use serde::ser::SerializeMap;
use serde_json::Value;
use serde_json::value::RawValue;

/// Precedes the digits: a noncharacter.
const MARK: char = '\u{fdd0}';

/// Returns the value of an integer that does not fit into 64 bits.
pub(super) fn number(text: &str) -> Option<Value> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_whole = !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && (digits.len() == 1 || !digits.starts_with('0'));
    let is_long = text.parse::<i64>().is_err() && text.parse::<u64>().is_err();
    (is_whole && is_long).then(|| Value::String(format!("{MARK}{text}")))
}

/// Serializes a value as JSON, with the digits as they were written.
pub(super) fn write(value: &Value) -> String {
    serde_json::to_string(&ExactNumbers(value)).unwrap_or_else(|_| value.to_string())
}

struct ExactNumbers<'v>(&'v Value);

impl Serialize for ExactNumbers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::String(text) => match text
                .strip_prefix(MARK)
                .filter(|digits| number(digits).is_some())
            {
                Some(digits) => RawValue::from_string(digits.to_owned())
                    .map_err(serde::ser::Error::custom)?
                    .serialize(serializer),
                None => serializer.serialize_str(text),
            },
            Value::Array(items) => serializer.collect_seq(items.iter().map(ExactNumbers)),
            Value::Object(fields) => {
                let mut object = serializer.serialize_map(Some(fields.len()))?;
                for (key, value) in fields {
                    object.serialize_entry(key, &ExactNumbers(value))?;
                }
                object.end()
            }
            other => other.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_numbers_keep_their_digits_and_nothing_else_changes() {
        let long = "-123456789012345678901234567890";
        let value = json!({"a": [number(long), 1, -0.5], "b": {"c": "\u{fdd0}x", "d": null}});
        assert_eq!(
            write(&value),
            format!("{{\"a\":[{long},1,-0.5],\"b\":{{\"c\":\"\u{fdd0}x\",\"d\":null}}}}")
        );
        for short in [
            "0",
            "-1",
            "18446744073709551615",
            "1.5",
            "1e99",
            "",
            "-",
            "00000000000000000000001",
            "x",
        ] {
            assert_eq!(number(short), None, "{short}");
        }
        assert_eq!(
            write(&number("18446744073709551616").expect("is long")),
            "18446744073709551616"
        );
    }
}
