//! Walks a folder on several threads, depth first or breadth first.
//!
//! Not `ignore`'s own walker, because the folder may be hostile. That one opens `.gitignore` by its
//! path and blocks forever on a named pipe; and it panics where no thread can be started, leaving
//! the others asleep for good, which a command that uses up the sandbox's processes can cause at
//! will. Here every folder is opened beneath the walk's start, no link is followed, files are
//! opened in an open folder, and the walk continues with as many threads as there are, if need be
//! the caller's alone. The ignore rules are `ignore`'s.

use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;

use nix::dir::Dir;
use nix::dir::Type;
use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::fcntl::OFlag;
use nix::sys::stat::SFlag;
use nix::sys::stat::fstatat;

use super::ignore_rules::IgnoreRules;
use super::ignore_rules::RuleFiles;
use super::ignore_rules::RuleVerdict;
use super::stop::Stop;
use crate::beneath::Beneath;
use crate::beneath::Links;
use crate::root::file_type;
use crate::work_queue::Queue;

/// Files of one folder that one thread takes at a time.
const CHUNK: usize = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Folder,
    Link,
    Other,
}

/// One entry found.
pub(crate) struct Entry<'a> {
    /// Path from the project's folder, with a leading slash.
    pub(crate) full: &'a [u8],
    pub(crate) name: &'a [u8],
    pub(crate) kind: Kind,
    /// Its parent folder.
    pub(crate) folder: BorrowedFd<'a>,
}

impl Entry<'_> {
    /// The path as it is shown.
    pub(crate) fn path(&self) -> &[u8] {
        &self.full[1..]
    }
}

/// Why an entry is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SkipReason {
    /// The visitor does not want it.
    Unselected,
    /// By an ignore file.
    Ignored,
    /// Its name begins with a dot.
    Hidden,
}

/// What to do with the entries of a walk; called on several threads at once, each with its own
/// state.
pub(crate) trait Visitor: Sync {
    type State: Default + Send;

    /// Decides on an entry before the ignore files, which decide if the answer is `None`.
    fn select(&self, entry: &Entry<'_>) -> Option<bool>;

    fn visit(&self, state: &mut Self::State, entry: &Entry<'_>);

    /// Returns whether a visited folder is walked as well.
    fn enters(&self, _folder: &Entry<'_>) -> bool {
        true
    }

    /// Called for skipped entries.
    fn pass_over(&self, _state: &mut Self::State, _entry: &Entry<'_>, _why: SkipReason) {}

    /// Called for a repository's own folder or file, which is never visited.
    fn repository(&self, _state: &mut Self::State, _entry: &Entry<'_>) {}
}

/// Where and how to walk.
pub(crate) struct Walk<'a> {
    pub(crate) base: &'a Beneath,
    /// The base's path from the project's folder, without leading or trailing slash.
    pub(crate) prefix: &'a [u8],
    /// The rules from above the base; `None` where ignored files are wanted as well.
    pub(crate) rules: Option<Arc<IgnoreRules>>,
    pub(crate) hidden: bool,
    /// Greatest depth; names in the base itself have depth 1.
    pub(crate) max_depth: usize,
    /// Breadth first: there may be no time for everything.
    pub(crate) in_breadth: bool,
    pub(crate) stop: &'a Stop<'a>,
}

/// The results of all threads.
pub(crate) struct Walked<S> {
    pub(crate) states: Vec<S>,
    /// Folders that could not be read.
    pub(crate) n_unreadable: u32,
}

impl Walk<'_> {
    pub(crate) fn run<V: Visitor>(&self, visitor: &V) -> Walked<V::State> {
        let mut full = Vec::new();
        if !self.prefix.is_empty() {
            full.push(b'/');
            full.extend_from_slice(self.prefix);
        }
        self.run_in(vec![full], visitor)
    }

    /// Walks several folders in the base instead, by their full paths, which begin with the prefix.
    pub(crate) fn run_in<V: Visitor>(
        &self,
        folders: Vec<Vec<u8>>,
        visitor: &V,
    ) -> Walked<V::State> {
        let n_base = if self.prefix.is_empty() {
            0
        } else {
            self.prefix.len() + 1
        };
        let run = Run {
            walk: self,
            visitor,
            queue: Queue::default(),
            n_unreadable: AtomicU32::new(0),
            n_base,
        };
        run.queue.push(
            folders
                .into_iter()
                .map(|full| Work::Folder {
                    full,
                    rules: self.rules.clone(),
                    depth: 0,
                })
                .collect(),
        );
        let states = run.queue.work(|state, work| run.step(state, work));
        Walked {
            states,
            n_unreadable: run.n_unreadable.into_inner(),
        }
    }
}

struct Run<'a, V> {
    walk: &'a Walk<'a>,
    visitor: &'a V,
    queue: Queue<Work>,
    n_unreadable: AtomicU32,
    /// Length of the base's path in every full path.
    n_base: usize,
}

enum Work {
    Folder {
        full: Vec<u8>,
        rules: Option<Arc<IgnoreRules>>,
        depth: usize,
    },
    /// Some of the files of a large folder.
    Files {
        folder: Arc<OpenFolder>,
        names: Vec<Name>,
    },
}

struct OpenFolder {
    fd: OwnedFd,
    full: Vec<u8>,
    rules: Option<Arc<IgnoreRules>>,
}

/// A name in a folder.
pub(crate) struct Name {
    pub(crate) name: Box<[u8]>,
    pub(crate) kind: Kind,
}

impl<V: Visitor> Run<'_, V> {
    fn step(&self, state: &mut V::State, work: Work) {
        if self.walk.stop.is_set() {
            return self.queue.end(());
        }
        match work {
            Work::Folder { full, rules, depth } => {
                if self.folder(state, full, rules, depth).is_err() {
                    self.n_unreadable.fetch_add(1, Ordering::Relaxed);
                }
            }
            Work::Files { folder, names } => self.files(state, &folder, &names),
        }
    }

