use std::fs;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use super::log_file;

/// `events.jsonl`: the events of all sessions, for observers. Bounded, shared by all processes; its
/// failures never end a run.
pub(super) struct Journal {
    path: PathBuf,
    max: u64,
    file: Option<File>,
    /// Our last line may be incomplete; the next one then starts with a newline.
    torn: bool,
}

impl Journal {
    pub(super) fn new(path: PathBuf, max: u64) -> Self {
        let mut journal = Self {
            path,
            max,
            file: None,
            torn: false,
        };
        journal.open();
        journal
    }

    #[cfg(test)]
    pub(super) fn nowhere() -> Self {
        Self {
            path: PathBuf::new(),
            max: u64::MAX,
            file: None,
            torn: false,
        }
    }

    fn open(&mut self) {
        match log_file::open_append(&self.path, false) {
            Ok(file) => self.file = Some(file),
            Err(error) => {
                tracing::warn!(path = %self.path.display(), %error, "cannot open the journal");
            }
        }
    }

    pub(super) fn append(&mut self, line: &str) {
        self.rotate();
        let Some(file) = &mut self.file else { return };
        // One write per line: with O_APPEND, lines of several processes do not mix.
        let joined;
        let bytes = if self.torn {
            joined = format!("\n{line}");
            joined.as_bytes()
        } else {
            line.as_bytes()
        };
        let failed = file.write_all(bytes).is_err();
        if failed && !self.torn {
            tracing::warn!(path = %self.path.display(), "cannot write the journal");
        }
        self.torn = failed;
    }

    pub(super) fn sync(&mut self) {
        if let Some(file) = &self.file {
            let _ = file.sync_data();
        }
    }

    /// Rotates a full file. Of several processes that find it full, the one with the lock renames
    /// it; the others find a new file.
    fn rotate(&mut self) {
        let Some(file) = self.file.take_if(|file| {
            file.metadata()
                .is_ok_and(|metadata| metadata.len() >= self.max)
        }) else {
            return;
        };
        let ours = file
            .metadata()
            .map(|metadata| (metadata.dev(), metadata.ino()))
            .ok();
        if file.try_lock().is_ok() {
            let there = fs::symlink_metadata(&self.path)
                .map(|metadata| (metadata.dev(), metadata.ino()))
                .ok();
            if there == ours {
                let mut aside = self.path.clone().into_os_string();
                aside.push(".1");
                if let Err(error) = fs::rename(&self.path, aside) {
                    tracing::warn!(path = %self.path.display(), %error, "cannot set the journal aside");
                }
            }
        }
        // The lock is held until the new name is visible.
        drop(file);
        self.open();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_journal_is_rotated_once_by_two_writers() {
        let temp = tempfile::tempdir().expect("a folder");
        let path = temp.path().join("events.jsonl");
        let (mut one, mut two) = (
            Journal::new(path.clone(), 10),
            Journal::new(path.clone(), 10),
        );
        one.append("1111111111\n");
        two.append("2\n");
        one.append("3\n");
        two.append("4\n");
        let read = |name: &str| fs::read_to_string(temp.path().join(name)).expect("is there");
        assert_eq!(read("events.jsonl.1"), "1111111111\n");
        assert_eq!(read("events.jsonl"), "2\n3\n4\n");
    }
}
