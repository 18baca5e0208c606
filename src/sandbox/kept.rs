use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use async_recursion::async_recursion as boxed;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::CacheMount;
use super::Error;
use super::Gateway;
use super::Options;
use super::Socket;
use super::Spec;
use super::base::Base;
use super::by_turn;
use super::covering::Covering;
use super::docker::Running;
use super::entries::Entries;
use super::git;
use super::git::SessionGit;
use super::held::Held;
use super::link;
use super::link::Asks;
use super::link::Link;
use super::link::Nobody;
use super::lost::must_go;
use super::lost::what_follows;
use super::turns::Turn;
use super::turns::may_change;
use podbay_engine::Engine;
use podbay_engine::Labels;
use podbay_engine::Moment;
use podbay_event::Kind;
use podbay_event::Sink;
use podbay_wire::Call;
use podbay_wire::ExecGate;
use podbay_wire::Fault;
use podbay_wire::Output;
use podbay_wire::message::DiskBegan;
use podbay_wire::message::Facts;
use podbay_wire::message::Stream;

/// The sandbox of a session. When it ends under us it is made anew for the next call, a few times; the
/// call that was under way says so.
#[derive(Clone)]
pub struct Sandbox {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) way: Way,
    pub(super) options: Options,
    pub(super) sink: Sink,
    pub(super) turn: Turn,
    pub(super) base: Base,
    pub(super) haste: OnceLock<CancellationToken>,
    /// What was free on the project's disk then.
    pub(super) began: OnceLock<DiskBegan>,
    /// What is to be said of an environment that was not joined.
    pub(super) beside: OnceLock<String>,
    /// Ends the search through what of the project there was no time for at the start.
    pub(super) searching: CancellationToken,
    /// Of a session whose turns go into the project.
    pub(super) progress: std::sync::Mutex<by_turn::Progress>,
    /// Tells what a search beside the calls finds, if there is one.
    pub(super) telling: std::sync::Mutex<Option<JoinHandle<()>>>,
    /// A session that joined the sandbox of `podbay up`, and whose git is not on record yet.
    pub(super) is_unrecorded: AtomicBool,
    /// Whether a call was made that may change something: before that, nothing has run in any sandbox.
    pub(super) has_run: AtomicBool,
    /// Removals of what the next sandbox of a session has taken the place of.
    pub(super) removals: TaskTracker,
    pub(super) state: Arc<Mutex<State>>,
}

/// How a sandbox is had.
pub(super) enum Way {
    /// Made by an engine, or joined there.
    Engine(Box<Made>),
    /// It is there, and Podbay did not start it.
    Attached(Socket),
}

impl Way {
    /// Returns what stands in the project now; nothing where the project is not ours to look at.
    pub(super) fn entries(&self) -> Entries {
        match self {
            Self::Engine(made) => Entries::of(&made.spec.project),
            Self::Attached(_) => Entries::default(),
        }
    }
}

/// What a sandbox is made with.
pub(super) struct Made {
    pub(super) engine: Engine,
    pub(super) spec: Spec,
    pub(super) labels: Labels,
    pub(super) covering: Covering,
    /// For a session alone.
    pub(super) git: Option<SessionGit>,
    /// For a session that may reach chosen hosts.
    pub(super) gateway: Option<Gateway>,
    /// The copy that a session works on now, if that is not the first one.
    pub(super) view: std::sync::Mutex<Option<Held>>,
    /// Plan mode: the next sandbox cannot write to the project.
    pub(super) read_only: AtomicBool,
    /// The caches of package managers, where an install phase of the session has changed which
    /// there are.
    pub(super) caches: std::sync::Mutex<Option<Vec<CacheMount>>>,
}

impl Made {
    /// Returns what the next sandbox is made with.
    pub(super) fn newest(&self) -> Spec {
        let read_only = self.read_only.load(Ordering::Acquire);
        let spec = match &*self.view.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(held) => self.spec.held_back(held),
            None => self.spec.clone(),
        }
        .reading_only(read_only);
        match &*self.caches.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(caches) => spec.with_caches(caches.clone()),
            None => spec,
        }
    }
}

#[derive(Default)]
pub(super) struct State {
    pub(super) running: Option<Running>,
    /// The last sandbox, which was told to end and is to be removed.
    pub(super) ending: Option<Running>,
    /// What stood in the project when the sandbox that is or was running was made.
    entries: Entries,
    /// A sandbox was made while there was no `.git` in the project.
    git_was_away: bool,
    /// Counts the sandboxes; tells whose end a late error speaks of.
    pub(super) n_boxes: u32,
    /// The end of the sandbox that is or was running has been told.
    pub(super) told: bool,
    ends: VecDeque<Instant>,
    pub(super) last_reason: String,
    /// What was found that the sandbox which runs does not cover, in words.
    pub(super) found_late: Option<String>,
    closed: bool,
}

