//! Reads of the project that Podbay makes before the first request.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::OnChunk;
use super::Pipeline;
use super::dispatch::dispatch_peek;
use podbay_policy::Action;
use podbay_policy::Verdict;
use podbay_sandbox as sandbox;
use podbay_wire::Call;
use podbay_wire::Output;

impl Pipeline {
    /// Reads from the project. The rules apply as if the model had made the call; `None` where it
    /// would not be allowed without asking.
    pub async fn peek(
        &self,
        call: Call,
        on_chunk: OnChunk<'_>,
        cancel: &CancellationToken,
        within: Duration,
    ) -> Result<Option<Output>, sandbox::Error> {
        let action = Action::Box(call);
        if !action.is_read_only() {
            return Ok(None);
        }
        let verdict = self
            .policy
            .lock()
            .expect("nothing panics while it holds this lock")
            .judge(action);
        match verdict {
            Verdict::Allow { action, .. } => {
                dispatch_peek(action, &*self.workspace, on_chunk, cancel, within)
                    .await
                    .map(Some)
            }
            Verdict::Ask(_) | Verdict::Deny { .. } => Ok(None),
        }
    }
}
