use futures::StreamExt;
use futures::TryStreamExt;
use tokio_util::sync::CancellationToken;

use crate::event::CallStatus;
use crate::event::ToolCall;
use crate::tools::Finished;
use crate::tools::Pipeline;
use crate::tools::PipelineError;

/// Carries out the calls of one answer: neighbours that change nothing at once, all others alone and in order.
///
/// The results come in the order of the calls. Once one was cancelled, the person left or `step` comes cancelled, the rest is not begun.
pub(super) async fn carry_out(
    pipeline: &Pipeline,
    calls: &[ToolCall],
    parallel: usize,
    step: impl Fn() -> CancellationToken,
) -> Result<Vec<Finished>, PipelineError> {
    let mut results: Vec<Finished> = Vec::with_capacity(calls.len());
    while results.len() < calls.len() {
        if results.last().is_some_and(|last| last.quit || last.status == CallStatus::Cancelled) {
            results.push(pipeline.leave_out(&calls[results.len()]));
            continue;
        }
        let rest = &calls[results.len()..];
        let together = rest.iter().take_while(|call| pipeline.is_read_only(call)).count().max(1);
        let cancel = step();
        if cancel.is_cancelled() {
            results.push(pipeline.leave_out(&calls[results.len()]));
            continue;
        }
        // Collected first: as a lazy stream they would keep the whole run from moving between threads.
        let group: Vec<_> = rest[..together].iter().map(|call| pipeline.run(call, &cancel)).collect();
        results.extend(futures::stream::iter(group).buffered(parallel.max(1)).try_collect::<Vec<_>>().await?);
    }
    Ok(results)
}
