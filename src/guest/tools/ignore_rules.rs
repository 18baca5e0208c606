use std::io::Read;
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::Gitignore;
use ignore::gitignore::GitignoreBuilder;
use nix::fcntl::OFlag;
use nix::fcntl::openat;
use nix::sys::stat::Mode;

use crate::beneath::Links;
use crate::root::Root;
use crate::root::as_path;

/// Bytes of one ignore file that count; nobody writes longer ones by hand, and compiling them takes time and memory.
const MAX_BYTES: u64 = 256 * 1024;

/// Names of ignore files besides `.gitignore`; what the later one says wins.
const OTHER_NAMES: [&str; 2] = [".ignore", ".rgignore"];

/// What the ignore files from the project's folder down to one folder say.
///
/// These are ripgrep's rules: `.ignore` beats `.gitignore` beats `.git/info/exclude`; a deeper file beats one above it; the
/// last line that matches wins; what lies in a repository within another one does not obey the outer `.gitignore`. The files
/// are read through open folders and only if regular, as git does: a link or a pipe of that name is nobody's ignore file.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    above: Option<Arc<Rules>>,
    git: Option<Gitignore>,
    other: Option<Gitignore>,
    exclude: Option<Gitignore>,
    is_repository: bool,
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
        Self { git: true, other: true, repository: true }
    }
}

impl Rules {
    /// Returns what the folders above `path` say. Only their names count: where a link or `..` leads on, the rules end.
    pub(crate) fn above(root: &Root, path: &[u8]) -> Arc<Self> {
        let mut rules = Arc::new(Self::default());
        let names = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
        let mut full = Vec::new();
        for name in names {
            let relative = full.strip_prefix(b"/").unwrap_or(&full);
            let Ok(folder) = root.beneath().open(relative, OFlag::O_RDONLY | OFlag::O_DIRECTORY, Links::Refuse) else { return rules };
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
        let git = if seen.git { load(folder, full, &[".gitignore"]) } else { None };
        let other = if seen.other { load(folder, full, &OTHER_NAMES) } else { None };
        let is_repository = seen.repository && nix::sys::stat::fstatat(folder, ".git", nix::fcntl::AtFlags::AT_SYMLINK_NOFOLLOW).is_ok();
        let exclude = if is_repository { load_exclude(folder, full) } else { None };
        if git.is_none() && other.is_none() && !is_repository {
            return Arc::clone(above);
        }
        Arc::new(Self { above: Some(Arc::clone(above)), git, other, exclude, is_repository })
    }

    /// Says whether a path, which starts with a slash, is ignored (`Some(true)`), is asked for (`Some(false)`), or neither.
    pub(crate) fn ignores(&self, full: &[u8], is_folder: bool) -> Option<bool> {
        let path = as_path(full);
        let (mut git, mut other, mut exclude) = (None, None, None);
        let mut in_other_repository = false;
        let mut next = Some(self);
        while let Some(rules) = next {
            other = other.or_else(|| ask(rules.other.as_ref(), path, is_folder));
            if !in_other_repository {
                git = git.or_else(|| ask(rules.git.as_ref(), path, is_folder));
                exclude = exclude.or_else(|| ask(rules.exclude.as_ref(), path, is_folder));
            }
            in_other_repository |= rules.is_repository;
            next = rules.above.as_deref();
        }
        other.or(git).or(exclude)
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
    let mut builder = GitignoreBuilder::new(if full.is_empty() { Path::new("/") } else { as_path(full) });
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
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let fd = openat(folder, name, flags, Mode::empty()).ok()?;
    let mut bytes = Vec::new();
    // A folder of that name fails here; a pipe without a writer is empty, and one with a writer is not waited for.
    std::fs::File::from(fd).take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
