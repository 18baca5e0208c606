//! What an engine of this machine says of itself, kept for a few minutes while its process lives: to
//! answer, an engine starts each program that it consists of.
//!
//! It is the same engine if the file beside its socket names the process that it named before. An
//! engine without that file is asked each time. Its runtime may be updated while it runs, so nothing
//! is kept for long.

use std::fs;
use std::fs::Permissions;
use std::io;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::SystemTime;

use serde::Deserialize;
use serde::Serialize;
use sha2::Digest;
use sha2::Sha256;

use super::connect::Facts;
use super::label;

/// How long facts count.
const LIFETIME: Duration = Duration::from_mins(5);

/// Larger files are none of ours.
const MOST_BYTES: u64 = 64 << 10;

/// The process of an engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Process {
    socket: PathBuf,
    id: u32,
    /// In clock ticks since the machine started.
    begun: u64,
    /// Of the file that names it, in nanoseconds since 1970.
    named: i64,
    boot: String,
}

#[derive(Serialize, Deserialize)]
struct Record {
    podbay: String,
    process: Process,
    facts: Facts,
}

/// A place for the facts of one engine.
#[derive(Debug)]
pub(super) struct KeptFacts {
    file: PathBuf,
    process: Process,
}

impl KeptFacts {
    /// `None`: nothing says which process answers at the socket.
    pub(super) fn of(socket: &Path, folder: &Path) -> Option<Self> {
        let process = Process::of(socket)?;
        let hash = Sha256::digest(socket.as_os_str().as_encoded_bytes());
        let name: String = hash[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        Some(Self {
            file: folder.join(format!("facts-{name}.json")),
            process,
        })
    }

    pub(super) fn load(&self) -> Option<Facts> {
        let metadata = fs::symlink_metadata(&self.file).ok()?;
        let age = SystemTime::now()
            .duration_since(metadata.modified().ok()?)
            .ok()?;
        if age > LIFETIME || !metadata.is_file() || metadata.len() > MOST_BYTES {
            return None;
        }
        let record: Record = serde_json::from_slice(&fs::read(&self.file).ok()?).ok()?;
        let is_same = record.process == self.process && record.podbay == version();
        is_same.then_some(record.facts)
    }

    pub(super) fn save(&self, facts: &Facts) {
        if let Err(error) = self.write(facts) {
            tracing::debug!(%error, "the facts of the engine are not kept");
        }
    }

    fn write(&self, facts: &Facts) -> io::Result<()> {
        let record = Record {
            podbay: version(),
            process: self.process.clone(),
            facts: facts.clone(),
        };
        let folder = self.file.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.as_file()
            .set_permissions(Permissions::from_mode(0o600))?;
        file.write_all(&serde_json::to_vec(&record)?)?;
        file.persist(&self.file)?;
        Ok(())
    }
}

impl Process {
    fn of(socket: &Path) -> Option<Self> {
        let named_by = socket.with_file_name("docker.pid");
        let id: u32 = fs::read_to_string(&named_by).ok()?.trim().parse().ok()?;
        let metadata = fs::metadata(&named_by).ok()?;
        Some(Self {
            socket: socket.to_owned(),
            id,
            begun: label::started(id)?,
            named: metadata.mtime() * 1_000_000_000 + metadata.mtime_nsec(),
            boot: label::boot(),
        })
    }
}

/// Another build may understand something else by the same words.
fn version() -> String {
    let built = std::env::current_exe()
        .and_then(fs::metadata)
        .map(|program| (program.ino(), program.mtime(), program.size()));
    format!("{} {:?}", env!("CARGO_PKG_VERSION"), built.ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_kept_while_the_same_process_answers() {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("docker.sock");
        let pid = folder.path().join("docker.pid");
        assert!(
            KeptFacts::of(&socket, folder.path()).is_none(),
            "nothing names a process"
        );
        let name = |words: &str| fs::write(&pid, words).expect("written");
        for odd in ["", "x", "-1", "4294967295"] {
            name(odd);
            assert!(KeptFacts::of(&socket, folder.path()).is_none(), "{odd:?}");
        }
        name(&format!("{}\n", std::process::id()));
        let kept = || KeptFacts::of(&socket, folder.path()).expect("a process");
        assert_eq!(kept().load(), None);
        kept().save(&Facts::plain());
        assert_eq!(kept().load(), Some(Facts::plain()));
        let file = kept().file;
        assert_eq!(fs::metadata(&file).expect("there").mode() & 0o777, 0o600);

        // An engine that was started anew.
        name("1\n");
        assert_eq!(kept().load(), None);
        name(&format!("{}\n", std::process::id()));
        assert_eq!(kept().load(), None, "it was named anew");
        kept().save(&Facts::plain());
        assert_eq!(kept().load(), Some(Facts::plain()));

        let old = SystemTime::now() - LIFETIME - Duration::from_secs(1);
        let opened = fs::File::options().write(true).open(&file).expect("opens");
        opened.set_modified(old).expect("set");
        assert_eq!(kept().load(), None, "it is old");
        fs::write(&file, "{").expect("written");
        assert_eq!(kept().load(), None);
        fs::remove_file(&file).expect("removed");
        std::os::unix::fs::symlink("/etc/passwd", &file).expect("linked");
        assert_eq!(kept().load(), None);
    }
}
