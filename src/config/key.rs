//! Setting keys: their spelling, the known ones, and suggestions for misspelt ones.

use serde::Serialize;
use serde_json::Value;

/// Returns the dotted form of a path; a part that TOML requires to be quoted is quoted.
pub(super) fn join(parent: &str, part: &str) -> String {
    let bare = !part.is_empty()
        && part
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    let part = if bare {
        part.to_owned()
    } else {
        format!("{part:?}")
    };
    if parent.is_empty() {
        part
    } else {
        format!("{parent}.{part}")
    }
}

/// Returns the parts of a dotted key; one in quotes may hold a dot.
pub(super) fn parts(key: &str) -> Vec<String> {
    toml_edit::Key::parse(key).map_or_else(
        |_| vec![key.to_owned()],
        |parts| parts.iter().map(|part| part.get().to_owned()).collect(),
    )
}

/// The known keys, derived from the defaults.
pub(super) struct Known {
    /// Keys of values, in order.
    pub(super) leaves: Vec<String>,
    /// Keys of tables.
    tables: Vec<String>,
}

impl Known {
    pub(super) fn of(defaults: &impl Serialize) -> Self {
        // JSON has null, so that optional keys without a default are included.
        let value = serde_json::to_value(defaults)
            .expect("settings are made of tables, lists, strings and numbers");
        let mut known = Self {
            leaves: Vec::new(),
            tables: Vec::new(),
        };
        known.walk("", &value);
        known
    }

    fn walk(&mut self, key: &str, value: &Value) {
        match value {
            Value::Object(fields) if key.is_empty() || !fields.is_empty() => {
                if !key.is_empty() {
                    self.tables.push(key.to_owned());
                }
                for (part, value) in fields {
                    self.walk(&join(key, part), value);
                }
            }
            _ => self.leaves.push(key.to_owned()),
        }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.leaves.iter().any(|known| known == key)
    }

    pub(super) fn has_table(&self, key: &str) -> bool {
        self.tables.iter().any(|known| known == key)
    }

    /// Returns the key that was probably meant.
    pub(super) fn near(&self, key: &str) -> Option<&str> {
        let (parent, name) = key.rsplit_once('.').unwrap_or(("", key));
        let all = || self.leaves.iter().chain(&self.tables).map(String::as_str);
        let beside =
            all().filter(|known| known.rsplit_once('.').map_or("", |(parent, _)| parent) == parent);
        let slip = beside
            .map(|known| (distance(last(known), name), known))
            .filter(|(off, _)| *off <= bound(name))
            .min();
        // The right name in the wrong table, then the right name in a misspelt table.
        let elsewhere = || all().find(|known| last(known) == name);
        slip.map(|(_, known)| known)
            .or_else(elsewhere)
            .or_else(|| near(key, all()))
    }
}

/// Returns the known name that was probably meant.
pub fn near<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|known| (distance(known, name), known))
        .filter(|(off, _)| *off <= bound(name))
        .min()
        .map(|(_, known)| known)
}

fn last(key: &str) -> &str {
    key.rsplit_once('.').map_or(key, |(_, name)| name)
}

fn bound(name: &str) -> usize {
    (name.chars().count() / 3).clamp(1, 3)
}

/// Returns the edit distance in characters.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let cost = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(key: &str, near: Option<&str>) {
        let known = Known::of(
            &json!({"sandbox": {"memory": "4GiB", "pids": null}, "llm": {"model": null, "headers": {}}, "offline": false}),
        );
        assert_eq!(known.near(key), near);
    }

    #[test]
    fn a_misspelt_key_gets_a_suggestion() {
        check("sandbox.memroy", Some("sandbox.memory"));
        check("sandbox.pid", Some("sandbox.pids"));
        check("memory", Some("sandbox.memory"));
        check("sandbx.memory", Some("sandbox.memory"));
        check("sandbx", Some("sandbox"));
        check("llm.modle", Some("llm.model"));
        check("ofline", Some("offline"));
        check("llm.temperature", None);
    }

    #[test]
    fn odd_names_are_quoted() {
        assert_eq!(join("a.b", "c"), "a.b.c");
        assert_eq!(join("a", "x.y"), "a.\"x.y\"");
        assert_eq!(join("", ""), "\"\"");
    }
}
