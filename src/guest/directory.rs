//! Where commands run: below the workspace where a call says so, else where the last command left off.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::PoisonError;

use nix::errno::Errno;
use nix::fcntl::AT_FDCWD;
use nix::fcntl::OFlag;
use nix::fcntl::OpenHow;
use nix::fcntl::ResolveFlag;
use nix::fcntl::open;
use nix::fcntl::openat2;
use nix::sys::stat::Mode;

use crate::wire::BytesPath;
use crate::wire::Fault;

/// What the project's folder is called in a box; accepted under this name wherever it really is.
const WORKSPACE: &[u8] = b"/workspace";

/// Longest path that a command may leave behind; the kernel takes no longer ones.
const MAX_PATH: usize = 4096;

/// The kernel asks to try again when something on the path is renamed meanwhile; a command could keep that up for ever.
const MAX_TRIES: usize = 32;

#[derive(Debug)]
pub(super) struct Directories {
    root: OwnedFd,
    root_path: PathBuf,
    current: Mutex<PathBuf>,
}

/// An opened folder to start a command in.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) fd: OwnedFd,
    /// Why it is not the one that was meant.
    pub(super) note: Option<String>,
}

impl Directories {
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        let fd = open(root, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
        Ok(Self { root: fd, root_path: root.to_owned(), current: Mutex::new(root.to_owned()) })
    }

    /// Opens a folder that a call names; the kernel keeps it below the workspace.
    pub(super) fn resolve(&self, path: &BytesPath) -> Result<Directory, Fault> {
        let inner = self.relative(path.as_bytes()).ok_or_else(|| Fault::Outside { path: path.clone() })?;
        let resolve = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS;
        match open_folder(&self.root, inner, resolve) {
            Ok(fd) => Ok(Directory { fd, note: None }),
            Err(errno) => Err(fault(path, errno)),
        }
    }

    /// Opens the folder where the last command left off, or the workspace where that is gone.
    pub(super) fn open_current(&self) -> Result<Directory, Fault> {
        let path = self.lock().clone();
        // Absolute, because commands may well work in /tmp; no magic links, because /proc/self is the guest here.
        match open_folder(AT_FDCWD, path.as_os_str().as_bytes(), ResolveFlag::RESOLVE_NO_MAGICLINKS) {
            Ok(fd) => Ok(Directory { fd, note: None }),
            Err(errno) => {
                let gone = BytesPath::from(path);
                self.lock().clone_from(&self.root_path);
                let fd = self.open_root()?;
                let note =
                    format!("the directory {gone} cannot be used any more ({}); the command ran in {}", errno.desc(), self.root_text());
                Ok(Directory { fd, note: Some(note) })
            }
        }
    }

    /// Opens the workspace itself.
    pub(super) fn open_root(&self) -> Result<OwnedFd, Fault> {
        self.root.try_clone().map_err(|error| Fault::Io { doing: "open the workspace".to_owned(), problem: error.to_string() })
    }

    /// Notes where a command left off, as it says itself. That is only believed as far as the next command goes.
    pub(super) fn left_off(&self, reported: &[u8]) {
        let path = reported.strip_suffix(b"\n").unwrap_or(reported);
        if path.starts_with(b"/") && path.len() < MAX_PATH && !path.contains(&0) {
            BytesPath::from_bytes(path).as_path().clone_into(&mut self.lock());
        }
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

    /// Returns what the path is below the workspace. This only rewrites the name; that it stays below is the kernel's decision.
    fn relative<'path>(&self, path: &'path [u8]) -> Option<&'path [u8]> {
        if !path.starts_with(b"/") {
            return Some(if path.is_empty() { b"." } else { path });
        }
        [self.root_path.as_os_str().as_bytes(), WORKSPACE].into_iter().find_map(|root| match path.strip_prefix(root)? {
            [] => Some(&b"."[..]),
            [b'/', ..] => {
                let start = path[root.len()..].iter().position(|&byte| byte != b'/');
                Some(start.map_or(&b"."[..], |start| &path[root.len() + start..]))
            }
            _ => None,
        })
    }
}

fn open_folder(base: impl std::os::fd::AsFd, path: &[u8], resolve: ResolveFlag) -> Result<OwnedFd, Errno> {
    let how = OpenHow::new().flags(OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC).resolve(resolve);
    for _ in 0..MAX_TRIES {
        match openat2(&base, path, how) {
            Err(Errno::EAGAIN) => {}
            result => return result,
        }
    }
    Err(Errno::EAGAIN)
}

fn fault(path: &BytesPath, errno: Errno) -> Fault {
    let path = path.clone();
    match errno {
        Errno::EXDEV | Errno::ELOOP => Fault::Outside { path },
        Errno::ENOENT => Fault::NotFound { path, similar: Vec::new(), beside: Vec::new() },
        Errno::ENOTDIR => Fault::NotDirectory { path },
        Errno::EACCES | Errno::EPERM => Fault::PermissionDenied { path },
        Errno::EAGAIN => Fault::Changed { path },
        other => Fault::Io { doing: format!("open the directory {path}"), problem: other.desc().to_owned() },
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("podbay-directory-{}-{name}", std::process::id()));
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
    fn only_what_lies_below_the_workspace_is_opened() {
        let folder = Folder::new("below");
        std::os::unix::fs::symlink("/etc", folder.0.join("out")).expect("link");
        std::os::unix::fs::symlink("deep", folder.0.join("src/in")).expect("link");
        fs::write(folder.0.join("file"), "").expect("file");
        let directories = Directories::open(&folder.0).expect("opens");
        for good in ["", ".", "src", "src/in", "src/../src", "/workspace", "/workspace/", "/workspace//src"] {
            directories.resolve(&good.into()).expect(good);
        }
        let inside = BytesPath::from(folder.0.join("src"));
        assert!(directories.resolve(&inside).is_ok());
        for bad in ["..", "src/../..", "out", "/etc", "/workspacefoo", "/", "/workspace/../etc", "/proc/self/cwd"] {
            let fault = directories.resolve(&bad.into()).expect_err(bad);
            assert!(matches!(fault, Fault::Outside { .. }), "{bad}: {fault}");
        }
        assert!(matches!(directories.resolve(&"none".into()), Err(Fault::NotFound { .. })));
        assert!(matches!(directories.resolve(&"file".into()), Err(Fault::NotDirectory { .. })));
    }

    #[test]
    fn a_directory_that_is_gone_falls_back_to_the_workspace() {
        let folder = Folder::new("gone");
        let directories = Directories::open(&folder.0).expect("opens");
        let lost = folder.0.join("lost");
        directories.left_off(format!("{}\n", lost.display()).as_bytes());
        let directory = directories.open_current().expect("falls back");
        assert!(directory.note.expect("says so").contains("lost"));
        assert_eq!(directories.current(), BytesPath::from(folder.0.as_path()));
    }

    #[test]
    fn what_a_command_reports_must_be_an_absolute_path_without_magic() {
        let folder = Folder::new("magic");
        let directories = Directories::open(&folder.0).expect("opens");
        directories.left_off(b"relative\n");
        directories.left_off(b"");
        directories.left_off(b"/a\0b\n");
        assert_eq!(directories.current(), BytesPath::from(folder.0.as_path()));
        directories.left_off(b"/proc/self/cwd\n");
        assert!(directories.open_current().expect("falls back").note.is_some());
    }
}
