//! Objects that decompress to more than the size limit of a file. A few kilobytes in a session's
//! folder would fill the disk at the next checkout, so nothing that leads to such an object is
//! imported.

use std::collections::BTreeMap;
use std::time::Duration;

use super::RepositoryImport;
use super::UnreadRef;
use crate::keep::git::git_command::Git;
use crate::keep::git::git_command::MAX_LISTED;
use crate::keep::git::refs::Head;
use crate::keep::git::session_changes::SessionChanges;
use crate::keep::git::staging;
use crate::keep::git::stash;
use crate::keep::git::untrusted_folder::FileKind;
use crate::keep::git::untrusted_folder::failed;
use crate::root::join;
use podbay_wire::BytesPath;
use podbay_wire::Fault;

/// Largest ratio of an object's size to its file's: what zlib makes of zeros, and a little.
const MOST_UNFOLDED: u64 = 1100;

/// Time for finding them, and most references that are examined for what leads to one.
const WITHIN: Duration = Duration::from_secs(30);
const MOST_TOLD_APART: usize = 100;

/// The oversized objects, by id.
struct OversizedObjects {
    sizes: BTreeMap<String, u64>,
    /// Whether all are blobs, so that what leads to them can be listed.
    are_files: bool,
    /// Whether all objects were seen.
    is_whole: bool,
}

/// What some tips lead to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReachedObject {
    Nothing,
    /// An object of so many bytes.
    Large(u64),
    /// Unknown.
    Unknown,
}

