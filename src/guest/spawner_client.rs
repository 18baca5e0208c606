//! The serving process's side of the spawner: starts a command and talks to its supervisor.

use std::io;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::os::fd::RawFd;
use std::time::Duration;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::child::Stdio;
use super::order;
use super::order::Answer;
use super::order::MAX_ORDER;
use super::order::Order;
use super::order::Report;
use super::order::StopOrder;
use super::process_tree::is_in_own_sandbox;
use super::process_tree::is_in_sandbox;
use super::spawner::pair;
use super::unix::receive;
use super::unix::receive_whole;
use super::unix::send;
use super::unix::set_nonblocking;
use super::unix::watch;

/// How long surviving processes in a shared sandbox are only killed, before others are stopped too.
const HOLD_LATE: Duration = Duration::from_millis(800);

/// The process that starts commands for this one.
#[derive(Debug)]
pub struct Spawner {
    socket: AsyncFd<OwnedFd>,
}

impl Spawner {
    /// Takes this end of a [`super::spawner_pair`]; the other end is a running spawner's. Must be
    /// called inside a runtime.
    pub fn new(socket: OwnedFd) -> io::Result<Self> {
        set_nonblocking(&socket)?;
        Ok(Self {
            socket: watch(socket)?,
        })
    }

    /// Starts a program. The first report tells whether that worked.
    pub(super) async fn start(&self, order: &Order, stdio: &Stdio) -> io::Result<Control> {
        let mut bytes = order.encode();
        let mut file = None;
        if bytes.len() > MAX_ORDER {
            file = Some(order::into_file(&bytes)?);
            bytes = order::IN_FILE.to_vec();
        }
        let (ours, theirs) = pair()?;
        let mut fds: Vec<RawFd> = vec![theirs.as_raw_fd()];
        fds.extend(file.as_ref().map(AsRawFd::as_raw_fd));
        fds.extend(
            [&stdio.stdin, &stdio.stdout, &stdio.stderr, &stdio.directory].map(AsRawFd::as_raw_fd),
        );
        fds.extend(stdio.report.as_ref().map(AsRawFd::as_raw_fd));
        self.socket
            .async_io(Interest::WRITABLE, |socket| {
                send(socket.as_fd(), &bytes, &fds)
            })
            .await?;
        set_nonblocking(&ours)?;
        Ok(Control {
            socket: watch(ours)?,
        })
    }

    /// Returns when the spawner is gone. It never sends anything, so readable means ended.
    pub(super) async fn gone(&self) {
        let _ = self
            .socket
            .async_io(Interest::READABLE, |socket| {
                receive(socket.as_fd(), &mut [0; 1])
            })
            .await;
    }
}

/// The connection to one supervisor. Dropping it ends everything the supervisor owns.
#[derive(Debug)]
pub(super) struct Control {
    socket: AsyncFd<OwnedFd>,
}

impl Control {
    /// Returns the next report; `None`: the supervisor is gone.
    pub(super) async fn next(&self) -> Option<Report> {
        let mut receive_report = |socket: &OwnedFd| match receive_whole(socket.as_fd()) {
            // A supervisor that ends with an order unread resets the socket, and the kernel reports
            // that before the last report.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                receive_whole(socket.as_fd())
            }
            result => result,
        };
        let message = self
            .socket
            .async_io(Interest::READABLE, &mut receive_report)
            .await
            .ok()?;
        Report::decode(&message)
    }

    /// Sends a stop order. The socket takes these few bytes at once, and if the supervisor is gone
    /// there is nothing to end.
    pub(super) fn order(&self, stop: StopOrder) {
        let _ = send(self.socket.get_ref().as_fd(), &stop.encode(), &[]);
    }

    /// Answers a question of the supervisor.
    pub(super) fn answer(&self, question: u32, go_on: bool) {
        let _ = send(
            self.socket.get_ref().as_fd(),
            &Answer { question, go_on }.encode(),
            &[],
        );
    }

    /// Orders a kill of everything the supervisor owns, after TERM had no effect: it may be a fork
    /// bomb by now.
    pub(super) fn kill(&self) {
        if is_in_own_sandbox() {
            self.kill_at_once();
        } else {
            self.order(StopOrder::Kill);
        }
    }

    /// Orders a kill while all other processes of the sandbox are stopped, for a fork bomb.
    pub(super) fn kill_at_once(&self) {
        self.order(if is_in_sandbox() {
            StopOrder::KillAtOnce
        } else {
            StopOrder::Kill
        });
    }

    /// Does so where the processes did not end in the time `waited` for them. In a shared sandbox
    /// another user's shell may see its program stopped and take the terminal back, so there it is
    /// delayed.
    pub(super) fn insist(&self, waited: Duration) {
        if is_in_own_sandbox() || waited >= HOLD_LATE {
            self.kill_at_once();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_report_is_read_despite_an_unread_order() {
        let (ours, theirs) = pair().expect("sockets");
        set_nonblocking(&ours).expect("a socket");
        let control = Control {
            socket: watch(ours).expect("a socket"),
        };
        let report = Report::Ended {
            status: 0,
            n_survivors: 0,
        };
        control.order(StopOrder::Term);
        send(theirs.as_fd(), &report.encode(), &[]).expect("is queued");
        drop(theirs);
        assert_eq!(control.next().await, Some(report));
        assert_eq!(control.next().await, None);
    }
}
