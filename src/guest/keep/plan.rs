mod folder_modes;
mod kept_folders;
mod merges;

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::os::fd::OwnedFd;

use nix::dir::Dir;
use nix::errno::Errno;
use unicode_normalization::UnicodeNormalization;

use self::folder_modes::folders_to_open;
pub(super) use self::folder_modes::open_folders;
pub(super) use self::kept_folders::folder_of;
use self::kept_folders::leave_folders;
use self::kept_folders::leave_out;
use self::merges::Merges;
use super::Error;
use super::Store;
use super::compare::Change;
use super::compare::add_behind_unreadable;
use super::compare::compare;
use super::forbidden::ForbiddenChanges;
use super::forbidden::Origin;
use super::forbidden::SET_ID;
use super::forbidden::folded;
use super::journal::Journal;
use super::journal::Purpose;
use super::node::FOLDER_MODE;
use super::node::Node;
use super::node::are_alike;
use super::object::ObjectId;
use super::path_entry::NameCheck;
use super::path_entry::PathEntry;
use super::project::Project;
use super::swap::is_leftover;
use super::tree::Tree;
use super::uncaptured;
use super::uncaptured::UncapturedChange;
use crate::root::join;
use crate::root::split;
use podbay_wire::BytesPath;
use podbay_wire::keep::ApplyOutcome;
use podbay_wire::keep::LeftPath;
use podbay_wire::keep::LeftReason;
use podbay_wire::keep::UncapturedReason;

/// A request to change the project from one state to another.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    pub from: ObjectId,
    pub to: ObjectId,
    /// Only these paths with their contents; all if empty.
    pub only: Vec<BytesPath>,
    /// Merges texts that were changed on both sides.
    pub merge: bool,
    pub origin: Origin,
    pub purpose: Purpose,
    /// The session's copy of the project, the source of files that no snapshot holds.
    pub copy: Option<&'a Project>,
}

/// The reason for a file that is to come from the session's copy, and has changed there.
pub(super) const CHANGED_IN_COPY: &str = "changed in the session's copy since it was examined";

/// Bits of a folder's mode without which nothing in it can be changed.
const WRITABLE: u32 = 0o300;

/// Bits of a folder's mode without which what is in it cannot be read.
const READABLE: u32 = 0o500;

/// Bit of a folder's mode without which its contents cannot be reached.
const PASSABLE: u32 = 0o100;

/// Bits that an opened folder has.
const OPEN: u32 = 0o700;

/// What was left undone: for the report, and for a retry.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub applied: ApplyOutcome,
    /// All paths that may be retried.
    pub left: Vec<BytesPath>,
}

