use std::fs::File;
use std::io;
use std::io::Read;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd;
use std::os::fd::BorrowedFd;
use std::os::fd::OwnedFd;
use std::path::Path;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::AT_FDCWD;
use nix::fcntl::AtFlags;
use nix::fcntl::OFlag;
use nix::fcntl::openat;
use nix::fcntl::readlinkat;
use nix::fcntl::renameat;
use nix::sys::stat::FchmodatFlags;
use nix::sys::stat::FileStat;
use nix::sys::stat::Mode;
use nix::sys::stat::SFlag;
use nix::sys::stat::fchmodat;
use nix::sys::stat::fstat;
use nix::sys::stat::fstatat;
use nix::sys::stat::mkdirat;
use nix::unistd::UnlinkatFlags;
use nix::unistd::unlinkat;

use crate::beneath::Beneath;
use crate::beneath::Links;
use crate::root::file_type;
use crate::root::join;
use crate::root::split;
use podbay_wire::BytesPath;
use podbay_wire::Fault;

/// Depth limit of removed trees: deeper ones were made to be a burden.
const MAX_DEPTH: usize = 1000;

/// A folder with untrusted contents: no link in it is followed, and no read or open blocks.
#[derive(Debug)]
pub struct UntrustedFolder {
    beneath: Beneath,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    File,
    Folder,
    Link,
    Special,
}

impl UntrustedFolder {
    /// Opens a folder by a path of our own.
    pub fn open(path: &Path) -> io::Result<Self> {
        let fd = nix::fcntl::open(
            path,
            OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC,
            Mode::empty(),
        )?;
        Ok(Self::of(fd))
    }

    /// Wraps an open folder.
    pub(crate) fn of(fd: OwnedFd) -> Self {
        Self {
            beneath: Beneath::new(fd),
        }
    }

    pub(crate) fn descend(&self, path: &[u8]) -> Result<Self, Errno> {
        Ok(Self {
            beneath: self.beneath.same(self.directory(path)?),
        })
    }

    /// Opens a folder in which entries are only reached by name: it need not be readable.
    pub(crate) fn through(&self, path: &[u8]) -> Result<Self, Errno> {
        let fd = self
            .beneath
            .open(path, OFlag::O_PATH | OFlag::O_DIRECTORY, Links::Refuse)?;
        Ok(Self {
            beneath: self.beneath.same(fd),
        })
    }

    fn directory(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        self.beneath
            .open(path, OFlag::O_RDONLY | OFlag::O_DIRECTORY, Links::Refuse)
    }

    /// Opens an entry with `O_PATH`, a link itself where it is one.
    pub(crate) fn place(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        let (parent, name) = split(path);
        let folder =
            self.beneath
                .open(parent, OFlag::O_PATH | OFlag::O_DIRECTORY, Links::Refuse)?;
        let name: &[u8] = if name.is_empty() { b"." } else { name };
        openat(
            &folder,
            name,
            OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC,
            Mode::empty(),
        )
    }

    /// Returns the metadata of an entry, of the link itself where it is one.
    pub(crate) fn stat(&self, path: &[u8]) -> Result<FileStat, Errno> {
        let (parent, name) = split(path);
        if parent.is_empty() {
            return fstatat(&self.beneath, name, AtFlags::AT_SYMLINK_NOFOLLOW);
        }
        let folder =
            self.beneath
                .open(parent, OFlag::O_PATH | OFlag::O_DIRECTORY, Links::Refuse)?;
        fstatat(&folder, name, AtFlags::AT_SYMLINK_NOFOLLOW)
    }

    /// Returns the type of an entry; `None`: missing or inaccessible.
    pub(crate) fn kind(&self, path: &[u8]) -> Option<FileKind> {
        self.stat(path).ok().map(|stat| kind(&stat))
    }

    /// Reads a regular file; `None`: missing.
    pub(crate) fn read(&self, path: &[u8], limit: u64) -> Result<Option<Vec<u8>>, Fault> {
        let Some((file, stat)) = self.open_file(path)? else {
            return Ok(None);
        };
        let too_large = |bytes| Fault::TooLarge {
            path: BytesPath::from_bytes(path),
            bytes,
            limit,
        };
        if stat.st_size as u64 > limit {
            return Err(too_large(stat.st_size as u64));
        }
        let mut bytes = Vec::with_capacity(stat.st_size as usize + 1);
        file.take(limit + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| failed("read", path, &error))?;
        // It may have grown since.
        if bytes.len() as u64 > limit {
            Err(too_large(bytes.len() as u64))
        } else {
            Ok(Some(bytes))
        }
    }

