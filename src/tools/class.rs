//! Which class of result a call comes to, and what a model does best with one of its class.

use std::collections::VecDeque;
use std::sync::Mutex;

use crate::event::CallStatus;
use crate::policy::Action;
use crate::wire::BytesPath;
use crate::wire::Call;
use crate::wire::Fault;
use crate::wire::Limit;
use crate::wire::Output;

/// Pieces of files that the model has read and that are remembered, and how large one may be.
const PIECES: usize = 64;
const PIECE_MAX: usize = 64 << 10;

/// What the model has read of files: only so can an edit that does not fit be told from one whose file has changed since.
#[derive(Debug, Default)]
pub(super) struct Seen(Mutex<VecDeque<(BytesPath, String)>>);

impl Seen {
    /// Remembers what a call shows of files.
    pub(super) fn take(&self, output: &Output) {
        let Output::Read(read) = output else { return };
        let mut pieces = self.0.lock().expect("nothing panics while it holds this lock");
        for file in read.files.iter().filter(|file| file.fault.is_none() && file.text.len() <= PIECE_MAX) {
            pieces.retain(|(path, text)| *path != file.path || *text != file.text);
            pieces.push_back((file.path.clone(), file.text.clone()));
        }
        let too_many = pieces.len().saturating_sub(PIECES);
        pieces.drain(..too_many);
    }

    /// Returns whether the model has read this text in a file.
    fn has(&self, path: &BytesPath, text: &str) -> bool {
        let pieces = self.0.lock().expect("nothing panics while it holds this lock");
        !text.is_empty() && pieces.iter().any(|(seen, piece)| seen == path && piece.contains(text))
    }
}

/// The texts that an edit counts on, each with its file, in the order of the edits.
#[derive(Debug, Default)]
pub(super) struct Expected(Vec<(BytesPath, String)>);

impl Expected {
    pub(super) fn of(action: &Action) -> Self {
        Self(match action {
            Action::Box(Call::EditFile(edit)) => {
                edit.edits.iter().map(|replacement| (edit.path.clone(), replacement.old_string.clone())).collect()
            }
            Action::Box(Call::MultiEdit(multi)) => {
                multi.edits.iter().map(|edit| (edit.path.clone(), edit.edit.old_string.clone())).collect()
            }
            _ => Vec::new(),
        })
    }

    /// Returns whether the text of the edit of this number, from 1, was read by the model.
    fn was_seen(&self, number: u32, seen: &Seen) -> bool {
        let edit = (number as usize).checked_sub(1).and_then(|at| self.0.get(at));
        edit.is_some_and(|(path, text)| seen.has(path, text))
    }
}

/// Returns the class of what came of a call that did not succeed.
pub(super) fn failed(output: Option<&Output>, expected: &Expected, seen: &Seen, is_cancelled: bool) -> CallStatus {
    match output {
        _ if is_cancelled => CallStatus::Cancelled,
        Some(Output::Fault(Fault::Cancelled)) => CallStatus::Cancelled,
        Some(Output::Command(ended)) if matches!(ended.limit, Some(Limit::Time { .. })) => CallStatus::TimedOut,
        Some(Output::Fault(Fault::Changed { .. } | Fault::Stale { .. } | Fault::HunkMissed { applied: true, .. })) => CallStatus::Conflict,
        Some(Output::Fault(Fault::NoMatch { edit, .. })) if expected.was_seen(*edit, seen) => CallStatus::Conflict,
        _ => CallStatus::Failed,
    }
}

/// Returns what a model is told besides its result, where the result alone does not say how to go on.
pub(super) fn hint(status: CallStatus) -> Option<&'static str> {
    match status {
        CallStatus::Conflict => Some("the file is no longer as you read it: read it again, then make the change to what stands there now"),
        CallStatus::TimedOut => Some("to go on, ask for more time, let it run in the background, or do less at once"),
        CallStatus::Cancelled => Some("it was stopped from outside; what it had done until then is done"),
        // The words of a fault, of a refusal and of a denial say what to do; a command's own words are its own.
        CallStatus::Ok | CallStatus::Failed | CallStatus::Invalid | CallStatus::Denied => None,
    }
}