impl State {
    /// Before the first sandbox, in a project where this stands.
    pub(super) fn new(entries: Entries) -> Self {
        Self {
            entries,
            git_was_away: !entries.has_git(),
            ..Self::default()
        }
    }

    /// No other sandbox is made from now on.
    pub(super) fn end(&mut self) {
        self.closed = true;
    }

    pub(super) fn is_over(&self) -> bool {
        self.closed
    }

    /// Takes a sandbox that was made in the place of one which has ended in order.
    pub(super) fn take_over(&mut self, running: Running, entries: Entries) {
        self.running = Some(running);
        self.entries = entries;
        self.git_was_away |= !entries.has_git();
        self.found_late = None;
        self.n_boxes += 1;
        self.told = false;
    }
}

/// A sandbox that answers.
struct Living {
    link: Link,
    n_box: u32,
    /// Why the one before has ended, where nobody was told of it yet.
    in_place_of: Option<String>,
}

impl Sandbox {
    /// Names the token by which cancelled calls get no more time to end by themselves. The first
    /// one counts.
    pub fn hurry_at(&self, haste: &CancellationToken) {
        let _ = self.inner.haste.set(haste.clone());
    }

    /// Executes one call. That the sandbox ended is a fault the model can read; that none is available
    /// any more is an error.
    pub async fn call(
        &self,
        call: Call,
        on_chunk: impl FnMut(Stream, &[u8]) + Send,
        cancel: &CancellationToken,
        deadline: Duration,
    ) -> Result<Output, Error> {
        self.call_asking(call, on_chunk, &Nobody, cancel, deadline)
            .await
    }

    /// Like [`Sandbox::call`]; where the guest asks whether a program continues, `asks` answers.
    pub async fn call_asking(
        &self,
        call: Call,
        on_chunk: impl FnMut(Stream, &[u8]) + Send,
        asks: &dyn Asks,
        cancel: &CancellationToken,
        deadline: Duration,
    ) -> Result<Output, Error> {
        if may_change(&call) {
            self.inner.turn.may_change(cancel).await;
            self.record_git(cancel).await;
            match self.inner.base.is_kept(cancel).await {
                Err(_) if cancel.is_cancelled() => return Ok(Output::Fault(Fault::Cancelled)),
                kept => kept?,
            }
        }
        if may_change(&call) {
            self.inner.has_run.store(true, Ordering::Release);
        }
        let living = self.living(cancel).await?;
        if let Some(reason) = living.in_place_of {
            // What the model counts on may be gone, so it hears of that before anything else
            // happens.
            let problem = format!(
                "{reason}. This call was not executed: repeat it if it is still what you want"
            );
            return Ok(Output::Fault(Fault::BoxEnded { problem }));
        }
        let since = Moment::now();
        let haste = self.inner.haste.get_or_init(CancellationToken::new);
        match living
            .link
            .call_asking(call, on_chunk, asks, cancel, haste, deadline)
            .await
        {
            // The guest ends its sandbox, and its answer came before its last word.
            Ok(Output::Fault(Fault::BoxEnded { problem })) => Ok(box_ended(
                self.lost(&living.link, living.n_box, problem, true, since)
                    .await,
            )),
            Ok(Output::Command(ended)) => Ok(Output::Command(self.explained(ended, since).await)),
            Ok(output) => Ok(output),
            Err(error) => match error.into_fault() {
                Ok(fault) => Ok(Output::Fault(fault)),
                Err(error) => {
                    // A guest that does not even react to its call being cancelled is of no use to
                    // anybody else who shares its sandbox.
                    let given_up = matches!(
                        error,
                        link::Error::Unresponsive { .. } | link::Error::Overdue { .. }
                    );
                    Ok(box_ended(
                        self.lost(
                            &living.link,
                            living.n_box,
                            error.to_string(),
                            given_up,
                            since,
                        )
                        .await,
                    ))
                }
            },
        }
    }

    /// Begins a program of the session that the caller drives, such as a server. Like a call that
    /// may change something it waits until how the project was is kept.
    #[boxed]
    pub async fn open(
        &self,
        call: Call,
        cancel: &CancellationToken,
    ) -> Result<link::OpenCall, Error> {
        self.inner.turn.may_change(cancel).await;
        self.record_git(cancel).await;
        self.inner.base.is_kept(cancel).await?;
        self.inner.has_run.store(true, Ordering::Release);
        let living = self.living(cancel).await?;
        if let Some(reason) = living.in_place_of {
            return Err(Error::Replaced { reason });
        }
        living.link.open(call).map_err(Error::Link)
    }

