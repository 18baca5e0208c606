//! The project's own folder stays open to whoever it belongs to.
//!
//! A command may close it, and then nobody can look at what was changed, take it over or take it
//! back: not the keepers, and no next box. What its owner could do with it at the start comes back
//! after each call.

use std::fs;
use std::fs::Permissions;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;

use nix::fcntl::OFlag;
use nix::fcntl::open;
use nix::sys::stat::Mode;
use nix::sys::stat::fstat;

#[derive(Debug)]
pub(super) struct OwnFolder {
    path: PathBuf,
    /// Looked at after each call, so without a path, which would be looked up in the image's file
    /// system first.
    opened: Option<OwnedFd>,
    /// The owner's bits of its mode at the start.
    owner: u32,
}

impl OwnFolder {
    pub(super) fn of(path: &Path) -> Self {
        let opened = open(
            path,
            OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC,
            Mode::empty(),
        )
        .ok();
        let owner = opened
            .as_ref()
            .and_then(mode)
            .map_or(0, |mode| mode & 0o700);
        Self {
            path: path.to_owned(),
            opened,
            owner,
        }
    }

    /// Gives the owner back what was taken away; says so if it was.
    pub(super) fn open_again(&self) -> Option<String> {
        let mode = self.opened.as_ref().and_then(mode)?;
        let open = mode | self.owner;
        if open == mode {
            return None;
        }
        // By its path: what may not be entered cannot be changed through a descriptor that was
        // opened for less. It is a mount point, so nothing takes its place.
        fs::set_permissions(&self.path, Permissions::from_mode(open)).ok()?;
        Some(format!(
            "the project's own folder was closed to its owner (mode {mode:04o}); it has mode {open:04o} now, or nobody could look at it"
        ))
    }
}

fn mode(folder: &OwnedFd) -> Option<u32> {
    Some(fstat(folder).ok()?.st_mode & 0o7777)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_its_owner_could_do_with_it_comes_back_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let set = |mode: u32| {
            fs::set_permissions(folder.path(), Permissions::from_mode(mode)).expect("ours");
        };
        let mode = || {
            fs::metadata(folder.path())
                .expect("there")
                .permissions()
                .mode()
                & 0o7777
        };
        set(0o755);
        let own = OwnFolder::of(folder.path());
        for (closed, open) in [(0, 0o700), (0o311, 0o711), (0o555, 0o755), (0o1077, 0o1777)] {
            set(closed);
            assert!(
                own.open_again()
                    .is_some_and(|said| said.contains(&format!("(mode {closed:04o})"))),
                "{closed:o}"
            );
            assert_eq!((mode(), own.open_again()), (open, None));
        }
        // The person wants it so.
        set(0o555);
        let own = OwnFolder::of(folder.path());
        set(0o500);
        assert_eq!(own.open_again(), None);
        set(0o700);
    }
}
