//! Repositories for tests, made with the machine's git.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use sha2::Digest;
use sha2::Sha256;

use super::find::find;
use super::import::Import;
use super::import::UnreadRepositories;
use super::import::import;
use super::prepare::PrepareSource;
use super::prepare::prepare;
use super::untrusted_folder::UntrustedFolder;
use podbay_wire::BytesPath;
use podbay_wire::Fault;
use podbay_wire::keep::FoundGit;
use podbay_wire::keep::GitRefusal;
use podbay_wire::keep::Identity;
use podbay_wire::keep::ImportedGit;
use podbay_wire::keep::ImportedRepository;
use podbay_wire::keep::OutsideRepositories;
use podbay_wire::keep::PreparedGit;
use podbay_wire::keep::PreparedRepository;
use podbay_wire::keep::UserGitSettings;

/// A project with a repository, in a folder of its own.
pub(crate) struct Sample {
    place: tempfile::TempDir,
}

impl Sample {
    /// Makes a repository on the branch `main` without a commit.
    pub(crate) fn new() -> Self {
        let sample = Self::without_git();
        sample.git(&["init", "-q", "-b", "main"]);
        sample
    }

    /// Makes a repository with a submodule `sub` that has a submodule `deeper` itself, all with a
    /// commit.
    pub(crate) fn with_submodules() -> Self {
        let sample = Self::new();
        for name in ["deeper", "sub"] {
            let place = sample.beside(name);
            fs::create_dir(&place).expect("made");
            let git = |words: &[&str]| assert!(run_git(&place, words).1, "{words:?}");
            git(&["init", "-q", "-b", "main"]);
            fs::write(place.join("file"), name).expect("written");
            if name == "sub" {
                git(&["submodule", "--quiet", "add", "../deeper", "deeper"]);
            }
            git(&["add", "-A"]);
            git(&["commit", "-q", "-m", name]);
        }
        let from = sample.beside("sub").display().to_string();
        sample.git(&["submodule", "--quiet", "add", &from, "sub"]);
        sample.git(&["submodule", "--quiet", "update", "--init", "--recursive"]);
        sample.commit("file", "1");
        sample
    }

    /// Imports a session whose folder lies beside the project.
    pub(crate) fn import(&self) -> ImportedGit {
        import_at(self.place.path(), "project/.git")
    }

    /// Imports a session into the only repository.
    #[track_caller]
    pub(crate) fn import_one(&self) -> ImportedRepository {
        let mut imported = self.import().repositories;
        assert_eq!(imported.len(), 1);
        self.git(&["fsck", "--strict", "--no-dangling"]);
        assert_eq!(self.git(&["for-each-ref", "refs/podbay"]), "");
        assert!(!self.path(".git/refs/podbay").exists() && !self.path(".git/index.lock").exists());
        imported.remove(0)
    }

    pub(crate) fn without_git() -> Self {
        let place = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(place.path().join("project")).expect("made");
        Self { place }
    }

    /// Returns a path in the project.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.place
            .path()
            .join("project")
            .join(path.trim_start_matches('/'))
    }

    /// Returns a path beside the project.
    pub(crate) fn beside(&self, path: &str) -> PathBuf {
        self.place.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        if let Some(folder) = path.strip_suffix('/') {
            fs::create_dir_all(self.path(folder)).expect("made");
            return;
        }
        fs::create_dir_all(self.path(path).parent().expect("a folder")).expect("made");
        fs::write(self.path(path), text).expect("written");
    }

    pub(crate) fn commit(&self, path: &str, text: &str) -> String {
        self.write(path, text);
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", path]);
        self.git(&["rev-parse", "HEAD"]).trim().to_owned()
    }

    /// Runs git in the project; it must succeed.
    #[track_caller]
    pub(crate) fn git(&self, words: &[&str]) -> String {
        self.git_in("", words)
    }

    #[track_caller]
    pub(crate) fn git_in(&self, folder: &str, words: &[&str]) -> String {
        let (text, ended_well) = run_git(&self.path(folder), words);
        assert!(ended_well, "git {words:?} in {folder:?}: {text}");
        text
    }
}

