//! A session whose turns go into the project one by one, each as a whole at its end.
//!
//! Commands work on a copy that is laid over the project. When a turn has ended, the keeper brings
//! in what it changed, and the session gets a new copy while the user reads; whoever calls in
//! that moment waits. Commands in the background keep the copy and its sandbox: what they change
//! comes with the next turn. So does a copy in which something waits, since it could not come.

use std::sync::Arc;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use async_recursion::async_recursion as boxed;
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;

use super::Error;
use super::HeldReview;
use super::Sandbox;
use super::Spec;
use super::docker::Running;
use super::docker::discard;
use super::entries::Entries;
use super::git;
use super::held::Held;
use super::keeper::Keeper;
use super::keeper::Purpose;
use super::keeper::Sees;
use super::kept::Made;
use super::kept::State;
use super::kept::Way;
use super::review::remove_review;
use super::review::remove_view;
use super::scratch::CarriedFolder;
use super::turns::with_causes;
use podbay_engine::Mount;
use podbay_event::SessionId;
use podbay_wire::BytesPath;
use podbay_wire::Call;
use podbay_wire::Cd;
use podbay_wire::keep::EndOfTurn;
use podbay_wire::keep::ReviewAnswer;
use podbay_wire::keep::ReviewOrder;
use podbay_wire::keep::ReviewedTurn;
use podbay_wire::keep::TakenHunks;
use podbay_wire::keep::TurnFate;

/// What a change is told by that no turn has made.
const IN_BACKGROUND: &str = "background commands";

/// How long a sandbox may take to say what runs in it.
const LOOK: Duration = Duration::from_secs(2);

/// On what a session gets a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Renewal {
    SameCopy,
    NewCopy,
    /// A new one, in the place of one whose changes were dropped.
    AfterDrop,
}

#[derive(Debug)]
struct Begun {
    n_turn: u64,
    words: String,
    /// Also what runs by itself on the user's machine.
    with_auto_run: bool,
    fate: TurnFate,
    /// Paths and hunks that are applied; all if there are none.
    only: Vec<BytesPath>,
    hunks: Vec<TakenHunks>,
}

impl Begun {
    fn new(n_turn: u64, words: &str) -> Self {
        Self {
            n_turn,
            words: words.to_owned(),
            with_auto_run: false,
            fate: TurnFate::Keep,
            only: Vec::new(),
            hunks: Vec::new(),
        }
    }
}

/// What of a turn is applied, as the user chose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnSelection {
    /// Paths; all if there are none.
    pub only: Vec<BytesPath>,
    pub hunks: Vec<TakenHunks>,
    /// Also what runs by itself on the user's machine.
    pub with_auto_run: bool,
}

/// How far a session is with its turns.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The turn that is under way.
    begun: Option<Begun>,
    /// Whether how the project was is on record for it, or for one before it in the same copy.
    is_on_record: bool,
    /// What runs by itself on the user's machine comes unasked.
    accepts_auto_run: bool,
    /// What is pending at the end is not applied.
    keeps_pending: bool,
    /// How many paths that left pending.
    n_kept_pending: u64,
    /// Commits of a turn before wait: a command in the background kept them from being taken over.
    commits_wait: bool,
}

/// What came of a turn whose changes go into the project at its end.
#[derive(Clone, Debug)]
pub struct HeldTurn {
    pub turn: ReviewedTurn,
    /// What of the session's git was taken over with it, where something was there.
    pub git: Option<git::Ended>,
    /// What keeps the session in what it worked on.
    pub background: Vec<String>,
}

impl HeldTurn {
    /// Whether commits of the session are not in the project's repository: not all were imported,
    /// or none was tried.
    pub fn has_pending_commits(&self) -> bool {
        !self.turn.came.git.is_empty() && !self.git.as_ref().is_some_and(git::Ended::is_settled)
    }
}

impl Sandbox {
    /// Whether each turn goes into the project at its end.
    pub fn is_by_turn(&self) -> bool {
        matches!(&self.inner.way, Way::Engine(made) if made.spec.is_by_turn())
    }

