//! What is masked or read-only in a sandbox: secrets are masked, and auto-run files of the host are
//! read-only.
//!
//! The engine mounts both by their paths inside the container, so that no host path is resolved
//! that a command could replace, and missing paths are ignored. The guest watches the mounts, and
//! ends its sandbox when one is gone.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use serde::Deserialize;
use serde::Serialize;

use super::Project;
use podbay_wire::BytesPath;
use podbay_wire::keep::FindOrder;
use podbay_wire::keep::FindResult;
use podbay_wire::keep::KnownProtected;

/// Most bytes of a record.
const LONGEST: u64 = 4 << 20;

/// Most folders that are mounted onto themselves, so that what is read-only below them cannot be
/// moved away.
const MOST_FOLDERS: usize = 64;

/// The message where the search before the first command was incomplete: for a session, which
/// continues it, and for others.
pub(super) const SEARCHED_ON: &str = "there was not enough time to look through the whole project for secrets and repositories before the first \
                                      command: the rest is looked through meanwhile, and until then commands can read, or change, what is not found; a larger `sandbox.look_ms` gives \
                                      the first look more time";
pub(super) const NOT_SEARCHED: &str = "there was not enough time to look through the whole project for secrets and repositories: those that were not found can be read, or \
                                       changed, by commands; a larger `sandbox.look_ms` gives it more, and a session looks through all of it once";

/// Where a sandbox mounts the project.
pub(super) const WORKSPACE: &str = "/workspace";

/// The masks of one sandbox; paths relative to the project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Covers {
    /// Files read as empty, folders are empty.
    hidden: Vec<String>,
    read_only: Vec<String>,
}

impl Covers {
    /// Returns the masks for a search result, and warnings about what cannot be masked.
    pub(super) fn of(found: &FindResult) -> (Self, Vec<String>) {
        let mut unnamed = Vec::new();
        let mut texts = |paths: Vec<&BytesPath>| -> Vec<String> {
            let mut texts = Vec::new();
            for path in paths {
                // The engine's API is JSON.
                match std::str::from_utf8(path.as_bytes()) {
                    Ok(text) => texts.push(text.to_owned()),
                    Err(_) => unnamed.push(path.to_string()),
                }
            }
            texts
        };
        let mut hidden = texts(found.secrets.iter().map(|secret| &secret.path).collect());
        let mut read_only = texts(found.auto_run.iter().chain(&found.repositories).collect());
        // Nothing below a masked folder is visible, nor can anything be mounted there.
        let is_within = |path: &String| {
            found
                .secrets
                .iter()
                .any(|secret| secret.is_folder && is_below(path, &secret.path))
        };
        hidden.retain(|path| !is_within(path));
        read_only.retain(|path| !is_within(path));
        let covers = Self { hidden, read_only };
        let mut warnings = Vec::new();
        if !unnamed.is_empty() {
            warnings
                .push(format!("commands can read and change {}: no engine takes a name that is not UTF-8; rename it", unnamed.join(", ")));
        }
        if !found.unread.is_empty() {
            let unread: Vec<String> = found.unread.iter().map(ToString::to_string).collect();
            warnings.push(format!(
                "git takes settings or hooks for the project from {}, which could not be read, or not all of them: files in the project that they \
                 have git run can be changed by commands, and are not all known",
                unread.join(", ")
            ));
        }
        if found.n_left_out > 0 {
            warnings.push(format!(
                "{} more files hold secrets or run on your machine by themselves than can be covered: commands can read and change them",
                found.n_left_out
            ));
        }
        let movable = covers.movable();
        if !movable.is_empty() {
            warnings.push(format!(
                "commands can move away what is hidden or read-only in {}: there are more such folders than can be held in place",
                movable.join(", ")
            ));
        }
        (covers, warnings)
    }

    /// Returns the masks at these paths.
    pub(super) fn of_paths(mut hidden: Vec<String>, mut read_only: Vec<String>) -> Self {
        hidden.sort();
        read_only.sort();
        Self { hidden, read_only }
    }