impl Outcome {
    pub(super) fn leave(&mut self, left: LeftPath) {
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

/// Returns all changes of a request, judged by the two states alone.
pub(super) fn wanted_changes(store: &Store, request: &Request<'_>) -> Result<Vec<Change>, Error> {
    let mut wanted = compare(store, &request.from, &request.to)?;
    add_behind_unreadable(store, &mut wanted)?;
    select(&mut wanted, &request.only);
    Ok(wanted)
}

/// Plans the wanted changes without making any; merged texts are added to the store. `opened` are
/// folders that were opened for it, with their original modes.
pub(super) fn make_plan(
    project: &Project,
    store: &mut Store,
    request: &Request<'_>,
    wanted: Vec<Change>,
    mut found: Outcome,
    mut opened: BTreeMap<BytesPath, u32>,
) -> Result<Journal, Error> {
    let ambiguous = ambiguous(&wanted);
    let forbidden = ForbiddenChanges::of(project, &wanted, request.origin);
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
                // It is missing since, and is no other program's.
                Origin::Before => {}
                Origin::Elsewhere => leave_out(&mut found, &mut kept, &change, LeftReason::OwnName),
            }
            continue;
        }
        let kind = if ambiguous.contains(&change.path) {
            NameCheck::Ambiguous
        } else {
            NameCheck::Plain
        };
        let look = match PathEntry::at(project, change.path.as_bytes(), kind) {
            Ok(look) => look,
            Err(errno) => {
                leave_out(
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
        let here = with_original_mode(look.found.node(), opened.get(&change.path));
        let change = without_set_id(
            with_recorded_state(change, here.as_ref(), request.origin),
            here.as_ref(),
            request.origin,
            &mut found.applied,
        );
        let are_folders = are_folders(here.as_ref(), change.after.as_ref());
        let was_folder = change.before.as_ref().is_some_and(Node::is_folder);
        let is_folder_still =
            was_folder && !are_folders && here.as_ref().is_some_and(Node::is_folder);
        let unheld = UncapturedChange::of(&change, &look.found, request.copy);
        let reason = forbidden
            .reason(&change)
            .or_else(|| cannot_come(&change, &unheld, request));
        if is_done(&change, here.as_ref())
            || unheld.after.is_some_and(|facts| facts.are_of(&look.found))
        {
            found.applied.n_already += 1;
        } else if let Some(reason) = reason {
            leave_out(&mut found, &mut kept, &change, reason);
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
            leave_out(&mut found, &mut kept, &change, LeftReason::ChangedSince);
        }
    }
    merges.finish()?;
    leave_folders(project, &mut changes, kept, &mut found);
    opened.extend(folders_to_open(project, &changes));
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

/// Returns why a file that no snapshot holds cannot be copied from the session's copy, where it
/// would have to come from.
fn cannot_come(
    change: &Change,
    unheld: &UncapturedChange,
    request: &Request<'_>,
) -> Option<LeftReason> {
    let why = uncaptured::why(change.after.as_ref())?;
    match unheld.after {
        Some(facts) => (facts.mode & SET_ID != 0).then_some(LeftReason::SetId),
        None if request.copy.is_none() => Some(LeftReason::FromCopy { why }),
        None => Some(LeftReason::Failed {
            problem: CHANGED_IN_COPY.to_owned(),
        }),
    }
}

/// Whether an entry is already as wanted. A folder to be made counts as such with any mode.
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

/// Returns a token that distinguishes the temporary files of applications.
pub(super) fn token(request: &Request<'_>) -> String {
    format!("{:016x}", RandomState::new().hash_one(request.to))
}

/// Replaces an uncaptured state by what is known now: if nothing exists there, nothing is
/// overwritten. An unreadable folder is recognized by its mode.
fn with_recorded_state(change: Change, here: Option<&Node>, origin: Origin) -> Change {
    match (&change.before, here, &change.after) {
        // Another file system may only be unmounted for a while.
        (
            Some(Node::Unkept {
                why: UncapturedReason::GitFolder | UncapturedReason::OtherFileSystem,
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
                why: UncapturedReason::Unreadable,
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

/// An earlier state of this project is restored without the set-id bits, and may have been restored
/// so before.
fn without_set_id(
    mut change: Change,
    here: Option<&Node>,
    origin: Origin,
    applied: &mut ApplyOutcome,
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

/// A folder that was opened for examination counts with its original mode.
fn with_original_mode(here: Option<Node>, was: Option<&u32>) -> Option<Node> {
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

/// Returns the entries in folders that could not be read, and not in the wanted state: it is
/// unknown when they were made.
fn unknown_names(
    project: &Project,
    store: &Store,
    wanted: &[Change],
) -> Result<Vec<LeftPath>, Error> {
    let mut unknown = Vec::new();
    for change in wanted {
        let (
            Some(Node::Unkept {
                why: why @ UncapturedReason::Unreadable,
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
            unknown.push(LeftPath {
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

/// Keeps only the selected paths, their contents, and the parent folders that must be made for
/// them.
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

/// Returns the paths that some file system treats as equal to another one: with other case, or
/// another Unicode normalization.
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

/// Whether a folder is to be replaced by something else.
pub(super) fn is_type_change(change: &Change) -> bool {
    change.before.as_ref().is_some_and(Node::is_folder)
        && change.after.as_ref().is_some_and(|node| !node.is_folder())
}

#[cfg(test)]
mod tests;
