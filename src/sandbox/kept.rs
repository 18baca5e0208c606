use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::Error;
use super::Options;
use super::Spec;
use super::docker;
use super::docker::Running;
use super::environment;
use super::link;
use super::link::Link;
use crate::engine::Engine;
use crate::engine::Labels;
use crate::event::Kind;
use crate::event::Sink;
use crate::wire::Call;
use crate::wire::Fault;
use crate::wire::Output;
use crate::wire::message::Facts;
use crate::wire::message::Stream;

/// Ends of a box are counted over this time.
const WINDOW: Duration = Duration::from_secs(600);

/// The box of a session. When it ends under us it is made anew for the next call, a few times; the call that was under way says so.
#[derive(Clone)]
pub struct Sandbox {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Engine,
    spec: Spec,
    options: Options,
    labels: Labels,
    sink: Sink,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: Option<Running>,
    ends: VecDeque<Instant>,
    last_reason: String,
    closed: bool,
}

/// What a person should be told when the first box has started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    pub facts: Facts,
    pub warnings: Vec<String>,
    pub duration: Duration,
    /// Whether it is the box of `podbay up`.
    pub joined: bool,
}

impl Sandbox {
    /// Starts the box, or joins that of `podbay up` where there is one of the same making.
    pub async fn start(
        engine: &Engine,
        spec: &Spec,
        options: &Options,
        labels: Labels,
        sink: Sink,
        cancel: &CancellationToken,
    ) -> Result<(Self, Started), Error> {
        let begun = Instant::now();
        let inner = Inner {
            engine: engine.clone(),
            spec: spec.clone(),
            options: options.clone(),
            labels,
            sink,
            state: Mutex::new(State::default()),
        };
        let running = inner.make(cancel).await?;
        let mut warnings = spec.warnings.clone();
        warnings.extend(not_enforced(spec, &running.facts));
        let started = Started { facts: running.facts.clone(), warnings, duration: begun.elapsed(), joined: !running.owned };
        inner.state.lock().await.running = Some(running);
        Ok((Self { inner: Arc::new(inner) }, started))
    }

    /// Carries out one call. That the box ended is a fault the model can read; that none can be had any more is an error.
    pub async fn call(
        &self,
        call: Call,
        on_chunk: impl FnMut(Stream, &[u8]) + Send,
        cancel: &CancellationToken,
        deadline: Duration,
    ) -> Result<Output, Error> {
        let link = self.link(cancel).await?;
        match link.call(call, on_chunk, cancel, deadline).await {
            Ok(output) => Ok(output),
            Err(error) => self.lost(error).await,
        }
    }

    /// Returns the link to a living box, made anew if the last one has ended.
    pub async fn link(&self, cancel: &CancellationToken) -> Result<Link, Error> {
        let mut state = self.inner.state.lock().await;
        if let Some(running) = &state.running
            && running.link.ended().is_none()
        {
            return Ok(running.link.clone());
        }
        if state.closed {
            return Err(Error::Cancelled);
        }
        if let Some(gone) = state.running.take() {
            if gone.owned {
                self.inner.remove(&gone).await;
            }
            let now = Instant::now();
            state.ends.retain(|&end| now.duration_since(end) < WINDOW);
            state.ends.push_back(now);
        }
        if state.ends.len() > self.inner.options.restarts as usize {
            return Err(Error::KeepsEnding { count: state.ends.len() as u32, reason: state.last_reason.clone() });
        }
        let running = self.inner.make(cancel).await?;
        let link = running.link.clone();
        state.running = Some(running);
        Ok(link)
    }

    async fn lost(&self, error: link::Error) -> Result<Output, Error> {
        let mut state = self.inner.state.lock().await;
        // Only an error that ended the link is the end of a box.
        let Some(running) = &state.running else { return Err(Error::Link(error)) };
        if running.link.ended().is_none() {
            if matches!(error, link::Error::Cancelled { .. }) {
                return Ok(Output::Fault(Fault::Cancelled));
            }
            // A box that does not react to a cancelled call is stuck: it goes, and the next call gets a new one.
            running.link.close();
        }
        let reason = running.link.ended().map_or_else(|| error.to_string(), |reason| reason.to_string());
        (self.inner.sink)(Kind::BoxLost { reason: reason.clone() }.into());
        state.last_reason.clone_from(&reason);
        let problem =
            format!("{reason}. A new one takes its place: files in /workspace are kept, running processes and files elsewhere are gone");
        Ok(Output::Fault(Fault::BoxEnded { problem }))
    }

    /// Returns the container's id and what the guest said of its box.
    pub async fn describe(&self) -> Option<(String, Facts)> {
        let state = self.inner.state.lock().await;
        state.running.as_ref().map(|running| (running.id.0.clone(), running.facts.clone()))
    }

    /// Ends the box and waits until it is removed.
    pub async fn close(&self) {
        let mut state = self.inner.state.lock().await;
        state.closed = true;
        if let Some(running) = state.running.take() {
            running.link.close();
            if running.owned {
                self.inner.remove(&running).await;
            }
        }
    }
}

impl Inner {
    async fn make(&self, cancel: &CancellationToken) -> Result<Running, Error> {
        let within = self.options.start_timeout.duration();
        if let Some(joined) = environment::join(&self.engine, &self.spec, within, cancel).await? {
            return Ok(joined);
        }
        docker::start(&self.engine, &self.spec, &self.labels, within, cancel).await
    }

    async fn remove(&self, running: &Running) {
        if let Err(error) = self.engine.remove(&running.id).await {
            let message = format!("the sandbox {} could not be removed: {error}; `podbay gc` tries again", running.id.short());
            (self.sink)(Kind::Warning { message }.into());
        }
    }
}

/// Compares what was asked for with what the guest finds in force.
fn not_enforced(spec: &Spec, facts: &Facts) -> Vec<String> {
    let mut warnings = Vec::new();
    if facts.memory_bytes.is_none_or(|bytes| bytes > spec.memory()) {
        warnings.push("the memory limit is not in force in this engine: a command can use all memory of the machine".to_owned());
    }
    if facts.n_processes.is_none_or(|count| count > u64::from(spec.n_processes())) {
        warnings.push("the limit on processes is not in force in this engine".to_owned());
    }
    if facts.millicores.is_none() {
        warnings.push("the processor limit is not in force in this engine".to_owned());
    }
    warnings
}
