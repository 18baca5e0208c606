//! Model files from a bundle: where they are stored, and their names.

use std::path::PathBuf;

use super::DownloadRecord;
use super::Entry;
use super::Error;
use super::Store;
use super::model_file::ModelFile;

impl Store {
    /// Returns the path for a bundled file: that of the listed model, if it is one of its files,
    /// else among the unlisted ones.
    pub fn place(&self, name: &str, file: &str, sha256: &str) -> PathBuf {
        let piece = self
            .piece(name, file, sha256)
            .map_or_else(|| PathBuf::from(file), |(_, piece)| piece.to);
        self.paths.models().join(piece)
    }

    /// Returns whether a file cannot be the one that the list has under that name.
    pub fn contradicts(&self, name: &str, file: &str, size: u64, sha256: &str) -> bool {
        // Whatever its name: at this path it would be taken for that model.
        let place = self.place(name, file, sha256);
        self.catalogue.entries.iter().any(|entry| {
            let is_there = self
                .pieces(entry)
                .iter()
                .any(|piece| self.paths.models().join(&piece.to) == place);
            let known = entry.sha256.as_deref();
            is_there && known.is_some_and(|known| known != sha256 || entry.size != size)
        })
    }

    /// Writes the record of a bundled file at its path, so that the model is found by its name.
    pub fn adopt(&self, name: &str, file: &str, sha256: &str) -> Result<(), Error> {
        if let Some((entry, piece)) = self.piece(name, file, sha256) {
            DownloadRecord::keep(&self.paths.models().join(&piece.to), entry, sha256, false)?;
        }
        Ok(())
    }

    /// Returns the name of a bundled file: that of a listed model only if it is a file of it.
    pub fn bundled_name(&self, name: &str, file: &str, sha256: &str) -> String {
        let is_other =
            self.catalogue.find(name).is_some() && self.piece(name, file, sha256).is_none();
        if is_other { file } else { name }.to_owned()
    }

    /// Returns which file of a listed model it is: by its hash where that is known, whatever its
    /// name, else by its name.
    fn piece(&self, name: &str, file: &str, sha256: &str) -> Option<(&Entry, ModelFile)> {
        let entry = self.catalogue.find(name)?;
        let is_it = entry.sha256.as_deref() == Some(sha256);
        let piece = self
            .pieces(entry)
            .into_iter()
            .find(|piece| is_it || piece.to.file_name().is_some_and(|own| own == file))?;
        Some((entry, piece))
    }
}
