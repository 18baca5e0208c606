//! Taking back what turns changed, and bringing it back.

use async_recursion::async_recursion as boxed;
use tokio_util::sync::CancellationToken;

use super::Error;
use super::Front;
use super::Place;
use super::bench::Bench;
use super::bench::Ground;
use super::exit_code;
use podbay_engine::Labels;
use podbay_engine::Owner;
use podbay_engine::Role;
use podbay_event::Kind;
use podbay_event::ProgressSink;
use podbay_sandbox as sandbox;
use podbay_session::CommandRecord;
use podbay_wire::keep::UndoAnswer;
use podbay_wire::keep::UndoOrder;
use podbay_wire::keep::UndoOutcome;

/// Names that the model is told at the most.
const MOST_TOLD: usize = 50;

/// Shows or undoes what turns of the project changed. Whoever changes files holds the project
/// for that time.
#[boxed]
pub async fn undo(place: &Place, order: UndoOrder, front: &Front) -> Result<UndoAnswer, Error> {
    let cancel = front.interrupt.run();
    let ground = match Ground::open(place)? {
        Ground::Socket(_) => return Err(Error::not_attached("`podbay undo`")),
        project @ Ground::Project(_) => project,
    };
    let lock = if order.writes() {
        Some(ground.lock(&place.state)?)
    } else {
        None
    };
    let mut record = order.writes().then(|| {
        CommandRecord::begin(
            &place.state,
            &place.config.session,
            "undo",
            ground.text(),
            words_of(&order),
        )
    });
    let bench = Bench::open(&place.config, &place.state, ground, cancel).await?;
    bench.sweep_aside();
    let answer = Box::pin(ask(&bench, order, front, cancel)).await;
    if let Some(record) = &mut record {
        record.end(
            answer
                .as_ref()
                .map_or_else(Error::exit_code, |_| exit_code::DONE),
        );
    }
    bench.tell_left(&front.sink);
    if let Some(lock) = lock {
        lock.release();
    }
    answer
}

/// Says which order it is, for the record.
fn words_of(order: &UndoOrder) -> &'static str {
    match order {
        UndoOrder::List => "list",
        UndoOrder::Diff { .. } => "diff",
        UndoOrder::Back { .. } => "undo",
        UndoOrder::Forward { .. } => "redo",
        UndoOrder::Retry { .. } => "retry",
        UndoOrder::Resume => "resume",
        UndoOrder::Abandon => "abandon",
    }
}

async fn ask(
    bench: &Bench,
    order: UndoOrder,
    front: &Front,
    cancel: &CancellationToken,
) -> Result<UndoAnswer, Error> {
    let sink = std::sync::Arc::clone(&front.sink);
    let progress: ProgressSink = std::sync::Arc::new(move |step| sink(Kind::Progress(step).into()));
    let spec = bench.spec(&progress, cancel).await?;
    let labels = Labels {
        owner: Some(Owner::current()),
        ..Labels::new(Role::Keeper)
    };
    let sink = &front.sink;
    let say = |message: String| sink(Kind::Warning { message }.into());
    let answer = sandbox::undo(
        bench.engine()?,
        &spec,
        &bench.config.sandbox,
        labels,
        order,
        &say,
        cancel,
    )
    .await;
    finished(answer.map_err(Error::Sandbox)?)
}

/// Returns an answer, if it is not that nothing could be done.
pub(super) fn finished(answer: UndoAnswer) -> Result<UndoAnswer, Error> {
    if answer == UndoAnswer::Unfinished {
        Err(Error::Unfinished)
    } else {
        Ok(answer)
    }
}

/// Returns what the model should know of what the user undid or brought back; `None`: nothing
/// was changed by it.
pub(super) fn for_model(undone: &UndoOutcome) -> Option<String> {
    let mut paths: Vec<String> = undone
        .turns
        .iter()
        .flat_map(|turn| &turn.applied.changed.first)
        .map(ToString::to_string)
        .collect();
    paths.sort();
    paths.dedup();
    if paths.is_empty() {
        return None;
    }
    let n_more = paths.len().saturating_sub(MOST_TOLD);
    paths.truncate(MOST_TOLD);
    let more = if n_more > 0 {
        format!(", and {n_more} more")
    } else {
        String::new()
    };
    Some(format!(
        "The user has set files back to how they were before, or after, an earlier turn: {}{more}. Read them again before you change them.",
        paths.join(", ")
    ))
}
