//! Which processes use a model server: each has a file that it locks as long as it does, so that
//! the kernel tells which of them live.

use std::fs;
use std::fs::File;
use std::fs::TryLockError;
use std::io::Read;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use serde::Deserialize;
use serde::Serialize;

use super::Error;
use super::atomic_file;
use super::paths::make_private;
use podbay_engine::Owner;

/// Most bytes of a note that are read.
const MOST_NOTE: u64 = 4096;

/// Marks this process as a user of a model server. The mark ends with the process, however that
/// ends.
#[derive(Debug)]
pub struct ServerUse {
    path: PathBuf,
    _file: File,
}

/// The content of the file, for processes that want another server.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    owner: String,
    pub(super) pid: u32,
    /// Hash of the server's plan.
    plan: String,
    pub(super) model: String,
}

impl ServerUse {
    /// Marks this process as a user of the server of that plan, before it starts or uses it.
    pub(super) fn take(folder: &Path, plan: &str, model: &str) -> Result<Self, Error> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        make_private(folder)?;
        let owner = Owner::current();
        let name = &atomic_file::hex(&atomic_file::sha256(owner.to_string().as_bytes()))[..16];
        let path = folder.join(format!(
            "{name}-{}.lock",
            NEXT.fetch_add(1, Ordering::Relaxed)
        ));
        let note = Note {
            pid: owner.pid(),
            owner: owner.to_string(),
            plan: plan.to_owned(),
            model: model.to_owned(),
        };
        let failed = |source| Error::File {
            doing: "write",
            path: path.clone(),
            source,
        };
        let text = serde_json::to_vec(&note).map_err(|error| failed(error.into()))?;
        // The file is locked before it gets its name, so that no process finds it unlocked.
        let part = atomic_file::part_of(&path);
        atomic_file::remove(&part)?;
        let mut out = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&part)
            .map_err(failed)?;
        out.write_all(&text)
            .and_then(|()| out.lock())
            .and_then(|()| fs::rename(&part, &path))
            .map_err(failed)?;
        Ok(Self { path, _file: out })
    }
}

impl Drop for ServerUse {
    fn drop(&mut self) {
        if let Err(error) = atomic_file::remove(&self.path) {
            tracing::debug!(%error, "what says that the model server is used stays; its lock ends all the same");
        }
    }
}

/// Returns another living process that uses the server of a plan; removes the files of ended ones.
pub(super) fn user(folder: &Path, plan: &str) -> Option<Note> {
    let own = Owner::current().to_string();
    let mut found = None;
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|end| end == "lock") {
            found = found.or(living(&path).filter(|note| note.plan == plan && note.owner != own));
        }
    }
    found
}

/// Reads the note of a living process; removes the file of an ended one.
fn living(path: &Path) -> Option<Note> {
    let file = fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)
        .ok()?;
    if !matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
        if let Err(error) = atomic_file::remove(path) {
            tracing::debug!(%error, "what an ended process left stays");
        }
        return None;
    }
    let mut text = Vec::new();
    file.take(MOST_NOTE).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes the note of another process; the returned file holds its lock.
    fn other(folder: &Path, plan: &str) -> File {
        let note = Note {
            owner: "elsewhere".to_owned(),
            pid: 4711,
            plan: plan.to_owned(),
            model: "m".to_owned(),
        };
        let path = folder.join("other.lock");
        fs::write(&path, serde_json::to_vec(&note).expect("JSON")).expect("written");
        let file = File::open(path).expect("made");
        file.lock().expect("free");
        file
    }

    #[test]
    fn a_living_user_of_the_server_is_found_and_an_ended_one_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(user(&folder.path().join("absent"), "a"), None);
        let lock = other(folder.path(), "a");
        let found = user(folder.path(), "a").expect("it lives");
        assert_eq!((found.pid, found.model.as_str()), (4711, "m"));
        assert_eq!(user(folder.path(), "b"), None, "that is another server");
        drop(lock);
        assert_eq!(user(folder.path(), "a"), None);
        assert!(
            !folder.path().join("other.lock").exists(),
            "nobody else clears it away"
        );
    }

    #[test]
    fn this_process_does_not_block_itself_and_leaves_no_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let (first, second) = (
            ServerUse::take(folder.path(), "a", "m").expect("taken"),
            ServerUse::take(folder.path(), "a", "m").expect("taken"),
        );
        assert_eq!(fs::read_dir(folder.path()).expect("made").count(), 2);
        assert_eq!(user(folder.path(), "a"), None);
        assert_eq!(
            fs::read_dir(folder.path()).expect("made").count(),
            2,
            "they are locked"
        );
        drop((first, second));
        assert_eq!(fs::read_dir(folder.path()).expect("made").count(), 0);
    }

    #[test]
    fn a_malformed_note_is_ignored() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.lock");
        fs::write(&path, "?").expect("written");
        let file = File::open(&path).expect("made");
        file.lock().expect("free");
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link.lock")).expect("linked");
        assert_eq!(user(folder.path(), "a"), None);
        assert!(path.exists() && Path::new("/etc/passwd").exists());
    }
}
