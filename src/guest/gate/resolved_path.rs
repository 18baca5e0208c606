//! Resolves a path of another process.
//!
//! The path is walked name by name, and its end is held open: the kernel would resolve links such
//! as `/proc/self` for the process that reads here. A held file stays the same whatever becomes of
//! the path. Its name is the kernel's own.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::AT_FDCWD;
use nix::fcntl::OFlag;
use nix::fcntl::openat;
use nix::fcntl::readlink;
use nix::fcntl::readlinkat;
use nix::sys::stat::FileStat;
use nix::sys::stat::Mode;
use nix::sys::stat::SFlag;
use nix::sys::stat::fstat;
use nix::sys::statfs::PROC_SUPER_MAGIC;
use nix::sys::statfs::fstatfs;

use super::process;
use super::write_calls::PathArgument;

/// The kernel's own limit.
const MAX_LINKS: usize = 40;

/// The inode number of the root of `/proc`.
const PROC_TOP: u64 = 1;

/// Where a path leads.
#[derive(Debug)]
pub(super) struct ResolvedPath {
    /// The kernel's name for it.
    pub(super) path: Vec<u8>,
    /// Its parent folder and its name there; `None`: the path did not go through a folder.
    pub(super) within: Option<(OwnedFd, CString)>,
    pub(super) there: Option<HeldEntry>,
    /// The path ends as that of a folder.
    pub(super) is_folder_path: bool,
}

/// An existing entry, held open.
#[derive(Debug)]
pub(super) struct HeldEntry {
    pub(super) fd: OwnedFd,
    pub(super) stat: FileStat,
}

impl ResolvedPath {
    /// Returns the id of the mount that it is on, or would be created on.
    pub(super) fn mount(&self) -> Option<u64> {
        let held = self
            .there
            .as_ref()
            .map(|there| &there.fd)
            .or_else(|| self.within.as_ref().map(|(folder, _)| folder))?;
        let known =
            std::fs::read_to_string(format!("/proc/self/fdinfo/{}", held.as_raw_fd())).ok()?;
        known
            .lines()
            .find_map(|line| line.strip_prefix("mnt_id:"))?
            .trim()
            .parse()
            .ok()
    }
}

/// Why a path cannot be resolved.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ResolveError {
    /// It leads nowhere: the call fails with this error.
    Nowhere(Errno),
    /// The process is not readable.
    Unreadable,
}

impl From<Errno> for ResolveError {
    fn from(errno: Errno) -> Self {
        Self::Nowhere(errno)
    }
}

impl HeldEntry {
    fn hold(fd: OwnedFd) -> Result<Self, Errno> {
        Ok(Self {
            stat: fstat(&fd)?,
            fd,
        })
    }

    pub(super) fn kind(&self) -> SFlag {
        SFlag::from_bits_truncate(self.stat.st_mode) & SFlag::S_IFMT
    }

    pub(super) fn is_folder(&self) -> bool {
        self.kind() == SFlag::S_IFDIR
    }
}

/// Resolves the path argument of a thread.
pub(super) fn find(
    process: i32,
    thread: i32,
    at: PathArgument,
    follow: bool,
) -> Result<ResolvedPath, ResolveError> {
    let (folder, pointer, empty_is_folder) = match at {
        PathArgument::Descriptor(fd) => return itself(own_file(thread, fd)?),
        PathArgument::Path {
            folder,
            pointer,
            empty_is_folder,
        } => (folder, pointer, empty_is_folder),
    };
    let memory =
        File::open(format!("/proc/{thread}/mem")).map_err(|error| match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => ResolveError::Unreadable,
            _ => ResolveError::Nowhere(Errno::ESRCH),
        })?;
    let path = process::text(&memory, pointer, process::MAX_PATH - 1)
        .map_err(|_| Errno::EFAULT)?
        .ok_or(Errno::ENAMETOOLONG)?;
    let start = match path.first() {
        Some(b'/') => top()?,
        None if !empty_is_folder => return Err(Errno::ENOENT.into()),
        _ => own_file(thread, folder)?,
    };
    if path.is_empty() {
        return itself(start);
    }
    Walk {
        process,
        thread,
        at: start,
        names: Vec::new(),
        n_links: 0,
        is_folder_path: false,
    }
    .go(&path, follow)
}

/// Opens what a descriptor of a thread refers to.
fn own_file(thread: i32, fd: i32) -> Result<OwnedFd, ResolveError> {
    let openable = if fd == libc::AT_FDCWD {
        format!("/proc/{thread}/cwd")
    } else {
        format!("/proc/{thread}/fd/{fd}")
    };
    openat(AT_FDCWD, openable.as_str(), HOLD, Mode::empty()).map_err(|errno| match errno {
        Errno::EACCES | Errno::EPERM => ResolveError::Unreadable,
        Errno::ENOENT => ResolveError::Nowhere(Errno::EBADF),
        errno => ResolveError::Nowhere(errno),
    })
}

