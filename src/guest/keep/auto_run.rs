//! Which files of a project may run on the person's machine later: by their names, by the person's settings, and by what is in the project
//! itself and leads programs to them.

mod foremost;
mod leads;

use ignore::gitignore::Gitignore;

pub(super) use self::foremost::Foremost;
use self::leads::Leads;
use super::Error;
use super::Node;
use super::Project;
use super::compare::Change;
use super::find::patterns;
use super::git;
use crate::root::as_path;
use crate::root::join;
use podbay_wire::BytesPath;
use podbay_wire::may_run;

/// What is said of a file that the person's own settings name; the host adds to them what it read around the project.
const BY_SETTING: &str = "the setting `sandbox.auto_run` names it, or git's settings of a repository around the project do";

/// What counts beside the names that are known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known<'a> {
    /// Patterns of the person's.
    pub(super) patterns: &'a [String],
    /// Where the project's folder is on the person's machine; empty: nobody knows.
    pub(super) place: &'a [u8],
    /// What git obeys in the project by settings that are not in it.
    pub(super) obeyed: &'a [BytesPath],
}

/// Knows what may run on the person's machine later.
#[derive(Debug)]
pub(super) struct AutoRun {
    by_setting: Gitignore,
    leads: Leads,
}

impl AutoRun {
    /// Looks through the project for what leads programs to its files.
    pub(super) fn of(project: &git::Folder, known: Known<'_>) -> Result<Self, Error> {
        let refused = |error: std::io::Error| {
            let pattern = BytesPath::from_bytes(known.patterns.join(", "));
            Error::Pattern { pattern, problem: error.to_string() }
        };
        let by_name = Self { by_setting: patterns(known.patterns).map_err(refused)?, leads: Leads::default() };
        let leads = Leads::of(project, known.place, known.obeyed, |link| by_name.of_path(link));
        Ok(Self { leads, ..by_name })
    }

    /// The same by the project's folder.
    pub(super) fn in_project(project: &Project, known: Known<'_>) -> Result<Self, Error> {
        let failed = |source| Error::Project { doing: "look through", path: BytesPath::from("."), source };
        Self::of(&git::Folder::of(project.list(b"").map_err(failed)?), known)
    }

    /// Whether git may be led to more than is known.
    pub(super) fn is_cut(&self) -> bool {
        self.leads.is_cut
    }

    /// Returns why what a change leaves there may run, if it may.
    pub(super) fn why(&self, change: &Change) -> Option<String> {
        match &change.after {
            None | Some(Node::Folder { .. }) => None,
            Some(Node::Link { .. }) => self.of_path(&change.path),
            Some(_) => self.of_file(&change.path),
        }
    }

    /// The same for what has this path and is no link.
    pub(super) fn of_file(&self, path: &BytesPath) -> Option<String> {
        self.why_there(path, false)
    }

    /// The same for what has this path, of which nothing else is known: it may be a link, and what that leads to counts by the link's name.
    pub(super) fn of_path(&self, path: &BytesPath) -> Option<String> {
        let within = BytesPath::from_bytes(join(path.as_bytes(), b"x"));
        let named = may_run(&within).map(ToOwned::to_owned);
        named.or_else(|| self.why_there(path, true)).or_else(|| self.leads.below(path.as_bytes()))
    }

    fn why_there(&self, path: &BytesPath, may_be_folder: bool) -> Option<String> {
        let full = [b"/", path.as_bytes()].concat();
        let by_setting = || {
            let as_file = self.by_setting.matched_path_or_any_parents(as_path(&full), false);
            as_file.is_ignore() || may_be_folder && self.by_setting.matched_path_or_any_parents(as_path(&full), true).is_ignore()
        };
        let named = may_run(path).map(ToOwned::to_owned).or_else(|| by_setting().then(|| BY_SETTING.to_owned()));
        named.or_else(|| self.leads.to(path.as_bytes()))
    }
}

#[cfg(test)]
mod tests;
