//! Which of the changes are brought in.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::collections::HashMap;
use std::collections::VecDeque;

use globset::GlobBuilder;

use super::is_in;
use crate::keep::Error;
use crate::keep::Node;
use crate::keep::Origin;
use crate::keep::Project;
use crate::keep::auto_run::AutoRun;
use crate::keep::auto_run::Changed;
use crate::keep::auto_run::Runs;
use crate::keep::auto_run::Wholes;
use crate::keep::compare::Change;
use crate::keep::forbidden::Forbidden;
use crate::keep::object::ObjectId;
use crate::keep::plan;
use crate::root::as_path;
use crate::root::split;
use podbay_wire::BytesPath;
use podbay_wire::keep::Applied;
use podbay_wire::keep::Left;
use podbay_wire::keep::LeftReason;
use podbay_wire::keep::When;

/// Leaves what the paths and patterns name, all where there are none. One that names nothing is a
/// mistake.
pub(super) fn select(changes: &mut Vec<Change>, only: &[BytesPath]) -> Result<(), Error> {
    let mut paths = Vec::new();
    for each in only {
        let before = paths.len();
        let path = &plain(each.as_bytes());
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
                problem: "no change of the review is there".to_owned(),
            });
        }
    }
    plan::select(changes, &paths);
    Ok(())
}

/// Returns a path of the project without what says nothing in it: `./a//b/` is `a/b`, and the
/// project's own folder is nothing. Where a path does not begin in the project it stays as it is.
fn plain(path: &[u8]) -> Vec<u8> {
    if path.is_empty() || path.starts_with(b"/") {
        return path.to_vec();
    }
    let names: Vec<&[u8]> = path
        .split(|byte| *byte == b'/')
        .filter(|name| !matches!(*name, b"" | b"."))
        .collect();
    names.join(&b'/')
}

/// Takes out new folders that come as a whole where something in them never comes, such as a link
/// out of the project.
pub(super) fn leave_broken_wholes(
    project: &Project,
    changes: &mut Vec<Change>,
    wholes: &Wholes,
    left: &mut Applied,
) {
    let forbidden = Forbidden::of(project, changes, Origin::Elsewhere);
    let mut broken: BTreeMap<&BytesPath, BytesPath> = BTreeMap::new();
    for change in changes.iter() {
        if let Some((folder, _)) = wholes.with(&change.path)
            && let Some(reason) = forbidden.reason(change)
        {
            left.refused.add(Left {
                path: change.path.clone(),
                reason,
            });
            broken.entry(folder).or_insert_with(|| change.path.clone());
        }
    }
    let refused = broken.iter().map(|(folder, path)| Left {
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

/// Takes out what runs by itself on the person's machine, and folders that would be made for that
/// alone. What is in the project already is not spoken of.
pub(super) fn leave_auto_run(
    project: &Project,
    changes: &mut Vec<Change>,
    auto_run: &AutoRun,
    left: &mut Applied,
) {
    let wholes = Wholes::of(auto_run, changes.iter().map(Changed::from));
    let mut out: BTreeSet<BytesPath> = BTreeSet::new();
    let mut needed: BTreeSet<Vec<u8>> = BTreeSet::new();
    let mut emptied: BTreeSet<Vec<u8>> = BTreeSet::new();
    let mut kept: BTreeMap<BytesPath, LeftReason> = BTreeMap::new();
    let mut told: BTreeSet<&BytesPath> = BTreeSet::new();
    let forbidden = Forbidden::of(project, changes, Origin::Elsewhere);
    let is_in = |change: &Change| is_in(project, change);
    for change in changes.iter() {
        let is_folder = change.after.as_ref().is_some_and(Node::is_folder);
        if forbidden.reason(change).is_some() {
            // Whoever plans it says that it never is.
            mark_above(&mut emptied, change.path.as_bytes());
            continue;
        }
        // What comes as a whole is told of once.
        let (place, runs) = match wholes.with(&change.path) {
            Some((folder, runs)) => (folder, Some(runs.clone())),
            None => (&change.path, auto_run.runs(change.into())),
        };
        let Some(Runs { why, .. }) = runs.filter(|runs| runs.when == When::ByItself) else {
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
            left.refused.add(Left {
                path: place.clone(),
                reason: LeftReason::MayRun { why },
            });
        }
        if plan::is_turned(change) && !is_in(change) {
            kept.insert(
                change.path.clone(),
                LeftReason::InLeft {
                    folder: change.path.clone(),
                },
            );
        }
    }
    // A folder is not emptied for what does not take its place.
    for change in changes.iter().filter(|_| !kept.is_empty()) {
        if let Some((_, reason)) = plan::folder_of(&kept, &change.path)
            && out.insert(change.path.clone())
        {
            if is_in(change) {
                left.n_already += 1;
            } else {
                left.refused.add(Left {
                    path: change.path.clone(),
                    reason: reason.clone(),
                });
            }
        }
    }
    // A folder stands before what is in it: from behind, each is asked when all in it was.
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
                left.refused.add(Left {
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

/// Takes out that the old names of files go whose new names are not brought in, and the folders
/// that these are in. A rename is one thing to the person: half of it would be a loss. `all`: what
/// was chosen at first.
pub(super) fn leave_old_names(
    project: &Project,
    all: &[Change],
    changes: &mut Vec<Change>,
    left: &mut Applied,
) {
    let stays: BTreeSet<&BytesPath> = changes.iter().map(|change| &change.path).collect();
    let mut left_out: HashMap<Content<'_>, VecDeque<&BytesPath>> = HashMap::new();
    let forbidden = Forbidden::of(project, changes, Origin::Elsewhere);
    for change in all {
        let is_left = !stays.contains(&change.path) || forbidden.reason(change).is_some();
        if let Some(content) = change
            .after
            .as_ref()
            .and_then(Content::of)
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
            .and_then(Content::of)
            .and_then(|content| left_out.get_mut(&content));
        if let Some(to) = new_names.and_then(VecDeque::pop_front) {
            left.refused.add(Left {
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

/// By what a file or link is known under another name.
#[derive(PartialEq, Eq, Hash)]
enum Content<'a> {
    File(ObjectId),
    Link(&'a BytesPath),
}

impl<'a> Content<'a> {
    fn of(node: &'a Node) -> Option<Self> {
        match node {
            // Empty files are all alike.
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
