use serde::Serialize;

use super::Error;
use super::ErrorReport;
use super::agents::AgentReport;
use super::exit_code;
use super::project_changes::changed_path;
use super::project_changes::of_reviewed;
use super::project_changes::of_tools;
use super::project_changes::of_turn;
use super::tried_hosts::TriedHosts;
use podbay_agent::Outcome;
use podbay_event::Kind;
use podbay_event::LimitKind;
use podbay_event::PathChanged;
use podbay_event::ProjectChanges;
use podbay_event::RunStatus;
use podbay_event::Secret;
use podbay_event::SessionId;
use podbay_event::Usage;
use podbay_sandbox::git;
use podbay_tools::FileChangeKind;
use podbay_wire::keep::IndexImport;
use podbay_wire::keep::MayRun;
use podbay_wire::keep::NamedList;
use podbay_wire::keep::PathChange;
use podbay_wire::keep::PendingChanges;
use podbay_wire::keep::TurnEnded;

/// The result of a run, as `--output json` prints it. Keys may be added, never changed: scripts
/// depend on them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    pub status: RunStatus,
    pub exit_code: u8,
    pub session: Option<SessionId>,
    /// The model's last words.
    pub response: String,
    pub model: Option<String>,
    pub turns: u32,
    pub tool_calls: u32,
    pub limit: Option<LimitKind>,
    pub usage: Usage,
    pub changes: Changes,
    /// The review that waits for the user, where changes were pending and there are some.
    pub review: Option<String>,
    /// Whether what was pending was applied at once.
    pub applied: bool,
    /// New and changed files that may run on the user's machine later, each with the reason.
    pub may_run: Vec<String>,
    /// Whether that is known; where it is not, nobody looked, and `may_run` is empty, or hooks or
    /// settings of git name more than is looked at.
    pub may_run_known: bool,
    /// What the session did with git and what became of it; `null` where nothing is known of it.
    pub git: Option<GitReport>,
    /// Branches and tags that wait with the review, where changes were pending.
    pub commits: Vec<GitBranch>,
    /// The hosts that the sandbox tried to reach; `null` where it tried none.
    pub network: Option<TriedHosts>,
    /// The last plan of the session, where plan mode is on at the end of the run.
    pub plan: Option<PlanReport>,
    /// The agents that the model started, and how each ended.
    pub agents: Vec<AgentReport>,
    pub denied: Vec<String>,
    pub warnings: Vec<String>,
    pub error: Option<ErrorReport>,
    pub duration_ms: u64,
    /// What waits, for people; scripts ask for the review.
    #[serde(skip)]
    pub pending: Option<PendingChanges>,
    /// The same changes, as the session's log has them.
    #[serde(skip)]
    pub(super) changed: ProjectChanges,
}

/// A plan that waits for the user's approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanReport {
    /// From 1; each change of a session's plan is a version of its own.
    pub version: u32,
    /// Markdown.
    pub text: String,
}

/// What of a session's git is the user's now, in all repositories of the project together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GitReport {
    pub branches: Vec<GitBranch>,
    /// What new stashes say of themselves.
    pub stashes: Vec<String>,
    /// What is checked out at the top now, where that is another branch.
    pub head: Option<String>,
    /// Whether what is staged is as the session left it.
    pub staged: bool,
    /// What stays in the session's own folder, each with the reason.
    pub not_taken: Vec<String>,
    /// Repositories that the session made, each with where it is now.
    pub moved_aside: Vec<String>,
}

/// A branch or a tag that is as the session left it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GitBranch {
    /// The repository's place in the project.
    pub repository: String,
    pub name: String,
    /// `null`: it is new.
    pub old: Option<String>,
    pub new: String,
}

impl GitReport {
    fn of(ended: &git::Ended) -> Self {
        let mut report = Self {
            not_taken: ended.not_taken(),
            moved_aside: ended.moved_aside(),
            ..Self::default()
        };
        for taken in ended.taken() {
            let repository = taken.path.to_string();
            report
                .branches
                .extend(taken.moved.iter().map(|moved| GitBranch {
                    repository: repository.clone(),
                    name: moved.name.to_string(),
                    old: moved.old.clone(),
                    new: moved.new.clone(),
                }));
            report.stashes.extend(taken.stashes.iter().cloned());
            report.staged |= taken.index == IndexImport::Taken;
            if repository == ".git" {
                report.head.clone_from(&taken.head);
            }
        }
        report
    }
}

