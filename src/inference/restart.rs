use async_recursion::async_recursion as boxed;
use tokio_util::sync::CancellationToken;

use super::Error;
use super::ModelServer;
use super::Serving;
use super::atomic_file;
use super::paths::SOCKET;
use super::start::ending;
use podbay_engine::FileLock;

/// The result of [`ModelServer::restart`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestartOutcome {
    /// It had ended by itself, and was restarted with the same key, files and settings.
    Started { why: String },
    /// It runs: it never ended, or another process restarted it.
    Runs,
    /// It was removed or replaced.
    Gone,
}

impl ModelServer {
    /// Waits until the server's container ends; an error, or a timeout, says nothing about the
    /// server.
    #[boxed]
    pub async fn wait_ended(
        &self,
        serving: &Serving,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        self.engine
            .follow_log(&serving.container, 0, |_| (), cancel)
            .await
            .map_err(Error::engine("watch the model server"))
    }

    /// Restarts the server's container if it ended by itself. Does not wait until the model is
    /// loaded: the next request does.
    #[boxed]
    pub async fn restart(
        &self,
        serving: &Serving,
        cancel: &CancellationToken,
    ) -> Result<RestartOutcome, Error> {
        let folder = self.paths.locks();
        let lock = FileLock::wait(&folder, "model-server", || (), cancel);
        let _lock = lock
            .await
            .map_err(Error::engine("wait for the start of the model server"))?;
        let Some(state) = self
            .container(cancel)
            .await?
            .filter(|state| state.id == serving.container)
        else {
            return Ok(RestartOutcome::Gone);
        };
        if state.running {
            return Ok(RestartOutcome::Runs);
        }
        let why = ending(Some(&state));
        // llama.cpp does not start if a file has its socket's name.
        atomic_file::remove(&self.paths.socket_folder().join(SOCKET))?;
        self.engine
            .start(&state.id, cancel)
            .await
            .map_err(Error::engine("start the model server again"))?;
        Ok(RestartOutcome::Started { why })
    }
}
