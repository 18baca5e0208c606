//! Everything that a conversation needs, alive, and how it is ended.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Error;
use super::Interrupt;
use super::Report;
use super::agents::SpawnerParts;
use super::own_server::OwnServer;
use super::record::Recorder;
use podbay_agent::Agent;
use podbay_agent::Failure;
use podbay_agent::Outcome;
use podbay_mcp::Servers;
use podbay_sandbox as sandbox;
use podbay_sandbox::EndedTurn;
use podbay_sandbox::HeldTurn;
use podbay_sandbox::Lock;
use podbay_sandbox::Sandbox;
use podbay_sandbox::git;
use podbay_session::Memories;
use podbay_wire::BytesPath;
use podbay_wire::below;
use podbay_wire::keep::PendingChanges;

/// How long the end of a turn may take once somebody has ended the run; whoever sends a signal
/// waits ten seconds before they kill.
const LAST_GRACE: Duration = Duration::from_secs(5);

/// What is left of a conversation when its sandbox has ended.
pub(super) struct Closed {
    /// What waits to be accepted, where changes are pending.
    pub(super) reviewed: Option<Result<PendingChanges, sandbox::Error>>,
    /// What came in at the end, where turns go into the project.
    pub(super) came: Option<HeldTurn>,
    /// What became of the session's git.
    pub(super) git: Option<git::Ended>,
}

/// Everything a conversation needs, alive.
pub(super) struct Seat {
    pub(super) agent: Agent,
    pub(super) recorder: Recorder,
    pub(super) model: String,
    /// The task of the session that is resumed, where the model has not heard of it yet.
    pub(super) untold: Option<String>,
    /// The approved plan that is the task, in words for the model.
    pub(super) plan_task: Option<String>,
    /// The version of the last plan that an earlier run left.
    pub(super) n_plans: Option<u32>,
    /// The model server, where it is ours.
    pub(super) server: Option<OwnServer>,
    /// An earlier run left a task open.
    pub(super) is_open: bool,
    pub(super) sandbox: Sandbox,
    /// Turns that the user began in this session, also before it was resumed.
    pub(super) n_turns: u64,
    /// What is mounted in the project from elsewhere: nothing in it is a change of the project.
    pub(super) mounted: Vec<BytesPath>,
    pub(super) locks: Vec<Lock>,
    /// The MCP servers of the session, if it has any.
    pub(super) mcp: Option<Arc<Servers>>,
    /// Where what the session has learnt is proposed, if the user wants that.
    pub(super) learner: Option<Memories>,
    /// What starts agents, if the session may have any.
    pub(super) agents: Option<Arc<SpawnerParts>>,
}

/// Ends a turn, in the time that is left for it, where that is bounded, and for as long as nobody
/// wants the run to be over.
///
/// What a command left in the project may take long to be looked through.
pub(super) async fn end_turn(
    sandbox: &Sandbox,
    interrupt: &Interrupt,
    left: Option<Duration>,
) -> Option<EndedTurn> {
    let cancel = CancellationToken::new();
    let is_late = async {
        match left {
            Some(left) => tokio::time::sleep(left).await,
            None => std::future::pending().await,
        }
    };
    let is_over = async {
        interrupt.run().cancelled().await;
        tokio::time::sleep(LAST_GRACE).await;
    };
    let was_hurried = interrupt.haste().is_cancelled();
    let mut ending = Box::pin(sandbox.end_turn(&cancel));
    tokio::select! {
        ended = &mut ending => return ended,
        // Haste from before was about the model and its calls.
        () = interrupt.haste().cancelled(), if !was_hurried => {}
        () = is_late => {}
        () = is_over => {}
    }
    cancel.cancel();
    ending.await
}

impl Seat {
    /// Begins what can be undone later as a whole.
    pub(super) fn begin_turn(&mut self, words: &str) {
        self.n_turns += 1;
        if self.sandbox.is_reviewed() {
            return;
        }
        self.sandbox
            .begin_turn(&self.recorder.session().to_string(), self.n_turns, words);
    }

    /// Makes an error of what went wrong here.
    pub(super) fn error(&self, failure: Failure) -> Error {
        Error::of_agent(failure, self.server.is_some())
    }

    /// Reports how a task ended.
    pub(super) fn report(&self, mut outcome: Outcome, duration_ms: u64) -> Report {
        let error = outcome.failure.take().map(|failure| self.error(failure));
        let is_mounted = |path: &BytesPath| {
            self.mounted
                .iter()
                .any(|mounted| below(path.as_bytes(), mounted.as_bytes()).is_some())
        };
        outcome.changed.retain(|(path, _)| !is_mounted(path));
        Report::of(
            outcome,
            error.as_ref(),
            self.model.clone(),
            self.recorder.session().clone(),
            self.recorder.warnings(),
            duration_ms,
        )
    }

    /// Ends the sandbox and gives the project back.
    ///
    /// `cancel` ends the commands of the settings that nobody has waited for.
    pub(super) async fn close(&mut self, cancel: &CancellationToken) -> Closed {
        self.agent.settle(cancel).await;
        if let Some(servers) = &self.mcp {
            servers.close().await;
        }
        let came = if self.sandbox.is_by_turn() {
            self.sandbox.end_by_turn().await
        } else {
            None
        };
        let reviewed = self.sandbox.end_review().await;
        let git = self.sandbox.close_session().await;
        for lock in self.locks.drain(..) {
            lock.release();
        }
        Closed {
            reviewed,
            came,
            git,
        }
    }
}