/// Files that the run changed, by file tools and commands; where what it was like before could not
/// be kept, by file tools alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Changes {
    pub created: Vec<String>,
    pub modified: Vec<String>,
    pub deleted: Vec<String>,
}

/// What shows all that turns changed, and what shows what waits.
pub const UNDO_DIFF: &str = "podbay undo diff";
const REVIEW_DIFF: &str = "podbay review diff";

/// Returns what may run on the user's machine in words, each file with the reason; `shown` is the
/// command that shows those, too, that are only counted.
pub fn may_run_words(may_run: &NamedList<MayRun>, shown: &str) -> Vec<String> {
    let mut words: Vec<String> = may_run
        .first
        .iter()
        .map(|file| format!("{}: {}", file.path, file.why))
        .collect();
    let n_more = may_run.n.saturating_sub(may_run.first.len() as u64);
    match n_more {
        0 => {}
        _ if words.is_empty() => words.push(format!(
            "{n_more} files that are not named here: `{shown}` shows all that changed"
        )),
        _ => words.push(format!(
            "and {n_more} more: `{shown}` shows all that changed"
        )),
    }
    words
}

impl Report {
    /// Returns the report of a run that ended before the model was asked.
    pub fn failed(error: &Error, session: Option<SessionId>, duration_ms: u64) -> Self {
        Self {
            status: error.status(),
            exit_code: error.exit_code(),
            session,
            response: String::new(),
            model: None,
            turns: 0,
            tool_calls: 0,
            limit: matches!(error, Error::Late { .. }).then_some(LimitKind::Time),
            usage: Usage::default(),
            changes: Changes::default(),
            review: None,
            applied: false,
            may_run: Vec::new(),
            may_run_known: true,
            git: None,
            commits: Vec::new(),
            network: None,
            plan: None,
            agents: Vec::new(),
            denied: Vec::new(),
            warnings: Vec::new(),
            error: Some(error.report()),
            duration_ms,
            pending: None,
            changed: ProjectChanges::default(),
        }
    }

    /// Takes what was pending.
    pub(super) fn take_review(&mut self, pending: PendingChanges) {
        self.changes = Changes::default();
        self.changed = of_reviewed(&pending, true, REVIEW_DIFF);
        if pending.is_empty() {
            return;
        }
        for repository in &pending.git.repositories {
            self.commits
                .extend(repository.names.first.iter().map(|waiting| GitBranch {
                    repository: repository.path.to_string(),
                    name: waiting.name.to_string(),
                    old: waiting.old.clone(),
                    new: waiting.new.clone(),
                }));
        }
        self.review = self.session.as_ref().map(ToString::to_string);
        let paths = pending.changes.first.iter().map(|path| &path.change);
        self.take_paths(paths, pending.changes.n, REVIEW_DIFF);
        self.take_may_run(&pending.may_run, REVIEW_DIFF);
        self.may_run_known &= !pending.is_may_run_cut;
        self.pending = Some(pending);
    }

    /// Says that nobody knows yet what was pending.
    pub(super) fn lose_review(&mut self, error: &Error) {
        self.may_run_known = false;
        self.review = self.session.as_ref().map(ToString::to_string);
        if let Some(id) = &self.review {
            self.warnings.push(format!("what was changed is kept, and was not looked through: `podbay review diff {id}` does"));
        }
        self.fail(error);
    }

    /// Takes what became of the session's git.
    pub(super) fn take_git(&mut self, ended: Option<&git::Ended>) {
        self.git = ended.map(GitReport::of);
        let n_more: u64 = ended
            .iter()
            .flat_map(|ended| ended.taken())
            .map(|taken| taken.n_more.moved)
            .sum();
        if n_more > 0 {
            self.warnings.push(format!("{n_more} more branches and tags were imported than are listed; `git for-each-ref` shows them"));
        }
    }

