//! Writing files.
//!
//! A file is written beside its old version and renamed over it, so that a reader sees the old or
//! the new one, and a full disk leaves the old one alone. Mode and group are kept. A link is
//! followed to its file, which is replaced; the link stays.
//!
//! In three cases the old file is overwritten in place instead, as editors do (vim's
//! `backupcopy=auto`), because replacing it would break something that was set up on purpose:
//! - it has other names (hard links), which would keep the old text;
//! - its owner or group cannot be given to a new file;
//! - no new file can be created in its folder, or the file is a mount point.
//!
//! The space for the new text is then reserved before the first byte is overwritten. Extended
//! attributes and access lists of a replaced file are lost.

use std::collections::hash_map::RandomState;
use std::fs::File;
use std::hash::BuildHasher;
use std::io;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::fcntl::FallocateFlags;
use nix::fcntl::OFlag;
use nix::fcntl::RenameFlags;
use nix::fcntl::fallocate;
use nix::fcntl::openat;
use nix::fcntl::readlinkat;
use nix::fcntl::renameat;
use nix::fcntl::renameat2;
use nix::sys::stat::FileStat;
use nix::sys::stat::Mode;
use nix::sys::stat::SFlag;
use nix::sys::stat::fchmod;
use nix::sys::stat::fstat;
use nix::sys::stat::fstatat;
use nix::unistd::Gid;
use nix::unistd::UnlinkatFlags;
use nix::unistd::fchown;
use nix::unistd::ftruncate;
use nix::unistd::unlinkat;

use super::made_folders::MadeFolders;
use super::made_folders::make_folders;
use super::made_folders::refuse_backslash;
use super::mark;
use super::target_entry::refused;
use crate::beneath::Links;
use crate::root::Root;
use crate::root::check_regular;
use crate::root::fault;
use crate::root::file_type;
use crate::root::join;
use crate::root::not_a_file;
use crate::root::split;
use podbay_wire::BytesPath;
use podbay_wire::Fault;
use podbay_wire::Mark;

/// Most links followed in sequence; the kernel's own number.
const MAX_LINKS: u32 = 40;

/// How far from its end a file is searched for its line ends.
const LAST_LINES: u64 = 64 * 1024;

/// The target of a path: an open folder and a name in it that is not a link.
#[derive(Debug)]
pub(super) struct TargetFile {
    path: BytesPath,
    pub(super) folder: OwnedFd,
    pub(super) name: Vec<u8>,
    /// What exists there now.
    old: Option<FileStat>,
    /// Whether the path ended at a link that led here.
    pub(super) linked: bool,
    pub(super) made: MadeFolders,
    /// It is not written.
    pub(super) only_checks: bool,
}

/// The fault for a path that ends with a slash where no folder exists.
fn not_a_folder(root: &Root, path: &BytesPath, fault: Fault, parents: Parents) -> Fault {
    let Some(bare) = path.as_bytes().strip_suffix(b"/") else {
        return fault;
    };
    let is_file = || {
        root.look(&BytesPath::from_bytes(bare))
            .is_ok_and(|stat| file_type(&stat) == SFlag::S_IFREG)
    };
    match fault {
        Fault::NotFound { .. } if parents == Parents::Make => refused(
            path,
            "ends with a slash, as a folder does: name the file to write; folders on the way are made, and mkdir makes one alone",
        ),
        Fault::NotDirectory { .. } if is_file() => refused(
            path,
            "ends with a slash, as a folder does, and is a file: leave out the slash",
        ),
        fault => fault,
    }
}

/// Whether missing parent folders are created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parents {
    Make,
    MustExist,
}

