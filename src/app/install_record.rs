//! What the last installation of a project left, in the state folder: for lists, and so that
//! `[setup]` commands run once.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::io::Write;
use std::path::PathBuf;

use serde::Deserialize;
use serde::Serialize;

use super::Error;
use podbay_session::State;

/// Most bytes of a record.
const LONGEST: u64 = 1 << 20;

/// A record; a damaged one counts as none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct InstallRecord {
    /// Hash of the image, the lock files and the commands with which all of `[setup]` ran.
    pub(super) setup: Option<String>,
    /// Bytes in each cache, by the ecosystem's name, as the sandbox counted them.
    pub(super) caches: BTreeMap<String, u64>,
}

impl InstallRecord {
    pub(super) fn read(state: &State, project: &str) -> Self {
        let read = || {
            let mut bytes = Vec::new();
            let file = fs::File::open(path(state, project)).ok()?;
            file.take(LONGEST).read_to_end(&mut bytes).ok()?;
            serde_json::from_slice(&bytes).ok()
        };
        read().unwrap_or_default()
    }

    pub(super) fn write(&self, state: &State, project: &str) -> Result<(), Error> {
        let write = || -> std::io::Result<()> {
            let mut new = tempfile::NamedTempFile::new_in(state.installs())?;
            new.write_all(&serde_json::to_vec(self)?)?;
            new.persist(path(state, project))?;
            Ok(())
        };
        write().map_err(|source| Error::Io {
            doing: "note what was installed".to_owned(),
            source,
        })
    }
}

fn path(state: &State, project: &str) -> PathBuf {
    state.installs().join(format!("{project}.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_kept_for_each_project_and_a_damaged_one_is_none() {
        let temp = tempfile::tempdir().expect("a folder");
        let state = State::open(&temp.path().join("state")).expect("opens");
        let record = InstallRecord {
            setup: Some("00ff".to_owned()),
            caches: BTreeMap::from([("pip".to_owned(), 7)]),
        };
        record.write(&state, "1-2").expect("written");
        assert_eq!(InstallRecord::read(&state, "1-2"), record);
        assert_eq!(InstallRecord::read(&state, "1-3"), InstallRecord::default());
        fs::write(path(&state, "1-2"), "{\"setup\": 3}").expect("written");
        assert_eq!(InstallRecord::read(&state, "1-2"), InstallRecord::default());
    }
}
