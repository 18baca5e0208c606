//! Turns: how the project was before and after each, kept so that it can be undone.
//!
//! Keeping it takes a moment, the first time more than one. So a turn begins beside whatever else
//! is to be done, such as the model's thinking, and only a call that may change something waits for
//! it.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use async_recursion::async_recursion as boxed;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Error;
use super::Options;
use super::Sandbox;
use super::Spec;
use super::by_turn::HeldTurn;
use super::environment;
use super::keeper::Keeper;
use super::keeper::Purpose;
use super::kept::Way;
use podbay_engine::Engine;
use podbay_engine::Labels;
use podbay_event::Kind;
use podbay_wire::BytesPath;
use podbay_wire::Call;
use podbay_wire::keep::TurnAnswer;
use podbay_wire::keep::TurnBegan;
use podbay_wire::keep::TurnEnded;
use podbay_wire::keep::TurnOrder;
use podbay_wire::keep::TurnState;
use podbay_wire::keep::UndoAnswer;
use podbay_wire::keep::UndoOrder;

/// What is said of a turn whose end nobody waited for.
const CUT_OFF: &str = "how the project is after this turn was not kept, because that was ended before it was done: what you change in the project \
                       before the next turn counts as this turn's, and `podbay undo` takes it back with the rest";

/// How many files are named that a turn left which was cut off.
const MOST_MAY_RUN: usize = 20;

/// Whether a turn is under way, and since when it may change something.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// Becomes true when how the project was is kept, or cannot be.
    begun: Mutex<Option<watch::Receiver<bool>>>,
    /// Whether how the project was is kept.
    is_kept: AtomicBool,
    /// Ends the keeping of that.
    stop: Mutex<CancellationToken>,
    /// Fires when something is to be changed: a turn that waits for that begins then.
    wanted: Mutex<CancellationToken>,
}

impl Turn {
    fn begin(&self) -> Begun {
        let (sender, receiver) = watch::channel(false);
        let stop = CancellationToken::new();
        let wanted = CancellationToken::new();
        self.is_kept.store(false, Ordering::Release);
        *self.begun.lock().unwrap_or_else(PoisonError::into_inner) = Some(receiver);
        self.stop
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone_from(&stop);
        self.wanted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone_from(&wanted);
        Begun {
            begun: sender,
            stop,
            wanted,
        }
    }

    /// Gives up what keeps how the project was, if that is still under way.
    fn stop(&self) {
        self.stop
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .cancel();
    }

    /// Begins the turn under way, if it waits for something to be changed.
    fn want(&self) {
        self.wanted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .cancel();
    }

    fn is_wanted(&self) -> bool {
        self.wanted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_cancelled()
    }

    /// Waits until the turn under way, if one is, may change something.
    pub(super) async fn may_change(&self, cancel: &CancellationToken) {
        self.want();
        self.has_begun(cancel).await;
    }

    async fn has_begun(&self, cancel: &CancellationToken) {
        let begun = self
            .begun
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let Some(mut begun) = begun else { return };
        tokio::select! {
            // Whoever was to say it may be gone.
            _ = begun.wait_for(|is_kept| *is_kept) => {}
            () = cancel.cancelled() => {}
        }
    }

    fn end(&self) -> bool {
        self.begun
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
            .is_some()
    }
}

/// What keeps how the project was tells, and is told.
struct Begun {
    begun: watch::Sender<bool>,
    stop: CancellationToken,
    wanted: CancellationToken,
}

/// What a turn changed in the project.
#[derive(Clone, Debug)]
pub enum EndedTurn {
    /// As it was made.
    InPlace(TurnEnded),
    /// At the turn's end.
    Came(Box<HeldTurn>),
}

