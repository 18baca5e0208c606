//! Which project settings the user trusts, in the state folder.
//!
//! Trust is bound to one folder at one path and to the exact bytes that were shown: a changed file,
//! a moved folder, or another folder at the path must be trusted again.

use std::fs;
use std::fs::File;
use std::fs::OpenOptions;
use std::io;
use std::io::Read;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;

use serde::Deserialize;
use serde::Serialize;

use super::Error;
use super::ProjectFile;
use super::project::hash;

/// Most bytes of a record: a settings file as JSON, and its path.
const LONGEST: u64 = 1 << 20;

/// Whether the user trusts a project's settings file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustState {
    /// These exact bytes are trusted.
    Trusted,
    /// Other bytes are trusted; this is their text.
    Changed {
        before: String,
    },
    Untrusted,
}

/// The folder of records, one for each project.
#[derive(Clone, Debug)]
pub struct Trust {
    folder: PathBuf,
}

/// A trusted file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trusted {
    /// The project's folder.
    pub project: PathBuf,
    pub sha256: String,
    /// Kept to show what has changed.
    text: String,
}

impl Trust {
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Returns whether a project's file is trusted; `key` identifies the folder independent of its
    /// path.
    pub fn standing(
        &self,
        key: &str,
        project: &Path,
        file: &ProjectFile,
    ) -> Result<TrustState, Error> {
        Ok(match read(&self.record(key))? {
            Some(record) if record.project != project => TrustState::Untrusted,
            Some(record) if record.sha256 == file.hash() => TrustState::Trusted,
            Some(record) => TrustState::Changed {
                before: record.text,
            },
            None => TrustState::Untrusted,
        })
    }

    /// Trusts a file as it was read.
    pub fn accept(&self, key: &str, project: &Path, file: &ProjectFile) -> Result<(), Error> {
        let path = self.record(key);
        let record = Trusted {
            project: project.to_owned(),
            sha256: file.hash(),
            text: file.text().to_owned(),
        };
        let text =
            serde_json::to_vec(&record).map_err(|error| failed("write", &path)(error.into()))?;
        // Written atomically, with mode 0600.
        let write = || -> io::Result<()> {
            let mut new = tempfile::NamedTempFile::new_in(&self.folder)?;
            new.write_all(&text)?;
            new.as_file().sync_all()?;
            new.persist(&path)?;
            Ok(())
        };
        write().map_err(failed("write", &path))
    }

    /// Revokes trust; returns whether there was any.
    pub fn revoke(&self, key: &str) -> Result<bool, Error> {
        let path = self.record(key);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failed("remove", &path)(error)),
        }
    }

    /// Returns all trusted files, sorted by the projects' paths.
    pub fn list(&self) -> Result<Vec<Trusted>, Error> {
        let entries = fs::read_dir(&self.folder).map_err(failed("list", &self.folder))?;
        let mut all = Vec::new();
        for entry in entries
            .flatten()
            .filter(|entry| entry.path().extension().is_some_and(|end| end == "json"))
        {
            all.extend(read(&entry.path())?);
        }
        all.sort_by(|left, right| left.project.cmp(&right.project));
        Ok(all)
    }

    fn record(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.json"))
    }
}

/// Reads a record. A damaged one is ignored, so that its file is not trusted.
fn read(path: &Path) -> Result<Option<Trusted>, Error> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file: File = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(failed("read", path))?,
    };
    let mut bytes = Vec::new();
    file.take(LONGEST)
        .read_to_end(&mut bytes)
        .map_err(failed("read", path))?;
    let record: Option<Trusted> = serde_json::from_slice(&bytes).ok();
    Ok(record.filter(|record| hash(&record.text) == record.sha256))
}

fn failed(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> Error + use<> {
    let path = path.to_owned();
    move |source| Error::Trust {
        doing,
        path: path.clone(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn file(project: &Path, text: &str) -> ProjectFile {
        fs::create_dir_all(project.join(".podbay")).expect("made");
        fs::write(project.join(super::super::PROJECT_FILE), text).expect("written");
        ProjectFile::read(project)
            .expect("reads")
            .expect("is there")
    }

    #[test]
    fn trust_is_bound_to_these_bytes_in_this_folder() {
        let temp = tempfile::tempdir().expect("a folder");
        let (project, other) = (temp.path().join("project"), temp.path().join("other"));
        fs::create_dir(temp.path().join("trust")).expect("made");
        let trust = Trust::new(temp.path().join("trust"));
        let first = file(&project, "offline = true\n");
        let standing = |key: &str, project: &Path, file: &ProjectFile| {
            trust.standing(key, project, file).expect("reads")
        };
        assert_eq!(standing("1-2", &project, &first), TrustState::Untrusted);
        trust.accept("1-2", &project, &first).expect("writes");
        assert_eq!(standing("1-2", &project, &first), TrustState::Trusted);
        assert_eq!(
            standing("1-3", &project, &first),
            TrustState::Untrusted,
            "another folder at that path"
        );
        assert_eq!(
            standing("1-2", &other, &first),
            TrustState::Untrusted,
            "another path with that number"
        );
        let second = file(&project, "offline = false\n");
        assert_eq!(
            standing("1-2", &project, &second),
            TrustState::Changed {
                before: "offline = true\n".to_owned()
            }
        );
        let record = temp.path().join("trust/1-2.json");
        assert_eq!(
            fs::metadata(&record).expect("there").permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(trust.list().expect("lists").len(), 1);
        let changed = fs::read_to_string(&record)
            .expect("reads")
            .replace(&first.hash(), &second.hash());
        fs::write(&record, changed).expect("written");
        assert_eq!(
            standing("1-2", &project, &second),
            TrustState::Untrusted,
            "a hash that is not of what was shown"
        );
        assert!(
            trust.revoke("1-2").expect("removes")
                && !trust.revoke("1-2").expect("nothing to remove")
        );
    }
}