    pub(super) fn begin_held_turn(&self, n_turn: u64, words: &str) {
        let with_auto_run = self.progress().accepts_auto_run;
        self.progress().begun = Some(Begun {
            with_auto_run,
            ..Begun::new(n_turn, words)
        });
        self.begin_view(words);
    }

    /// Keeps how the project is, beside whatever comes next, and has the session see what the
    /// person changed since it was last kept.
    pub fn begin_view(&self, words: &str) {
        let is_new = !std::mem::replace(&mut self.progress().is_on_record, true);
        self.begin_review(words, is_new, &CancellationToken::new());
    }

    /// Applies what the turn changed that was begun; `None`: none was, or it could not be brought
    /// in, which is said.
    pub(super) async fn end_held_turn(&self, cancel: &CancellationToken) -> Option<HeldTurn> {
        let begun = self.progress().begun.take()?;
        // Where how the project was is not kept nothing was changed.
        self.inner.base.is_kept(cancel).await.ok()?;
        let (session, Way::Engine(made)) = (self.reviewed()?, &self.inner.way) else {
            return None;
        };
        let (background, directory) = self.look_inside(cancel).await;
        // A copy of the whole project is made once.
        let keeps_view = !background.is_empty()
            || made
                .newest()
                .review
                .is_some_and(|held| !held.is_laid_over());
        let order = self.end_of_turn(made, &begun, begun.fate, keeps_view);
        let turn = match self
            .tell_review(
                ReviewOrder::Turn {
                    name: session.to_string(),
                    turn: order.clone(),
                },
                cancel,
            )
            .await
        {
            Ok(ReviewAnswer::Turn(turn)) => *turn,
            Ok(_) => return None,
            Err(error) => {
                self.say_once(not_in(&session, &error));
                return None;
            }
        };
        let mut ended = HeldTurn {
            turn,
            git: None,
            background,
        };
        let is_new = ended.turn.needs_view(&order);
        let takes_git = !ended.turn.came.git.is_empty()
            && ended.turn.n_left == 0
            && ended.background.is_empty();
        if is_new || takes_git {
            // A call waits until the next copy is there.
            let mut state = Arc::clone(&self.inner.state).lock_owned().await;
            let mut holder = None;
            if takes_git {
                holder = self.end_view(made, &mut state).await;
                ended.git = self.take_git(made, &session, cancel).await;
            }
            self.renew_aside(
                state,
                directory,
                if is_new {
                    Renewal::NewCopy
                } else {
                    Renewal::SameCopy
                },
                holder,
            );
        }
        self.progress().commits_wait = ended.has_pending_commits();
        Some(ended)
    }

    fn end_of_turn(
        &self,
        made: &Made,
        begun: &Begun,
        fate: TurnFate,
        keeps_view: bool,
    ) -> EndOfTurn {
        EndOfTurn {
            fate,
            n_turn: begun.n_turn,
            words: begun.words.clone(),
            keeps_view,
            next_view: made.newest().review.map_or(0, |held| held.view()) + 1,
            with_auto_run: begun.with_auto_run,
            auto_run: self.inner.options.auto_run.clone(),
            only: begun.only.clone(),
            hunks: begun.hunks.clone(),
        }
    }

    /// Shows all that is pending, with its diff; `None`: nothing is. The turn continues.
    #[boxed]
    pub async fn show_pending(
        &self,
        n_turn: u64,
        words: &str,
        cancel: &CancellationToken,
    ) -> Option<ReviewedTurn> {
        let (session, Way::Engine(made)) = (self.reviewed()?, &self.inner.way) else {
            return None;
        };
        if !self.is_by_turn() || !self.progress().is_on_record {
            return None;
        }
        self.inner.base.is_kept(cancel).await.ok()?;
        let order = {
            let mut progress = self.progress();
            let begun = progress
                .begun
                .get_or_insert_with(|| Begun::new(n_turn, words));
            self.end_of_turn(made, begun, TurnFate::Show, true)
        };
        let order = ReviewOrder::Turn {
            name: session.to_string(),
            turn: order,
        };
        match self.tell_review(order, cancel).await {
            Ok(ReviewAnswer::Turn(turn)) => {
                (turn.n_left > 0 || !turn.came.git.is_empty()).then_some(*turn)
            }
            Ok(_) => None,
            Err(error) => {
                self.say_once(format!(
                    "what is pending cannot be shown: {}",
                    with_causes(&error)
                ));
                None
            }
        }
    }

