//! A socket by which a controller reaches the guest in the sandbox of `podbay up`. The engine would
//! take longer to start a program there than most commands run.
//!
//! The folder is on the user's machine and read-only in the sandbox. A controller that joins listens
//! there under a new name; PID 1 of the sandbox sees the name, connects, and a process that it forks
//! serves the controller. Commands in the sandbox can connect too, so the kernel's word on the peer
//! decides: any process but PID 1 of the sandbox is turned away.
//!
//! Where the engine is on another machine, or in a virtual one, no folder is made, and controllers
//! join by the engine.

use std::fs;
use std::fs::File;
use std::fs::Permissions;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener as StdListener;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use tokio::net::UnixListener;
use tokio::net::UnixStream;

use super::Project;
use podbay_event::InstanceId;

/// Where the folder is in the sandbox.
pub(super) const TARGET: &str = "/run/podbay/controllers";

/// How long PID 1 may take to connect; it needs a thousandth of that. That of a sandbox that was just
/// made has to start first.
pub(super) const RUNNING: Duration = Duration::from_secs(1);
pub(super) const STARTING: Duration = Duration::from_secs(5);

/// Makes the folder for a sandbox that is about to be made, below `root`. Those of the project's
/// earlier sandboxes go, but for that of the present one.
pub(super) fn make_folder(
    root: &Path,
    project: &Project,
    present: Option<&Path>,
) -> io::Result<PathBuf> {
    let prefix = format!("{}-", project.key());
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let is_old = entry.file_name().to_string_lossy().starts_with(&prefix);
        if is_old && present != Some(entry.path().as_path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let folder = root.join(format!("{prefix}{}", InstanceId::random()));
    fs::create_dir(&folder)?;
    // The user of the sandbox may be another one; who is not in it cannot get through to here.
    fs::set_permissions(&folder, Permissions::from_mode(0o755))?;
    Ok(folder)
}

/// Returns the folder that a sandbox has for this, if it has one.
pub(super) fn folder_of(mounts: &[(String, PathBuf)]) -> Option<PathBuf> {
    mounts
        .iter()
        .find(|(target, _)| target == TARGET)
        .map(|(_, source)| source.clone())
        .filter(|source| source.is_dir())
}

/// Waits until PID 1 of a sandbox connects, which is `pid` on this machine.
pub(super) async fn accept(folder: &Path, pid: u32, within: Duration) -> io::Result<UnixStream> {
    let socket = Socket::listen(folder)?;
    let accepting = async {
        loop {
            let (stream, _) = socket.listener.accept().await?;
            if stream.peer_cred()?.pid() == i32::try_from(pid).ok() {
                return Ok(stream);
            }
        }
    };
    tokio::time::timeout(within, accepting)
        .await
        .map_err(|_elapsed| io::ErrorKind::TimedOut)?
}

/// A listening socket, whose name goes with it.
struct Socket {
    listener: UnixListener,
    path: PathBuf,
}

impl Socket {
    fn listen(folder: &Path) -> io::Result<Self> {
        let name = InstanceId::random();
        let path = folder.join(format!("{name}.sock"));
        let hidden = folder.join(format!("{name}.new"));
        // Through a descriptor: the kernel bounds the length of a socket's path.
        let held = File::open(folder)?;
        let listener = StdListener::bind(format!("/proc/self/fd/{}/{name}.new", held.as_raw_fd()))?;
        let named = fs::set_permissions(&hidden, Permissions::from_mode(0o666))
            .and_then(|()| listener.set_nonblocking(true))
            // Only what listens already gets the name that is looked for.
            .and_then(|()| fs::rename(&hidden, &path));
        if let Err(error) = named {
            let _ = fs::remove_file(&hidden);
            return Err(error);
        }
        Ok(Self {
            listener: UnixListener::from_std(listener)?,
            path,
        })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn accepted(pid: u32) -> (io::Result<UnixStream>, usize) {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().to_owned();
        let connecting = tokio::spawn(async move {
            let mut n_connected = 0;
            for _ in 0..200 {
                for entry in fs::read_dir(&place).expect("listed").flatten() {
                    let path = entry.path();
                    let is_listening = path.extension().is_some_and(|name| name == "sock");
                    if is_listening && UnixStream::connect(&path).await.is_ok() {
                        n_connected += 1;
                    }
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            n_connected
        });
        let stream = accept(folder.path(), pid, RUNNING).await;
        let n_left = fs::read_dir(folder.path()).expect("listed").count();
        assert_eq!(n_left, 0, "the name goes with the socket");
        (stream, connecting.await.expect("no panic"))
    }

    #[tokio::test]
    async fn only_the_first_process_of_the_sandbox_is_accepted() {
        let (stream, _) = accepted(std::process::id()).await;
        assert!(stream.is_ok());
        let (stream, n_turned_away) = accepted(1).await;
        let error = stream.expect_err("another process");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(n_turned_away > 0);
    }

    #[test]
    fn folders_of_earlier_sandboxes_go_and_that_of_the_present_one_stays() {
        let (root, at) = (
            tempfile::tempdir().expect("a folder"),
            tempfile::tempdir().expect("a folder"),
        );
        let project = Project::open(at.path(), None, Path::new("/nonexistent")).expect("a project");
        let make =
            |present: Option<&Path>| make_folder(root.path(), &project, present).expect("a folder");
        let other = root.path().join("other-1");
        fs::create_dir(&other).expect("made");
        let first = make(None);
        let second = make(Some(&first));
        let third = make(Some(&second));
        assert!(!first.exists() && second.exists() && third.exists() && other.exists());
        let mounts = [(TARGET.to_owned(), third.clone())];
        assert_eq!(folder_of(&mounts), Some(third));
        assert_eq!(folder_of(&[("/workspace".to_owned(), second)]), None);
    }
}
