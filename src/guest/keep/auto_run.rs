//! Which files of a project may run on the user's machine later, and whether they run without being
//! asked for: by name, by the user's settings, and by files of the project that lead programs to
//! them. This only advises.

mod ranking;
mod references;
mod whole_folders;

use ignore::gitignore::Gitignore;

pub(super) use self::ranking::Ranking;
use self::references::References;
pub(super) use self::whole_folders::WholeFolders;
use super::Error;
use super::Node;
use super::Project;
use super::compare::Change;
use super::find::patterns;
use super::git;
use crate::auto_run_names::Group;
use crate::auto_run_names::READ_ONLY;
use crate::auto_run_names::auto_run_group;
use crate::root::as_path;
use crate::root::join;
use podbay_wire::BytesPath;
use podbay_wire::keep::ChangeKind;
use podbay_wire::keep::EntryType;
use podbay_wire::keep::MayRun;
use podbay_wire::keep::NamedList;
use podbay_wire::keep::PathChange;
use podbay_wire::keep::RunTrigger;

/// The reason that is shown for a file that the user's own settings name. The host adds to those
/// what it read around the project.
const BY_SETTING: &str = "the setting `sandbox.auto_run` names it, or the git config of a \
    repository around the project does";

/// What decides besides the built-in names.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AutoRunSources<'a> {
    /// The user's patterns.
    pub(super) patterns: &'a [String],
    /// Path of the project's folder on the user's machine; empty: unknown.
    pub(super) place: &'a [u8],
    /// Paths of the project that git obeys because of settings outside of it.
    pub(super) obeyed: &'a [BytesPath],
}

/// The program that runs or obeys a file, for messages, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RunReason {
    pub(super) why: String,
    pub(super) when: RunTrigger,
}

impl RunReason {
    fn by(group: &Group) -> Self {
        Self {
            why: group.why(),
            when: group.when,
        }
    }

    fn by_itself(why: &str) -> Self {
        Self {
            why: why.to_owned(),
            when: RunTrigger::ByItself,
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

/// A changed path.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChangedPath<'a> {
    pub(super) path: &'a BytesPath,
    /// What is there now; `None`: nothing.
    entry: Option<EntryType>,
    /// Whether no entry of this type was there before.
    is_new: bool,
}

impl<'a> From<&'a Change> for ChangedPath<'a> {
    fn from(change: &'a Change) -> Self {
        let entry = change.after.as_ref().map(Node::entry_type);
        Self {
            path: &change.path,
            entry,
            is_new: change.before.as_ref().map(Node::entry_type) != entry,
        }
    }
}

impl<'a> From<&'a PathChange> for ChangedPath<'a> {
    fn from(change: &'a PathChange) -> Self {
        let entry = (change.what != ChangeKind::Deleted).then_some(change.entry);
        let is_new = matches!(
            change.what,
            ChangeKind::Created | ChangeKind::Renamed { .. } | ChangeKind::Type { .. }
        );
        Self {
            path: &change.path,
            entry,
            is_new,
        }
    }
}

/// Decides which files may run on the user's machine later.
#[derive(Debug)]
pub(super) struct AutoRun {
    by_setting: Gitignore,
    leads: References,
}

impl AutoRun {
    /// Searches the project for what leads programs to its files.
    pub(super) fn of(
        project: &git::UntrustedFolder,
        known: AutoRunSources<'_>,
    ) -> Result<Self, Error> {
        // The built-in table says when those run.
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
            leads: References::default(),
        };
        let leads = References::of(project, known.place, known.obeyed, |link| {
            by_name.runs_at(link)
        });
        Ok(Self { leads, ..by_name })
    }

    /// Does the same for an opened project folder.
    pub(super) fn in_project(project: &Project, known: AutoRunSources<'_>) -> Result<Self, Error> {
        let failed = |source| Error::Project {
            doing: "look through",
            path: BytesPath::from("."),
            source,
        };
        Self::of(
            &git::UntrustedFolder::of(project.list(b"").map_err(failed)?),
            known,
        )
    }

    /// Decides by name alone.
    pub(super) fn by_name() -> Self {
        Self {
            by_setting: Gitignore::empty(),
            leads: References::default(),
        }
    }

    /// Whether git may be led to more files than are known.
    pub(super) fn is_cut(&self) -> bool {
        self.leads.is_cut
    }

    /// Returns which program runs what a change leaves there, and when. New folders that are
    /// applied as a whole are judged by [`WholeFolders`].
    pub(super) fn runs(&self, change: ChangedPath<'_>) -> Option<RunReason> {
        match change.entry? {
            EntryType::Folder => None,
            EntryType::Link => self.runs_at(change.path),
            _ => self.runs_as_file(change.path),
        }
    }

    /// Does the same for a path that is no link.
    pub(super) fn runs_as_file(&self, path: &BytesPath) -> Option<RunReason> {
        self.reason_at(path, false)
    }

    /// Does the same for a path of unknown type: it may be a link, whose target is judged by the
    /// link's name.
    pub(super) fn runs_at(&self, path: &BytesPath) -> Option<RunReason> {
        let within = BytesPath::from_bytes(join(path.as_bytes(), b"x"));
        let all = [
            auto_run_group(&within).map(RunReason::by),
            self.reason_at(path, true),
            self.leads.below(path.as_bytes()),
        ];
        sooner(all)
    }

    fn reason_at(&self, path: &BytesPath, may_be_folder: bool) -> Option<RunReason> {
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
            auto_run_group(path).map(RunReason::by),
            is_set.then(|| RunReason::by_itself(BY_SETTING)),
            self.leads.to(path.as_bytes()),
        ];
        sooner(all)
    }

    /// Names all changed files that may run; a whole folder once.
    pub(super) fn named<'a>(
        &self,
        changes: impl Iterator<Item = ChangedPath<'a>> + Clone,
    ) -> NamedList<MayRun> {
        let wholes = WholeFolders::of(self, changes.clone());
        let mut foremost = Ranking::default();
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

/// Returns the first that runs without being asked for, else the first.
fn sooner(all: [Option<RunReason>; 3]) -> Option<RunReason> {
    let mut found = None;
    for runs in all.into_iter().flatten() {
        if runs.when == RunTrigger::ByItself {
            return Some(runs);
        }
        found = found.or(Some(runs));
    }
    found
}

#[cfg(test)]
mod tests;