/// Runs git as a user with empty settings; returns whether it succeeded.
#[expect(clippy::disallowed_methods, reason = "a test is the user who runs git")]
pub(crate) fn run_git(folder: &Path, words: &[&str]) -> (String, bool) {
    let output = std::process::Command::new("git")
        .args(words)
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", "/nonexistent")
        .env("LC_ALL", "C.UTF-8")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_AUTHOR_NAME", "Ann")
        .env("GIT_AUTHOR_EMAIL", "ann@example.org")
        .env("GIT_COMMITTER_NAME", "Ann")
        .env("GIT_COMMITTER_EMAIL", "ann@example.org")
        .env("GIT_EDITOR", "true")
        // Submodules of tests are cloned from folders.
        .env("GIT_ALLOW_PROTOCOL", "file")
        .output()
        .expect("git is there");
    let text = [
        output.stdout,
        if output.status.success() {
            Vec::new()
        } else {
            output.stderr
        },
    ]
    .concat();
    (
        String::from_utf8_lossy(&text).into_owned(),
        output.status.success(),
    )
}

/// Returns everything below a folder: names, kinds, modes and contents. No times: git renews those
/// of objects that it would write again, which it cannot in a sandbox, where they are mounted
/// read-only.
pub(crate) fn fingerprint(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(path) = folders.pop() {
        for entry in fs::read_dir(&path).expect("a readable folder") {
            let path = entry.expect("an entry").path();
            let facts = fs::symlink_metadata(&path).expect("facts");
            let contents = if facts.is_dir() {
                folders.push(path.clone());
                String::new()
            } else if facts.is_file() {
                format!("{:?}", Sha256::digest(fs::read(&path).expect("readable")))
            } else {
                format!("{:?}", fs::read_link(&path))
            };
            all.insert(path, format!("{:o} {contents}", facts.mode()));
        }
    }
    all
}

/// Imports a session, given the folder that holds the project and all the rest.
pub(crate) fn import_at(place: &Path, real: &str) -> ImportedGit {
    import_within(place, real, Duration::from_secs(60))
}

/// Imports with a time limit.
pub(crate) fn import_within(place: &Path, real: &str, budget: Duration) -> ImportedGit {
    import_bounded(place, real, budget, u64::MAX)
}

/// Imports into the only repository, with a size limit of files.
pub(crate) fn import_limited(sample: &Sample, file_size: u64) -> ImportedRepository {
    import_bounded(
        sample.place.path(),
        "project/.git",
        Duration::from_secs(60),
        file_size,
    )
    .repositories
    .remove(0)
}

fn import_bounded(place: &Path, real: &str, budget: Duration, file_size: u64) -> ImportedGit {
    let scratch = place.join("scratch");
    let _ = fs::remove_dir_all(&scratch);
    fs::create_dir(&scratch).expect("made");
    import(&Import {
        id: ID,
        state: &UntrustedFolder::open(&place.join("state")).expect("opens"),
        scratch: &scratch,
        places: &BTreeMap::from([(".git".into(), Ok((place.join(real), place.join("session"))))]),
        budget,
        file_size,
        unexamined: &UnreadRepositories::default(),
    })
    .expect("imported")
}

/// A sample whose project has a session's folder in place of its `.git`, as in a sandbox; the real
/// one lies beside it.
pub(crate) struct SampleSession {
    pub(crate) sample: Sample,
    pub(crate) prepared: PreparedGit,
    before: BTreeMap<PathBuf, String>,
}

/// Returns the references that the import moved.
pub(super) fn moved(imported: &ImportedRepository) -> Vec<String> {
    imported
        .moved
        .iter()
        .map(|moved| moved.name.to_text())
        .collect()
}

/// Returns what was not imported, with the reasons.
pub(super) fn told(imported: &ImportedRepository) -> String {
    imported
        .not_imported
        .iter()
        .map(|one| format!("{}: {}\n", one.what, one.why))
        .collect()
}

pub(crate) const ID: &str = "session-1";

impl SampleSession {
    pub(crate) fn of(sample: Sample) -> Self {
        Self::made(sample, &[], UserGitSettings::default())
    }

    pub(crate) fn hiding(sample: Sample, hidden: &[&str]) -> Self {
        Self::made(sample, hidden, UserGitSettings::default())
    }

    /// Makes a session for a user with these settings.
    pub(crate) fn of_person(sample: Sample, person: UserGitSettings) -> Self {
        Self::made(sample, &[], person)
    }

