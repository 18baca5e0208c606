use serde_json::Value;

use super::Catalogue;
use crate::policy::Action;
use crate::wire::Call;

impl Catalogue {
    /// Returns a text that is equal for calls that mean the same: what differs is only how they are written.
    pub fn canonical(&self, name: &str, arguments: &str) -> String {
        if let Ok(mut understood) = self.parse(name, arguments) {
            // To a shell white space around a command is nothing.
            if let Action::Box(Call::Bash(bash)) = &mut understood.action {
                bash.command = bash.command.trim().to_owned();
            }
            return format!("{} {:?}", understood.name, understood.action);
        }
        let name = self.find(name).map_or(name, |tool| tool.name);
        format!("{name} {}", sorted(arguments))
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
    use crate::tools::Options;

    #[test]
    fn what_means_the_same_is_the_same() {
        let canonical = |name, arguments| Catalogue::new(&Options::default()).canonical(name, arguments);
        let one = canonical("read_file", r#"{"path": "a", "limit": 5}"#);
        assert_eq!(one, canonical("FileRead", r#"{"limit":"5","file_path":"a"}"#));
        assert_ne!(one, canonical("read_file", r#"{"path": "b", "limit": 5}"#));
        assert_eq!(canonical("fly", r#"{"b": 1, "a": {"d": 2, "c": 3}}"#), r#"fly {"a":{"c":3,"d":2},"b":1}"#);
        assert_eq!(canonical("bash", " {broken "), "bash {broken");
        assert_eq!(canonical("bash", r#"{"command": " ls -l\n"}"#), canonical("bash", r#"{"command": "ls -l"}"#));
        assert_ne!(canonical("bash", r#"{"command": "ls  -l"}"#), canonical("bash", r#"{"command": "ls -l"}"#));
    }
}