    /// Returns the link to a living sandbox, made anew if the last one has ended.
    #[boxed]
    pub async fn link(&self, cancel: &CancellationToken) -> Result<Link, Error> {
        self.inner.has_run.store(true, Ordering::Release);
        self.living(cancel).await.map(|living| living.link)
    }

    async fn living(&self, cancel: &CancellationToken) -> Result<Living, Error> {
        let mut state = self.inner.state.lock().await;
        let entries = self.inner.way.entries();
        let before = state.entries;
        let mut why = None;
        let (n_box, found_late) = (state.n_boxes, state.found_late.clone());
        if let Some(running) = &mut state.running
            && running.link.ended().is_none()
        {
            let replaced = before.gone(entries).map(|name| {
                format!("`{name}` of the project was replaced or removed while the sandbox ran, which protects what it started with")
            });
            // That of `podbay up` protects it as little for anybody else.
            running.owned |= replaced.is_some() && running.id.is_some();
            why = replaced.or(found_late);
            let Some(why) = &why else {
                return Ok(Living {
                    link: running.link.clone(),
                    n_box,
                    in_place_of: None,
                });
            };
            tracing::info!(why, "the sandbox is made anew");
            running.link.close();
        }
        if state.closed {
            return Err(Error::Cancelled);
        }
        let mut in_place_of = None;
        if let Some(gone) = state.running.take() {
            if !state.told {
                let reason = why.unwrap_or_else(|| {
                    gone.link
                        .ended()
                        .map_or_else(String::new, |reason| reason.to_string())
                });
                self.tell(&mut state, &reason);
                in_place_of = Some(format!("{reason}. {}", what_follows(&gone)));
            }
            if must_go(&gone) {
                self.inner.remove(&gone).await;
            }
            let now = Instant::now();
            let window = self.inner.options.restart_window.duration();
            state.ends.retain(|&end| now.duration_since(end) < window);
            state.ends.push_back(now);
        }
        if state.ends.len() > self.inner.options.restarts as usize {
            return Err(Error::KeepsEnding {
                count: state.ends.len() as u32,
                within: self.inner.options.restart_window,
                reason: state.last_reason.clone(),
            });
        }
        let running = self.inner.make(cancel).await?;
        let link = running.link.clone();
        state.take_over(running, entries);
        Ok(Living {
            link,
            n_box: state.n_boxes,
            in_place_of,
        })
    }

    /// Returns the container's id, where it is ours to name, and what the guest said of its sandbox.
    #[boxed]
    pub async fn describe(&self) -> Option<(Option<String>, Facts)> {
        let state = self.inner.state.lock().await;
        state.running.as_ref().map(|running| {
            (
                running.id.as_ref().map(|id| id.0.clone()),
                running.facts.clone(),
            )
        })
    }

    /// Returns whether the programs that commands start are seen, as far as that is known.
    #[boxed]
    pub async fn exec_gate(&self) -> ExecGate {
        let state = self.inner.state.lock().await;
        let is_known = |running: &&Running| {
            matches!(self.inner.way, Way::Engine(_)) || running.link.ended().is_none()
        };
        state
            .running
            .as_ref()
            .filter(is_known)
            .map_or(ExecGate::Absent, |running| running.link.exec_gate())
    }

    /// Ends the sandbox for good after a session in which a model gave the orders, takes over what it
    /// did with git, and moves aside what that may have left for git to obey. Returns what came of
    /// that.
    #[boxed]
    pub async fn close_session(&self) -> Option<git::Ended> {
        if self.close_unused().await {
            return Some(git::Ended::unused());
        }
        let is_shared = self.is_shared().await;
        self.close().await;
        let Way::Engine(made) = &self.inner.way else {
            return None;
        };
        if made.spec.review.is_some() {
            // It could make none there, and what it did with git waits with the rest.
            return None;
        }
        if let Some(ended) = self.settle_git(made).await {
            return Some(ended);
        }
        let (entries, was_away) = {
            let state = self.inner.state.lock().await;
            (state.entries, state.git_was_away)
        };
        if is_shared && made.labels.session.is_none() {
            // The next command in that sandbox expects it; joining it says that it is not protected.
            return None;
        }
        let message = match entries.set_git_aside(was_away, &made.spec.project) {
            Ok(None) => return None,
            Ok(Some(name)) => format!(
                "a `.git` was made in this session and is now `{name}`: git on your machine would run what its hooks and settings say; look at \
                 them, then `mv {name} .git`"
            ),
            Err(error) => format!(
                "a `.git` was made in this session and cannot be moved aside ({error}): git on your machine will run what its hooks and \
                 settings say; look at them, or remove it"
            ),
        };
        (self.inner.sink)(Kind::Warning { message }.into());
        None
    }

