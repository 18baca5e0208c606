//! The ends of a call: with a result, without one, and before it began.

use std::time::Instant;

use super::Finished;
use super::Pipeline;
use super::PipelineError;
use super::hook::HookStop;
use podbay_event::CallStatus;
use podbay_event::Decision;
use podbay_event::Kind;
use podbay_event::ToolCall;
use podbay_wire::Memo;

/// A call in progress.
#[derive(Clone, Copy)]
pub(super) struct CallInProgress<'a> {
    pub(super) call: &'a ToolCall,
    pub(super) name: &'a str,
    pub(super) read_only: bool,
    pub(super) begun: Instant,
}

/// The result of a call.
pub(super) struct CallEnd {
    pub(super) status: CallStatus,
    pub(super) text: String,
    pub(super) artifact: Option<String>,
    /// What the model knows of files after the call.
    pub(super) seen: Vec<Memo>,
}

impl CallEnd {
    /// A result that is only text.
    pub(super) fn new(status: CallStatus, text: String) -> Self {
        Self {
            status,
            text,
            artifact: None,
            seen: Vec::new(),
        }
    }
}

impl Pipeline {
    /// Ends a call that a hook blocked.
    pub(super) fn held(
        &self,
        underway: CallInProgress<'_>,
        held: HookStop,
    ) -> Result<Finished, PipelineError> {
        // The hook's time is not the call's.
        let underway = CallInProgress {
            begun: Instant::now(),
            ..underway
        };
        match held {
            HookStop::Blocked(reason) => {
                let reason = self.record_block(underway.call, underway.name, &reason);
                Ok(self.finish(underway, CallEnd::new(CallStatus::Denied, denied(&reason))))
            }
            HookStop::Cancelled => Ok(self.leave_out(underway.call)),
            HookStop::Sandbox(error) => {
                self.finish(
                    underway,
                    CallEnd::new(CallStatus::Failed, error.to_string()),
                );
                Err(error)
            }
        }
    }

    /// Records that a hook blocks a call; returns the reason for the model.
    pub(super) fn record_block(&self, call: &ToolCall, name: &str, reason: &str) -> String {
        let reason = format!("a hook of the user blocks it: {reason}");
        let (call, name) = (call.id.clone(), name.to_owned());
        (self.sink)(
            Kind::CallDecided {
                call,
                name,
                decision: Decision::Deny,
                reason: reason.clone(),
            }
            .into(),
        );
        reason
    }

    /// Ends a call that was cancelled before it started.
    pub fn leave_out(&self, call: &ToolCall) -> Finished {
        let text = "not executed: the call was cancelled".to_owned();
        let underway = CallInProgress {
            call,
            name: &call.name,
            read_only: true,
            begun: Instant::now(),
        };
        self.finish(underway, CallEnd::new(CallStatus::Cancelled, text))
    }

    /// Ends a call during which Podbay itself failed; the run continues.
    pub fn crashed(&self, call: &ToolCall) -> Finished {
        let text =
            "Podbay itself went wrong in this call, which is a mistake in it and none of yours. What the call may have changed is not \
                    known: look before you continue, and try another way."
                .to_owned();
        let underway = CallInProgress {
            call,
            name: &call.name,
            read_only: false,
            begun: Instant::now(),
        };
        self.finish(underway, CallEnd::new(CallStatus::Failed, text))
    }

    /// Ends a call: the one place that records its result.
    pub(super) fn finish(
        &self,
        CallInProgress {
            call,
            name,
            read_only,
            begun,
        }: CallInProgress<'_>,
        CallEnd {
            status,
            text,
            artifact,
            seen,
        }: CallEnd,
    ) -> Finished {
        let duration_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        (self.sink)(
            Kind::CallFinished {
                call: call.id.clone(),
                name: name.to_owned(),
                status,
                result: text.clone(),
                artifact,
                duration_ms,
                seen,
            }
            .into(),
        );
        Finished {
            status,
            text,
            read_only,
            has_begun: false,
            quit: false,
            ends_task: false,
            changed: Vec::new(),
            touched: Vec::new(),
            denied: Vec::new(),
            image: None,
        }
    }
}

/// Returns the text for the model about a call that was denied.
pub(super) fn denied(reason: &str) -> String {
    format!(
        "Denied: {reason}. It was not executed. Do not try to get around this; continue without it, or say what you need."
    )
}
