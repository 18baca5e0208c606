//! Which files of a project may run on the person's machine later, and whether by themselves: by
//! their names, by the person's settings, and by what is in the project itself and leads programs
//! to them.

mod foremost;
mod leads;
mod wholes;

use ignore::gitignore::Gitignore;

pub(super) use self::foremost::Foremost;
use self::leads::Leads;
pub(super) use self::wholes::Wholes;
use super::Error;
use super::Node;
use super::Project;
use super::compare::Change;
use super::find::patterns;
use super::git;
use crate::names_that_run::Group;
use crate::names_that_run::READ_ONLY;
use crate::names_that_run::names_that_run;
use crate::root::as_path;
use crate::root::join;
use podbay_wire::BytesPath;
use podbay_wire::keep::EntryType;
use podbay_wire::keep::MayRun;
use podbay_wire::keep::Named;
use podbay_wire::keep::PathChange;
use podbay_wire::keep::What;
use podbay_wire::keep::When;

/// What is said of a file that the person's own settings name; the host adds to them what it read
/// around the project.
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

/// That a program obeys a file: which one, in words, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Runs {
    pub(super) why: String,
    pub(super) when: When,
}

impl Runs {
    fn by(group: &Group) -> Self {
        Self {
            why: group.why(),
            when: group.when,
        }
    }

    fn by_itself(why: &str) -> Self {
        Self {
            why: why.to_owned(),
            when: When::ByItself,
        }
    }

    pub(super) fn of(self, path: &BytesPath) -> MayRun {
        MayRun {
            path: path.clone(),
            why: self.why,
            when: self.when,
        }
    }
}

/// A path that changed, as far as it counts here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Changed<'a> {
    pub(super) path: &'a BytesPath,
    /// What is there now; `None`: nothing.
    entry: Option<EntryType>,
    /// Nothing like it was there before.
    is_new: bool,
}

impl<'a> From<&'a Change> for Changed<'a> {
    fn from(change: &'a Change) -> Self {
        let entry = change.after.as_ref().map(Node::entry_type);
        Self {
            path: &change.path,
            entry,
            is_new: change.before.as_ref().map(Node::entry_type) != entry,
        }
    }
}

impl<'a> From<&'a PathChange> for Changed<'a> {
    fn from(change: &'a PathChange) -> Self {
        let entry = (change.what != What::Deleted).then_some(change.entry);
        let is_new = matches!(
            change.what,
            What::Created | What::Renamed { .. } | What::Type { .. }
        );
        Self {
            path: &change.path,
            entry,
            is_new,
        }
    }
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
        // When those run, the table says.
        let own: Vec<String> = known
            .patterns
            .iter()
            .filter(|pattern| !READ_ONLY.contains(&pattern.as_str()))
            .cloned()
            .collect();
        let refused = |error: std::io::Error| Error::Pattern {
            pattern: BytesPath::from_bytes(own.join(", ")),
            problem: error.to_string(),
        };
        let by_name = Self {
            by_setting: patterns(&own).map_err(refused)?,
            leads: Leads::default(),
        };
        let leads = Leads::of(project, known.place, known.obeyed, |link| {
            by_name.runs_at(link)
        });
        Ok(Self { leads, ..by_name })
    }

    /// The same by the project's folder.
    pub(super) fn in_project(project: &Project, known: Known<'_>) -> Result<Self, Error> {
        let failed = |source| Error::Project {
            doing: "look through",
            path: BytesPath::from("."),
            source,
        };
        Self::of(&git::Folder::of(project.list(b"").map_err(failed)?), known)
    }

    /// Knows the names alone.
    pub(super) fn by_name() -> Self {
        Self {
            by_setting: Gitignore::empty(),
            leads: Leads::default(),
        }
    }

    /// Whether git may be led to more than is known.
    pub(super) fn is_cut(&self) -> bool {
        self.leads.is_cut
    }

    /// Returns which program obeys what a change leaves there, and whether by itself, if one does.
    /// What comes as a whole, [`Wholes`] know.
    pub(super) fn runs(&self, change: Changed<'_>) -> Option<Runs> {
        match change.entry? {
            EntryType::Folder => None,
            EntryType::Link => self.runs_at(change.path),
            _ => self.runs_as_file(change.path),
        }
    }

    /// The same for what has this path and is no link.
    pub(super) fn runs_as_file(&self, path: &BytesPath) -> Option<Runs> {
        self.runs_there(path, false)
    }

    /// The same for what has this path, of which nothing else is known: it may be a link, and what
    /// that leads to counts by the link's name.
    pub(super) fn runs_at(&self, path: &BytesPath) -> Option<Runs> {
        let within = BytesPath::from_bytes(join(path.as_bytes(), b"x"));
        let all = [
            names_that_run(&within).map(Runs::by),
            self.runs_there(path, true),
            self.leads.below(path.as_bytes()),
        ];
        sooner(all)
    }

    fn runs_there(&self, path: &BytesPath, may_be_folder: bool) -> Option<Runs> {
        let full = [b"/", path.as_bytes()].concat();
        let is_set = {
            let as_file = self
                .by_setting
                .matched_path_or_any_parents(as_path(&full), false);
            as_file.is_ignore()
                || may_be_folder
                    && self
                        .by_setting
                        .matched_path_or_any_parents(as_path(&full), true)
                        .is_ignore()
        };
        let all = [
            names_that_run(path).map(Runs::by),
            is_set.then(|| Runs::by_itself(BY_SETTING)),
            self.leads.to(path.as_bytes()),
        ];
        sooner(all)
    }

    /// Names all that may run of what changed; what comes as a whole once.
    pub(super) fn named<'a>(
        &self,
        changes: impl Iterator<Item = Changed<'a>> + Clone,
    ) -> Named<MayRun> {
        let wholes = Wholes::of(self, changes.clone());
        let mut foremost = Foremost::default();
        for change in changes {
            match wholes.with(change.path) {
                Some((folder, runs)) if folder == change.path => {
                    foremost.add(runs.clone().of(folder), false);
                }
                Some(_) => {}
                None => {
                    if let Some(runs) = self.runs(change) {
                        foremost.add(runs.of(change.path), !change.is_new);
                    }
                }
            }
        }
        foremost.named()
    }
}

/// Returns the first that runs by itself, else the first.
fn sooner(all: [Option<Runs>; 3]) -> Option<Runs> {
    let mut found = None;
    for runs in all.into_iter().flatten() {
        if runs.when == When::ByItself {
            return Some(runs);
        }
        found = found.or(Some(runs));
    }
    found
}

#[cfg(test)]
mod tests;
