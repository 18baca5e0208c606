//! Whether an edit fits is found out before the user is asked about it: the sandbox does all of it
//! but the writing. What speaks against the edit is its result, as it would be without a question.

use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::Finished;
use super::Pipeline;
use super::call_end::CallEnd;
use super::call_end::CallInProgress;
use super::call_status::failed;
use super::call_status::hint;
use super::dispatch::CallProgress;
use super::dispatch::CommandOutput;
use super::dispatch::dispatch;
use super::host::CallResult;
use super::render::fit;
use super::render::render;
use podbay_event::ToolCall;
use podbay_policy::Action;
use podbay_sandbox::link::Nobody;
use podbay_wire::Fault;
use podbay_wire::Output;

impl Pipeline {
    /// Returns what speaks against an edit; `None` where nothing does, where that cannot be known,
    /// and for all that is no edit.
    pub(super) async fn unfit(
        &self,
        call: &ToolCall,
        action: &Action,
        cancel: &CancellationToken,
    ) -> Option<Output> {
        let check = self
            .policy
            .lock()
            .expect("nothing panics while it holds this lock")
            .check_of(action)?;
        let tell = |_: CallProgress<'_>| {};
        let checked = dispatch(
            check,
            &*self.workspace,
            &self.seen,
            self.host(&Nobody, &call.id),
            &self.options,
            tell,
            cancel,
        )
        .await;
        let Ok((CallResult::Output(output), _)) = checked else {
            return None;
        };
        self.follow(&output);
        match &output {
            Output::Fault(fault) if speaks_against(fault) => Some(output),
            _ => None,
        }
    }

    /// Ends a call that does not fit.
    pub(super) fn end_unfit(
        &self,
        underway: CallInProgress<'_>,
        output: &Output,
        notes: &[String],
    ) -> Finished {
        let (name, most) = (underway.name, self.most(underway.name));
        let mut rendered = render(output, &CommandOutput::default(), &self.options, most);
        let status = failed(Some(output), false);
        let hint = hint(status, name, self.options.set);
        for note in notes.iter().map(String::as_str).chain(hint) {
            rendered.note(note);
        }
        let text = fit(&rendered, most, None);
        let underway = CallInProgress {
            begun: Instant::now(),
            ..underway
        };
        self.finish(underway, CallEnd::new(status, text))
    }
}

/// Returns whether a fault is about the edit. Others are about the sandbox, and may be gone when the
/// user has answered.
fn speaks_against(fault: &Fault) -> bool {
    !matches!(
        fault,
        Fault::OnlyChecked
            | Fault::Untold { .. }
            | Fault::NotStarted { .. }
            | Fault::Cancelled
            | Fault::TimedOut { .. }
            | Fault::NoSpace { .. }
            | Fault::Io { .. }
            | Fault::BoxEnded { .. }
    )
}
