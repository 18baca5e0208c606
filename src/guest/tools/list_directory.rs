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
use super::bounded::Smallest;
use super::bounded::key_path;
use super::bounded::path_key;
use super::ignore_rules::Rules;
use super::left_out::Counted;
use super::spot::refused;
use super::stop::Stop;
use super::walk;
use super::walk::Entry;
use super::walk::Kind;
use super::walk::Visitor;
use super::walk::Walk;
use super::walk::Why;
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

/// Most entries given, whatever is asked for.
const MAX_ENTRIES: u32 = 10_000;

/// Lists a folder, or all that is below it without what git ignores. One folder alone is listed
/// with what is ignored: whoever looks into `target` wants to see it.
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
        let rules = Some(Rules::above(root, path.as_bytes()));
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

/// Shows what is in a folder and in those below it down to a depth, without what is hidden or git
/// ignores.
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
    let rules = Some(Rules::above(root, path.as_bytes()));
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

/// Opens a folder to be listed; of a file it says what reads that.
fn descend(root: &Root, path: &BytesPath) -> Result<Beneath, Fault> {
    root.descend(path).map_err(|fault| match fault {
        Fault::NotDirectory { path } if root.look(&bare(&path)).is_ok_and(|stat| file_type(&stat) == SFlag::S_IFREG) => {
            refused(&path, "is a file, and no folder; use read_file to see what is in it, or name the folder it is in")
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

/// What was found: the first ones in the order of their paths, how many there are, and how many
/// folders could not be read.
struct Names {
    listed: Vec<Listed>,
    n_seen: u64,
    n_unreadable: u32,
    left_out: LeftOut,
}

/// Lists what a walk finds.
fn deep(walk: &Walk<'_>, n: usize, sizes: bool) -> Names {
    let n_prefix = if walk.prefix.is_empty() {
        0
    } else {
        walk.prefix.len() + 1
    };
    let walked = walk.run(&Lister { n, n_prefix, sizes });
    let (names, left_out): (Vec<_>, Vec<_>) = walked.states.into_iter().unzip();
    let (listed, n_seen) = Smallest::merge(names, n);
    Names {
        listed,
        n_seen,
        n_unreadable: walked.n_unreadable,
        left_out: Counted::sum(left_out),
    }
}

fn listing(path: BytesPath, names: Names, stop: &Stop<'_>) -> Result<DirectoryListing, Fault> {
    let Names {
        listed,
        n_seen,
        n_unreadable,
        left_out,
    } = names;
    if stop.is_cancelled() {
        return Err(Fault::Cancelled);
    }
    let mut entries = Vec::with_capacity(listed.len());
    let mut n_bytes = 0;
    for Listed {
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
        left_out,
    })
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Listed {
    key: Vec<u8>,
    kind: EntryKind,
    bytes: Option<u64>,
    target: Option<BytesPath>,
}

impl Listed {
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

/// Lists the names in one folder; only those that are given are looked at closer.
fn one(
    folder: BorrowedFd<'_>,
    call: &ListDirectory,
    n: usize,
    stop: &Stop<'_>,
) -> Result<Names, Errno> {
    let (mut names, _) = walk::list(folder, stop)?;
    let mut left_out = LeftOut::default();
    names.retain(|name| {
        let is_hidden = !call.show_hidden && name.name[0] == b'.';
        let count = if name.kind == Kind::Folder {
            &mut left_out.hidden_folders
        } else {
            &mut left_out.hidden_files
        };
        *count += u64::from(is_hidden);
        !is_hidden
    });
    let n_seen = names.len() as u64;
    let listed = names.into_iter().take(n).map(|name| {
        Listed::new(
            name.name.to_vec(),
            folder,
            &name.name,
            name.kind,
            call.show_size,
        )
    });
    Ok(Names {
        listed: listed.collect(),
        n_seen,
        n_unreadable: 0,
        left_out,
    })
}

struct Lister {
    n: usize,
    /// Bytes of a shown path before the part below the listed folder.
    n_prefix: usize,
    sizes: bool,
}

impl Visitor for Lister {
    type State = (Smallest<Listed>, Counted);

    fn select(&self, _: &Entry<'_>) -> Option<bool> {
        None
    }

    fn pass_over(&self, (_, left_out): &mut Self::State, entry: &Entry<'_>, why: Why) {
        left_out.note(entry, why);
    }

    fn visit(&self, (names, _): &mut Self::State, entry: &Entry<'_>) {
        let key = path_key(&entry.path()[self.n_prefix..]);
        let is_before = |last: &Listed| key < last.key;
        names.offer(self.n, is_before, || {
            Some(Listed::new(
                key.clone(),
                entry.folder,
                entry.name,
                entry.kind,
                self.sizes,
            ))
        });
    }
}