fn itself(fd: OwnedFd) -> Result<ResolvedPath, ResolveError> {
    Ok(ResolvedPath {
        path: name(&fd)?,
        within: None,
        there: Some(HeldEntry::hold(fd)?),
        is_folder_path: false,
    })
}

const HOLD: OFlag = OFlag::O_PATH.union(OFlag::O_CLOEXEC);

fn top() -> Result<OwnedFd, Errno> {
    openat(AT_FDCWD, "/", HOLD, Mode::empty())
}

/// Returns the kernel's name of an open file.
fn name(fd: &OwnedFd) -> Result<Vec<u8>, Errno> {
    readlink(openable(fd).as_str()).map(OsStringExt::into_vec)
}

/// Returns the path by which an open file can be opened again.
pub(super) fn openable(fd: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}

fn is_proc(folder: impl AsFd) -> bool {
    fstatfs(folder).is_ok_and(|found| found.filesystem_type() == PROC_SUPER_MAGIC)
}

fn is_proc_top(folder: impl AsFd) -> bool {
    fstat(&folder).is_ok_and(|found| found.st_ino == PROC_TOP) && is_proc(folder)
}

/// A name in the root of `/proc` that belongs to a process.
enum ProcName {
    /// `self` and `thread-self`: the asking process and its thread.
    Asking,
    AskingThread,
    /// Another process, by its number.
    Other,
}

impl ProcName {
    fn named(name: &[u8]) -> Option<Self> {
        match name {
            b"self" => Some(Self::Asking),
            b"thread-self" => Some(Self::AskingThread),
            name => name.iter().all(u8::is_ascii_digit).then_some(Self::Other),
        }
    }
}

/// Returns whether a number is one of this process's own threads, which no command may inspect.
fn is_own(number: &[u8]) -> bool {
    std::str::from_utf8(number)
        .is_ok_and(|number| Path::new("/proc/self/task").join(number).exists())
}

struct Walk {
    process: i32,
    thread: i32,
    at: OwnedFd,
    /// The names still to walk, the next one last.
    names: Vec<Vec<u8>>,
    n_links: usize,
    is_folder_path: bool,
}

impl Walk {
    fn go(mut self, path: &[u8], follow: bool) -> Result<ResolvedPath, ResolveError> {
        self.add(path);
        while let Some(name) = self.names.pop() {
            if name == b".." {
                self.at = openat(&self.at, "..", HOLD | OFlag::O_DIRECTORY, Mode::empty())?;
                continue;
            }
            let is_last = self.names.is_empty();
            match ProcName::named(&name).filter(|_| is_proc_top(&self.at)) {
                Some(ProcName::Other) if is_own(&name) => return Err(Errno::EACCES.into()),
                None | Some(ProcName::Other) => {}
                // Both are links, which for the kernel lead to the reading process.
                Some(host_answers) => {
                    if matches!(host_answers, ProcName::AskingThread) {
                        self.names
                            .extend([self.thread.to_string().into_bytes(), b"task".to_vec()]);
                    }
                    self.names.push(self.process.to_string().into_bytes());
                    continue;
                }
            }
            let name = CString::new(name).map_err(|_| Errno::EINVAL)?;
            let there = match openat(
                &self.at,
                name.as_c_str(),
                HOLD | OFlag::O_NOFOLLOW,
                Mode::empty(),
            ) {
                Err(Errno::ENOENT) if is_last => return self.missing(name),
                there => HeldEntry::hold(there?)?,
            };
            if there.kind() == SFlag::S_IFLNK && (!is_last || follow || self.is_folder_path) {
                self.n_links += 1;
                if self.n_links > MAX_LINKS {
                    return Err(Errno::ELOOP.into());
                }
                if is_proc(&self.at) && !is_proc_top(&self.at) {
                    // These links have no path, or one that need not be real: the kernel follows
                    // them.
                    let to = openat(&self.at, name.as_c_str(), HOLD, Mode::empty())?;
                    if is_last {
                        return itself(to);
                    }
                    self.at = to;
                } else {
                    let to = readlinkat(&there.fd, "")?.into_vec();
                    if to.first() == Some(&b'/') {
                        self.at = top()?;
                    }
                    self.add(&to);
                }
            } else if is_last {
                if self.is_folder_path && !there.is_folder() {
                    return Err(Errno::ENOTDIR.into());
                }
                let path = self::name(&there.fd)?;
                return Ok(ResolvedPath {
                    path,
                    within: Some((self.at, name)),
                    there: Some(there),
                    is_folder_path: self.is_folder_path,
                });
            } else if there.is_folder() {
                self.at = there.fd;
            } else {
                return Err(Errno::ENOTDIR.into());
            }
        }
        itself(self.at)
    }

    /// Adds a path in front of the names still to walk.
    fn add(&mut self, path: &[u8]) {
        if self.names.is_empty() {
            self.is_folder_path |= path.ends_with(b"/") || path.ends_with(b"/.");
        }
        self.names.extend(
            path.split(|&byte| byte == b'/')
                .rev()
                .filter(|name| !name.is_empty() && *name != b".")
                .map(<[u8]>::to_vec),
        );
    }