    fn folder(
        &self,
        state: &mut V::State,
        full: Vec<u8>,
        above: Option<Arc<IgnoreRules>>,
        depth: usize,
    ) -> Result<(), Errno> {
        let relative = full[self.n_base..].strip_prefix(b"/").unwrap_or_default();
        let fd = self.walk.base.open(
            relative,
            OFlag::O_RDONLY | OFlag::O_DIRECTORY,
            Links::Refuse,
        )?;
        let (names, seen) = list(fd.as_fd(), self.walk.stop)?;
        let rules = above.map(|above| IgnoreRules::below(&above, &fd, &full, seen));
        let (folders, files): (Vec<Name>, Vec<Name>) = names
            .into_iter()
            .partition(|name| name.kind == Kind::Folder);
        let folder = OpenFolder { fd, full, rules };
        let mut path = Vec::with_capacity(folder.full.len() + 64);
        let mut work = Vec::with_capacity(folders.len());
        // The last one pushed is the first one taken.
        for name in folders.iter().rev() {
            let Some(below) = self.take(&folder, name, &mut path, state) else {
                continue;
            };
            if depth + 1 < self.walk.max_depth {
                let rules = folder.rules.as_ref().map(|rules| match below {
                    FolderScope::All => Arc::clone(rules),
                    FolderScope::Tracked => IgnoreRules::tracked_only(rules),
                });
                work.push(Work::Folder {
                    full: path.clone(),
                    rules,
                    depth: depth + 1,
                });
            }
        }
        if self.walk.in_breadth {
            self.queue
                .push_behind(std::mem::take(&mut work).into_iter().rev().collect());
        }
        if files.len() <= 2 * CHUNK {
            self.queue.push(work);
            self.files(state, &folder, &files);
            return Ok(());
        }
        let folder = Arc::new(folder);
        let mut files = files;
        while !files.is_empty() {
            let names = files.split_off(files.len().saturating_sub(CHUNK));
            work.push(Work::Files {
                folder: Arc::clone(&folder),
                names,
            });
        }
        self.queue.push(work);
        Ok(())
    }

    fn files(&self, state: &mut V::State, folder: &OpenFolder, names: &[Name]) {
        let mut path = Vec::with_capacity(folder.full.len() + 64);
        for name in names {
            if self.walk.stop.is_set() {
                return;
            }
            self.take(folder, name, &mut path, state);
        }
    }

