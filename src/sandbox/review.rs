//! Changes that are pending review.
//!
//! A session works on an overlay over the project: its changes are in a volume of its own, and the
//! project stays as it is. Where no overlay is possible, the whole project is copied. The volumes
//! carry the session's name and stay until the changes are applied or discarded. The keeper sees
//! the copy read-only, and the project beside it; its part is `guest::keep::review`.

use std::time::Duration;

use async_recursion::async_recursion as boxed;
use tokio_util::sync::CancellationToken;

use super::Error;
use super::Options;
use super::Project;
use super::Spec;
use super::docker::facts_of;
use super::git;
use super::held::Held;
use super::held::Kind;
use super::held::last_view;
use super::held::upper_of;
use super::keeper::Keeper;
use super::keeper::Purpose;
use podbay_engine::Engine;
use podbay_engine::Labels;
use podbay_engine::Leftover;
use podbay_engine::Owner;
use podbay_engine::Role;
use podbay_event::ByteSize;
use podbay_event::SessionId;
use podbay_wire::keep::ReviewAnswer;
use podbay_wire::keep::ReviewOrder;

/// Attempts to remove a volume whose last container is just ending.
const ATTEMPTS: u32 = 1000;
const PAUSE: Duration = Duration::from_millis(10);

/// A review whose volumes exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldReview {
    pub session: SessionId,
    /// The path of the project when the session worked on it, if it was another one. The review's
    /// records are stored by that path.
    pub elsewhere: Option<String>,
    /// Whether each turn was applied to the project: pending changes are of the last turn only.
    pub is_by_turn: bool,
}

impl HeldReview {
    /// Returns the review of a session on the project's present path.
    pub fn of(session: &SessionId) -> Self {
        Self {
            session: session.clone(),
            elsewhere: None,
            is_by_turn: false,
        }
    }
}

/// Returns the spec of the same sandbox with a copy-on-write view. A session that had a review
/// continues it.
#[boxed]
pub async fn hold_back(
    engine: &Engine,
    spec: &Spec,
    options: &Options,
    session: &SessionId,
    by_turn: bool,
    cancel: &CancellationToken,
) -> Result<Spec, Error> {
    let mut held = Held {
        by_turn,
        ..Held::of(engine, session, cancel).await?
    };
    if by_turn && held.is_laid_over() {
        held.view.get_or_insert(0);
    }
    let (upper, git) = tokio::join!(
        make_upper(engine, spec, &held, cancel),
        git::keep_for_review(engine, spec, session, cancel)
    );
    upper?;
    held.has_git = git?;
    let facts = facts_of(engine, cancel).await?;
    if held.is_laid_over() && (!facts.local || facts.desktop) {
        return copy_whole(
            engine,
            spec,
            options,
            session,
            by_turn,
            "the engine's machine is another one",
            cancel,
        )
        .await;
    }
    held.ready(engine, &spec.project, cancel).await?;
    let held_back = spec.held_back(&held);
    held.make_carried(
        engine,
        &spec.project,
        &held_back.carried(),
        |target| spec.temporary(target),
        cancel,
    )
    .await?;
    Ok(held_back)
}

/// Returns whether a sandbox failed to start because no overlay is possible over the project, or
/// over the engine's volume storage.
pub fn cannot_lay_over(error: &Error) -> bool {
    matches!(error, Error::Engine { source, .. } if source.to_string().contains("failed to mount local volume"))
}

/// Copies the whole project for a session, where no overlay is possible; `why` is the message for
/// the user.
#[boxed]
pub async fn copy_whole(
    engine: &Engine,
    spec: &Spec,
    options: &Options,
    session: &SessionId,
    by_turn: bool,
    why: &str,
    cancel: &CancellationToken,
) -> Result<Spec, Error> {
    // The overlay's volumes are unused.
    let laid_over = Held {
        kind: Kind::LaidOver,
        by_turn,
        ..Held::of(engine, session, cancel).await?
    };
    let failed = Error::engine("make the copy that the session works on");
    engine
        .remove_volume(&laid_over.copy(), cancel)
        .await
        .map_err(failed)?;
    let copying = spec.held_back(&Held {
        kind: Kind::Copying,
        ..laid_over.clone()
    });
    let labels = Labels {
        owner: Some(Owner::current()),
        ..Labels::new(Role::Keeper)
    };
    let within = options.start_timeout.duration();
    let mut keeper =
        Keeper::start(engine, &copying, &labels, Purpose::Look, within, cancel).await?;
    let answer = keeper.review(ReviewOrder::Copy, cancel).await;
    keeper.discard(engine).await;
    let ReviewAnswer::Copied(copied) = answer? else {
        return Err(Error::Cancelled);
    };
    let held = Held {
        kind: Kind::Copied,
        ..laid_over
    };
    held.ready(engine, &spec.project, cancel).await?;
    let mut spec = spec.held_back(&held);
    let size = ByteSize::new(copied.n_bytes).rounded();
    let over = if copied.n_passed_over > 0 {
        format!(", without {} that cannot be copied", copied.n_passed_over)
    } else {
        String::new()
    };
    spec.warnings.push(format!(
        "the run works on a copy of the whole project ({} files, {size}{over}): {why}",
        copied.n_files
    ));
    Ok(spec)
}