    /// Takes what changed from one who has compared before and after. What is out of the project by
    /// now runs nowhere.
    pub(super) fn take_changes(&mut self, ended: &TurnEnded, git: Option<&git::Ended>) {
        let paths = ended.changes.first.iter().map(|path| &path.change);
        self.take_paths(paths, ended.changes.n, UNDO_DIFF);
        self.changed = of_turn(ended);
        let mut may_run = ended.may_run.clone();
        if let Some(git) = git {
            may_run.first.retain(|file| !git.has_moved(&file.path));
            may_run.n -= (ended.may_run.first.len() - may_run.first.len()) as u64;
        }
        self.take_may_run(&may_run, UNDO_DIFF);
        self.may_run_known &= !ended.is_may_run_cut;
        // Of so many nobody knows which of the rest went.
        if let Some(more) = self
            .may_run
            .last_mut()
            .filter(|_| may_run.n > may_run.first.len() as u64)
            && git.is_some_and(git::Ended::has_moved_more)
        {
            more.push_str(", with what is in repositories that were moved aside");
        }
    }

    /// Takes what was done with git that may run on the user's machine, unless it is named
    /// already.
    pub(super) fn take_committed(&mut self, ended: &git::Ended) {
        let is_named = |file: &MayRun| {
            let begin = format!("{}: ", file.path);
            self.may_run.iter().any(|line| line.starts_with(&begin))
        };
        let words = ended.may_run_words(|file| !is_named(file));
        self.may_run.extend(words);
    }

