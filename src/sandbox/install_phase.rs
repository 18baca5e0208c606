//! The install phase of a session: while its own sandbox is away, one takes its place that sees the
//! same files, has the caches of package managers writable and a gateway of its own.
//!
//! No call of the session runs meanwhile: the phase holds what a call would have to have.

use std::sync::Arc;

use async_recursion::async_recursion as boxed;
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;

use super::CacheMount;
use super::Ecosystem;
use super::Error;
use super::Gateway;
use super::NetworkMode;
use super::NetworkPlan;
use super::Sandbox;
use super::docker::Running;
use super::docker::discard;
use super::entries::Entries;
use super::kept::Made;
use super::kept::State;
use super::kept::Way;
use super::link::Link;
use super::make_cache;
use super::present_caches;
use podbay_wire::BytesPath;
use podbay_wire::Call;
use podbay_wire::Cd;

/// How long the next sandbox may take to change its working directory.
const LOOK: std::time::Duration = std::time::Duration::from_secs(2);

/// An install phase. One that is dropped leaves a session whose next call makes a sandbox.
pub struct InstallPhase {
    sandbox: Sandbox,
    /// Held, so that no call finds a sandbox.
    state: OwnedMutexGuard<State>,
    running: Running,
    gateway: Gateway,
    caches: Vec<CacheMount>,
    image: String,
    ended: Vec<String>,
    directory: Option<BytesPath>,
}

impl Sandbox {
    /// Returns why this sandbox has no install phase, if that is so.
    pub fn lacks_install_phase(&self) -> Option<&'static str> {
        match self.inner.way {
            Way::Engine(_) => None,
            Way::Attached(_) => Some("the sandbox is one that Podbay did not start"),
        }
    }

    /// Ends the sandbox and begins an install phase for these package managers, in a network of
    /// this plan, which must have a gateway. Commands in the background end first.
    #[boxed]
    pub async fn begin_install(
        &self,
        rows: &[&'static Ecosystem],
        plan: NetworkPlan,
        cancel: &CancellationToken,
    ) -> Result<InstallPhase, Error> {
        let Way::Engine(made) = &self.inner.way else {
            return Err(Error::Setting {
                key: "sandbox.backend",
                problem: "a sandbox that Podbay did not start has no install phase".to_owned(),
            });
        };
        debug_assert_eq!(plan.mode, NetworkMode::Allowlist);
        self.inner.turn.may_change(cancel).await;
        self.record_git(cancel).await;
        self.inner.base.is_kept(cancel).await?;
        self.inner
            .has_run
            .store(true, std::sync::atomic::Ordering::Release);
        let (ended, directory) = self.look_inside(cancel).await;
        if !ended.is_empty() {
            self.end_background().await;
        }
        let mut state = Arc::clone(&self.inner.state).lock_owned().await;
        if state.is_over() {
            return Err(Error::Cancelled);
        }
        let spec = made.newest();
        let mut caches = spec.caches().to_vec();
        caches.retain(|cache| !rows.contains(&cache.ecosystem));
        for &row in rows {
            let cache = make_cache(&made.engine, &spec, row, cancel).await?;
            caches.push(cache.writable());
        }
        let spec = spec.with_network(plan).with_caches(caches.clone());
        let within = self.inner.options.start_timeout.duration();
        let gateway = Gateway::prepare(
            &made.engine,
            &spec,
            &made.labels,
            within,
            &self.inner.sink,
            cancel,
        )
        .await?
        .ok_or_else(|| Error::Gateway {
            problem: "an install phase needs one".to_owned(),
        })?;
        let began = self.inner.began.get().copied();
        let spec = spec.reaching(Some(gateway.volume())).counting_from(began);
        let before = state.running.take();
        let running = async {
            if let Some(before) = &before {
                before.link.close();
                discard(&made.engine, before).await;
            }
            let beside = &self.inner.beside;
            let make = made.covering.make(made, &spec, within, beside, cancel);
            let running = Box::pin(make).await?;
            if let Err(error) = gateway.begin(cancel).await {
                discard(&made.engine, &running).await;
                return Err(error);
            }
            Ok(running)
        };
        match running.await {
            Ok(running) => Ok(InstallPhase {
                sandbox: self.clone(),
                state,
                image: spec.image().to_owned(),
                running,
                gateway,
                caches,
                ended,
                directory,
            }),
            Err(error) => {
                gateway.close().await;
                Err(error)
            }
        }
    }
}

impl InstallPhase {
    /// Returns the stream to its guest.
    pub fn guest(&self) -> &Link {
        &self.running.link
    }

    pub fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// Returns the image as the engine is told it.
    pub fn image(&self) -> &str {
        &self.image
    }

    /// Ends the phase's sandbox and its gateway, so that its caches can be removed.
    #[boxed]
    pub async fn end(self) -> EndedPhase {
        let Self {
            sandbox,
            state,
            running,
            gateway,
            caches,
            ended,
            directory,
            ..
        } = self;
        if let Way::Engine(made) = &sandbox.inner.way {
            discard(&made.engine, &running).await;
        }
        gateway.close().await;
        EndedPhase {
            sandbox,
            state,
            caches,
            ended,
            directory,
        }
    }
}

/// An install phase that is over, before the session has a sandbox again.
pub struct EndedPhase {
    sandbox: Sandbox,
    state: OwnedMutexGuard<State>,
    caches: Vec<CacheMount>,
    ended: Vec<String>,
    directory: Option<BytesPath>,
}

impl EndedPhase {
    /// Makes the session's next sandbox, which has the caches that are still there read-only.
    /// Returns the commands in the background that ended with the one before.
    #[boxed]
    pub async fn resume(mut self, cancel: &CancellationToken) -> Result<Vec<String>, Error> {
        let inner = &self.sandbox.inner;
        let Way::Engine(made) = &inner.way else {
            return Ok(self.ended);
        };
        let rows: Vec<&'static Ecosystem> =
            self.caches.iter().map(|cache| cache.ecosystem).collect();
        // Also after a call that was cancelled: the next sandbox has what is there.
        let project = &made.spec.project;
        let caches =
            present_caches(&made.engine, project, &rows, &CancellationToken::new()).await?;
        made.set_caches(caches);
        let running = inner.make(cancel).await?;
        if let Some(path) = self.directory.take() {
            // Where that is gone the next command says so.
            let _ = running
                .link
                .call(Call::Cd(Cd { path }), |_, _| {}, cancel, LOOK)
                .await;
        }
        self.state
            .take_over(running, Entries::of(&made.spec.project));
        Ok(self.ended)
    }
}

impl Made {
    /// Sets the caches that the next sandbox has.
    fn set_caches(&self, caches: Vec<CacheMount>) {
        *self
            .caches
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = Some(caches);
    }
}
