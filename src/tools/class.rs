//! Which class of result a call comes to, and what a model does best with one of its class.

use crate::event::CallStatus;
use crate::wire::Fault;
use crate::wire::Limit;
use crate::wire::Output;

/// Returns the class of what came of a call that did not succeed.
pub(super) fn failed(output: Option<&Output>, is_cancelled: bool) -> CallStatus {
    match output {
        _ if is_cancelled => CallStatus::Cancelled,
        Some(Output::Fault(Fault::Cancelled)) => CallStatus::Cancelled,
        Some(Output::Command(ended)) if matches!(ended.limit, Some(Limit::Time { .. })) => CallStatus::TimedOut,
        Some(Output::Fault(
            Fault::Changed { .. } | Fault::Stale { .. } | Fault::Outdated { .. } | Fault::HunkMissed { applied: true, .. },
        )) => CallStatus::Conflict,
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