    /// Opens a regular file for reading; `None`: missing.
    pub(crate) fn open_file(&self, path: &[u8]) -> Result<Option<(File, FileStat)>, Fault> {
        let shown = || BytesPath::from_bytes(path);
        let fd = match self.beneath.open(path, OFlag::O_RDONLY, Links::Refuse) {
            Ok(fd) => fd,
            Err(Errno::ENOENT | Errno::ENOTDIR) => return Ok(None),
            Err(Errno::ELOOP) => {
                return Err(Fault::NotRegular {
                    path: shown(),
                    kind: "symbolic link".into(),
                });
            }
            Err(errno) => return Err(crate::root::fault(&shown(), errno)),
        };
        let stat = fstat(&fd).map_err(|errno| crate::root::fault(&shown(), errno))?;
        crate::root::check_regular(&shown(), &stat)?;
        Ok(Some((File::from(fd), stat)))
    }

    /// Returns the names in a folder, sorted; none if there is no such folder.
    pub fn names(&self, path: &[u8]) -> Result<Vec<(Vec<u8>, FileKind)>, Errno> {
        let fd = match self.directory(path) {
            Ok(fd) => fd,
            Err(Errno::ENOENT | Errno::ENOTDIR) => return Ok(Vec::new()),
            Err(errno) => return Err(errno),
        };
        let mut names = entries(fd)?;
        names.sort_by(|left, right| left.0.cmp(&right.0));
        Ok(names)
    }

    /// Like [`Self::names`], also for a folder that its owner may not list.
    pub(crate) fn names_of_locked(&self, path: &[u8]) -> Result<Vec<(Vec<u8>, FileKind)>, Errno> {
        match self.names(path) {
            Err(Errno::EACCES) => {
                let lock = self.unlock_temporarily(path)?;
                let names = self.names(path);
                lock.put_back();
                names
            }
            names => names,
        }
    }

    pub(crate) fn link_target(&self, path: &[u8]) -> Result<Vec<u8>, Errno> {
        let (parent, name) = split(path);
        let folder =
            self.beneath
                .open(parent, OFlag::O_PATH | OFlag::O_DIRECTORY, Links::Refuse)?;
        Ok(readlinkat(&folder, name)?.into_encoded_bytes())
    }

    /// Makes a folder and its missing parents.
    pub(crate) fn make(&self, path: &[u8]) -> Result<(), Fault> {
        if self.directory(path).is_ok() {
            return Ok(());
        }
        let mut above: Vec<u8> = Vec::new();
        for name in path
            .split(|byte| *byte == b'/')
            .filter(|name| !name.is_empty())
        {
            let made = self
                .directory(&above)
                .and_then(|folder| mkdirat(&folder, name, Mode::from_bits_truncate(0o755)));
            above = join(&above, name);
            match made {
                Ok(()) | Err(Errno::EEXIST) => {}
                Err(errno) => return Err(failed("make", path, &errno.into())),
            }
        }
        Ok(())
    }

    /// Writes a new file, and makes its parents.
    pub(crate) fn write(&self, path: &[u8], bytes: &[u8]) -> Result<(), Fault> {
        let mut file = self.create(path, 0o644)?;
        file.write_all(bytes)
            .map_err(|error| failed("write", path, &error))
    }

    /// Creates a new file, and makes its parents.
    pub(crate) fn create(&self, path: &[u8], mode: u32) -> Result<File, Fault> {
        let (parent, name) = split(path);
        self.make(parent)?;
        let flags =
            OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let opened = self
            .directory(parent)
            .and_then(|folder| openat(&folder, name, flags, Mode::from_bits_truncate(mode)));
        opened
            .map(File::from)
            .map_err(|errno| failed("write", path, &errno.into()))
    }

