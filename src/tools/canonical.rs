use serde_json::Value;

use super::Catalogue;
use podbay_policy::Action;
use podbay_wire::Call;

impl Catalogue {
    /// Returns the canonical form of a call: equal for calls that differ only in spelling.
    pub fn canonical(&self, name: &str, arguments: &str) -> String {
        if let Ok(mut understood) = self.parse(name, arguments) {
            // A shell ignores white space around a command.
            if let Action::Box(Call::Bash(bash)) = &mut understood.action {
                bash.command = bash.command.trim().to_owned();
            }
            let fields = if let Action::Box(call) = &understood.action {
                serde_json::to_value(call).ok()
            } else {
                None
            };
            let action = fields.map_or_else(
                || format!("{:?}", understood.action),
                |fields| with_plain_paths(fields).to_string(),
            );
            return format!("{} {action}", understood.name);
        }
        let name = self.find(name).map_or(name, |tool| tool.name);
        format!("{name} {}", sorted(arguments))
    }
}

/// Arguments that hold paths.
const PATHS: [&str; 9] = [
    "path",
    "source",
    "destination",
    "archive",
    "into",
    "file",
    "files",
    "working_directory",
    "to",
];

/// Normalizes the paths in a call.
fn with_plain_paths(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let plain = |(key, value): (String, Value)| {
                let value = if PATHS.contains(&key.as_str()) {
                    plain_paths(value)
                } else {
                    with_plain_paths(value)
                };
                (key, value)
            };
            Value::Object(fields.into_iter().map(plain).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(with_plain_paths).collect()),
        other => other,
    }
}

fn plain_paths(value: Value) -> Value {
    match value {
        Value::String(path) => Value::String(plain_path(&path)),
        Value::Array(paths) => Value::Array(paths.into_iter().map(plain_paths).collect()),
        other => with_plain_paths(other),
    }
}

/// Returns a path relative to the project, without empty and `.` components, as the kernel resolves
/// it. `..` stays, since symlinks decide where it leads; a trailing `/` stays, since it names a
/// folder only.
fn plain_path(path: &str) -> String {
    let root = if path.starts_with('/') { "/" } else { "" };
    let end = if path.ends_with('/') || path.ends_with("/.") {
        "/"
    } else {
        ""
    };
    let mut components: Vec<&str> = path
        .split('/')
        .filter(|component| !matches!(*component, "" | "."))
        .collect();
    let is_inside = !root.is_empty() && components.first() == Some(&"workspace");
    let root = if is_inside { "" } else { root };
    components.drain(..usize::from(is_inside));
    match components.as_slice() {
        [] if path.is_empty() => String::new(),
        [] if root.is_empty() => ".".to_owned(),
        [] => root.to_owned(),
        components => format!("{root}{}{end}", components.join("/")),
    }
}

/// Serializes a JSON text with sorted keys; any other text is returned unchanged.
fn sorted(text: &str) -> String {
    serde_json::from_str::<Value>(text).map_or_else(
        |_| text.trim().to_owned(),
        |value| in_order(value).to_string(),
    )
}

fn in_order(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(String, Value)> = fields
                .into_iter()
                .map(|(key, value)| (key, in_order(value)))
                .collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(fields.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(in_order).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;

    #[test]
    fn equivalent_calls_have_the_same_canonical_form() {
        let canonical = |name: &str, arguments: &str| {
            Catalogue::new(&Options::default()).canonical(name, arguments)
        };
        let one = canonical("read_file", r#"{"path": "a", "limit": 5}"#);
        assert_eq!(
            one,
            canonical("FileRead", r#"{"limit":"5","file_path":"a"}"#)
        );
        assert_ne!(one, canonical("read_file", r#"{"path": "b", "limit": 5}"#));
        assert_eq!(
            one,
            canonical("read_file", r#"{"path": "./././/a", "limit": 5}"#)
        );
        assert_eq!(
            one,
            canonical("read_file", r#"{"path": "/workspace/./a", "limit": 5}"#)
        );
        assert_ne!(one, canonical("read_file", r#"{"path": "/a", "limit": 5}"#));
        assert_ne!(
            one,
            canonical("read_file", r#"{"path": "b/../a", "limit": 5}"#)
        );
        let list = |path: &str| canonical("list_directory", &format!(r#"{{"path": "{path}"}}"#));
        assert!(
            list("src") == list("./src")
                && list("src") != list("src/")
                && list(".") == list("././"),
            "{}",
            list("././")
        );
        assert_eq!(
            canonical("fly", r#"{"b": 1, "a": {"d": 2, "c": 3}}"#),
            r#"fly {"a":{"c":3,"d":2},"b":1}"#
        );
        assert_eq!(canonical("bash", " {broken "), "bash {broken");
        assert_eq!(
            canonical("bash", r#"{"command": " ls -l\n"}"#),
            canonical("bash", r#"{"command": "ls -l"}"#)
        );
        assert_ne!(
            canonical("bash", r#"{"command": "ls  -l"}"#),
            canonical("bash", r#"{"command": "ls -l"}"#)
        );
    }
}
