//! Finds what must be hidden from a sandbox, or read-only in it.
//!
//! What was protected before stays protected as long as it exists: commands can write ignore files,
//! and more files than can be examined. When the search runs where something is masked already, a
//! masked file counts as found if its name alone calls for a look, since its content cannot be read
//! there.

use std::collections::BTreeSet;
use std::fs;
use std::fs::File;
use std::io;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use std::time::Instant;

use ignore::gitignore::Gitignore;
use ignore::gitignore::GitignoreBuilder;
use nix::fcntl::AT_FDCWD;
use nix::fcntl::AtFlags;
use nix::fcntl::OFlag;
use nix::fcntl::openat;
use nix::sys::stat::Mode;
use nix::sys::stat::SFlag;
use nix::sys::stat::fstat;
use nix::sys::stat::fstatat;

use super::git;
use crate::beneath::Beneath;
use crate::beneath::Links;
use crate::root::as_path;
use crate::root::file_type;
use crate::root::split;
use crate::tools::ignore_rules::IgnoreRules;
use crate::tools::stop::Stop;
use crate::tools::walk::Entry;
use crate::tools::walk::Kind;
use crate::tools::walk::SkipReason;
use crate::tools::walk::Visitor;
use crate::tools::walk::Walk;
use crate::tools::walk::list;
use podbay_wire::BytesPath;
use podbay_wire::SecretName;
use podbay_wire::keep::FindOrder;
use podbay_wire::keep::FindResult;
use podbay_wire::keep::MOST_HIDDEN;
use podbay_wire::keep::SecretPath;
use podbay_wire::secret_path;

mod ignored;
mod moved;

pub(super) use moved::find_in_copy;

/// Most bytes of a file that is searched for a private key; longer files hold other things.
const MOST_KEY: u64 = 64 << 10;

/// Words in every PEM private key, and in those of age.
const KEYS: [&[u8]; 2] = [b"PRIVATE KEY", b"AGE-SECRET-KEY-"];

/// Searches the project within a time limit; `covered` are the paths in it that are masked by
/// mounts.
pub(crate) fn find(
    workspace: &Path,
    find: &FindOrder,
    covered: &BTreeSet<BytesPath>,
) -> io::Result<FindResult> {
    let folder = OwnedFd::from(File::open(workspace)?);
    let base = Beneath::new(folder);
    let cancelled = AtomicBool::new(false);
    let stop = Stop::new(
        &cancelled,
        Some(Instant::now() + Duration::from_millis(find.budget_ms)),
    );
    let finder = Finder {
        workspace,
        reveal: patterns(&find.reveal)?,
        auto_run: patterns(&find.auto_run)?,
        covered,
        stop: &stop,
    };
    let rules = Some(Arc::new(IgnoreRules::default()));
    let walk = Walk {
        base: &base,
        prefix: b"",
        rules,
        hidden: true,
        max_depth: usize::MAX,
        in_breadth: true,
        stop: &stop,
    };
    let walked = walk.run(&finder);
    let is_whole = !stop.is_late();
    let mut parts = walked.states;
    let folders = parts
        .iter_mut()
        .flat_map(|part| std::mem::take(&mut part.ignored))
        .collect();
    let deep = ignored::repositories(
        &finder,
        &base,
        folders,
        Duration::from_millis(find.ignored_ms),
    );
    parts.extend(deep.parts);
    let mut found = FindResult {
        is_whole: is_whole && deep.is_whole,
        n_unreadable: walked.n_unreadable,
        ..FindResult::default()
    };
    let mut revealed = BTreeSet::new();
    for part in parts {
        found.secrets.extend(part.secrets);
        found.auto_run.extend(part.auto_run);
        found.repositories.extend(part.repositories);
        revealed.extend(part.revealed);
    }
    let known =
        |paths: &[BytesPath], is_wanted: &dyn Fn(&Entry<'_>) -> bool| -> BTreeSet<BytesPath> {
            paths
                .iter()
                .filter(|path| !revealed.contains(path) && is_there(&base, path, is_wanted))
                .cloned()
                .collect()
        };
    let hidden = known(&find.known.hidden, &|entry| finder.is_secret_still(entry));
    let read_only = known(&find.known.read_only, &|entry| entry.kind != Kind::Link);
    found.secrets.extend(hidden.iter().map(|path| SecretPath {
        path: path.clone(),
        is_folder: workspace.join(as_path(path.as_bytes())).is_dir(),
    }));
    let (repositories, auto_run): (Vec<_>, Vec<_>) =
        read_only.iter().cloned().partition(is_repository);
    found.repositories.extend(repositories);
    found.auto_run.extend(auto_run);
    found.n_left_out =
        truncate(&mut found.secrets, &hidden) + truncate(&mut found.repositories, &read_only);
    // Git itself runs what is in there, whatever the folder is called.
    if let Ok(project) = git::UntrustedFolder::open(workspace) {
        let obeyed = git::obeyed_paths(&project, found.repositories.iter(), find.place.as_bytes());
        found.auto_run.extend(obeyed.paths);
        found.unread = obeyed.unread;
    }
    found.n_left_out += truncate(&mut found.auto_run, &read_only);
    Ok(found)
}

