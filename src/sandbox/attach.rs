use std::ffi::OsStr;
use std::fs;
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;

use super::Error;
use super::Options;
use super::link;
use super::link::Link;
use super::mounted;
use podbay_guest as guest;
use podbay_wire::message::DiskBegan;
use podbay_wire::message::DiskLimits;
use podbay_wire::message::Facts;

/// Between two looks at a sandbox that starts.
const PAUSE: Duration = Duration::from_millis(100);

/// A sandbox that Podbay did not start, reached by a unix socket: the backend `attach`.
///
/// Nothing of the project is here, only the socket; so it is the socket that names what is worked
/// on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Socket {
    path: PathBuf,
    disk: DiskLimits,
}

impl Socket {
    /// Returns the socket that the settings name.
    pub fn open(options: &Options) -> Result<Self, Error> {
        let setting = |problem: &str| Error::Setting {
            key: "sandbox.socket",
            problem: problem.to_owned(),
        };
        let Some(path) = options.socket.as_deref().filter(|path| !path.is_empty()) else {
            return Err(setting(
                "it names no socket, and `sandbox.backend = attach` needs one",
            ));
        };
        if !path.starts_with('/') {
            return Err(setting("it is not an absolute path"));
        }
        Ok(Self {
            path: PathBuf::from(path),
            disk: options.disk_limits(),
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns what names it in lock files: the folder it is in, by device and inode, and its name
    /// there.
    ///
    /// The socket's own inode would not do: it is another one each time the sandbox is started
    /// anew.
    pub(super) fn key(&self) -> String {
        let folder = self
            .path
            .parent()
            .and_then(|folder| fs::metadata(folder).ok());
        let (device, inode) = folder.map_or((0, 0), |folder| (folder.dev(), folder.ino()));
        let name = self.path.file_name().unwrap_or(OsStr::new("")).as_bytes();
        let name: String = name
            .iter()
            .take(100)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        format!("attach-{device}-{inode}-{name}")
    }

    /// Connects and greets the guest, which counts the disk from `began` on; waits for a sandbox
    /// that is being started.
    pub(super) async fn connect(
        &self,
        began: Option<DiskBegan>,
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<(Link, Facts), Error> {
        let begun = Instant::now();
        loop {
            let problem = match self.greet(began, within, cancel).await {
                Ok(answered) => return Ok(answered),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Passing(problem)) => problem,
            };
            if begun.elapsed() >= within {
                return Err(Error::NotAttached {
                    socket: self.path.clone(),
                    problem,
                });
            }
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                () = cancel.cancelled() => return Err(Error::Cancelled),
            }
        }
    }

    async fn greet(
        &self,
        began: Option<DiskBegan>,
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<(Link, Facts), Failure> {
        let stream = tokio::select! {
            stream = tokio::time::timeout(within, self.reach()) => match stream {
                Ok(stream) => stream.map_err(|problem| Failure::Passing(problem.to_string()))?,
                Err(_) => return Err(Failure::Passing("nobody takes the connection".to_owned())),
            },
            () = cancel.cancelled() => return Err(Failure::Final(Error::Cancelled)),
        };
        match Link::connect(
            stream,
            &guest::build_id(),
            DiskLimits { began, ..self.disk },
            within,
            cancel,
        )
        .await
        {
            Ok(answered) => Ok(answered),
            Err(link::Error::Cancelled { .. }) => Err(Failure::Final(Error::Cancelled)),
            // It went down while we came.
            Err(link::Error::Greet {
                reason: reason @ (link::Reason::EndOfStream | link::Reason::Broken(_)),
            }) => Err(Failure::Passing(reason.to_string())),
            Err(source) => Err(Failure::Final(Error::Attach {
                socket: self.path.clone(),
                source,
            })),
        }
    }

    /// Connects to what stands there only if that is a socket: commands may be able to put a link
    /// in its place.
    async fn reach(&self) -> std::io::Result<UnixStream> {
        let found = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC)
            .open(&self.path)?;
        if !found.metadata()?.file_type().is_socket() {
            return Err(std::io::Error::other("what stands there is no socket"));
        }
        // Through the descriptor, so that it is what was looked at; it also spares the kernel's
        // bound on such paths.
        UnixStream::connect(format!("/proc/self/fd/{}", found.as_raw_fd())).await
    }
}

/// What a user should know about a sandbox of this kind, beside what every run says.
pub(super) fn warnings(facts: &Facts) -> Vec<String> {
    let mut warnings = Vec::new();
    if !facts.workspace_writable {
        let (uid, gid) = facts.workspace_owner;
        warnings.push(format!(
            "the sandbox runs as {}:{} and may not write in its /workspace, which belongs to {uid}:{gid}: reading works, changing files \
             does not; set PODBAY_UID={uid} and PODBAY_GID={gid} in `.env` (`podbay init` writes them) and start it anew",
            facts.uid, facts.gid
        ));
    } else if facts.uid == 0 {
        warnings.push("commands run as uid 0 in this sandbox; set PODBAY_UID and PODBAY_GID in `.env` to avoid that".to_owned());
    }
    if facts.networked {
        warnings.push("the sandbox has a network: commands can reach what it reaches".to_owned());
    }
    let limits = [
        (
            facts.memory_bytes,
            "no memory limit is in force in the sandbox: a command can use all memory of the machine",
        ),
        (
            facts.n_processes,
            "no limit on processes is in force in the sandbox",
        ),
        (
            facts.millicores,
            "no processor limit is in force in the sandbox",
        ),
    ];
    warnings.extend(mounted::warning_attached(&facts.foreign));
    warnings.extend(
        limits
            .into_iter()
            .filter(|(limit, _)| limit.is_none())
            .map(|(_, warning)| warning.to_owned()),
    );
    warnings
}

enum Failure {
    /// It may be otherwise in a moment.
    Passing(String),
    Final(Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(path: impl AsRef<Path>) -> Socket {
        let options = Options {
            socket: path.as_ref().to_str().map(str::to_owned),
            ..Options::default()
        };
        Socket::open(&options).expect("a path")
    }

    #[test]
    fn what_is_mounted_in_the_project_from_elsewhere_is_said() {
        let said = |foreign: &[&str]| {
            let foreign = foreign.iter().map(|&path| path.into()).collect();
            let facts = Facts {
                workspace_writable: true,
                uid: 1000,
                foreign,
                ..Facts::default()
            };
            warnings(&facts)
                .into_iter()
                .find(|warning| warning.contains("mounted in the project"))
        };
        assert_eq!(said(&[]), None);
        assert!(
            said(&["data"]).is_some_and(
                |said| said.starts_with("data is mounted in the project from elsewhere")
            )
        );
        assert!(said(&["a/nfs", "data", "tmp"]).is_some_and(|said| said.starts_with("a/nfs, data, tmp are mounted in the project")));
    }

    #[test]
    fn a_socket_has_to_be_named_by_its_whole_path() {
        for path in [None, Some(""), Some("run/guest.sock")] {
            let options = Options {
                socket: path.map(str::to_owned),
                ..Options::default()
            };
            assert!(Socket::open(&options).expect_err("refused").is_usage());
        }
    }

    #[test]
    fn its_name_for_locks_is_the_same_on_every_way_to_it_and_after_a_restart() {
        let folder = tempfile::tempdir().expect("a folder");
        let run = folder.path().join("run");
        fs::create_dir(&run).expect("made");
        std::os::unix::fs::symlink(&run, folder.path().join("link")).expect("linked");
        let before = socket(run.join("s.sock")).key();
        let listener = std::os::unix::net::UnixListener::bind(run.join("s.sock")).expect("bound");
        assert_eq!(socket(folder.path().join("link/s.sock")).key(), before);
        drop(listener);
        assert_ne!(socket(run.join("t.sock")).key(), before);
        assert_ne!(socket(folder.path().join("s.sock")).key(), before);
    }

    #[tokio::test]
    async fn a_link_in_its_place_is_not_followed_and_a_long_path_works() {
        let folder = tempfile::tempdir().expect("a folder");
        let deep = folder.path().join("d".repeat(120));
        fs::create_dir(&deep).expect("made");
        let real = folder.path().join("real");
        let listener = std::os::unix::net::UnixListener::bind(&real).expect("bound");
        std::os::unix::fs::symlink(&real, deep.join("s.sock")).expect("linked");
        let error = socket(deep.join("s.sock"))
            .connect(None, Duration::ZERO, &CancellationToken::new())
            .await
            .expect_err("refused");
        assert!(
            matches!(&error, Error::NotAttached { problem, .. } if problem.contains("no socket")),
            "{error}"
        );
        fs::remove_file(deep.join("s.sock")).expect("removed");
        fs::hard_link(&real, deep.join("s.sock")).expect("named again");
        assert!(socket(deep.join("s.sock")).reach().await.is_ok());
        drop(listener);
    }
}
