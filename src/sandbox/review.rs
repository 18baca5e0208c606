//! Changes that are held back until a person accepts them.
//!
//! A session works on a file system that is laid over the project: what it changes lies in a volume of its own, and the project stays as it
//! is. Where nothing can be laid over it, the whole project is copied. The volumes carry the session's name and stay until what is in them
//! is accepted or discarded. The keeper sees the copy read-only, and the project beside it; what it does with them is `guest::keep::review`.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Error;
use super::Options;
use super::Project;
use super::Sandbox;
use super::Spec;
use super::docker::facts_of;
use super::guest_volume::bare;
use super::keeper::Keeper;
use super::keeper::LineError;
use super::keeper::Purpose;
use super::kept::Way;
use super::lost::must_go;
use super::overlay::overlay;
use super::turns::with_causes;
use crate::engine;
use crate::engine::ContainerSpec;
use crate::engine::Content;
use crate::engine::Engine;
use crate::engine::Labels;
use crate::engine::Leftover;
use crate::engine::Mount;
use crate::engine::Owner;
use crate::engine::Role;
use crate::engine::VolumeFile;
use crate::event::ByteSize;
use crate::event::InstanceId;
use crate::event::SessionId;
use crate::guest;
use crate::wire::keep::Pending;
use crate::wire::keep::ReviewAnswer;
use crate::wire::keep::ReviewOrder;

/// How often a volume is tried to be removed whose last container is just going.
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// Names the volumes of one review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Held {
    session: SessionId,
    kind: Kind,
}

/// How a session comes to its copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// What is laid over the project takes up its changes.
    LaidOver,
    /// The whole project is just being copied.
    Copying,
    /// It was.
    Copied,
}

/// A review whose volumes are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldReview {
    pub session: SessionId,
}

impl Held {
    /// Finds out which kind of copy a session has or is to have.
    async fn of(engine: &Engine, session: &SessionId, cancel: &CancellationToken) -> Result<Self, Error> {
        let copied = Self { session: session.clone(), kind: Kind::Copied };
        // It is made when all is copied.
        let folder = engine.volume_folder(&copied.copy(), cancel).await.map_err(Error::engine("look at what was held back"))?;
        Ok(if folder.is_some() { copied } else { Self { kind: Kind::LaidOver, ..copied } })
    }

    pub(super) fn is_laid_over(&self) -> bool {
        self.kind == Kind::LaidOver
    }

    /// What the session changed.
    fn upper(&self) -> String {
        format!("podbay-review-{}", self.session)
    }

    /// The project with these changes.
    fn copy(&self) -> String {
        let kind = if self.is_laid_over() { "copy" } else { "whole" };
        format!("podbay-review-{}-{kind}", self.session)
    }

    fn labels(&self, project: &Project) -> Labels {
        Labels { project: Some(project.key()), session: Some(self.session.clone()), ..Labels::new(Role::Review) }
    }

    pub(super) fn take_the_place_of_the_project(&self, container: &mut ContainerSpec) {
        container.mounts.retain(|mount| !matches!(mount, Mount::Bind { .. }));
        container.mounts.push(Mount::Volume { name: self.copy(), target: "/workspace".to_owned(), read_only: false });
    }

    /// Shows both to a keeper.
    pub(super) fn show(&self, container: &mut ContainerSpec) {
        let (copy, upper) = ((self.copy(), "/review/copy"), (self.upper(), "/review/upper"));
        let shown = match self.kind {
            Kind::LaidOver => vec![copy, upper],
            Kind::Copying => vec![upper],
            Kind::Copied => vec![copy],
        };
        let read_only = self.kind != Kind::Copying;
        container.mounts.extend(shown.into_iter().map(|(name, target)| Mount::Volume { name, target: target.to_owned(), read_only }));
    }

