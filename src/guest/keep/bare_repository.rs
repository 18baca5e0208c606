//! Bare repositories: folders that git treats as repositories though they are not called `.git`. A
//! session that makes one in the project has the user's git obey its settings as soon as git runs
//! in there.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use super::compare::Change;
use super::forbidden::folded;
use super::plan::names;
use super::project::Project;
use crate::root::split;

/// The entries that git looks for in a repository's folder. Links count like their targets, and the
/// type of other entries does not matter: it may change later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RepositoryPart {
    Head,
    Objects,
    Refs,
    /// Stands for all but the first.
    CommonFolder,
}

impl RepositoryPart {
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
pub(super) fn is_bare(parts: &BTreeSet<RepositoryPart>) -> bool {
    let has = |part| parts.contains(&part);
    has(RepositoryPart::Head)
        && (has(RepositoryPart::CommonFolder)
            || has(RepositoryPart::Objects) && has(RepositoryPart::Refs))
}

/// Parts that would turn folders into repositories.
#[derive(Debug, Default)]
pub(super) struct NewRepositoryParts(BTreeMap<String, (Vec<u8>, BTreeSet<RepositoryPart>)>);

impl NewRepositoryParts {
    /// Returns those of the changes that would do so, together with what exists in the project.
    /// Removals do not count, since they may be left out.
    pub(super) fn of(project: &Project, changes: &[Change]) -> Self {
        let there = changes
            .iter()
            .filter(|change| change.after.is_some())
            .map(|change| change.path.as_bytes());
        Self::among(there, |folder| parts_in(project, folder))
    }

    /// Does the same for paths that are new or changed; `here` are the parts that a folder has
    /// without them.
    pub(super) fn among<'a>(
        paths: impl Iterator<Item = &'a [u8]>,
        here: impl Fn(&[u8]) -> BTreeSet<RepositoryPart>,
    ) -> Self {
        let mut added: BTreeMap<String, (&[u8], BTreeSet<RepositoryPart>)> = BTreeMap::new();
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

    /// Keeps only some of the folders.
    pub(super) fn retain(&mut self, keep: impl Fn(&[u8]) -> bool) {
        self.0.retain(|_, (folder, _)| keep(folder));
    }

    /// Whether a path is such a part, or lies in one.
    pub(super) fn has(&self, path: &[u8]) -> bool {
        !self.0.is_empty()
            && parts_of(path).any(|(folder, part)| {
                self.0
                    .get(&folded_path(folder))
                    .is_some_and(|(_, new)| new.contains(&part))
            })
    }
}

/// Returns the folders above a path in which it is a part of a repository, or lies in one.
pub(super) fn parts_of(path: &[u8]) -> impl Iterator<Item = (&[u8], RepositoryPart)> {
    let mut rest = path;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let (folder, name) = split(rest);
            rest = folder;
            if let Some(part) = RepositoryPart::of(name) {
                return Some((folder, part));
            }
        }
        None
    })
}

fn parts_in(project: &Project, folder: &[u8]) -> BTreeSet<RepositoryPart> {
    let names = project.list(folder).and_then(names).unwrap_or_default();
    names
        .iter()
        .filter_map(|name| RepositoryPart::of(name))
        .collect()
}

/// File systems may treat two folders as one.
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
            names
                .filter_map(|(_, name)| RepositoryPart::of(name))
                .collect()
        };
        let new = NewRepositoryParts::among(added.iter().map(|path| path.as_bytes()), parts);
        let found: Vec<&str> = added
            .iter()
            .copied()
            .filter(|path| new.has(path.as_bytes()))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn exactly_the_parts_that_make_a_folder_a_repository_are_found() {
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
        // What was a repository stays one, and what is none stays none.
        check(&["a/HEAD", "a/objects", "a/refs"], &whole, &[]);
        check(&["a/HEAD", "a/objects", "a/refs"], &["a/commondir"], &[]);
        check(&[], &["a/HEAD", "a/objects/x", "b/refs/y"], &[]);
        check(&["a/objects"], &["a/objects/refs", "a/refs/HEAD"], &[]);
    }
}
