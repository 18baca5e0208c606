use std::io::Read;
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::OnceLock;

use ignore::Match;
use ignore::gitignore::Gitignore;
use ignore::gitignore::GitignoreBuilder;
use nix::fcntl::OFlag;
use nix::fcntl::openat;
use nix::sys::stat::Mode;

use super::tracked::Tracked;
use crate::beneath::Links;
use crate::root::Root;
use crate::root::as_path;

/// Bytes of one ignore file that count; nobody writes longer ones by hand, and compiling them takes
/// time and memory.
const MAX_BYTES: u64 = 256 * 1024;

/// Names of ignore files besides `.gitignore`; what the later one says wins.
const OTHER_NAMES: [&str; 2] = [".ignore", ".rgignore"];

/// What the ignore files from the project's folder down to one folder say.
///
/// These are ripgrep's rules: `.ignore` beats `.gitignore` beats `.git/info/exclude`; a deeper file
/// beats one above it; the last line that matches wins; what lies in a repository within another
/// one does not obey the outer `.gitignore`. The files are read through open folders and only if
/// regular, as git does: a link or a pipe of that name is nobody's ignore file. What git tracks is
/// not ignored, whatever its ignore files say.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    above: Option<Arc<Rules>>,
    git: Option<Gitignore>,
    other: Option<Gitignore>,
    exclude: Option<Gitignore>,
    repository: Option<Repository>,
    /// Git ignores this folder: of what is in it, only what it tracks counts.
    tracked_only: bool,
}

/// The repository that a folder is.
#[derive(Debug)]
struct Repository {
    folder: OwnedFd,
    full: Vec<u8>,
    /// Read when it is asked for first.
    tracked: OnceLock<Tracked>,
}

impl Repository {
    fn tracked(&self) -> &Tracked {
        self.tracked.get_or_init(|| Tracked::read(&self.folder))
    }

    /// Returns a path as the repository knows it.
    fn below<'a>(&self, full: &'a [u8]) -> &'a [u8] {
        full.get(self.full.len() + 1..).unwrap_or_default()
    }
}

/// What rules say of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Ignored,
    /// They ask for it.
    Wanted,
    /// It is a folder that git ignores, and in which it tracks something.
    TrackedBelow,
    Nothing,
}

/// Which files with rules a listing of a folder showed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    git: bool,
    other: bool,
    repository: bool,
}

impl Seen {
    pub(crate) fn note(&mut self, name: &[u8]) {
        match name {
            b".gitignore" => self.git = true,
            b".git" => self.repository = true,
            _ => self.other |= OTHER_NAMES.iter().any(|other| other.as_bytes() == name),
        }
    }

    fn all() -> Self {
        Self {
            git: true,
            other: true,
            repository: true,
        }
    }
}

impl Rules {
    /// Returns what the folders above `path` say. Only their names count: where a link or `..`
    /// leads on, the rules end.
    pub(crate) fn above(root: &Root, path: &[u8]) -> Arc<Self> {
        let mut rules = Arc::new(Self::default());
        let names = path
            .split(|byte| *byte == b'/')
            .filter(|name| !name.is_empty());
        let mut full = Vec::new();
        for name in names {
            let relative = full.strip_prefix(b"/").unwrap_or(&full);
            let Ok(folder) = root.beneath().open(
                relative,
                OFlag::O_RDONLY | OFlag::O_DIRECTORY,
                Links::Refuse,
            ) else {
                return rules;
            };
            rules = Self::below(&rules, &folder, &full, Seen::all());
            if name == b".." {
                return rules;
            }
            full.push(b'/');
            full.extend_from_slice(name);
        }
        rules
    }

    /// Returns the rules that hold in `folder`, whose path `full` starts with a slash or is empty.
    pub(crate) fn below(above: &Arc<Self>, folder: &OwnedFd, full: &[u8], seen: Seen) -> Arc<Self> {
        if !seen.git && !seen.other && !seen.repository {
            return Arc::clone(above);
        }
        let git = if seen.git {
            load(folder, full, &[".gitignore"])
        } else {
            None
        };
        let other = if seen.other {
            load(folder, full, &OTHER_NAMES)
        } else {
            None
        };
        let is_repository = seen.repository
            && nix::sys::stat::fstatat(folder, ".git", nix::fcntl::AtFlags::AT_SYMLINK_NOFOLLOW)
                .is_ok();
        let exclude = if is_repository {
            load_exclude(folder, full)
        } else {
            None
        };
        let opened = if is_repository {
            folder.try_clone().ok()
        } else {
            None
        };
        let repository = opened.map(|folder| Repository {
            folder,
            full: full.to_vec(),
            tracked: OnceLock::new(),
        });
        if git.is_none() && other.is_none() && repository.is_none() {
            return Arc::clone(above);
        }
        Arc::new(Self {
            above: Some(Arc::clone(above)),
            git,
            other,
            exclude,
            repository,
            tracked_only: false,
        })
    }