    /// Returns the masks for a copy-on-write view: auto-run files are writable there, as `git
    /// checkout` needs it, and are checked when changes are applied.
    #[must_use]
    pub(super) fn in_view(mut self) -> Self {
        self.read_only.retain(|path| path.ends_with("/.git"));
        self
    }

    /// Returns the union of both.
    pub(super) fn and(&self, other: &Self) -> Self {
        let join = |one: &[String], other: &[String]| {
            one.iter()
                .chain(other)
                .cloned()
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect()
        };
        Self {
            hidden: join(&self.hidden, &other.hidden),
            read_only: join(&self.read_only, &other.read_only),
        }
    }

    /// Returns them as known paths for a search.
    pub(super) fn known(&self) -> KnownProtected {
        let paths = |texts: &[String]| {
            texts
                .iter()
                .map(|text| BytesPath::from_bytes(text.as_bytes()))
                .collect()
        };
        KnownProtected {
            hidden: paths(&self.hidden),
            read_only: paths(&self.read_only),
        }
    }

    /// Returns what is masked here but was not before, without repository settings: a repository
    /// created meanwhile is reported in other ways.
    pub(super) fn newly_hidden(&self, before: &Self) -> Vec<String> {
        self.hidden
            .iter()
            .filter(|path| !before.hidden.contains(path) && !path.ends_with("/.git/config"))
            .cloned()
            .collect()
    }

    /// Returns what is read-only here but was not before.
    pub(super) fn newly_read_only(&self, before: &Self) -> Vec<String> {
        self.read_only
            .iter()
            .filter(|path| !before.read_only.contains(path))
            .cloned()
            .collect()
    }

    /// Returns the paths that commands cannot read, for display.
    pub(super) fn hidden(&self) -> &[String] {
        &self.hidden
    }

    /// Returns whether a path, or a folder above it, is masked.
    pub(super) fn hides(&self, path: &str) -> bool {
        Path::new(path)
            .ancestors()
            .any(|above| self.hidden.iter().any(|hidden| Path::new(hidden) == above))
    }

    /// Returns the nested repositories that were found, as paths of their `.git`, which may be a
    /// file.
    pub(super) fn repositories(&self) -> impl Iterator<Item = &String> {
        self.read_only.iter().filter(|path| path.ends_with("/.git"))
    }

    /// Returns whether no folder above a path can be renamed.
    pub(super) fn is_held(&self, path: &str) -> bool {
        let movable = self.movable();
        !movable
            .iter()
            .any(|folder| is_below(path, &BytesPath::from_bytes(folder.as_bytes())))
    }

    pub(super) fn masked_paths(&self) -> impl Iterator<Item = String> {
        self.hidden.iter().map(|path| format!("{WORKSPACE}/{path}"))
    }

    pub(super) fn readonly_paths(&self) -> impl Iterator<Item = String> {
        self.read_only
            .iter()
            .map(|path| format!("{WORKSPACE}/{path}"))
    }

    /// Returns the folders between the project's own and masked paths. Mounted onto themselves they
    /// cannot be renamed: otherwise a command could move the folder away with its mount, put a new
    /// file at a read-only path, and hide a secret from the next search.
    pub(super) fn held_folders(&self) -> Vec<String> {
        let mut folders = self.folders();
        folders.truncate(MOST_FOLDERS);
        folders
    }

    fn movable(&self) -> Vec<String> {
        self.folders()
            .split_off(self.folders().len().min(MOST_FOLDERS))
    }

    fn folders(&self) -> Vec<String> {
        let above = |path: &String| -> Vec<String> {
            Path::new(path)
                .ancestors()
                .skip(1)
                .filter_map(Path::to_str)
                .filter(|path| !path.is_empty())
                .map(ToOwned::to_owned)
                .collect()
        };
        let first: BTreeSet<String> = self.read_only.iter().flat_map(above).collect();
        let others: BTreeSet<String> = self
            .hidden
            .iter()
            .flat_map(above)
            .filter(|folder| !first.contains(folder))
            .collect();
        // Nothing can be renamed inside of a read-only folder.
        let is_fixed = |folder: &String| {
            self.read_only.iter().any(|path| {
                path == folder || is_below(folder, &BytesPath::from_bytes(path.as_bytes()))
            })
        };
        first
            .into_iter()
            .chain(others)
            .filter(|folder| !is_fixed(folder))
            .collect()
    }

