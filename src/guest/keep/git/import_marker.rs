//! Marks a running import, so that the next one can remove what a killed one left behind:
//! references of our own, and stale locks, and no other process's.

use std::time::Duration;
use std::time::SystemTime;

use serde::Deserialize;
use serde::Serialize;

use super::import::place_of_incoming;
use super::refs;
use super::stash;
use super::untrusted_folder::UntrustedFolder;
use crate::root::join;
use podbay_wire::BytesPath;
use podbay_wire::Fault;

/// Git holds a lock on a reference for some milliseconds; one that is older than this, and younger
/// than a killed import, was that import's.
const HELD: Duration = Duration::from_secs(2);
const MAX_BEGUN: u64 = 256 << 20;

/// When an import started, and the references that it moves.
#[derive(Debug, Serialize, Deserialize)]
struct MarkedImport {
    names: Vec<BytesPath>,
}

/// The record of a running import in a repository.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ImportMarker<'a> {
    pub(crate) real: &'a UntrustedFolder,
    /// The private folder of its worktree.
    pub(crate) private: &'a [u8],
    pub(crate) state: &'a UntrustedFolder,
    pub(crate) id: &'a str,
    /// The number of the session's repository.
    pub(crate) at: usize,
}

impl ImportMarker<'_> {
    fn record(&self) -> Vec<u8> {
        format!("{}.{}.importing", self.id, self.at).into_bytes()
    }

    /// Records which references are about to be moved.
    pub(crate) fn begin<'a>(
        &self,
        names: impl Iterator<Item = &'a BytesPath>,
    ) -> Result<(), Fault> {
        let begun = MarkedImport {
            names: names.cloned().collect(),
        };
        let text = serde_json::to_vec(&begun).map_err(|error| Fault::Io {
            doing: "write a record".into(),
            problem: error.to_string(),
        })?;
        self.state.replace(&self.record(), &text)
    }

    pub(crate) fn done(&self) -> Result<(), Fault> {
        self.state.remove(&self.record())
    }

    /// Removes what a killed import left.
    pub(crate) fn clear(&self) -> Result<(), Fault> {
        self.clear_index()?;
        self.real.remove(&place_of_incoming(self.id))?;
        let Some(text) = self.state.read(&self.record(), MAX_BEGUN)? else {
            return Ok(());
        };
        let Ok(begun) = serde_json::from_slice::<MarkedImport>(&text) else {
            return self.done();
        };
        let begun_at = self
            .state
            .stat(&self.record())
            .map_or(SystemTime::UNIX_EPOCH, |stat| changed(&stat));
        self.clear_own()?;
        let fixed = [
            join(self.private, b"HEAD"),
            b"HEAD".to_vec(),
            b"packed-refs".to_vec(),
            stash::NAME.to_vec(),
        ];
        let names = begun
            .names
            .iter()
            .map(|name| name.as_bytes().to_vec())
            .filter(|name| refs::is_name(name));
        for name in names.chain(fixed) {
            let lock = [name.as_slice(), b".lock"].concat();
            if let Ok(stat) = self.real.stat(&lock)
                && changed(&stat) >= begun_at
            {
                let age = SystemTime::now()
                    .duration_since(changed(&stat))
                    .unwrap_or_default();
                std::thread::sleep(HELD.saturating_sub(age));
                // It may have been another git's, which has released it.
                if self.real.stat(&lock).is_ok_and(|again| {
                    (again.st_ino, changed(&again)) == (stat.st_ino, changed(&stat))
                }) {
                    self.real.remove(&lock)?;
                }
            }
        }
        Ok(())
    }

    /// Removes the locks of our own references, which no other process takes.
    pub(crate) fn clear_own(&self) -> Result<(), Fault> {
        let ours = format!("refs/podbay/{}", self.id).into_bytes();
        for (name, _) in self.real.names(&ours).unwrap_or_default() {
            if name.ends_with(b".lock") {
                self.real.remove(&join(&ours, &name))?;
            }
        }
        Ok(())
    }

    /// The lock of the index is a hard link of our own file until it is renamed to the index.
    fn clear_index(&self) -> Result<(), Fault> {
        let index = join(self.private, b"index");
        let own = own_index(&index, self.id);
        let lock = [index.as_slice(), b".lock"].concat();
        if let (Ok(own_stat), Ok(lock_stat)) = (self.real.stat(&own), self.real.stat(&lock))
            && (own_stat.st_dev, own_stat.st_ino) == (lock_stat.st_dev, lock_stat.st_ino)
        {
            self.real.remove(&lock)?;
        }
        self.real.remove(&own)
    }
}

/// Returns the name under which a new index is written.
pub(crate) fn own_index(index: &[u8], id: &str) -> Vec<u8> {
    [index, format!(".podbay-{id}").as_bytes()].concat()
}

fn changed(stat: &nix::sys::stat::FileStat) -> SystemTime {
    SystemTime::UNIX_EPOCH
        + Duration::new(
            stat.st_mtime.max(0) as u64,
            stat.st_mtime_nsec.clamp(0, 999_999_999) as u32,
        )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::sample::Sample;
    use super::*;

    #[test]
    fn locks_of_a_killed_import_are_removed_and_others_stay() {
        let sample = Sample::new();
        let state = sample.beside("state");
        fs::create_dir(&state).expect("made");
        let open = |path: &std::path::Path| UntrustedFolder::open(path).expect("opens");
        let (real, state) = (open(&sample.path(".git")), open(&state));
        let under = ImportMarker {
            real: &real,
            private: b".",
            state: &state,
            id: "a",
            at: 0,
        };
        sample.write(".git/HEAD.lock", "");
        under.clear().expect("nothing to do");
        let old = fs::File::options()
            .write(true)
            .open(sample.path(".git/HEAD.lock"))
            .expect("opens");
        old.set_modified(SystemTime::now() - Duration::from_secs(100))
            .expect("set");
        under
            .begin([&BytesPath::from("refs/heads/main")].into_iter())
            .expect("written");
        for lock in [
            "refs/heads/main.lock",
            "refs/heads/other.lock",
            "packed-refs.lock",
            "refs/podbay/a/0.lock",
            "index.lock",
        ] {
            sample.write(&format!(".git/{lock}"), "");
        }
        under.clear().expect("cleared");
        let is_there = |path: &str| sample.path(".git").join(path).exists();
        assert!(is_there("HEAD.lock"), "it is older than the import");
        assert!(
            is_there("refs/heads/other.lock") && is_there("index.lock"),
            "they are another git's"
        );
        assert!(
            !is_there("refs/heads/main.lock")
                && !is_there("packed-refs.lock")
                && !is_there("refs/podbay/a/0.lock")
        );
        fs::remove_file(sample.path(".git/index.lock")).expect("removed");
        sample.write(".git/objects/tmp_objdir-podbay-a/pack/tmp_pack_x", "half");
        sample.write(".git/objects/pack/tmp_pack_y", "somebody else is at it");
        sample.write(".git/index.podbay-a", "half");
        fs::hard_link(
            sample.path(".git/index.podbay-a"),
            sample.path(".git/index.lock"),
        )
        .expect("linked");
        under.clear().expect("cleared");
        assert!(!is_there("index.lock") && !is_there("index.podbay-a"));
        assert!(!is_there("objects/tmp_objdir-podbay-a") && is_there("objects/pack/tmp_pack_y"));
        under.done().expect("done");
    }
}
