//! The process that forks: single-threaded, small, and under the stricter filter from its start,
//! except for what each call's supervisor decides.
//!
//! It is forked before the guest has threads or a runtime, so that forking stays simple and cheap
//! for as long as the sandbox lives. It forks one supervisor per order and is a subreaper itself:
//! when a command kills its supervisor, the orphans become its children and are ended.

use std::collections::HashSet;
use std::io;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::time::Duration;
use std::time::Instant;

use nix::poll::PollFd;
use nix::poll::PollFlags;
use nix::poll::PollTimeout;
use nix::poll::poll;
use nix::sys::signal::SigSet;
use nix::sys::signal::Signal;
use nix::sys::signalfd::SfdFlags;
use nix::sys::signalfd::SignalFd;
use nix::sys::socket::AddressFamily;
use nix::sys::socket::SockFlag;
use nix::sys::socket::SockType;
use nix::sys::socket::socketpair;

use super::child::Stdio;
use super::domain::Domain;
use super::filter;
use super::order;
use super::order::MAX_ORDER;
use super::order::Order;
use super::order::Report;
use super::order::Stage;
use super::process_tree::end_all;
use super::process_tree::kill_trees;
use super::process_tree::own_children;
use super::supervisor::supervise;
use super::supervisor::tell;
use super::unix::Fork;
use super::unix::Reaped;
use super::unix::default_signals;
use super::unix::exit_now;
use super::unix::fork_single_threaded;
use super::unix::reap;
use super::unix::receive;

/// How long orphans may survive; after that the spawner ends, and with it the sandbox.
const ORPHANS_GONE: Duration = Duration::from_secs(2);

/// Returns a connected pair of sockets: the serving process's end, and the spawner's.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(
        AddressFamily::Unix,
        SockType::SeqPacket,
        None,
        SockFlag::SOCK_CLOEXEC,
    )?)
}

/// Serves orders until the other end of the socket is closed, then ends everything it started.
pub(super) fn run(socket: OwnedFd) -> io::Result<()> {
    nix::sys::prctl::set_name(c"podbay-spawner")?;
    nix::sys::prctl::set_child_subreaper(true)?;
    default_signals();
    filter::begin()?;
    let domain = Domain::find()?;
    let signals = SignalFd::with_flags(
        &SigSet::from(Signal::SIGCHLD),
        SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC,
    )?;
    let mut spawner = Spawner {
        socket: Some(socket),
        signals: Some(signals),
        domain,
        supervisors: HashSet::new(),
        orphans_since: None,
    };
    let mut buffer = vec![0; MAX_ORDER];
    loop {
        if !spawner.sweep() {
            return Err(io::Error::other(
                "processes without their supervisor do not end",
            ));
        }
        match spawner.wait(&mut buffer)? {
            Next::Order(length, fds) => spawner.fork(&buffer[..length], fds),
            Next::Child => {}
            Next::End => break,
        }
    }
    end_all(ORPHANS_GONE, |_| {});
    Ok(())
}

enum Next {
    Order(usize, Vec<OwnedFd>),
    /// A child ended, or it is time to check again.
    Child,
    End,
}

struct Spawner {
    /// Both are set in the spawner and closed in what it forks.
    socket: Option<OwnedFd>,
    signals: Option<SignalFd>,
    /// Each supervisor enters a domain of its own with a copy; `None`: the kernel has no domains.
    domain: Option<Domain>,
    supervisors: HashSet<i32>,
    /// Since when there are children without a supervisor.
    orphans_since: Option<Instant>,
}

impl Spawner {
    /// Reaps children and ends orphans; returns whether that still works.
    fn sweep(&mut self) -> bool {
        while let Reaped::Ended(ended) = reap() {
            // A supervisor that exits by itself has seen the end of all it owned.
            if self.supervisors.remove(&ended.pid) && ended.status != 0 {
                self.orphans_since.get_or_insert_with(Instant::now);
            }
        }
        let Some(since) = self.orphans_since else {
            return true;
        };
        let orphans = || {
            own_children()
                .into_iter()
                .filter(|pid| !self.supervisors.contains(pid))
                .collect::<Vec<_>>()
        };
        kill_trees(orphans);
        while let Reaped::Ended(ended) = reap() {
            self.supervisors.remove(&ended.pid);
        }
        if own_children()
            .iter()
            .all(|pid| self.supervisors.contains(pid))
        {
            self.orphans_since = None;
            return true;
        }
        since.elapsed() < ORPHANS_GONE
    }

    fn wait(&self, buffer: &mut [u8]) -> io::Result<Next> {
        let (Some(socket), Some(signals)) = (&self.socket, &self.signals) else {
            return Ok(Next::End);
        };
        let timeout = if self.orphans_since.is_some() {
            PollTimeout::from(5_u8)
        } else {
            PollTimeout::NONE
        };
        let mut fds = [
            PollFd::new(signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(socket.as_fd(), PollFlags::POLLIN),
        ];
        match poll(&mut fds, timeout) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is_ready = |fd: &PollFd<'_>| fd.revents().is_some_and(|events| !events.is_empty());
        if is_ready(&fds[0]) {
            while let Ok(Some(_)) = signals.read_signal() {}
            return Ok(Next::Child);
        }
        if !is_ready(&fds[1]) {
            return Ok(Next::Child);
        }
        match receive(socket.as_fd(), buffer)? {
            (0, _) => Ok(Next::End),
            (length, fds) => Ok(Next::Order(length, fds)),
        }
    }

    fn fork(&mut self, order: &[u8], fds: Vec<OwnedFd>) {
        let mut fds = fds.into_iter();
        // An order without its control socket cannot be answered.
        let Some(control) = fds.next() else { return };
        let file = if order == order::IN_FILE {
            fds.next()
        } else {
            None
        };
        let (Some(stdin), Some(stdout), Some(stderr), Some(directory)) =
            (fds.next(), fds.next(), fds.next(), fds.next())
        else {
            return tell(
                &control,
                &Report::Failed {
                    stage: Stage::Order,
                    errno: libc::EINVAL,
                },
            );
        };
        let stdio = Stdio {
            stdin,
            stdout,
            stderr,
            directory,
            report: fds.next(),
        };
        match fork_single_threaded() {
            Ok(Fork::Parent(pid)) => {
                self.supervisors.insert(pid);
            }
            Ok(Fork::Child) => {
                self.socket = None;
                self.signals = None;
                let domain = self.domain.take();
                // A panic must not unwind into the loop of the spawner, of which this is a copy.
                let order = || match file {
                    Some(file) => Order::decode(&order::out_of_file(file).ok()?),
                    None => Order::decode(order),
                };
                let _ = catch_unwind(AssertUnwindSafe(|| match order() {
                    Some(order) => supervise(&order, stdio, &control, domain),
                    None => tell(
                        &control,
                        &Report::Failed {
                            stage: Stage::Order,
                            errno: libc::EINVAL,
                        },
                    ),
                }));
                exit_now(1)
            }
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(libc::EAGAIN);
                tell(
                    &control,
                    &Report::Failed {
                        stage: Stage::Fork,
                        errno,
                    },
                );
            }
        }
    }
}

/// Keeps the protocol's pipes out of the spawner: they would stay open in it when the serving
/// process is gone.
pub(super) fn detach_stdio() -> io::Result<()> {
    let null = std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    nix::unistd::dup2_stdin(&null)?;
    nix::unistd::dup2_stdout(&null)?;
    nix::unistd::dup2_stderr(&null)?;
    debug_assert!(
        null.as_raw_fd() > 2,
        "the guest is started with its three standard descriptors open"
    );
    Ok(())
}