impl RepositoryImport<'_> {
    /// Returns what was left in the session that leads to such an object.
    pub(super) fn too_large(&self, left: &SessionChanges) -> Result<Vec<UnreadRef>, Fault> {
        if !self.may_hold_large()? {
            return Ok(Vec::new());
        }
        let objects = staging::ObjectFolders {
            real: &self.real_path,
            session: &self.session_path,
            session_folder: &self.session,
            real_folder: &self.real,
        };
        let empty = self.scratch.join("empty");
        let large = self.listed(
            &Git::new(&staging::own(self.scratch, &objects)?, &empty, self.end).bounded(WITHIN),
        )?;
        if large.sizes.is_empty() && large.is_whole {
            return Ok(Vec::new());
        }
        let mut unseen = Vec::new();
        let mut leave = |what: BytesPath, object: &str, reached: ReachedObject| {
            let limit = self.file_size;
            let why = match reached {
                ReachedObject::Nothing => return,
                ReachedObject::Large(bytes) => {
                    format!(
                        "it holds an object of {bytes} bytes, and no file may have more than {limit} (`sandbox.file_size`)"
                    )
                }
                ReachedObject::Unknown => {
                    "it holds too many objects to search for large ones".to_owned()
                }
            };
            unseen.push(UnreadRef {
                what,
                object: object.to_owned(),
                why,
                is_late: false,
                is_broken: true,
            });
        };
        let mut tips: Vec<(BytesPath, &str)> = left
            .names
            .iter()
            .map(|(name, object)| (name.clone(), object.as_str()))
            .collect();
        tips.extend(
            left.stashes
                .iter()
                .map(|stash| (BytesPath::from_bytes(stash::NAME), stash.object.as_str())),
        );
        if let Some(head @ Head::Commit { object }) = &left.head
            && *head != self.started.head
        {
            tips.push(("HEAD".into(), object));
        }
        let git =
            Git::new(&staging::make(self.scratch, &objects)?, &empty, self.end).bounded(WITHIN);
        let all = if tips.is_empty() {
            ReachedObject::Nothing
        } else {
            self.reached(&git, &tips, &large)?
        };
        for (at, tip) in tips
            .iter()
            .enumerate()
            .filter(|_| all != ReachedObject::Nothing)
        {
            let reached = if at < MOST_TOLD_APART {
                self.reached(&git, std::slice::from_ref(tip), &large)?
            } else {
                all
            };
            leave(tip.0.clone(), tip.1, reached);
        }
        let staged = left
            .index
            .iter()
            .flat_map(|index| &index.entries)
            .find_map(|entry| large.sizes.get(&entry.id()));
        if let Some(bytes) = staged {
            leave("index".into(), "", ReachedObject::Large(*bytes));
        }
        Ok(unseen)
    }

    /// Whether some file of the session's objects may decompress to this much; unknown for packed
    /// ones.
    fn may_hold_large(&self) -> Result<bool, Fault> {
        let list = |path: &[u8]| {
            self.session
                .names(path)
                .map_err(|errno| failed("list", path, &errno.into()))
        };
        for (folder, kind) in list(b"objects")? {
            if kind != FileKind::Folder || folder.len() != 2 && folder != b"pack" {
                continue;
            }
            let folder = join(b"objects", &folder);
            for (name, kind) in list(&folder)? {
                let is_large = || {
                    self.session
                        .stat(&join(&folder, &name))
                        .is_ok_and(|stat| stat.st_size as u64 >= self.file_size / MOST_UNFOLDED)
                };
                if kind == FileKind::File && (name.ends_with(b".pack") || is_large()) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn listed(&self, git: &Git) -> Result<OversizedObjects, Fault> {
        let words = [
            "cat-file",
            "--batch-all-objects",
            "--unordered",
            "--batch-check=%(objectsize) %(objecttype) %(objectname)",
        ];
        let answer = git.run(&words, b"")?;
        let mut large = OversizedObjects {
            sizes: BTreeMap::new(),
            are_files: true,
            is_whole: (answer.stdout.len() as u64) < MAX_LISTED,
        };
        for line in String::from_utf8_lossy(&answer.stdout).lines() {
            let mut words = line.split(' ');
            let (Some(bytes), Some(kind), Some(object)) = (
                words.next().and_then(|word| word.parse().ok()),
                words.next(),
                words.next(),
            ) else {
                continue;
            };
            if bytes > self.file_size {
                large.sizes.insert(object.to_owned(), bytes);
                large.are_files &= kind == "blob";
            }
        }
        Ok(large)
    }

    fn reached(
        &self,
        git: &Git,
        tips: &[(BytesPath, &str)],
        large: &OversizedObjects,
    ) -> Result<ReachedObject, Fault> {
        // Git would read any other object completely to list what it leads to.
        if let Some(bytes) = large.sizes.values().max().filter(|_| !large.are_files) {
            return Ok(ReachedObject::Large(*bytes));
        }
        if !large.is_whole {
            return Ok(ReachedObject::Unknown);
        }
        let asked: String = tips
            .iter()
            .map(|(_, object)| format!("{object}\n"))
            .chain(
                self.started
                    .refs
                    .values()
                    .map(|object| format!("^{object}\n")),
            )
            .collect();
        let answer = git.run(
            &[
                "rev-list",
                "--objects",
                "--no-object-names",
                "--ignore-missing",
                "--stdin",
            ],
            asked.as_bytes(),
        )?;
        let said = String::from_utf8_lossy(&answer.stdout);
        let unless_cut = if answer.stdout.len() as u64 >= MAX_LISTED {
            ReachedObject::Unknown
        } else {
            ReachedObject::Nothing
        };
        Ok(said
            .lines()
            .find_map(|object| large.sizes.get(object).copied())
            .map_or(unless_cut, ReachedObject::Large))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::sample::ID;
    use super::super::super::sample::Sample;
    use super::super::super::sample::SampleSession;
    use super::super::super::sample::import_limited;
    use super::super::super::sample::moved;
    use super::super::super::sample::run_git;
    use super::super::super::sample::told;
    use podbay_wire::keep::ImportedRepository;

    const LIMIT: u64 = 1 << 20;

    fn session() -> SampleSession {
        let sample = Sample::new();
        sample.commit("a", "1");
        // At the limit, and above it, where it is the user's own.
        sample.commit("theirs", &"x".repeat(3 << 20));
        SampleSession::of(sample)
    }

    /// Writes a file that is much larger than its object.
    fn commit_large(session: &SampleSession, bytes: usize) -> String {
        session.sample.write("large", &"\0".repeat(bytes));
        session.git(&["add", "large"]);
        session.git(&["commit", "-q", "-m", "large"]);
        session.git(&["rev-parse", "HEAD:large"]).trim().to_owned()
    }

    fn end(session: SampleSession, blob: &str) -> (Sample, ImportedRepository) {
        let sample = session.end();
        let one = import_limited(&sample, LIMIT);
        sample.git(&["fsck", "--strict", "--no-dangling"]);
        assert!(
            blob.is_empty() || !run_git(&sample.path(""), &["cat-file", "-e", blob]).1,
            "no object of it is here"
        );
        (sample, one)
    }

    #[test]
    fn only_references_to_oversized_objects_are_not_imported() {
        for packed in [false, true] {
            let session = session();
            session.git(&["checkout", "-q", "-b", "bomb"]);
            let blob = commit_large(&session, 3 << 20);
            session.git(&["rm", "-q", "large"]);
            session.git(&["commit", "-q", "-m", "it is gone again"]);
            session.git(&["tag", "v1"]);
            session.git(&["checkout", "-q", "main"]);
            session.sample.commit("b", "1");
            session.git(&["branch", "side"]);
            if packed {
                session.git(&["repack", "-q", "-a", "-d", "-l"]);
            }
            let (sample, one) = end(session, &blob);
            assert_eq!(
                moved(&one),
                ["refs/heads/main", "refs/heads/side"],
                "{}",
                told(&one)
            );
            let why = format!(
                "it holds an object of {} bytes, and no file may have more than {LIMIT} (`sandbox.file_size`)",
                3 << 20
            );
            assert_eq!(
                told(&one),
                format!("refs/heads/bomb: {why}\nrefs/tags/v1: {why}\n"),
                "{packed} {ID}"
            );
            assert_eq!(sample.git(&["log", "-1", "--format=%s"]), "b\n");
        }
    }

    #[test]
    fn oversized_staged_stashed_and_non_blob_objects_are_not_imported() {
        let session = session();
        session.sample.write("large", &"\0".repeat(3 << 20));
        session.git(&["add", "large"]);
        let blob = session.git(&["rev-parse", ":large"]).trim().to_owned();
        let (_, one) = end(session, &blob);
        assert!(
            told(&one).starts_with("index: it holds an object of 3145728 bytes"),
            "{}",
            told(&one)
        );
        let session = self::session();
        session.sample.write("large", &"\0".repeat(3 << 20));
        session.git(&["add", "large"]);
        session.git(&["stash", "-q"]);
        let (_, one) = end(session, &blob);
        assert!(
            told(&one).starts_with("refs/stash: it holds an object of 3145728 bytes"),
            "{}",
            told(&one)
        );
        let session = self::session();
        let words = "w".repeat(3 << 20);
        session.sample.write("words", &words);
        session.git(&["commit", "-q", "--allow-empty", "-F", "words"]);
        let (_, one) = end(session, "");
        assert!(
            told(&one).starts_with("refs/heads/main: it holds an object of 31"),
            "{}",
            told(&one)
        );
    }

    #[test]
    fn a_file_at_the_size_limit_is_imported() {
        let session = session();
        session.sample.write("large", &"\0".repeat(3 << 20));
        session.git(&["add", "large"]);
        session.git(&["reset", "-q"]);
        std::fs::remove_file(session.sample.path("large")).expect("removed");
        session.sample.commit("fits", &"\0".repeat(LIMIT as usize));
        let (sample, one) = end(session, "");
        assert_eq!(
            (moved(&one), told(&one).as_str()),
            (vec!["refs/heads/main".to_owned()], "")
        );
        assert_eq!(sample.git(&["log", "-1", "--format=%s"]), "fits\n");
    }
}
