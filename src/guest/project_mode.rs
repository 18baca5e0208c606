//! Restores the owner's access to the project's folder.
//!
//! A command may remove it, and then neither the keepers nor the next sandbox can inspect, apply or
//! undo changes. The owner's permissions from the start are restored after each call.

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
pub(super) struct ProjectMode {
    path: PathBuf,
    /// Checked after each call, so without a path, which would first be looked up in the image's
    /// file system.
    opened: Option<OwnedFd>,
    /// The owner's bits of its mode at the start.
    owner: u32,
}

impl ProjectMode {
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

    /// Restores the owner's permissions; returns a note if they were changed.
    pub(super) fn restore(&self) -> Option<String> {
        let mode = self.opened.as_ref().and_then(mode)?;
        let open = mode | self.owner;
        if open == mode {
            return None;
        }
        // By its path: a folder without permissions cannot be changed through a descriptor opened
        // for less. It is a mount point, so nothing replaces it.
        fs::set_permissions(&self.path, Permissions::from_mode(open)).ok()?;
        Some(format!(
            "the owner's access to the project's folder was removed (mode {mode:04o}); mode {open:04o} was restored, or it could not be read any more"
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
    fn only_the_owners_original_permissions_are_restored() {
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
        let own = ProjectMode::of(folder.path());
        for (closed, open) in [(0, 0o700), (0o311, 0o711), (0o555, 0o755), (0o1077, 0o1777)] {
            set(closed);
            assert!(
                own.restore()
                    .is_some_and(|said| said.contains(&format!("(mode {closed:04o})"))),
                "{closed:o}"
            );
            assert_eq!((mode(), own.restore()), (open, None));
        }
        // The user wants it so.
        set(0o555);
        let own = ProjectMode::of(folder.path());
        set(0o500);
        assert_eq!(own.restore(), None);
        set(0o700);
    }
}
