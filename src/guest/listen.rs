//! PID 1 of a sandbox that is kept by others, such as compose: controllers connect by a socket in a
//! folder that both sides have.
//!
//! Each controller gets a serving process of its own, forked from here, like those beside `init` in
//! the sandbox of `podbay up`. Only peers from outside are accepted: the kernel has no pid in this
//! namespace for a process outside of it, while a command's pid stays with its socket even when the
//! command has ended.
//!
//! Commands have the same user and can reach the serving processes and the socket's name. So
//! stopped processes are woken, a killed one costs only its controller, and a replaced name is
//! created again.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use nix::poll::PollFd;
use nix::poll::PollFlags;
use nix::poll::PollTimeout;
use nix::poll::poll;
use nix::sys::signalfd::SignalFd;
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;

use super::init::signals;
use super::init::told_to_end;
use super::mounts::git_problem;
use super::process_tree::kill_trees;
use super::process_tree::own_children;
use super::rescue::ServeRescue;
use super::role::Sharing;
use super::role::run_serve;
use super::serve;
use super::unix::Fork;
use super::unix::Reaped;
use super::unix::exit_now;
use super::unix::fork_single_threaded;
use super::unix::reap;
use podbay_wire::frame;
use podbay_wire::message::ToHost;

/// Interval between two checks.
const TICK: Duration = Duration::from_secs(1);

/// Most controllers at once; more are rejected.
const MAX_SERVING: usize = 16;

/// Exit code of a serving process that lost control of the sandbox.
const GIVEN_UP: i32 = 3;

/// How long a rejected controller may take to read the reason.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Serves controllers from outside, until a TERM from there.
pub(super) fn run(
    socket: PathBuf,
    workspace: PathBuf,
    environment: Vec<Vec<u8>>,
) -> io::Result<()> {
    if std::process::id() != 1 {
        return Err(io::Error::other(
            "only PID 1 of a sandbox can tell which peers come from outside",
        ));
    }
    let mut door = NamedSocket::open(socket)?;
    let signals = signals()?;
    let mut serving = HashSet::new();
    let mut rescue = ServeRescue::default();
    let mut is_soon = false;
    let place = ServeSetup {
        workspace,
        environment,
    };
    loop {
        wait(&signals, &door.listener, ServeRescue::pause(is_soon, TICK));
        if told_to_end(&signals) {
            door.close();
            return Ok(());
        }
        while let Reaped::Ended(ended) = reap() {
            let is_ours = serving.remove(&ended.pid);
            if is_ours
                && libc::WIFEXITED(ended.status)
                && libc::WEXITSTATUS(ended.status) == GIVEN_UP
            {
                door.close();
                return Err(io::Error::other(
                    "a process in this sandbox cannot be ended, so the sandbox ends",
                ));
            }
        }
        let orphans = || {
            own_children()
                .into_iter()
                .filter(|pid| !serving.contains(pid))
                .collect::<Vec<_>>()
        };
        if !orphans().is_empty() {
            kill_trees(orphans);
        }
        is_soon = rescue.look(&serving.iter().copied().collect::<Vec<_>>());
        door.keep();
        while let Some(connection) = door.accept() {
            if serving.len() >= MAX_SERVING {
                turn_away(
                    connection,
                    &format!("{MAX_SERVING} controllers are at work in this sandbox already"),
                );
                continue;
            }
            match fork_single_threaded()? {
                Fork::Parent(pid) => {
                    serving.insert(pid);
                }
                Fork::Child => {
                    drop((door, signals));
                    exit_now(place.serve(connection))
                }
            }
        }
    }
}

fn wait(signals: &SignalFd, listener: &UnixListener, pause: Duration) {
    let mut fds = [
        PollFd::new(signals.as_fd(), PollFlags::POLLIN),
        PollFd::new(listener.as_fd(), PollFlags::POLLIN),
    ];
    let _ = poll(
        &mut fds,
        PollTimeout::try_from(pause).unwrap_or(PollTimeout::MAX),
    );
}

/// What every serving process is given.
struct ServeSetup {
    workspace: PathBuf,
    environment: Vec<Vec<u8>>,
}