    /// Makes the volume that the session works on. One that is there may be of a path that the project had before.
    async fn ready(&self, engine: &Engine, project: &Project, cancel: &CancellationToken) -> Result<(), Error> {
        let exchange = async {
            let Some(folder) = engine.volume_folder(&self.upper(), cancel).await? else { return Ok(false) };
            engine.remove_volume(&self.copy(), cancel).await?;
            let (options, whole) = (overlay(project.text(), &folder), format!("{folder}/up"));
            let mounted = if self.is_laid_over() { ("overlay", "overlay", options.as_str()) } else { ("none", whole.as_str(), "bind") };
            engine.create_mounted_volume(&self.copy(), &self.labels(project), mounted, cancel).await?;
            Ok(true)
        };
        if exchange.await.map_err(Error::engine("make the copy that the session works on"))? {
            Ok(())
        } else {
            Err(Error::NotStarted { problem: format!("the volume `{}` of the review is gone", self.upper()) })
        }
    }
}

/// Returns the same box with its changes held back. A session that had a review before goes on in that.
pub async fn hold_back(
    engine: &Engine,
    spec: &Spec,
    options: &Options,
    session: &SessionId,
    cancel: &CancellationToken,
) -> Result<Spec, Error> {
    let held = Held::of(engine, session, cancel).await?;
    make_upper(engine, spec, &held, cancel).await?;
    let facts = facts_of(engine, cancel).await?;
    if held.is_laid_over() && (!facts.local || facts.desktop) {
        return copy_whole(engine, spec, options, session, "the engine's machine is another one", cancel).await;
    }
    held.ready(engine, &spec.project, cancel).await?;
    Ok(spec.held_back(&held))
}

/// Whether a box did not start because nothing can be laid over the project, or over what the engine keeps volumes on.
pub fn cannot_lay_over(error: &Error) -> bool {
    matches!(error, Error::Engine { source, .. } if source.to_string().contains("failed to mount local volume"))
}

/// Copies the whole project for a session, where nothing can be laid over it; `why` is what a person is told.
pub async fn copy_whole(
    engine: &Engine,
    spec: &Spec,
    options: &Options,
    session: &SessionId,
    why: &str,
    cancel: &CancellationToken,
) -> Result<Spec, Error> {
    // What was laid over it is in nobody's use.
    let laid_over = Held { session: session.clone(), kind: Kind::LaidOver };
    let failed = Error::engine("make the copy that the session works on");
    engine.remove_volume(&laid_over.copy(), cancel).await.map_err(failed)?;
    let copying = spec.held_back(&Held { kind: Kind::Copying, ..laid_over.clone() });
    let labels = Labels { owner: Some(Owner::current()), ..Labels::new(Role::Keeper) };
    let within = options.start_timeout.duration();
    let mut keeper = Keeper::start(engine, &copying, &labels, Purpose::Look, within, cancel).await?;
    let answer = keeper.review(ReviewOrder::Copy, cancel).await;
    keeper.discard(engine).await;
    let ReviewAnswer::Copied(copied) = answer? else { return Err(Error::Cancelled) };
    let held = Held { kind: Kind::Copied, ..laid_over };
    held.ready(engine, &spec.project, cancel).await?;
    let mut spec = spec.held_back(&held);
    let size = ByteSize::new(copied.n_bytes).rounded();
    let over = if copied.n_passed_over > 0 { format!(", without {} that cannot be copied", copied.n_passed_over) } else { String::new() };
    spec.warnings.push(format!("the run works on a copy of the whole project ({} files, {size}{over}): {why}", copied.n_files));
    Ok(spec)
}

