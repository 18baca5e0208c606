use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::Table;
use toml::Value;
use toml::de::DeTable;
use toml::de::DeValue;

use super::Error;
use super::Origin;
use super::Origins;
use super::document;
use super::document::Document;
use super::hooks;
use super::key;
use super::secret::is_secret;
use super::toml_errors;
use super::user_file;

/// Most bytes of a configuration file.
pub(super) const FILE_MAX: u64 = 1 << 20;
/// Lists to which every layer adds, so that a rule of a lower layer is never lost.
const ADDITIVE: [&str; 14] = [
    "network.allow",
    "network.deny",
    "setup.commands",
    "policy.allow",
    "policy.ask",
    "policy.gate",
    "policy.deny",
    "policy.rules",
    "hooks.session_start",
    "hooks.user_prompt",
    "hooks.pre_tool_use",
    "hooks.post_tool_use",
    "hooks.pre_compact",
    "hooks.stop",
];

/// The settings of one source.
pub(super) struct Layer {
    pub(super) table: Table,
    /// The place of each key, including tables.
    places: BTreeMap<String, KeyPlace>,
    text: Option<String>,
}

struct KeyPlace {
    origin: Origin,
    value: Range<usize>,
}

impl Layer {
    /// Reads a file; `None` if it is missing and optional.
    pub(super) fn read(path: &Path, needed: bool) -> Result<Option<Self>, Error> {
        let path = &if needed {
            path.to_owned()
        } else {
            document::find(path)?
        };
        let failed = |source| Error::Read {
            path: path.to_owned(),
            source,
        };
        // A shell's process substitution, `--config <(…)`, is an open pipe.
        let is_handed_over = needed
            && ["/dev/fd", "/dev/stdin", "/proc/self/fd"]
                .iter()
                .any(|place| path.starts_with(place));
        let file = if is_handed_over {
            File::open(path)
        } else {
            user_file::open(path).map(|(file, _)| file)
        };
        let file = match file {
            Err(error) if error.kind() == io::ErrorKind::NotFound && !needed => return Ok(None),
            other => other.map_err(failed)?,
        };
        let text = user_file::text(file, FILE_MAX).map_err(failed)?;
        Self::parse(path, text).map(Some)
    }

    /// Reads a text; as its name tells it is TOML, YAML or JSON.
    pub(super) fn parse(path: &Path, text: String) -> Result<Self, Error> {
        if !document::is_other_form(path) {
            return Self::parse_toml(path, text);
        }
        let Document { toml, lines } = Document::read(path, &text)?;
        let mut layer = Self::parse_toml(path, toml).map_err(|error| in_lines(error, &lines))?;
        for (key, place) in &mut layer.places {
            if let Origin::File { line, .. } = &mut place.origin {
                *line = lines.get(key).copied().unwrap_or(1);
            }
        }
        Ok(layer)
    }

    fn parse_toml(path: &Path, text: String) -> Result<Self, Error> {
        let syntax = |error: &toml::de::Error| Error::Syntax {
            path: path.to_owned(),
            line: line_at(&text, error.span().map_or(0, |span| span.start)),
            what: error.message().replace('\n', ", "),
        };
        let mut table: Table = toml::from_str(&text).map_err(|error| syntax(&error))?;
        hooks::to_lists(&mut table);
        let spanned = DeTable::parse(&text).map_err(|error| syntax(&error))?;
        let mut places = BTreeMap::new();
        walk(path, &text, "", spanned.get_ref(), &mut places);
        if let Some((key, place)) = places.iter().find(|(key, _)| is_secret(key)) {
            return Err(Error::Secret {
                origin: place.origin.clone(),
                key: key.clone(),
            });
        }
        Ok(Self {
            table,
            places,
            text: Some(text),
        })
    }

    /// Makes a layer of one value.
    pub(super) fn single(key: &str, value: Value, origin: Origin) -> Self {
        let parts: Vec<&str> = key.split('.').collect();
        Self::of_parts(key, &parts, value, origin)
    }

    /// The same for a key whose parts are known; one in quotes may hold a dot.
    pub(super) fn of_parts(key: &str, parts: &[&str], value: Value, origin: Origin) -> Self {
        let mut parts = parts.iter().rev();
        let mut table = Table::new();
        table.insert(parts.next().copied().unwrap_or_default().to_owned(), value);
        for part in parts {
            table = Table::from_iter([((*part).to_owned(), Value::Table(table))]);
        }
        Self {
            table,
            places: BTreeMap::from([(
                key.to_owned(),
                KeyPlace {
                    origin,
                    value: 0..0,
                },
            )]),
            text: None,
        }
    }

    /// Returns the place of a key, or of the table that contains it.
    pub(super) fn origin(&self, key: &str) -> Origin {
        let mut key = key;
        loop {
            if let Some(place) = self.places.get(key) {
                return place.origin.clone();
            }
            match key.rsplit_once('.') {
                Some((parent, _)) => key = parent,
                None => break,
            }
        }
        self.places
            .values()
            .next()
            .map_or(Origin::Default, |place| place.origin.clone())
    }

    pub(super) fn line(&self, key: &str) -> usize {
        if let Origin::File { line, .. } = self.origin(key) {
            line
        } else {
            0
        }
    }