    /// Writes a file atomically, also in a power failure.
    pub(crate) fn replace(&self, path: &[u8], bytes: &[u8]) -> Result<(), Fault> {
        let wrong = |error: io::Error| failed("write", path, &error);
        let new = [path, b".new"].concat();
        self.remove(&new)?;
        let mut file = self.create(&new, 0o600)?;
        file.write_all(bytes)
            .and_then(|()| file.sync_all())
            .map_err(wrong)?;
        self.rename(&new, path)
            .map_err(|errno| wrong(errno.into()))?;
        let folder = self
            .directory(split(path).0)
            .map_err(|errno| wrong(errno.into()))?;
        File::from(folder).sync_all().map_err(wrong)
    }

    pub(crate) fn rename(&self, from: &[u8], to: &[u8]) -> Result<(), Errno> {
        let (from_parent, from_name) = split(from);
        let (to_parent, to_name) = split(to);
        renameat(
            &self.directory(from_parent)?,
            from_name,
            &self.directory(to_parent)?,
            to_name,
        )
    }

    /// Removes a file, a link or a folder with its contents, if it exists.
    pub(crate) fn remove(&self, path: &[u8]) -> Result<(), Fault> {
        let (parent, name) = split(path);
        let folder = match self.directory(parent) {
            Ok(folder) => folder,
            Err(Errno::ENOENT | Errno::ENOTDIR) => return Ok(()),
            Err(errno) => return Err(failed("remove", path, &errno.into())),
        };
        remove(folder.as_fd(), name, MAX_DEPTH)
            .map_err(|errno| failed("remove", path, &errno.into()))
    }

    /// Renames within a folder, also where that is not writable.
    pub(crate) fn rename_beside(&self, from: &[u8], to: &[u8]) -> Result<(), Errno> {
        let (parent, name) = split(from);
        self.within_unlocked(parent, |folder| renameat(folder, name, folder, split(to).1))
    }

    /// Makes a folder in another one and moves entries beside it into it, in this order, also where
    /// the folder is not writable.
    ///
    /// An entry that cannot be moved does not keep the others back.
    pub(crate) fn move_into_new(
        &self,
        path: &[u8],
        into: &[u8],
        names: &[(Vec<u8>, Vec<u8>)],
    ) -> Result<(), Errno> {
        self.within_unlocked(path, |_| {
            let folder = self.directory(path)?;
            mkdirat(&folder, into, Mode::S_IRWXU)?;
            let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
            let inner = openat(&folder, into, flags, Mode::empty())?;
            let mut all = Ok(());
            for (name, new) in names {
                // Only a folder can need unlocking.
                let _ = unlock(folder.as_fd(), name);
                all = all.and(renameat(&folder, name.as_slice(), &inner, new.as_slice()));
            }
            all
        })
    }

    /// Gives its owner full access to a folder until the returned value restores the mode.
    pub(crate) fn unlock_temporarily(&self, path: &[u8]) -> Result<UnlockedFolder, Errno> {
        let folder = self
            .beneath
            .open(path, OFlag::O_PATH | OFlag::O_DIRECTORY, Links::Refuse)?;
        let mode = fstat(&folder)?.st_mode & 0o7777;
        set_mode(&folder, mode | 0o700)?;
        Ok(UnlockedFolder { folder, mode })
    }

    /// Runs something in a folder to which its owner has full access meanwhile.
    fn within_unlocked(
        &self,
        path: &[u8],
        what: impl Fn(&OwnedFd) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let folder = self
            .beneath
            .open(path, OFlag::O_PATH | OFlag::O_DIRECTORY, Links::Refuse)?;
        let mode = fstat(&folder)?.st_mode & 0o7777;
        if mode & 0o700 == 0o700 {
            return what(&folder);
        }
        set_mode(&folder, mode | 0o700)?;
        let done = what(&folder);
        set_mode(&folder, mode)?;
        done
    }

    /// Like [`Self::remove`], also where the parent folder is not writable.
    pub(crate) fn remove_from_locked(&self, path: &[u8]) -> Result<(), Fault> {
        let (parent, name) = split(path);
        let removed =
            self.within_unlocked(parent, |folder| remove(folder.as_fd(), name, MAX_DEPTH));
        removed.map_err(|errno| failed("remove", path, &errno.into()))
    }

    /// Lets its owner list and enter a folder.
    pub(crate) fn unlock(&self, path: &[u8]) -> Result<(), Errno> {
        let (parent, name) = split(path);
        let folder =
            self.beneath
                .open(parent, OFlag::O_PATH | OFlag::O_DIRECTORY, Links::Refuse)?;
        unlock(folder.as_fd(), name)
    }

