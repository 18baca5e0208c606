//! A second sandbox of a session, for agents: it shows the project as the session has it now, and
//! the kernel refuses each write to it.
//!
//! It shows the very mounts of the session's sandbox, its view of the project and its git, hides
//! the same files and reaches the same hosts. Its temporary files and its home folder are its own.
//! It is made with the first call, and ends when its agents have.

use std::sync::Arc;
use std::time::Duration;

use async_recursion::async_recursion as boxed;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::Error;
use super::Gateway;
use super::Sandbox;
use super::docker::Running;
use super::docker::discard;
use super::docker::is_covered;
use super::docker::start;
use super::kept::Made;
use super::kept::Way;
use super::link::Asks;
use super::link::Link;
use podbay_wire::Call;
use podbay_wire::ExecGate;
use podbay_wire::Fault;
use podbay_wire::Output;
use podbay_wire::keep::FindOrder;
use podbay_wire::message::Stream;

/// A sandbox beside that of a session, in which nothing of the project can be written.
pub struct Sibling {
    sandbox: Sandbox,
    state: Mutex<State>,
    /// Fires when it is to end, also while it is made.
    ending: CancellationToken,
}

#[derive(Default)]
struct State {
    running: Option<Running>,
}

impl Sandbox {
    /// Returns a sibling, which is not made yet; `None`: beside a sandbox that Podbay did not start
    /// there is none.
    pub fn sibling(&self) -> Option<Sibling> {
        matches!(self.inner.way, Way::Engine(_)).then(|| Sibling {
            sandbox: self.clone(),
            state: Mutex::default(),
            ending: CancellationToken::new(),
        })
    }

    /// Returns whether nothing of the project can be written in this one: plan mode.
    pub fn is_read_only(&self) -> bool {
        match &self.inner.way {
            Way::Engine(made) => made.newest().is_read_only(),
            Way::Attached(_) => false,
        }
    }
}

impl Sibling {
    /// Makes it beside whatever else is to be done. What keeps it from being made is told with the
    /// first call.
    pub fn begin_soon(self: &Arc<Self>) {
        let sibling = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(error) = sibling.link(&sibling.ending).await {
                tracing::debug!(%error, "a sibling is not made yet");
            }
        });
    }

    /// Executes a call; where the guest asks whether a program continues, `asks` answers.
    pub async fn call_asking(
        &self,
        call: Call,
        on_chunk: impl FnMut(Stream, &[u8]) + Send,
        asks: &dyn Asks,
        cancel: &CancellationToken,
        deadline: Duration,
    ) -> Result<Output, Error> {
        let link = self.link(cancel).await?;
        let haste = self.sandbox.inner.haste.get_or_init(CancellationToken::new);
        let called = link
            .call_asking(call, on_chunk, asks, cancel, haste, deadline)
            .await;
        Ok(called.unwrap_or_else(|error| {
            Output::Fault(error.into_fault().unwrap_or_else(|error| Fault::BoxEnded {
                problem: format!("{error}. The next call gets a new sandbox"),
            }))
        }))
    }

    /// Returns whether the programs that commands start are seen in it.
    pub async fn exec_gate(&self) -> ExecGate {
        let link = self.link(&self.ending).await;
        link.map_or(ExecGate::Absent, |link| link.exec_gate())
    }

    /// Returns the session's way to chosen hosts, which is its own too.
    pub fn gateway(&self) -> Option<&Gateway> {
        self.sandbox.gateway()
    }

    /// Ends it and waits until it is removed.
    #[boxed]
    pub async fn close(&self) {
        self.ending.cancel();
        let mut state = self.state.lock().await;
        if let (Some(running), Way::Engine(made)) = (state.running.take(), &self.sandbox.inner.way)
        {
            discard(&made.engine, &running).await;
        }
    }

    async fn link(&self, cancel: &CancellationToken) -> Result<Link, Error> {
        let mut state = self.state.lock().await;
        let Way::Engine(made) = &self.sandbox.inner.way else {
            return Err(Error::Cancelled);
        };
        if self.ending.is_cancelled() {
            return Err(Error::Cancelled);
        }
        if let Some(running) = &state.running
            && running.link.ended().is_none()
        {
            return Ok(running.link.clone());
        }
        if let Some(gone) = state.running.take() {
            discard(&made.engine, &gone).await;
        }
        let running = self.make(made, cancel).await?;
        let link = running.link.clone();
        state.running = Some(running);
        Ok(link)
    }

    #[boxed]
    async fn make(&self, made: &Made, cancel: &CancellationToken) -> Result<Running, Error> {
        let session = self.sandbox.describe().await;
        let lent = match &made.git {
            // A shared sandbox has nothing of the session's.
            Some(git) if !self.sandbox.is_shared().await => git.lent().await,
            _ => None,
        };
        let covers = made.covering.present().await;
        let spec = made.newest().beside().covering(&covers).lending(lent);
        // No volume of it begins with anything that has to come first.
        let is_laid_out = CancellationToken::new();
        is_laid_out.cancel();
        let running = start(
            &made.engine,
            &spec,
            &made.labels,
            &FindOrder::default(),
            self.sandbox.inner.options.start_timeout.duration(),
            &is_laid_out,
            cancel,
        )
        .await?;
        let is_other = session.is_some_and(|(_, facts)| {
            spec.is_held_back() && facts.workspace != running.facts.workspace
        });
        let checked = if is_other {
            Err(Error::OtherFiles {
                path: spec.project.path().to_owned(),
            })
        } else {
            is_covered(&spec, &running.facts)
        };
        if let Err(error) = checked {
            discard(&made.engine, &running).await;
            return Err(error);
        }
        Ok(running)
    }
}