/// Makes the volume of what the session changes.
async fn make_upper(engine: &Engine, spec: &Spec, held: &Held, cancel: &CancellationToken) -> Result<(), Error> {
    let mode = std::fs::metadata(spec.project.path()).map_or(0o755, |facts| facts.permissions().mode() & 0o777);
    let (uid, gid) = spec.ids();
    let folder = |path: &str, mode: u32, (uid, gid): (u32, u32)| VolumeFile {
        path: path.to_owned(),
        mode,
        uid: uid.into(),
        gid: gid.into(),
        content: Content::Folder,
    };
    let exchange = async {
        if engine.volume_folder(&held.upper(), cancel).await?.is_some() {
            return Ok(());
        }
        engine.create_volume(&held.upper(), &held.labels(&spec.project), cancel).await?;
        let labels = Labels { owner: Some(Owner::current()), ..Labels::new(Role::Filler) };
        let filler = bare(&spec.container(format!("podbay-filler-{}-{}", guest::build_id(), InstanceId::random()), labels, None));
        let files = [folder("up/", mode, (uid, gid)), folder("wk/", 0o700, (0, 0))];
        engine.fill_volume(&held.upper(), &filler, &files, cancel).await
    };
    let made: Result<(), engine::Error> = exchange.await;
    made.map_err(Error::engine("make the volume for what is to be reviewed"))
}

/// Returns the reviews of a project whose volumes are there.
pub async fn reviews(engine: &Engine, project: &Project, cancel: &CancellationToken) -> Result<Vec<HeldReview>, Error> {
    let volumes = engine.volumes(cancel).await.map_err(Error::engine("list what waits to be reviewed"))?;
    let session = |leftover: Leftover| match leftover {
        Leftover::Volume { labels, .. } if labels.role == Role::Review && labels.project == Some(project.key()) => labels.session,
        _ => None,
    };
    let mut found: Vec<SessionId> = volumes.into_iter().filter_map(session).collect();
    found.sort_by(|one, other| one.as_str().cmp(other.as_str()));
    found.dedup();
    Ok(found.into_iter().map(|session| HeldReview { session }).collect())
}

/// Shows, brings in or discards what is held back, by a keeper of its own. `held`: the review whose copy it may have to look at.
pub async fn review(
    engine: &Engine,
    spec: &Spec,
    options: &Options,
    held: Option<&HeldReview>,
    order: ReviewOrder,
    cancel: &CancellationToken,
) -> Result<ReviewAnswer, Error> {
    let mut spec = spec.clone();
    if let Some(HeldReview { session }) = held {
        let held = Held::of(engine, session, cancel).await?;
        held.ready(engine, &spec.project, cancel).await?;
        spec = spec.held_back(&held);
    }
    let labels = Labels { owner: Some(Owner::current()), ..Labels::new(Role::Keeper) };
    let purpose = if order.writes() { Purpose::Restore } else { Purpose::Keep };
    let mut keeper = Keeper::start(engine, &spec, &labels, purpose, options.start_timeout.duration(), cancel).await?;
    let answer = keeper.review(order, cancel).await;
    keeper.discard(engine).await;
    answer
}