impl TargetFile {
    /// Resolves a path, through links that stay in the project; a protected name only where that is
    /// allowed.
    pub(super) fn find(
        root: &Root,
        path: &BytesPath,
        protected: bool,
        parents: Parents,
    ) -> Result<Self, Fault> {
        let mut relative = root.relative(path)?.as_bytes().to_vec();
        if relative.is_empty() {
            return Err(not_a_file(path));
        }
        let mut made = MadeFolders::default();
        for n_links in 0..MAX_LINKS {
            if relative.ends_with(b"/") || relative.ends_with(b"..") && split(&relative).1 == b".."
            {
                // Only a folder can be meant: report what exists instead, or the remedy where
                // nothing does.
                let missing = root
                    .open_directory(&BytesPath::from_bytes(relative.as_slice()))
                    .err();
                return Err(missing.map_or_else(
                    || Fault::IsDirectory { path: path.clone() },
                    |fault| not_a_folder(root, path, fault, parents),
                ));
            }
            let (parent, name) = split(&relative);
            let folder = match root.beneath().open(
                parent,
                OFlag::O_RDONLY | OFlag::O_DIRECTORY,
                Links::Follow,
            ) {
                Err(Errno::ENOENT) if parents == Parents::Make => {
                    make_folders(root, path, parent, &mut made)?
                }
                other => other.map_err(|errno| root.fault(path, errno))?,
            };
            let old = match fstatat(&folder, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
                Ok(stat) => Some(stat),
                Err(Errno::ENOENT) => None,
                Err(errno) => return Err(fault(path, errno)),
            };
            if old
                .as_ref()
                .is_none_or(|stat| file_type(stat) != SFlag::S_IFLNK)
            {
                if let Some(stat) = &old {
                    check_regular(path, stat)?;
                }
                if old.is_none() && parents == Parents::Make {
                    refuse_backslash(path, name)?;
                }
                root.refuse_protected(path, &folder, name, protected)?;
                let linked = n_links > 0;
                return Ok(Self {
                    path: path.clone(),
                    name: name.to_vec(),
                    folder,
                    old,
                    linked,
                    made,
                    only_checks: root.only_checks(),
                });
            }
            root.refuse_link(path)?;
            let target = readlinkat(&folder, name).map_err(|errno| fault(path, errno))?;
            let target = target.as_encoded_bytes();
            if target.starts_with(b"/") {
                return Err(root.outside(path, target));
            }
            // The kernel resolves the joined path from the project's folder, so `..` means what it
            // means in the link.
            relative = join(parent, target);
        }
        Err(fault(path, Errno::ELOOP))
    }

    /// Returns its path from the project's folder, with links resolved.
    pub(super) fn real(&self, root: &Root) -> Result<Vec<u8>, Fault> {
        Ok(join(
            root.real(&self.path, &self.folder)?.as_bytes(),
            &self.name,
        ))
    }

    /// Returns the metadata of what exists there.
    pub(super) fn stat(&self) -> Option<&FileStat> {
        self.old.as_ref()
    }

    pub(super) fn exists(&self) -> bool {
        self.old.is_some()
    }

    /// Opens the file for reading, with its current metadata.
    pub(super) fn open(&self) -> Result<(File, FileStat), Fault> {
        let flags = OFlag::O_RDONLY
            | OFlag::O_NOFOLLOW
            | OFlag::O_NONBLOCK
            | OFlag::O_NOCTTY
            | OFlag::O_CLOEXEC;
        let failed = |errno| fault(&self.path, errno);
        let fd =
            openat(&self.folder, self.name.as_slice(), flags, Mode::empty()).map_err(failed)?;
        let stat = fstat(&fd).map_err(failed)?;
        check_regular(&self.path, &stat)?;
        Ok((File::from(fd), stat))
    }

    /// Returns the first bytes of the file, if it can be read.
    pub(super) fn beginning(&self, most: u64) -> Option<Vec<u8>> {
        let mut start = Vec::new();
        let (file, _) = self.open().ok()?;
        file.take(most).read_to_end(&mut start).ok()?;
        Some(start)
    }

    /// Returns whether the last line end of the file is `\r\n`; `false` where it cannot be read, or
    /// has none near its end.
    pub(super) fn ends_lines_with_returns(&self) -> bool {
        let Ok((file, stat)) = self.open() else {
            return false;
        };
        let from = (stat.st_size as u64).saturating_sub(LAST_LINES);
        let mut end = Vec::new();
        let read = (&file)
            .seek(SeekFrom::Start(from))
            .and_then(|_| (&file).take(LAST_LINES).read_to_end(&mut end));
        let newline = end.iter().rposition(|byte| *byte == b'\n');
        read.is_ok() && newline.is_some_and(|at| at > 0 && end[at - 1] == b'\r')
    }

    /// Returns the mark of the current file, with its metadata.
    pub(super) fn mark(&self) -> Result<(Mark, FileStat), Fault> {
        let (file, stat) = self.open()?;
        let mark =
            mark::of_file(&file, &stat).map_err(|error| fault(&self.path, errno_of(&error)))?;
        Ok((mark, stat))
    }

    /// Writes `content`. With `read` the file must still be the one that was read, unchanged.
    pub(super) fn save(mut self, content: &[u8], read: Option<&FileStat>) -> Result<(), Fault> {
        self.end_check()?;
        match self.old {
            None => self.create(content)?,
            Some(old) => self.replace(&old, content, read)?,
        }
        self.made.keep();
        Ok(())
    }