    /// `shown`: what shows all of them.
    fn take_paths<'a>(
        &mut self,
        paths: impl ExactSizeIterator<Item = &'a PathChange>,
        n: u64,
        shown: &str,
    ) {
        let n_more = n.saturating_sub(paths.len() as u64);
        let mut changes = Changes::default();
        for change in paths {
            let changed = changed_path(change, None);
            // Folders that were made or went are not named.
            if changed.is_folder && changed.change != PathChanged::Modified {
                continue;
            }
            changes.deleted.extend(changed.from);
            match changed.change {
                PathChanged::Created | PathChanged::Renamed => changes.created.push(changed.path),
                PathChanged::Modified => changes.modified.push(changed.path),
                PathChanged::Deleted => changes.deleted.push(changed.path),
            }
        }
        for list in [
            &mut changes.created,
            &mut changes.modified,
            &mut changes.deleted,
        ] {
            list.sort();
        }
        self.changes = changes;
        if n_more > 0 {
            self.warnings.push(format!(
                "{n_more} more files changed than are listed; `{shown}` shows them"
            ));
        }
    }

    fn take_may_run(&mut self, may_run: &NamedList<MayRun>, shown: &str) {
        self.may_run = may_run_words(may_run, shown);
    }

    /// Says by the exit code whether an apply left something out; a failure stays what it is.
    pub(super) fn note_left_out(&mut self, is_whole: bool) {
        if matches!(self.exit_code, exit_code::DONE | exit_code::LEFT_OUT) && self.error.is_none() {
            self.exit_code = if is_whole {
                exit_code::DONE
            } else {
                exit_code::LEFT_OUT
            };
        }
    }

    /// Turns a success into this failure; another failure stays what it is.
    pub(super) fn fail(&mut self, error: &Error) {
        if matches!(self.exit_code, exit_code::DONE | exit_code::LEFT_OUT) && self.error.is_none() {
            self.exit_code = error.exit_code();
            self.status = error.status();
            self.error = Some(error.report());
        }
    }

    pub(super) fn of(
        outcome: Outcome,
        error: Option<&Error>,
        model: String,
        session: SessionId,
        warnings: Vec<String>,
        duration_ms: u64,
    ) -> Self {
        let mut changes = Changes::default();
        for (path, touched) in &outcome.changed {
            let list = match touched {
                FileChangeKind::Created => &mut changes.created,
                FileChangeKind::Modified => &mut changes.modified,
                FileChangeKind::Deleted => &mut changes.deleted,
            };
            list.push(path.to_text());
        }
        let exit_code =
            error.map_or_else(|| exit_code::of_status(outcome.status), Error::exit_code);
        Self {
            status: outcome.status,
            exit_code,
            session: Some(session),
            response: outcome.response,
            model: Some(model),
            turns: outcome.turns,
            tool_calls: outcome.tool_calls,
            limit: outcome.limit,
            usage: outcome.usage,
            changes,
            review: None,
            applied: false,
            may_run: Vec::new(),
            may_run_known: true,
            git: None,
            commits: Vec::new(),
            network: None,
            plan: None,
            agents: Vec::new(),
            denied: outcome.denied,
            warnings,
            error: error.map(Error::report),
            duration_ms,
            pending: None,
            changed: of_tools(&outcome.changed),
        }
    }

    /// Hides the API key wherever somebody else's words stand: a model may repeat what it was told.
    pub(super) fn hide(&mut self, key: &Secret) {
        let error = self.error.iter_mut().flat_map(|error| {
            let lists = error.causes.iter_mut().chain(&mut error.hints);
            std::iter::once(&mut error.message).chain(lists)
        });
        let git = self.git.iter_mut().flat_map(|git| {
            let names = git.branches.iter_mut().map(|branch| &mut branch.name);
            names
                .chain(&mut git.stashes)
                .chain(&mut git.head)
                .chain(&mut git.not_taken)
                .chain(&mut git.moved_aside)
        });
        let commits = self.commits.iter_mut().map(|branch| &mut branch.name);
        let hosts = self.network.iter_mut().flat_map(|hosts| {
            let lists = hosts.reached.iter_mut().chain(&mut hosts.failed);
            lists.chain(&mut hosts.denied)
        });
        let plan = self.plan.iter_mut().map(|plan| &mut plan.text);
        let lists = self
            .denied
            .iter_mut()
            .chain(&mut self.warnings)
            .chain(plan)
            .chain(git)
            .chain(commits)
            .chain(hosts);
        for text in std::iter::once(&mut self.response)
            .chain(&mut self.model)
            .chain(lists)
            .chain(error)
        {
            *text = key.hide_in(std::mem::take(text));
        }
    }

    /// Returns what the run changed, as an event; nothing where it changed nothing.
    pub(super) fn changes_event(&self) -> Option<Kind> {
        (self.changed.n > 0).then(|| {
            Kind::ProjectChanged(ProjectChanges {
                may_run: self.may_run.clone(),
                ..self.changed.clone()
            })
        })
    }

    /// Returns the event that ends the session's log.
    pub(super) fn event(&self) -> Kind {
        Kind::RunFinished {
            status: self.status,
            exit_code: self.exit_code,
            response: self.response.clone(),
            turns: self.turns,
            tool_calls: self.tool_calls,
            usage: self.usage,
            limit: self.limit,
            error: self.error.as_ref().map(|error| {
                let mut text = error.message.clone();
                for cause in &error.causes {
                    text.push_str(": ");
                    text.push_str(cause);
                }
                text
            }),
            duration_ms: self.duration_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_wire::keep::ChangeKind;
    use podbay_wire::keep::EntryType;
    use podbay_wire::keep::RunTrigger;

    #[test]
    fn a_key_that_the_model_repeats_is_not_in_the_report() {
        let error = Error::usage("the server said sk-sesame", "not sk-sesame");
        let mut report = Report::failed(&error, None, 0);
        report.response = "My key is sk-sesame.".to_owned();
        report.warnings.push("sk-sesame".to_owned());
        report.git = Some(GitReport {
            stashes: vec!["sk-sesame".to_owned()],
            head: Some("sk-sesame".to_owned()),
            ..GitReport::default()
        });
        report.hide(&Secret::new("sk-sesame"));
        assert_eq!(report.response, "My key is ***.");
        assert!(
            !serde_json::to_string(&report)
                .expect("JSON")
                .contains("sesame")
        );
    }

    #[test]
    fn of_what_could_not_be_looked_through_it_is_said_how_it_is_and_the_run_is_no_success() {
        let id: SessionId = "dzg9tger38fb".parse().expect("an id");
        let mut report = Report::failed(&Error::usage("x", "y"), Some(id), 0);
        (report.status, report.exit_code, report.error) =
            (RunStatus::Completed, exit_code::DONE, None);
        let source = "write `0.pack` in the folder of snapshots; the disk is full".to_owned();
        report.lose_review(&Error::Sandbox(podbay_sandbox::Error::NotStarted {
            problem: source.clone(),
        }));
        assert_eq!(
            (report.review.as_deref(), report.exit_code, report.status),
            (Some("dzg9tger38fb"), exit_code::NO_BOX, RunStatus::Failed)
        );
        assert_eq!(
            (report.may_run_known, report.pending.is_none()),
            (false, true)
        );
        assert_eq!(
            report.warnings,
            [
                "what was changed is kept, and was not looked through: `podbay review diff dzg9tger38fb` does"
            ]
        );
        let error = report.error.as_ref().expect("an error");
        assert!(
            [&error.message]
                .into_iter()
                .chain(&error.causes)
                .any(|words| words.contains(&source)),
            "{error:?}"
        );
        // What failed before stays what it was.
        let mut report = Report::failed(&Error::Interrupted, None, 0);
        report.lose_review(&Error::Bug);
        assert_eq!(
            (report.exit_code, report.review, report.warnings.len()),
            (exit_code::INTERRUPTED, None, 0)
        );
    }

    #[test]
    fn a_file_in_whose_place_a_folder_is_counts_as_deleted_and_the_other_way_round_as_made() {
        let change = |path: &str, what: ChangeKind, entry: EntryType| PathChange {
            path: path.into(),
            what,
            entry,
            mode: None,
            n_bytes: None,
            unkept: None,
        };
        let paths = [
            change(
                "file to folder",
                ChangeKind::Type {
                    before: EntryType::File,
                },
                EntryType::Folder,
            ),
            change("file to folder/in", ChangeKind::Created, EntryType::File),
            change(
                "folder to file",
                ChangeKind::Type {
                    before: EntryType::Folder,
                },
                EntryType::File,
            ),
            change(
                "file to link",
                ChangeKind::Type {
                    before: EntryType::File,
                },
                EntryType::Link,
            ),
            change("folder", ChangeKind::Created, EntryType::Folder),
            change(".", ChangeKind::Mode, EntryType::Folder),
            change("opened", ChangeKind::Mode, EntryType::Folder),
        ];
        let mut report = Report::failed(&Error::usage("x", "y"), None, 0);
        report.take_paths(paths.iter(), 7, "podbay undo diff");
        let Changes {
            created,
            modified,
            deleted,
        } = &report.changes;
        assert_eq!(*created, ["file to folder/in", "folder to file"]);
        assert_eq!(
            (&**modified, &**deleted),
            (
                &[".", "file to link", "opened"].map(str::to_owned)[..],
                &["file to folder".to_owned()][..]
            )
        );
    }

    #[test]
    fn files_that_may_run_are_counted_also_where_none_is_named() {
        let mut report = Report::failed(&Error::usage("x", "y"), None, 0);
        let one = MayRun {
            path: "Makefile".into(),
            why: "make runs it".to_owned(),
            when: RunTrigger::ByItself,
        };
        report.take_may_run(
            &NamedList {
                n: 64,
                first: vec![one],
            },
            UNDO_DIFF,
        );
        assert_eq!(
            report.may_run,
            [
                "Makefile: make runs it",
                "and 63 more: `podbay undo diff` shows all that changed"
            ]
        );
        report.take_may_run(
            &NamedList {
                n: 63,
                first: Vec::new(),
            },
            UNDO_DIFF,
        );
        assert_eq!(
            report.may_run,
            ["63 files that are not named here: `podbay undo diff` shows all that changed"]
        );
        report.take_may_run(&NamedList::default(), UNDO_DIFF);
        assert!(report.may_run.is_empty());
    }
    #[test]
    fn what_was_committed_is_named_where_no_file_was_named_for_it() {
        let mut report = Report::failed(&Error::usage("x", "y"), None, 0);
        let of = |path: &str| MayRun {
            path: path.into(),
            why: "something runs it".to_owned(),
            when: RunTrigger::ByItself,
        };
        report.take_may_run(&[of("Makefile")].into_iter().collect(), UNDO_DIFF);
        report.take_committed(&git::Ended::holding(NamedList {
            n: 5,
            first: vec![of("Makefile"), of("deep/Makefile")],
        }));
        assert_eq!(
            report.may_run,
            [
                "Makefile: something runs it",
                "deep/Makefile: something runs it (it is in what was done with git)",
                "and 3 more"
            ]
        );
    }
}
