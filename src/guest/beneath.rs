use std::io;
use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::fcntl::AT_FDCWD;
use nix::fcntl::AtFlags;
use nix::fcntl::OFlag;
use nix::fcntl::OpenHow;
use nix::fcntl::ResolveFlag;
use nix::fcntl::openat;
use nix::fcntl::openat2;
use nix::sys::stat::Mode;
use nix::sys::stat::SFlag;
use nix::sys::stat::fstatat;

/// How often a resolution that raced with a rename is retried.
const ATTEMPTS: u32 = 64;

/// What happens at a symbolic link on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Links {
    /// Followed, as long as it stays beneath.
    Follow,
    /// `ELOOP`, anywhere in the path.
    Refuse,
}

/// A directory beneath which every path opened through it stays.
///
/// The kernel resolves every path (`openat2` with `RESOLVE_BENEATH`), so a link or a `..` that
/// leads out is `EXDEV`, even when folders and links are exchanged meanwhile. No path is ever
/// judged by its text.
#[derive(Debug)]
pub(crate) struct Beneath {
    fd: OwnedFd,
    /// Kernels before 5.6 and some seccomp filters do not know `openat2`.
    has_openat2: bool,
    /// Whether every link is refused, whatever a call asks for.
    refuses_links: bool,
}

impl Beneath {
    pub(crate) fn new(fd: OwnedFd) -> Self {
        let probe = openat2(&fd, ".", how(OFlag::O_PATH, Links::Follow));
        let has_openat2 = !matches!(probe, Err(Errno::ENOSYS | Errno::EPERM));
        Self {
            fd,
            has_openat2,
            refuses_links: false,
        }
    }

    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            fd: self.fd.try_clone()?,
            has_openat2: self.has_openat2,
            refuses_links: self.refuses_links,
        })
    }

    /// Returns the same folder, with no link followed in it.
    pub(crate) fn without_links(&self) -> io::Result<Self> {
        Ok(Self {
            fd: self.fd.try_clone()?,
            has_openat2: self.has_openat2,
            refuses_links: true,
        })
    }

    pub(crate) fn refuses_links(&self) -> bool {
        self.refuses_links
    }

    /// Returns the same folder, with links followed as calls ask for.
    pub(crate) fn with_links(&self) -> io::Result<Self> {
        Ok(Self {
            fd: self.fd.try_clone()?,
            has_openat2: self.has_openat2,
            refuses_links: false,
        })
    }

    /// Opens `path` for reading, writing or walking; it never blocks and never takes a controlling
    /// terminal.
    pub(crate) fn open(&self, path: &[u8], flags: OFlag, links: Links) -> Result<OwnedFd, Errno> {
        let path = if path.is_empty() {
            b".".as_slice()
        } else {
            path
        };
        let links = if self.refuses_links {
            Links::Refuse
        } else {
            links
        };
        let flags = flags | OFlag::O_CLOEXEC;
        // With O_PATH the kernel accepts few other flags.
        let flags = if flags.contains(OFlag::O_PATH) {
            flags
        } else {
            flags | OFlag::O_NONBLOCK | OFlag::O_NOCTTY
        };
        if self.has_openat2 {
            resolve(&self.fd, path, how(flags, links))
        } else {
            step(self.fd.as_fd(), path, flags)
        }
    }

    /// Returns the same settings for a folder that was opened through it.
    pub(crate) fn same(&self, fd: OwnedFd) -> Self {
        Self {
            fd,
            has_openat2: self.has_openat2,
            refuses_links: self.refuses_links,
        }
    }

    /// Opens a folder as a base of its own.
    pub(crate) fn descend(&self, path: &[u8]) -> Result<Self, Errno> {
        Ok(self.same(self.open(path, OFlag::O_RDONLY | OFlag::O_DIRECTORY, Links::Follow)?))
    }
}

/// Opens a folder anywhere in the sandbox by its absolute path, through no magic link: `/proc/self`
/// is the guest here.
pub(crate) fn open_anywhere(path: &[u8]) -> Result<OwnedFd, Errno> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_MAGICLINKS);
    resolve(AT_FDCWD, path, how)
}

fn resolve(base: impl AsFd, path: &[u8], how: OpenHow) -> Result<OwnedFd, Errno> {
    for _ in 0..ATTEMPTS {
        match openat2(&base, path, how) {
            // The kernel says so when something on the way was renamed meanwhile and it cannot
            // vouch for "..".
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            other => return other,
        }
    }
    Err(Errno::EAGAIN)
}