    /// Appends `content`; a partial write on a full disk is rolled back. Returns the old length.
    pub(super) fn append(&self, content: &[u8]) -> Result<u64, Fault> {
        self.end_check()?;
        self.check_writable()?;
        let failed = |errno| fault(&self.path, errno);
        let (fd, stat) = self.writable(OFlag::O_APPEND).map_err(failed)?;
        reserve(&fd, stat.st_size, content.len()).map_err(failed)?;
        let mut file = File::from(fd);
        if let Err(error) = file.write_all(content) {
            let _ = ftruncate(&file, stat.st_size);
            return Err(failed(errno_of(&error)));
        }
        Ok(stat.st_size as u64)
    }

    fn create(&self, content: &[u8]) -> Result<(), Fault> {
        let failed = |errno| fault(&self.path, errno);
        let temporary = Temporary::beside(self, Mode::from_bits_truncate(0o666)).map_err(failed)?;
        temporary.fill(content).map_err(failed)?;
        match temporary.rename(RenameFlags::RENAME_NOREPLACE) {
            // Some file systems know no rename flags.
            Err(Errno::EINVAL | Errno::ENOSYS) => {
                temporary.rename(RenameFlags::empty()).map_err(failed)
            }
            Err(Errno::EEXIST) => Err(Fault::Changed {
                path: self.path.clone(),
            }),
            other => other.map_err(failed),
        }?;
        temporary.keep();
        Ok(())
    }

    fn replace(
        &self,
        old: &FileStat,
        content: &[u8],
        read: Option<&FileStat>,
    ) -> Result<(), Fault> {
        self.check_writable()?;
        let failed = |errno| fault(&self.path, errno);
        let in_place = match self.writable(OFlag::empty()) {
            // A running program cannot be written to but can be replaced.
            Err(Errno::ETXTBSY) => None,
            other => Some(other.map_err(failed)?),
        };
        if old.st_nlink == 1 {
            match self.swap(old, content, read) {
                Err(SwapError::Refused(errno)) if in_place.is_none() => return Err(failed(errno)),
                Err(SwapError::Refused(_)) => {}
                Err(SwapError::Failed(fault)) => return Err(fault),
                Ok(()) => return Ok(()),
            }
        }
        match in_place {
            Some(file) => self.write_into(file, content, read),
            None => Err(failed(Errno::ETXTBSY)),
        }
    }

    /// Overwrites the file in place. With `read` the file must still be the one that was read,
    /// unchanged.
    pub(super) fn write_in_place(
        &self,
        content: &[u8],
        read: Option<&FileStat>,
    ) -> Result<(), Fault> {
        let file = self
            .writable(OFlag::empty())
            .map_err(|errno| fault(&self.path, errno))?;
        self.write_into(file, content, read)
    }

    fn write_into(
        &self,
        (fd, stat): (OwnedFd, FileStat),
        content: &[u8],
        read: Option<&FileStat>,
    ) -> Result<(), Fault> {
        if read.is_some_and(|read| !is_same(read, &stat)) {
            return Err(Fault::Changed {
                path: self.path.clone(),
            });
        }
        reserve(&fd, 0, content.len()).map_err(|errno| fault(&self.path, errno))?;
        let mut file = File::from(fd);
        // From here on a failure does not mean "nothing was changed": it takes a broken disk, or
        // one that cannot reserve space.
        file.write_all(content).and_then(|()| file.set_len(content.len() as u64)).map_err(|error| Fault::Io {
            doing: format!("write {} in place", self.path),
            problem: format!("{error}; the file now contains only a part of the new text: write all of it again"),
        })
    }

    /// Replaces the file by a new one of the same mode, owner and group.
    fn swap(
        &self,
        old: &FileStat,
        content: &[u8],
        read: Option<&FileStat>,
    ) -> Result<(), SwapError> {
        let failed = |errno| SwapError::Failed(fault(&self.path, errno));
        // The new file is private until it has the mode of the old one, which may be 0600.
        let temporary = match Temporary::beside(self, Mode::from_bits_truncate(0o600)) {
            Err(errno @ (Errno::ENOSPC | Errno::EDQUOT)) => return Err(failed(errno)),
            other => other.map_err(SwapError::Refused)?,
        };
        let new = fstat(&temporary.file).map_err(failed)?;
        if new.st_uid != old.st_uid {
            return Err(SwapError::Refused(Errno::EPERM));
        }
        if new.st_gid != old.st_gid {
            fchown(&temporary.file, None, Some(Gid::from_raw(old.st_gid)))
                .map_err(SwapError::Refused)?;
        }
        temporary.fill(content).map_err(failed)?;
        // Set-user-id bits are dropped, as the kernel does on a write.
        fchmod(
            &temporary.file,
            Mode::from_bits_truncate(old.st_mode & 0o1777),
        )
        .map_err(failed)?;
        if let Some(read) = read {
            let now = fstatat(
                &self.folder,
                self.name.as_slice(),
                AtFlags::AT_SYMLINK_NOFOLLOW,
            );
            if !now.is_ok_and(|now| is_same(read, &now)) {
                return Err(SwapError::Failed(Fault::Changed {
                    path: self.path.clone(),
                }));
            }
        }
        temporary
            .rename(RenameFlags::empty())
            .map_err(SwapError::Refused)?;
        temporary.keep();
        Ok(())
    }