    /// Returns the mount points that the sandbox must have.
    pub(super) fn places(&self) -> BTreeSet<BytesPath> {
        let held = self.held_folders();
        self.covered()
            .into_iter()
            .chain(
                held.iter()
                    .map(|path| BytesPath::from_bytes(path.as_bytes())),
            )
            .collect()
    }

    /// Returns those of them that are masked or read-only.
    pub(super) fn covered(&self) -> BTreeSet<BytesPath> {
        self.hidden
            .iter()
            .chain(&self.read_only)
            .map(|path| BytesPath::from_bytes(path.as_bytes()))
            .collect()
    }
}

fn is_below(path: &str, folder: &BytesPath) -> bool {
    path.as_bytes()
        .strip_prefix(folder.as_bytes())
        .is_some_and(|rest| rest.starts_with(b"/"))
}

/// Remembers the masks of a project's last sandbox, so that the next one need not wait for a
/// search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    file: PathBuf,
    project: String,
}

#[derive(Serialize, Deserialize)]
struct Written {
    project: String,
    covers: Covers,
    /// The patterns of read-only files at that time.
    #[serde(default)]
    auto_run: Vec<String>,
    /// The exceptions from masking at that time.
    #[serde(default)]
    reveal: Vec<String>,
    /// Whether the whole project was searched, by the same patterns.
    #[serde(default)]
    is_whole: bool,
    /// What was told of a shared sandbox.
    #[serde(default)]
    told: ToldOfShared,
}

/// Which paths were said to be newer than a shared sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct ToldOfShared {
    container: String,
    paths: BTreeSet<String>,
}

impl Record {
    pub(super) fn new(folder: &Path, project: &Project) -> Self {
        Self {
            file: folder.join(format!("{}.json", project.key())),
            project: project.text().to_owned(),
        }
    }

    /// Returns the remembered masks. They are a guess, so an unreadable record counts as none.
    /// Read-only files are dropped if a pattern was removed from the settings, and found again.
    pub(super) fn read(&self, auto_run: &[String]) -> Covers {
        let Some(written) = self.written() else {
            return Covers::default();
        };
        if !written
            .auto_run
            .iter()
            .all(|pattern| auto_run.contains(pattern))
        {
            return written.covers.in_view();
        }
        written.covers
    }

    /// Returns whether the whole project was searched for them, by the same patterns.
    pub(super) fn is_whole(&self, find: &FindOrder) -> bool {
        self.written().is_some_and(|written| {
            written.is_whole && written.auto_run == find.auto_run && written.reveal == find.reveal
        })
    }

    /// Returns what was told of a shared sandbox.
    pub(super) fn told(&self, container: &str) -> BTreeSet<String> {
        self.written()
            .map(|written| written.told)
            .filter(|told| told.container == container)
            .map_or_else(BTreeSet::new, |told| told.paths)
    }

    /// Remembers that these paths were told of a shared sandbox.
    pub(super) fn tell(&self, container: &str, paths: &[String]) {
        let Some(mut written) = self.written() else {
            return;
        };
        if written.told.container != container {
            written.told = ToldOfShared {
                container: container.to_owned(),
                ..ToldOfShared::default()
            };
        }
        written.told.paths.extend(paths.iter().cloned());
        self.place(&written);
    }

