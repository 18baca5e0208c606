//! Opens that the supervisor executes for a process, so that they open the file that was inspected.
//!
//! The kernel would resolve the path again, and another thread may have changed it meanwhile. An
//! existing file is opened through the descriptor that holds it; a missing one is created in the
//! folder that is held. The supervisor has the same user and the same sandbox as the command.

use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::fcntl::AT_FDCWD;
use nix::fcntl::OFlag;
use nix::fcntl::openat;
use nix::sys::stat::Mode;
use nix::sys::stat::SFlag;

use super::process;
use super::resolved_path::HeldEntry;
use super::resolved_path::ResolvedPath;
use super::resolved_path::openable;
use super::write_calls::Opening;

/// Which side opens a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opener {
    Supervisor,
    /// The kernel, for the process itself: a device may depend on the process that opens it, and
    /// opening a pipe may block.
    Kernel,
    /// The open fails with this error.
    Refused(Errno),
}

/// Returns which side opens a file for a process.
pub(super) fn opener(process: i32, found: &ResolvedPath) -> Opener {
    match found.there.as_ref().map(|there| (there.kind(), there)) {
        Some((SFlag::S_IFCHR, there)) => match (major(there), minor(there)) {
            // `null`, `zero`, `full`, `random`, `urandom`; new and existing pseudo-terminals.
            (1, 3 | 5 | 7 | 8 | 9) | (5, 2) | (136..=143, _) => Opener::Supervisor,
            // `/dev/tty`: the controlling terminal of the process.
            (5, 0) if !process::has_terminal(process) => Opener::Refused(Errno::ENXIO),
            _ => Opener::Kernel,
        },
        Some((SFlag::S_IFBLK | SFlag::S_IFIFO, _)) => Opener::Kernel,
        _ => Opener::Supervisor,
    }
}

fn major(there: &HeldEntry) -> u64 {
    u64::from(libc::major(there.stat.st_rdev))
}

fn minor(there: &HeldEntry) -> u64 {
    u64::from(libc::minor(there.stat.st_rdev))
}

