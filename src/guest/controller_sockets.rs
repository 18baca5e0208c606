//! The sockets at which controllers wait for PID 1 of `podbay up`, in a folder of the user's machine
//! that is read-only here.

use std::io;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd;
use std::os::fd::BorrowedFd;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::sys::inotify::AddWatchFlags;
use nix::sys::inotify::InitFlags;
use nix::sys::inotify::Inotify;
use nix::sys::socket::AddressFamily;
use nix::sys::socket::SockFlag;
use nix::sys::socket::SockType;
use nix::sys::socket::UnixAddr;
use nix::sys::socket::connect;
use nix::sys::socket::socket;

/// The folder, watched for new names.
pub(super) struct ControllerSockets {
    folder: PathBuf,
    events: Inotify,
    is_listed: bool,
}

impl ControllerSockets {
    pub(super) fn watch(folder: PathBuf) -> io::Result<Self> {
        let events = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
        // A controller gives a socket its name when it listens.
        events.add_watch(&folder, AddWatchFlags::IN_MOVED_TO)?;
        Ok(Self {
            folder,
            events,
            is_listed: false,
        })
    }

    /// Connects to the sockets that are new. One that does not take the connection at once is left:
    /// its controller joins by the engine. So is each for which there is no `room`.
    pub(super) fn connect_new(&mut self, room: usize) -> Vec<OwnedFd> {
        let mut connected = Vec::new();
        // Those that were there before the watch.
        if !std::mem::replace(&mut self.is_listed, true) {
            let entries = std::fs::read_dir(&self.folder).into_iter().flatten();
            let paths = entries.flatten().map(|entry| entry.path());
            let sockets = paths.filter(|path| path.extension().is_some_and(|end| end == "sock"));
            connected.extend(sockets.filter_map(|path| connect_to(&path).ok()).take(room));
        }
        while let Ok(events) = self.events.read_events() {
            let names = events.into_iter().filter_map(|event| event.name);
            let left = room.saturating_sub(connected.len());
            let new = names.filter_map(|name| connect_to(&self.folder.join(name)).ok());
            connected.extend(new.take(left));
        }
        connected
    }
}

fn connect_to(path: &Path) -> nix::Result<OwnedFd> {
    let stream = socket(
        AddressFamily::Unix,
        SockType::Stream,
        SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
        None,
    )?;
    loop {
        match connect(stream.as_raw_fd(), &UnixAddr::new(path)?) {
            Err(Errno::EINTR) => {}
            other => return other.map(|()| stream),
        }
    }
}

impl AsFd for ControllerSockets {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::io::Write;
    use std::os::unix::net::UnixListener;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_socket_is_connected_to_when_it_gets_its_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let mut sockets = ControllerSockets::watch(folder.path().to_owned()).expect("watched");
        let early = UnixListener::bind(at("early.sock")).expect("bound");
        assert_eq!(sockets.connect_new(9).len(), 1, "it was there before");
        drop(early);
        let listener = UnixListener::bind(at("a.new")).expect("bound");
        assert!(sockets.connect_new(9).is_empty());
        fs::rename(at("a.new"), at("a.sock")).expect("named");
        let mut connected = sockets.connect_new(9);
        let mut ours = UnixStream::from(connected.pop().expect("one"));
        let (mut theirs, _) = listener.accept().expect("accepted");
        ours.write_all(b"hello").expect("sent");
        let mut said = [0; 5];
        theirs.read_exact(&mut said).expect("received");
        assert_eq!(&said, b"hello");
        // Where there is no room the connection is not even made, so that nobody waits for a greeting.
        fs::rename(at("a.sock"), at("d.sock")).expect("named");
        assert!(sockets.connect_new(0).is_empty());
        listener.set_nonblocking(true).expect("set");
        assert!(listener.accept().is_err());
        fs::rename(at("d.sock"), at("a.sock")).expect("named");
        assert_eq!(sockets.connect_new(9).len(), 1);
        // Neither a file nor a socket whose controller has ended is in the way.
        fs::write(at("b.new"), "").expect("written");
        fs::rename(at("b.new"), at("b.sock")).expect("named");
        drop(listener);
        fs::rename(at("a.sock"), at("c.sock")).expect("named");
        assert!(sockets.connect_new(9).is_empty());
    }
}