/// Removes the volumes of a review. Nothing may use them any more.
pub async fn remove_review(engine: &Engine, review: &HeldReview, cancel: &CancellationToken) -> Result<(), Error> {
    let of_kind = |kind: Kind| Held { session: review.session.clone(), kind };
    // First what is mounted from the last one: it may be in use a moment longer than its container.
    for name in [of_kind(Kind::LaidOver).copy(), of_kind(Kind::Copied).copy(), of_kind(Kind::LaidOver).upper()] {
        let mut n_tries = 0;
        loop {
            let failed = Error::engine("remove what was reviewed");
            let is_there = !engine.remove_volume(&name, cancel).await.map_err(failed)?
                && engine.volume_folder(&name, cancel).await.map_err(Error::engine("remove what was reviewed"))?.is_some();
            if !is_there {
                break;
            }
            n_tries += 1;
            if n_tries == ATTEMPTS {
                return Err(Error::VolumeInUse { name });
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
    Ok(())
}

impl Sandbox {
    /// Keeps how the project is, beside whatever comes next; only a call that may change something waits for it. Where that fails it is said,
    /// and no such call is carried out.
    /// `is_new`: no session has worked on this review before.
    pub fn begin_review(&self, words: &str, is_new: bool, cancel: &CancellationToken) {
        let (Some(name), Way::Engine(made)) = (self.reviewed(), &self.inner.way) else { return };
        let is_copied = made.spec.review.as_ref().is_some_and(|held| !held.is_laid_over());
        let order = ReviewOrder::Begin { name: name.to_string(), words: words.to_owned(), is_copied };
        let beginning = self.inner.base.begin(is_new);
        let (sandbox, cancel) = (self.clone(), cancel.clone());
        tokio::spawn(async move {
            let kept = sandbox.tell_review(order, &cancel).await;
            if let Err(error) = &kept
                && !cancel.is_cancelled()
            {
                sandbox.say_once(not_kept(error));
            }
            beginning.end(kept.map(|_| ()).map_err(Arc::new));
        });
    }

    /// Ends the box and finds what it changed; `None`: changes are not held back. What changed nothing is removed.
    ///
    /// A person who does not want to wait leaves it to be found later.
    pub async fn end_review(&self) -> Option<Result<Pending, Error>> {
        let session = self.reviewed()?;
        let cancel = self.inner.haste.get_or_init(CancellationToken::new);
        self.end_box().await;
        // It has no end before it has begun.
        let _ = self.inner.base.is_kept(cancel).await;
        let order = ReviewOrder::End { name: session.to_string(), auto_run: self.inner.options.auto_run.clone() };
        Some(match self.tell_review(order, cancel).await {
            Ok(ReviewAnswer::Ended(pending)) => {
                if pending.changes.is_empty() {
                    self.remove_empty(session, cancel).await;
                }
                Ok(pending)
            }
            Ok(_) => Ok(Pending::default()),
            Err(error) if self.inner.base.is_in_vain() => {
                tracing::debug!(%error, "a review that never began is removed");
                self.remove_empty(session, cancel).await;
                return None;
            }
            Err(error) => Err(error),
        })
    }

    /// Ends a box that nothing came of, with whatever was made for it.
    pub async fn give_up(&self) {
        if let Some(Err(error)) = self.end_review().await {
            tracing::debug!(%error, "a review that was begun is left");
        }
        // Nothing has run there, and what was made for the session's git goes with it.
        self.close_session().await;
    }

    pub fn is_reviewed(&self) -> bool {
        self.reviewed().is_some()
    }

    fn reviewed(&self) -> Option<SessionId> {
        match &self.inner.way {
            Way::Engine(made) => made.spec.review.as_ref().map(|held| held.session.clone()),
            Way::Attached(_) => None,
        }
    }

    async fn tell_review(&self, order: ReviewOrder, cancel: &CancellationToken) -> Result<ReviewAnswer, Error> {
        let Way::Engine(made) = &self.inner.way else { return Err(Error::Cancelled) };
        let within = self.inner.options.start_timeout.duration();
        let ask = |order| Box::pin(made.covering.review(&made.engine, &made.spec, &made.labels, within, order, cancel));
        match ask(order.clone()).await {
            // Whatever it did before its end, another one does again.
            Err(Error::Keeper { source: source @ (LineError::Ended { .. } | LineError::Broken(_)) }) => {
                tracing::warn!(error = %source, "the keeper ended, and another one takes its place");
                ask(order).await
            }
            other => other,
        }
    }

    async fn remove_empty(&self, session: SessionId, cancel: &CancellationToken) {
        let Way::Engine(made) = &self.inner.way else { return };
        made.covering.discard(&made.engine).await;
        if let Err(error) = remove_review(&made.engine, &HeldReview { session }, cancel).await {
            tracing::debug!(%error, "the volumes of a review without changes are left");
        }
    }

    /// Ends the box for good; the keeper stays.
    async fn end_box(&self) {
        let mut state = self.inner.state.lock().await;
        state.end();
        if let Some(running) = state.running.take() {
            let must_go = must_go(&running);
            running.link.close();
            if must_go {
                self.inner.remove(&running).await;
            }
        }
    }
}

fn not_kept(error: &Error) -> String {
    format!("nothing can be changed in this run, since how the project is could not be kept before: {}", with_causes(error))
}
