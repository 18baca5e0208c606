use std::env;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;

use super::Error;
use super::atomic_file;

/// Name of the server's socket; llama.cpp recognizes a socket by this suffix.
pub(super) const SOCKET: &str = "s.sock";

/// Longest path of a socket (`sun_path` without the NUL).
const LONGEST: usize = 107;

/// The server's uid where the state folder belongs to root.
const NOBODY: u32 = 65532;

/// The paths of models, locks, keys and sockets, below the state folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    state: PathBuf,
}

impl Paths {
    /// `state` is the state folder; it is created when it is needed.
    pub fn new(state: impl Into<PathBuf>) -> Self {
        Self {
            state: state.into(),
        }
    }

    /// Returns the folder of the models' files.
    pub fn models(&self) -> PathBuf {
        self.state.join("models")
    }

    /// Returns the folder of lock files.
    pub fn locks(&self) -> PathBuf {
        self.state.join("locks")
    }

    /// Returns the folder that records which images were checked.
    pub(super) fn images(&self) -> PathBuf {
        self.state.join("images")
    }

    /// Returns the folder of the marks of processes that use the server.
    pub(super) fn holds(&self) -> PathBuf {
        self.locks().join("model-server-users")
    }

    /// Returns the file that lists the running server's model files.
    pub(super) fn serving(&self) -> PathBuf {
        self.state.join("model-server").join("serving.json")
    }

    /// Returns the folder that the server reads its key from.
    pub(super) fn key_folder(&self) -> PathBuf {
        self.state.join("model-server").join("key")
    }

    /// Returns the folder of the server's socket.
    pub(super) fn socket_folder(&self) -> PathBuf {
        let usual = self.state.join("model-server").join("run");
        if usual.join(SOCKET).as_os_str().len() <= LONGEST {
            return usual;
        }
        let runtime = env::var_os("XDG_RUNTIME_DIR")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute() && path.is_dir());
        let short = runtime
            .unwrap_or_else(env::temp_dir)
            .join(format!("podbay-{}", self.key()));
        if short.join(SOCKET).as_os_str().len() <= LONGEST {
            short
        } else {
            Path::new("/tmp").join(format!("podbay-{}", self.key()))
        }
    }

    /// Returns a short hash of the state folder: two users of one engine have a server each.
    pub(super) fn key(&self) -> String {
        let real = fs::canonicalize(&self.state).unwrap_or_else(|_| self.state.clone());
        atomic_file::hex(&atomic_file::sha256(real.as_os_str().as_bytes()))[..12].to_owned()
    }

    /// Returns uid and gid that the server runs as: those of the state folder's owner, but never
    /// root.
    pub(super) fn user(&self) -> Result<(u32, u32), Error> {
        make_private(&self.state)?;
        let facts = fs::metadata(&self.state).map_err(|source| Error::File {
            doing: "look at",
            path: self.state.clone(),
            source,
        })?;
        Ok(if facts.uid() == 0 {
            (NOBODY, NOBODY)
        } else {
            (facts.uid(), facts.gid())
        })
    }
}

/// Creates a folder that only the server's user can enter (and root, which may be the caller).
pub(super) fn make_for(path: &Path, (uid, gid): (u32, u32)) -> Result<(), Error> {
    make_private(path)?;
    let failed = |source| Error::File {
        doing: "prepare the folder",
        path: path.to_owned(),
        source,
    };
    let facts = fs::symlink_metadata(path).map_err(failed)?;
    let ours = [nix::unistd::geteuid().as_raw(), uid].contains(&facts.uid());
    // In a world-writable folder such as /tmp, another user may have created it first.
    if !facts.is_dir() || !ours {
        return Err(failed(std::io::Error::other("it belongs to another user")));
    }
    if (facts.uid(), facts.gid()) != (uid, gid) && nix::unistd::geteuid().is_root() {
        std::os::unix::fs::lchown(path, Some(uid), Some(gid)).map_err(failed)?;
    }
    if facts.mode() & 0o777 != 0o700 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(failed)?;
    }
    Ok(())
}

pub(super) fn make_private(path: &Path) -> Result<(), Error> {
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path);
    made.map_err(|source| Error::File {
        doing: "make the folder",
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sockets_path_is_never_too_long() {
        let short = Paths::new("/home/me/.local/state/podbay");
        assert_eq!(
            short.socket_folder(),
            Path::new("/home/me/.local/state/podbay/model-server/run")
        );
        let long = Paths::new(format!("/home/{}/state", "x".repeat(100)));
        assert!(long.socket_folder().join(SOCKET).as_os_str().len() <= LONGEST);
        assert_ne!(
            long.socket_folder(),
            Paths::new(format!("/home/{}/state", "y".repeat(100))).socket_folder()
        );
    }

    #[test]
    fn a_symlinked_folder_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path(), &link).expect("linked");
        let paths = Paths::new(folder.path());
        let user = paths.user().expect("an owner");
        let error = make_for(&link, user).expect_err("a link");
        assert!(error.to_string().contains("link"), "{error}");
        assert_ne!(user.0, 0);
        make_for(&folder.path().join("own"), user).expect("made");
    }
}
