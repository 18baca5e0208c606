//! Working directories of commands: the one a call names, else where the last command ended.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::PoisonError;

use super::beneath::open_anywhere;
use super::root::MOUNT;
use super::root::Root;
use super::root::fault;
use super::root::join;
use super::root::where_is;
use podbay_wire::BytesPath;
use podbay_wire::Fault;

/// Longest working directory that a command may report; the kernel takes no longer paths.
const MAX_PATH: usize = 4096;

#[derive(Debug)]
pub(super) struct Directories {
    root: Root,
    root_path: PathBuf,
    current: Mutex<PathBuf>,
}

/// An open working directory for a command.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) fd: OwnedFd,
    /// Why it is not the requested one.
    pub(super) note: Option<String>,
}

impl Directories {
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        Ok(Self {
            root: Root::open(root)?,
            root_path: root.to_owned(),
            current: Mutex::new(root.to_owned()),
        })
    }

    /// Opens a folder that a call names; the kernel keeps it below the workspace.
    pub(super) fn resolve(&self, path: &BytesPath) -> Result<Directory, Fault> {
        let known = self.as_known(path);
        match self.root.open_place(known.as_ref().unwrap_or(path)) {
            Ok(fd) => Ok(Directory { fd, note: None }),
            Err(Fault::Outside { .. }) => Err(Fault::Outside { path: path.clone() }),
            Err(fault) => Err(fault),
        }
    }

    /// Opens the folder where the last command ended, or the workspace where that is gone.
    pub(super) fn open_current(&self) -> Result<Directory, Fault> {
        let path = self.lock().clone();
        // Absolute, because commands may well work in /tmp; no magic links, because /proc/self is
        // the guest here.
        match open_anywhere(path.as_os_str().as_bytes()) {
            Ok(fd) => Ok(Directory { fd, note: None }),
            Err(errno) => {
                let gone = BytesPath::from(path);
                self.lock().clone_from(&self.root_path);
                let fd = self.open_root()?;
                let note = format!(
                    "the directory {gone} is no longer usable ({}); the command ran in {}",
                    errno.desc(),
                    self.root_text()
                );
                Ok(Directory {
                    fd,
                    note: Some(note),
                })
            }
        }
    }

    /// Opens the workspace itself.
    pub(super) fn open_root(&self) -> Result<OwnedFd, Fault> {
        self.root.open_place(&BytesPath::from_bytes(Vec::new()))
    }

    /// Stores the working directory that a command reports. It is trusted only as the next
    /// command's directory.
    pub(super) fn left_off(&self, reported: &[u8]) {
        let path = reported.strip_suffix(b"\n").unwrap_or(reported);
        if path.starts_with(b"/") && path.len() < MAX_PATH && !path.contains(&0) {
            BytesPath::from_bytes(path)
                .as_path()
                .clone_into(&mut self.lock());
        }
    }

    /// Changes the current directory of commands; returns its name.
    pub(super) fn go(&self, path: &BytesPath) -> Result<BytesPath, Fault> {
        let opened = self.resolve(path)?.fd;
        let real = where_is(&opened).map_err(|errno| fault(path, errno))?;
        // It must also exist under that name.
        open_anywhere(&real).map_err(|errno| fault(path, errno))?;
        self.left_off(&real);
        Ok(self.current())
    }

    /// Returns a path of the project as an absolute path in the sandbox.
    pub(super) fn absolute(&self, path: &BytesPath) -> Result<Vec<u8>, Fault> {
        let known = self.as_known(path);
        let relative = self.root.relative(known.as_ref().unwrap_or(path))?;
        Ok(join(
            self.root_path.as_os_str().as_bytes(),
            relative.as_bytes(),
        ))
    }

    /// Returns why a path of the project cannot be used, such as that it does not exist; `None`: it
    /// exists.
    pub(super) fn lacks(&self, path: &BytesPath) -> Option<Fault> {
        let known = self.as_known(path);
        self.root.look(known.as_ref().unwrap_or(path)).err()
    }

    /// Refuses a path of the project that is a link, or leads through one; it need not exist.
    pub(super) fn refuse_link(&self, path: &BytesPath) -> Result<(), Fault> {
        let known = self.as_known(path);
        let path = known.as_ref().unwrap_or(path);
        let failed = |error: std::io::Error| Fault::Io {
            doing: format!("look at {path}"),
            problem: error.to_string(),
        };
        match self.root.by_name().map_err(failed)?.look(path) {
            Err(refused @ Fault::Refused { .. }) => Err(refused),
            _ => Ok(()),
        }
    }

    /// Returns the parent folder of the workspace.
    pub(super) fn above(&self) -> Vec<u8> {
        self.root_path
            .parent()
            .map_or_else(Vec::new, |parent| parent.as_os_str().as_bytes().to_vec())
    }

    /// Returns the workspace, by the name that it was opened by.
    pub(super) fn top(&self) -> Vec<u8> {
        self.root_path.as_os_str().as_bytes().to_vec()
    }

    pub(super) fn current(&self) -> BytesPath {
        BytesPath::from(self.lock().as_path())
    }

    fn root_text(&self) -> String {
        BytesPath::from(self.root_path.as_path()).to_text()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, PathBuf> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rewrites a path with the workspace's real name to the name that the model knows.
    fn as_known(&self, path: &BytesPath) -> Option<BytesPath> {
        let rest = path
            .as_bytes()
            .strip_prefix(self.root_path.as_os_str().as_bytes())?;
        (rest.is_empty() || rest.starts_with(b"/"))
            .then(|| BytesPath::from_bytes([MOUNT.as_bytes(), rest].concat()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir()
                .join(format!("podbay-directory-{}-{name}", std::process::id()));
            fs::create_dir_all(path.join("src/deep")).expect("folders");
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn only_folders_below_the_workspace_are_opened() {
        let folder = Folder::new("below");
        std::os::unix::fs::symlink("/etc", folder.0.join("out")).expect("link");
        std::os::unix::fs::symlink("deep", folder.0.join("src/in")).expect("link");
        std::os::unix::fs::symlink("/workspace/src", folder.0.join("far")).expect("link");
        std::os::unix::fs::symlink("../far", folder.0.join("src/farther")).expect("link");
        std::os::unix::fs::symlink("/workspace/round", folder.0.join("round")).expect("link");
        std::os::unix::fs::symlink("/workspace/../etc", folder.0.join("sly")).expect("link");
        fs::write(folder.0.join("file"), "").expect("file");
        let directories = Directories::open(&folder.0).expect("opens");
        for good in [
            "",
            ".",
            "src",
            "src/in",
            "src/../src",
            "/workspace",
            "/workspace/",
            "/workspace//src",
            "far",
            "/workspace/far/deep",
            "src/farther/in",
        ] {
            directories.resolve(&good.into()).expect(good);
        }
        let inside = BytesPath::from(folder.0.join("src"));
        assert!(directories.resolve(&inside).is_ok());
        for bad in [
            "round",
            "/workspace/round/x",
            "sly",
            "far/../..",
            "..",
            "src/../..",
            "out",
            "/etc",
            "/workspacefoo",
            "/",
            "/workspace/../etc",
            "/proc/self/cwd",
        ] {
            let fault = directories.resolve(&bad.into()).expect_err(bad);
            assert!(matches!(fault, Fault::Outside { .. }), "{bad}: {fault}");
        }
        assert!(matches!(
            directories.resolve(&"none".into()),
            Err(Fault::NotFound { .. })
        ));
        assert!(matches!(
            directories.resolve(&"file".into()),
            Err(Fault::NotDirectory { .. })
        ));
    }

    #[test]
    fn a_directory_is_changed_to_by_any_name_and_never_outside() {
        let folder = Folder::new("go");
        std::os::unix::fs::symlink("src/deep", folder.0.join("short")).expect("link");
        std::os::unix::fs::symlink("/etc", folder.0.join("out")).expect("link");
        let directories = Directories::open(&folder.0).expect("opens");
        let deep = BytesPath::from(folder.0.join("src/deep"));
        for name in ["src/deep", "short", "/workspace/short", "src/../src/deep/."] {
            assert_eq!(directories.go(&name.into()), Ok(deep.clone()), "{name}");
        }
        for name in ["..", "/etc", "out", "none", "src\0x"] {
            assert!(directories.go(&name.into()).is_err(), "{name}");
            assert_eq!(directories.current(), deep, "{name}");
        }
        assert_eq!(
            directories.go(&".".into()),
            Ok(BytesPath::from(folder.0.as_path()))
        );
    }

    #[test]
    fn a_deleted_directory_falls_back_to_the_workspace() {
        let folder = Folder::new("gone");
        let directories = Directories::open(&folder.0).expect("opens");
        let lost = folder.0.join("lost");
        directories.left_off(format!("{}\n", lost.display()).as_bytes());
        let directory = directories.open_current().expect("falls back");
        assert!(directory.note.expect("says so").contains("lost"));
        assert_eq!(directories.current(), BytesPath::from(folder.0.as_path()));
    }

    #[test]
    fn a_reported_directory_must_be_absolute_and_without_magic_links() {
        let folder = Folder::new("magic");
        let directories = Directories::open(&folder.0).expect("opens");
        directories.left_off(b"relative\n");
        directories.left_off(b"");
        directories.left_off(b"/a\0b\n");
        assert_eq!(directories.current(), BytesPath::from(folder.0.as_path()));
        directories.left_off(b"/proc/self/cwd\n");
        assert!(
            directories
                .open_current()
                .expect("falls back")
                .note
                .is_some()
        );
    }
}
