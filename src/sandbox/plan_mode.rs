//! Plan mode: a sandbox in which nothing of the project can be written takes the place of the one in
//! which it can, and the other way round.
//!
//! The kernel refuses each write, whatever a command tries: the project, the session's view of it
//! and the session's git are mounted read-only. No sandbox that can write lives meanwhile. It is
//! ended and never paused: a paused one would outlive its controller, and continue with what a
//! command left for it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use async_recursion::async_recursion as boxed;
use tokio_util::sync::CancellationToken;

use super::Error;
use super::Sandbox;
use super::covers::WORKSPACE;
use super::docker::Running;
use super::docker::discard;
use super::entries::Entries;
use super::kept::Made;
use super::kept::Way;
use podbay_engine::ContainerSpec;
use podbay_engine::Mount;
use podbay_wire::Call;
use podbay_wire::Cd;

/// Where the session's git lies that has a `.git` elsewhere.
const SESSION_GIT: &str = "/run/podbay/session";

/// Where builds of plan mode put what they make, as those programs are told that would fail without
/// a place for it. None of them loads anything from there that the project did not tell it to.
const CACHES: [(&str, &str); 4] = [
    ("CARGO_TARGET_DIR", "/tmp/.plan/target"),
    ("COVERAGE_FILE", "/tmp/.plan/coverage"),
    ("MYPY_CACHE_DIR", "/tmp/.plan/mypy"),
    ("RUFF_CACHE_DIR", "/tmp/.plan/ruff"),
];

/// How long the next sandbox may take to change its working directory.
const LOOK: Duration = Duration::from_secs(2);

/// What came of a change of the sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switched {
    /// Commands in the background, which ended with the sandbox before.
    pub ended: Vec<String>,
    /// How long there was no sandbox.
    pub duration: Duration,
    /// What was in `/tmp` and the home folder is gone.
    pub has_new_scratch: bool,
}

/// Makes all mounts read-only that show the project or the session's git, and leads builds to the
/// temporary folder.
pub(super) fn make_read_only(container: &mut ContainerSpec) {
    let is_ours = |target: &str| {
        [WORKSPACE, SESSION_GIT].iter().any(|place| {
            target
                .strip_prefix(place)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    };
    for mount in &mut container.mounts {
        match mount {
            Mount::Bind {
                target, read_only, ..
            }
            | Mount::OfVolume {
                target, read_only, ..
            }
            | Mount::Volume {
                target, read_only, ..
            }
            | Mount::Seeded {
                target, read_only, ..
            } => *read_only |= is_ours(target),
            Mount::Anonymous { .. } => {}
        }
    }
    let is_set = |env: &[String], name: &str| {
        env.iter()
            .any(|pair| pair.split_once('=').is_some_and(|(set, _)| set == name))
    };
    for (name, folder) in CACHES {
        if !is_set(&container.env, name) {
            container.env.push(format!("{name}={folder}"));
        }
    }
}

impl Sandbox {
    /// Ends the sandbox and makes the next one, in which the project is read-only, or is not. Its
    /// commands in the background end first. `None`: it is as wanted already. Where the next one
    /// cannot be made the session is as before, but for those commands.
    #[boxed]
    pub async fn set_read_only(
        &self,
        wanted: bool,
        cancel: &CancellationToken,
    ) -> Result<Option<Switched>, Error> {
        let Way::Engine(made) = &self.inner.way else {
            return Err(Error::Setting {
                key: "sandbox.backend",
                problem: "a sandbox that Podbay did not start has no plan mode".to_owned(),
            });
        };
        let was = made.read_only.load(Ordering::Acquire);
        if was == wanted {
            return Ok(None);
        }
        let (ended, directory) = self.look_inside(cancel).await;
        if !ended.is_empty() {
            self.end_background().await;
        }
        let mut state = Arc::clone(&self.inner.state).lock_owned().await;
        if state.is_over() {
            return Err(Error::Cancelled);
        }
        let begun = Instant::now();
        made.read_only.store(wanted, Ordering::Release);
        let before = state.running.take();
        let next = self.replace(made, before, cancel).await;
        let running = next.inspect_err(|_| made.read_only.store(was, Ordering::Release))?;
        if let Some(path) = directory {
            // Where that is gone the next command says so.
            let _ = running
                .link
                .call(Call::Cd(Cd { path }), |_, _| {}, cancel, LOOK)
                .await;
        }
        state.take_over(running, Entries::of(&made.spec.project));
        Ok(Some(Switched {
            ended,
            duration: begun.elapsed(),
            has_new_scratch: made.newest().carried().is_empty(),
        }))
    }

    async fn replace(
        &self,
        made: &Made,
        before: Option<Running>,
        cancel: &CancellationToken,
    ) -> Result<Running, Error> {
        let Some(before) = before else {
            return self.inner.make(cancel).await;
        };
        // What is in memory goes with the last container that has it.
        if made.newest().is_scratch_in_memory() {
            let next = self.inner.make(cancel).await;
            discard(&made.engine, &before).await;
            return next;
        }
        // Its guest ends with the link, and the kernel ends all that is in it with that.
        before.link.close();
        let ended = discard(&made.engine, &before);
        tokio::join!(self.inner.make(cancel), ended).0
    }
}
