mod open;

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::os::fd::OwnedFd;

use nix::dir::Dir;
use nix::errno::Errno;
use unicode_normalization::UnicodeNormalization;

pub(super) use self::open::open;
use self::open::to_open;
use super::Error;
use super::Store;
use super::compare::Change;
use super::compare::compare;
use super::compare::look_behind;
use super::deflate::Deflate;
use super::forbidden::Forbidden;
use super::forbidden::Origin;
use super::forbidden::SET_ID;
use super::forbidden::folded;
use super::journal::Journal;
use super::journal::Purpose;
use super::look::Look;
use super::look::Name;
use super::merge::merge;
use super::node::FOLDER_MODE;
use super::node::Node;
use super::node::are_alike;
use super::object::ObjectId;
use super::project::Project;
use super::read::Found;
use super::store::Put;
use super::swap::is_leftover;
use super::tree::Tree;
use super::unheld;
use super::unheld::Unheld;
use crate::root::join;
use crate::root::split;
use podbay_wire::BytesPath;
use podbay_wire::keep::Applied;
use podbay_wire::keep::Left;
use podbay_wire::keep::LeftReason;
use podbay_wire::keep::Unkept;

/// What is to be brought about.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    pub from: ObjectId,
    pub to: ObjectId,
    /// These paths and what is in them; all of them if there are none.
    pub only: Vec<BytesPath>,
    /// Lines of both sides are put together where a text was changed by somebody else.
    pub merge: bool,
    pub origin: Origin,
    pub purpose: Purpose,
    /// What a session worked on, from where files come that no snapshot holds.
    pub copy: Option<&'a Project>,
}

/// What is said of a file that is to come from what the session worked on, and is another one
/// there.
pub(super) const CHANGED_IN_COPY: &str =
    "is another file by now in what the session worked on than when it was looked through";

/// Bits of a folder's mode without which nothing in it can be changed.
const WRITABLE: u32 = 0o300;

/// Bits of a folder's mode without which what is in it cannot be read.
const READABLE: u32 = 0o500;

/// Bit of a folder's mode without which nobody comes to what is in it.
const PASSABLE: u32 = 0o100;

/// Bits that an opened folder has.
const OPEN: u32 = 0o700;

/// What was left undone: for whoever is told, and for whoever tries again.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub applied: Applied,
    /// The paths that may be tried again, all of them.
    pub left: Vec<BytesPath>,
}

impl Outcome {
    pub(super) fn leave(&mut self, left: Left) {
        if left.reason.may_pass() {
            self.left.push(left.path.clone());
        }
        match left.reason {
            LeftReason::ChangedSince
            | LeftReason::NotEmpty
            | LeftReason::NoFolder
            | LeftReason::NotKept { .. } => {
                self.applied.conflicts.add(left);
            }
            _ => self.applied.refused.add(left),
        }
    }
}

/// Returns all that is to be changed for a request, as far as the two states tell.
pub(super) fn wanted(store: &Store, request: &Request<'_>) -> Result<Vec<Change>, Error> {
    let mut wanted = compare(store, &request.from, &request.to)?;
    look_behind(store, &mut wanted)?;
    select(&mut wanted, &request.only);
    Ok(wanted)
}

