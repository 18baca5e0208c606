//! A project and a state folder for tests.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::thread;

use nix::unistd::Gid;
use nix::unistd::Uid;
use nix::unistd::setfsgid;
use nix::unistd::setfsuid;

use super::ObjectId;
use super::Origin;
use super::Project;
use super::Purpose;
use super::Request;
use super::Snapshot;
use super::StateFolder;
use super::Store;
use super::apply;
use super::snapshot;
use podbay_wire::keep::ApplyOutcome;
use podbay_wire::keep::LeftPath;
use podbay_wire::keep::NamedList;

pub(super) struct Scene {
    folder: PathBuf,
    /// Removes the folder when dropped.
    _owned: Option<tempfile::TempDir>,
}

impl Scene {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(folder.path().join("project")).expect("made");
        fs::create_dir(folder.path().join("state")).expect("made");
        Self {
            folder: folder.path().to_owned(),
            _owned: Some(folder),
        }
    }

    /// Opens the scene of another process.
    pub(super) fn of_another(folder: PathBuf) -> Self {
        Self {
            folder,
            _owned: None,
        }
    }

    pub(super) fn root(&self) -> PathBuf {
        self.folder.join("project")
    }

    pub(super) fn path(&self, path: impl AsRef<[u8]>) -> PathBuf {
        self.root().join(OsStr::from_bytes(path.as_ref()))
    }

    /// Writes a file, with its parent folders.
    pub(super) fn write(&self, path: impl AsRef<[u8]>, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, content).expect("written");
    }

    pub(super) fn make(&self, path: &str) {
        fs::create_dir_all(self.path(path)).expect("made");
    }

    pub(super) fn link(&self, target: &str, path: &str) {
        std::os::unix::fs::symlink(target, self.path(path)).expect("linked");
    }

    pub(super) fn mode(&self, path: &str, mode: u32) {
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(mode))
            .expect("its mode is set");
    }

    pub(super) fn remove(&self, path: &str) {
        let path = self.path(path);
        let is_folder = fs::symlink_metadata(&path).expect("it is there").is_dir();
        if is_folder {
            fs::remove_dir_all(path)
        } else {
            fs::remove_file(path)
        }
        .expect("removed");
    }

    pub(super) fn project(&self) -> Project {
        Project::open(&self.root()).expect("opens")
    }

    pub(super) fn state(&self) -> StateFolder {
        StateFolder::open(&self.folder.join("state")).expect("opens")
    }

    pub(super) fn store(&self) -> Store {
        Store::open(&self.state()).expect("opens")
    }

    pub(super) fn take(&self) -> Snapshot {
        snapshot::take(&self.project(), &self.state(), &mut self.store(), "cache").expect("taken")
    }

    /// Returns everything in the project, for comparisons.
    pub(super) fn all(&self) -> BTreeMap<PathBuf, String> {
        let mut all = BTreeMap::new();
        enter(&self.root(), &self.root(), &mut all);
        all
    }
}

fn enter(root: &Path, folder: &Path, all: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let metadata = fs::symlink_metadata(&path).expect("it is there");
        let mode = metadata.mode() & 0o7777;
        let told = if metadata.is_dir() {
            enter(root, &path, all);
            format!("folder {mode:o}")
        } else if metadata.is_symlink() {
            format!("link to {:?}", fs::read_link(&path).expect("a link"))
        } else if metadata.is_file() {
            let bytes = fs::read(&path).expect("a file");
            // Too long to read in a failed assertion.
            let is_large = bytes.len() > 1 << 20;
            let told = if is_large {
                ObjectId::of(&bytes).to_string()
            } else {
                format!("{:?}", OsStr::from_bytes(&bytes))
            };
            format!("file {mode:o} {told}")
        } else {
            "something else".to_owned()
        };
        all.insert(
            path.strip_prefix(root).expect("it lies below").to_owned(),
            told,
        );
    }
}

impl Scene {
    pub(super) fn request(from: ObjectId, to: ObjectId) -> Request<'static> {
        let purpose = Purpose::Review {
            name: "test".to_owned(),
        };
        Request {
            from,
            to,
            only: Vec::new(),
            merge: false,
            origin: Origin::Before,
            purpose,
            copy: None,
        }
    }

    /// Changes the project from one state to another.
    pub(super) fn apply(&self, from: ObjectId, to: ObjectId) -> ApplyOutcome {
        self.ask(&Self::request(from, to))
    }

    pub(super) fn ask(&self, request: &Request<'_>) -> ApplyOutcome {
        apply::apply(
            &self.project(),
            &self.state(),
            &mut self.store(),
            request,
            |_, _, _| Ok(()),
        )
        .expect("applied")
    }

    /// Finishes an interrupted application.
    pub(super) fn resume(&self) -> Option<ApplyOutcome> {
        let resumed = apply::resume(
            (&self.project(), None),
            &self.state(),
            &self.store(),
            |_, _| Ok(()),
        )
        .expect("resumed");
        resumed.map(|(_, applied)| applied)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Runs something as a user whom file modes restrict, which root is not.
pub(super) fn as_user<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    let act = || {
        // Only for this thread, and those that it starts.
        if Uid::effective().is_root() {
            setfsgid(Gid::from_raw(1000));
            setfsuid(Uid::from_raw(1000));
        }
        act()
    };
    let done = thread::scope(|scope| scope.spawn(act).join());
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Returns the paths that were left, with the reasons.
pub(super) fn left(left: &NamedList<LeftPath>) -> Vec<String> {
    left.first
        .iter()
        .map(|left| format!("{} {}", left.path, left.reason))
        .collect()
}

/// A small mounted file system; `None`, which is printed, where this process may not mount.
pub(super) struct SmallDisk(PathBuf);

impl SmallDisk {
    #[expect(clippy::print_stderr, reason = "a test does not skip in silence")]
    pub(super) fn mount(folder: PathBuf, size: &str) -> Option<Self> {
        let options = format!("size={size}");
        let flags = nix::mount::MsFlags::empty();
        match nix::mount::mount(
            Some("tmpfs"),
            &folder,
            Some("tmpfs"),
            flags,
            Some(options.as_str()),
        ) {
            Ok(()) => Some(Self(folder)),
            Err(errno) => {
                eprintln!(
                    "not tried, since no file system can be mounted here: {}",
                    errno.desc()
                );
                None
            }
        }
    }
}

impl SmallDisk {
    /// Makes it larger, without a change to any file.
    pub(super) fn grow(&self, size: &str) {
        let options = format!("size={size}");
        let flags = nix::mount::MsFlags::MS_REMOUNT;
        nix::mount::mount(
            None::<&str>,
            &self.0,
            None::<&str>,
            flags,
            Some(options.as_str()),
        )
        .expect("it grows");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = nix::mount::umount2(&self.0, nix::mount::MntFlags::MNT_DETACH);
    }
}
