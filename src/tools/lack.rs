use serde_json::Value;

use super::Catalogue;
use podbay_event::is_same_name;

/// Which arguments a call lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lack {
    /// Some of them, or their structure.
    Some,
    /// All of them: more likely lost in transmission than forgotten.
    All,
}

impl Catalogue {
    /// Returns which arguments a call of a known tool lacks; `None` also where only values are
    /// wrong.
    pub fn lack(&self, name: &str, arguments: &str) -> Option<Lack> {
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
            _ => return Some(Lack::Some),
        };
        if given.is_empty() {
            return (!required.is_empty() || self.parse(name, arguments).is_err())
                .then_some(Lack::All);
        }
        let is_there = |name: &str| given.keys().any(|key| is_same_name(key, name));
        required
            .iter()
            .any(|right| !is_there(right) && !tool.other_names(right).any(is_there))
            .then_some(Lack::Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;

    #[track_caller]
    fn check(name: &str, arguments: &str, expected: Option<Lack>) {
        assert_eq!(
            Catalogue::new(&Options::default()).lack(name, arguments),
            expected,
            "{name} {arguments}"
        );
    }

    #[test]
    fn what_is_missing_is_told_from_what_is_wrong() {
        check("bash", "", Some(Lack::All));
        check("bash", "{}", Some(Lack::All));
        check("read_file", "{}", Some(Lack::All));
        check("list_directory", "{}", None);
        check("write_file", r#"{"path": "a"}"#, Some(Lack::Some));
        check("bash", r#"{"command": "#, Some(Lack::Some));
        check("bash", r#"{"command": 5}"#, None);
        check("FileWrite", r#"{"file_path": "a", "content": "b"}"#, None);
        check("write_file", r#"{"filePath": "a", "Content": "b"}"#, None);
        check("fly", "{}", None);
    }
}
