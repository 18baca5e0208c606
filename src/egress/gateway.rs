//! The gateway: takes connections from clients, and holds what they share.

use std::sync::Arc;
use std::time::Duration;

use podbay_wire::EgressAttempt;
use tokio::net::UnixListener;
use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use tokio::sync::mpsc;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection;
use super::grant::RuleSet;
use super::host_streams::HostStreams;
use super::limits::Limits;
use super::reach::Dial;
use super::reach::Reach;
use super::resolve::Resolve;

/// Why a stream ended that the role's end cut.
pub(crate) const ENDING: &str = "cut: the gateway ends";

/// For descriptors to become free, where there are none for another client.
const PAUSE: Duration = Duration::from_millis(100);

pub(crate) struct Shared {
    pub limits: Limits,
    pub reach: Reach,
    pub in_force: watch::Receiver<RuleSet>,
    pub attempts: mpsc::Sender<EgressAttempt>,
    /// Connections, tunnels and what drives those to servers.
    pub tasks: TaskTracker,
    pub ending: CancellationToken,
}

pub struct Gateway(Arc<Shared>);

impl Gateway {
    /// `host` leads to the user's own machine. The rules are those of the channel, and its end is the end of all streams. `attempts` has
    /// room for [`ATTEMPTS`](super::limits::ATTEMPTS).
    pub fn new(
        limits: Limits,
        resolve: Arc<dyn Resolve>,
        dial: Arc<dyn Dial>,
        host: Arc<HostStreams>,
        in_force: watch::Receiver<RuleSet>,
        attempts: mpsc::Sender<EgressAttempt>,
    ) -> Self {
        let reach = Reach::new(resolve, dial, host, limits);
        Self(Arc::new(Shared {
            limits,
            reach,
            in_force,
            attempts,
            tasks: TaskTracker::new(),
            ending: CancellationToken::new(),
        }))
    }

    /// Serves clients until it is told to end; then all streams are cut and their attempts told.
    pub async fn serve(self, listener: UnixListener, until: impl Future<Output = ()>) {
        let Self(shared) = self;
        let places = Arc::new(Semaphore::new(shared.limits.connections));
        tokio::pin!(until);
        loop {
            let stream = tokio::select! {
                () = &mut until => break,
                accepted = listener.accept() => accepted,
            };
            let Ok((stream, _)) = stream else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            match Arc::clone(&places).try_acquire_owned() {
                Ok(place) => drop(shared.tasks.spawn(connection::serve(
                    stream,
                    Arc::clone(&shared),
                    place,
                ))),
                Err(_) => refuse(&stream, shared.limits.connections),
            }
        }
        shared.ending.cancel();
        shared.tasks.close();
        // What does not end by then ends with the process.
        drop(tokio::time::timeout(shared.limits.end, shared.tasks.wait()).await);
    }
}

/// Tells a client that there are too many, without waiting for it.
fn refuse(stream: &UnixStream, most: usize) {
    let text = format!("the gateway has {most} connections, which is the most; close some\n");
    let length = text.len();
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
    );
    // An empty socket has room for it; a client that hung up needs no answer.
    drop(stream.try_write(answer.as_bytes()));
}