    pub(crate) fn remove_if_empty(&self, path: &[u8]) {
        let (parent, name) = split(path);
        if let Ok(folder) = self.directory(parent) {
            let _ = unlinkat(&folder, name, UnlinkatFlags::RemoveDir);
        }
    }
}

/// A folder that is open to its owner for a while.
#[derive(Debug)]
pub(crate) struct UnlockedFolder {
    folder: OwnedFd,
    mode: u32,
}

impl UnlockedFolder {
    /// Whether its owner could always reach its entries by name.
    pub(crate) fn lets_through(&self) -> bool {
        self.mode & 0o100 != 0
    }

    pub(crate) fn put_back(self) {
        // It was the owner's a moment ago.
        let _ = set_mode(&self.folder, self.mode);
    }
}

impl AsFd for UntrustedFolder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.beneath.as_fd()
    }
}

pub(crate) fn kind(stat: &FileStat) -> FileKind {
    match file_type(stat) {
        SFlag::S_IFREG => FileKind::File,
        SFlag::S_IFDIR => FileKind::Folder,
        SFlag::S_IFLNK => FileKind::Link,
        _ => FileKind::Special,
    }
}

/// Returns the names in an open folder in the order of the file system.
fn entries(folder: OwnedFd) -> Result<Vec<(Vec<u8>, FileKind)>, Errno> {
    let mut names = Vec::new();
    let mut folder = Dir::from_fd(folder)?;
    for entry in folder.iter() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push((name.to_vec(), entry.file_type()));
        }
    }
    let mut known = Vec::with_capacity(names.len());
    for (name, told) in names {
        let kind = match told {
            Some(nix::dir::Type::File) => FileKind::File,
            Some(nix::dir::Type::Directory) => FileKind::Folder,
            Some(nix::dir::Type::Symlink) => FileKind::Link,
            Some(_) => FileKind::Special,
            // Some file systems do not report the type.
            None => match fstatat(&folder, name.as_slice(), AtFlags::AT_SYMLINK_NOFOLLOW) {
                Ok(stat) => kind(&stat),
                Err(_) => continue,
            },
        };
        known.push((name, kind));
    }
    Ok(known)
}

fn remove(folder: BorrowedFd<'_>, name: &[u8], depth: usize) -> Result<(), Errno> {
    match unlinkat(folder, name, UnlinkatFlags::NoRemoveDir) {
        Ok(()) | Err(Errno::ENOENT) => return Ok(()),
        Err(Errno::EISDIR | Errno::EPERM) => {}
        Err(errno) => return Err(errno),
    }
    let depth = depth.checked_sub(1).ok_or(Errno::ENAMETOOLONG)?;
    unlock(folder, name)?;
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let inner = openat(folder, name, flags, Mode::empty())?;
    for (entry, _) in entries(inner.try_clone().map_err(|_| Errno::EMFILE)?)? {
        remove(inner.as_fd(), &entry, depth)?;
    }
    unlinkat(folder, name, UnlinkatFlags::RemoveDir)
}

/// Gives its owner full access to a folder.
fn unlock(folder: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let opened = openat(folder, name, flags, Mode::empty())?;
    let mode = fstat(&opened)?.st_mode & 0o7777;
    if mode & 0o700 == 0o700 {
        Ok(())
    } else {
        set_mode(&opened, mode | 0o700)
    }
}

/// Sets the mode of a descriptor opened with `O_PATH`, which `fchmod` does not.
fn set_mode(opened: &OwnedFd, mode: u32) -> Result<(), Errno> {
    let path = format!("/proc/self/fd/{}", opened.as_raw_fd());
    fchmodat(
        AT_FDCWD,
        path.as_str(),
        Mode::from_bits_truncate(mode),
        FchmodatFlags::FollowSymlink,
    )
}

pub(crate) fn failed(doing: &str, path: &[u8], error: &io::Error) -> Fault {
    if matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT)) {
        return Fault::NoSpace {
            path: BytesPath::from_bytes(path),
        };
    }
    Fault::Io {
        doing: format!("{doing} {}", BytesPath::from_bytes(path)),
        problem: error.to_string(),
    }
}

#[cfg(test)]
mod tests;