    /// Checks the layer by itself; returns the unknown keys, or an error for a value that does not
    /// fit.
    pub(super) fn check<C: DeserializeOwned>(&self) -> Result<Vec<String>, Error> {
        let mut unknown = Vec::new();
        let read: Result<C, _> =
            serde_ignored::deserialize(Value::Table(self.table.clone()), |path| {
                unknown.push(dotted(&path));
            });
        match read {
            Ok(_) => Ok(unknown),
            Err(error) => Err(self.explain::<C>(&error)),
        }
    }

    /// Finds which value does not fit, and its place.
    fn explain<C: DeserializeOwned>(&self, error: &toml::de::Error) -> Error {
        // Parsed from the text, the same error has a position.
        let spanned = self
            .text
            .as_deref()
            .and_then(|text| toml::from_str::<C>(text).err());
        let at = spanned.as_ref().and_then(toml::de::Error::span);
        let inside = |place: &KeyPlace| {
            at.as_ref()
                .is_some_and(|at| place.value.start <= at.start && at.start < place.value.end)
        };
        let found = self
            .places
            .iter()
            .filter(|(_, place)| inside(place))
            .min_by_key(|(_, place)| place.value.len());
        let only = || self.places.iter().next().filter(|_| self.text.is_none());
        let (key, origin) = match found.or_else(only) {
            Some((key, place)) => (key.clone(), place.origin.clone()),
            None => ("?".to_owned(), self.origin("")),
        };
        // For an unknown word the parser does not list the choices; parsed as a string, it does.
        if error.message().contains("unit variant")
            && let Some(value) = key
                .split('.')
                .try_fold(&Value::Table(self.table.clone()), |at, part| at.get(part))
                .filter(|value| !value.is_str())
            && let Err(listed) =
                Self::single(&key, Value::String(value.to_string()), origin.clone()).check::<C>()
        {
            return listed;
        }
        let what = toml_errors::plain(spanned.as_ref().unwrap_or(error).message(), &key);
        Error::Value { origin, key, what }
    }

    /// Merges this layer over the weaker ones.
    pub(super) fn over(&self, below: &mut Table, origins: &mut Origins) {
        self.merge("", &self.table, below, origins);
    }

    fn merge(&self, parent: &str, above: &Table, below: &mut Table, origins: &mut Origins) {
        for (part, value) in above {
            let key = key::join(parent, part);
            match (value, below.get_mut(part)) {
                (Value::Table(above), Some(Value::Table(below))) => {
                    self.merge(&key, above, below, origins);
                }
                (Value::Table(above), _) => {
                    origins.forget(&key);
                    let mut table = Table::new();
                    self.merge(&key, above, &mut table, origins);
                    below.insert(part.clone(), Value::Table(table));
                }
                (Value::Array(more), Some(Value::Array(list)))
                    if ADDITIVE.contains(&key.as_str()) =>
                {
                    list.extend(more.iter().cloned());
                    origins.add(&key, self.origin(&key));
                }
                _ => {
                    origins.forget(&key);
                    origins.set(&key, self.origin(&key));
                    below.insert(part.clone(), value.clone());
                }
            }
        }
    }
}

/// Has an error about a text that was made from another one name the line of that one.
fn in_lines(mut error: Error, lines: &BTreeMap<String, usize>) -> Error {
    if let Error::Secret {
        origin: Origin::File { line, .. },
        key,
    } = &mut error
    {
        *line = lines.get(key).copied().unwrap_or(1);
    }
    error
}

fn walk(
    path: &Path,
    text: &str,
    parent: &str,
    table: &DeTable<'_>,
    places: &mut BTreeMap<String, KeyPlace>,
) {
    for (part, value) in table {
        let key = key::join(parent, part.get_ref());
        let origin = Origin::File {
            path: path.to_owned(),
            line: line_at(text, part.span().start),
        };
        if let DeValue::Table(inner) = value.get_ref() {
            walk(path, text, &key, inner, places);
        }
        inner_tables(path, text, &key, value, places);
        places.insert(
            key,
            KeyPlace {
                origin,
                value: value.span(),
            },
        );
    }
}

/// Tables in lists may have secrets and misspelt keys too.
fn inner_tables(
    path: &Path,
    text: &str,
    key: &str,
    value: &Spanned<DeValue<'_>>,
    places: &mut BTreeMap<String, KeyPlace>,
) {
    if let DeValue::Array(list) = value.get_ref() {
        for (index, item) in list.iter().enumerate() {
            if let DeValue::Table(inner) = item.get_ref() {
                walk(path, text, &format!("{key}.{index}"), inner, places);
            }
        }
    }
}

fn line_at(text: &str, offset: usize) -> usize {
    text.char_indices()
        .take_while(|(at, _)| *at < offset)
        .filter(|(_, c)| *c == '\n')
        .count()
        + 1
}

fn dotted(path: &serde_ignored::Path<'_>) -> String {
    use serde_ignored::Path;
    match path {
        Path::Root => String::new(),
        Path::Map { parent, key } => key::join(&dotted(parent), key),
        Path::Seq { parent, index } => key::join(&dotted(parent), &index.to_string()),
        Path::Some { parent }
        | Path::NewtypeStruct { parent }
        | Path::NewtypeVariant { parent } => dotted(parent),
    }
}
