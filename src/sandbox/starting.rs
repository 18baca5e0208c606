//! A session's sandbox is had for the first time: what is settled before, and what a user is
//! told.

use std::path::Path;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use async_recursion::async_recursion as boxed;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Error;
use super::Gateway;
use super::Options;
use super::Socket;
use super::Spec;
use super::attach;
use super::base::Base;
use super::covering::Covering;
use super::docker::Running;
use super::enforced;
use super::git;
use super::git::SessionGit;
use super::keeper::Purpose;
use super::kept::Inner;
use super::kept::Made;
use super::kept::Sandbox;
use super::kept::State;
use super::kept::Way;
use super::lost::must_go;
use super::mounted;
use super::turns::Turn;
use podbay_engine::Engine;
use podbay_engine::Labels;
use podbay_event::Sink;
use podbay_wire::BytesPath;
use podbay_wire::message::Facts;

/// What a user should be told when the first sandbox has started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    pub facts: Facts,
    pub warnings: Vec<String>,
    pub duration: Duration,
    /// Whether it is the sandbox of `podbay up`.
    pub joined: bool,
    /// Paths of the project that commands cannot read.
    pub hidden: Vec<String>,
    /// Those of them that git tracks.
    pub tracked: Vec<String>,
    /// What is mounted in the project from elsewhere.
    pub mounted: Vec<BytesPath>,
    /// What is to be said of that.
    pub mounted_words: Option<String>,
}

impl Inner {
    /// Makes the first sandbox, and the gateway beside it.
    async fn make_with_gateway(&self, cancel: &CancellationToken) -> Result<Running, Error> {
        let Some(gateway) = self.gateway() else {
            return self.make(cancel).await;
        };
        if !gateway.is_needed_at_once() {
            let made = self.make(cancel).await;
            // Beside the sandbox it would take its time.
            gateway.begin_soon();
            return made;
        }
        match tokio::join!(self.make(cancel), gateway.begin(cancel)) {
            (Ok(running), Err(error)) => {
                running.link.close();
                if must_go(&running) {
                    self.remove(&running).await;
                }
                Err(error)
            }
            (made, _) => made,
        }
    }
}

impl Sandbox {
    /// Starts the sandbox, or joins that of `podbay up` where there is one of the same making.
    /// `records` is the folder in which it is remembered what the sandboxes of projects cover.
    #[boxed]
    pub async fn start(
        engine: &Engine,
        spec: &Spec,
        options: &Options,
        labels: Labels,
        records: &Path,
        sink: Sink,
        cancel: &CancellationToken,
    ) -> Result<(Self, Started), Error> {
        // Who takes no turns has nothing that could be undone.
        let purpose = match labels.session {
            Some(_) if spec.is_by_turn() => Purpose::Restore,
            Some(_) => Purpose::Keep,
            None => Purpose::Look,
        };
        let covering = Covering::new(options, records, &spec.project, purpose);
        let mut git = None;
        if let (Some(session), Some(git_options)) = (&labels.session, &spec.git) {
            let within = options.start_timeout.duration();
            // Whoever works on a copy does not hold the project, and takes nothing over.
            let left = if spec.is_held_back() {
                Vec::new()
            } else {
                git::settle_left(engine, spec, &labels, git_options, within, cancel).await
            };
            for ended in left {
                let told = match ended {
                    Ok(ended) => ended
                        .told()
                        .into_iter()
                        .chain(ended.told_what_may_run())
                        .collect(),
                    Err((name, error)) => vec![git::Ended::failed(&name, &error)],
                };
                for kind in told {
                    sink(kind.into());
                }
            }
            git = if spec.is_held_back() {
                let held = spec.review.as_ref().filter(|held| held.has_git);
                held.map(|_| SessionGit::of_review(session, git_options.clone()))
            } else {
                Some(SessionGit::new(session, git_options.clone()))
            };
        }
        let within = options.start_timeout.duration();
        let gateway = Gateway::prepare(engine, spec, &labels, within, &sink, cancel).await?;
        let way = Way::Engine(Box::new(Made {
            engine: engine.clone(),
            spec: spec.reaching(gateway.as_ref().map(Gateway::volume)),
            labels,
            covering,
            git,
            gateway,
            view: std::sync::Mutex::default(),
            read_only: AtomicBool::new(spec.is_read_only()),
            caches: std::sync::Mutex::default(),
        }));
        Self::begin(way, options, sink, cancel).await
    }

