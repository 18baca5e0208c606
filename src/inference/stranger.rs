//! Models that are here and in no list: those that were loaded by their address or path, and those whose record is damaged.

use std::collections::HashSet;
use std::path::Path;
use std::path::PathBuf;

use reqwest::Url;

use super::Entry;
use super::Record;
use super::Store;
use super::open::parts;
use super::piece::From;
use super::piece::Piece;
use super::piece::pieces;
use super::record;
use super::reference;

impl Store {
    /// Returns the models that are here and in no list.
    pub(super) fn strangers(&self) -> Vec<Entry> {
        let models = self.paths.models();
        let place = |entry: &Entry| models.join(self.first(entry));
        let known: Vec<PathBuf> = self.catalogue.entries.iter().map(place).collect();
        let found = record::all(&models).into_iter().filter_map(|(path, record)| {
            let entry = Entry { size: record.size, ..Entry::bare(&record.model, record.source) };
            // The other parts of a model stand for nothing by themselves.
            (!known.contains(&path) && place(&entry) == path).then_some(entry)
        });
        let mut found: Vec<Entry> = found.collect();
        let told = self.catalogue.entries.iter().chain(&found).flat_map(|entry| self.pieces(entry));
        let told: HashSet<PathBuf> = told.map(|piece| models.join(piece.to)).collect();
        let damaged = record::damaged(&models).into_iter().filter(|path| !told.contains(path) && parts(path).first() == Some(path));
        found.extend(damaged.map(|path| self.without_record(&models, &path)));
        found
    }

    /// Returns the files of a model.
    pub(super) fn pieces(&self, entry: &Entry) -> Vec<Piece> {
        let models = self.paths.models();
        let mut pieces = pieces(entry, &self.hub);
        for piece in &mut pieces {
            let From::File(path) = &piece.from else { continue };
            // All that is known of a model without a record is where it lies. It is no copy of itself.
            let is_unclaimed = || Record::of(path).is_none_or(|record| record.source == entry.source);
            if let Some(here) = path.strip_prefix(&models).ok().filter(|_| is_unclaimed()) {
                piece.to = here.to_owned();
            }
        }
        pieces
    }

    /// Returns where the first file of a model is, below the folder of models.
    pub(super) fn first(&self, entry: &Entry) -> PathBuf {
        self.pieces(entry).into_iter().next().map(|piece| piece.to).unwrap_or_default()
    }

    /// Returns what a file is whose record says nothing: the hub's file, where its place tells that, else itself.
    fn without_record(&self, models: &Path, path: &Path) -> Entry {
        let here = path.strip_prefix(models).unwrap_or(path);
        let of_hub = of_hub(here, &self.hub).filter(|entry| self.first(entry) == here);
        of_hub.unwrap_or_else(|| reference::of_path(path))
    }
}

/// Reads the place of a file of the hub: `hub/OWNER--NAME@REVISION/FILE`.
fn of_hub(here: &Path, hub: &Url) -> Option<Entry> {
    let (folder, file) = here.strip_prefix("hub").ok()?.to_str()?.split_once('/')?;
    // Two dashes may have been a slash.
    if file.contains("--") {
        return None;
    }
    let (owner, name) = folder.split_once("--")?;
    reference::parse(&format!("hf:{owner}/{name}/{file}"), hub).ok().flatten()
}
