use std::panic::AssertUnwindSafe;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::FutureExt;
use futures::StreamExt;
use futures::TryStreamExt;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::Agent;
use super::Failure;
use super::Interrupt;
use super::early_calls::cancel_all;
use super::loop_detector::CallResult;
use super::loop_detector::Finding;
use super::nudge::may_write;
use super::run::NextStep;
use super::task::Task;
use podbay_event::CallStatus;
use podbay_event::Kind;
use podbay_event::LimitKind;
use podbay_event::RunStatus;
use podbay_event::ToolCall;
use podbay_llm::Message;
use podbay_tools::EarlyCall;
use podbay_tools::Finished;
use podbay_tools::Pipeline;
use podbay_tools::PipelineError;
use podbay_tools::record_change;
use podbay_wire::Image;

impl Agent {
    /// Executes the calls of one answer and adds their results to the conversation.
    pub(super) async fn calls(
        &mut self,
        task: &mut Task,
        calls: &[ToolCall],
        interrupt: &Interrupt,
    ) -> NextStep {
        let results = match self.execute_in_time(task, calls, interrupt).await {
            Ok(results) => results,
            Err(error) => return NextStep::Failed(Failure::Sandbox(error)),
        };
        interrupt.idle();
        let (mut quit, mut ends_task) = (false, false);
        let mut done = Vec::with_capacity(calls.len());
        let (mut images, mut touched) = (Vec::new(), Vec::new());
        let statuses: Vec<CallStatus> = results.iter().map(|finished| finished.status).collect();
        for (call, finished) in calls.iter().zip(results) {
            task.tool_calls += 1;
            done.push(self.done(call, &finished));
            images.extend(finished.image.map(|image| (call.id.clone(), image)));
            quit |= finished.quit;
            ends_task |= finished.ends_task;
            match finished.status {
                CallStatus::Ok => task.n_succeeded += 1,
                CallStatus::Denied => {
                    task.denied
                        .push(format!("{} {}", call.name, short(&call.arguments)));
                }
                CallStatus::Failed
                | CallStatus::Conflict
                | CallStatus::TimedOut
                | CallStatus::Invalid
                | CallStatus::Cancelled => {}
            }
            task.denied.extend(finished.denied);
            touched.extend(finished.touched);
            for (path, touched) in finished.changed {
                record_change(&mut task.changed, path, touched);
            }
            if !finished.read_only {
                task.has_worked |= finished.status == CallStatus::Ok && self.may_have_written(call);
                task.blocked = finished.status == CallStatus::Denied;
            }
            self.conversation.push(Message::ToolResult {
                call: call.id.clone(),
                name: call.name.clone(),
                is_error: finished.status != CallStatus::Ok,
                text: finished.text,
            });
        }
        let keep = |(call, image): (String, Image)| {
            self.keep_image(
                &call,
                format!("{}, as read_file found it.", image.path),
                &image,
            )
        };
        let images = images.into_iter().map(keep).collect();
        self.show_images(images);
        if quit || interrupt.is_turn_over() {
            self.emit(Kind::Interrupted);
            return NextStep::Done(RunStatus::Interrupted);
        }
        if ends_task {
            task.response = self
                .pipeline
                .plan()
                .map_or_else(String::new, |plan| plan.text);
            return NextStep::Done(RunStatus::Completed);
        }
        self.tell_folder_instructions(&touched, interrupt.run())
            .await;
        self.learn_from_calls(calls, &statuses);
        self.escalate(&statuses);
        // Cancelled calls say nothing about the model.
        if statuses.contains(&CallStatus::Cancelled) {
            NextStep::GoOn
        } else {
            self.check_for_loop(task, &done)
        }
    }

    /// Returns whether a successful call may have changed a file: a command that only reads has
    /// not.
    fn may_have_written(&self, call: &ToolCall) -> bool {
        let is_bash = self
            .pipeline
            .catalogue
            .find(&call.name)
            .is_some_and(|tool| tool.name == "bash");
        !is_bash || may_write(&call.arguments)
    }

    fn done(&self, call: &ToolCall, finished: &Finished) -> CallResult {
        let tool = self
            .pipeline
            .catalogue
            .find(&call.name)
            .map(|tool| tool.name);
        let is_fault = match finished.status {
            CallStatus::Invalid => true,
            // A failed command's output is not our wording: `[exit code 1]` alone identifies no
            // mistake.
            CallStatus::Failed | CallStatus::Conflict => tool.is_some_and(|name| name != "bash"),
            // A command that timed out may have a different reason each time.
            CallStatus::Ok | CallStatus::TimedOut | CallStatus::Denied | CallStatus::Cancelled => {
                false
            }
        };
        CallResult {
            canonical: self
                .pipeline
                .catalogue
                .canonical(&call.name, &call.arguments),
            shown: format!("{} {}", call.name, short(&call.arguments)),
            result: finished.text.clone(),
            has_failed: finished.status != CallStatus::Ok,
            // Inventing another tool each time is the same mistake, whatever their names.
            fault: is_fault.then(|| {
                tool.map_or_else(
                    || "no such tool".to_owned(),
                    |name| format!("{name} {}", finished.text),
                )
            }),
        }
    }

