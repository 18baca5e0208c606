//! Unlisted models: present, but in no list. Downloaded by URL or path, or with a damaged record.

use std::collections::HashSet;
use std::path::Path;
use std::path::PathBuf;

use reqwest::Url;

use super::DownloadRecord;
use super::Entry;
use super::Error;
use super::ListedModel;
use super::Source;
use super::Store;
use super::catalogue::main_branch;
use super::model_file::FileSource;
use super::model_file::ModelFile;
use super::model_file::pieces;
use super::opened_model::parts;
use super::record;
use super::reference;

impl Store {
    /// Returns the unlisted models.
    pub(super) fn unlisted(&self) -> Vec<Entry> {
        let models = self.paths.models();
        let place = |entry: &Entry| models.join(self.first(entry));
        let known: Vec<PathBuf> = self.catalogue.entries.iter().map(place).collect();
        let found = record::all(&models)
            .into_iter()
            .filter_map(|(path, record)| {
                let entry = Entry {
                    size: record.size,
                    ..Entry::bare(&record.model, record.source)
                };
                // The other parts of a split model are no entries of their own.
                (!known.contains(&path) && place(&entry) == path).then_some(entry)
            });
        let mut found: Vec<Entry> = found.collect();
        let told = self
            .catalogue
            .entries
            .iter()
            .chain(&found)
            .flat_map(|entry| self.pieces(entry));
        let told: HashSet<PathBuf> = told.map(|piece| models.join(piece.to)).collect();
        let damaged = record::damaged(&models)
            .into_iter()
            .filter(|path| !told.contains(path) && parts(path).first() == Some(path));
        found.extend(damaged.map(|path| self.without_record(&models, &path)));
        // Incomplete downloads take room, so they are listed and can be removed.
        for path in record::unfinished(&models) {
            let Some(first) = parts(&path).into_iter().next() else {
                continue;
            };
            let told = |entry: &Entry| {
                self.pieces(entry)
                    .iter()
                    .any(|piece| models.join(&piece.to) == path)
            };
            if !self.catalogue.entries.iter().chain(&found).any(told) {
                found.push(self.without_record(&models, &first));
            }
        }
        found
    }

    /// Returns the unlisted models, each with its unique name: its id, unless a listed or another
    /// model has that too.
    pub(super) fn named_unlisted(&self) -> Vec<(String, Entry)> {
        let unlisted = self.unlisted();
        let is_shared = |entry: &Entry| {
            let n_same = unlisted
                .iter()
                .filter(|other| other.id.eq_ignore_ascii_case(&entry.id))
                .count();
            n_same > 1 || self.catalogue.find(&entry.id).is_some()
        };
        let name = |entry: &Entry| {
            if is_shared(entry) {
                self.form(entry)
            } else {
                entry.id.clone()
            }
        };
        unlisted
            .iter()
            .map(|entry| (name(entry), entry.clone()))
            .collect()
    }

    /// Returns a model under its unique name.
    pub(super) fn named(&self, entry: &Entry) -> ListedModel {
        let looked = self.look(entry);
        let stranger = self
            .named_unlisted()
            .into_iter()
            .find(|(_, other)| other.source == entry.source && other.id == entry.id);
        match stranger {
            Some((name, _)) => ListedModel { name, ..looked },
            None => looked,
        }
    }

    /// Returns the unlisted model of a name, or of its file's path. A name of several models is
    /// ambiguous.
    pub(super) fn find_unlisted(&self, name: &str) -> Result<Option<Entry>, Error> {
        let unlisted = self.named_unlisted();
        let place = reference::expand(name);
        if let Some((_, entry)) = unlisted
            .iter()
            .find(|(_, entry)| self.paths.models().join(self.first(entry)) == place)
        {
            return Ok(Some(entry.clone()));
        }
        let mut same = unlisted
            .into_iter()
            .filter(|(_, entry)| entry.id.eq_ignore_ascii_case(name));
        let (first, others) = (same.next(), same);
        let others: Vec<String> = others.map(|(form, _)| form).collect();
        match first {
            Some((form, _)) if !others.is_empty() => Err(Error::Ambiguous {
                name: name.to_owned(),
                forms: std::iter::once(form).chain(others).collect(),
            }),
            first => Ok(first.map(|(_, entry)| entry)),
        }
    }

    /// Returns the model of a name, or the copy of the file at a path. A path in the settings
    /// serves that file itself, never the copy.
    pub(super) fn find_here(&self, name: &str) -> Result<Option<Entry>, Error> {
        if let Some(entry) = self.find(name)? {
            return Ok(Some(entry));
        }
        let Ok(path) = std::path::absolute(reference::expand(name)) else {
            return Ok(None);
        };
        let is_copy = |entry: &Entry| matches!(&entry.source, Source::Path { files } if files.contains(&path));
        Ok(self.unlisted().into_iter().find(is_copy))
    }

    /// Returns a unique name: the hub's name of the file, else its local path.
    fn form(&self, entry: &Entry) -> String {
        match &entry.source {
            Source::Hub {
                repository,
                revision,
                files,
            } => {
                let revision = if *revision == main_branch() {
                    String::new()
                } else {
                    format!("@{revision}")
                };
                format!(
                    "hf:{repository}{revision}/{}",
                    files.first().map_or("", String::as_str)
                )
            }
            _ => self
                .paths
                .models()
                .join(self.first(entry))
                .display()
                .to_string(),
        }
    }

    /// Returns the files of a model.
    pub(super) fn pieces(&self, entry: &Entry) -> Vec<ModelFile> {
        let models = self.paths.models();
        let mut pieces = pieces(entry, &self.hub);
        for piece in &mut pieces {
            let FileSource::File(path) = &piece.from else {
                continue;
            };
            // Of a model without a record only its path is known. It is no copy of itself.
            let is_unclaimed =
                || DownloadRecord::of(path).is_none_or(|record| record.source == entry.source);
            if let Some(here) = path.strip_prefix(&models).ok().filter(|_| is_unclaimed()) {
                piece.to = here.to_owned();
            }
        }
        pieces
    }

    /// Returns the path of a model's first file, below the folder of models.
    pub(super) fn first(&self, entry: &Entry) -> PathBuf {
        self.pieces(entry)
            .into_iter()
            .next()
            .map(|piece| piece.to)
            .unwrap_or_default()
    }

    /// Returns an entry for a file with a damaged record: the hub's file, if its path tells that,
    /// else the file itself.
    fn without_record(&self, models: &Path, path: &Path) -> Entry {
        let here = path.strip_prefix(models).unwrap_or(path);
        let of_hub = of_hub(here, &self.hub).filter(|entry| self.first(entry) == here);
        of_hub.unwrap_or_else(|| reference::of_path(path))
    }
}

/// Parses the path of a file of the hub: `hub/OWNER--NAME@REVISION/FILE`.
fn of_hub(here: &Path, hub: &Url) -> Option<Entry> {
    let (folder, file) = here.strip_prefix("hub").ok()?.to_str()?.split_once('/')?;
    // Two dashes may stand for a slash.
    if file.contains("--") {
        return None;
    }
    let (owner, name) = folder.split_once("--")?;
    reference::parse(&format!("hf:{owner}/{name}/{file}"), hub)
        .ok()
        .flatten()
}
