//! Settings written as JSON or YAML: turned into the TOML that everything else reads, with the line
//! of each key.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::path::PathBuf;

use serde::Deserialize;
use serde::Deserializer;
use serde::de::MapAccess;
use serde::de::SeqAccess;
use serde::de::Visitor;
use serde_saphyr::Spanned;
use toml::Table;
use toml::Value;

use super::Error;
use super::key;

/// How the names of such files end; each is read by one reader, as JSON is YAML too.
pub(super) const OTHER_FORMS: [&str; 3] = ["yaml", "yml", "json"];

/// A file's settings as TOML.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Document {
    pub(super) toml: String,
    /// Where each key stands in the file.
    pub(super) lines: BTreeMap<String, usize>,
}

/// Returns whether a file is JSON or YAML, as its name tells.
pub(super) fn is_other_form(path: &Path) -> bool {
    path.extension()
        .and_then(|end| end.to_str())
        .is_some_and(|end| OTHER_FORMS.contains(&end.to_ascii_lowercase().as_str()))
}

/// Returns the file that holds the settings which `path`, a TOML file, would hold: that one, or the
/// one of another form beside it. Two of them are an error: which one counts is nothing to guess.
pub(super) fn find(path: &Path) -> Result<PathBuf, Error> {
    let mut there = std::iter::once(path.to_owned())
        .chain(OTHER_FORMS.map(|end| path.with_extension(end)))
        .filter(|path| path.symlink_metadata().is_ok());
    let first = there.next().unwrap_or_else(|| path.to_owned());
    match there.next() {
        Some(second) => Err(Error::TwoForms { first, second }),
        None => Ok(first),
    }
}

impl Document {
    pub(super) fn read(path: &Path, text: &str) -> Result<Self, Error> {
        let syntax = |line: usize, what: String| Error::Syntax {
            path: path.to_owned(),
            line,
            what,
        };
        // JSON may be indented by tabs, and its strings hold none.
        let is_json = path
            .extension()
            .is_some_and(|end| end.eq_ignore_ascii_case("json"));
        let text = if is_json {
            // The reader of YAML takes more than JSON.
            serde_json::from_str::<serde::de::IgnoredAny>(text)
                .map_err(|error| syntax(error.line(), error.to_string()))?;
            text.replace('\t', " ")
        } else {
            text.to_owned()
        };
        let node: Spanned<Node> = serde_saphyr::from_str(&text).map_err(|error| {
            let line = error.location().map_or(1, |at| at.line());
            let what = error.without_snippet().to_string();
            let what = what.lines().next().unwrap_or_default().to_owned();
            syntax(usize::try_from(line).unwrap_or(1), what)
        })?;
        let mut lines = BTreeMap::new();
        let value = node
            .value
            .into_value("", &mut lines)
            .map_err(|(line, what)| syntax(line, what))?;
        let table = match value {
            Some(Value::Table(table)) => table,
            None => Table::new(),
            Some(_) => {
                return Err(syntax(
                    1,
                    "settings are a table of keys and values".to_owned(),
                ));
            }
        };
        let toml = toml::to_string(&table).map_err(|error| syntax(1, error.to_string()))?;
        Ok(Self { toml, lines })
    }
}

#[derive(Debug)]
enum Node {
    Null,
    Scalar(Value),
    List(Vec<Spanned<Node>>),
    Table(Vec<(String, Spanned<Node>)>),
}

fn line_of(node: &Spanned<Node>) -> usize {
    usize::try_from(node.referenced.line()).unwrap_or(1)
}