/// Creates the volume for the session's changes. The folders in it come with the keeper.
async fn make_upper(
    engine: &Engine,
    spec: &Spec,
    held: &Held,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    engine
        .create_volume(&held.upper(), &held.labels(&spec.project), cancel)
        .await
        .map_err(Error::engine("make the volume for what is to be reviewed"))
}

/// Returns the reviews of a project whose volumes exist.
#[boxed]
pub async fn reviews(
    engine: &Engine,
    project: &Project,
    cancel: &CancellationToken,
) -> Result<Vec<HeldReview>, Error> {
    let volumes = engine
        .volumes(cancel)
        .await
        .map_err(Error::engine("list pending reviews"))?;
    let held = |leftover: Leftover| match leftover {
        Leftover::Volume { name, labels, .. }
            if labels.role == Role::Review && labels.project == Some(project.key()) =>
        {
            let session = labels.session?;
            let is_by_turn = last_view(std::slice::from_ref(&name), &upper_of(&session)).is_some();
            Some(HeldReview {
                session,
                elsewhere: labels.path.filter(|path| path != project.text()),
                is_by_turn,
            })
        }
        _ => None,
    };
    let mut found: Vec<HeldReview> = volumes.into_iter().filter_map(held).collect();
    // Of several volumes of one session the one with most information is kept.
    found.sort_by(|one, other| {
        (one.session.as_str(), other.is_by_turn).cmp(&(other.session.as_str(), one.is_by_turn))
    });
    found.dedup_by(|one, other| one.session == other.session);
    Ok(found)
}

/// Shows, applies or discards pending changes, by a keeper of its own. `held` is the review whose
/// copy it may have to read.
#[boxed]
pub async fn review(
    engine: &Engine,
    spec: &Spec,
    options: &Options,
    held: Option<&HeldReview>,
    order: ReviewOrder,
    cancel: &CancellationToken,
) -> Result<ReviewAnswer, Error> {
    let mut spec = spec.clone();
    if let Some(HeldReview { session, .. }) = held {
        let held = Held::of(engine, session, cancel).await?;
        held.ready(engine, &spec.project, cancel).await?;
        spec = spec.held_back(&held);
    }
    let labels = Labels {
        owner: Some(Owner::current()),
        ..Labels::new(Role::Keeper)
    };
    let purpose = if order.writes() {
        Purpose::Restore
    } else {
        Purpose::Keep
    };
    let mut keeper = Keeper::start(
        engine,
        &spec,
        &labels,
        purpose,
        options.start_timeout.duration(),
        cancel,
    )
    .await?;
    let cut = match &order {
        ReviewOrder::Apply { name, only, .. } => {
            // Without the paths the same command would apply all of the review.
            let again = if only.is_empty() {
                format!("podbay review apply {name}")
            } else {
                "podbay undo resume".to_owned()
            };
            Some(Error::cut(
                &format!("what was being applied of the review {name}"),
                &again,
            ))
        }
        _ => None,
    };
    let answer = keeper.review(order, cancel).await;
    keeper.discard(engine).await;
    match cut {
        Some(cut) => answer.map_err(cut),
        None => answer,
    }
}

/// Removes the volumes of a review, which must be unused.
#[boxed]
pub async fn remove_review(
    engine: &Engine,
    review: &HeldReview,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    let of_kind = |kind: Kind| Held {
        session: review.session.clone(),
        kind,
        has_git: false,
        by_turn: false,
        view: None,
    };
    let copies = of_kind(Kind::LaidOver).copies(engine, cancel).await?;
    let git = [
        git::volume_of_below(&review.session),
        git::volume_of(&review.session),
    ];
    let others = git.into_iter().chain(copies);
    let removing = others.map(|name| remove_when_free(engine, name, cancel));
    futures::future::try_join_all(removing).await?;
    // As long as this one is there, the others are known to be left. What is mounted from it may be
    // in use a moment longer than its container.
    remove_when_free(engine, of_kind(Kind::LaidOver).upper(), cancel).await
}

/// Removes a copy that the session no longer works on.
pub(super) async fn remove_view(
    engine: &Engine,
    held: &Held,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    remove_when_free(engine, held.copy(), cancel).await
}

async fn remove_when_free(
    engine: &Engine,
    name: String,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    for _ in 0..ATTEMPTS {
        let failed = Error::engine("remove what was reviewed");
        let is_there = !engine.remove_volume(&name, cancel).await.map_err(failed)?
            && engine
                .volume_folder(&name, cancel)
                .await
                .map_err(Error::engine("remove what was reviewed"))?
                .is_some();
        if !is_there {
            return Ok(());
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(Error::VolumeInUse { name })
}
