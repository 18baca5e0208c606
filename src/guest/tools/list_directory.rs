use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicBool;

use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::fcntl::readlinkat;
use nix::sys::stat::SFlag;
use nix::sys::stat::fstatat;

use super::MAX_OUTPUT;
use super::Workspace;
use super::ignore_rules::IgnoreRules;
use super::skipped::SkipCounts;
use super::smallest::Smallest;
use super::smallest::key_path;
use super::smallest::path_key;
use super::stop::Stop;
use super::target_entry::refused;
use super::walk;
use super::walk::Entry;
use super::walk::Kind;
use super::walk::SkipReason;
use super::walk::Visitor;
use super::walk::Walk;
use crate::beneath::Beneath;
use crate::root::Root;
use crate::root::file_type;
use podbay_wire::BytesPath;
use podbay_wire::DirectoryEntry;
use podbay_wire::DirectoryListing;
use podbay_wire::EntryKind;
use podbay_wire::Fault;
use podbay_wire::LeftOut;
use podbay_wire::ListDirectory;
use podbay_wire::Tree;

/// Most entries returned, whatever is asked for.
const MAX_ENTRIES: u32 = 10_000;

/// Lists a folder, or recursively everything below it that is not ignored. A single folder is
/// listed with ignored entries: a caller that lists `target` wants to see it.
pub(super) fn run(
    workspace: &Workspace,
    call: &ListDirectory,
    stop: &AtomicBool,
) -> Result<DirectoryListing, Fault> {
    let stop = &Stop::new(stop, None);
    let root = &workspace.root;
    let n = call.max_entries.clamp(1, MAX_ENTRIES) as usize;
    let path = root.relative(&call.path)?;
    let path = bare(&path);
    let base = descend(root, &call.path)?;
    let listed = if call.recursive {
        let rules = Some(IgnoreRules::above(root, path.as_bytes()));
        let walk = Walk {
            base: &base,
            prefix: path.as_bytes(),
            rules,
            hidden: call.show_hidden,
            max_depth: usize::MAX,
            in_breadth: false,
            stop,
        };
        deep(&walk, n, call.show_size)
    } else {
        one(base.as_fd(), call, n, stop).map_err(|errno| root.fault(&call.path, errno))?
    };
    listing(path, listed, stop)
}

/// Lists a folder recursively down to a depth, without hidden and ignored entries.
pub(super) fn tree(
    workspace: &Workspace,
    call: &Tree,
    stop: &AtomicBool,
) -> Result<DirectoryListing, Fault> {
    let stop = &Stop::new(stop, None);
    let root = &workspace.root;
    let path = root.relative(&call.path)?;
    let path = bare(&path);
    let base = descend(root, &call.path)?;
    let rules = Some(IgnoreRules::above(root, path.as_bytes()));
    let max_depth = call.depth.max(1) as usize;
    let walk = Walk {
        base: &base,
        prefix: path.as_bytes(),
        rules,
        hidden: false,
        max_depth,
        in_breadth: false,
        stop,
    };
    let listed = deep(
        &walk,
        call.max_entries.clamp(1, MAX_ENTRIES) as usize,
        false,
    );
    listing(path, listed, stop)
}

/// Opens a folder to list; for a file, the fault names the tool that reads it.
fn descend(root: &Root, path: &BytesPath) -> Result<Beneath, Fault> {
    root.descend(path).map_err(|fault| match fault {
        Fault::NotDirectory { path } if root.look(&bare(&path)).is_ok_and(|stat| file_type(&stat) == SFlag::S_IFREG) => {
            refused(&path, "is a file, not a folder; use read_file to read it, or name the folder that contains it")
        }
        fault => fault,
    })
}

fn bare(path: &BytesPath) -> BytesPath {
    BytesPath::from_bytes(
        path.as_bytes()
            .strip_suffix(b"/")
            .unwrap_or(path.as_bytes()),
    )
}

/// The first entries by path, the number of all entries, and the number of folders that could not
/// be read.
struct Listing {
    listed: Vec<ListedEntry>,
    n_seen: u64,
    n_unreadable: u32,
    skipped: LeftOut,
}

