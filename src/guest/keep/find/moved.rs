//! Finds hidden files and folders again that a session has moved in its copy of the project.
//!
//! What is hidden in a sandbox is a mount, and the kernel does not rename a mount. But a folder
//! above it can be moved anywhere in the copy, also to where no search of a project goes, with
//! something else in its place. The last part of its path stays the same: so whatever does not read
//! as in the project is searched for everywhere by that name, and hidden wherever it is.

use std::collections::BTreeSet;
use std::fs;
use std::fs::File;
use std::io;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use std::time::Instant;

use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::fcntl::OFlag;
use nix::fcntl::readlinkat;
use nix::sys::stat::SFlag;
use nix::sys::stat::fstat;
use nix::sys::stat::fstatat;
use nix::unistd::AccessFlags;
use nix::unistd::faccessat;
use nix::unistd::geteuid;

use super::find;
use super::truncate;
use crate::beneath::Beneath;
use crate::beneath::Links;
use crate::root::file_type;
use crate::root::join;
use crate::root::split;
use crate::tools::stop::Stop;
use crate::tools::walk::Kind;
use crate::tools::walk::list;
use podbay_wire::BytesPath;
use podbay_wire::keep::FindOrder;
use podbay_wire::keep::FindResult;
use podbay_wire::keep::MOST_HIDDEN;
use podbay_wire::keep::MOST_LOST;
use podbay_wire::keep::SecretPath;

/// Time for the search of moved files; the host waits somewhat longer.
const LONGEST: Duration = Duration::from_secs(15);

/// A larger file, or a folder with more bytes in it, is not compared: both count as moved.
const MOST_BYTES: u64 = 1 << 20;
const MOST_FILES: usize = 1_000;

/// Searches the session's copy of a project; `upper` holds what the session changed.
pub(crate) fn find_in_copy(
    workspace: &Path,
    copy: &Path,
    upper: &Path,
    order: &FindOrder,
) -> io::Result<FindResult> {
    find_within(workspace, copy, upper, order, LONGEST)
}

pub(super) fn find_within(
    workspace: &Path,
    copy: &Path,
    upper: &Path,
    order: &FindOrder,
    within: Duration,
) -> io::Result<FindResult> {
    let mut found = find(copy, order, &BTreeSet::new())?;
    if fs::read_dir(upper).is_ok_and(|mut names| names.next().is_none()) {
        // The copy does not differ from the project.
        return Ok(found);
    }
    let own = find(workspace, order, &BTreeSet::new())?.secrets;
    let both = ProjectAndCopy {
        project: open(workspace)?,
        copy: open(copy)?,
    };
    let mut protected: BTreeSet<BytesPath> = order
        .known
        .hidden
        .iter()
        .filter(|path| found.is_hidden(path))
        .cloned()
        .collect();
    let mut sought = Vec::new();
    for secret in &own {
        if both.are_same(secret.path.as_bytes()) {
            // Ignore files of the session may have excluded it.
            protected.insert(secret.path.clone());
            found.secrets.push(secret.clone());
        } else {
            sought.push(SoughtSecret {
                path: &secret.path,
                is_folder: Some(secret.is_folder),
            });
        }
    }
    let is_own = |path: &BytesPath| own.iter().any(|secret| secret.path == *path);
    let others = order
        .known
        .hidden
        .iter()
        .filter(|path| !is_own(path) && !both.are_same(path.as_bytes()));
    sought.extend(others.map(|path| SoughtSecret {
        path,
        is_folder: None,
    }));
    let mut is_whole = true;
    if !sought.is_empty() {
        let cancelled = AtomicBool::new(false);
        let again = both.search(
            &sought,
            &Stop::new(&cancelled, Some(Instant::now() + within)),
        );
        // The engine accepts only UTF-8 names.
        is_whole = again.is_whole
            && again
                .secrets
                .iter()
                .all(|secret| std::str::from_utf8(secret.path.as_bytes()).is_ok());
        protected.extend(again.secrets.iter().map(|secret| secret.path.clone()));
        found.secrets.extend(again.secrets);
    }
    if !is_whole || !sought.is_empty() && protected.len() > MOST_HIDDEN {
        found.lost = sought
            .iter()
            .take(MOST_LOST)
            .map(|sought| sought.path.clone())
            .collect();
    }
    found.n_left_out += truncate(&mut found.secrets, &protected);
    Ok(found)
}

fn open(folder: &Path) -> io::Result<Beneath> {
    Ok(Beneath::new(OwnedFd::from(File::open(folder)?)))
}

struct SoughtSecret<'a> {
    path: &'a BytesPath,
    /// `None`: not known.
    is_folder: Option<bool>,
}

impl SoughtSecret<'_> {
    fn is_named(&self, folder: &[u8], name: &[u8], kind: Kind) -> bool {
        let (above, last) = split(self.path.as_bytes());
        let is_folder = match kind {
            Kind::Folder => true,
            Kind::File => false,
            Kind::Link | Kind::Other => return false,
        };
        // Many files are called `config`; the folder of a repository cannot be renamed either,
        // since something in it is hidden.
        let is_settings = |folder: &[u8]| split(folder).1 == b".git";
        last == name
            && self.is_folder.is_none_or(|expected| expected == is_folder)
            && (!is_settings(above) || is_settings(folder))
    }
}

