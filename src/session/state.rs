use std::ffi::OsString;
use std::fs;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;

use podbay_event::SessionId;

use super::Error;

/// The folder outside of every project where Podbay keeps what must last; all of it is the owner's
/// alone.
#[derive(Clone, Debug)]
pub struct State {
    root: PathBuf,
}

impl State {
    /// Its parts, each a folder of the same owner.
    pub const FOLDERS: [&str; 11] = [
        "sessions",
        "answers",
        "aside",
        "artifacts",
        "covers",
        "engines",
        "images",
        "locks",
        "models",
        "run",
        "trust",
    ];

    /// Finds the folder by the environment and opens it.
    ///
    /// `PODBAY_HOME`, else `$XDG_STATE_HOME/podbay`, else `~/.local/state/podbay`. `HOME` is only
    /// ever read from the environment: a static binary must not ask the system's user database.
    pub fn from_env(var: impl Fn(&str) -> Option<OsString>) -> Result<Self, Error> {
        Self::open(&Self::find(var)?)
    }

    /// Finds the folder by the environment and leaves it as it is; it may not be there.
    pub fn find(var: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, Error> {
        let var = |name: &str| {
            var(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let root = if let Some(home) = var("PODBAY_HOME") {
            home
        } else if let Some(state) = var("XDG_STATE_HOME").filter(|path| path.is_absolute()) {
            state.join("podbay")
        } else {
            var("HOME")
                .ok_or(Error::NoHome)?
                .join(".local/state/podbay")
        };
        std::path::absolute(&root).map_err(Error::io("find", &root))
    }

    /// Opens the folder, making it and its parts where they are missing.
    ///
    /// A folder that is a link, or another user's, is refused: what is written there would be
    /// readable, or writable, by whoever put it there.
    pub fn open(root: &Path) -> Result<Self, Error> {
        let root = std::path::absolute(root).map_err(Error::io("find", root))?;
        own(&root)?;
        for name in Self::FOLDERS {
            own(&root.join(name))?;
        }
        Ok(Self { root })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn sessions(&self) -> PathBuf {
        self.root.join("sessions")
    }

    pub fn artifacts(&self, session: &SessionId) -> PathBuf {
        self.root.join("artifacts").join(session.as_str())
    }

    pub fn locks(&self) -> PathBuf {
        self.root.join("locks")
    }

    pub fn models(&self) -> PathBuf {
        self.root.join("models")
    }

    /// Of which engines it was said that they have holes.
    pub fn engines(&self) -> PathBuf {
        self.root.join("engines")
    }

    /// Which images were looked at and found good.
    pub fn images(&self) -> PathBuf {
        self.root.join("images")
    }

    /// Which settings of projects were trusted.
    pub fn trust(&self) -> PathBuf {
        self.root.join("trust")
    }

    /// What was allowed for good in projects.
    pub fn answers(&self) -> PathBuf {
        self.root.join("answers")
    }

    /// Repositories that sessions made, which are not to be in their projects.
    pub fn aside(&self) -> PathBuf {
        self.root.join("aside")
    }

    /// What the sandboxes of projects covered last.
    pub fn covers(&self) -> PathBuf {
        self.root.join("covers")
    }

    /// Sockets and other things that end with a run.
    pub fn run(&self) -> PathBuf {
        self.root.join("run")
    }

    pub fn events(&self) -> PathBuf {
        self.root.join("events.jsonl")
    }
}

/// Makes a folder of mode 0700, or checks that the one there is ours.
pub(super) fn own(path: &Path) -> Result<(), Error> {
    match DirBuilder::new().mode(0o700).recursive(true).create(path) {
        // A dangling link and a file come as `AlreadyExists`; what they are is said below.
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(Error::io("make the folder", path)(error)),
    }
    let unsafe_because = |what: &str| Error::Unsafe {
        path: path.to_owned(),
        what: what.to_owned(),
    };
    let metadata = fs::symlink_metadata(path).map_err(Error::io("look at", path))?;
    if metadata.is_symlink() {
        return Err(unsafe_because("a link"));
    }
    if !metadata.is_dir() {
        return Err(unsafe_because("no folder"));
    }
    let me = nix::unistd::geteuid().as_raw();
    if metadata.uid() != me {
        return Err(unsafe_because(&format!(
            "owned by uid {}, and you are uid {me}",
            metadata.uid()
        )));
    }
    if metadata.mode() & 0o777 != 0o700 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))
            .map_err(Error::io("protect", path))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(vars: &[(&str, &Path)], expected: &Path) {
        let state = State::from_env(|name| {
            vars.iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value.as_os_str().to_owned())
        });
        assert_eq!(state.expect("opens").root(), expected);
    }

    #[test]
    fn the_folder_is_found_by_the_environment_alone() {
        let temp = tempfile::tempdir().expect("a folder");
        let (a, b, c) = (
            temp.path().join("a"),
            temp.path().join("b"),
            temp.path().join("c"),
        );
        check(
            &[("PODBAY_HOME", &a), ("XDG_STATE_HOME", &b), ("HOME", &c)],
            &a,
        );
        check(
            &[
                ("PODBAY_HOME", Path::new("")),
                ("XDG_STATE_HOME", &b),
                ("HOME", &c),
            ],
            &b.join("podbay"),
        );
        check(
            &[("XDG_STATE_HOME", Path::new("relative")), ("HOME", &c)],
            &c.join(".local/state/podbay"),
        );
        assert!(matches!(State::from_env(|_| None), Err(Error::NoHome)));
    }
}