impl Sandbox {
    /// Begins a turn: keeps how the project is, beside whatever comes next. Where that fails it is
    /// said, and the turn cannot be undone.
    pub fn begin_turn(&self, session: &str, n_turn: u64, words: &str) {
        if !self.has_turns() {
            return;
        }
        if self.is_by_turn() {
            return self.begin_held_turn(n_turn, words);
        }
        let Begun {
            begun,
            stop,
            wanted,
        } = self.inner.turn.begin();
        // A session that joined a sandbox has nothing of its own there before its first change.
        let is_unrecorded = self.inner.is_unrecorded.load(Ordering::Acquire);
        if !is_unrecorded {
            wanted.cancel();
        }
        let sandbox = self.clone();
        let order = TurnOrder::Begin {
            session: session.to_owned(),
            n_turn,
            words: words.to_owned(),
            place: self.place(),
            auto_run: self.auto_run(),
        };
        tokio::spawn(async move {
            tokio::select! {
                () = wanted.cancelled() => {}
                () = stop.cancelled() => return,
            }
            sandbox.record_git(&stop).await;
            match sandbox.tell_turn(order, &stop).await {
                Ok(TurnAnswer::Began(began)) => {
                    sandbox.inner.turn.is_kept.store(true, Ordering::Release);
                    for message in told(&began) {
                        sandbox.say_once(message);
                    }
                }
                Ok(TurnAnswer::Ended(_)) => {}
                // No call that changes anything waited for it to its end.
                Err(_) if stop.is_cancelled() => {}
                Err(error) => sandbox.say_once(not_kept(&error)),
            }
            let _ = begun.send(true);
        });
    }

    /// Ends the turn that was begun and returns what changed in it; `None`: none was begun, or it
    /// could not be kept, which is said.
    ///
    /// `cancel` leaves the turn as one that was killed in its middle.
    #[boxed]
    pub async fn end_turn(&self, cancel: &CancellationToken) -> Option<EndedTurn> {
        if self.is_by_turn() {
            return self
                .end_held_turn(cancel)
                .await
                .map(|ended| EndedTurn::Came(Box::new(ended)));
        }
        self.end_live_turn(cancel).await.map(EndedTurn::InPlace)
    }

    async fn end_live_turn(&self, cancel: &CancellationToken) -> Option<TurnEnded> {
        if !self.inner.turn.is_wanted() {
            // Nothing was to be changed.
            self.inner.turn.stop();
            return self.inner.turn.end().then(TurnEnded::default);
        }
        self.inner.turn.has_begun(cancel).await;
        if cancel.is_cancelled() {
            self.inner.turn.stop();
        }
        if !self.inner.turn.end() || !self.inner.turn.is_kept.load(Ordering::Acquire) {
            return None;
        }
        let end = TurnOrder::End {
            place: self.place(),
            auto_run: self.auto_run(),
        };
        let mut told = self.tell_turn(end.clone(), cancel).await;
        if let Err(error) = &told
            && !cancel.is_cancelled()
        {
            tracing::debug!(%error, "the turn was not ended, and is once more");
            // By another keeper, where the first one is gone.
            told = self.tell_turn(end, cancel).await;
        }
        match told {
            Ok(TurnAnswer::Ended(ended)) => Some(ended),
            Ok(TurnAnswer::Began(_)) => None,
            Err(_) if cancel.is_cancelled() => {
                self.say_once(CUT_OFF.to_owned());
                None
            }
            Err(error) => {
                self.say_once(not_ended(&error));
                None
            }
        }
    }

    /// Whether turns are kept at all: nobody does where Podbay did not start the sandbox.
    pub fn has_turns(&self) -> bool {
        !matches!(self.inner.way, Way::Attached(_))
    }

    /// Returns where the project's folder is on this machine; nothing where Podbay did not start the
    /// sandbox.
    fn place(&self) -> BytesPath {
        match &self.inner.way {
            Way::Engine(made) => BytesPath::from(made.spec.project.path()),
            Way::Attached(_) => BytesPath::default(),
        }
    }

    fn auto_run(&self) -> Vec<String> {
        self.inner.options.auto_run.clone()
    }