    fn made(sample: Sample, hidden: &[&str], person: UserGitSettings) -> Self {
        let (real, session, state) = (
            sample.beside("real"),
            sample.path(".git"),
            sample.beside("state"),
        );
        // Git reads files again whose times are those of the index.
        fs::rename(&session, &real).expect("moved");
        let before = fingerprint(&real);
        fs::create_dir(&session).expect("made");
        fs::create_dir(&state).expect("made");
        let source = PrepareSource {
            path: ".git".into(),
            real: &UntrustedFolder::open(&real).expect("opens"),
            worktree: None,
            session: &UntrustedFolder::open(&session).expect("opens"),
            session_at: BytesPath::from(session.as_path()),
            real_in_box: BytesPath::from(real.as_path()),
            session_in_box: "/nowhere".into(),
        };
        let project = UntrustedFolder::open(&sample.path("")).expect("opens");
        let hidden: Vec<BytesPath> = hidden.iter().copied().map(BytesPath::from).collect();
        let found = find(&project, Duration::from_secs(20));
        let state = UntrustedFolder::open(&state).expect("opens");
        let identity = Some(Identity {
            name: "Ann".into(),
            email: "ann@example.org".into(),
        });
        let person = UserGitSettings { identity, ..person };
        let prepared = prepare(
            &project,
            found,
            &[source],
            &hidden,
            &person,
            (b"/the/project", &OutsideRepositories::default()),
            (&state, ID),
        )
        .expect("prepared");
        Self {
            sample,
            prepared,
            before,
        }
    }

    /// Checks that the real repository is unchanged, byte for byte.
    #[track_caller]
    pub(crate) fn check_untouched(&self) {
        let now = fingerprint(&self.sample.beside("real"));
        let changed: Vec<_> = self
            .before
            .iter()
            .filter(|(path, one)| now.get(*path) != Some(one))
            .collect();
        assert!(
            changed.is_empty() && now.len() == self.before.len(),
            "{changed:?}, {} files of {}",
            now.len(),
            self.before.len()
        );
    }

    /// Returns why the session was refused, for each repository.
    pub(crate) fn refused(&self) -> Vec<(String, Option<GitRefusal>)> {
        self.prepared
            .repositories
            .iter()
            .map(|one| (one.path.to_text(), one.refused.clone()))
            .collect()
    }

    #[track_caller]
    pub(crate) fn git(&self, words: &[&str]) -> String {
        self.sample.git(words)
    }

    /// Ends the session: moves the real repository back to its place, and the session's folder
    /// beside it.
    pub(crate) fn end(self) -> Sample {
        fs::rename(self.sample.path(".git"), self.sample.beside("session")).expect("moved");
        fs::rename(self.sample.beside("real"), self.sample.path(".git")).expect("moved");
        self.sample
    }
}

/// A project that is a linked worktree on the branch `side` of a repository beside it.
pub(crate) struct LinkedSample {
    pub(crate) sample: Sample,
    pub(crate) main: PathBuf,
}

impl LinkedSample {
    pub(crate) fn new() -> Self {
        let sample = Sample::without_git();
        let main = sample.beside("main");
        fs::remove_dir(sample.path("")).expect("removed");
        for folder in ["main", "session", "state"] {
            fs::create_dir(sample.beside(folder)).expect("made");
        }
        let project = sample.path("").display().to_string();
        for words in [
            &["init", "-q", "-b", "main"][..],
            &["commit", "-q", "--allow-empty", "-m", "one"],
            &[
                "worktree",
                "add",
                "-q",
                project.trim_end_matches('/'),
                "-b",
                "side",
            ],
        ] {
            let (text, is_good) = run_git(&main, words);
            assert!(is_good, "{words:?}: {text}");
        }
        Self { sample, main }
    }

    /// Prepares a session; `git_file` is the recorded path of the project's `.git` file.
    pub(crate) fn prepare(&self, git_file: &str) -> PreparedRepository {
        self.try_prepare(git_file)
            .expect("prepared")
            .repositories
            .remove(0)
    }

    pub(crate) fn try_prepare(&self, git_file: &str) -> Result<PreparedGit, Fault> {
        let open = |path: &Path| UntrustedFolder::open(path).expect("opens");
        let session = self.sample.beside("session");
        let source = PrepareSource {
            path: ".git".into(),
            real: &open(&self.main.join(".git")),
            worktree: Some(("project".into(), git_file.into())),
            session: &open(&session),
            session_at: BytesPath::from(session.as_path()),
            real_in_box: BytesPath::from(self.main.join(".git").as_path()),
            session_in_box: BytesPath::from(session.as_path()),
        };
        let state = open(&self.sample.beside("state"));
        let project = open(&self.sample.path(""));
        prepare(
            &project,
            FoundGit::default(),
            &[source],
            &[],
            &UserGitSettings::default(),
            (b"", &OutsideRepositories::default()),
            (&state, ID),
        )
    }
}
