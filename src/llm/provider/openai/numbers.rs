//! Numbers that JSON does not allow: servers print `NaN` and `Infinity` for what they could not
//! measure.

/// Terminates a number or a word.
const SIGNS: &[u8] = b",:[]{}\" \t\r\n";

/// Replaces each invalid number or word in an object by `null`; `None` if there is none. Strings
/// stay unchanged.
pub(super) fn without_odd_ones(json: &str) -> Option<String> {
    let json = json.trim_start();
    if !json.starts_with('{') {
        return None;
    }
    let (mut out, mut copied, mut at) = (String::new(), 0, 0);
    let bytes = json.as_bytes();
    while at < bytes.len() {
        if bytes[at] == b'"' {
            at = behind_text(bytes, at + 1);
        } else if SIGNS.contains(&bytes[at]) {
            at += 1;
        } else {
            let end = bytes[at..]
                .iter()
                .position(|byte| SIGNS.contains(byte))
                .map_or(bytes.len(), |n| at + n);
            // These are one byte long, so slices end at character boundaries.
            if serde_json::from_str::<serde::de::IgnoredAny>(&json[at..end]).is_err() {
                out.push_str(&json[copied..at]);
                out.push_str("null");
                copied = end;
            }
            at = end;
        }
    }
    (copied > 0).then(|| out + &json[copied..])
}

/// Returns where a string ends whose opening quote is consumed.
fn behind_text(bytes: &[u8], mut at: usize) -> usize {
    while let Some(n) = memchr::memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
        at += n + 1;
        if bytes[at - 1] == b'"' {
            return at;
        }
        at += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_numbers_become_null_and_nothing_else_changes() {
        for (odd, expected) in [
            (
                r#"{"a": NaN, "b": [-Infinity,Infinity , 1.5e3], "c": true}"#,
                r#"{"a": null, "b": [null,null , 1.5e3], "c": true}"#,
            ),
            (r#"{"a":nan}"#, r#"{"a":null}"#),
            (
                r#"{"a": -nan(ind), "b": .5, "c": +1, "d": 1.#INF}"#,
                r#"{"a": null, "b": null, "c": null, "d": null}"#,
            ),
            (
                r#" {"NaN \" NaN": NaN, "b": "Infinity\\", "c": é}"#,
                r#"{"NaN \" NaN": null, "b": "Infinity\\", "c": null}"#,
            ),
        ] {
            assert_eq!(without_odd_ones(odd).as_deref(), Some(expected));
        }
        for fine in [
            r#"{"a": "NaN", "b": [1, null, false, -0.5E-3]}"#,
            "{}",
            "NaN",
            "[NaN]",
            "",
            r#"{"a"#,
            r#"{"a\"#,
            r#"{"a": "x\"#,
        ] {
            assert_eq!(without_odd_ones(fine), None, "{fine}");
        }
    }
}