impl ServeSetup {
    /// Serves one controller; returns the exit code.
    fn serve(self, connection: UnixStream) -> i32 {
        if let Some(problem) = git_problem(&self.workspace) {
            turn_away(connection, &problem);
            return 0;
        }
        let input = OwnedFd::from(connection);
        let Ok(output) = input.try_clone() else {
            return 1;
        };
        match run_serve(
            self.workspace,
            self.environment,
            Sharing::Shared,
            input,
            output,
        ) {
            Ok(()) => 0,
            Err(error) => match error
                .get_ref()
                .and_then(|error| error.downcast_ref::<serve::Error>())
            {
                Some(serve::Error::Closed(_)) => GIVEN_UP,
                _ => 1,
            },
        }
    }
}

/// Tells a controller why it is not served.
fn turn_away(mut connection: UnixStream, reason: &str) {
    let Ok(bytes) = frame::encode(&ToHost::Closing {
        reason: reason.to_owned(),
    }) else {
        return;
    };
    let length = u32::try_from(bytes.len()).unwrap_or(0).to_be_bytes();
    // A peer that does not read is not waited for.
    let _ = connection.set_write_timeout(Some(LAST_WORDS));
    let _ = connection.write_all(&[&length[..], &bytes].concat());
}

/// A listening socket with its name.
struct NamedSocket {
    path: PathBuf,
    listener: UnixListener,
    /// Device and inode of the name when we created it.
    identity: (u64, u64),
}

impl NamedSocket {
    fn open(path: PathBuf) -> io::Result<Self> {
        let (listener, identity) = bind(&path).map_err(|error| {
            let problem = format!(
                "listen at {}: {error}; its folder must belong to uid {}",
                path.display(),
                nix::unistd::geteuid()
            );
            io::Error::new(error.kind(), problem)
        })?;
        Ok(Self {
            path,
            listener,
            identity,
        })
    }

    /// Creates the name again where a command has removed or replaced it, or its mode.
    fn keep(&mut self) {
        let facts = fs::symlink_metadata(&self.path);
        let is_ours = facts.is_ok_and(|facts| {
            (facts.dev(), facts.ino()) == self.identity && facts.mode() & 0o777 == 0o600
        });
        // A failure is retried at the next check; connected controllers continue.
        if !is_ours && let Ok((listener, identity)) = bind(&self.path) {
            (self.listener, self.identity) = (listener, identity);
        }
    }

    /// Returns the next peer from outside; a peer from this sandbox is closed at once.
    fn accept(&self) -> Option<UnixStream> {
        loop {
            match self.listener.accept() {
                Ok((connection, _)) if is_from_outside(&connection) => return Some(connection),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(_) => return None,
            }
        }
    }

    fn close(&self) {
        // The next start removes it too.
        let _ = fs::remove_file(&self.path);
    }
}

fn is_from_outside(connection: &UnixStream) -> bool {
    // A process without a pid in this namespace is outside of it.
    getsockopt(connection, PeerCredentials).is_ok_and(|peer| peer.pid() == 0)
}

fn bind(path: &Path) -> io::Result<(UnixListener, (u64, u64))> {
    // An entry of an earlier start, or a command's. Even a folder must not block the name.
    match fs::remove_file(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(_) => fs::remove_dir_all(path)?,
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    let facts = fs::symlink_metadata(path)?;
    Ok((listener, (facts.dev(), facts.ino())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_socket_name_is_created_again() {
        let folder = tempfile_folder("door");
        let path = folder.join("s.sock");
        fs::write(&path, "left behind").expect("written");
        let mut door = NamedSocket::open(path.clone()).expect("a door");
        let first = door.identity;
        door.keep();
        assert_eq!(door.identity, first);
        fs::remove_file(&path).expect("removed");
        std::os::unix::fs::symlink("/elsewhere", &path).expect("linked");
        door.keep();
        assert!(UnixStream::connect(&path).is_ok());
        fs::remove_file(&path).expect("removed");
        fs::create_dir_all(path.join("sub")).expect("made");
        door.keep();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).expect("closed");
        door.keep();
        assert_eq!(
            fs::symlink_metadata(&path).expect("there").mode() & 0o777,
            0o600
        );
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn a_peer_from_the_same_sandbox_is_rejected_even_after_its_end() {
        let folder = tempfile_folder("peer");
        let path = folder.join("s.sock");
        let door = NamedSocket::open(path.clone()).expect("a door");
        let _waiting = UnixStream::connect(&path).expect("connects");
        assert!(door.accept().is_none());
        fs::remove_dir_all(folder).expect("removed");
    }

    fn tempfile_folder(name: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("podbay-listen-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).expect("a folder");
        folder
    }
}