    /// Records the repositories of the project, where the session joined a sandbox and has not
    /// changed anything yet.
    pub(super) async fn record_git(&self, cancel: &CancellationToken) {
        let Way::Engine(made) = &self.inner.way else {
            return;
        };
        if !self.inner.is_unrecorded.load(Ordering::Acquire) {
            return;
        }
        let within = self.inner.options.start_timeout.duration();
        match Box::pin(made.covering.record_git(made, within, cancel)).await {
            Ok(notes) => {
                for note in notes {
                    self.say_once(note);
                }
            }
            Err(_) if cancel.is_cancelled() => return,
            Err(error) => tracing::debug!(%error, "how the repositories are is not on record"),
        }
        self.inner.is_unrecorded.store(false, Ordering::Release);
    }

    async fn tell_turn(
        &self,
        order: TurnOrder,
        cancel: &CancellationToken,
    ) -> Result<TurnAnswer, Error> {
        let Way::Engine(made) = &self.inner.way else {
            return Err(Error::Cancelled);
        };
        let within = self.inner.options.start_timeout.duration();
        let answer = Box::pin(made.covering.turn(
            &made.engine,
            &made.spec,
            &made.labels,
            within,
            order,
            cancel,
        ))
        .await;
        for message in made.covering.news().await {
            self.say_once(message);
        }
        answer
    }

    /// Shows or undoes what turns of this project changed, while the session continues.
    #[boxed]
    pub async fn undo(
        &self,
        order: UndoOrder,
        cancel: &CancellationToken,
    ) -> Result<UndoAnswer, Error> {
        let Way::Engine(made) = &self.inner.way else {
            let key = "sandbox.backend";
            return Err(Error::Setting {
                key,
                problem: "a sandbox that Podbay did not start has no undo".to_owned(),
            });
        };
        let order = order.beside_a_sandbox();
        let say = |message| self.say_once(message);
        Box::pin(undo(
            &made.engine,
            &made.spec.in_place(),
            &self.inner.options,
            made.labels.clone(),
            order,
            &say,
            cancel,
        ))
        .await
    }

    pub(super) fn say_once(&self, message: String) {
        (self.inner.sink)(Kind::Warning { message }.into());
    }
}

/// Shows or undoes what turns of a project changed, by a keeper of its own. What the user
/// should know before it is done goes to `say`.
#[boxed]
pub async fn undo(
    engine: &Engine,
    spec: &Spec,
    options: &Options,
    labels: Labels,
    mut order: UndoOrder,
    say: &(dyn Fn(String) + Sync),
    cancel: &CancellationToken,
) -> Result<UndoAnswer, Error> {
    if order.writes()
        && !matches!(
            environment::present(engine, spec, cancel).await?,
            environment::Present::None
        )
    {
        order = order.beside_a_sandbox();
    }
    let purpose = if order.writes() {
        Purpose::Restore
    } else {
        Purpose::Keep
    };
    let mut keeper = Keeper::start(
        engine,
        spec,
        &labels,
        purpose,
        options.start_timeout.duration(),
        cancel,
    )
    .await?;
    let answer = match cut_off(&mut keeper, &order, cancel).await {
        Ok(turns) => {
            for message in turns {
                say(message);
            }
            let writes = order.writes();
            let cut = Error::cut(
                "what was being undone, or brought back,",
                "podbay undo resume",
            );
            keeper
                .undo(order, cancel)
                .await
                .map_err(|error| if writes { cut(error) } else { error })
        }
        Err(error) => Err(error),
    };
    match &answer {
        Ok(_) => keeper.close(),
        Err(_) => keeper.discard(engine).await,
    }
    answer
}

/// Returns what to say of turns that are about to be undone and whose end nobody noted.
async fn cut_off(
    keeper: &mut Keeper,
    order: &UndoOrder,
    cancel: &CancellationToken,
) -> Result<Vec<String>, Error> {
    let UndoOrder::Back { n, .. } = order else {
        return Ok(Vec::new());
    };
    let UndoAnswer::Turns(turns) = keeper.undo(UndoOrder::List, cancel).await? else {
        return Ok(Vec::new());
    };
    let next = turns
        .turns
        .first
        .iter()
        .filter(|turn| turn.state != TurnState::TakenBack)
        .take(*n as usize);
    let cut_off = next.filter(|turn| turn.is_interrupted || turn.state == TurnState::Open);
    let words = |number| {
        format!(
            "turn {number} was cut off, so what you changed yourself after it may be among what is undone; `podbay undo redo` brings all of it back"
        )
    };
    Ok(cut_off.map(|turn| words(turn.turn)).collect())
}