    /// Ends a check before anything is written.
    pub(super) fn end_check(&self) -> Result<(), Fault> {
        if self.only_checks {
            self.check_writable()?;
            return Err(Fault::OnlyChecked);
        }
        Ok(())
    }

    /// A file without any write bit was made read-only on purpose, even where we could write it (as
    /// root).
    pub(super) fn check_writable(&self) -> Result<(), Fault> {
        match &self.old {
            Some(old) if old.st_mode & 0o222 == 0 => Err(Fault::ReadOnly {
                path: self.path.clone(),
            }),
            _ => Ok(()),
        }
    }

    pub(super) fn writable(&self, flags: OFlag) -> Result<(OwnedFd, FileStat), Errno> {
        let flags = flags
            | OFlag::O_WRONLY
            | OFlag::O_NOFOLLOW
            | OFlag::O_NONBLOCK
            | OFlag::O_NOCTTY
            | OFlag::O_CLOEXEC;
        let fd = openat(&self.folder, self.name.as_slice(), flags, Mode::empty())?;
        let stat = fstat(&fd)?;
        // It was a regular file when it was resolved.
        if file_type(&stat) == SFlag::S_IFREG {
            Ok((fd, stat))
        } else {
            Err(Errno::EAGAIN)
        }
    }
}

enum SwapError {
    /// The file can perhaps still be written in place.
    Refused(Errno),
    Failed(Fault),
}

/// A new file beside the one it will replace; removed when it is dropped without
/// [`Temporary::keep`].
struct Temporary<'a> {
    place: &'a TargetFile,
    name: String,
    file: File,
    kept: std::cell::Cell<bool>,
}

impl<'a> Temporary<'a> {
    fn beside(place: &'a TargetFile, mode: Mode) -> Result<Self, Errno> {
        // O_EXCL protects; the random name avoids collisions.
        let name = format!(
            ".podbay-{:016x}.tmp",
            RandomState::new().hash_one(&place.name)
        );
        let flags =
            OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let fd = openat(&place.folder, name.as_str(), flags, mode)?;
        Ok(Self {
            place,
            name,
            file: File::from(fd),
            kept: std::cell::Cell::new(false),
        })
    }

    fn fill(&self, content: &[u8]) -> Result<(), Errno> {
        (&self.file)
            .write_all(content)
            .map_err(|error| errno_of(&error))
    }

    fn rename(&self, flags: RenameFlags) -> Result<(), Errno> {
        let folder = &self.place.folder;
        if flags.is_empty() {
            return renameat(
                folder,
                self.name.as_str(),
                folder,
                self.place.name.as_slice(),
            );
        }
        renameat2(
            folder,
            self.name.as_str(),
            folder,
            self.place.name.as_slice(),
            flags,
        )
    }

    fn keep(self) {
        self.kept.set(true);
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.kept.get() {
            let _ = unlinkat(
                &self.place.folder,
                self.name.as_str(),
                UnlinkatFlags::NoRemoveDir,
            );
        }
    }
}

/// Reserves disk space before anything is overwritten, where the file system supports it.
fn reserve(fd: impl AsFd, from: i64, length: usize) -> Result<(), Errno> {
    if length == 0 {
        return Ok(());
    }
    match fallocate(fd, FallocateFlags::FALLOC_FL_KEEP_SIZE, from, length as i64) {
        Err(errno @ (Errno::ENOSPC | Errno::EDQUOT | Errno::EFBIG)) => Err(errno),
        _ => Ok(()),
    }
}

/// Returns whether a file is unchanged between two `stat` calls.
pub(crate) fn is_same(a: &FileStat, b: &FileStat) -> bool {
    (a.st_dev, a.st_ino, a.st_size, a.st_mtime, a.st_mtime_nsec)
        == (b.st_dev, b.st_ino, b.st_size, b.st_mtime, b.st_mtime_nsec)
}

pub(crate) fn errno_of(error: &io::Error) -> Errno {
    match (error.raw_os_error(), error.kind()) {
        (Some(code), _) => Errno::from_raw(code),
        (None, io::ErrorKind::WriteZero) => Errno::ENOSPC,
        (None, _) => Errno::EIO,
    }
}