/// Sorts a list and truncates it: known entries stay first, then those with the shortest paths,
/// since entries near the top matter most.
fn truncate<T: Ord + HasPath>(list: &mut Vec<T>, known: &BTreeSet<BytesPath>) -> u32 {
    list.sort();
    list.dedup_by(|one, other| one.path() == other.path());
    let n_over = list.len().saturating_sub(MOST_HIDDEN);
    if n_over > 0 {
        list.sort_by_key(|item| {
            (
                !known.contains(item.path()),
                memchr::memchr_iter(b'/', item.path().as_bytes()).count(),
            )
        });
        list.truncate(MOST_HIDDEN);
        list.sort();
    }
    n_over as u32
}

fn is_repository(path: &BytesPath) -> bool {
    path.as_bytes().ends_with(b"/.git")
}

trait HasPath {
    fn path(&self) -> &BytesPath;
}

impl HasPath for BytesPath {
    fn path(&self) -> &BytesPath {
        self
    }
}

impl HasPath for SecretPath {
    fn path(&self) -> &BytesPath {
        &self.path
    }
}

pub(super) fn patterns(lines: &[String]) -> io::Result<Gitignore> {
    let mut builder = GitignoreBuilder::new("/");
    for line in lines {
        builder.add_line(None, line).map_err(io::Error::other)?;
    }
    // `.ENV` is `.env` on a file system that folds case, and a pattern of the user means both.
    builder.case_insensitive(true).map_err(io::Error::other)?;
    builder.build().map_err(io::Error::other)
}

struct Finder<'a> {
    workspace: &'a Path,
    reveal: Gitignore,
    auto_run: Gitignore,
    covered: &'a BTreeSet<BytesPath>,
    stop: &'a Stop<'a>,
}

#[derive(Default)]
struct PartialResult {
    secrets: Vec<SecretPath>,
    auto_run: Vec<BytesPath>,
    repositories: Vec<BytesPath>,
    /// Targets of links that the user reveals.
    revealed: Vec<BytesPath>,
    /// Ignored folders inside of others.
    ignored: Vec<Vec<u8>>,
}

impl Visitor for Finder<'_> {
    type State = PartialResult;

    /// Names decide before the ignore rules do: a secret is nearly always ignored.
    fn select(&self, entry: &Entry<'_>) -> Option<bool> {
        (secret_path(entry.full).is_some() || self.is_auto_run(entry)).then_some(true)
    }

    fn visit(&self, part: &mut PartialResult, entry: &Entry<'_>) {
        if self.is_auto_run(entry) {
            part.auto_run
                .extend(self.place(entry).map(|place| place.path));
        }
        if self.is_secret(entry) {
            part.secrets.extend(self.place(entry));
        } else if entry.kind == Kind::Link
            && secret_path(entry.full).is_some()
            && matches(&self.reveal, entry)
        {
            part.revealed
                .extend(self.place(entry).map(|place| place.path));
        }
    }

    /// A hidden folder need not be searched; a read-only one may hold secrets
    /// (`.cargo/credentials.toml`).
    fn enters(&self, folder: &Entry<'_>) -> bool {
        !self.is_secret(folder)
    }

    /// Looks at the names at the top of an ignored folder. Deeper only repositories are searched
    /// for, since builds and package managers leave much there.
    fn pass_over(&self, part: &mut PartialResult, entry: &Entry<'_>, _why: SkipReason) {
        if entry.kind != Kind::Folder || self.stop.is_set() {
            return;
        }
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let Ok(folder) = openat(entry.folder, entry.name, flags, Mode::empty()) else {
            return;
        };
        let Ok((names, _)) = list(folder.as_fd(), self.stop) else {
            return;
        };
        for name in &names {
            let full = [entry.full, b"/", &name.name].concat();
            let inner = Entry {
                full: &full,
                name: &name.name,
                kind: name.kind,
                folder: folder.as_fd(),
            };
            if &*name.name == b".git" {
                self.repository(part, &inner);
            } else if self.select(&inner) == Some(true) {
                self.visit(part, &inner);
            }
            if name.kind == Kind::Folder && &*name.name != b".git" {
                part.ignored.push(full.clone());
            }
        }
    }

    fn repository(&self, part: &mut PartialResult, entry: &Entry<'_>) {
        if entry.path() != b".git" && matches!(entry.kind, Kind::File | Kind::Folder) {
            part.repositories.push(BytesPath::from_bytes(entry.path()));
            part.secrets.extend(self.settings(entry));
        }
    }
}

