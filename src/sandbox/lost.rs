//! What becomes of a sandbox that ends under a session, and what the model and the user know of
//! it.

use std::time::Duration;

use async_recursion::async_recursion as boxed;

use super::Sandbox;
use super::docker::Running;
use super::kept::Inner;
use super::kept::State;
use super::kept::Way;
use super::link;
use super::link::Link;
use podbay_engine::ContainerId;
use podbay_engine::Moment;
use podbay_event::ByteSize;
use podbay_event::Kind;
use podbay_wire::CommandEnded;
use podbay_wire::End;
use podbay_wire::Limit;

/// How long the engine may take to say that a sandbox ran out of memory.
const OOM_WORD: Duration = Duration::from_secs(1);

/// The signal that nothing survives, and how a shell reports a command that died of it.
const SIGKILL: i32 = 9;
const KILLED: i32 = 128 + SIGKILL;

/// What the model knows of a sandbox that takes the place of another one.
const ANEW: &str = "A new one takes its place: files in /workspace are kept, running processes and files elsewhere are gone";

/// What the model is told where only its way into the sandbox of `podbay up` was lost.
const JOINED_ANEW: &str = "The sandbox is joined again, or a new one takes its place: files in /workspace are kept, running processes are gone, files \
                           elsewhere may be";

/// A sandbox that ended while nothing was asked of it.
pub struct Ended {
    link: Link,
    n_box: u32,
    /// When it was last known to live.
    since: Moment,
}

impl Ended {
    /// Waits for the end of a link, which is all there is of a sandbox that nobody keeps.
    #[boxed]
    pub async fn of(link: &Link) -> Self {
        let since = Moment::now();
        link.wait_ended().await;
        Self {
            link: link.clone(),
            n_box: 0,
            since,
        }
    }

    /// Returns why it ended.
    pub fn reason(&self) -> String {
        self.link
            .ended()
            .map_or_else(String::new, |reason| reason.to_string())
    }
}

impl Sandbox {
    /// Waits until the sandbox that runs ends under us. Where none runs, or its end was told already,
    /// that is for ever.
    #[boxed]
    pub async fn ended(&self) -> Ended {
        let running = {
            let state = self.inner.state.lock().await;
            state
                .running
                .as_ref()
                .filter(|_| !state.told)
                .map(|running| (running.link.clone(), state.n_boxes))
        };
        match running {
            Some((link, n_box)) => Ended {
                n_box,
                ..Ended::of(&link).await
            },
            None => std::future::pending().await,
        }
    }

    /// Tells of an end that was waited for, and returns what the model is told. The next call gets
    /// a new sandbox.
    #[boxed]
    pub async fn tell_ended(&self, ended: Ended) -> String {
        let Ended { link, n_box, since } = &ended;
        self.lost(link, *n_box, ended.reason(), false, *since).await
    }

    /// Says what became of a call whose sandbox ended, or does not react even to its being cancelled: a
    /// stuck sandbox goes too.
    ///
    /// A sandbox of `podbay up` that its guest gave up holds what could not be ended, so it goes for
    /// everybody.
    pub(super) async fn lost(
        &self,
        link: &Link,
        n_box: u32,
        error: String,
        given_up: bool,
        since: Moment,
    ) -> String {
        let ended = link.ended();
        let died = matches!(
            ended,
            Some(link::Reason::EndOfStream | link::Reason::Broken(_))
        );
        let mut reason = ended.map_or(error, |reason| reason.to_string());
        link.close();
        let mut state = self.inner.state.lock().await;
        // Whoever dies of hunger has no last word; the engine saw it.
        if died
            && state.n_boxes == n_box
            && let Some(running) = &state.running
            && let Some(bytes) = self.inner.hunger(running.id.as_ref(), since).await
        {
            reason = format!(
                "the sandbox was killed: out of memory, its limit is {}",
                ByteSize::new(bytes).rounded()
            );
        }
        let mut follows = ANEW;
        // Other calls may have told it, and a new sandbox may be there already.
        if state.n_boxes == n_box {
            if let Some(running) = &mut state.running {
                let was_owned = running.owned;
                // One that Podbay did not start ends itself, and whoever keeps it starts it anew.
                running.owned |= running.id.is_some() && (given_up || must_go(running));
                follows = what_follows(running);
                if running.owned && !was_owned {
                    // Nobody else ends it, and what is left in it must not continue until the next
                    // call.
                    self.inner.remove(running).await;
                }
            }
            if !state.told {
                self.tell(&mut state, &reason);
            }
        }
        format!("{reason}. {follows}")
    }

    /// Names the limit that killed a command where the guest cannot read the counters: then only
    /// the engine saw it.
    pub(super) async fn explained(&self, mut ended: CommandEnded, since: Moment) -> CommandEnded {
        let killed = matches!(
            ended.end,
            End::Signaled { signal: SIGKILL } | End::Exited { code: KILLED }
        );
        if !killed || ended.limit.is_some() {
            return ended;
        }
        let id = match &self.inner.state.lock().await.running {
            Some(running) if running.facts.cgroup == 0 => running.id.clone(),
            _ => return ended,
        };
        if let Some(bytes) = self.inner.hunger(id.as_ref(), since).await {
            ended.limit = Some(Limit::Memory { bytes });
        }
        ended
    }

    pub(super) fn tell(&self, state: &mut State, reason: &str) {
        state.told = true;
        reason.clone_into(&mut state.last_reason);
        (self.inner.sink)(
            Kind::SandboxLost {
                reason: reason.to_owned(),
            }
            .into(),
        );
    }
}

impl Inner {
    /// Returns the memory limit of a sandbox if the engine saw something in it die of that limit. Where
    /// there is no engine nobody saw it.
    async fn hunger(&self, id: Option<&ContainerId>, since: Moment) -> Option<u64> {
        let (Way::Engine(made), Some(id)) = (&self.way, id) else {
            return None;
        };
        made.engine
            .ran_out_of_memory(id, since, OOM_WORD)
            .await
            .then(|| made.spec.memory())
    }

    pub(super) async fn remove(&self, running: &Running) {
        let (Way::Engine(made), Some(id)) = (&self.way, &running.id) else {
            return;
        };
        if let Err(error) = made.engine.remove(id).await {
            let (id, error) = (id.short(), error.with_causes());
            let message = format!(
                "the sandbox {id} could not be removed: {error}; `docker rm --force {id}` does so, and `podbay gc` tries again"
            );
            (self.sink)(Kind::Warning { message }.into());
        }
    }
}

/// Returns whether a sandbox is to be removed: one of our own, and one of `podbay up` that its guest
/// gave up.
pub(super) fn must_go(running: &Running) -> bool {
    running.id.is_some()
        && (running.owned || matches!(running.link.ended(), Some(link::Reason::Closing(_))))
}

pub(super) fn what_follows(lost: &Running) -> &'static str {
    if must_go(lost) { ANEW } else { JOINED_ANEW }
}
