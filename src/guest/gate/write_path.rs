//! Where a path of another process leads.
//!
//! It is gone along name by name, and what it leads to is held: the kernel would follow links such
//! as `/proc/self` for the process that reads here. What is held stays the same file, whatever
//! becomes of the path. Its name is the kernel's own.

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
use super::write_calls::At;

/// As many as the kernel follows.
const MAX_LINKS: usize = 40;

/// The kernel's number of the top of `/proc`.
const PROC_TOP: u64 = 1;

/// What a path leads to.
#[derive(Debug)]
pub(super) struct Found {
    /// As the kernel names it.
    pub(super) path: Vec<u8>,
    /// The folder that it is in, and its name there; `None`: the path did not go through one.
    pub(super) within: Option<(OwnedFd, CString)>,
    pub(super) there: Option<There>,
    /// The path ends as that of a folder.
    pub(super) is_folder_path: bool,
}

/// What is there, held.
#[derive(Debug)]
pub(super) struct There {
    pub(super) fd: OwnedFd,
    pub(super) stat: FileStat,
}

impl Found {
    /// Returns the number of the mount that it is on, or would be.
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

/// Why it is not known where a path leads.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unseen {
    /// It leads nowhere, so that the call fails with this.
    Nowhere(Errno),
    /// The process may not be looked into.
    Unreadable,
}

impl From<Errno> for Unseen {
    fn from(errno: Errno) -> Self {
        Self::Nowhere(errno)
    }
}

