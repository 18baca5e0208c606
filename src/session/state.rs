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

/// The state folder, outside of every project; all of it belongs to the user alone.
#[derive(Clone, Debug)]
pub struct State {
    root: PathBuf,
}

impl State {
    /// Its subfolders.
    pub const FOLDERS: [&str; 17] = [
        "sessions",
        "answers",
        "aside",
        "artifacts",
        "covers",
        "documents",
        "engines",
        "images",
        "installs",
        "jobs",
        "joins",
        "locks",
        "mcp",
        "memories",
        "models",
        "run",
        "trust",
    ];

    /// Finds the folder by environment variables and opens it.
    ///
    /// `PODBAY_HOME`, else `$XDG_STATE_HOME/podbay`, else `~/.local/state/podbay`. `HOME` is only
    /// read from the environment: a static binary must not query the user database.
    pub fn from_env(var: impl Fn(&str) -> Option<OsString>) -> Result<Self, Error> {
        Self::open(&Self::find(var)?)
    }

    /// Finds the folder by environment variables without creating it.
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

    /// Opens the folder, creating it and its subfolders where they are missing.
    ///
    /// A symlink, or another user's folder, is refused: its owner could read or change what is
    /// written there.
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

    /// Engines about whose known vulnerabilities the user was warned.
    pub fn engines(&self) -> PathBuf {
        self.root.join("engines")
    }

    /// Images that were checked.
    pub fn images(&self) -> PathBuf {
        self.root.join("images")
    }

    /// What installations of each project left in its caches.
    pub fn installs(&self) -> PathBuf {
        self.root.join("installs")
    }

    /// Commands that stay in sandboxes of `podbay up`.
    pub fn jobs(&self) -> PathBuf {
        self.root.join("jobs")
    }

    /// Sockets of controllers that join the sandboxes of `podbay up`.
    pub fn joins(&self) -> PathBuf {
        self.root.join("joins")
    }

    /// Project settings that the user trusts.
    pub fn trust(&self) -> PathBuf {
        self.root.join("trust")
    }

    /// Files of projects that name MCP servers, as the user enabled them.
    pub fn mcp(&self) -> PathBuf {
        self.root.join("mcp")
    }

    /// Notes of sessions for later ones, of each project and global ones.
    pub fn memories(&self) -> PathBuf {
        self.root.join("memories")
    }

    /// What is known of projects.
    pub fn documents(&self) -> PathBuf {
        self.root.join("documents")
    }

    /// Answers stored for projects.
    pub fn answers(&self) -> PathBuf {
        self.root.join("answers")
    }

    /// Repositories that sessions created, which are moved out of their projects.
    pub fn aside(&self) -> PathBuf {
        self.root.join("aside")
    }

    /// The files that were masked in each project's last sandbox.
    pub fn covers(&self) -> PathBuf {
        self.root.join("covers")
    }

    /// Sockets and other files that are removed at the end of a run.
    pub fn run(&self) -> PathBuf {
        self.root.join("run")
    }

    pub fn events(&self) -> PathBuf {
        self.root.join("events.jsonl")
    }

    pub fn metrics(&self) -> PathBuf {
        self.root.join("metrics.jsonl")
    }
}

/// Creates a folder of mode 0700, or checks that the existing one is ours.
pub(super) fn own(path: &Path) -> Result<(), Error> {
    match DirBuilder::new().mode(0o700).recursive(true).create(path) {
        // A dangling symlink and a file give `AlreadyExists`; the check below says what they are.
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
    fn the_state_folder_is_found_by_environment_variables_alone() {
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