/// Finds out what is to be done of what is wanted, and does nothing yet; what was put together from
/// two sides is in the store. `opened` are folders that were opened for it, with the modes they had
/// before.
pub(super) fn plan_of(
    project: &Project,
    store: &mut Store,
    request: &Request<'_>,
    wanted: Vec<Change>,
    mut found: Outcome,
    mut opened: BTreeMap<BytesPath, u32>,
) -> Result<Journal, Error> {
    let ambiguous = ambiguous(&wanted);
    let forbidden = Forbidden::of(project, &wanted, request.origin);
    if request.origin == Origin::Before {
        for left in unknown_names(project, store, &wanted)? {
            found.leave(left);
        }
    }
    let mut merges = Merges {
        store,
        made: Vec::new(),
    };
    let mut changes = Vec::new();
    let mut kept = BTreeMap::new();
    let mut all_unheld = BTreeMap::new();
    for change in wanted {
        if change.after.is_some() && is_leftover(split(change.path.as_bytes()).1) {
            match request.origin {
                // It was cleared up since, and belongs to nobody.
                Origin::Before => {}
                Origin::Elsewhere => leave(&mut found, &mut kept, &change, LeftReason::OwnName),
            }
            continue;
        }
        let kind = if ambiguous.contains(&change.path) {
            Name::Ambiguous
        } else {
            Name::Plain
        };
        let look = match Look::at(project, change.path.as_bytes(), kind) {
            Ok(look) => look,
            Err(errno) => {
                leave(
                    &mut found,
                    &mut kept,
                    &change,
                    LeftReason::Failed {
                        problem: errno.desc().to_owned(),
                    },
                );
                continue;
            }
        };
        let here = closed(look.found.node(), opened.get(&change.path));
        let change = without_set_id(
            known(change, here.as_ref(), request.origin),
            here.as_ref(),
            request.origin,
            &mut found.applied,
        );
        let are_folders = are_folders(here.as_ref(), change.after.as_ref());
        let was_folder = change.before.as_ref().is_some_and(Node::is_folder);
        let is_folder_still =
            was_folder && !are_folders && here.as_ref().is_some_and(Node::is_folder);
        let unheld = Unheld::of(&change, &look.found, request.copy);
        let reason = forbidden
            .reason(&change)
            .or_else(|| cannot_come(&change, &unheld, request));
        if is_done(&change, here.as_ref())
            || unheld.after.is_some_and(|facts| facts.are_of(&look.found))
        {
            found.applied.n_already += 1;
        } else if let Some(reason) = reason {
            leave(&mut found, &mut kept, &change, reason);
        } else if are_alike(here.as_ref(), change.before.as_ref())
            || is_folder_still
            || unheld.before.is_some()
        {
            if !unheld.is_empty() {
                all_unheld.insert(change.path.clone(), unheld);
            }
            changes.push(change);
        } else if request.merge
            && let Some(merged) = merges.merge(&change, &look.found)?
        {
            found.applied.merged.add(change.path.clone());
            changes.push(Change {
                path: change.path,
                before: here,
                after: Some(merged),
            });
        } else {
            leave(&mut found, &mut kept, &change, LeftReason::ChangedSince);
        }
    }
    merges.finish()?;
    leave_folders(project, &mut changes, kept, &mut found);
    opened.extend(to_open(project, &changes));
    let Outcome {
        applied: found,
        left,
    } = found;
    let purpose = request.purpose.clone();
    Ok(Journal {
        token: token(request),
        purpose,
        changes,
        ambiguous,
        opened,
        found,
        left,
        unheld: all_unheld,
        is_look: false,
    })
}

/// Returns why a file that no snapshot holds does not come from what the session worked on, if that
/// is where it would come from.
fn cannot_come(change: &Change, unheld: &Unheld, request: &Request<'_>) -> Option<LeftReason> {
    let why = unheld::why(change.after.as_ref())?;
    match unheld.after {
        Some(facts) => (facts.mode & SET_ID != 0).then_some(LeftReason::SetId),
        None if request.copy.is_none() => Some(LeftReason::FromCopy { why }),
        None => Some(LeftReason::Failed {
            problem: CHANGED_IN_COPY.to_owned(),
        }),
    }
}

/// Whether what stands there is as wanted. A folder that was to be made counts as such with any
/// mode.
pub(super) fn is_done(change: &Change, here: Option<&Node>) -> bool {
    let was_folder = change.before.as_ref().is_some_and(Node::is_folder);
    are_alike(here, change.after.as_ref())
        || are_folders(here, change.after.as_ref()) && !was_folder
}

