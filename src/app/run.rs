use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use async_recursion::async_recursion as boxed;

use super::Asker;
use super::Error;
use super::Interrupt;
use super::PlanReport;
use super::Report;
use super::Resume;
use super::exit_code;
use super::learning::learn;
use super::resume::Aim;
use super::seat::Closed;
use super::seat::Seat;
use super::seat::end_turn;
use super::sitting::sit_down_in_time;
use podbay_agent::Outcome;
use podbay_config::Config;
use podbay_event::Plan;
use podbay_event::RunStatus;
use podbay_event::Sink;
use podbay_policy::Mode;
use podbay_sandbox::EndedTurn;
use podbay_session::State;
use podbay_tools::Later;

/// How long the end of a turn may take at least, though the time of the run is over.
const GRACE: Duration = Duration::from_mins(1);

/// Where and how a use case runs.
#[derive(Clone)]
pub struct Place {
    pub project: PathBuf,
    pub config: Config,
    pub state: State,
    pub mode: Mode,
    /// The API key, from the environment or a file of the user's.
    pub api_key: Option<podbay_event::Secret>,
    /// An earlier session to continue; without one a new one begins.
    pub resume: Option<Resume>,
    pub plan: PlanStart,
}

/// Whether a session begins in plan mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlanStart {
    /// As it was left; a new one does not.
    #[default]
    AsLeft,
    On,
    /// The last plan of the session that continues is approved, and is the task.
    Implement,
}

/// Who watches, who is asked, and the hand that can stop it.
#[derive(Clone)]
pub struct Front {
    pub sink: Sink,
    pub asker: Arc<dyn Asker>,
    pub interrupt: Interrupt,
}

/// Works on one task and reports, whatever happens. Its time counts from `begun`.
///
/// Without a task the one that an earlier session left open continues; the place then names that
/// session.
#[boxed]
pub async fn run(place: &Place, task: Option<&str>, front: &Front, begun: Instant) -> Report {
    run_with(
        place,
        task,
        Box::pin(std::future::ready(None)),
        front,
        begun,
    )
    .await
}

/// Like [`run`], with material behind the task that may take as long to come as the sandbox takes
/// to start. What the log has as the task is without it.
#[boxed]
pub async fn run_with(
    place: &Place,
    task: Option<&str>,
    material: Later<'static, Option<String>>,
    front: &Front,
    begun: Instant,
) -> Report {
    let elapsed = || u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let is_resumed = place.resume.is_some();
    if place.plan == PlanStart::Implement && !is_resumed {
        let error = Error::usage(
            "--implement needs the session whose plan is implemented",
            "name it: podbay run --resume ID --implement",
        );
        return Report::failed(&error, None, elapsed());
    }
    if task.is_none() && !is_resumed || task.is_some_and(|task| task.trim().is_empty()) {
        let error = Error::usage(
            "the task is empty",
            "say what is to be done: podbay run \"fix the failing test\"",
        );
        return Report::failed(&error, None, elapsed());
    }
    let mut session = None;
    let mut seat = match sit_down_in_time(
        place,
        task.map_or(Aim::Open, Aim::Task),
        front,
        begun,
        &mut session,
    )
    .await
    {
        Ok(seat) => seat,
        Err((error, recorder)) => {
            let mut report = Report::failed(&error, session, elapsed());
            report.exit_code = exit_code::after(&front.interrupt, report.exit_code);
            if let Some(recorder) = recorder {
                recorder.emit(report.event());
            }
            return report;
        }
    };
    // A task that was never told to the model begins now.
    let mut task = task.map(ToOwned::to_owned).or(seat.untold.take());
    if let Some(mut plan) = seat.plan_task.take() {
        if let Some(task) = task {
            plan.push_str(&format!("\n\nThe user adds: {task}"));
        }
        task = Some(plan);
    }
    seat.begin_turn(task.as_deref().unwrap_or("(continues)"));
    if let Some(task) = &mut task {
        let left = match place.config.agent.timeout.get() {
            0 => Duration::MAX,
            seconds => Duration::from_secs(seconds).saturating_sub(begun.elapsed()),
        };
        if let Ok(Some(material)) = tokio::time::timeout(left, material).await {
            task.push_str("\n\n");
            task.push_str(&material);
        }
    }
    let mut outcome = seat
        .agent
        .run_since(begun, task.as_deref(), &front.interrupt)
        .await;
    let left = match place.config.agent.timeout.get() {
        0 => None,
        seconds => Some(
            Duration::from_secs(seconds)
                .saturating_sub(begun.elapsed())
                .max(GRACE),
        ),
    };
    let made = plan_of(&seat, &outcome);
    if !seat.sandbox.is_reviewed() {
        // What still runs would continue changing what the turn leaves.
        seat.agent.settle(front.interrupt.run()).await;
        seat.sandbox.end_processes().await;
    }
    let ended = match end_turn(&seat.sandbox, &front.interrupt, left).await {
        Some(EndedTurn::InPlace(ended)) => Some(ended),
        // No run has turns that come by themselves.
        Some(EndedTurn::Came(_)) | None => None,
    };
    if ended.is_none() && front.interrupt.is_ended() && outcome.status == RunStatus::Completed {
        // Whoever ended it did so before it was done.
        outcome.status = RunStatus::Interrupted;
    }
    if outcome.status == RunStatus::Completed {
        outcome.usage += learn(&mut seat, outcome.tool_calls, &front.interrupt).await;
    }
    let is_reviewed = seat.sandbox.is_reviewed();
    let Closed { reviewed, git, .. } = seat.close(front.interrupt.run()).await;
    let mut report = seat.report(outcome, elapsed());
    report.plan = made;
    report.network = seat.recorder.tried_hosts();
    report.agents = seat
        .agents
        .as_ref()
        .map_or_else(Vec::new, |agents| agents.reports());
    report.take_git(git.as_ref());
    match &ended {
        Some(ended) => report.take_changes(ended, git.as_ref()),
        None => report.may_run_known = is_reviewed,
    }
    if let Some(git) = &git {
        report.take_committed(git);
    }
    match reviewed {
        Some(Ok(pending)) => report.take_review(pending),
        Some(Err(error)) => report.lose_review(&Error::Sandbox(error)),
        None => {}
    }
    report.exit_code = exit_code::after(&front.interrupt, report.exit_code);
    if let Some(key) = &place.api_key {
        report.hide(key);
    }
    if let Some(changed) = report.changes_event() {
        seat.recorder.emit(changed);
    }
    seat.recorder.emit(report.event());
    if let Some(problem) = seat.recorder.unwritten() {
        // The work was done, and it was said that it could not be written down; whoever counts on
        // the log must not take this for a success.
        report.fail(&Error::LogLost { problem });
    }
    report
}

/// Returns the plan that a run in plan mode leaves. A model that calls no tool for it has written it
/// as its answer.
fn plan_of(seat: &Seat, outcome: &Outcome) -> Option<PlanReport> {
    let pipeline = seat.agent.pipeline();
    if !pipeline.is_planning() {
        return None;
    }
    let is_new = |plan: &Plan| Some(plan.version) != seat.n_plans;
    let answer = outcome.response.trim();
    if !pipeline.plan().as_ref().is_some_and(is_new)
        && outcome.status == RunStatus::Completed
        && !answer.is_empty()
    {
        pipeline.save_plan(answer, false);
    }
    let plan = pipeline.plan()?;
    Some(PlanReport {
        version: plan.version,
        text: plan.text,
    })
}
