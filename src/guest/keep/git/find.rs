use std::collections::HashSet;
use std::time::Duration;
use std::time::Instant;

use nix::sys::stat::FileStat;

use super::repository_layout::is_part;
use super::repository_layout::is_repository;
use super::repository_layout::modules;
use super::repository_layout::pointed;
use super::untrusted_folder::FileKind;
use super::untrusted_folder::UnlockedFolder;
use super::untrusted_folder::UntrustedFolder;
use crate::root::join;
use podbay_wire::BytesPath;
use podbay_wire::keep::FoundGit;
use podbay_wire::keep::FoundRepository;
use podbay_wire::keep::GitKind;

/// Longest `.git` file that is read.
pub(crate) const MAX_POINTER: u64 = 8 * 1024;
/// Prefix of the temporary name of something that is being moved out of the project.
pub const MOVING_OUT: &str = ".podbay-aside-";
/// Longer paths cannot be used from the project's folder, by git neither.
const MAX_PATH: usize = 4000;
pub(super) const MAX_FOUND: usize = 10_000;
/// Most names that are recorded as existing at the start.
const MAX_PARTS: usize = 100_000;
/// Most folders that are kept open for restoring their modes. Those beyond stay accessible to their
/// owner.
const MAX_OPENED: usize = 200;

/// Finds every repository of a project, and everything that leads git to one.
///
/// It does not leave the file system, and searches repositories only for those of submodules. A
/// folder that its owner cannot list is made readable meanwhile if it is writable: git needs no
/// list of its names to obey a repository in it.
pub fn find(project: &UntrustedFolder, budget: Duration) -> FoundGit {
    walk(project, budget).0
}

/// Returns the folders that could not be searched and that git may enter nevertheless.
pub(crate) fn closed(project: &UntrustedFolder, budget: Duration) -> Vec<BytesPath> {
    walk(project, budget).1
}

fn walk(project: &UntrustedFolder, budget: Duration) -> (FoundGit, Vec<BytesPath>) {
    let Some(mut walk) = RepositoryWalk::begin(project, SubmoduleScan::Named) else {
        return (FoundGit::default(), Vec::new());
    };
    let mut found = walk.next(MAX_FOUND, Instant::now() + budget);
    found.whole &= walk.is_over();
    (found, walk.end())
}

/// Whether submodules' repositories inside of others are searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubmoduleScan {
    Named,
    /// Each is found with the repository that it lies in.
    PassedOver,
}

/// A search of a project in several steps: no folder is searched twice.
pub(super) struct RepositoryWalk<'a> {
    project: &'a UntrustedFolder,
    modules: SubmoduleScan,
    device: u64,
    /// Folders still to be searched, and whether each keeps its owner out.
    folders: Vec<(Vec<u8>, bool)>,
    /// Folders that are open during the search, and while the found repositories are moved out.
    opened: Vec<UnlockedFolder>,
    closed: Vec<BytesPath>,
    /// Repositories' own folders, which were not searched for others.
    passed: HashSet<Vec<u8>>,
}

impl<'a> RepositoryWalk<'a> {
    pub(super) fn begin(project: &'a UntrustedFolder, modules: SubmoduleScan) -> Option<Self> {
        let device = project.stat(b".").ok()?.st_dev;
        let (folders, opened, closed) = (vec![(Vec::new(), false)], Vec::new(), Vec::new());
        Some(Self {
            project,
            modules,
            device,
            folders,
            opened,
            closed,
            passed: HashSet::new(),
        })
    }

    /// Whether the search is finished.
    pub(super) fn is_over(&self) -> bool {
        self.folders.is_empty()
    }

    /// Adds a folder to the search.
    pub(super) fn look_into(&mut self, path: Vec<u8>) {
        let is_locked = self.project.stat(&path).is_ok_and(|stat| keeps_out(&stat));
        self.folders.push((path, is_locked));
    }

    /// Adds a folder that was skipped because it was a repository.
    pub(super) fn look_behind(&mut self, path: Vec<u8>) {
        if self.passed.remove(&path) {
            self.look_into(path);
        }
    }

    /// Continues until about `most` are found, or until the time is over.
    pub(super) fn next(&mut self, most: usize, end: Instant) -> FoundGit {
        let mut found = FoundGit {
            whole: true,
            ..FoundGit::default()
        };
        while found.repositories.len() <= most
            && Instant::now() <= end
            && let Some((path, is_locked)) = self.folders.pop()
        {
            self.look(path, is_locked, &mut found);
        }
        found.repositories.sort();
        found.parts.sort();
        found
    }