    fn check_for_loop(&mut self, task: &mut Task, done: &[CallResult]) -> NextStep {
        match task.stuck.take(done, &self.options) {
            Finding::Moving => NextStep::GoOn,
            Finding::Nudge(words) => {
                self.note(&words);
                NextStep::GoOn
            }
            Finding::Stuck(why) => {
                self.emit(Kind::Warning { message: why });
                NextStep::Limit(LimitKind::Stuck)
            }
        }
    }

    /// Executes the calls, and cancels those still running when the task's time is up: a command
    /// must not outlive it.
    async fn execute_in_time(
        &self,
        task: &mut Task,
        calls: &[ToolCall],
        interrupt: &Interrupt,
    ) -> Result<Vec<Finished>, PipelineError> {
        let is_late = AtomicBool::new(false);
        let step = || {
            let step = interrupt.step();
            if is_late.load(Ordering::Relaxed) {
                step.cancel();
            }
            step
        };
        let reading = ReadOnlyCalls {
            early: std::mem::take(&mut task.early),
            parallel: self.parallel,
            places: &self.places,
        };
        let mut work = std::pin::pin!(execute_all(&self.pipeline, calls, reading, step));
        let left = match self.options.timeout.get() {
            0 => return work.await,
            seconds => Duration::from_secs(seconds).saturating_sub(task.begun.elapsed()),
        };
        match tokio::time::timeout(left, &mut work).await {
            Ok(results) => results,
            Err(_elapsed) => {
                is_late.store(true, Ordering::Relaxed);
                interrupt.end_step();
                work.await
            }
        }
    }
}

/// How read-only calls run concurrently.
struct ReadOnlyCalls<'a> {
    /// Calls that were started early.
    early: Vec<EarlyCall>,
    parallel: usize,
    places: &'a Semaphore,
}

impl ReadOnlyCalls<'_> {
    /// Takes an early call out of the list.
    fn begun(&mut self, call: &ToolCall) -> Option<EarlyCall> {
        let at = self.early.iter().position(|early| early.call() == call)?;
        Some(self.early.remove(at))
    }
}

/// Executes the calls of one answer: adjacent read-only ones concurrently, all others alone and in
/// order.
/// The results are in the order of the calls. Once one was cancelled, the user left or `step`
/// returns a cancelled token, the rest is not begun.
async fn execute_all(
    pipeline: &Pipeline,
    calls: &[ToolCall],
    mut reading: ReadOnlyCalls<'_>,
    step: impl Fn() -> CancellationToken,
) -> Result<Vec<Finished>, PipelineError> {
    let mut results: Vec<Finished> = Vec::with_capacity(calls.len());
    while results.len() < calls.len() {
        if results
            .last()
            .is_some_and(|last| last.quit || last.ends_task || last.status == CallStatus::Cancelled)
        {
            results.push(pipeline.leave_out(&calls[results.len()]));
            continue;
        }
        let rest = &calls[results.len()..];
        let together = rest
            .iter()
            .take_while(|call| pipeline.runs_beside_others(call))
            .count()
            .max(1);
        let cancel = step();
        if cancel.is_cancelled() {
            results.push(pipeline.leave_out(&calls[results.len()]));
            continue;
        }
        // Collected first: as a lazy stream they would make the future of the whole run not `Send`.
        let places = reading.places;
        let group: Vec<_> = rest[..together]
            .iter()
            .map(|call| execute_one(pipeline, call, reading.begun(call), places, &cancel))
            .collect();
        results.extend(
            futures::stream::iter(group)
                .buffered(reading.parallel)
                .try_collect::<Vec<_>>()
                .await?,
        );
    }
    cancel_all(reading.early).await;
    Ok(results)
}

/// Awaits an early call, or executes the call when a permit is free.
async fn execute_one(
    pipeline: &Pipeline,
    call: &ToolCall,
    begun: Option<EarlyCall>,
    places: &Semaphore,
    cancel: &CancellationToken,
) -> Result<Finished, PipelineError> {
    if let Some(early) = begun
        && let Some(result) = early.result(cancel).await
    {
        return result;
    }
    let _place = places.acquire().await;
    // A bug in one call must not lose the results of the others.
    AssertUnwindSafe(pipeline.run(call, cancel))
        .catch_unwind()
        .await
        .unwrap_or_else(|_panic| Ok(pipeline.crashed(call)))
}

fn short(arguments: &str) -> String {
    let end = arguments.floor_char_boundary(120);
    if end < arguments.len() {
        format!("{}…", &arguments[..end])
    } else {
        arguments.to_owned()
    }
}
