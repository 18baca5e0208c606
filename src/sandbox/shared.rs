//! What the sandbox of `podbay up` protects of the project, and what came after it was made.
//!
//! Masks are mounts, which a running sandbox cannot be given. So it keeps those that it was made
//! with: they are what the user had then. What its own commands make later is theirs, also by the
//! name of a secret or of a repository; a later file of the user's is named, once.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::Covers;
use super::Project;
use super::covers::WORKSPACE;
use podbay_engine::ContainerId;
use podbay_engine::ContainerState;
use podbay_wire::BytesPath;

/// What stands at the top of a project and is always read-only.
const TOP: [&str; 2] = [".git", ".podbay"];

/// What a running sandbox was made to protect, as the engine tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SharedCovers {
    pub(super) covers: Covers,
    /// Those of [`TOP`].
    top: BTreeSet<&'static str>,
}

/// The sandbox of `podbay up`, as the engine tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SharedSandbox {
    pub(super) id: ContainerId,
    pub(super) covers: SharedCovers,
    /// Its first process, as this machine numbers it.
    pub(super) pid: Option<u32>,
    /// Where it looks for the sockets of controllers, on this machine.
    pub(super) sockets: Option<PathBuf>,
}

/// What a shared sandbox does not protect, because it came later.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LaterPaths(Vec<String>);

impl SharedCovers {
    /// Returns those of a container. `foreign` is what is mounted in the project from elsewhere,
    /// which is masked for other reasons.
    pub(super) fn of(state: &ContainerState, foreign: &[BytesPath]) -> Self {
        let below = |paths: &[String]| -> Vec<String> {
            let is_foreign = |path: &str| {
                foreign
                    .iter()
                    .any(|foreign| foreign.as_bytes() == path.as_bytes())
            };
            paths
                .iter()
                .filter_map(|path| path.strip_prefix(WORKSPACE)?.strip_prefix('/'))
                .filter(|path| !is_foreign(path))
                .map(ToOwned::to_owned)
                .collect()
        };
        let read_only = below(&state.readonly_paths);
        let (top, read_only): (Vec<String>, Vec<String>) = read_only
            .into_iter()
            .partition(|path| TOP.contains(&path.as_str()));
        Self {
            covers: Covers::of_paths(below(&state.masked_paths), read_only),
            top: TOP
                .into_iter()
                .filter(|name| top.iter().any(|path| path == name))
                .collect(),
        }
    }

    /// Returns what is protected in the sandbox no longer, though it is still in the project: it was
    /// replaced on the host. `mounted` is what is mounted in the sandbox.
    pub(super) fn lost(&self, project: &Project, mounted: &[BytesPath]) -> Option<BytesPath> {
        let mounted: BTreeSet<&BytesPath> = mounted.iter().collect();
        let top = self.top.iter().map(|&name| BytesPath::from(name));
        self.covers
            .covered()
            .into_iter()
            .chain(top)
            .filter(|place| !mounted.contains(place))
            .find(|place| {
                let path = project.path().join(OsStr::from_bytes(place.as_bytes()));
                path.symlink_metadata().is_ok()
            })
    }

    /// Returns what is to be protected now, and was not when the sandbox was made.
    pub(super) fn later(&self, project: &Project, now: &Covers) -> LaterPaths {
        let is_there = |name: &str| match name {
            ".git" => project.has_git(),
            _ => project.has_settings(),
        };
        let mut later = now.newly_hidden(&self.covers);
        later.extend(now.newly_read_only(&self.covers));
        let top = TOP
            .into_iter()
            .filter(|name| is_there(name) && !self.top.contains(name));
        later.extend(top.map(ToOwned::to_owned));
        later.sort();
        LaterPaths(later)
    }
}

impl LaterPaths {
    pub(super) fn paths(&self) -> &[String] {
        &self.0
    }

    /// Says what came later, but for what was `told` before.
    pub(super) fn words(&self, told: &BTreeSet<String>) -> Option<String> {
        let new: Vec<&str> = self
            .0
            .iter()
            .filter(|path| !told.contains(*path))
            .map(String::as_str)
            .collect();
        (!new.is_empty()).then(|| {
            format!(
                "the environment of `podbay up` is older than {}, so its commands can read and change that: what they made themselves is theirs; \
                 if you made it, `podbay down` and `podbay up` make an environment that protects it",
                new.join(", ")
            )
        })
    }
}

/// Says why a shared sandbox is not joined.
pub(super) fn lost_words(path: &BytesPath) -> String {
    format!(
        "the environment of `podbay up` no longer protects `{path}`, which was removed or replaced on your machine since; what is there now may be yours or made by a command \
         in it. So this is a second sandbox beside it; `podbay down` and `podbay up` make one that protects it"
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn covers(hidden: &[&str], read_only: &[&str]) -> Covers {
        let texts = |paths: &[&str]| paths.iter().map(|&path| path.to_owned()).collect();
        Covers::of_paths(texts(hidden), texts(read_only))
    }

    fn shared() -> SharedCovers {
        SharedCovers {
            covers: covers(&[".env", "a/.env"], &[".envrc"]),
            top: BTreeSet::from([".git"]),
        }
    }

    fn project(folder: &Path) -> Project {
        std::fs::create_dir_all(folder.join(".git")).expect("made");
        std::fs::create_dir_all(folder.join("a")).expect("made");
        for name in [".env", "a/.env", ".envrc"] {
            std::fs::write(folder.join(name), "").expect("written");
        }
        Project::open(folder, None, Path::new("/nonexistent")).expect("a project")
    }

    #[test]
    fn a_mask_that_is_gone_while_its_file_is_there_is_lost() {
        let folder = tempfile::tempdir().expect("a folder");
        let project = project(folder.path());
        let lost = |mounted: &[&str]| {
            let mounted: Vec<BytesPath> =
                mounted.iter().map(|&path| BytesPath::from(path)).collect();
            shared()
                .lost(&project, &mounted)
                .map(|path| path.to_string())
        };
        assert_eq!(lost(&[".env", "a/.env", ".envrc", ".git"]), None);
        assert_eq!(lost(&[".env", ".envrc", ".git"]).as_deref(), Some("a/.env"));
        assert_eq!(lost(&[".env", "a/.env", ".envrc"]).as_deref(), Some(".git"));
        // What the user removed needs no mask.
        std::fs::remove_file(folder.path().join("a/.env")).expect("removed");
        assert_eq!(lost(&[".env", ".envrc", ".git"]), None);
    }

    #[test]
    fn what_came_after_the_sandbox_is_later() {
        let folder = tempfile::tempdir().expect("a folder");
        let project = project(folder.path());
        let later = |hidden: &[&str], read_only: &[&str]| {
            shared().later(&project, &covers(hidden, read_only)).0
        };
        assert!(later(&[".env", "a/.env"], &[".envrc"]).is_empty());
        assert_eq!(
            later(&[".env", "a/.env", "b/.npmrc"], &[".envrc", "repo/.git"]),
            ["b/.npmrc", "repo/.git"]
        );
        assert!(later(&[".env"], &[]).is_empty());
    }

    #[test]
    fn what_was_told_is_not_told_again() {
        let found = LaterPaths(vec![".env".to_owned(), "repo/.git".to_owned()]);
        let told = BTreeSet::from([".env".to_owned()]);
        let words = found.words(&told).expect("one is new");
        assert!(words.contains("older than repo/.git, so"), "{words}");
        let told = BTreeSet::from([".env".to_owned(), "repo/.git".to_owned()]);
        assert_eq!(found.words(&told), None);
    }
}