    /// Joins a sandbox that Podbay did not start. When its end of the line is lost it is joined again.
    #[boxed]
    pub async fn attach(
        socket: &Socket,
        options: &Options,
        sink: Sink,
        cancel: &CancellationToken,
    ) -> Result<(Self, Started), Error> {
        Self::begin(Way::Attached(socket.clone()), options, sink, cancel).await
    }

    async fn begin(
        way: Way,
        options: &Options,
        sink: Sink,
        cancel: &CancellationToken,
    ) -> Result<(Self, Started), Error> {
        let begun = Instant::now();
        // Looked at first: what changes while the sandbox is made counts as changed.
        let entries = way.entries();
        let state = Arc::new(Mutex::new(State::new(entries)));
        let inner = Inner {
            way,
            options: options.clone(),
            sink,
            turn: Turn::default(),
            base: Base::default(),
            haste: OnceLock::new(),
            began: OnceLock::new(),
            beside: OnceLock::new(),
            searching: CancellationToken::new(),
            progress: std::sync::Mutex::default(),
            telling: std::sync::Mutex::default(),
            is_unrecorded: AtomicBool::new(false),
            has_run: AtomicBool::new(false),
            removals: removals(),
            state,
        };
        let mut running = match inner.make_with_gateway(cancel).await {
            Ok(running) => running,
            Err(error) => {
                inner.close_keeper().await;
                inner.forget_git().await;
                inner.close_gateway().await;
                return Err(error);
            }
        };
        let (mut hidden, mut tracked) = (Vec::new(), Vec::new());
        let warnings = match &inner.way {
            Way::Engine(made) => {
                let (covered, uncovered) = made.covering.told().await;
                hidden = covered;
                let mut notes = Vec::new();
                if let Some(git) = &made.git
                    && running.owned
                {
                    tracked = git.tracked(&hidden).await;
                    notes = git.seal().await;
                }
                // Who joins the sandbox of `podbay up` was told when that was made.
                let is_of_session = made.labels.session.is_some();
                let no_git = (is_of_session || running.owned)
                    .then(|| git::why_no_git(&made.spec.project, is_of_session))
                    .flatten()
                    .into_iter()
                    .collect();
                [
                    made.spec.warnings.clone(),
                    enforced::missing(&made.spec, &running.facts),
                    uncovered,
                    notes,
                    no_git,
                    open_network(&made.spec),
                ]
                .concat()
            }
            Way::Attached(_) => {
                let floor = enforced::floor(options.disk_limits(), &running.facts);
                attach::warnings(&running.facts)
                    .into_iter()
                    .chain(floor)
                    .collect()
            }
        };
        let (mounted, mounted_words) = match &inner.way {
            Way::Engine(made) => (
                made.spec.mounted.clone(),
                mounted::warning(&made.spec.mounted),
            ),
            Way::Attached(_) => (
                running.facts.foreign.clone(),
                mounted::warning_attached(&running.facts.foreign),
            ),
        };
        let warnings = inner
            .beside
            .get()
            .cloned()
            .into_iter()
            .chain(warnings)
            .collect();
        let started = Started {
            facts: running.facts.clone(),
            warnings,
            duration: begun.elapsed(),
            joined: !running.owned,
            hidden,
            tracked,
            mounted,
            mounted_words,
        };
        let search = running.search.take();
        let is_session = matches!(&inner.way, Way::Engine(made) if made.git.is_some());
        let is_unrecorded = is_session && !running.owned;
        inner.is_unrecorded.store(is_unrecorded, Ordering::Release);
        inner.state.lock().await.running = Some(running);
        let sandbox = Self {
            inner: Arc::new(inner),
        };
        sandbox.search_on();
        if let Some(search) = search {
            sandbox.tell_beside(search);
        }
        Ok((sandbox, started))
    }
}

/// Says what an open network means, each time.
fn open_network(spec: &Spec) -> Vec<String> {
    let words = "the network of the sandbox is OPEN: commands reach whatever this machine reaches, your own network and cloud metadata \
                 included, and can send out all that they read; `--allow-host` lets single hosts through instead";
    if spec.has_open_network() {
        vec![words.to_owned()]
    } else {
        Vec::new()
    }
}

/// Closed, so that a wait for it ends when no removal is left.
fn removals() -> TaskTracker {
    let removals = TaskTracker::new();
    removals.close();
    removals
}
