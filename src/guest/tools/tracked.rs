//! The files that git tracks, by the names in its index. `gitformat-index(5)` describes the file.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::fcntl::openat;
use nix::sys::stat::Mode;

/// Largest index that is read, in bytes: a million files need less.
const MAX_INDEX: u64 = 256 << 20;

/// Largest `.git` file, which names the repository's folder, in bytes.
const MAX_LINK: u64 = 8 * 1024;

const HEADER: usize = 12;
/// Fields before the flags of an entry: times, device, inode, mode, user, group, size, object id.
const BEFORE_FLAGS: usize = 60;
const EXTENDED: u16 = 0x4000;

/// Paths from the top of the repository, sorted. Empty where the index cannot be read.
#[derive(Debug, Default)]
pub(super) struct Tracked {
    names: Vec<u8>,
    ends: Vec<usize>,
}

impl Tracked {
    /// Reads the index of the repository whose top this folder is.
    pub(super) fn read(folder: &OwnedFd) -> Self {
        open(folder)
            .and_then(|index| Self::parse(&index))
            .unwrap_or_default()
    }

    fn parse(index: &[u8]) -> Option<Self> {
        let version = number(index.strip_prefix(b"DIRC")?.get(..4)?);
        let n_entries = number(index.get(8..HEADER)?) as usize;
        let mut tracked = Self {
            names: Vec::with_capacity(index.len() / 2),
            ends: Vec::with_capacity(n_entries.min(index.len() / BEFORE_FLAGS)),
        };
        let mut name = Vec::new();
        let mut at = HEADER;
        for _ in 0..n_entries {
            let start = at;
            at += BEFORE_FLAGS + 2;
            let flags = number(index.get(at - 2..at)?) as u16;
            if flags & EXTENDED != 0 {
                at += 2;
            }
            if version == 4 {
                name.truncate(name.len().checked_sub(varint(index, &mut at)?)?);
            } else {
                name.clear();
            }
            let length = memchr::memchr(0, index.get(at..)?)?;
            name.extend_from_slice(&index[at..at + length]);
            at += length + 1;
            if version < 4 {
                at = start + (at - 1 - start) / 8 * 8 + 8;
            }
            // Entries of a conflict repeat the name.
            if tracked.last() != Some(name.as_slice()) {
                tracked.names.extend_from_slice(&name);
                tracked.ends.push(tracked.names.len());
            }
        }
        Some(tracked)
    }

    pub(super) fn has(&self, path: &[u8]) -> bool {
        self.name(self.position(path)) == Some(path)
    }

    /// Returns whether something in a folder is tracked, or the folder itself, as a submodule.
    pub(super) fn has_below(&self, folder: &[u8]) -> bool {
        let below = [folder, b"/"].concat();
        self.has(folder)
            || self
                .name(self.position(&below))
                .is_some_and(|name| name.starts_with(&below))
    }

    /// Returns the position of the first name that is not before this one.
    fn position(&self, path: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.ends.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.name(middle).is_some_and(|name| name < path) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    fn name(&self, number: usize) -> Option<&[u8]> {
        let end = *self.ends.get(number)?;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.names[start..end])
    }

    fn last(&self) -> Option<&[u8]> {
        self.name(self.ends.len().checked_sub(1)?)
    }
}

fn open(folder: &OwnedFd) -> Option<Vec<u8>> {
    let place = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let git = match openat(folder, ".git", place, Mode::empty()) {
        Ok(git) => git,
        // A submodule's repository is inside that of the project; the `.git` file names it.
        Err(Errno::ENOTDIR) => {
            let text = read(folder, ".git", MAX_LINK)?;
            let target = text.strip_prefix(b"gitdir:")?.trim_ascii();
            openat(folder, target, place, Mode::empty()).ok()?
        }
        Err(_) => return None,
    };
    read(&git, "index", MAX_INDEX)
}

fn read(folder: impl AsFd, name: &str, most: u64) -> Option<Vec<u8>> {
    let flags = OFlag::O_RDONLY
        | OFlag::O_NOFOLLOW
        | OFlag::O_NONBLOCK
        | OFlag::O_NOCTTY
        | OFlag::O_CLOEXEC;
    let file = File::from(openat(folder, name, flags, Mode::empty()).ok()?);
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= most).then_some(bytes)
}

fn number(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// Reads how many bytes of the previous name are removed, in git's offset encoding.
fn varint(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut value = 0_usize;
    loop {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some(value);
        }
        value = value.checked_add(1)?.checked_mul(128)?;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    use super::*;

    #[expect(
        clippy::disallowed_methods,
        reason = "git itself creates the repository that is read"
    )]
    fn git(folder: &Path, words: &[&str]) {
        let done = Command::new("git")
            .arg("-C")
            .arg(folder)
            .args(words)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .expect("git runs");
        assert!(
            done.status.success(),
            "{words:?}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
    }

    fn open_folder(path: &Path) -> OwnedFd {
        OwnedFd::from(File::open(path).expect("opens"))
    }

    #[test]
    fn every_version_of_gits_index_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let names = [
            "a",
            "build/keep.txt",
            "build/deep/er/x.rs",
            "caf\u{e9}.txt",
            "with space",
            "z/0123456789/0123456789.txt",
        ];
        for name in names {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("has one")).expect("made");
            fs::write(path, "x").expect("written");
        }
        git(folder.path(), &["init", "-q"]);
        fs::write(folder.path().join("untracked"), "x").expect("written");
        for version in ["2", "3", "4"] {
            git(folder.path(), &["add", "--intent-to-add", "--force", "a"]);
            git(
                folder.path(),
                &[
                    "add",
                    "--force",
                    "build",
                    "caf\u{e9}.txt",
                    "with space",
                    "z",
                ],
            );
            git(folder.path(), &["update-index", "--index-version", version]);
            let tracked = Tracked::read(&open_folder(folder.path()));
            for name in names {
                assert!(tracked.has(name.as_bytes()), "{name} in version {version}");
            }
            for folder in ["build", "build/deep", "z"] {
                assert!(
                    tracked.has_below(folder.as_bytes()) && !tracked.has(folder.as_bytes()),
                    "{folder}"
                );
            }
            for other in [
                "",
                "untracked",
                "b",
                "build/",
                "build/deep/er",
                "zz",
                "with",
            ] {
                assert!(!tracked.has(other.as_bytes()), "{other}");
            }
            assert!(!tracked.has_below(b"buil") && !tracked.has_below(b"untracked"));
        }
    }

    #[test]
    fn an_invalid_index_means_nothing_is_tracked() {
        let folder = tempfile::tempdir().expect("a folder");
        let tracked = || Tracked::read(&open_folder(folder.path()));
        assert!(!tracked().has(b"a"));
        fs::create_dir(folder.path().join(".git")).expect("made");
        for bytes in [
            &b""[..],
            b"DIRC",
            b"DIRC\0\0\0\x02\xff\xff\xff\xff",
            b"DIRC\0\0\0\x04\0\0\0\x01",
            &[0xff; 200],
        ] {
            fs::write(folder.path().join(".git/index"), bytes).expect("written");
            assert!(
                !tracked().has(b"a") && !tracked().has_below(b"a"),
                "{bytes:?}"
            );
        }
    }
}