    fn look(&mut self, path: Vec<u8>, is_locked: bool, found: &mut FoundGit) {
        let project = self.project;
        let Some(names) = names(project, &path, is_locked, &mut self.opened) else {
            found.whole = false;
            // A folder without search permission keeps git out as well.
            if project.stat(&join(&path, b".")).is_ok() && self.closed.len() < MAX_FOUND {
                self.closed.push(BytesPath::from_bytes(path));
            }
            return;
        };
        let mut has_git = false;
        for (name, kind) in &names {
            if name.eq_ignore_ascii_case(b".git") {
                has_git = true;
                self.add(found, join(&path, name), *kind);
            }
        }
        // The project's folder may be a bare repository, with hooks like any other.
        if is_repository(&names) {
            found.repositories.push(FoundRepository {
                path: BytesPath::from_bytes(path.clone()),
                kind: GitKind::Bare,
            });
            self.add_modules(found, &path);
            if !has_git {
                self.passed.insert(path);
                return;
            }
        } else {
            let parts = names
                .iter()
                .filter(|(name, kind)| *kind != FileKind::Special && is_part(name));
            let room = MAX_PARTS.saturating_sub(found.parts.len());
            found.parts.extend(
                parts
                    .take(room)
                    .map(|(name, _)| BytesPath::from_bytes(join(&path, name))),
            );
        }
        for (name, kind) in names {
            if name.starts_with(MOVING_OUT.as_bytes()) {
                found.repositories.push(FoundRepository {
                    path: BytesPath::from_bytes(join(&path, &name)),
                    kind: GitKind::OnItsWay,
                });
                continue;
            }
            if kind != FileKind::Folder || name.eq_ignore_ascii_case(b".git") {
                continue;
            }
            let inner = join(&path, &name);
            if inner.len() > MAX_PATH {
                found.whole = false;
            } else if let Ok(stat) = project.stat(&inner)
                && stat.st_dev == self.device
            {
                self.folders.push((inner, keeps_out(&stat)));
            }
        }
    }

    fn add(&self, found: &mut FoundGit, path: Vec<u8>, kind: FileKind) {
        let kind = match kind {
            FileKind::Folder => {
                self.add_modules(found, &path);
                GitKind::Folder
            }
            FileKind::File => {
                let text = self
                    .project
                    .read(&path, MAX_POINTER)
                    .ok()
                    .flatten()
                    .unwrap_or_default();
                GitKind::Pointer {
                    to: BytesPath::from_bytes(pointed(&text).unwrap_or_default()),
                }
            }
            FileKind::Link => GitKind::Link {
                to: BytesPath::from_bytes(self.project.link_target(&path).unwrap_or_default()),
            },
            FileKind::Special => GitKind::Special,
        };
        found.repositories.push(FoundRepository {
            path: BytesPath::from_bytes(path),
            kind,
        });
    }

    fn add_modules(&self, found: &mut FoundGit, inside: &[u8]) {
        if self.modules == SubmoduleScan::PassedOver {
            return;
        }
        match modules(self.project, inside) {
            Ok(paths) => {
                for path in paths {
                    self.add_modules(found, &path);
                    found.repositories.push(FoundRepository {
                        path: BytesPath::from_bytes(path),
                        kind: GitKind::Module,
                    });
                }
            }
            Err(_) => found.whole = false,
        }
    }

    /// Restores the opened folders, and returns those that could not be searched.
    pub(super) fn end(self) -> Vec<BytesPath> {
        // Deeper folders were opened later.
        self.opened
            .into_iter()
            .rev()
            .for_each(UnlockedFolder::put_back);
        self.closed
    }
}

/// Whether a folder keeps its owner out.
fn keeps_out(folder: &FileStat) -> bool {
    folder.st_mode & 0o500 != 0o500
}

/// Returns the entries of a folder; `None`: it cannot be listed.
///
/// A folder that must stay open for its entries to be reached is added to `opened`.
fn names(
    project: &UntrustedFolder,
    path: &[u8],
    is_locked: bool,
    opened: &mut Vec<UnlockedFolder>,
) -> Option<Vec<(Vec<u8>, FileKind)>> {
    let lock = if is_locked {
        project.unlock_temporarily(path).ok()
    } else {
        None
    };
    let names = project.names(path).ok();
    if let Some(lock) = lock {
        if lock.lets_through() || names.is_none() {
            lock.put_back();
        } else if opened.len() < MAX_OPENED {
            opened.push(lock);
        }
    }
    names
}

#[cfg(test)]
mod tests;
