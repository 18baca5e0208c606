//! The git of a session whose changes are pending review: its folder is kept with the review.

use async_recursion::async_recursion as boxed;
use tokio_util::sync::CancellationToken;

use super::Ended;
use super::Options;
use super::settle;
use super::settle::Left;
use super::settle::OfReview;
use super::top::Top;
use super::volume;
use crate as sandbox;
use crate::Error;
use crate::Spec;
use podbay_engine::Engine;
use podbay_engine::Labels;
use podbay_engine::Owner;
use podbay_engine::Role;
use podbay_event::SessionId;
use podbay_wire::keep::ReviewedGit;
use podbay_wire::keep::git_of_review;

/// Returns the name of the volume with the git folder of a pending review.
pub(crate) fn volume_of(session: &SessionId) -> String {
    volume::name(&git_of_review(session.as_str()))
}

/// Returns the name of the volume with the pointer of a linked worktree.
pub(crate) fn volume_of_below(session: &SessionId) -> String {
    volume::name_of_below(&git_of_review(session.as_str()))
}

/// Returns whether the volume of the git folder exists.
pub(crate) async fn is_there(
    engine: &Engine,
    session: &SessionId,
    cancel: &CancellationToken,
) -> Result<bool, Error> {
    let folder = engine.volume_folder(&volume_of(session), cancel).await;
    Ok(folder
        .map_err(Error::engine("look for the session's git folder"))?
        .is_some())
}

/// Creates that volume for a new session, if its project has a repository; returns whether it has.
pub(crate) async fn keep_for_review(
    engine: &Engine,
    spec: &Spec,
    session: &SessionId,
    cancel: &CancellationToken,
) -> Result<bool, Error> {
    if is_there(engine, session, cancel).await? {
        return Ok(true);
    }
    if Top::of(&spec.project) == Top::None {
        return Ok(false);
    }
    let labels = Labels {
        session: Some(session.clone()),
        ..Labels::new(Role::Git)
    };
    volume::make(engine, spec, &labels, &volume_of(session), cancel).await?;
    Ok(true)
}

/// Imports what the session of a review did with git. If all was imported, the review records it,
/// and is done if no path is pending.
///
/// `spec` is that of the project itself. With `with_auto_run`, commits with auto-run files are
/// imported too, and the files are named. Can be repeated after a kill at any point.
#[boxed]
pub async fn take_over(
    engine: &Engine,
    spec: &Spec,
    (sandbox, options): (&sandbox::Options, &Options),
    session: &SessionId,
    with_auto_run: bool,
    cancel: &CancellationToken,
) -> Result<Ended, Error> {
    let id = git_of_review(session.as_str());
    let has_folder = is_there(engine, session, cancel).await?;
    let labels = Labels {
        owner: Some(Owner::current()),
        session: Some(session.clone()),
        ..Labels::new(Role::Keeper)
    };
    let again = format!(
        "podbay review apply {session}{}",
        if with_auto_run { " --commits" } else { "" }
    );
    let cut = Error::cut(
        &format!("what was being taken over of the git of review {session}, after its files,"),
        &again,
    );
    let left = Left {
        id: &id,
        top: if has_folder {
            Top::of(&spec.project)
        } else {
            Top::None
        },
        has_folder,
        is_top_theirs: None,
        review: Some(OfReview {
            name: session.to_string(),
            how: ReviewedGit {
                auto_run: sandbox.auto_run.clone(),
                with_auto_run,
            },
        }),
    };
    settle::settle(
        engine,
        spec,
        &labels,
        options,
        left,
        sandbox.start_timeout.duration(),
    )
    .await
    .map_err(cut)
}