    fn written(&self) -> Option<Written> {
        let is_short =
            fs::metadata(&self.file).is_ok_and(|facts| facts.is_file() && facts.len() <= LONGEST);
        let written: Option<Written> = is_short
            .then(|| fs::read(&self.file).ok())
            .flatten()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok());
        written.filter(|written| written.project == self.project)
    }

    /// Remembers the masks of a sandbox; if that fails the next one starts a little later.
    ///
    /// `is_whole` says whether the whole project was searched.
    pub(super) fn write(&self, covers: &Covers, find: &FindOrder, is_whole: bool) {
        let is_whole = is_whole || self.is_whole(find);
        let (auto_run, reveal) = (find.auto_run.clone(), find.reveal.clone());
        let written = Written {
            project: self.project.clone(),
            covers: covers.clone(),
            auto_run,
            reveal,
            is_whole,
            told: self
                .written()
                .map(|written| written.told)
                .unwrap_or_default(),
        };
        self.place(&written);
    }

    fn place(&self, written: &Written) {
        let place = || {
            let folder = self.file.parent()?;
            let mut file = tempfile::NamedTempFile::new_in(folder).ok()?;
            file.write_all(&serde_json::to_vec(written).ok()?).ok()?;
            file.persist(&self.file).ok()
        };
        if place().is_none() {
            tracing::debug!(file = %self.file.display(), "what the sandbox covers is not remembered");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_wire::keep::SecretPath;

    fn found(secrets: &[&str], auto_run: &[&str]) -> FindResult {
        FindResult {
            secrets: secrets
                .iter()
                .map(|path| SecretPath {
                    path: BytesPath::from_bytes(*path),
                    is_folder: false,
                })
                .collect(),
            auto_run: auto_run
                .iter()
                .map(|path| BytesPath::from_bytes(*path))
                .collect(),
            is_whole: true,
            ..FindResult::default()
        }
    }

    #[test]
    fn folders_above_masks_are_mounted_onto_themselves() {
        let (covers, warnings) = Covers::of(&found(
            &["d/.env", ".github/deep/.env"],
            &["a/b/.vscode", ".github", "a/c/.envrc"],
        ));
        assert_eq!(warnings, Vec::<String>::new());
        assert_eq!(covers.held_folders(), ["a", "a/b", "a/c", "d"]);
        assert_eq!(
            covers.masked_paths().collect::<Vec<_>>(),
            ["/workspace/d/.env", "/workspace/.github/deep/.env"]
        );
        let places: Vec<String> = covers.places().iter().map(BytesPath::to_text).collect();
        assert_eq!(
            places,
            [
                ".github",
                ".github/deep/.env",
                "a",
                "a/b",
                "a/b/.vscode",
                "a/c",
                "a/c/.envrc",
                "d",
                "d/.env"
            ]
        );
    }

    #[test]
    fn nothing_is_masked_below_a_masked_folder() {
        let mut found = found(
            &["shared/.env", "shared.env"],
            &["shared/.vscode", ".github"],
        );
        found.secrets.push(SecretPath {
            path: BytesPath::from_bytes("shared"),
            is_folder: true,
        });
        let (covers, _) = Covers::of(&found);
        let places: Vec<String> = covers.places().iter().map(BytesPath::to_text).collect();
        assert_eq!(places, [".github", "shared", "shared.env"]);
    }

    #[test]
    fn new_masks_are_reported_without_repository_settings() {
        let (before, _) = Covers::of(&found(&[".env"], &[]));
        let (now, _) = Covers::of(&found(&[".env", "a/.env", "sub/.git/config"], &[]));
        assert_eq!(now.newly_hidden(&before), ["a/.env"]);
        assert_eq!(before.newly_hidden(&now), Vec::<String>::new());
    }

    #[test]
    fn paths_that_cannot_be_masked_are_reported() {
        let many: Vec<String> = (0..70)
            .map(|number| format!("{number:02}/.vscode"))
            .collect();
        let mut found = found(&[], &many.iter().map(String::as_str).collect::<Vec<_>>());
        found.secrets.push(SecretPath {
            path: BytesPath::from_bytes(b".env.\xff"),
            is_folder: false,
        });
        found.n_left_out = 3;
        found.unread = vec!["~/shared".into()];
        let (covers, warnings) = Covers::of(&found);
        let all = warnings.join("\n");
        for words in [
            r".env.\xff: no engine",
            "3 more files",
            "settings or hooks for the project from ~/shared, which",
            "in 64, 65, 66, 67, 68, 69:",
        ] {
            assert!(all.contains(words), "{words}: {all}");
        }
        assert_eq!(
            (covers.held_folders().len(), covers.hidden().len()),
            (64, 0)
        );
        assert!(
            covers.is_held("63/.vscode")
                && covers.is_held(".envrc")
                && !covers.is_held("64/.vscode")
                && !covers.is_held("69/a/.git")
        );
    }

    fn by(auto_run: &[&str]) -> FindOrder {
        FindOrder {
            auto_run: auto_run.iter().map(|&pattern| pattern.to_owned()).collect(),
            ..FindOrder::default()
        }
    }

    #[test]
    fn remembered_masks_belong_to_the_same_project() {
        let folder = tempfile::tempdir().expect("a folder");
        let record = Record {
            file: folder.path().join("1-2.json"),
            project: "/a".to_owned(),
        };
        assert_eq!(record.read(&by(&[]).auto_run), Covers::default());
        let (covers, _) = Covers::of(&found(&[".env"], &[]));
        record.write(&covers, &by(&[]), false);
        assert_eq!(record.read(&by(&[]).auto_run), covers);
        // The folder was removed, and another one got its inode.
        assert_eq!(
            Record {
                project: "/b".to_owned(),
                ..record.clone()
            }
            .read(&by(&[]).auto_run),
            Covers::default()
        );
        fs::write(&record.file, "{").expect("written");
        assert_eq!(record.read(&by(&[]).auto_run), Covers::default());
    }
    #[test]
    fn masks_of_a_removed_pattern_are_forgotten() {
        let folder = tempfile::tempdir().expect("a folder");
        let record = Record {
            file: folder.path().join("1-2.json"),
            project: "/a".to_owned(),
        };
        let (covers, _) = Covers::of(&found(&[".env"], &[".envrc", "sub/.git"]));
        record.write(&covers, &by(&[".envrc", ".vscode"]), false);
        assert_eq!(
            record.read(&by(&[".vscode", ".envrc", "more"]).auto_run),
            covers
        );
        let (fewer, _) = Covers::of(&found(&[".env"], &["sub/.git"]));
        assert_eq!(record.read(&by(&[".vscode"]).auto_run), fewer);
    }

    #[test]
    fn what_was_told_of_a_shared_sandbox_is_remembered_for_that_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let record = Record {
            file: folder.path().join("1-2.json"),
            project: "/a".to_owned(),
        };
        record.write(&Covers::default(), &by(&[]), true);
        record.tell("one", &[".env".to_owned()]);
        record.tell("one", &["a/.env".to_owned()]);
        record.write(&Covers::default(), &by(&[]), true);
        let both = BTreeSet::from([".env".to_owned(), "a/.env".to_owned()]);
        assert_eq!(record.told("one"), both);
        assert_eq!(record.told("two"), BTreeSet::new());
        record.tell("two", &[".env".to_owned()]);
        assert_eq!(record.told("one"), BTreeSet::new());
        assert!(record.is_whole(&by(&[])));
    }

    #[test]
    fn a_complete_search_is_remembered_for_its_patterns() {
        let folder = tempfile::tempdir().expect("a folder");
        let record = Record {
            file: folder.path().join("1-2.json"),
            project: "/a".to_owned(),
        };
        let covers = Covers::default();
        assert!(!record.is_whole(&by(&[])));
        record.write(&covers, &by(&[".envrc"]), false);
        assert!(!record.is_whole(&by(&[".envrc"])));
        record.write(&covers, &by(&[".envrc"]), true);
        // An incomplete search does not change that.
        record.write(&covers, &by(&[".envrc"]), false);
        assert!(record.is_whole(&by(&[".envrc"])) && !record.is_whole(&by(&[".envrc", ".vscode"])));
        assert!(
            !record.is_whole(&FindOrder {
                reveal: vec![".env".to_owned()],
                ..by(&[".envrc"])
            }),
            "what was revealed then was not found"
        );
    }
}
