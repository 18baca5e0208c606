use std::fmt;

use super::encoded;
use super::json_line;

/// A key or a password. It has no `Display` and no serde, and its `Debug` is `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// Returns a text with the value blotted out, also where it is escaped as within JSON. A secret
    /// of a few characters would blot out ordinary text and hides nothing worth it.
    pub fn hide_in(&self, text: String) -> String {
        self.hide_forms(text, 0)
    }

    /// Returns a text with the value blotted out also where it is encoded, as whoever repeats a
    /// request may do: in an address, a page, in base 64.
    pub fn hide_encoded_in(&self, text: String) -> String {
        let text = self.hide_in(text);
        if self.hides() {
            encoded::hide(&self.0, text)
        } else {
            text
        }
    }

    /// Returns a line of JSON with the value blotted out in its strings.
    pub fn hide_in_json(&self, line: String) -> String {
        self.hide_forms(line, 1)
    }

    /// Blots the value out as it is escaped so often at least, and twice more: arguments are JSON
    /// within a string of JSON.
    fn hide_forms(&self, text: String, least: usize) -> String {
        if !self.hides() {
            return text;
        }
        let escaped = |form: &String| {
            json_line(form)
                .ok()
                .map(|json| json[1..json.len() - 1].to_owned())
        };
        let mut forms: Vec<String> = std::iter::successors(Some(self.0.clone()), escaped)
            .skip(least)
            .take(3)
            .collect();
        forms.dedup();
        // The longest first: it may end with a shorter one.
        forms.iter().rev().fold(text, |text, form| {
            if text.contains(form) {
                text.replace(form, "***")
            } else {
                text
            }
        })
    }

    /// Returns whether it is long enough to be blotted out.
    pub fn hides(&self) -> bool {
        self.0.len() >= 6
    }

    /// Returns the value, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn it_is_blotted_out_where_it_is_long_enough_to_be_one() {
        assert_eq!(
            Secret::new("sk-123").hide_in("a sk-123 b".to_owned()),
            "a *** b"
        );
        assert_eq!(
            Secret::new("a").hide_in("a sk-123 b".to_owned()),
            "a sk-123 b"
        );
    }

    #[test]
    fn it_is_blotted_out_however_often_it_is_escaped() {
        for key in ["sk-\"12\\3", "\"sk-123", "sk-123\"", "sk-123"] {
            let secret = Secret::new(key);
            let arguments = serde_json::json!({ "command": format!("echo {key}!") }).to_string();
            let line = serde_json::json!({ "arguments": arguments, "text": key }).to_string();
            let inner = &key[1..key.len() - 1];
            for hidden in [
                secret.hide_in(key.to_owned()),
                secret.hide_in(arguments),
                secret.hide_in_json(line),
            ] {
                assert!(
                    hidden.contains("***") && !hidden.contains(inner) && !hidden.contains("123"),
                    "{key}: {hidden}"
                );
            }
            let line = serde_json::json!({ "arguments": serde_json::json!({ "command": key }).to_string() }).to_string();
            assert!(
                serde_json::from_str::<serde_json::Value>(&secret.hide_in_json(line)).is_ok(),
                "{key}: it is JSON still"
            );
        }
    }

    #[test]
    fn debug_shows_nothing() {
        assert_eq!(format!("{:?}", Secret::new("sk-123")), "***");
    }
}
