//! Selects the changes of a review that are applied.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::collections::HashMap;
use std::collections::VecDeque;

use globset::GlobBuilder;

use super::open_review::is_in;
use crate::keep::Error;
use crate::keep::Node;
use crate::keep::Origin;
use crate::keep::Project;
use crate::keep::auto_run::AutoRun;
use crate::keep::auto_run::ChangedPath;
use crate::keep::auto_run::RunReason;
use crate::keep::auto_run::WholeFolders;
use crate::keep::compare::Change;
use crate::keep::forbidden::ForbiddenChanges;
use crate::keep::object::ObjectId;
use crate::keep::plan;
use crate::root::as_path;
use crate::root::split;
use podbay_wire::BytesPath;
use podbay_wire::keep::ApplyOutcome;
use podbay_wire::keep::LeftPath;
use podbay_wire::keep::LeftReason;
use podbay_wire::keep::RunTrigger;

/// Keeps what the paths and patterns name, or all if there are none. One that matches nothing is an
/// error.
pub(super) fn select(changes: &mut Vec<Change>, only: &[BytesPath]) -> Result<(), Error> {
    let mut paths = Vec::new();
    for each in only {
        let before = paths.len();
        let path = &normalize(each.as_bytes());
        if path.is_empty() && !each.as_bytes().is_empty() && !changes.is_empty() {
            return Ok(());
        }
        let is_within = |changed: &[u8]| {
            changed
                .strip_prefix(path.as_slice())
                .is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
        };
        // A name may look like a pattern, as `[id]` does.
        if changes
            .iter()
            .any(|change| is_within(change.path.as_bytes()))
        {
            paths.push(BytesPath::from_bytes(path.as_slice()));
        } else if path.iter().any(|byte| b"*?[".contains(byte)) {
            let refused = |problem: String| Error::Pattern {
                pattern: each.clone(),
                problem,
            };
            let text =
                std::str::from_utf8(path).map_err(|_| refused("it is not UTF-8".to_owned()))?;
            let glob = GlobBuilder::new(text)
                .build()
                .map_err(|error| refused(error.kind().to_string()))?
                .compile_matcher();
            let matching = changes
                .iter()
                .filter(|change| glob.is_match(as_path(change.path.as_bytes())));
            paths.extend(matching.map(|change| change.path.clone()));
        }
        if paths.len() == before {
            return Err(Error::Pattern {
                pattern: each.clone(),
                problem: "it matches no change of the review".to_owned(),
            });
        }
    }
    plan::select(changes, &paths);
    Ok(())
}

/// Normalizes a path of the project: `./a//b/` becomes `a/b`, and the project's own folder becomes
/// empty. A path that does not begin in the project is returned as it is.
fn normalize(path: &[u8]) -> Vec<u8> {
    if path.is_empty() || path.starts_with(b"/") {
        return path.to_vec();
    }
    let names: Vec<&[u8]> = path
        .split(|byte| *byte == b'/')
        .filter(|name| !matches!(*name, b"" | b"."))
        .collect();
    names.join(&b'/')
}

/// Removes whole folders with an entry that is never applied, such as a link out of the project.
pub(super) fn leave_broken_wholes(
    project: &Project,
    changes: &mut Vec<Change>,
    wholes: &WholeFolders,
    left: &mut ApplyOutcome,
) {
    let forbidden = ForbiddenChanges::of(project, changes, Origin::Elsewhere);
    let mut broken: BTreeMap<&BytesPath, BytesPath> = BTreeMap::new();
    for change in changes.iter() {
        if let Some((folder, _)) = wholes.with(&change.path)
            && let Some(reason) = forbidden.reason(change)
        {
            left.refused.add(LeftPath {
                path: change.path.clone(),
                reason,
            });
            broken.entry(folder).or_insert_with(|| change.path.clone());
        }
    }
    let refused = broken.iter().map(|(folder, path)| LeftPath {
        path: (*folder).clone(),
        reason: LeftReason::NotWhole { path: path.clone() },
    });
    left.refused.extend(refused.filter(
        |left| !matches!(&left.reason, LeftReason::NotWhole { path } if *path == left.path),
    ));
    changes.retain(|change| {
        wholes
            .with(&change.path)
            .is_none_or(|(folder, _)| !broken.contains_key(folder))
    });
}