    /// Visits an entry unless it is skipped, and returns what in it is wanted too; `path` then
    /// contains its path.
    fn take(
        &self,
        folder: &OpenFolder,
        name: &Name,
        path: &mut Vec<u8>,
        state: &mut V::State,
    ) -> Option<FolderScope> {
        path.clear();
        path.extend_from_slice(&folder.full);
        path.push(b'/');
        path.extend_from_slice(&name.name);
        let entry = Entry {
            full: path,
            name: &name.name,
            kind: name.kind,
            folder: folder.fd.as_fd(),
        };
        // A repository's own folder has nothing to read, and many files.
        if &*name.name == b".git" {
            self.visitor.repository(state, &entry);
            return None;
        }
        let mut below = FolderScope::All;
        let why = match self.visitor.select(&entry) {
            Some(true) => None,
            Some(false) => Some(SkipReason::Unselected),
            None => {
                let is_hidden = !self.walk.hidden && entry.name[0] == b'.';
                match folder.rules.as_ref().map_or(RuleVerdict::Nothing, |rules| {
                    rules.verdict(entry.full, entry.kind == Kind::Folder)
                }) {
                    RuleVerdict::Ignored => Some(SkipReason::Ignored),
                    RuleVerdict::Included => None,
                    RuleVerdict::HasTracked => {
                        below = FolderScope::Tracked;
                        is_hidden.then_some(SkipReason::Hidden)
                    }
                    RuleVerdict::Nothing => is_hidden.then_some(SkipReason::Hidden),
                }
            }
        };
        if let Some(why) = why {
            self.visitor.pass_over(state, &entry, why);
            return None;
        }
        self.visitor.visit(state, &entry);
        self.visitor.enters(&entry).then_some(below)
    }
}

/// What in a folder is wanted.
enum FolderScope {
    All,
    /// Git ignores the folder, but tracks something in it.
    Tracked,
}

/// Reads the names of a folder, sorted.
pub(crate) fn list(
    folder: BorrowedFd<'_>,
    stop: &Stop<'_>,
) -> Result<(Vec<Name>, RuleFiles), Errno> {
    let listed = folder
        .try_clone_to_owned()
        .map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or_default()))?;
    let mut names = Vec::new();
    let mut seen = RuleFiles::default();
    for (number, entry) in Dir::from_fd(listed)?.into_iter().enumerate() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        if number % 1024 == 1023 && stop.is_set() {
            break;
        }
        if name[0] == b'.' {
            seen.note(name);
        }
        let kind = match entry.file_type() {
            Some(Type::File) => Kind::File,
            Some(Type::Directory) => Kind::Folder,
            Some(Type::Symlink) => Kind::Link,
            Some(_) => Kind::Other,
            // Some file systems do not report the type.
            None => kind_of(folder, name),
        };
        names.push(Name {
            name: name.into(),
            kind,
        });
    }
    names.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok((names, seen))
}

fn kind_of(folder: BorrowedFd<'_>, name: &[u8]) -> Kind {
    match fstatat(folder, name, AtFlags::AT_SYMLINK_NOFOLLOW).map(|stat| file_type(&stat)) {
        Ok(SFlag::S_IFREG) => Kind::File,
        Ok(SFlag::S_IFDIR) => Kind::Folder,
        Ok(SFlag::S_IFLNK) => Kind::Link,
        _ => Kind::Other,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;

    use super::*;

    struct Order(Mutex<Vec<String>>);

    impl Visitor for Order {
        type State = ();

        fn select(&self, _: &Entry<'_>) -> Option<bool> {
            Some(true)
        }

        fn visit(&self, (): &mut (), entry: &Entry<'_>) {
            self.0
                .lock()
                .expect("no thread panicked")
                .push(String::from_utf8_lossy(entry.path()).into_owned());
        }
    }

    #[test]
    fn entries_near_the_top_are_visited_first() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join("a/b/c")).expect("made");
        fs::create_dir_all(folder.path().join("z/y")).expect("made");
        let order = |in_breadth: bool| {
            let base = Beneath::new(OwnedFd::from(fs::File::open(folder.path()).expect("opens")));
            let cancelled = AtomicBool::new(false);
            let stop = Stop::new(&cancelled, None);
            let visitor = Order(Mutex::default());
            Walk {
                base: &base,
                prefix: b"",
                rules: None,
                hidden: true,
                max_depth: usize::MAX,
                in_breadth,
                stop: &stop,
            }
            .run(&visitor);
            visitor
                .0
                .into_inner()
                .expect("no thread panicked")
                .into_iter()
                .filter(|path| path.contains('/'))
                .collect::<Vec<_>>()
        };
        assert_eq!(order(true), ["a/b", "z/y", "a/b/c"]);
        assert_eq!(order(false), ["a/b", "a/b/c", "z/y"]);
    }
}
