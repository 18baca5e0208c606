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

/// Most bytes of one ignore file that are used; compiling a longer one takes time and memory.
const MAX_BYTES: u64 = 256 * 1024;

/// Names of ignore files besides `.gitignore`; the later one wins.
const OTHER_NAMES: [&str; 2] = [".ignore", ".rgignore"];

/// The rules of all ignore files from the project's folder down to one folder.
///
/// These are ripgrep's rules: `.ignore` beats `.gitignore` beats `.git/info/exclude`; a deeper file
/// beats one above it; the last matching line wins; a nested repository ignores the outer
/// `.gitignore`. Ignore files are read through open folders and only if they are regular files, as
/// git does: a link or a pipe of that name is not read. Files that git tracks are never ignored.
#[derive(Debug, Default)]
pub(crate) struct IgnoreRules {
    above: Option<Arc<IgnoreRules>>,
    git: Option<Gitignore>,
    other: Option<Gitignore>,
    exclude: Option<Gitignore>,
    repository: Option<Repository>,
    /// Git ignores this folder: only tracked files in it count.
    tracked_only: bool,
}

/// The repository whose top a folder is.
#[derive(Debug)]
struct Repository {
    folder: OwnedFd,
    full: Vec<u8>,
    /// Read on first use.
    tracked: OnceLock<Tracked>,
}

impl Repository {
    fn tracked(&self) -> &Tracked {
        self.tracked.get_or_init(|| Tracked::read(&self.folder))
    }

    /// Returns a path relative to the repository.
    fn below<'a>(&self, full: &'a [u8]) -> &'a [u8] {
        full.get(self.full.len() + 1..).unwrap_or_default()
    }
}

/// What the rules say about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuleVerdict {
    Ignored,
    /// They explicitly include it (`!`).
    Included,
    /// An ignored folder that contains tracked files.
    HasTracked,
    Nothing,
}

/// Which ignore files a listing of a folder showed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RuleFiles {
    git: bool,
    other: bool,
    repository: bool,
}

impl RuleFiles {
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

impl IgnoreRules {
    /// Returns the rules of the folders above `path`. Only plain names are followed: at a link or
    /// `..` the rules end.
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
            rules = Self::below(&rules, &folder, &full, RuleFiles::all());
            if name == b".." {
                return rules;
            }
            full.push(b'/');
            full.extend_from_slice(name);
        }
        rules
    }

    /// Returns the rules for `folder`, whose path `full` starts with a slash or is empty.
    pub(crate) fn below(
        above: &Arc<Self>,
        folder: &OwnedFd,
        full: &[u8],
        seen: RuleFiles,
    ) -> Arc<Self> {
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

    /// Returns the rules for an ignored folder that contains tracked files.
    pub(crate) fn tracked_only(above: &Arc<Self>) -> Arc<Self> {
        Arc::new(Self {
            above: Some(Arc::clone(above)),
            tracked_only: true,
            ..Self::default()
        })
    }

    /// Returns what the rules say about a path, which starts with a slash.
    pub(crate) fn verdict(&self, full: &[u8], is_folder: bool) -> RuleVerdict {
        let path = as_path(full);
        let (mut git, mut other, mut exclude, mut repository) = (None, None, None, None);
        let mut tracked_only = false;
        let mut next = Some(self);
        while let Some(rules) = next {
            other = other.or_else(|| ask(rules.other.as_ref(), path, is_folder));
            // A nested repository has its own rules.
            if repository.is_none() {
                git = git.or_else(|| ask(rules.git.as_ref(), path, is_folder));
                exclude = exclude.or_else(|| ask(rules.exclude.as_ref(), path, is_folder));
                tracked_only |= rules.tracked_only;
                repository = rules.repository.as_ref();
            }
            next = rules.above.as_deref();
        }
        match (other, git.or(exclude)) {
            (Some(true), _) => RuleVerdict::Ignored,
            (None, Some(true)) => Self::tracked(repository, full, is_folder),
            (None, _) if tracked_only => Self::tracked(repository, full, is_folder),
            (Some(false), _) | (None, Some(false)) => RuleVerdict::Included,
            (None, None) => RuleVerdict::Nothing,
        }
    }

    /// Returns the same for a path that git ignores unless it is tracked.
    fn tracked(repository: Option<&Repository>, full: &[u8], is_folder: bool) -> RuleVerdict {
        let Some(repository) = repository else {
            return RuleVerdict::Ignored;
        };
        let path = repository.below(full);
        match is_folder {
            false if repository.tracked().has(path) => RuleVerdict::Nothing,
            true if repository.tracked().has_below(path) => RuleVerdict::HasTracked,
            _ => RuleVerdict::Ignored,
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
            // An invalid pattern matches nothing, as with git.
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