    fn missing(self, name: CString) -> Result<ResolvedPath, ResolveError> {
        let mut path = self::name(&self.at)?;
        if !path.ends_with(b"/") {
            path.push(b'/');
        }
        path.extend(name.as_bytes());
        Ok(ResolvedPath {
            path,
            within: Some((self.at, name)),
            there: None,
            is_folder_path: self.is_folder_path,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::*;

    /// Resolves a path of this process.
    fn found(path: &str, follow: bool) -> Result<ResolvedPath, ResolveError> {
        let own = nix::unistd::gettid().as_raw();
        let path = CString::new(path).expect("no zero byte");
        // `process` must differ from this process, whose entries are refused; its parent will do.
        find(
            nix::unistd::getppid().as_raw(),
            own,
            PathArgument::Path {
                folder: libc::AT_FDCWD,
                pointer: path.as_ptr() as u64,
                empty_is_folder: false,
            },
            follow,
        )
    }

    #[track_caller]
    fn leads(path: &Path, follow: bool) -> (String, bool) {
        let found = found(path.to_str().expect("text"), follow).expect("leads somewhere");
        (
            String::from_utf8(found.path).expect("text"),
            found.there.is_some(),
        )
    }

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().canonicalize().expect("there");
        fs::create_dir_all(path.join("sub/deep")).expect("made");
        fs::write(path.join("file"), "x").expect("written");
        (folder, path)
    }

    #[test]
    fn paths_are_resolved_through_links_and_parent_folders() {
        let (_folder, top) = folder();
        let at = |name: &str| top.join(name);
        symlink("sub/deep", at("short")).expect("linked");
        symlink(at("nothing"), at("dangling")).expect("linked");
        symlink("../file", at("sub/up")).expect("linked");
        let name = |name: &str| at(name).display().to_string();
        for (path, follow, expected, is_there) in [
            ("file", true, "file", true),
            ("short/../../file", true, "file", true),
            ("sub/up", true, "file", true),
            ("sub/up", false, "sub/up", true),
            ("short/new", true, "sub/deep/new", false),
            ("dangling", true, "nothing", false),
            ("dangling", false, "dangling", true),
            ("sub/./deep/", false, "sub/deep", true),
            ("short/", false, "sub/deep", true),
        ] {
            assert_eq!(
                leads(&at(path), follow),
                (name(expected), is_there),
                "{path}"
            );
        }
    }

    #[test]
    fn an_unresolvable_path_gives_the_kernels_error() {
        let (_folder, top) = folder();
        symlink("round", top.join("round")).expect("linked");
        for (path, errno) in [
            ("no/file", Errno::ENOENT),
            ("file/x", Errno::ENOTDIR),
            ("file/", Errno::ENOTDIR),
            ("round", Errno::ELOOP),
        ] {
            let found = found(top.join(path).to_str().expect("text"), true);
            assert_eq!(found.err(), Some(ResolveError::Nowhere(errno)), "{path}");
        }
        assert_eq!(
            found("", true).err(),
            Some(ResolveError::Nowhere(Errno::ENOENT))
        );
        let long = "x/".repeat(3000);
        assert_eq!(
            found(&long, true).err(),
            Some(ResolveError::Nowhere(Errno::ENAMETOOLONG))
        );
    }

    #[test]
    fn proc_links_are_those_of_the_asking_process_and_never_lead_into_the_guest() {
        let (_folder, top) = folder();
        let parent = nix::unistd::getppid();
        assert_eq!(
            leads(Path::new("/proc/self/comm"), true).0,
            format!("/proc/{parent}/comm")
        );
        symlink("/proc/self/comm", top.join("link")).expect("linked");
        assert_eq!(
            leads(&top.join("link"), true).0,
            format!("/proc/{parent}/comm")
        );
        let own = std::process::id();
        for path in [
            format!("/proc/{own}/comm"),
            format!("/proc/{}/fd/1", nix::unistd::gettid()),
            format!("/proc/1/../{own}/cwd/x"),
        ] {
            assert_eq!(
                found(&path, true).err(),
                Some(ResolveError::Nowhere(Errno::EACCES)),
                "{path}"
            );
        }
    }

    #[test]
    fn a_descriptor_resolves_to_its_file_and_a_bad_one_fails() {
        let (_folder, top) = folder();
        let file = File::open(top.join("file")).expect("there");
        let own = nix::unistd::gettid().as_raw();
        let found =
            find(own, own, PathArgument::Descriptor(file.as_raw_fd()), true).expect("leads there");
        assert_eq!(found.path, top.join("file").into_os_string().into_vec());
        assert_eq!(
            find(own, own, PathArgument::Descriptor(100_000), true).err(),
            Some(ResolveError::Nowhere(Errno::EBADF))
        );
    }
}
