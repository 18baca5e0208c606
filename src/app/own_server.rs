use std::time::Duration;

use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use podbay_event::Kind;
use podbay_event::Sink;
use podbay_inference::ModelServer;
use podbay_inference::RestartOutcome;
use podbay_inference::Serving;

/// How often a server is started again in one session; one that ends more often would end again.
const TIMES: u32 = 3;

/// An engine may close a log before it says that the container has ended.
const PAUSE: Duration = Duration::from_millis(200);

/// Our own model server while a session works with it: it is nobody else's to end, and where it
/// ends by itself it is started again.
pub(super) struct OwnServer {
    _serving: Serving,
    watch: AbortHandle,
}

impl OwnServer {
    /// Looks after a server from now on; who asks it meanwhile waits for it as for any other that
    /// is away.
    pub(super) fn keep(server: ModelServer, serving: Serving, sink: Sink) -> Self {
        let kept = serving.clone();
        let watch = tokio::spawn(async move {
            let mut n_started = 0;
            while watch_once(&server, &serving, &sink, n_started < TIMES).await {
                n_started += 1;
            }
        });
        Self {
            _serving: kept,
            watch: watch.abort_handle(),
        }
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

/// Waits for its end and starts it again; returns whether it did.
async fn watch_once(server: &ModelServer, serving: &Serving, sink: &Sink, may_start: bool) -> bool {
    let never = CancellationToken::new();
    loop {
        if let Err(error) = server.wait_ended(serving, &never).await {
            tracing::debug!(%error, "the model server is not watched");
            return false;
        }
        if !may_start {
            return false;
        }
        tokio::time::sleep(PAUSE).await;
        let warn = |message| sink(Kind::Warning { message }.into());
        match server.restart(serving, &never).await {
            Ok(RestartOutcome::Started { why }) => {
                warn(format!(
                    "the model server ended ({why}) and is started again"
                ));
                return true;
            }
            Ok(RestartOutcome::Runs) => {}
            Ok(RestartOutcome::Gone) => return false,
            Err(error) => {
                warn(format!(
                    "the model server ended and cannot be started again: {error}"
                ));
                return false;
            }
        }
    }
}