/// Lists the entries that a walk finds.
fn deep(walk: &Walk<'_>, n: usize, sizes: bool) -> Listing {
    let n_prefix = if walk.prefix.is_empty() {
        0
    } else {
        walk.prefix.len() + 1
    };
    let walked = walk.run(&Lister { n, n_prefix, sizes });
    let (names, skipped): (Vec<_>, Vec<_>) = walked.states.into_iter().unzip();
    let (listed, n_seen) = Smallest::merge(names, n);
    Listing {
        listed,
        n_seen,
        n_unreadable: walked.n_unreadable,
        skipped: SkipCounts::sum(skipped),
    }
}

fn listing(path: BytesPath, names: Listing, stop: &Stop<'_>) -> Result<DirectoryListing, Fault> {
    let Listing {
        listed,
        n_seen,
        n_unreadable,
        skipped,
    } = names;
    if stop.is_cancelled() {
        return Err(Fault::Cancelled);
    }
    let mut entries = Vec::with_capacity(listed.len());
    let mut n_bytes = 0;
    for ListedEntry {
        key,
        kind,
        bytes,
        target,
    } in listed
    {
        n_bytes += key.len() + target.as_ref().map_or(0, |target| target.as_bytes().len()) + 32;
        if n_bytes > MAX_OUTPUT {
            break;
        }
        entries.push(DirectoryEntry {
            path: BytesPath::from_bytes(key_path(key)),
            kind,
            bytes,
            target,
        });
    }
    let omitted = n_seen - entries.len() as u64;
    Ok(DirectoryListing {
        path,
        entries,
        omitted: Some(omitted),
        truncated: omitted > 0,
        n_unreadable,
        left_out: skipped,
    })
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ListedEntry {
    key: Vec<u8>,
    kind: EntryKind,
    bytes: Option<u64>,
    target: Option<BytesPath>,
}

impl ListedEntry {
    fn new(key: Vec<u8>, folder: BorrowedFd<'_>, name: &[u8], kind: Kind, sizes: bool) -> Self {
        let mut listed = Self {
            key,
            kind: EntryKind::Other,
            bytes: None,
            target: None,
        };
        match kind {
            Kind::File => {
                listed.kind = EntryKind::File;
                let stat = || fstatat(folder, name, AtFlags::AT_SYMLINK_NOFOLLOW).ok();
                listed.bytes = sizes.then(stat).flatten().map(|stat| stat.st_size as u64);
            }
            Kind::Folder => listed.kind = EntryKind::Directory,
            Kind::Link => {
                listed.kind = EntryKind::Link;
                listed.target = readlinkat(folder, name).ok().map(BytesPath::from);
            }
            Kind::Other => {}
        }
        listed
    }
}

/// Lists the entries of one folder; only those returned are inspected with `stat`.
fn one(
    folder: BorrowedFd<'_>,
    call: &ListDirectory,
    n: usize,
    stop: &Stop<'_>,
) -> Result<Listing, Errno> {
    let (mut names, _) = walk::list(folder, stop)?;
    let mut skipped = LeftOut::default();
    names.retain(|name| {
        let is_hidden = !call.show_hidden && name.name[0] == b'.';
        let count = if name.kind == Kind::Folder {
            &mut skipped.hidden_folders
        } else {
            &mut skipped.hidden_files
        };
        *count += u64::from(is_hidden);
        !is_hidden
    });
    let n_seen = names.len() as u64;
    let listed = names.into_iter().take(n).map(|name| {
        ListedEntry::new(
            name.name.to_vec(),
            folder,
            &name.name,
            name.kind,
            call.show_size,
        )
    });
    Ok(Listing {
        listed: listed.collect(),
        n_seen,
        n_unreadable: 0,
        skipped,
    })
}

struct Lister {
    n: usize,
    /// Length of the prefix of a path above the listed folder.
    n_prefix: usize,
    sizes: bool,
}

impl Visitor for Lister {
    type State = (Smallest<ListedEntry>, SkipCounts);

    fn select(&self, _: &Entry<'_>) -> Option<bool> {
        None
    }

    fn pass_over(&self, (_, skipped): &mut Self::State, entry: &Entry<'_>, why: SkipReason) {
        skipped.note(entry, why);
    }

    fn visit(&self, (names, _): &mut Self::State, entry: &Entry<'_>) {
        let key = path_key(&entry.path()[self.n_prefix..]);
        let is_before = |last: &ListedEntry| key < last.key;
        names.offer(self.n, is_before, || {
            Some(ListedEntry::new(
                key.clone(),
                entry.folder,
                entry.name,
                entry.kind,
                self.sizes,
            ))
        });
    }
}