    /// Has the end of the turn apply only this.
    pub fn select_of_turn(&self, selection: TurnSelection) {
        if let Some(begun) = &mut self.progress().begun {
            begun.only = selection.only;
            begun.hunks = selection.hunks;
            begun.with_auto_run |= selection.with_auto_run;
        }
    }

    /// Keeps what is pending at the end of the session as a review, where the user did not decide on
    /// it, instead of applying it.
    pub fn keep_pending(&self) {
        self.progress().keeps_pending = true;
    }

    /// Returns how many paths the end of the session left pending.
    pub fn n_kept_pending(&self) -> u64 {
        self.progress().n_kept_pending
    }

    /// Whether what is pending can be dropped while the session continues. Where the whole project
    /// was copied nothing takes the place of the copy, so that what is in there stays.
    pub fn can_drop(&self) -> bool {
        match &self.inner.way {
            Way::Engine(made) => {
                self.is_by_turn() && made.spec.review.as_ref().is_some_and(Held::is_laid_over)
            }
            Way::Attached(_) => false,
        }
    }

    /// Counts what the turn that is under way has changed, commits included, and what could be
    /// dropped.
    #[boxed]
    pub async fn count_changes(&self, cancel: &CancellationToken) -> u64 {
        let (Some(session), Way::Engine(made)) = (self.reviewed(), &self.inner.way) else {
            return 0;
        };
        if !self.can_drop() || self.inner.base.is_kept(cancel).await.is_err() {
            return 0;
        }
        let order = match &self.progress().begun {
            Some(begun) => self.end_of_turn(made, begun, TurnFate::Count, false),
            None => return 0,
        };
        match self
            .tell_review(
                ReviewOrder::Turn {
                    name: session.to_string(),
                    turn: order,
                },
                cancel,
            )
            .await
        {
            Ok(ReviewAnswer::Turn(turn)) => {
                turn.n_left + u64::from(!turn.came.git.is_empty() && !self.progress().commits_wait)
            }
            _ => 0,
        }
    }

    /// Drops what the turn that is under way has changed, commits included. What runs in the
    /// background ends.
    #[boxed]
    pub async fn drop_turn(&self, cancel: &CancellationToken) -> Result<(), Error> {
        let (Some(session), Way::Engine(made)) = (self.reviewed(), &self.inner.way) else {
            return Ok(());
        };
        let Some(begun) = self.progress().begun.take() else {
            return Ok(());
        };
        let (_, directory) = self.look_inside(cancel).await;
        let mut state = Arc::clone(&self.inner.state).lock_owned().await;
        let order = self.end_of_turn(made, &begun, TurnFate::Drop, false);
        if let Err(error) = self
            .tell_review(
                ReviewOrder::Turn {
                    name: session.to_string(),
                    turn: order,
                },
                cancel,
            )
            .await
        {
            self.progress().begun = Some(begun);
            return Err(error);
        }
        let holder = self.end_view(made, &mut state).await;
        if self.progress().commits_wait {
            self.say_once(
                "commits of earlier turns wait, and those of this one stay with them".to_owned(),
            );
        } else if let Some(git) = &made.git {
            git.drop_folder(&made.engine).await;
            git.begin_anew(&made.engine, &made.spec, &session, cancel)
                .await;
        }
        self.renew_aside(state, directory, Renewal::AfterDrop, holder);
        Ok(())
    }

