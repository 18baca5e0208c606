//! Removes containers, also after cancellation, and reports those that cannot be removed.

use std::fmt;
use std::future::Future;
use std::sync::Mutex;
use std::sync::OnceLock;
use std::time::Duration;
use std::time::Instant;

use async_recursion::async_recursion as boxed;
use bollard::query_parameters::InspectContainerOptions;
use bollard::query_parameters::RemoveContainerOptionsBuilder;
use tokio_util::sync::CancellationToken;

use super::ContainerId;
use super::Engine;
use super::Error;
use super::bounded::bounded;

/// Time for all clean-up once the process was told to end: the sender of the signal waits for it.
const AT_THE_END: Duration = Duration::from_secs(5);

/// How long to wait for the engine to answer about a container whose creation was cancelled. A
/// hanging engine must not delay the exit; the next start removes the container anyway.
pub(super) const GIVEN_UP: Duration = Duration::from_secs(5);

/// Least time for each object to clean up.
const MOMENT: Duration = Duration::from_secs(1);

/// How long a container may remain after the engine reported its removal.
const GOING: Duration = Duration::from_secs(5);

/// A container that could not be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftContainer {
    /// Its name for the engine.
    pub name: String,
    pub problem: String,
}

/// Returns the remedy for a container that cannot be removed.
pub fn how_to_remove(name: &str) -> String {
    format!(
        "try again, or `docker rm --force {name}`; where a process in it cannot be killed, restart the engine or the machine"
    )
}

impl fmt::Display for LeftContainer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, problem } = self;
        write!(
            f,
            "the container {name} was not removed: {problem}; `docker rm --force {name}` removes it, and so does `podbay gc`"
        )
    }
}

/// Shutdown state of the process that opened the engine.
#[derive(Debug)]
pub(super) struct Shutdown {
    /// Fires when the process is told to end; clean-up has little time from then on.
    told: CancellationToken,
    /// When that was first noticed.
    since: OnceLock<Instant>,
    left: Mutex<Vec<LeftContainer>>,
}

impl Shutdown {
    pub(super) fn new(told: &CancellationToken) -> Self {
        Self {
            told: told.clone(),
            since: OnceLock::new(),
            left: Mutex::default(),
        }
    }
}

impl Engine {
    /// Removes it with its anonymous volumes, running or not. One that is removed already, or being
    /// removed, counts as done.
    #[boxed]
    pub async fn remove(&self, id: &ContainerId) -> Result<(), Error> {
        let options = RemoveContainerOptionsBuilder::default()
            .force(true)
            .v(true)
            .build();
        let doing = || format!("remove the container {}", id.short());
        match self
            .clean_up(doing, self.docker.remove_container(&id.0, Some(options)))
            .await
        {
            Err(error) if error.is_not_found() || error.is_under_way() => Ok(()),
            // Whatever its state was, it may be gone by now.
            Err(error) if error.is_conflict() => match self.is_there(id).await {
                Ok(false) => Ok(()),
                _ => Err(error),
            },
            other => other,
        }
    }

    /// Removes it, and waits until it is gone.
    #[boxed]
    pub async fn remove_and_look(&self, id: &ContainerId) -> Result<(), Error> {
        self.remove(id).await?;
        let begun = Instant::now();
        while self.is_there(id).await? {
            if begun.elapsed() > GOING {
                return Err(Error::Stays {
                    doing: format!("remove the container {}", id.short()),
                    within: GOING,
                });
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Removes an unwanted container where another error is reported; a failure is kept for
    /// [`Engine::take_left`].
    #[boxed]
    pub async fn discard(&self, id: &ContainerId) {
        if let Err(error) = self.remove(id).await {
            self.note_left(id.short(), &error);
        }
    }

    /// Like [`Engine::discard`] for a process that wants to exit: does not wait for a hanging
    /// engine.
    #[boxed]
    pub async fn discard_soon(&self, id: &ContainerId) {
        let within = self.timeout.min(GIVEN_UP);
        if tokio::time::timeout(within, self.discard(id))
            .await
            .is_err()
        {
            self.note_left(
                id.short(),
                &Error::NoAnswer {
                    doing: format!("remove the container {}", id.short()),
                    within,
                },
            );
        }
    }

    /// Records that a container could not be removed.
    pub(super) fn note_left(&self, name: &str, error: &Error) {
        let problem = error.with_causes();
        tracing::warn!(name, problem, "a container was not removed");
        self.ending
            .left
            .lock()
            .expect("nothing panics while it holds this lock")
            .push(LeftContainer {
                name: name.to_owned(),
                problem,
            });
    }

    /// Returns the containers that could not be removed since the last call; the user should be
    /// told.
    pub fn take_left(&self) -> Vec<LeftContainer> {
        std::mem::take(
            &mut *self
                .ending
                .left
                .lock()
                .expect("nothing panics while it holds this lock"),
        )
    }

    async fn is_there(&self, id: &ContainerId) -> Result<bool, Error> {
        let request = self
            .docker
            .inspect_container(&id.0, None::<InspectContainerOptions>);
        match self
            .clean_up(|| format!("look at the container {}", id.short()), request)
            .await
        {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Waits for a clean-up request, which is not cancelled; once the process was told to end, only
    /// for a short time.
    pub(super) async fn clean_up<T>(
        &self,
        doing: impl Fn() -> String,
        request: impl Future<Output = Result<T, bollard::errors::Error>>,
    ) -> Result<T, Error> {
        let never = CancellationToken::new();
        // Boxed, since it is part of many futures and would make all of them large.
        Box::pin(async {
            tokio::select! {
                biased;
                outcome = bounded(&doing, &never, self.timeout, request) => outcome,
                () = self.late() => Err(Error::NoAnswer { doing: doing(), within: AT_THE_END }),
            }
        })
        .await
    }

    /// Returns when there is no more time to clean up. Later requests share the time of the first,
    /// with a minimum each.
    #[boxed]
    pub async fn late(&self) {
        self.ending.told.cancelled().await;
        let since = self.ending.since.get_or_init(Instant::now);
        tokio::time::sleep(AT_THE_END.saturating_sub(since.elapsed()).max(MOMENT)).await;
    }
}
