//! What the sandbox of `podbay up` protects of the project, and what came after it was made.
//!
//! Masks are mounts, which a running sandbox cannot be given. So it keeps those that it was made
//! with: they are what the user had then. What its own commands make later is theirs, also by the
//! name of a secret or of a repository; a later file of the user's is named, once.

use std::collections::BTreeSet;

use super::Covers;
use super::Project;
use super::covers::WORKSPACE;
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

/// How a shared sandbox differs from what a search of the project finds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Difference {
    /// What is protected in it no longer, though it is still there: it was replaced on the host.
    pub(super) lost: Option<String>,
    /// What it does not protect: it came later.
    pub(super) later: Vec<String>,
}

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

    /// Compares them with what is to be protected now, and with what is `mounted` in the sandbox.
    pub(super) fn compare(
        &self,
        project: &Project,
        now: &Covers,
        mounted: &[BytesPath],
    ) -> Difference {
        let mounted: BTreeSet<&BytesPath> = mounted.iter().collect();
        let is_there = |name: &str| match name {
            ".git" => project.has_git(),
            _ => project.has_settings(),
        };
        let mut lost: Vec<String> = self
            .covers
            .covered()
            .intersection(&now.covered())
            .filter(|place| !mounted.contains(place))
            .map(ToString::to_string)
            .collect();
        let mut later = now.newly_hidden(&self.covers);
        later.extend(now.newly_read_only(&self.covers));
        for name in TOP.into_iter().filter(|name| is_there(name)) {
            if !self.top.contains(name) {
                later.push(name.to_owned());
            } else if !mounted.contains(&BytesPath::from(name)) {
                lost.push(name.to_owned());
            }
        }
        later.sort();
        Difference {
            lost: lost.into_iter().next(),
            later,
        }
    }
}

impl Difference {
    /// Says what came later, but for what was `told` before.
    pub(super) fn words(&self, told: &BTreeSet<String>) -> Option<String> {
        let new: Vec<&str> = self
            .later
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
pub(super) fn lost_words(path: &str) -> String {
    format!(
        "the environment of `podbay up` no longer protects `{path}`, which was replaced on your machine, so this is a second sandbox beside it; \
         `podbay down` and `podbay up` make one that does"
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

    #[track_caller]
    fn check(now: &Covers, mounted: &[&str], lost: Option<&str>, later: &[&str]) {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join(".git")).expect("made");
        let project =
            Project::open(folder.path(), None, Path::new("/nonexistent")).expect("a project");
        let shared = SharedCovers {
            covers: covers(&[".env", "a/.env"], &[".envrc"]),
            top: BTreeSet::from([".git"]),
        };
        let mounted: Vec<BytesPath> = mounted.iter().map(|&path| BytesPath::from(path)).collect();
        let found = shared.compare(&project, now, &mounted);
        assert_eq!(
            (found.lost.as_deref(), found.later),
            (lost, later.iter().map(|&path| path.to_owned()).collect())
        );
    }

    #[test]
    fn what_came_later_is_told_and_what_was_replaced_is_lost() {
        let all = [".env", "a/.env", ".envrc", ".git"];
        let before = covers(&[".env", "a/.env"], &[".envrc"]);
        check(&before, &all, None, &[]);
        check(
            &covers(&[".env", "a/.env", "b/.npmrc"], &[".envrc", "repo/.git"]),
            &all,
            None,
            &["b/.npmrc", "repo/.git"],
        );
        check(&before, &[".env", ".envrc", ".git"], Some("a/.env"), &[]);
        check(&before, &[".env", "a/.env", ".envrc"], Some(".git"), &[]);
        // What the user removed needs no mask.
        check(&covers(&[".env"], &[]), &[".env", ".git"], None, &[]);
    }

    #[test]
    fn what_was_told_is_not_told_again() {
        let found = Difference {
            lost: None,
            later: vec![".env".to_owned(), "repo/.git".to_owned()],
        };
        let told = BTreeSet::from([".env".to_owned()]);
        let words = found.words(&told).expect("one is new");
        assert!(words.contains("older than repo/.git, so"), "{words}");
        let told = BTreeSet::from([".env".to_owned(), "repo/.git".to_owned()]);
        assert_eq!(found.words(&told), None);
    }
}