fn are_folders(one: Option<&Node>, other: Option<&Node>) -> bool {
    [one, other]
        .into_iter()
        .all(|node| node.is_some_and(Node::is_folder))
}

/// Returns what tells the files of one application from those of another.
pub(super) fn token(request: &Request<'_>) -> String {
    format!("{:016x}", RandomState::new().hash_one(request.to))
}

/// What was there at the end and is not kept is known where nothing stands there now: nothing is
/// overwritten then. A folder that nobody could read is known by its mode.
fn known(change: Change, here: Option<&Node>, origin: Origin) -> Change {
    match (&change.before, here, &change.after) {
        // Another file system may only be away for a while.
        (
            Some(Node::Unkept {
                why: Unkept::GitFolder | Unkept::OtherFileSystem,
                ..
            }),
            _,
            _,
        ) => change,
        (Some(Node::Unkept { .. }), None, _) if origin == Origin::Before => Change {
            before: None,
            ..change
        },
        (
            Some(Node::Unkept {
                why: Unkept::Unreadable,
                ..
            }),
            Some(here @ Node::Folder { mode, .. }),
            Some(Node::Folder { .. }),
        ) if mode & READABLE != READABLE => Change {
            before: Some(here.clone()),
            ..change
        },
        _ => change,
    }
}

/// What was in this very project comes back without the bits that let it act for its owner, and may
/// have come so before.
fn without_set_id(
    mut change: Change,
    here: Option<&Node>,
    origin: Origin,
    applied: &mut Applied,
) -> Change {
    let strip = |node: &Node| match node {
        Node::File {
            mode,
            n_bytes,
            object,
        } => Node::File {
            mode: mode & !SET_ID,
            n_bytes: *n_bytes,
            object: *object,
        },
        other => other.clone(),
    };
    let is_set =
        |node: &Option<Node>| matches!(node, Some(Node::File { mode, .. }) if mode & SET_ID != 0);
    if origin == Origin::Elsewhere || are_alike(here, change.after.as_ref()) {
        return change;
    }
    if is_set(&change.before) && are_alike(here, change.before.as_ref().map(strip).as_ref()) {
        change.before = here.cloned();
    }
    if is_set(&change.after) {
        change.after = change.after.as_ref().map(strip);
        if are_alike(here, change.before.as_ref()) {
            applied.without_set_id.add(change.path.clone());
        }
    }
    change
}

/// A folder that was opened to be looked into counts as it was.
fn closed(here: Option<Node>, was: Option<&u32>) -> Option<Node> {
    match (here, was) {
        (Some(Node::Folder { mode, tree }), Some(was)) if mode == (was | OPEN) & FOLDER_MODE => {
            Some(Node::Folder {
                mode: was & FOLDER_MODE,
                tree,
            })
        }
        (here, _) => here,
    }
}

/// Returns what stands in folders that could not be read, and not in the state that is to come:
/// somebody made it, and nobody knows when.
fn unknown_names(project: &Project, store: &Store, wanted: &[Change]) -> Result<Vec<Left>, Error> {
    let mut unknown = Vec::new();
    for change in wanted {
        let (
            Some(Node::Unkept {
                why: why @ Unkept::Unreadable,
                ..
            }),
            Some(Node::Folder { tree, .. }),
        ) = (&change.before, &change.after)
        else {
            continue;
        };
        let names = project
            .list(change.path.as_bytes())
            .and_then(names)
            .unwrap_or_default();
        let tree = Tree::read(store, tree)?;
        for name in names
            .iter()
            .filter(|name| !tree.0.iter().any(|(known, _)| known == *name))
        {
            let path = BytesPath::from_bytes(join(change.path.as_bytes(), name));
            unknown.push(Left {
                path,
                reason: LeftReason::NotKept { why: *why },
            });
        }
    }
    Ok(unknown)
}