    /// Does it beside whatever comes next.
    fn renew_aside(
        &self,
        state: OwnedMutexGuard<State>,
        directory: Option<BytesPath>,
        renewal: Renewal,
        holder: Option<Keeper>,
    ) {
        let sandbox = self.clone();
        tokio::spawn(async move {
            sandbox.renew(state, directory, renewal).await;
            if let Some(holder) = holder {
                holder.close();
            }
        });
    }

    /// Has what runs by itself on the user's machine come with each turn from now on.
    pub fn accept_all_auto_run(&self) {
        self.progress().accepts_auto_run = true;
    }

    /// Applies, too, what the last turn left that runs by itself on the user's machine, as it
    /// was then.
    #[boxed]
    pub async fn accept_auto_run(
        &self,
        n_turn: u64,
        words: &str,
        cancel: &CancellationToken,
    ) -> Option<HeldTurn> {
        self.progress().begun = Some(Begun {
            with_auto_run: true,
            fate: TurnFate::Accept,
            ..Begun::new(n_turn, words)
        });
        self.end_held_turn(cancel).await
    }

    /// Takes over what the session did with git. What cannot come waits.
    async fn take_git(
        &self,
        made: &Made,
        session: &SessionId,
        cancel: &CancellationToken,
    ) -> Option<git::Ended> {
        let options = made.spec.git.as_ref()?;
        let spec = made.spec.in_place();
        let taken = Box::pin(git::take_over(
            &made.engine,
            &spec,
            (&self.inner.options, options),
            session,
            false,
            cancel,
        ))
        .await;
        match taken {
            Ok(ended) => {
                if ended.is_settled()
                    && let Some(git) = &made.git
                {
                    git.begin_anew(&made.engine, &made.spec, session, cancel)
                        .await;
                }
                Some(ended)
            }
            Err(error) => {
                self.say_once(not_in(session, &error));
                None
            }
        }
    }

    /// Ends the sandbox and the keeper, which have the copy. Returns a container that has the
    /// session's temporary folders meanwhile.
    async fn end_view(&self, made: &Made, state: &mut State) -> Option<Keeper> {
        let holder = self.hold_scratch(made).await;
        made.covering.close().await;
        if let Some(running) = state.running.take() {
            running.link.close();
            discard(&made.engine, &running).await;
        }
        holder
    }

    /// Starts a container that has the session's temporary folders, where they are in memory: they
    /// are there as long as a container has them. Those on disk need none.
    async fn hold_scratch(&self, made: &Made) -> Option<Keeper> {
        let newest = made.newest();
        if !newest.is_scratch_in_memory() {
            return None;
        }
        let mounts: Vec<Mount> = newest
            .carried()
            .into_iter()
            .enumerate()
            .map(carried)
            .collect();
        let within = self.inner.options.start_timeout.duration();
        let (spec, cancel) = (made.spec.in_place(), CancellationToken::new());
        let holder = Keeper::start_with(
            &made.engine,
            &spec,
            &made.labels,
            Purpose::Look,
            Sees::Aside(&mounts),
            within,
            &cancel,
        )
        .await;
        holder.inspect_err(|error| tracing::debug!(%error, "what the session has in its temporary folders is lost")).ok()
    }