impl Node {
    /// Returns the value, `None` for nothing, and notes where each key below `parent` stands.
    fn into_value(
        self,
        parent: &str,
        lines: &mut BTreeMap<String, usize>,
    ) -> Result<Option<Value>, (usize, String)> {
        match self {
            Self::Null => Ok(None),
            Self::Scalar(value) => Ok(Some(value)),
            Self::List(items) => {
                let mut list = Vec::new();
                for (index, item) in items.into_iter().enumerate() {
                    let (key, line) = (key::join(parent, &index.to_string()), line_of(&item));
                    let value = item.value.into_value(&key, lines)?;
                    list.push(value.ok_or_else(|| nothing(line, &key))?);
                }
                Ok(Some(Value::Array(list)))
            }
            Self::Table(entries) => {
                let mut table = Table::new();
                for (part, node) in entries {
                    let (key, line) = (key::join(parent, &part), line_of(&node));
                    lines.insert(key.clone(), line);
                    let is_section = parent.is_empty();
                    let value = match node.value.into_value(&key, lines)? {
                        Some(value) => value,
                        // A section in which all is commented out.
                        None if is_section => Value::Table(Table::new()),
                        None => return Err(nothing(line, &key)),
                    };
                    table.insert(part, value);
                }
                Ok(Some(Value::Table(table)))
            }
        }
    }
}

fn nothing(line: usize, key: &str) -> (usize, String) {
    let what = format!("`{key}` has no value; leave the key out where its default is meant");
    (line, what)
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a number, true or false, a list or a table")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Boolean(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Integer(value)))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Node, E> {
        let value = i64::try_from(value)
            .map_err(|_| E::custom(format!("{value} is more than {}", i64::MAX)))?;
        Ok(Node::Scalar(Value::Integer(value)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Float(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Scalar(Value::String(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut table = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            table.push(entry);
        }
        Ok(Node::Table(table))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const YAML: &str = "\
# Ours.
offline: true
sandbox:
  memory: 1GiB
  cpus: 1.5
policy:
  deny:
    - write_file(a)
agent:
";

    #[test]
    fn yaml_and_json_say_the_same_as_toml_and_know_their_lines() {
        let yaml = Document::read(Path::new("c.yaml"), YAML).expect("reads");
        assert_eq!(
            yaml.toml,
            "offline = true\n\n[agent]\n\n[policy]\ndeny = [\"write_file(a)\"]\n\n[sandbox]\ncpus = 1.5\nmemory = \"1GiB\"\n"
        );
        let line = |document: &Document, key: &str| document.lines[key];
        assert_eq!(
            [
                line(&yaml, "offline"),
                line(&yaml, "sandbox.memory"),
                line(&yaml, "sandbox.cpus")
            ],
            [2, 4, 5]
        );
        let json = "{\n\t\"offline\": true,\n\t\"sandbox\": {\n\t\t\"memory\": \"1GiB\",\n\t\t\"cpus\": 1.5\n\t},\n\t\"policy\": {\"deny\": [\"write_file(a)\"]},\n\t\"agent\": {}\n}\n";
        let json = Document::read(Path::new("c.json"), json).expect("reads");
        assert_eq!(json.toml, yaml.toml);
        assert_eq!(
            [line(&json, "offline"), line(&json, "sandbox.cpus")],
            [2, 5]
        );
        let empty = Document::read(Path::new("c.yml"), "# nothing\n").expect("reads");
        assert_eq!(empty.toml, "");
    }

    #[test]
    fn what_is_no_table_of_settings_is_refused_with_its_line() {
        for (name, text, line, what) in [
            ("c.yaml", "- a\n", 1, "a table of keys"),
            (
                "c.yaml",
                "sandbox:\n  memory:\n",
                2,
                "`sandbox.memory` has no value",
            ),
            ("c.json", "{\n \"offline\": true,\n \"x\": }\n", 3, ""),
            ("c.yaml", "offline: true\noffline: false\n", 2, "offline"),
        ] {
            let error = Document::read(Path::new(name), text).expect_err("it is refused");
            let words = error.to_string();
            assert!(
                words.contains(&format!("line {line}: ")) && words.contains(what),
                "{text}: {words}"
            );
        }
    }

    #[test]
    fn a_text_that_grows_by_references_is_refused() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..9 {
            let list = vec![format!("*a{}", n - 1); 10].join(", ");
            text.push_str(&format!("a{n}: &a{n} [{list}]\n"));
        }
        Document::read(Path::new("c.yaml"), &text).expect_err("it is too much");
    }
}