pub(super) fn names(folder: OwnedFd) -> Result<Vec<Vec<u8>>, Errno> {
    let mut folder = Dir::from_fd(folder)?;
    let names = folder
        .iter()
        .map(|entry| entry.map(|entry| entry.file_name().to_bytes().to_vec()));
    names
        .filter(|name| !matches!(name.as_deref(), Ok(b"." | b"..")))
        .collect()
}

/// Leaves the selected paths, what is in them, and the folders that must be made for them.
pub(super) fn select(changes: &mut Vec<Change>, only: &[BytesPath]) {
    if only.is_empty() {
        return;
    }
    let is_selected = |path: &[u8]| {
        let within = |only: &BytesPath| {
            let only = only
                .as_bytes()
                .strip_suffix(b"/")
                .unwrap_or(only.as_bytes());
            path.strip_prefix(only)
                .is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
        };
        only.iter().any(within)
    };
    let mut folders: BTreeSet<Vec<u8>> = BTreeSet::new();
    for change in changes
        .iter()
        .filter(|change| change.after.is_some() && is_selected(change.path.as_bytes()))
    {
        let mut path = split(change.path.as_bytes()).0;
        while !path.is_empty() && folders.insert(path.to_vec()) {
            path = split(path).0;
        }
    }
    let is_made = |change: &Change| {
        let becomes_folder = change.after.as_ref().is_some_and(Node::is_folder)
            && !change.before.as_ref().is_some_and(Node::is_folder);
        becomes_folder && folders.contains(change.path.as_bytes())
    };
    changes.retain(|change| is_selected(change.path.as_bytes()) || is_made(change));
}

/// Returns the paths of which there is another one that some file system takes for the same: with
/// other capital letters, or with letters put together otherwise.
fn ambiguous(changes: &[Change]) -> BTreeSet<BytesPath> {
    let name = |name: &[u8]| {
        folded(name)
            .to_uppercase()
            .to_lowercase()
            .nfkd()
            .collect::<String>()
    };
    let fold = |path: &BytesPath| {
        path.as_bytes()
            .split(|byte| *byte == b'/')
            .map(name)
            .collect::<Vec<_>>()
            .join("/")
    };
    let mut paths_of: HashMap<String, Vec<&BytesPath>> = HashMap::new();
    for change in changes {
        paths_of
            .entry(fold(&change.path))
            .or_default()
            .push(&change.path);
    }
    paths_of
        .into_values()
        .filter(|paths| paths.len() > 1)
        .flatten()
        .cloned()
        .collect()
}

/// Leaves a change as it is, and notes it where a folder was to make room for something else.
fn leave(
    found: &mut Outcome,
    kept: &mut BTreeMap<BytesPath, LeftReason>,
    change: &Change,
    reason: LeftReason,
) {
    if is_turned(change) {
        kept.insert(change.path.clone(), reason.clone());
    }
    found.leave(Left {
        path: change.path.clone(),
        reason,
    });
}

/// Whether a folder is to make room for what is none.
pub(super) fn is_turned(change: &Change) -> bool {
    change.before.as_ref().is_some_and(Node::is_folder)
        && change.after.as_ref().is_some_and(|node| !node.is_folder())
}

/// A folder that is to become a file, and holds what is not ours to remove, is left with all that
/// is in it. So are those that are left for another reason: they would be emptied for what does not
/// come. `kept` has these.
fn leave_folders(
    project: &Project,
    changes: &mut Vec<Change>,
    mut kept: BTreeMap<BytesPath, LeftReason>,
    found: &mut Outcome,
) {
    let gone: BTreeSet<&[u8]> = changes
        .iter()
        .filter(|change| change.after.is_none())
        .map(|change| change.path.as_bytes())
        .collect();
    let turned = changes.iter().filter(|change| is_turned(change));
    let full = turned.filter(|change| !holds_only(project, change.path.as_bytes(), &gone));
    kept.extend(full.map(|change| (change.path.clone(), LeftReason::NotEmpty)));
    if kept.is_empty() {
        return;
    }
    for change in changes.extract_if(.., |change| folder_of(&kept, &change.path).is_some()) {
        let Some((folder, reason)) = folder_of(&kept, &change.path) else {
            continue;
        };
        // What may pass is tried again, together with what is in it.
        let reason = if reason.may_pass() {
            reason.clone()
        } else {
            LeftReason::InLeft {
                folder: folder.clone(),
            }
        };
        found.leave(Left {
            path: change.path,
            reason,
        });
    }
}

