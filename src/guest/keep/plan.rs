use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use nix::dir::Dir;
use nix::errno::Errno;

use super::Error;
use super::Store;
use super::compare::Change;
use super::compare::compare;
use super::deflate::Deflate;
use super::forbidden;
use super::forbidden::Origin;
use super::journal::Journal;
use super::journal::Purpose;
use super::look::Look;
use super::look::Name;
use super::merge::merge;
use super::node::Node;
use super::node::are_alike;
use super::object::ObjectId;
use super::project::Project;
use super::read::Found;
use super::store::Put;
use crate::guest::root::join;
use crate::guest::root::split;
use crate::wire::BytesPath;
use crate::wire::keep::Applied;
use crate::wire::keep::Left;
use crate::wire::keep::LeftReason;
use crate::wire::keep::Unkept;

/// What is to be brought about.
#[derive(Clone, Debug)]
pub struct Request {
    pub from: ObjectId,
    pub to: ObjectId,
    /// These paths and what is in them; all of them if there are none.
    pub only: Vec<BytesPath>,
    /// Lines of both sides are put together where a text was changed by somebody else.
    pub merge: bool,
    pub origin: Origin,
    pub purpose: Purpose,
}

/// Bits of a folder's mode without which nothing in it can be changed.
const WRITABLE: u32 = 0o300;

/// Bits of a folder's mode without which what is in it cannot be read.
const READABLE: u32 = 0o500;

/// Finds out what is to be done, and does nothing yet; what was put together from two sides is in the store.
pub(super) fn plan(project: &Project, store: &mut Store, request: &Request) -> Result<Journal, Error> {
    let mut wanted = compare(store, &request.from, &request.to)?;
    select(&mut wanted, &request.only);
    let ambiguous = ambiguous(&wanted);
    let mut found = Applied::default();
    let mut merges = Merges { store, made: Vec::new() };
    let mut changes = Vec::new();
    for change in wanted {
        let path = change.path.clone();
        let kind = if ambiguous.contains(&change.path) { Name::Ambiguous } else { Name::Plain };
        let leave = |reason| Left { path: path.clone(), reason };
        let look = match Look::at(project, path.as_bytes(), kind) {
            Ok(look) => look,
            Err(errno) => {
                found.refused.add(leave(LeftReason::Failed { problem: errno.desc().to_owned() }));
                continue;
            }
        };
        let here = look.found.node();
        let change = known(change, here.as_ref());
        let are_folders = [&here, &change.after].into_iter().all(|node| node.as_ref().is_some_and(Node::is_folder));
        let was_folder = change.before.as_ref().is_some_and(Node::is_folder);
        let is_done = are_alike(here.as_ref(), change.after.as_ref()) || are_folders && !was_folder;
        let is_folder_still = was_folder && !are_folders && here.as_ref().is_some_and(Node::is_folder);
        let reason = forbidden::reason(&change, request.origin);
        if is_done {
            found.n_already += 1;
        } else if let Some(reason) = reason {
            found.refused.add(leave(reason));
        } else if are_alike(here.as_ref(), change.before.as_ref()) || is_folder_still {
            changes.push(change);
        } else if request.merge
            && let Some(merged) = merges.merge(&change, &look.found)?
        {
            found.merged.add(change.path.clone());
            changes.push(Change { path: change.path, before: here, after: Some(merged) });
        } else {
            found.conflicts.add(leave(LeftReason::ChangedSince));
        }
    }
    merges.finish()?;
    leave_full_folders(project, &mut changes, &mut found);
    let opened = to_open(project, &changes);
    let token = format!("{:016x}", RandomState::new().hash_one(request.to));
    Ok(Journal { token, purpose: request.purpose.clone(), changes, ambiguous, opened, found })
}

/// A folder that nobody could read is known by its mode all the same, which alone is brought back then.
fn known(change: Change, here: Option<&Node>) -> Change {
    match (&change.before, here, &change.after) {
        (Some(Node::Unkept { why: Unkept::Unreadable, .. }), Some(here @ Node::Folder { mode, .. }), Some(Node::Folder { .. }))
            if mode & READABLE != READABLE =>
        {
            Change { before: Some(here.clone()), ..change }
        }
        _ => change,
    }
}

/// Leaves the selected paths, what is in them, and the folders that must be made for them.
fn select(changes: &mut Vec<Change>, only: &[BytesPath]) {
    if only.is_empty() {
        return;
    }
    let is_selected = |path: &[u8]| {
        let within = |only: &BytesPath| {
            let only = only.as_bytes().strip_suffix(b"/").unwrap_or(only.as_bytes());
            path.strip_prefix(only).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
        };
        only.iter().any(within)
    };
    let mut folders: BTreeSet<Vec<u8>> = BTreeSet::new();
    for change in changes.iter().filter(|change| change.after.is_some() && is_selected(change.path.as_bytes())) {
        let mut path = split(change.path.as_bytes()).0;
        while !path.is_empty() && folders.insert(path.to_vec()) {
            path = split(path).0;
        }
    }
    let is_made = |change: &Change| {
        let becomes_folder = change.after.as_ref().is_some_and(Node::is_folder) && !change.before.as_ref().is_some_and(Node::is_folder);
        becomes_folder && folders.contains(change.path.as_bytes())
    };
    changes.retain(|change| is_selected(change.path.as_bytes()) || is_made(change));
}

