//! Records of downloaded files: their source, size and hash, in a file beside each.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;

use serde::Deserialize;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::Entry;
use super::Error;
use super::Source;
use super::atomic_file;
use super::download::bytes_done;
use super::download::digest;
use podbay_event::ProgressSink;

const VERSION: u32 = 1;

/// The record of a downloaded file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DownloadRecord {
    version: u32,
    /// The model's name.
    pub model: String,
    /// Where the model came from.
    pub source: Source,
    pub size: u64,
    /// In hexadecimal.
    pub sha256: String,
    /// Whether the hash was known before the download, so that the file was verified.
    pub checked: bool,
    /// Modification time of the file in nanoseconds, when it was last verified.
    changed: i64,
}

impl DownloadRecord {
    /// Writes the record of a file that just got its final name.
    pub(super) fn keep(
        path: &Path,
        entry: &Entry,
        sha256: &str,
        checked: bool,
    ) -> Result<Self, Error> {
        let (size, changed) = facts(path)?;
        let (model, source) = (entry.id.clone(), entry.source.clone());
        let record = Self {
            version: VERSION,
            model,
            source,
            size,
            sha256: sha256.to_owned(),
            checked,
            changed,
        };
        atomic_file::write_json(&path_of(path), &record)?;
        Ok(record)
    }

    /// Returns the record of a file; `None` if Podbay did not download it or the record is damaged.
    pub(super) fn of(path: &Path) -> Option<Self> {
        read(path).ok().flatten()
    }

    /// Checks that a file is unchanged: by its modification time, else by its hash.
    pub(super) async fn check(
        &self,
        path: &Path,
        progress: &ProgressSink,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let (size, changed) = facts(path)?;
        if (size, changed) == (self.size, self.changed) {
            return Ok(());
        }
        self.check_hash(path, progress, cancel).await
    }

    /// Checks that a file is unchanged, by its hash.
    pub(super) async fn check_hash(
        &self,
        path: &Path,
        progress: &ProgressSink,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let task = format!("checking the model {}", self.model);
        let found = digest(path.to_owned(), task.clone(), progress, cancel).await?;
        progress(bytes_done(&task, self.size, self.size, true));
        if found != self.sha256 {
            let (name, expected) = (self.model.clone(), self.sha256.clone());
            return Err(Error::Changed {
                path: path.to_owned(),
                name,
                expected,
                found,
            });
        }
        let (size, changed) = facts(path)?;
        if (size, changed) != (self.size, self.changed) {
            atomic_file::write_json(
                &path_of(path),
                &Self {
                    size,
                    changed,
                    ..self.clone()
                },
            )?;
        }
        Ok(())
    }
}

/// Returns how a file and its record disagree; `None` if there is no record, or they agree.
pub(super) fn damage(path: &Path) -> Option<String> {
    let record = match read(path) {
        Ok(record) => record?,
        Err(problem) => return Some(problem),
    };
    let found = fs::metadata(path).ok()?.len();
    let (record_path, expected) = (path_of(path), record.size);
    (found != expected).then(|| {
        format!("its record `{}` tells of {expected} bytes, and the file has {found}: one of the two is damaged", record_path.display())
    })
}

/// Makes sure that a record can be written beside a file, and removed: an empty folder in its place
/// is removed, any other refused.
pub(super) fn make_way(path: &Path) -> Result<(), Error> {
    let place = path_of(path);
    if !fs::symlink_metadata(&place).is_ok_and(|facts| facts.is_dir()) {
        return Ok(());
    }
    fs::remove_dir(&place).map_err(|source| Error::NoRecord {
        path: place,
        source,
    })
}

fn read(path: &Path) -> Result<Option<DownloadRecord>, String> {
    let path = path_of(path);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == std::io::ErrorKind::IsADirectory => {
            return Err(format!(
                "a folder lies at `{}`, in the place of its record",
                path.display()
            ));
        }
        Err(error) => {
            return Err(format!(
                "its record `{}` cannot be read: {error}",
                path.display()
            ));
        }
    };
    let record = serde_json::from_slice(&bytes)
        .ok()
        .filter(|record: &DownloadRecord| record.version == VERSION);
    record.map(Some).ok_or_else(|| {
        format!(
            "its record `{}` is damaged, or of another version of Podbay",
            path.display()
        )
    })
}

/// Removes the record of a file.
pub(super) fn forget(path: &Path) -> Result<bool, Error> {
    atomic_file::remove(&path_of(path))
}

/// Returns every downloaded file below a folder.
pub(super) fn all(folder: &Path) -> Vec<(PathBuf, DownloadRecord)> {
    files(folder)
        .into_iter()
        .filter_map(|path| DownloadRecord::of(&path).map(|record| (path, record)))
        .collect()
}

/// Returns every file below a folder whose record is damaged.
pub(super) fn damaged(folder: &Path) -> Vec<PathBuf> {
    // The state of a running download has a name like a record's.
    let is_part = |path: &Path| path.extension().is_some_and(|end| end == "part");
    files(folder)
        .into_iter()
        .filter(|path| !is_part(path) && damage(path).is_some())
        .collect()
}

/// Returns every incomplete file below a folder, by its final name.
pub(super) fn unfinished(folder: &Path) -> Vec<PathBuf> {
    let is_model = |path: &PathBuf| {
        path.extension()
            .is_some_and(|end| end.eq_ignore_ascii_case("gguf"))
    };
    let whole = |path: PathBuf| {
        path.extension()
            .is_some_and(|end| end == "part")
            .then(|| path.with_extension(""))
    };
    files(folder)
        .into_iter()
        .filter_map(whole)
        .filter(is_model)
        .collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            } else {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

fn path_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".json");
    PathBuf::from(name)
}

fn facts(path: &Path) -> Result<(u64, i64), Error> {
    let facts = fs::metadata(path).map_err(|source| Error::File {
        doing: "look at",
        path: path.to_owned(),
        source,
    })?;
    Ok((
        facts.len(),
        facts
            .mtime()
            .saturating_mul(1_000_000_000)
            .saturating_add(facts.mtime_nsec()),
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn a_changed_file_fails_its_check() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("m.gguf");
        fs::write(&path, "hello").expect("written");
        let hello = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
        DownloadRecord::keep(
            &path,
            &Entry::bare(
                "m",
                Source::Path {
                    files: vec![path.clone()],
                },
            ),
            hello,
            true,
        )
        .expect("kept");
        let (progress, cancel): (ProgressSink, _) = (Arc::new(|_| {}), CancellationToken::new());
        let record = DownloadRecord::of(&path).expect("a record");
        record
            .check(&path, &progress, &cancel)
            .await
            .expect("as it was");
        // Only the modification time differs.
        fs::write(&path, "hello").expect("written");
        record
            .check(&path, &progress, &cancel)
            .await
            .expect("as it was");
        fs::write(&path, "jello").expect("written");
        let error = record
            .check(&path, &progress, &cancel)
            .await
            .expect_err("changed");
        assert!(
            matches!(error, Error::Changed { .. })
                && error
                    .hint()
                    .is_some_and(|hint| hint.contains("models pull m")),
            "{error}"
        );
        assert!(damage(&path).is_none());
        fs::write(&path, "hello, you").expect("written");
        assert!(
            damage(&path)
                .is_some_and(|problem| problem.contains("tells of 5 bytes, and the file has 10"))
        );
        assert_eq!(all(folder.path()).len(), 1);
        assert!(forget(&path).expect("removed") && all(folder.path()).is_empty());
    }
}