/// Returns which of some folders a path is, or is in.
pub(super) fn folder_of<'k, T>(
    folders: &'k BTreeMap<BytesPath, T>,
    path: &BytesPath,
) -> Option<(&'k BytesPath, &'k T)> {
    let above = std::iter::successors(Some(path.as_bytes()), |path| {
        Some(split(path).0).filter(|path| !path.is_empty())
    });
    above
        .map(BytesPath::from_bytes)
        .find_map(|path| folders.get_key_value(&path))
}

/// Whether everything in a folder is among what is to be removed.
fn holds_only(project: &Project, path: &[u8], gone: &BTreeSet<&[u8]>) -> bool {
    // What is in those of them that are folders is to be removed as well, or the same question is
    // asked of it when it is not.
    project.list(path).and_then(names).is_ok_and(|names| {
        names.iter().all(|name| {
            let path = join(path, name);
            gone.contains(path.as_slice())
                && (project.list(&path).is_err() || holds_only(project, &path, gone))
        })
    })
}

/// Texts that are put together from two sides.
struct Merges<'a> {
    store: &'a mut Store,
    made: Vec<Vec<u8>>,
}

impl Merges<'_> {
    fn merge(&mut self, change: &Change, here: &Found) -> Result<Option<Node>, Error> {
        let (
            Some(Node::File { object: base, .. }),
            Some(Node::File {
                object: wanted,
                mode,
                ..
            }),
            Found::File { content, .. },
        ) = (&change.before, &change.after, here)
        else {
            return Ok(None);
        };
        let Some(merged) = merge(&self.store.get(base)?, content, &self.store.get(wanted)?) else {
            return Ok(None);
        };
        let node = Node::File {
            mode: *mode,
            n_bytes: merged.len() as u64,
            object: ObjectId::of(&merged),
        };
        self.made.push(merged);
        Ok(Some(node))
    }

    fn finish(self) -> Result<(), Error> {
        let addition = self.store.add();
        let mut deflate = Deflate::default();
        for content in &self.made {
            match addition.put(content, &mut deflate)? {
                Put::Kept(_) => {}
                Put::Full => {
                    return Err(Error::Full {
                        most_bytes: self.store.most_bytes(),
                    });
                }
            }
        }
        let added = addition.finish()?;
        self.store.take_in_added(added)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_ambiguous_where_a_file_system_may_take_one_for_another() {
        let change = |path: &[u8]| Change {
            path: BytesPath::from_bytes(path),
            before: None,
            after: None,
        };
        let all: [&[u8]; 13] = [
            b"Case",
            b"case",
            "x/\u{e9}".as_bytes(),
            "x/e\u{301}".as_bytes(),
            "Straße".as_bytes(),
            b"strasse",
            b"a\xff",
            b"a\xfe",
            // Nothing is like these.
            "y/\u{e9}".as_bytes(),
            "\u{65e5}\u{672c}".as_bytes(),
            "\u{65e5}".as_bytes(),
            b"f\xff1",
            b"f\xff2",
        ];
        let found = ambiguous(&all.map(change));
        let expected: BTreeSet<BytesPath> = all[..8]
            .iter()
            .map(|path| BytesPath::from_bytes(*path))
            .collect();
        assert_eq!(found, expected);
    }
}