/// Opens a resolved path as a process asked; `umask` is removed from the mode of a new file.
pub(super) fn open(found: &ResolvedPath, opening: Opening, umask: u32) -> Result<OwnedFd, Errno> {
    let flags = OFlag::from_bits_retain(opening.flags);
    // A terminal opened here must not become our controlling terminal.
    let here = OFlag::O_CLOEXEC | OFlag::O_NOCTTY;
    let (creates, exclusive) = (
        flags.contains(OFlag::O_CREAT),
        flags.contains(OFlag::O_EXCL),
    );
    let mode = Mode::from_bits_truncate(opening.mode & !umask);
    match (&found.there, &found.within) {
        (None, Some(_)) if creates && found.is_folder_path => Err(Errno::EISDIR),
        (None, Some((folder, name))) if creates => openat(
            folder,
            name.as_c_str(),
            flags | here | OFlag::O_NOFOLLOW,
            mode,
        ),
        (None, _) => Err(Errno::ENOENT),
        (Some(there), _) => {
            if creates && exclusive {
                return Err(Errno::EEXIST);
            }
            if there.kind() == SFlag::S_IFLNK {
                return Err(Errno::ELOOP);
            }
            if creates && there.is_folder() {
                return Err(Errno::EISDIR);
            }
            // The path in `/proc/self/fd` is itself a link, which the kernel must follow.
            let flags = flags.difference(OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW);
            openat(AT_FDCWD, openable(&there.fd).as_str(), flags | here, mode)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::fs;
    use std::fs::File;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::super::resolved_path::find;
    use super::super::write_calls::PathArgument;
    use super::*;

    fn found(path: &Path, follow: bool) -> ResolvedPath {
        let own = nix::unistd::gettid().as_raw();
        let path = CString::new(path.to_str().expect("text")).expect("no zero byte");
        let at = PathArgument::Path {
            folder: libc::AT_FDCWD,
            pointer: path.as_ptr() as u64,
            empty_is_folder: false,
        };
        find(own, own, at, follow).expect("leads somewhere")
    }

    fn opened(found: &ResolvedPath, flags: i32) -> Result<OwnedFd, Errno> {
        open(found, Opening { flags, mode: 0o666 }, 0o027)
    }

    #[test]
    fn the_inspected_file_is_opened_though_its_path_has_changed() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("seen"), "old").expect("written");
        fs::write(at("other"), "kept").expect("written");
        let seen = found(&at("seen"), true);
        fs::rename(at("seen"), at("moved")).expect("moved");
        symlink("other", at("seen")).expect("linked");
        let mut file = File::from(
            opened(&seen, libc::O_WRONLY | libc::O_TRUNC | libc::O_CREAT).expect("opened"),
        );
        file.write_all(b"new").expect("written");
        assert_eq!(
            (
                fs::read(at("moved")).expect("there"),
                fs::read(at("other")).expect("there")
            ),
            (b"new".to_vec(), b"kept".to_vec())
        );
        // A link that appears at a missing name is not followed either.
        let seen = found(&at("fresh"), true);
        symlink("other", at("fresh")).expect("linked");
        assert_eq!(
            opened(&seen, libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC).err(),
            Some(Errno::ELOOP)
        );
        assert_eq!(fs::read(at("other")).expect("there"), b"kept");
    }

    #[test]
    fn an_emulated_open_behaves_as_the_kernels_open() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "text").expect("written");
        symlink("file", at("link")).expect("linked");
        let create = libc::O_WRONLY | libc::O_CREAT;
        drop(opened(&found(&at("new"), true), create).expect("made"));
        let mode = fs::metadata(at("new")).expect("made").permissions().mode() & 0o7777;
        // What this process's own umask removes does not matter here.
        assert_eq!(mode & !0o640, 0, "{mode:o}");
        for (name, follow, flags, expected) in [
            ("none", true, libc::O_WRONLY, Errno::ENOENT),
            ("none/", true, create, Errno::EISDIR),
            ("file", false, create | libc::O_EXCL, Errno::EEXIST),
            ("link", false, create | libc::O_EXCL, Errno::EEXIST),
            (
                "link",
                false,
                libc::O_WRONLY | libc::O_NOFOLLOW,
                Errno::ELOOP,
            ),
            ("", true, libc::O_RDONLY | libc::O_CREAT, Errno::EISDIR),
            ("", true, libc::O_RDWR, Errno::EISDIR),
            (
                "file",
                true,
                libc::O_WRONLY | libc::O_DIRECTORY,
                Errno::ENOTDIR,
            ),
        ] {
            assert_eq!(
                opened(&found(&at(name), follow), flags).err(),
                Some(expected),
                "{name} {flags:o}"
            );
        }
        let unnamed = opened(&found(folder.path(), true), libc::O_TMPFILE | libc::O_RDWR);
        assert!(
            unnamed.is_ok() || unnamed.is_err_and(|errno| errno == Errno::EOPNOTSUPP),
            "not every file system has them"
        );
        assert!(opened(&found(&at("link"), true), libc::O_RDONLY | libc::O_CREAT).is_ok());
    }

    #[test]
    fn pipes_and_devices_that_depend_on_the_opener_are_left_to_the_kernel() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, Mode::S_IRWXU).expect("made");
        let by = |path: &Path| opener(std::process::id() as i32, &found(path, true));
        assert_eq!(
            (by(&pipe), by(folder.path()), by(Path::new("/dev/null"))),
            (Opener::Kernel, Opener::Supervisor, Opener::Supervisor)
        );
        let terminal = opener(i32::MAX, &found(Path::new("/dev/tty"), true));
        assert_eq!(
            terminal,
            Opener::Refused(Errno::ENXIO),
            "there is no such process"
        );
    }
}
