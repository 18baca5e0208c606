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
        project.open_up(path).ok()
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
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::fs::symlink;

    use super::super::new_repositories::MoveOutBounds;
    use super::super::sample::Sample;
    use super::*;

    fn found(sample: &Sample) -> FoundGit {
        find(
            &UntrustedFolder::open(&sample.path("")).expect("opens"),
            Duration::from_secs(20),
        )
    }

    fn shown(found: &FoundGit) -> Vec<String> {
        let one = |repository: &FoundRepository| match &repository.kind {
            GitKind::Pointer { to } => format!("{} pointer {to}", repository.path),
            GitKind::Link { to } => format!("{} link {to}", repository.path),
            kind => format!("{} {kind:?}", repository.path),
        };
        found.repositories.iter().map(one).collect()
    }

    #[test]
    fn every_kind_of_repository_and_git_file_is_found() {
        let sample = Sample::with_submodules();
        sample.git(&["init", "-q", "deep/er/nested"]);
        sample.git(&["init", "-q", "--bare", "bare.git"]);
        sample.git(&["worktree", "add", "-q", "--detach", "tree"]);
        symlink("deep/er/nested/.git", sample.path("deep/.git")).expect("linked");
        // Only redirects: everything but HEAD lies elsewhere.
        sample.write("lure/HEAD", "ref: refs/heads/x\n");
        sample.write("lure/commondir", "../bare.git");
        sample.write("no repository/HEAD", "x");
        sample.write("no repository/objects/x", "x");
        sample.write("src/.gitignore", "x");
        let found = found(&sample);
        assert!(found.whole);
        let parts: Vec<String> = found.parts.iter().map(BytesPath::to_text).collect();
        assert_eq!(parts, ["no repository/HEAD", "no repository/objects"]);
        let worktree = format!(
            "tree/.git pointer {}",
            sample.path(".git/worktrees/tree").display()
        );
        let expected = [
            ".git Folder",
            ".git/modules/sub Module",
            ".git/modules/sub/modules/deeper Module",
            "bare.git Bare",
            "deep/.git link deep/er/nested/.git",
            "deep/er/nested/.git Folder",
            "lure Bare",
            "sub/.git pointer ../.git/modules/sub",
            "sub/deeper/.git pointer ../../.git/modules/sub/modules/deeper",
            &worktree,
        ];
        assert_eq!(shown(&found), expected);
    }

    const SOMEBODY: nix::unistd::Uid = nix::unistd::Uid::from_raw(1000);

    fn set_mode(sample: &Sample, path: &str, mode: u32) {
        fs::set_permissions(sample.path(path), fs::Permissions::from_mode(mode)).expect("set");
    }

    fn mode(sample: &Sample, path: &str) -> u32 {
        fs::metadata(sample.path(path))
            .expect("facts")
            .permissions()
            .mode()
            & 0o777
    }

    /// Runs something as a user whom modes restrict, since root is not.
    fn as_owner<T>(sample: &Sample, what: impl FnOnce() -> T) -> T {
        if !nix::unistd::geteuid().is_root() {
            return what();
        }
        let mut folders = vec![sample.beside("")];
        while let Some(path) = folders.pop() {
            // What root made as another user's for the test stays so.
            if !path.ends_with("theirs") {
                nix::unistd::chown(&path, Some(SOMEBODY), None).expect("owned by somebody");
            }
            folders.extend(
                fs::read_dir(&path)
                    .into_iter()
                    .flatten()
                    .map(|entry| entry.expect("an entry").path()),
            );
        }
        let before = nix::unistd::setfsuid(SOMEBODY);
        let done = what();
        nix::unistd::setfsuid(before);
        done
    }

    #[test]
    fn a_folder_that_cannot_be_listed_hides_no_repository() {
        let sample = Sample::without_git();
        for folder in ["src", "shut/in/er", "listed", "plain/deep", "both/below"] {
            sample.write(&format!("{folder}/file"), "x");
        }
        let start = found(&sample);
        for folder in ["src", "shut/in/er", "listed", "both/below"] {
            sample.git(&["init", "-q", folder]);
        }
        let modes = [
            ("src", 0o311),
            ("shut/in", 0o100),
            ("shut", 0),
            ("listed", 0o400),
            ("plain/deep", 0),
            ("plain", 0o200),
            ("both/below", 0o311),
        ];
        for (path, mode) in modes {
            set_mode(&sample, path, mode);
        }
        set_mode(&sample, "both", 0o111);
        fs::create_dir(sample.beside("kept")).expect("made");
        let (now, moved) = as_owner(&sample, || {
            let open = |path: &std::path::Path| UntrustedFolder::open(path).expect("opens");
            let (project, kept) = (open(&sample.path("")), open(&sample.beside("kept")));
            (
                found(&sample),
                super::super::new_repositories::move_out_new(
                    &project,
                    &start,
                    (&kept, "s"),
                    MoveOutBounds::default(),
                )
                .expect("moved"),
            )
        });
        assert!(now.whole && moved.whole, "{now:?}");
        let all = [
            "both/below/.git",
            "listed/.git",
            "shut/in/er/.git",
            "src/.git",
        ];
        assert_eq!(
            now.repositories
                .iter()
                .map(|one| one.path.to_text())
                .collect::<Vec<_>>(),
            all
        );
        let mut out: Vec<String> = moved
            .moved
            .first
            .iter()
            .filter(|one| one.kept.is_some())
            .map(|one| one.path.to_text())
            .collect();
        out.sort();
        assert_eq!(out, all, "{moved:?}");
        assert_eq!(
            ["src", "both", "both/below", "plain"].map(|path| mode(&sample, path)),
            [0o311, 0o111, 0o311, 0o200],
            "as they were"
        );
        set_mode(&sample, "plain", 0o700);
        assert_eq!(mode(&sample, "plain/deep"), 0);
        set_mode(&sample, "plain/deep", 0o700);
        assert_eq!(
            ["shut", "listed"].map(|path| mode(&sample, path)),
            [0, 0o400],
            "what lay in them is out, and they are as they were"
        );
    }

    #[test]
    fn a_bare_repository_that_cannot_be_listed_is_moved_out() {
        let sample = Sample::without_git();
        for folder in ["whole", "in/side", "mixed", "shut"] {
            sample.write(&format!("{folder}/keep"), "x");
        }
        sample.write("start", "x");
        let start = found(&sample);
        for folder in ["whole", "in/side", "mixed", "shut"] {
            sample.git(&["init", "-q", "--bare", folder]);
        }
        // Other entries beside the parts of a repository stay, and may lead to another one.
        sample.git(&["init", "-q", "mixed/deep"]);
        for folder in ["whole", "in/side", "shut"] {
            fs::remove_file(sample.path(&format!("{folder}/keep"))).expect("removed");
        }
        for (path, mode) in [
            ("whole", 0o311),
            ("in/side", 0o333),
            ("in", 0o311),
            ("mixed", 0o111),
            ("shut", 0o111),
        ] {
            set_mode(&sample, path, mode);
        }
        fs::create_dir(sample.beside("kept")).expect("made");
        let moved = as_owner(&sample, || {
            let open = |path: &std::path::Path| UntrustedFolder::open(path).expect("opens");
            let (project, kept) = (open(&sample.path("")), open(&sample.beside("kept")));
            super::super::new_repositories::move_out_new(
                &project,
                &start,
                (&kept, "s"),
                MoveOutBounds::default(),
            )
            .expect("moved")
        });
        assert!(
            moved.whole && moved.n_stuck == 0 && moved.n_left == 0,
            "{moved:?}"
        );
        let mut out: Vec<String> = moved
            .moved
            .first
            .iter()
            .filter(|one| one.kept.is_some())
            .map(|one| one.path.to_text())
            .collect();
        out.sort();
        assert_eq!(
            out,
            ["in/side", "mixed", "mixed/deep/.git", "shut", "whole"],
            "{moved:?}"
        );
        assert_eq!(
            ["in", "mixed"].map(|path| mode(&sample, path)),
            [0o311, 0o111],
            "as they were"
        );
        set_mode(&sample, "mixed", 0o700);
        assert_eq!(
            fs::read_dir(sample.path("mixed")).expect("listed").count(),
            2,
            "`keep` and `deep` are left"
        );
    }

    #[test]
    fn a_search_in_several_steps_finds_each_repository_once() {
        let sample = Sample::without_git();
        for n in 0..7 {
            sample.write(&format!("shut/{n}/.git"), "gitdir: x");
        }
        sample.write("HEAD", "x");
        set_mode(&sample, "shut", 0);
        let (all, is_over) = as_owner(&sample, || {
            let project = UntrustedFolder::open(&sample.path("")).expect("opens");
            let mut walk = RepositoryWalk::begin(&project, SubmoduleScan::Named).expect("a folder");
            let end = Instant::now() + Duration::from_secs(20);
            let all: Vec<FoundGit> = (0..4).map(|_| walk.next(1, end)).collect();
            let is_over = walk.is_over();
            walk.end();
            (all, is_over)
        });
        assert!(
            is_over
                && all
                    .iter()
                    .all(|found| found.whole && found.repositories.len() <= 2),
            "{all:?}"
        );
        let mut paths: Vec<String> = all.iter().flat_map(shown).collect();
        paths.sort();
        assert_eq!(
            paths,
            (0..7)
                .map(|n| format!("shut/{n}/.git pointer x"))
                .collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_folder_of_another_user_that_cannot_be_listed_is_named() {
        let sample = Sample::without_git();
        sample.write("src/file", "x");
        fs::create_dir_all(sample.path("open/theirs")).expect("made");
        fs::create_dir_all(sample.path("shut/theirs")).expect("made");
        set_mode(&sample, "open/theirs", 0o733);
        set_mode(&sample, "shut/theirs", 0o700);
        let look = || {
            let project = UntrustedFolder::open(&sample.path("")).expect("opens");
            (
                find(&project, Duration::from_secs(20)).whole,
                closed(&project, Duration::from_secs(20)),
            )
        };
        // Only root can make one that another user owns.
        let named: &[BytesPath] = if nix::unistd::geteuid().is_root() {
            &["open/theirs".into()]
        } else {
            &[]
        };
        let (whole, closed) = as_owner(&sample, look);
        assert_eq!((whole, closed.as_slice()), (named.is_empty(), named));
    }

    #[test]
    fn folders_that_could_not_be_searched_are_reported() {
        let sample = Sample::new();
        sample.write("a/b/c", "x");
        let project = UntrustedFolder::open(&sample.path("")).expect("opens");
        assert!(!find(&project, Duration::ZERO).whole);
        assert_eq!(shown(&found(&sample)), [".git Folder"]);
        fs::remove_dir_all(sample.path(".git")).expect("removed");
        sample.write(".git", "nothing that git reads");
        assert_eq!(shown(&found(&sample)), [".git pointer "]);
    }
}