/// Removes files that run without being asked for on the user's machine, and folders that would be
/// made for those alone. Files that are in the project already are not reported.
pub(super) fn leave_auto_run(
    project: &Project,
    changes: &mut Vec<Change>,
    auto_run: &AutoRun,
    left: &mut ApplyOutcome,
) {
    let wholes = WholeFolders::of(auto_run, changes.iter().map(ChangedPath::from));
    let mut out: BTreeSet<BytesPath> = BTreeSet::new();
    let mut needed: BTreeSet<Vec<u8>> = BTreeSet::new();
    let mut emptied: BTreeSet<Vec<u8>> = BTreeSet::new();
    let mut kept: BTreeMap<BytesPath, LeftReason> = BTreeMap::new();
    let mut told: BTreeSet<&BytesPath> = BTreeSet::new();
    let forbidden = ForbiddenChanges::of(project, changes, Origin::Elsewhere);
    let is_in = |change: &Change| is_in(project, change);
    for change in changes.iter() {
        let is_folder = change.after.as_ref().is_some_and(Node::is_folder);
        if forbidden.reason(change).is_some() {
            // The plan reports that it never is.
            mark_above(&mut emptied, change.path.as_bytes());
            continue;
        }
        // A whole folder is reported once.
        let (place, runs) = match wholes.with(&change.path) {
            Some((folder, runs)) => (folder, Some(runs.clone())),
            None => (&change.path, auto_run.runs(change.into())),
        };
        let Some(RunReason { why, .. }) = runs.filter(|runs| runs.when == RunTrigger::ByItself)
        else {
            if !is_folder {
                mark_above(&mut needed, change.path.as_bytes());
            }
            continue;
        };
        mark_above(&mut emptied, change.path.as_bytes());
        out.insert(change.path.clone());
        if is_in(change) {
            left.n_already += 1;
        } else if told.insert(place) {
            left.refused.add(LeftPath {
                path: place.clone(),
                reason: LeftReason::MayRun { why },
            });
        }
        if plan::is_type_change(change) && !is_in(change) {
            kept.insert(
                change.path.clone(),
                LeftReason::InLeft {
                    folder: change.path.clone(),
                },
            );
        }
    }
    // A folder is not emptied for a file that is not written.
    for change in changes.iter().filter(|_| !kept.is_empty()) {
        if let Some((_, reason)) = plan::folder_of(&kept, &change.path)
            && out.insert(change.path.clone())
        {
            if is_in(change) {
                left.n_already += 1;
            } else {
                left.refused.add(LeftPath {
                    path: change.path.clone(),
                    reason: reason.clone(),
                });
            }
        }
    }
    // A folder comes before its contents: in reverse, each is examined after its contents.
    for change in changes
        .iter()
        .rev()
        .filter(|change| wholes.with(&change.path).is_none())
    {
        let path = change.path.as_bytes();
        let becomes_folder =
            change.before.is_none() && change.after.as_ref().is_some_and(Node::is_folder);
        if becomes_folder && emptied.contains(path) && !needed.contains(path) {
            if !is_in(change) {
                left.refused.add(LeftPath {
                    path: change.path.clone(),
                    reason: LeftReason::HoldsLeft,
                });
            }
            out.insert(change.path.clone());
        } else if becomes_folder {
            mark_above(&mut needed, path);
        }
    }
    changes.retain(|change| !out.contains(&change.path));
}

/// Removes deletions of the old names of files whose new names are not applied, and of their
/// folders. A rename is one change to the user: half of it would lose the file. `all`: what was
/// selected at first.
pub(super) fn leave_old_names(
    project: &Project,
    all: &[Change],
    changes: &mut Vec<Change>,
    left: &mut ApplyOutcome,
) {
    let stays: BTreeSet<&BytesPath> = changes.iter().map(|change| &change.path).collect();
    let mut left_out: HashMap<ContentKey<'_>, VecDeque<&BytesPath>> = HashMap::new();
    let forbidden = ForbiddenChanges::of(project, changes, Origin::Elsewhere);
    for change in all {
        let is_left = !stays.contains(&change.path) || forbidden.reason(change).is_some();
        if let Some(content) = change
            .after
            .as_ref()
            .and_then(ContentKey::of)
            .filter(|_| is_left && change.before.is_none())
        {
            left_out.entry(content).or_default().push_back(&change.path);
        }
    }
    let mut out: BTreeSet<BytesPath> = BTreeSet::new();
    let mut above = BTreeSet::new();
    for change in changes.iter().filter(|change| change.after.is_none()) {
        let new_names = change
            .before
            .as_ref()
            .and_then(ContentKey::of)
            .and_then(|content| left_out.get_mut(&content));
        if let Some(to) = new_names.and_then(VecDeque::pop_front) {
            left.refused.add(LeftPath {
                path: change.path.clone(),
                reason: LeftReason::Renamed { to: to.clone() },
            });
            mark_above(&mut above, change.path.as_bytes());
            out.insert(change.path.clone());
        }
    }
    let goes = |change: &Change| {
        out.contains(&change.path)
            || change.after.is_none() && above.contains(change.path.as_bytes())
    };
    changes.retain(|change| !goes(change));
}

/// Identifies a file's or link's content under another name.
#[derive(PartialEq, Eq, Hash)]
enum ContentKey<'a> {
    File(ObjectId),
    Link(&'a BytesPath),
}

impl<'a> ContentKey<'a> {
    fn of(node: &'a Node) -> Option<Self> {
        match node {
            // All empty files are equal.
            Node::File {
                object,
                n_bytes: 1..,
                ..
            } => Some(Self::File(*object)),
            Node::Link { target } => Some(Self::Link(target)),
            Node::File { .. } | Node::Folder { .. } | Node::Unkept { .. } => None,
        }
    }
}

fn mark_above(marked: &mut BTreeSet<Vec<u8>>, path: &[u8]) {
    let mut above = split(path).0;
    while !above.is_empty() && marked.insert(above.to_vec()) {
        above = split(above).0;
    }
}