/// What was found by name.
struct FoundAgain {
    secrets: Vec<SecretPath>,
    /// Whether no part of the copy that commands can reach was left out.
    is_whole: bool,
}

struct ProjectAndCopy {
    project: Beneath,
    copy: Beneath,
}

impl ProjectAndCopy {
    /// Searches everywhere: in ignored folders, and in those called `.git`.
    fn search(&self, sought: &[SoughtSecret<'_>], stop: &Stop<'_>) -> FoundAgain {
        let mut again = FoundAgain {
            secrets: Vec::new(),
            is_whole: true,
        };
        let mut folders = vec![Vec::new()];
        while let Some(path) = folders.pop() {
            let names =
                match self
                    .copy
                    .open(&path, OFlag::O_RDONLY | OFlag::O_DIRECTORY, Links::Refuse)
                {
                    Ok(folder) => list(folder.as_fd(), stop).map(|(names, _)| names),
                    Err(error) => Err(error),
                };
            if stop.is_set() {
                again.is_whole = false;
                break;
            }
            let names = match names {
                Ok(names) => names,
                // No command runs now; the user may have removed it.
                Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => continue,
                Err(_) => {
                    again.is_whole &= self.is_closed(&path);
                    continue;
                }
            };
            for name in names {
                let full = join(&path, &name.name);
                // A file that reads as in the project and was not hidden there is one that the user
                // lets commands read.
                if sought
                    .iter()
                    .any(|sought| sought.is_named(&path, &name.name, name.kind))
                    && !self.are_same(&full)
                {
                    again.secrets.push(SecretPath {
                        path: BytesPath::from_bytes(full),
                        is_folder: name.kind == Kind::Folder,
                    });
                } else if name.kind == Kind::Folder {
                    folders.push(full);
                }
            }
        }
        again
    }

    /// Returns whether commands, which run as the same user, cannot enter a folder and cannot open
    /// it for themselves.
    fn is_closed(&self, path: &[u8]) -> bool {
        let (above, name) = split(path);
        let Ok(folder) = self
            .copy
            .open(above, OFlag::O_PATH | OFlag::O_DIRECTORY, Links::Refuse)
        else {
            return false;
        };
        let Ok(facts) = fstatat(&folder, name, AtFlags::AT_SYMLINK_NOFOLLOW) else {
            return false;
        };
        facts.st_uid != geteuid().as_raw()
            && faccessat(&folder, name, AccessFlags::X_OK, AtFlags::empty()).is_err()
    }

    /// Returns whether a path has the same content in both. A session that could not read it cannot
    /// have written it there.
    fn are_same(&self, path: &[u8]) -> bool {
        let mut n_left = MOST_FILES;
        self.compare(path, &mut n_left).unwrap_or(false)
    }

    fn compare(&self, path: &[u8], n_left: &mut usize) -> Result<bool, Errno> {
        *n_left = n_left.checked_sub(1).ok_or(Errno::E2BIG)?;
        let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
        let (one, other) = (
            self.project.open(path, flags, Links::Refuse)?,
            self.copy.open(path, flags, Links::Refuse)?,
        );
        let facts = (fstat(&one)?, fstat(&other)?);
        match (file_type(&facts.0), file_type(&facts.1)) {
            (SFlag::S_IFREG, SFlag::S_IFREG) if facts.0.st_size == facts.1.st_size => {
                let read = |file: OwnedFd| {
                    let mut content = Vec::new();
                    let length = File::from(file)
                        .take(MOST_BYTES + 1)
                        .read_to_end(&mut content);
                    length
                        .is_ok_and(|length| length as u64 <= MOST_BYTES)
                        .then_some(content)
                        .ok_or(Errno::EFBIG)
                };
                Ok(read(one)? == read(other)?)
            }
            (SFlag::S_IFDIR, SFlag::S_IFDIR) => {
                let never = AtomicBool::new(false);
                let names = |folder: &OwnedFd| {
                    list(folder.as_fd(), &Stop::new(&never, None)).map(|(names, _)| names)
                };
                let (mine, theirs) = (names(&one)?, names(&other)?);
                if mine.len() != theirs.len() {
                    return Ok(false);
                }
                for (mine, theirs) in mine.iter().zip(theirs) {
                    let is_same = mine.name == theirs.name
                        && match (mine.kind, theirs.kind) {
                            (Kind::Link, Kind::Link) => {
                                readlinkat(&one, &*mine.name)? == readlinkat(&other, &*mine.name)?
                            }
                            (mine_kind, kind) if mine_kind == kind => {
                                self.compare(&join(path, &mine.name), n_left)?
                            }
                            _ => false,
                        };
                    if !is_same {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests;
