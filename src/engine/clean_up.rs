//! Removing containers: what goes on when everything else was told to end, and what is said where
//! it cannot be done.

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

/// How long the engine may take to clean up once the process was told to end: whoever sent the
/// signal waits for it.
const AT_THE_END: Duration = Duration::from_secs(5);

/// How long an engine has to say what became of a container that was given up. One that hangs must
/// not keep whoever wants to leave; the next start removes what it makes all the same.
pub(super) const GIVEN_UP: Duration = Duration::from_secs(5);

/// What each thing that is cleaned up then has in any case.
const MOMENT: Duration = Duration::from_secs(1);

/// How long a container may still be there after the engine has said that it removed it.
const GOING: Duration = Duration::from_secs(5);

/// A container that is left because it could not be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// What the engine knows it by.
    pub name: String,
    pub problem: String,
}

/// Says what a person can do about a container that cannot be ended.
pub fn how_to_remove(name: &str) -> String {
    format!(
        "try again, or `docker rm --force {name}`; where a process in it cannot be killed, restart the engine or the machine"
    )
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, problem } = self;
        write!(
            f,
            "the container {name} is left: {problem}; `docker rm --force {name}` removes it, and so does `podbay gc`"
        )
    }
}

/// How the one who opened an engine comes to an end.
#[derive(Debug)]
pub(super) struct Ending {
    /// Fires when it is told to end; what is cleaned up from then on has little time.
    told: CancellationToken,
    /// When that was first noticed.
    since: OnceLock<Instant>,
    left: Mutex<Vec<Left>>,
}

impl Ending {
    pub(super) fn new(told: &CancellationToken) -> Self {
        Self {
            told: told.clone(),
            since: OnceLock::new(),
            left: Mutex::default(),
        }
    }
}

impl Engine {
    /// Removes it with its anonymous volumes, running or not. That it is gone already, or going,
    /// counts as done.
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
            // Whatever state it was in, it may be gone by now.
            Err(error) if error.is_conflict() => match self.is_there(id).await {
                Ok(false) => Ok(()),
                _ => Err(error),
            },
            other => other,
        }
    }

    /// Removes it, and believes that only when it is gone.
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

    /// Removes what is not wanted any more where something else is to be said; that it cannot be
    /// removed is kept for [`Engine::take_left`].
    #[boxed]
    pub async fn discard(&self, id: &ContainerId) {
        if let Err(error) = self.remove(id).await {
            self.note_left(id.short(), &error);
        }
    }

    /// Does so for somebody who wants to leave: an engine that hangs is not waited for.
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

    /// Notes that a container could not be removed.
    pub(super) fn note_left(&self, name: &str, error: &Error) {
        let problem = error.with_causes();
        tracing::warn!(name, problem, "a container is left");
        self.ending
            .left
            .lock()
            .expect("nothing panics while it holds this lock")
            .push(Left {
                name: name.to_owned(),
                problem,
            });
    }

    /// Returns what could not be removed since the last time; somebody should be told.
    pub fn take_left(&self) -> Vec<Left> {
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

    /// Waits for a request that cleans up, which nothing cancels; once the process was told to end,
    /// not for long.
    pub(super) async fn clean_up<T>(
        &self,
        doing: impl Fn() -> String,
        request: impl Future<Output = Result<T, bollard::errors::Error>>,
    ) -> Result<T, Error> {
        let never = CancellationToken::new();
        // It stands at the end of many a future, and would make all of them large.
        Box::pin(async {
            tokio::select! {
                biased;
                outcome = bounded(&doing, &never, self.timeout, request) => outcome,
                () = self.late() => Err(Error::NoAnswer { doing: doing(), within: AT_THE_END }),
            }
        })
        .await
    }

    /// Ends when there is no more time to clean up. What comes later shares the time of what came
    /// first, but for a moment of its own.
    #[boxed]
    pub async fn late(&self) {
        self.ending.told.cancelled().await;
        let since = self.ending.since.get_or_init(Instant::now);
        tokio::time::sleep(AT_THE_END.saturating_sub(since.elapsed()).max(MOMENT)).await;
    }
}
