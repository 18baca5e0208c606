use serde::Serialize;

use super::Error;
use super::ErrorReport;
use super::exit_code;
use crate::agent::Outcome;
use crate::event::Kind;
use crate::event::LimitKind;
use crate::event::RunStatus;
use crate::event::Secret;
use crate::event::SessionId;
use crate::event::Usage;
use crate::tools::Touched;
use crate::wire::keep::EntryType;
use crate::wire::keep::TurnEnded;
use crate::wire::keep::What;

/// The result of a run, as `--output json` prints it. Keys may be added, never changed: scripts depend on them.
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
    /// The review that waits for the person; reviews do not exist yet.
    pub review: Option<String>,
    pub applied: bool,
    /// New and changed files that may run on the person's machine later, each with the reason.
    pub may_run: Vec<String>,
    pub denied: Vec<String>,
    pub warnings: Vec<String>,
    pub error: Option<ErrorReport>,
    pub duration_ms: u64,
}

/// Files that the run changed, by file tools and commands; where what it was like before could not be kept, by file tools alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Changes {
    pub created: Vec<String>,
    pub modified: Vec<String>,
    pub deleted: Vec<String>,
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
            denied: Vec::new(),
            warnings: Vec::new(),
            error: Some(error.report()),
            duration_ms,
        }
    }

    /// Takes what changed from one who has compared before and after.
    pub(super) fn take_changes(&mut self, ended: &TurnEnded) {
        let mut changes = Changes::default();
        for change in ended.changes.first.iter().filter(|change| change.entry != EntryType::Folder) {
            let path = change.path.to_string();
            match &change.what {
                What::Created => changes.created.push(path),
                What::Deleted => changes.deleted.push(path),
                What::Modified | What::Mode | What::Type { .. } => changes.modified.push(path),
                What::Renamed { from } => {
                    changes.deleted.push(from.to_string());
                    changes.created.push(path);
                }
            }
        }
        for list in [&mut changes.created, &mut changes.modified, &mut changes.deleted] {
            list.sort();
        }
        self.changes = changes;
        let n_more = ended.changes.n.saturating_sub(ended.changes.first.len() as u64);
        if n_more > 0 {
            self.warnings.push(format!("{n_more} more files changed than are listed; `podbay undo diff` shows them"));
        }
        self.may_run = ended.may_run.first.iter().map(|file| format!("{}: {}", file.path, file.why)).collect();
        let n_more = ended.may_run.n.saturating_sub(ended.may_run.first.len() as u64);
        if n_more > 0 {
            self.may_run.push(format!("and {n_more} more"));
        }
    }

    /// Turns a success into this failure; another failure stays what it is.
    pub(super) fn fail(&mut self, error: &Error) {
        if self.exit_code == exit_code::DONE {
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
                Touched::Created => &mut changes.created,
                Touched::Modified => &mut changes.modified,
                Touched::Deleted => &mut changes.deleted,
            };
            list.push(path.to_text());
        }
        let exit_code = match (error, outcome.status) {
            (Some(error), _) => error.exit_code(),
            (None, RunStatus::Completed) => exit_code::DONE,
            (None, RunStatus::Failed) => exit_code::FAILED,
            (None, RunStatus::Limit) => exit_code::LIMIT,
            (None, RunStatus::Blocked) => exit_code::BLOCKED,
            (None, RunStatus::Interrupted) => exit_code::INTERRUPTED,
        };
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
            denied: outcome.denied,
            warnings,
            error: error.map(Error::report),
            duration_ms,
        }
    }

    /// Hides the API key wherever somebody else's words stand: a model may repeat what it was told.
    pub(super) fn hide(&mut self, key: &Secret) {
        let error = self.error.iter_mut().flat_map(|error| {
            let lists = error.causes.iter_mut().chain(&mut error.hints);
            std::iter::once(&mut error.message).chain(lists)
        });
        let lists = self.denied.iter_mut().chain(&mut self.warnings);
        for text in std::iter::once(&mut self.response).chain(&mut self.model).chain(lists).chain(error) {
            *text = key.hide_in(std::mem::take(text));
        }
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

    #[test]
    fn a_key_that_the_model_repeats_is_not_in_the_report() {
        let error = Error::usage("the server said sk-sesame", "not sk-sesame");
        let mut report = Report::failed(&error, None, 0);
        report.response = "My key is sk-sesame.".to_owned();
        report.warnings.push("sk-sesame".to_owned());
        report.hide(&Secret::new("sk-sesame"));
        assert_eq!(report.response, "My key is ***.");
        assert!(!serde_json::to_string(&report).expect("JSON").contains("sesame"));
    }
}
