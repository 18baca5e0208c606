//! Folders that git takes for repositories though they are not called `.git`: bare ones. Whoever
//! makes one in a project has the person's git obey its settings, as soon as that is asked for
//! anything in there.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use super::compare::Change;
use super::forbidden::folded;
use super::plan::names;
use super::project::Project;
use crate::root::split;

/// What git looks for in a folder. Links count like what they lead to, and the kind of the others
/// does not count: it may be another one later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Head,
    Objects,
    Refs,
    /// Stands for all but the first.
    CommonFolder,
}

impl Part {
    pub(super) fn of(name: &[u8]) -> Option<Self> {
        match folded(name).as_str() {
            "head" => Some(Self::Head),
            "objects" => Some(Self::Objects),
            "refs" => Some(Self::Refs),
            "commondir" | "common~1" => Some(Self::CommonFolder),
            _ => None,
        }
    }
}

/// Whether a folder with these parts is a repository.
pub(super) fn is_bare(parts: &BTreeSet<Part>) -> bool {
    let has = |part| parts.contains(&part);
    has(Part::Head) && (has(Part::CommonFolder) || has(Part::Objects) && has(Part::Refs))
}

/// What would make folders repositories that are none yet.
#[derive(Debug, Default)]
pub(super) struct NewParts(BTreeMap<String, (Vec<u8>, BTreeSet<Part>)>);

impl NewParts {
    /// Returns what of the changes would do it, together with what stands in the project. What goes
    /// away does not count: it may stay.
    pub(super) fn of(project: &Project, changes: &[Change]) -> Self {
        let there = changes
            .iter()
            .filter(|change| change.after.is_some())
            .map(|change| change.path.as_bytes());
        Self::among(there, |folder| parts_in(project, folder))
    }

    /// The same for paths that are new or changed; `here` are the parts that a folder has without
    /// them.
    pub(super) fn among<'a>(
        paths: impl Iterator<Item = &'a [u8]>,
        here: impl Fn(&[u8]) -> BTreeSet<Part>,
    ) -> Self {
        let mut added: BTreeMap<String, (&[u8], BTreeSet<Part>)> = BTreeMap::new();
        for (folder, part) in paths.flat_map(parts_of) {
            added
                .entry(folded_path(folder))
                .or_insert_with(|| (folder, BTreeSet::new()))
                .1
                .insert(part);
        }
        let mut new = BTreeMap::new();
        for (key, (folder, parts)) in added {
            let here = here(folder);
            if !is_bare(&here) && is_bare(&here.union(&parts).copied().collect()) {
                new.insert(
                    key,
                    (folder.to_vec(), parts.difference(&here).copied().collect()),
                );
            }
        }
        Self(new)
    }

    pub(super) fn folders(&self) -> impl Iterator<Item = &[u8]> {
        self.0.values().map(|(folder, _)| folder.as_slice())
    }

    /// Forgets folders.
    pub(super) fn retain(&mut self, keep: impl Fn(&[u8]) -> bool) {
        self.0.retain(|_, (folder, _)| keep(folder));
    }

    /// Whether something is such a part, or lies in one.
    pub(super) fn has(&self, path: &[u8]) -> bool {
        !self.0.is_empty()
            && parts_of(path).any(|(folder, part)| {
                self.0
                    .get(&folded_path(folder))
                    .is_some_and(|(_, new)| new.contains(&part))
            })
    }
}

/// Returns the folders on the way of a path in which it is a part of a repository, or lies in one.
pub(super) fn parts_of(path: &[u8]) -> impl Iterator<Item = (&[u8], Part)> {
    let mut rest = path;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let (folder, name) = split(rest);
            rest = folder;
            if let Some(part) = Part::of(name) {
                return Some((folder, part));
            }
        }
        None
    })
}

fn parts_in(project: &Project, folder: &[u8]) -> BTreeSet<Part> {
    let names = project.list(folder).and_then(names).unwrap_or_default();
    names.iter().filter_map(|name| Part::of(name)).collect()
}

/// Two folders may be one to a file system.
pub(super) fn folded_path(path: &[u8]) -> String {
    path.split(|byte| *byte == b'/')
        .map(folded)
        .collect::<Vec<_>>()
        .join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(here: &[&str], added: &[&str], expected: &[&str]) {
        let parts = |folder: &[u8]| {
            let names = here
                .iter()
                .map(|path| split(path.as_bytes()))
                .filter(|(above, _)| *above == folder);
            names.filter_map(|(_, name)| Part::of(name)).collect()
        };
        let new = NewParts::among(added.iter().map(|path| path.as_bytes()), parts);
        let found: Vec<&str> = added
            .iter()
            .copied()
            .filter(|path| new.has(path.as_bytes()))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_makes_a_folder_a_repository_is_found_and_nothing_else() {
        let whole = ["a/HEAD", "a/config", "a/objects/x", "a/refs/y"];
        check(&[], &whole, &["a/HEAD", "a/objects/x", "a/refs/y"]);
        check(
            &[],
            &["HEAD", "objects/x", "refs/y"],
            &["HEAD", "objects/x", "refs/y"],
        );
        check(&[], &["a/HEAD", "a/commondir"], &["a/HEAD", "a/commondir"]);
        check(
            &["a/objects", "a/refs"],
            &["a/HEAD", "a/objects/sprite"],
            &["a/HEAD"],
        );
        check(&["a/HEAD", "a/refs"], &["a/objects"], &["a/objects"]);
        check(
            &["A/objects"],
            &["a/Head", "A/objects/x", "a/refs."],
            &["a/Head", "A/objects/x", "a/refs."],
        );
        // What was one goes on to be one, and what is none stays none.
        check(&["a/HEAD", "a/objects", "a/refs"], &whole, &[]);
        check(&["a/HEAD", "a/objects", "a/refs"], &["a/commondir"], &[]);
        check(&[], &["a/HEAD", "a/objects/x", "b/refs/y"], &[]);
        check(&["a/objects"], &["a/objects/refs", "a/refs/HEAD"], &[]);
    }
}