    /// Returns whether it is a sandbox that others use as well.
    pub(super) async fn is_shared(&self) -> bool {
        let state = self.inner.state.lock().await;
        state.running.as_ref().is_some_and(|running| !running.owned)
    }

    /// Ends the sandbox and the keeper of a session that did nothing with git, and made nothing for it
    /// to obey. Returns whether it was one.
    async fn close_unused(&self) -> bool {
        let Way::Engine(made) = &self.inner.way else {
            return false;
        };
        let Some(git) = &made.git else { return false };
        if made.spec.review.is_some() {
            return false;
        }
        self.end_processes().await;
        let cancel = self.inner.haste.get_or_init(CancellationToken::new);
        let has_run = self.inner.has_run();
        if !made.covering.forget_git(git, has_run, cancel).await {
            return false;
        }
        self.inner.searching.cancel();
        tokio::join!(
            self.remove_ending(),
            made.covering.discard(&made.engine),
            self.inner.close_gateway()
        );
        if !self.inner.is_unrecorded.load(Ordering::Acquire) {
            git.forget(&made.engine).await;
        }
        true
    }

    /// `None`: nobody knows how the repositories were, or it could not be done.
    async fn settle_git(&self, made: &Made) -> Option<git::Ended> {
        let git = made.git.as_ref()?;
        let is_top_theirs = {
            let state = self.inner.state.lock().await;
            state
                .entries
                .is_git_theirs(state.git_was_away, &made.spec.project)
        };
        let within = self.inner.options.start_timeout.duration();
        match git
            .settle(
                &made.engine,
                &made.spec,
                &made.labels,
                within,
                is_top_theirs,
            )
            .await?
        {
            Ok(ended) => {
                for kind in ended.told() {
                    (self.inner.sink)(kind.into());
                }
                Some(ended)
            }
            Err(error) => {
                (self.inner.sink)(git::Ended::failed(&git.volume(), &error).into());
                None
            }
        }
    }

    /// Ends the sandbox and waits until it is removed.
    #[boxed]
    pub async fn close(&self) {
        self.inner.searching.cancel();
        let mut state = self.inner.state.lock().await;
        state.closed = true;
        self.inner.close_keeper().await;
        let mut ending = state.ending.take();
        if let Some(running) = state.running.take() {
            let must_go = must_go(&running);
            running.link.close();
            if must_go {
                ending = Some(running);
            }
        }
        self.inner.close_gateway().await;
        if let Some(running) = ending {
            self.inner.remove(&running).await;
        }
        drop(state);
        self.inner.removals.wait().await;
    }

    /// Returns the session's way to chosen hosts, where it may have one.
    pub fn gateway(&self) -> Option<&Gateway> {
        self.inner.gateway()
    }
}

impl Inner {
    pub(super) fn gateway(&self) -> Option<&Gateway> {
        match &self.way {
            Way::Engine(made) => made.gateway.as_ref(),
            Way::Attached(_) => None,
        }
    }

    pub(super) async fn close_gateway(&self) {
        if let Some(gateway) = self.gateway() {
            gateway.close().await;
        }
    }

    pub(super) fn has_run(&self) -> bool {
        self.has_run.load(Ordering::Acquire)
    }

    pub(super) async fn close_keeper(&self) {
        if let Way::Engine(made) = &self.way {
            made.covering.close().await;
        }
    }

    pub(super) async fn forget_git(&self) {
        if let Way::Engine(made) = &self.way
            && let Some(git) = &made.git
        {
            git.forget(&made.engine).await;
        }
    }

    pub(super) async fn make(&self, cancel: &CancellationToken) -> Result<Running, Error> {
        let running = self.make_one(cancel).await?;
        if let Some(began) = running.facts.disk {
            // The first one counts.
            let _ = self.began.set(began);
        }
        Ok(running)
    }

    async fn make_one(&self, cancel: &CancellationToken) -> Result<Running, Error> {
        let began = self.began.get().copied();
        let within = self.options.start_timeout.duration();
        match &self.way {
            Way::Engine(made) => {
                let Made { engine, .. } = made.as_ref();
                let spec = &made.newest().counting_from(began);
                let running =
                    Box::pin(made.covering.make(made, spec, within, &self.beside, cancel)).await;
                for left in engine.take_left() {
                    (self.sink)(
                        Kind::Warning {
                            message: left.to_string(),
                        }
                        .into(),
                    );
                }
                running
            }
            Way::Attached(socket) => {
                let (link, facts) = socket.connect(began, within, cancel).await?;
                Ok(Running {
                    id: None,
                    link,
                    facts,
                    owned: false,
                    found: None,
                    search: None,
                })
            }
        }
    }
}

fn box_ended(problem: String) -> Output {
    Output::Fault(Fault::BoxEnded { problem })
}