/// Returns the paths of which there is another one that some file system takes for the same.
fn ambiguous(changes: &[Change]) -> BTreeSet<BytesPath> {
    let fold = |path: &BytesPath| String::from_utf8_lossy(path.as_bytes()).to_lowercase();
    let mut n_of: HashMap<String, u32> = HashMap::new();
    for change in changes {
        *n_of.entry(fold(&change.path)).or_default() += 1;
    }
    let is_ambiguous = |change: &&Change| !change.path.as_bytes().is_ascii() || n_of[&fold(&change.path)] > 1;
    changes.iter().filter(is_ambiguous).map(|change| change.path.clone()).collect()
}

/// A folder that is to become a file, and holds what is not ours to remove, is left with all that is in it.
fn leave_full_folders(project: &Project, changes: &mut Vec<Change>, found: &mut Applied) {
    let gone: BTreeSet<&[u8]> = changes.iter().filter(|change| change.after.is_none()).map(|change| change.path.as_bytes()).collect();
    let turned = |change: &&Change| {
        change.before.as_ref().is_some_and(Node::is_folder) && change.after.as_ref().is_some_and(|node| !node.is_folder())
    };
    let full: Vec<Vec<u8>> = changes
        .iter()
        .filter(turned)
        .map(|change| change.path.as_bytes())
        .filter(|path| !holds_only(project, path, &gone))
        .map(<[u8]>::to_vec)
        .collect();
    if full.is_empty() {
        return;
    }
    let is_left =
        |path: &[u8]| full.iter().any(|full| path.strip_prefix(full.as_slice()).is_some_and(|rest| rest.is_empty() || rest[0] == b'/'));
    for change in changes.extract_if(.., |change| is_left(change.path.as_bytes())) {
        found.conflicts.add(Left { path: change.path, reason: LeftReason::NotEmpty });
    }
}

/// Whether everything in a folder is among what is to be removed.
fn holds_only(project: &Project, path: &[u8], gone: &BTreeSet<&[u8]>) -> bool {
    let names = || -> Result<Vec<Vec<u8>>, Errno> {
        let mut folder = Dir::from_fd(project.list(path)?)?;
        let names = folder.iter().map(|entry| entry.map(|entry| entry.file_name().to_bytes().to_vec()));
        names.filter(|name| !matches!(name.as_deref(), Ok(b"." | b".."))).collect()
    };
    // What is in those of them that are folders is to be removed as well, or the same question is asked of it when it is not.
    names().is_ok_and(|names| {
        names.iter().all(|name| {
            let path = join(path, name);
            gone.contains(path.as_slice()) && (project.list(&path).is_err() || holds_only(project, &path, gone))
        })
    })
}

/// Returns the folders in which something is to be changed and nothing can be, with the modes they are to have in the end.
fn to_open(project: &Project, changes: &[Change]) -> BTreeMap<BytesPath, u32> {
    let folders: BTreeSet<&[u8]> = changes.iter().map(|change| split(change.path.as_bytes()).0).collect();
    let mut opened = BTreeMap::new();
    for folder in folders.into_iter().filter(|folder| !folder.is_empty()) {
        if let Ok(Look { found: Found::Folder { stat }, .. }) = Look::at(project, folder, Name::Plain)
            && stat.st_mode & WRITABLE != WRITABLE
        {
            opened.insert(BytesPath::from_bytes(folder), stat.st_mode & 0o7777);
        }
    }
    opened
}

/// Texts that are put together from two sides.
struct Merges<'a> {
    store: &'a mut Store,
    made: Vec<Vec<u8>>,
}

impl Merges<'_> {
    fn merge(&mut self, change: &Change, here: &Found) -> Result<Option<Node>, Error> {
        let (Some(Node::File { object: base, .. }), Some(Node::File { object: wanted, mode, .. }), Found::File { content, .. }) =
            (&change.before, &change.after, here)
        else {
            return Ok(None);
        };
        let Some(merged) = merge(&self.store.get(base)?, content, &self.store.get(wanted)?) else { return Ok(None) };
        let node = Node::File { mode: *mode, n_bytes: merged.len() as u64, object: ObjectId::of(&merged) };
        self.made.push(merged);
        Ok(Some(node))
    }

    fn finish(self) -> Result<(), Error> {
        let addition = self.store.add();
        let mut deflate = Deflate::default();
        for content in &self.made {
            match addition.put(content, &mut deflate)? {
                Put::Kept(_) => {}
                Put::Full => return Err(Error::Full { most_bytes: self.store.most_bytes() }),
            }
        }
        let added = addition.finish()?;
        self.store.take_in_added(added)
    }
}
