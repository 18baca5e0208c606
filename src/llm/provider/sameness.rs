//! Equality of JSON values: numbers are compared by value, however they are written.

use serde_json::Number;
use serde_json::Value;

/// Returns whether two values are equal.
pub fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => is_same_number(one, other),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .zip(other)
                    .all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(key, value)| other.get(key).is_some_and(|other| is_same(value, other)))
        }
        (one, other) => one == other,
    }
}

/// Returns whether two texts are JSON of equal values.
pub(super) fn is_same_text(one: &str, other: &str) -> bool {
    let read = |text| serde_json::from_str::<Value>(text).ok();
    read(one)
        .zip(read(other))
        .is_some_and(|(one, other)| is_same(&one, &other))
}

/// Integers are compared as such: two large ones may have the same floating-point value.
fn is_same_number(one: &Number, other: &Number) -> bool {
    match (whole(one), whole(other)) {
        (Some(one), Some(other)) => one == other,
        (None, None) => one.as_f64() == other.as_f64(),
        _ => false,
    }
}

/// Returns the integer value of a number, as far as a float is exact.
fn whole(number: &Number) -> Option<i128> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if let Some(whole) = number.as_i128() {
        return Some(whole);
    }
    number
        .as_f64()
        .filter(|float| float.fract() == 0.0 && float.abs() <= EXACT)
        .map(|float| float as i128)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(one: &str, other: &str, expected: bool) {
        assert_eq!(
            (is_same_text(one, other), is_same_text(other, one)),
            (expected, expected),
            "{one} {other}"
        );
    }

    #[test]
    fn numbers_are_equal_by_value() {
        for (one, other) in [
            ("5", "5.0"),
            ("5", "5e0"),
            ("-0.0", "0"),
            ("1e3", "1000"),
            ("0.5", "5e-1"),
            (r#"{"a":[1,{"b":2.0}]}"#, r#"{"a":[1.0,{"b":2}]}"#),
        ] {
            check(one, other, true);
        }
        for (one, other) in [
            ("5", "5.5"),
            ("5", "\"5\""),
            ("1", "true"),
            ("9007199254740993", "9007199254740992"),
            ("18446744073709551615", "18446744073709551614"),
            ("[1]", "[1,1]"),
            (r#"{"a":1}"#, r#"{"b":1}"#),
            ("{", "{"),
        ] {
            check(one, other, false);
        }
    }
}