/// Returns what a user should know of a turn that has begun.
fn told(began: &TurnBegan) -> Vec<String> {
    let mut words = Vec::new();
    if began.is_given_up {
        words.push(
            "an undo was interrupted, and this turn ends it: the turn it was about counts as not undone, so after this one `podbay undo 2` takes \
             both back, and `podbay undo retry` does what was left of a redo"
                .to_owned(),
        );
    }
    if began.is_unfinished {
        words.push(
            "changes that were being applied were interrupted: `podbay undo resume` finishes that, `podbay undo abandon` gives it up"
                .to_owned(),
        );
    }
    if !began.may_run.is_empty() {
        let first = began
            .may_run
            .first
            .iter()
            .take(MOST_MAY_RUN)
            .map(|file| format!("{} ({})", file.path, file.why));
        let named = first.collect::<Vec<_>>().join(", ");
        let n_more = began.may_run.n.saturating_sub(MOST_MAY_RUN as u64);
        let more = if n_more > 0 {
            format!(" and {n_more} more")
        } else {
            String::new()
        };
        words.push(format!(
            "the turn before was cut off, and of what changed in the project since it began this may run on your machine: {named}{more}"
        ));
    }
    if !began.passed_over.is_empty() {
        let first: Vec<String> = began
            .passed_over
            .first
            .iter()
            .take(3)
            .map(|over| format!("{} ({})", over.path, over.why))
            .collect();
        let n_more = began.passed_over.n.saturating_sub(first.len() as u64);
        let more = if n_more > 0 {
            format!(" and {n_more} more")
        } else {
            String::new()
        };
        words.push(format!(
            "`podbay undo` cannot bring back what is not kept: {}{more}",
            first.join(", ")
        ));
    }
    words
}

fn not_kept(error: &Error) -> String {
    format!(
        "what is changed now cannot be undone by `podbay undo`: {}",
        with_causes(error)
    )
}

fn not_ended(error: &Error) -> String {
    format!(
        "the end of this turn could not be noted, so what you change in the project before the next turn counts as this turn's, and `podbay undo` takes \
         it back with the rest: {}",
        with_causes(error)
    )
}

pub(super) fn with_causes(error: &Error) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |error| error.source())
        .map(|cause| format!(": {cause}"));
    format!("{error}{}", causes.collect::<String>())
}

/// Returns whether a call may change the project. What only looks need not wait.
pub(super) fn may_change(call: &Call) -> bool {
    call.facts().effect.changes_files()
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_wire::keep::MayRun;
    use podbay_wire::keep::NamedList;
    use podbay_wire::keep::RunTrigger;

    #[test]
    fn what_a_person_should_know_of_a_turn_is_said_as_it_begins() {
        let (passed_over, may_run) = (NamedList::default(), NamedList::default());
        let began = TurnBegan {
            turn: 1,
            n_files: 1,
            passed_over,
            is_unfinished: false,
            is_given_up: false,
            may_run,
        };
        assert!(told(&began).is_empty());
        let may_run = (0..25).map(|n| MayRun {
            path: format!("{n}/Makefile\u{202e}").as_str().into(),
            why: "a build runs it".to_owned(),
            when: RunTrigger::ByItself,
        });
        let words = told(&TurnBegan {
            may_run: may_run.collect(),
            ..began.clone()
        });
        assert!(
            words[0].contains("0/Makefile\\xe2\\x80\\xae (a build runs it)")
                && words[0].ends_with("and 5 more"),
            "{words:?}"
        );
        let words = told(&TurnBegan {
            is_given_up: true,
            is_unfinished: true,
            ..began
        });
        assert!(
            words[0].contains("`podbay undo retry`") && words[1].contains("`podbay undo resume`"),
            "{words:?}"
        );
    }
}
