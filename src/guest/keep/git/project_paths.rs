//! Resolves paths from git config, `.git` files and hooks to paths in the project.

use std::cell::Cell;

use super::config;
use super::config::ConfigEntry;
use super::link_path::LinkPath;
use super::link_path::PathEnd;
use super::repository_layout::work_tree;
use super::untrusted_folder::FileKind;
use super::untrusted_folder::UntrustedFolder;
use crate::root::join;
use crate::root::split;

/// Longest config file that is read.
pub(super) const MAX_CONFIG: u64 = 1 << 20;

/// Most suffixes of a path that are looked for in a project.
const MAX_PARTS: usize = 64;

/// Most paths that are looked for by all of their suffixes.
const MAX_LOOKS: usize = 2000;

/// A project's folder, with its path on the user's machine, if known.
#[derive(Debug)]
pub(super) struct ProjectPaths<'a> {
    pub(super) project: &'a UntrustedFolder,
    pub(super) place: &'a [u8],
    n_looks: Cell<usize>,
}

impl<'a> ProjectPaths<'a> {
    pub(super) fn new(project: &'a UntrustedFolder, place: &'a [u8]) -> Self {
        Self {
            project,
            place,
            n_looks: Cell::default(),
        }
    }

    /// Returns where a path leads that is written somewhere, relative to that folder; `None`: out
    /// of the project.
    pub(super) fn inside(&self, from: &[u8], said: &[u8], in_project: bool) -> Option<Vec<u8>> {
        if said.starts_with(b"~") || said.starts_with(b"%(") {
            return None;
        }
        if !said.starts_with(b"/") {
            return work_tree(from, said);
        }
        let rest = said
            .strip_prefix(self.place)
            .filter(|_| in_project && !self.place.is_empty())?;
        rest.strip_prefix(b"/")
            .and_then(|rest| work_tree(b"", rest))
    }

    /// Returns where a path leads in the project, however it is spelled, also out of the project
    /// and in again. `~` counts as any folder above the project.
    pub(super) fn resolve(&self, from: &[u8], said: &[u8]) -> Option<Vec<u8>> {
        if said.starts_with(b"%(") || said.starts_with(b"~") && !said.starts_with(b"~/") {
            return None;
        }
        if self.place.is_empty() {
            return work_tree(from, said).filter(|_| !said.starts_with(b"~"));
        }
        let place = self.place.strip_prefix(b"/")?;
        let in_place = |whole: Vec<u8>| {
            let rest = whole.strip_prefix(place)?;
            if rest.is_empty() {
                Some(Vec::new())
            } else {
                rest.strip_prefix(b"/").map(<[u8]>::to_vec)
            }
        };
        if let Some(rest) = said.strip_prefix(b"~/") {
            let homes = place
                .iter()
                .enumerate()
                .filter(|(_, byte)| **byte == b'/')
                .map(|(at, _)| &place[..at]);
            return homes
                .filter_map(|home| work_tree(home, rest))
                .find_map(in_place);
        }
        if said.starts_with(b"/") {
            let start = said.iter().position(|byte| *byte != b'/')?;
            return work_tree(b"", &said[start..]).and_then(in_place);
        }
        work_tree(&join(place, from), said).and_then(in_place)
    }

    /// Returns where in the project a path may lead though its text does not, as over a symbolic
    /// link to the project or to a folder above it, which is not visible here: the longest suffix
    /// of it that exists in the project, else what follows the name of the project's folder.
    pub(super) fn by_suffix(&self, said: &[u8]) -> Option<Vec<u8>> {
        let is_out = said.starts_with(b"/")
            || said.starts_with(b"~")
            || said.split(|byte| *byte == b'/').any(|part| part == b"..");
        if !is_out {
            return None;
        }
        let mut parts: Vec<&[u8]> = Vec::new();
        for part in said
            .split(|byte| *byte == b'/')
            .filter(|part| !matches!(*part, b"" | b"."))
        {
            match part {
                b".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        let ends = (1..parts.len()).map(|at| parts[at..].join(&b'/'));
        // Commands write these names, and each look-up costs a system call.
        self.n_looks.set(self.n_looks.get() + 1);
        let n_ends = if self.n_looks.get() > MAX_LOOKS {
            0
        } else {
            MAX_PARTS
        };
        let known = ends.take(n_ends).find(|end| {
            matches!(
                self.project.kind(end),
                Some(FileKind::Folder | FileKind::File)
            )
        });
        let (_, name) = split(self.place);
        let behind = || {
            parts
                .iter()
                .rposition(|part| *part == name)
                .map(|at| parts[at + 1..].join(&b'/'))
        };
        known.or_else(behind)
    }

    /// Returns the config files of the repository outside of the project that a `.git` file leads
    /// to, judged by its text.
    pub(super) fn outside(&self, tree: &[u8], to: &[u8]) -> Vec<u8> {
        let common = if split(split(to).0).1 == b"worktrees" {
            split(split(to).0).0
        } else {
            to
        };
        let config = join(common, b"config");
        self.whole(tree, &config).unwrap_or(config)
    }

    /// Returns a path of the project as an absolute one, judged by its text; `None`: the project's
    /// path is unknown.
    pub(super) fn whole(&self, from: &[u8], said: &[u8]) -> Option<Vec<u8>> {
        let whole = if said.starts_with(b"/") {
            work_tree(b"", &said[1..])?
        } else {
            work_tree(&join(self.place.strip_prefix(b"/")?, from), said)?
        };
        Some([b"/", whole.as_slice()].concat())
    }

    /// Returns where a repository says its working tree is, as far as that is in the project: the
    /// value that git uses last. It is in a separate file if the worktree has a config of its own.
    pub(super) fn configured_trees(&self, git: &[u8]) -> Vec<Vec<u8>> {
        let mut trees = Vec::new();
        for name in [&b"config"[..], b"config.worktree"] {
            let entries = self.entries(&join(git, name));
            let said = entries
                .iter()
                .filter(|entry| entry.is("core", "worktree"))
                .filter_map(|entry| entry.value.as_deref());
            trees.extend(
                said.filter_map(|said| self.resolve(git, said).or_else(|| self.by_suffix(said))),
            );
        }
        trees
    }

    pub(super) fn entries(&self, file: &[u8]) -> Vec<ConfigEntry> {
        let PathEnd::Inside(file) = LinkPath::of(self.project, self.place, file).end else {
            return Vec::new();
        };
        let text = self.project.read(&file, MAX_CONFIG).ok().flatten();
        text.and_then(|text| config::parse(&text).ok())
            .unwrap_or_default()
    }
}
