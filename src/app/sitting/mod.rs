//! A conversation begins: project, sandbox and model, side by side.

mod assembly;
mod beginning;
mod offered_tools;
mod opened_session;
mod prompt;
mod startup;

use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use self::assembly::Assembly;
use self::offered_tools::OfferedTools;
use self::opened_session::OpenedSession;
use self::startup::Start;
use super::Error;
use super::Front;
use super::Place;
use super::bench::Bench;
use super::bench::progress_of;
use super::mcp;
use super::mcp::session::NamedServers;
use super::model;
use super::record::Recorder;
use super::resume::Aim;
use super::seat::Seat;
use podbay_event::Kind;
use podbay_event::LimitKind;
use podbay_event::Plan;
use podbay_event::SessionId;
use podbay_event::Sink;
use podbay_sandbox::Project;

pub(crate) use self::prompt::first_prompt;

/// Sits down within the time of the task, which runs from `begun`; what is under way when it is
/// over is cancelled and cleaned up.
pub(super) async fn sit_down_in_time(
    place: &Place,
    aim: Aim<'_>,
    front: &Front,
    begun: Instant,
    session: &mut Option<SessionId>,
) -> Result<Seat, (Error, Option<Recorder>)> {
    let cancel = front.interrupt.run().child_token();
    let mut sitting = Box::pin(sit_down(place, aim, None, front, &cancel, session));
    let seconds = place.config.agent.timeout.get();
    if seconds == 0 {
        return sitting.await;
    }
    let left = Duration::from_secs(seconds).saturating_sub(begun.elapsed());
    if let Ok(seated) = tokio::time::timeout(left, &mut sitting).await {
        return seated;
    }
    cancel.cancel();
    match sitting.await {
        // Whatever it stumbled over, the time was what made it stumble; a user who left in the
        // meantime comes first.
        Err((_, recorder)) if !front.interrupt.is_ended() => {
            if let Some(recorder) = &recorder {
                recorder.emit(Kind::LimitReached {
                    limit: LimitKind::Time,
                    at_end: true,
                });
            }
            Err((Error::Late { seconds }, recorder))
        }
        seated => seated,
    }
}

/// Opens the project, starts sandbox and model side by side, and prepares the conversation. `cancel`
/// ends that, and only that. An error after the log was begun has its recorder with it.
pub(super) async fn sit_down(
    place: &Place,
    aim: Aim<'_>,
    only: Option<&[&str]>,
    front: &Front,
    cancel: &CancellationToken,
    session: &mut Option<SessionId>,
) -> Result<Seat, (Error, Option<Recorder>)> {
    let opened = OpenedSession::open(place, aim, front).map_err(|error| (error, None))?;
    *session = Some(opened.recorder.session().clone());
    let recorder = opened.recorder.clone();
    Box::pin(take_seat(opened, place, aim, only, front, cancel))
        .await
        .map_err(|error| (error, Some(recorder)))
}

async fn take_seat(
    mut opened: OpenedSession,
    place: &Place,
    aim: Aim<'_>,
    only: Option<&[&str]>,
    front: &Front,
    cancel: &CancellationToken,
) -> Result<Seat, Error> {
    opened.lock_review(&place.state)?;
    let can_answer = front.asker.can_answer();
    let servers = name_servers(&opened, place, only).asking(can_answer);
    let progress = &progress_of(&opened.recorder);
    let ground = opened.ground.clone();
    let mut bench = Bench::open(&opened.config, &place.state, ground, cancel).await?;
    if matches!(aim, Aim::Chat) && can_answer {
        bench.let_grant();
    }
    if opened.is_planning {
        bench.begin_read_only();
    }
    model::check(&bench)?;
    bench.sweep_aside();
    let bench = &bench;
    let project = bench.project().ok().map(Project::path);
    let OfferedTools {
        catalogue,
        agent_types,
        skills,
        searcher,
    } = OfferedTools::of(&opened, project, only);
    let start = Start {
        place,
        aim,
        front,
        opened: &opened,
        bench,
        progress,
        servers: &servers,
        cancel,
    };
    let (mut startup, catalogue) = start.both(catalogue).await?;
    beginning::tell(&mut opened, &mut startup, bench, cancel).await;
    let assembly = Assembly {
        place,
        aim,
        front,
        bench,
        progress,
        opened,
        startup,
        agent_types,
        skills,
    };
    Box::pin(assembly.seat(catalogue, searcher, cancel)).await
}

/// Returns the MCP servers of a session that may have any, and says what is wrong with them.
fn name_servers(opened: &OpenedSession, place: &Place, only: Option<&[&str]>) -> NamedServers {
    if only.is_some() {
        return NamedServers::default();
    }
    let project = opened.ground.project();
    let (servers, warnings) = mcp::session::name(&opened.config, project, place.mode, &place.state);
    for warning in warnings {
        opened.recorder.warn(warning);
    }
    servers
}

/// Returns the task that an approved plan is.
pub(super) fn plan_task(plan: &Plan) -> String {
    format!(
        "The user approved this plan, and the project can be changed again. Implement it now, step by step:\n\n{}",
        plan.text
    )
}

/// Begins a new session's log.
pub(super) fn begin(
    place: &Place,
    project: String,
    aim: Aim<'_>,
    watcher: &Sink,
) -> Result<Recorder, Error> {
    let header = Kind::SessionStarted {
        version: podbay_session::VERSION,
        session: SessionId::random(),
        podbay: env!("CARGO_PKG_VERSION").to_owned(),
        project,
        mode: place.mode.as_str().to_owned(),
        task: aim.task().map(ToOwned::to_owned),
    };
    Recorder::begin(
        &place.state,
        &place.config.session,
        header,
        place.api_key.as_ref(),
        Arc::clone(watcher),
    )
}