    /// Gives the session a sandbox on a copy of the project: a new one, or the one it has.
    async fn renew(
        &self,
        mut state: OwnedMutexGuard<State>,
        directory: Option<BytesPath>,
        renewal: Renewal,
    ) {
        let Way::Engine(made) = &self.inner.way else {
            return;
        };
        let cancel = &CancellationToken::new();
        let spec = made.newest();
        let Some(old) = spec.review.clone().filter(|_| !state.is_over()) else {
            return;
        };
        if renewal == Renewal::NewCopy
            && let Some(order) = self.begin_order("")
            && let Err(error) = self.tell_review(order, cancel).await
        {
            // Kept before the new copy is there, so that nothing which that remembers is older.
            tracing::debug!(%error, "how the project is was not kept between two turns");
        }
        made.covering.close().await;
        let is_new = renewal != Renewal::SameCopy;
        let next = if is_new { old.next_view() } else { old.clone() };
        // What is in memory goes with the last container that has it.
        let before = state.running.take();
        let renewed = self.make_view(made, &spec, &next, cancel).await;
        if let Some(before) = &before {
            before.link.close();
        }
        match renewed {
            Ok(running) => {
                if let Some(path) = directory {
                    // Where that is gone the next command says so.
                    let _ = running
                        .link
                        .call(Call::Cd(Cd { path }), |_, _| {}, cancel, LOOK)
                        .await;
                }
                state.take_over(running, Entries::of(&spec.project));
            }
            // The next call tries it again, and says so.
            Err(error) => {
                tracing::warn!(%error, "the next sandbox of the session was not made ahead");
            }
        }
        // Where there was no new one the session continues in the old one.
        let is_given_up = is_new && made.newest().review.as_ref() != Some(&old);
        // The next call does not wait for this.
        let engine = made.engine.clone();
        self.inner.removals.spawn(async move {
            if let Some(before) = before {
                discard(&engine, &before).await;
            }
            let cancel = CancellationToken::new();
            if is_given_up && let Err(error) = remove_view(&engine, &old, &cancel).await {
                tracing::debug!(%error, "a copy that was worked on is left");
            }
        });
        // From here on the session may be closed, which waits for the removals.
        drop(state);
    }

    async fn make_view(
        &self,
        made: &Made,
        spec: &Spec,
        next: &Held,
        cancel: &CancellationToken,
    ) -> Result<Running, Error> {
        next.ready(&made.engine, &spec.project, cancel).await?;
        *made.view.lock().unwrap_or_else(PoisonError::into_inner) = Some(next.clone());
        self.inner.make(cancel).await
    }

    /// Ends a session whose turns went into the project: what background commands changed comes as
    /// well. Where nothing waits, nothing of it stays.
    #[boxed]
    pub async fn end_by_turn(&self) -> Option<HeldTurn> {
        let (session, Way::Engine(made)) = (self.reviewed()?, &self.inner.way) else {
            return None;
        };
        let cancel = self.inner.haste.get_or_init(CancellationToken::new);
        self.end_processes().await;
        let mut ended = None;
        let keeps_pending = self.progress().keeps_pending;
        if keeps_pending && let Some(pending) = self.show_pending(0, IN_BACKGROUND, cancel).await {
            // Commits alone are something to decide on, too.
            self.progress().n_kept_pending = pending.n_left.max(1);
            return None;
        }
        if self.progress().is_on_record {
            self.progress()
                .begun
                .get_or_insert_with(|| Begun::new(0, IN_BACKGROUND));
            ended = self.end_held_turn(cancel).await;
            let is_all_in =
                |ended: &HeldTurn| ended.turn.n_left == 0 && !ended.has_pending_commits();
            if !ended.as_ref().is_some_and(is_all_in) && !self.inner.base.is_in_vain() {
                return ended;
            }
        }
        let discard = ReviewOrder::Discard {
            name: session.to_string(),
            is_held: true,
        };
        if let Err(error) = self.tell_review(discard, cancel).await {
            tracing::debug!(%error, "what is on record of a session is left");
        }
        made.covering.discard(&made.engine).await;
        if let Err(error) = remove_review(&made.engine, &HeldReview::of(&session), cancel).await {
            tracing::debug!(%error, "the volumes of a session are left");
        }
        ended
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.inner
            .progress
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shows one of a session's temporary folders to a container that only holds it.
fn carried((number, folder): (usize, CarriedFolder)) -> Mount {
    Mount::Volume {
        name: folder.volume,
        target: format!("/held/{number}"),
        read_only: true,
    }
}

fn not_in(session: &SessionId, error: &Error) -> String {
    format!(
        "the changes of this turn are not applied yet; the next turn applies them, or, when this chat has ended, `podbay review apply {session}`: \
         {}",
        with_causes(error)
    )
}