    /// Returns the rules for a folder that git ignores although it tracks something in it.
    pub(crate) fn tracked_only(above: &Arc<Self>) -> Arc<Self> {
        Arc::new(Self {
            above: Some(Arc::clone(above)),
            tracked_only: true,
            ..Self::default()
        })
    }

    /// Says what is to be done with a path, which starts with a slash.
    pub(crate) fn say(&self, full: &[u8], is_folder: bool) -> Said {
        let path = as_path(full);
        let (mut git, mut other, mut exclude, mut repository) = (None, None, None, None);
        let mut tracked_only = false;
        let mut next = Some(self);
        while let Some(rules) = next {
            other = other.or_else(|| ask(rules.other.as_ref(), path, is_folder));
            // What lies in a repository within another one obeys its own.
            if repository.is_none() {
                git = git.or_else(|| ask(rules.git.as_ref(), path, is_folder));
                exclude = exclude.or_else(|| ask(rules.exclude.as_ref(), path, is_folder));
                tracked_only |= rules.tracked_only;
                repository = rules.repository.as_ref();
            }
            next = rules.above.as_deref();
        }
        match (other, git.or(exclude)) {
            (Some(true), _) => Said::Ignored,
            (None, Some(true)) => Self::tracked(repository, full, is_folder),
            (None, _) if tracked_only => Self::tracked(repository, full, is_folder),
            (Some(false), _) | (None, Some(false)) => Said::Wanted,
            (None, None) => Said::Nothing,
        }
    }

    /// Says the same of a path that git ignores unless it tracks it.
    fn tracked(repository: Option<&Repository>, full: &[u8], is_folder: bool) -> Said {
        let Some(repository) = repository else {
            return Said::Ignored;
        };
        let path = repository.below(full);
        match is_folder {
            false if repository.tracked().has(path) => Said::Nothing,
            true if repository.tracked().has_below(path) => Said::TrackedBelow,
            _ => Said::Ignored,
        }
    }
}

fn ask(rules: Option<&Gitignore>, path: &Path, is_folder: bool) -> Option<bool> {
    match rules?.matched(path, is_folder) {
        Match::None => None,
        Match::Ignore(_) => Some(true),
        Match::Whitelist(_) => Some(false),
    }
}

fn load(folder: &OwnedFd, full: &[u8], names: &[&str]) -> Option<Gitignore> {
    let texts = names.iter().filter_map(|name| read(folder, name));
    build(full, texts)
}

fn load_exclude(folder: &OwnedFd, full: &[u8]) -> Option<Gitignore> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let git = openat(folder, ".git", flags, Mode::empty()).ok()?;
    let info = openat(&git, "info", flags, Mode::empty()).ok()?;
    build(full, read(&info, "exclude"))
}

fn build(full: &[u8], texts: impl IntoIterator<Item = String>) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new(if full.is_empty() {
        Path::new("/")
    } else {
        as_path(full)
    });
    builder.allow_unclosed_class(true);
    for text in texts {
        for line in text.trim_start_matches('\u{feff}').lines() {
            // A line that is no pattern matches nothing, as with git.
            let _ = builder.add_line(None, line);
        }
    }
    builder.build().ok().filter(|rules| !rules.is_empty())
}

fn read(folder: impl AsFd, name: &str) -> Option<String> {
    let flags = OFlag::O_RDONLY
        | OFlag::O_NOFOLLOW
        | OFlag::O_NONBLOCK
        | OFlag::O_NOCTTY
        | OFlag::O_CLOEXEC;
    let fd = openat(folder, name, flags, Mode::empty()).ok()?;
    let mut bytes = Vec::new();
    // A folder of that name fails here; a pipe without a writer is empty, and one with a writer is
    // not waited for.
    std::fs::File::from(fd)
        .take(MAX_BYTES)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