impl Finder<'_> {
    fn is_auto_run(&self, entry: &Entry<'_>) -> bool {
        entry.kind != Kind::Other && matches(&self.auto_run, entry)
    }

    /// Returns a repository's config file, whose remote addresses may hold credentials.
    fn settings(&self, repository: &Entry<'_>) -> Option<SecretPath> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let folder = openat(repository.folder, repository.name, flags, Mode::empty()).ok()?;
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let file = openat(&folder, "config", flags, Mode::empty()).ok()?;
        let full = [repository.full, b"/config"].concat();
        let is_hidden = file_type(&fstat(&file).ok()?) == SFlag::S_IFREG
            && !self.reveal.matched(as_path(&full), false).is_ignore();
        is_hidden.then(|| SecretPath {
            path: BytesPath::from_bytes([repository.path(), b"/config"].concat()),
            is_folder: false,
        })
    }

    fn is_secret(&self, entry: &Entry<'_>) -> bool {
        let by_name = match (secret_path(entry.full), entry.kind) {
            (Some(SecretName::IfFolder), Kind::Folder)
            | (Some(SecretName::IfFolder | SecretName::Certain), Kind::File | Kind::Link) => true,
            (Some(SecretName::IfKey), Kind::File | Kind::Link) => self.holds_key(entry),
            _ => false,
        };
        by_name && !matches(&self.reveal, entry)
    }

    /// Returns whether a hidden path stays hidden: until the user reveals it, or replaces it with
    /// something that is no key.
    fn is_secret_still(&self, entry: &Entry<'_>) -> bool {
        let is_no_key = secret_path(entry.full) == Some(SecretName::IfKey)
            && entry.kind == Kind::File
            && !self.holds_key(entry);
        entry.kind != Kind::Link && !is_no_key && !matches(&self.reveal, entry)
    }

    /// Returns what must be masked: not a link itself but its target, where the mount would be
    /// anyway.
    fn place(&self, entry: &Entry<'_>) -> Option<SecretPath> {
        if entry.kind != Kind::Link {
            return Some(SecretPath {
                path: BytesPath::from_bytes(entry.path()),
                is_folder: entry.kind == Kind::Folder,
            });
        }
        let real = fs::canonicalize(self.workspace.join(as_path(entry.path()))).ok()?;
        let is_folder = real.is_dir();
        // What lies outside is not in the sandbox, or belongs to the image.
        let path = real
            .strip_prefix(fs::canonicalize(self.workspace).ok()?)
            .ok()?
            .to_owned();
        (!path.as_os_str().is_empty()).then(|| SecretPath {
            path: BytesPath::from(path),
            is_folder,
        })
    }

    /// Returns whether a file holds a private key; a file that cannot be read here cannot be read
    /// in the sandbox either.
    fn holds_key(&self, entry: &Entry<'_>) -> bool {
        let Some(place) = self.place(entry) else {
            return false;
        };
        let flags = OFlag::O_RDONLY
            | OFlag::O_NOFOLLOW
            | OFlag::O_NONBLOCK
            | OFlag::O_NOCTTY
            | OFlag::O_CLOEXEC;
        let opened = match entry.kind {
            Kind::Link => openat(
                AT_FDCWD,
                &self.workspace.join(as_path(place.path.as_bytes())),
                flags,
                Mode::empty(),
            ),
            _ => openat(entry.folder, entry.name, flags, Mode::empty()),
        };
        let Ok(fd) = opened else { return false };
        match fstat(&fd).map(|facts| file_type(&facts)) {
            Ok(SFlag::S_IFREG) => {
                let mut bytes = Vec::new();
                let read = File::from(fd).take(MOST_KEY).read_to_end(&mut bytes);
                read.is_ok() && holds_key(&bytes)
            }
            // The null device that masks it.
            Ok(SFlag::S_IFCHR) => self.covered.contains(&place.path),
            _ => false,
        }
    }
}

/// Returns whether a content starts with a private key.
pub(in crate::keep) fn holds_key(content: &[u8]) -> bool {
    let beginning = &content[..content.len().min(MOST_KEY as usize)];
    KEYS.iter()
        .any(|key| memchr::memmem::find(beginning, key).is_some())
}

/// Returns whether a protected entry still exists and is still to be protected.
fn is_there(base: &Beneath, path: &BytesPath, is_wanted: &dyn Fn(&Entry<'_>) -> bool) -> bool {
    let (parent, name) = split(path.as_bytes());
    let Ok(folder) = base.open(parent, OFlag::O_RDONLY | OFlag::O_DIRECTORY, Links::Refuse) else {
        return false;
    };
    let Ok(facts) = fstatat(&folder, name, AtFlags::AT_SYMLINK_NOFOLLOW) else {
        return false;
    };
    let kind = match file_type(&facts) {
        SFlag::S_IFDIR => Kind::Folder,
        SFlag::S_IFLNK => Kind::Link,
        // A masked file appears as a device.
        _ => Kind::File,
    };
    let full = [b"/", path.as_bytes()].concat();
    is_wanted(&Entry {
        full: &full,
        name,
        kind,
        folder: folder.as_fd(),
    })
}

fn matches(patterns: &Gitignore, entry: &Entry<'_>) -> bool {
    patterns
        .matched(as_path(entry.full), entry.kind == Kind::Folder)
        .is_ignore()
}

#[cfg(test)]
mod tests;
