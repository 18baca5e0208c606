use serde_json::Value;

use super::Catalogue;
use super::Tool;
use podbay_policy::Action;
use podbay_wire::Call;

/// A call in the words that it may be made of, whoever writes it and in whatever notation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wording {
    /// All names of its tool.
    pub names: Vec<&'static str>,
    pub parts: Vec<Part>,
}

/// A text, a number or the like in the arguments of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// All names of its argument.
    pub keys: Vec<String>,
    pub value: String,
    /// It belongs to what every call of the tool must have.
    pub is_needed: bool,
}

impl Catalogue {
    /// Returns the words of a call; `None` where it is none of ours.
    pub fn wording(&self, name: &str, arguments: &str) -> Option<Wording> {
        let tool = self.meant(name, arguments)?;
        let value = self.input(name, arguments).or_else(|| serde_json::from_str(arguments).ok())?;
        let required = &tool.parameters["required"];
        let mut parts = Vec::new();
        for (key, value) in value.as_object()? {
            let is_needed = required.as_array().is_some_and(|all| all.iter().any(|one| one == key));
            add_parts(tool, key, value, is_needed, &mut parts);
        }
        Some(Wording { names: [&[tool.name], tool.aliases].concat(), parts })
    }

    /// Returns the tool that a call is of, also where it came inside of another call.
    fn meant(&self, name: &str, arguments: &str) -> Option<&Tool> {
        let tool = self.find(name)?;
        match self.parse(name, arguments) {
            Ok(understood) if understood.inner.is_some() => self.find(understood.name),
            _ => Some(tool),
        }
    }

    /// Returns whether a call does nothing but look, or is none of ours and does nothing at all.
    pub fn only_looks(&self, name: &str, arguments: &str) -> bool {
        self.parse(name, arguments).map_or(true, |understood| understood.action.is_read_only())
    }

    /// Returns a text that is equal for calls that mean the same: what differs is only how they are written.
    pub fn canonical(&self, name: &str, arguments: &str) -> String {
        if let Ok(mut understood) = self.parse(name, arguments) {
            // To a shell white space around a command is nothing.
            if let Action::Box(Call::Bash(bash)) = &mut understood.action {
                bash.command = bash.command.trim().to_owned();
            }
            let fields = if let Action::Box(call) = &understood.action { serde_json::to_value(call).ok() } else { None };
            let action = fields.map_or_else(|| format!("{:?}", understood.action), |fields| with_plain_paths(fields).to_string());
            return format!("{} {action}", understood.name);
        }
        let name = self.find(name).map_or(name, |tool| tool.name);
        format!("{name} {}", sorted(arguments))
    }
}

fn add_parts(tool: &Tool, key: &str, value: &Value, is_needed: bool, parts: &mut Vec<Part>) {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        Value::Null => return,
        Value::Array(items) => return items.iter().for_each(|item| add_parts(tool, key, item, is_needed, parts)),
        Value::Object(fields) => return fields.iter().for_each(|(key, value)| add_parts(tool, key, value, is_needed, parts)),
    };
    let mut keys = vec![key.to_owned()];
    keys.extend(tool.other_names(key).map(str::to_owned));
    parts.push(Part { keys, value: text, is_needed });
}

/// The fields of calls that hold paths.
const PATHS: [&str; 9] = ["path", "source", "destination", "archive", "into", "file", "files", "working_directory", "to"];

/// Writes the paths of a call without what leads nowhere.
fn with_plain_paths(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let plain = |(key, value): (String, Value)| {
                let value = if PATHS.contains(&key.as_str()) { plain_paths(value) } else { with_plain_paths(value) };
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

/// Returns a path without its empty and `.` components, and from the project on: the kernel goes the same way. `..` stays, since links decide
/// where it leads, and so does a last `/`, with which only a folder is meant.
fn plain_path(path: &str) -> String {
    let root = if path.starts_with('/') { "/" } else { "" };
    let end = if path.ends_with('/') || path.ends_with("/.") { "/" } else { "" };
    let mut components: Vec<&str> = path.split('/').filter(|component| !matches!(*component, "" | ".")).collect();
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

/// Writes a JSON text with its keys in order; any other text stays as it is.
fn sorted(text: &str) -> String {
    serde_json::from_str::<Value>(text).map_or_else(|_| text.trim().to_owned(), |value| in_order(value).to_string())
}

fn in_order(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(String, Value)> = fields.into_iter().map(|(key, value)| (key, in_order(value))).collect();
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
    fn the_words_of_a_call_have_all_their_names() {
        let catalogue = Catalogue::new(&Options::default());
        let wording = catalogue.wording("shell", r#"{"cmd": "ls", "timeout": 5}"#).expect("a call");
        assert!(["bash", "shell"].iter().all(|name| wording.names.contains(name)), "{wording:?}");
        let part = |value: &str| wording.parts.iter().find(|part| part.value == value).expect("a part");
        assert!(part("ls").is_needed && ["command", "cmd"].iter().all(|key| part("ls").keys.iter().any(|own| own == key)));
        assert!(!part("5").is_needed);
        assert_eq!(catalogue.wording("fly", "{}"), None);
    }

    #[test]
    fn what_means_the_same_is_the_same() {
        let canonical = |name: &str, arguments: &str| Catalogue::new(&Options::default()).canonical(name, arguments);
        let one = canonical("read_file", r#"{"path": "a", "limit": 5}"#);
        assert_eq!(one, canonical("FileRead", r#"{"limit":"5","file_path":"a"}"#));
        assert_ne!(one, canonical("read_file", r#"{"path": "b", "limit": 5}"#));
        assert_eq!(one, canonical("read_file", r#"{"path": "./././/a", "limit": 5}"#));
        assert_eq!(one, canonical("read_file", r#"{"path": "/workspace/./a", "limit": 5}"#));
        assert_ne!(one, canonical("read_file", r#"{"path": "/a", "limit": 5}"#));
        assert_ne!(one, canonical("read_file", r#"{"path": "b/../a", "limit": 5}"#));
        let list = |path: &str| canonical("list_directory", &format!(r#"{{"path": "{path}"}}"#));
        assert!(list("src") == list("./src") && list("src") != list("src/") && list(".") == list("././"), "{}", list("././"));
        assert_eq!(canonical("fly", r#"{"b": 1, "a": {"d": 2, "c": 3}}"#), r#"fly {"a":{"c":3,"d":2},"b":1}"#);
        assert_eq!(canonical("bash", " {broken "), "bash {broken");
        assert_eq!(canonical("bash", r#"{"command": " ls -l\n"}"#), canonical("bash", r#"{"command": "ls -l"}"#));
        assert_ne!(canonical("bash", r#"{"command": "ls  -l"}"#), canonical("bash", r#"{"command": "ls -l"}"#));
    }
}