impl There {
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

/// Finds what a thread of a process names.
pub(super) fn find(process: i32, thread: i32, at: At, follow: bool) -> Result<Found, Unseen> {
    let (folder, pointer, empty_is_folder) = match at {
        At::Descriptor(fd) => return itself(own_file(thread, fd)?),
        At::Path {
            folder,
            pointer,
            empty_is_folder,
        } => (folder, pointer, empty_is_folder),
    };
    let memory =
        File::open(format!("/proc/{thread}/mem")).map_err(|error| match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => Unseen::Unreadable,
            _ => Unseen::Nowhere(Errno::ESRCH),
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

/// Holds what a descriptor of a thread leads to.
fn own_file(thread: i32, fd: i32) -> Result<OwnedFd, Unseen> {
    let way = if fd == libc::AT_FDCWD {
        format!("/proc/{thread}/cwd")
    } else {
        format!("/proc/{thread}/fd/{fd}")
    };
    openat(AT_FDCWD, way.as_str(), HOLD, Mode::empty()).map_err(|errno| match errno {
        Errno::EACCES | Errno::EPERM => Unseen::Unreadable,
        Errno::ENOENT => Unseen::Nowhere(Errno::EBADF),
        errno => Unseen::Nowhere(errno),
    })
}

fn itself(fd: OwnedFd) -> Result<Found, Unseen> {
    Ok(Found {
        path: name(&fd)?,
        within: None,
        there: Some(There::hold(fd)?),
        is_folder_path: false,
    })
}

const HOLD: OFlag = OFlag::O_PATH.union(OFlag::O_CLOEXEC);

fn top() -> Result<OwnedFd, Errno> {
    openat(AT_FDCWD, "/", HOLD, Mode::empty())
}

/// Returns how the kernel names what is held.
fn name(fd: &OwnedFd) -> Result<Vec<u8>, Errno> {
    readlink(way(fd).as_str()).map(OsStringExt::into_vec)
}

/// Returns the way by which what is held can be opened.
pub(super) fn way(fd: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}

fn is_proc(folder: impl AsFd) -> bool {
    fstatfs(folder).is_ok_and(|found| found.filesystem_type() == PROC_SUPER_MAGIC)
}

fn is_proc_top(folder: impl AsFd) -> bool {
    fstat(&folder).is_ok_and(|found| found.st_ino == PROC_TOP) && is_proc(folder)
}

/// What the kernel says of processes, by a name in `/proc`.
enum OfProcess {
    /// The one that asks, and its thread.
    Asking,
    AskingThread,
    /// Another one, by its number.
    Other,
}

impl OfProcess {
    fn named(name: &[u8]) -> Option<Self> {
        match name {
            b"self" => Some(Self::Asking),
            b"thread-self" => Some(Self::AskingThread),
            name => name.iter().all(u8::is_ascii_digit).then_some(Self::Other),
        }
    }
}

/// Returns whether this number is one of this process's own threads. No command may look into it.
fn is_own(number: &[u8]) -> bool {
    std::str::from_utf8(number)
        .is_ok_and(|number| Path::new("/proc/self/task").join(number).exists())
}

struct Walk {
    process: i32,
    thread: i32,
    at: OwnedFd,
    /// What is left of the way, the next one last.
    names: Vec<Vec<u8>>,
    n_links: usize,
    is_folder_path: bool,
}

impl Walk {
    fn go(mut self, path: &[u8], follow: bool) -> Result<Found, Unseen> {
        self.add(path);
        while let Some(name) = self.names.pop() {
            if name == b".." {
                self.at = openat(&self.at, "..", HOLD | OFlag::O_DIRECTORY, Mode::empty())?;
                continue;
            }
            let is_last = self.names.is_empty();
            match OfProcess::named(&name).filter(|_| is_proc_top(&self.at)) {
                Some(OfProcess::Other) if is_own(&name) => return Err(Errno::EACCES.into()),
                None | Some(OfProcess::Other) => {}
                // Both are links, which to the kernel lead to the one that reads.
                Some(asking) => {
                    if matches!(asking, OfProcess::AskingThread) {
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
                there => There::hold(there?)?,
            };
            if there.kind() == SFlag::S_IFLNK && (!is_last || follow || self.is_folder_path) {
                self.n_links += 1;
                if self.n_links > MAX_LINKS {
                    return Err(Errno::ELOOP.into());
                }
                if is_proc(&self.at) && !is_proc_top(&self.at) {
                    // These have no path, or one that need not be the way: the kernel knows what
                    // they lead to.
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
                return Ok(Found {
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

    /// Puts a path in front of what is left of the way.
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

    fn missing(self, name: CString) -> Result<Found, Unseen> {
        let mut path = self::name(&self.at)?;
        if !path.ends_with(b"/") {
            path.push(b'/');
        }
        path.extend(name.as_bytes());
        Ok(Found {
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

    /// Finds a path of this process.
    fn found(path: &str, follow: bool) -> Result<Found, Unseen> {
        let own = nix::unistd::gettid().as_raw();
        let path = CString::new(path).expect("no zero byte");
        // A process that is not this one has the number; its parent stands for it.
        find(
            nix::unistd::getppid().as_raw(),
            own,
            At::Path {
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
    fn a_path_leads_to_what_the_kernel_names_through_links_and_folders_above() {
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
    fn a_path_that_leads_nowhere_is_the_kernels_error() {
        let (_folder, top) = folder();
        symlink("round", top.join("round")).expect("linked");
        for (path, errno) in [
            ("no/file", Errno::ENOENT),
            ("file/x", Errno::ENOTDIR),
            ("file/", Errno::ENOTDIR),
            ("round", Errno::ELOOP),
        ] {
            let found = found(top.join(path).to_str().expect("text"), true);
            assert_eq!(found.err(), Some(Unseen::Nowhere(errno)), "{path}");
        }
        assert_eq!(found("", true).err(), Some(Unseen::Nowhere(Errno::ENOENT)));
        let long = "x/".repeat(3000);
        assert_eq!(
            found(&long, true).err(),
            Some(Unseen::Nowhere(Errno::ENAMETOOLONG))
        );
    }

    #[test]
    fn links_of_proc_are_those_of_the_process_and_none_leads_into_this_one() {
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
                Some(Unseen::Nowhere(Errno::EACCES)),
                "{path}"
            );
        }
    }

    #[test]
    fn a_descriptor_leads_to_its_file_and_a_wrong_one_to_none() {
        let (_folder, top) = folder();
        let file = File::open(top.join("file")).expect("there");
        let own = nix::unistd::gettid().as_raw();
        let found = find(own, own, At::Descriptor(file.as_raw_fd()), true).expect("leads there");
        assert_eq!(found.path, top.join("file").into_os_string().into_vec());
        assert_eq!(
            find(own, own, At::Descriptor(100_000), true).err(),
            Some(Unseen::Nowhere(Errno::EBADF))
        );
    }
}
