use serde_json::Value;

use super::Catalogue;
use podbay_event::is_same_name;

/// Which arguments a call lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MissingArguments {
    /// Some of them, or their structure.
    Some,
    /// All of them: more likely lost in transmission than forgotten.
    All,
}

impl Catalogue {
    /// Returns which arguments a call of a known tool lacks; `None` also where only values are
    /// wrong.
    pub fn missing_arguments(&self, name: &str, arguments: &str) -> Option<MissingArguments> {
        let tool = self.find(name)?;
        let required: Vec<&str> = tool.parameters["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let given = match serde_json::from_str::<Value>(arguments) {
            Ok(Value::Object(given)) => given,
            _ if arguments.trim().is_empty() => serde_json::Map::new(),
            _ => return Some(MissingArguments::Some),
        };
        if given.is_empty() {
            return (!required.is_empty() || self.parse(name, arguments).is_err())
                .then_some(MissingArguments::All);
        }
        let is_there = |name: &str| given.keys().any(|key| is_same_name(key, name));
        required
            .iter()
            .any(|right| !is_there(right) && !tool.other_names(right).any(is_there))
            .then_some(MissingArguments::Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;

    #[track_caller]
    fn check(name: &str, arguments: &str, expected: Option<MissingArguments>) {
        assert_eq!(
            Catalogue::new(&Options::default()).missing_arguments(name, arguments),
            expected,
            "{name} {arguments}"
        );
    }

    #[test]
    fn missing_arguments_are_distinguished_from_wrong_values() {
        check("bash", "", Some(MissingArguments::All));
        check("bash", "{}", Some(MissingArguments::All));
        check("read_file", "{}", Some(MissingArguments::All));
        check("list_directory", "{}", None);
        check(
            "write_file",
            r#"{"path": "a"}"#,
            Some(MissingArguments::Some),
        );
        check("bash", r#"{"command": "#, Some(MissingArguments::Some));
        check("bash", r#"{"command": 5}"#, None);
        check("FileWrite", r#"{"file_path": "a", "content": "b"}"#, None);
        check("write_file", r#"{"filePath": "a", "Content": "b"}"#, None);
        check("fly", "{}", None);
    }
}