impl AsFd for Beneath {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn how(flags: OFlag, links: Links) -> OpenHow {
    let resolve = match links {
        Links::Follow => ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS,
        Links::Refuse => {
            ResolveFlag::RESOLVE_BENEATH
                | ResolveFlag::RESOLVE_NO_MAGICLINKS
                | ResolveFlag::RESOLVE_NO_SYMLINKS
        }
    };
    OpenHow::new().flags(flags).resolve(resolve)
}

/// Opens `path` component by component, where the kernel cannot do it in one call.
///
/// Links are refused altogether: following them would mean judging their text. `..` returns to a
/// folder that was opened on the way, never to its current parent.
fn step(base: BorrowedFd<'_>, path: &[u8], flags: OFlag) -> Result<OwnedFd, Errno> {
    if path.starts_with(b"/") {
        return Err(Errno::EXDEV);
    }
    let must_be_directory = path.ends_with(b"/");
    let mut way: Vec<OwnedFd> = Vec::new();
    let mut names = path
        .split(|byte| *byte == b'/')
        .filter(|name| !name.is_empty() && *name != b".")
        .peekable();
    while let Some(name) = names.next() {
        if name == b".." {
            way.pop().ok_or(Errno::EXDEV)?;
            continue;
        }
        let here = way.last().map_or(base, AsFd::as_fd);
        if names.peek().is_some() || must_be_directory {
            let folder = openat(
                here,
                name,
                OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC,
                Mode::empty(),
            );
            way.push(folder.map_err(|errno| link_or(here, name, errno))?);
        } else {
            return openat(here, name, flags | OFlag::O_NOFOLLOW, Mode::empty())
                .map_err(|errno| link_or(here, name, errno));
        }
    }
    let here = way.last().map_or(base, AsFd::as_fd);
    openat(here, ".", flags, Mode::empty())
}

/// Returns `ELOOP` for a link, whatever error the kernel gave.
fn link_or(folder: BorrowedFd<'_>, name: &[u8], errno: Errno) -> Errno {
    match fstatat(folder, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(stat)
            if SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits()) == SFlag::S_IFLNK =>
        {
            Errno::ELOOP
        }
        _ => errno,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use nix::sys::stat::fstat;

    use super::*;

    /// Opens a path in a folder with `in/file`, `in/to_file -> file`, `to_in -> in`, `up -> ..` and
    /// `out -> /`, by `openat2` and one component after the other.
    #[track_caller]
    fn check(path: &str, by_kernel: Result<(), Errno>, by_step: Result<(), Errno>) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(folder.path().join("in")).expect("made");
        fs::write(folder.path().join("in/file"), "x").expect("written");
        for (target, name) in [
            ("file", "in/to_file"),
            ("in", "to_in"),
            ("..", "up"),
            ("/", "out"),
        ] {
            symlink(target, folder.path().join(name)).expect("linked");
        }
        let open = || OwnedFd::from(fs::File::open(folder.path()).expect("opens"));
        let stepping = Beneath {
            fd: open(),
            has_openat2: false,
            refuses_links: false,
        };
        assert_eq!(
            stepping
                .open(path.as_bytes(), OFlag::O_RDONLY, Links::Follow)
                .map(drop),
            by_step,
            "step by step: {path}"
        );
        let kernel = Beneath::new(open());
        assert!(kernel.has_openat2, "this kernel is from before 2020");
        assert_eq!(
            kernel
                .open(path.as_bytes(), OFlag::O_RDONLY, Links::Follow)
                .map(drop),
            by_kernel,
            "by the kernel: {path}"
        );
    }

    #[test]
    fn nothing_outside_is_opened_with_or_without_openat2() {
        check("in/file", Ok(()), Ok(()));
        check("in/../in/./file", Ok(()), Ok(()));
        check("in/..", Ok(()), Ok(()));
        check("", Ok(()), Ok(()));
        check("in/file/", Err(Errno::ENOTDIR), Err(Errno::ENOTDIR));
        check("nothing", Err(Errno::ENOENT), Err(Errno::ENOENT));
        for path in ["..", "in/../..", "../etc", "/etc", "/"] {
            check(path, Err(Errno::EXDEV), Err(Errno::EXDEV));
        }
        for path in ["up", "up/etc", "out", "out/etc/passwd"] {
            check(path, Err(Errno::EXDEV), Err(Errno::ELOOP));
        }
    }

    #[test]
    fn links_inside_need_openat2() {
        check("in/to_file", Ok(()), Err(Errno::ELOOP));
        check("to_in/file", Ok(()), Err(Errno::ELOOP));
    }

    #[test]
    fn a_folder_without_links_follows_none() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(folder.path().join("in")).expect("made");
        symlink("in", folder.path().join("to_in")).expect("linked");
        let beneath = Beneath::new(OwnedFd::from(fs::File::open(folder.path()).expect("opens")));
        assert_eq!(
            beneath
                .open(
                    b"to_in",
                    OFlag::O_RDONLY | OFlag::O_DIRECTORY,
                    Links::Refuse
                )
                .map(drop),
            Err(Errno::ELOOP)
        );
        let opened = beneath
            .open(b"in", OFlag::O_RDONLY | OFlag::O_DIRECTORY, Links::Refuse)
            .expect("opens");
        assert!(fstat(&opened).is_ok());
    }
}
