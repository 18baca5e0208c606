//! Finishes an interrupted application before a review is applied.

use std::collections::BTreeSet;

use super::super::Error;
use super::super::Project;
use super::super::StateFolder;
use super::super::apply;
use super::super::journal::Journal;
use super::super::journal::Purpose;
use super::super::undo;
use super::SessionView;
use podbay_wire::BytesPath;
use podbay_wire::keep::ApplyOutcome;
use podbay_wire::keep::MayRun;
use podbay_wire::keep::NamedList;

/// The outcome of finishing an interrupted application.
pub(super) enum InterruptedApply {
    /// Finished, or there was none; with what was done for a review.
    Finished(Option<Box<ApplyOutcome>>),
    /// That of this review stopped again, such as on a full disk.
    Stopped(Box<ApplyOutcome>),
}

/// Finishes any interrupted application.
pub(super) fn finish_interrupted(
    project: &Project,
    seen: SessionView<'_>,
    state: &StateFolder,
    name: &str,
) -> Result<InterruptedApply, Error> {
    if !apply::is_unfinished(state)? {
        return Ok(InterruptedApply::Finished(None));
    }
    let copy = seen.copy.filter(|_| {
        Journal::load(state)
            .ok()
            .flatten()
            .is_some_and(|journal| is_apply_of(&journal, name))
    });
    let resumed = match undo::resume(project, state, copy)? {
        // Reported as the first time.
        undo::Resumed::Review { name: of, applied } if of == name && applied.stopped.is_some() => {
            return Ok(InterruptedApply::Stopped(applied));
        }
        undo::Resumed::Review { applied, .. } => {
            refuse_if_stopped(&applied)?;
            Some(applied)
        }
        undo::Resumed::Turns(undone) => {
            undone
                .turns
                .iter()
                .try_for_each(|turn| refuse_if_stopped(&turn.applied))?;
            None
        }
        undo::Resumed::Nothing => None,
    };
    if apply::is_unfinished(state)? {
        Err(Error::Unfinished)
    } else {
        Ok(InterruptedApply::Finished(resumed))
    }
}

/// Whether a journal is that of an apply of this review.
pub(super) fn is_apply_of(journal: &Journal, name: &str) -> bool {
    matches!(&journal.purpose, Purpose::Review { name: of } if of == name)
}

/// Removes from the resumed outcome what was left again, so that it is reported once, with the last
/// reason.
pub(super) fn drop_repeated_left(resumed: &mut ApplyOutcome, applied: &ApplyOutcome) {
    let again: BTreeSet<&BytesPath> = applied
        .conflicts
        .first
        .iter()
        .chain(&applied.refused.first)
        .map(|left| &left.path)
        .collect();
    for left in [&mut resumed.conflicts, &mut resumed.refused] {
        let n_told = left.first.len();
        left.first.retain(|left| !again.contains(&left.path));
        left.n -= (n_told - left.first.len()) as u64;
    }
}

/// Removes files that were not applied after all.
pub(super) fn leave_out_left(may_run: &mut NamedList<MayRun>, applied: &ApplyOutcome) {
    let left: BTreeSet<&BytesPath> = applied
        .conflicts
        .first
        .iter()
        .chain(&applied.refused.first)
        .map(|left| &left.path)
        .collect();
    let n_named = may_run.first.len();
    may_run.first.retain(|file| !left.contains(&file.path));
    may_run.n -= (n_named - may_run.first.len()) as u64;
}

/// Refuses to begin while another application is stopped, such as on a full disk.
pub(super) fn refuse_if_stopped(resumed: &ApplyOutcome) -> Result<(), Error> {
    resumed
        .stopped
        .as_ref()
        .map_or(Ok(()), |why| Err(Error::StoppedAgain { why: why.clone() }))
}
