//! Renaming a folder where the kernel can rename only files.
//!
//! In an overlay mounted without `redirect_dir` the kernel refuses to rename a folder of the lower
//! layer (EXDEV). `mv` then copies; programs that call `rename` themselves fail. So the supervisor
//! does what `mv` does: it copies the folder and then removes the old one. It has the user and the
//! mounts of the command, so it can do nothing that the command could not.
//!
//! Files are copied, not renamed one by one: a file that overlayfs renames stays tied to the lower
//! one, and cannot be opened any more once that is renamed in the project. It costs the same: the
//! kernel copies a file up before it renames it.
//!
//! This is not atomic, as a rename is. Nothing is removed until all is copied, so a kill in the
//! middle loses nothing.

use std::collections::HashMap;
use std::ffi::CStr;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd;
use std::os::fd::BorrowedFd;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::fcntl::OFlag;
use nix::fcntl::openat;
use nix::fcntl::readlinkat;
use nix::sys::stat::FileStat;
use nix::sys::stat::Mode;
use nix::sys::stat::SFlag;
use nix::sys::stat::UtimensatFlags;
use nix::sys::stat::fchmod;
use nix::sys::stat::fstatat;
use nix::sys::stat::mkdirat;
use nix::sys::stat::utimensat;
use nix::sys::time::TimeSpec;
use nix::unistd::UnlinkatFlags;
use nix::unistd::Whence;
use nix::unistd::linkat;
use nix::unistd::lseek;
use nix::unistd::mkfifoat;
use nix::unistd::symlinkat;
use nix::unistd::unlinkat;

/// Most entries and greatest depth of a folder that is moved this way.
const MOST: usize = 200_000;
const DEEPEST: usize = 128;

/// One end of a rename: an open folder, and a name in it.
#[derive(Debug)]
pub(super) struct RenameEnd {
    pub(super) folder: OwnedFd,
    pub(super) name: CString,
}

/// Renames a folder, in one step where the kernel does it. `flags` are those of `renameat2`.
pub(super) fn rename(
    from: &RenameEnd,
    to: &RenameEnd,
    flags: u32,
    stop: &AtomicBool,
) -> Result<(), Errno> {
    match step(from, to, flags) {
        Err(Errno::EXDEV) if flags & !libc::RENAME_NOREPLACE == 0 => {}
        done => return done,
    }
    // Where a mount on the way or inside is the reason for EXDEV, it stays: a masked file must not
    // get a name that is not masked.
    let mount = mount_of(from.folder.as_fd(), c"")?;
    if mount_of(to.folder.as_fd(), c"")? != mount {
        return Err(Errno::EXDEV);
    }
    let mut count = 0;
    check_movable(from.folder.as_fd(), &from.name, mount, &mut count, 0)?;
    let is_there = is_replaced(from, to, flags)?;
    move_over(from, to, is_there, stop)
}

fn step(from: &RenameEnd, to: &RenameEnd, flags: u32) -> Result<(), Errno> {
    rename_at(
        from.folder.as_fd(),
        &from.name,
        to.folder.as_fd(),
        &to.name,
        flags,
    )
}

#[expect(unsafe_code, reason = "nix names only some of the flags")]
fn rename_at(
    from: BorrowedFd<'_>,
    name: &CStr,
    to: BorrowedFd<'_>,
    other: &CStr,
    flags: u32,
) -> Result<(), Errno> {
    // SAFETY: the kernel reads two strings that end with zero, and plain numbers.
    let done = unsafe {
        libc::syscall(
            libc::SYS_renameat2,
            from.as_raw_fd(),
            name.as_ptr(),
            to.as_raw_fd(),
            other.as_ptr(),
            flags,
        )
    };
    Errno::result(done).map(drop)
}

/// Returns the id of the mount that an entry is on.
#[expect(unsafe_code, reason = "nix has no statx")]
fn mount_of(folder: BorrowedFd<'_>, name: &CStr) -> Result<u64, Errno> {
    let flags = libc::AT_EMPTY_PATH | libc::AT_SYMLINK_NOFOLLOW | libc::AT_NO_AUTOMOUNT;
    // SAFETY: it consists of numbers, which may be zero.
    let mut found: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel reads a string that ends with zero, and fills the struct.
    Errno::result(unsafe {
        libc::statx(
            folder.as_raw_fd(),
            name.as_ptr(),
            flags,
            libc::STATX_MNT_ID,
            &raw mut found,
        )
    })?;
    if found.stx_mask & libc::STATX_MNT_ID == 0 {
        Err(Errno::EXDEV)
    } else {
        Ok(found.stx_mnt_id)
    }
}

fn stat(folder: BorrowedFd<'_>, name: &CStr) -> Result<FileStat, Errno> {
    fstatat(folder, name, AtFlags::AT_SYMLINK_NOFOLLOW)
}

pub(super) fn is_folder(stat: &FileStat) -> bool {
    SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == SFlag::S_IFDIR
}

fn open(folder: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    openat(
        folder,
        name,
        OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC,
        Mode::empty(),
    )
}

fn names(folder: &OwnedFd) -> Result<Vec<CString>, Errno> {
    let mut folder = Dir::from_fd(folder.try_clone().map_err(|_| Errno::EMFILE)?)?;
    let mut names = Vec::new();
    for entry in folder.iter() {
        let entry = entry?;
        if ![c".", c".."].contains(&entry.file_name()) {
            names.push(entry.file_name().to_owned());
        }
    }
    // A second listing of the same description begins where this one ended.
    drop(folder);
    Ok(names)
}

/// Checks that a folder can be moved whole: one mount, our own user, not too large.
fn check_movable(
    above: BorrowedFd<'_>,
    name: &CStr,
    mount: u64,
    count: &mut usize,
    depth: usize,
) -> Result<(), Errno> {
    let found = stat(above, name)?;
    if mount_of(above, name)? != mount {
        return Err(Errno::EXDEV);
    }
    *count += 1;
    if !is_folder(&found) {
        return Ok(());
    }
    // The new folder will belong to us.
    if found.st_uid != nix::unistd::geteuid().as_raw() || *count > MOST || depth > DEEPEST {
        return Err(Errno::EXDEV);
    }
    let folder = open(above, name)?;
    names(&folder)?
        .iter()
        .try_for_each(|name| check_movable(folder.as_fd(), name, mount, count, depth + 1))
}

/// Checks whether a rename would replace what has the new name; returns whether that is an empty
/// folder.
fn is_replaced(from: &RenameEnd, to: &RenameEnd, flags: u32) -> Result<bool, Errno> {
    match stat(to.folder.as_fd(), &to.name) {
        Err(Errno::ENOENT) => Ok(false),
        Err(errno) => Err(errno),
        Ok(_) if flags & libc::RENAME_NOREPLACE != 0 => Err(Errno::EEXIST),
        Ok(found) if !is_folder(&found) => Err(Errno::ENOTDIR),
        Ok(found) => {
            let own = stat(from.folder.as_fd(), &from.name)?;
            // Two names of one folder: nothing to do, and the kernel would have done it.
            if (own.st_dev, own.st_ino) == (found.st_dev, found.st_ino) {
                return Err(Errno::EXDEV);
            }
            if names(&open(to.folder.as_fd(), &to.name)?)?.is_empty() {
                Ok(true)
            } else {
                Err(Errno::ENOTEMPTY)
            }
        }
    }
}

/// Copies a folder, and removes the old one when the copy is complete.
fn move_over(
    from: &RenameEnd,
    to: &RenameEnd,
    is_there: bool,
    stop: &AtomicBool,
) -> Result<(), Errno> {
    let mut copy = Copy {
        stop,
        linked: HashMap::new(),
    };
    let copied = copy.folder(
        from.folder.as_fd(),
        &from.name,
        to.folder.as_fd(),
        &to.name,
        is_there,
    );
    if let Err(errno) = copied {
        // Remove the partial copy; the old folder was not touched.
        let _ = remove(to.folder.as_fd(), &to.name, is_there);
        return Err(errno);
    }
    remove(from.folder.as_fd(), &from.name, false)
}

struct Copy<'stop> {
    stop: &'stop AtomicBool,
    /// Where the first of several hard links of a file went: an open folder and a name in it.
    linked: HashMap<(u64, u64), (Rc<OwnedFd>, CString)>,
}

impl Copy<'_> {
    fn folder(
        &mut self,
        from: BorrowedFd<'_>,
        name: &CStr,
        to: BorrowedFd<'_>,
        other: &CStr,
        is_there: bool,
    ) -> Result<(), Errno> {
        let found = stat(from, name)?;
        if !is_there {
            mkdirat(to, other, Mode::S_IRWXU)?;
        }
        let (old, new) = (open(from, name)?, Rc::new(open(to, other)?));
        for entry in names(&old)? {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Errno::EINTR);
            }
            let found = stat(old.as_fd(), &entry)?;
            match SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT {
                SFlag::S_IFDIR => self.folder(old.as_fd(), &entry, new.as_fd(), &entry, false)?,
                SFlag::S_IFREG => self.file(old.as_fd(), &entry, &new, &found)?,
                SFlag::S_IFLNK => {
                    let target = readlinkat(&old, entry.as_c_str())?;
                    symlinkat(target.as_os_str(), &*new, entry.as_c_str())?;
                    times(new.as_fd(), &entry, &found)?;
                }
                SFlag::S_IFIFO => mkfifoat(
                    &*new,
                    entry.as_c_str(),
                    Mode::from_bits_truncate(found.st_mode & 0o777),
                )?,
                // A socket is its inode: a copy could not be connected to.
                _ => rename_at(
                    old.as_fd(),
                    &entry,
                    new.as_fd(),
                    &entry,
                    libc::RENAME_NOREPLACE,
                )?,
            }
        }
        copy_metadata(&new, &found)
    }

    fn file(
        &mut self,
        from: BorrowedFd<'_>,
        name: &CStr,
        to: &Rc<OwnedFd>,
        found: &FileStat,
    ) -> Result<(), Errno> {
        if found.st_nlink > 1 {
            if let Some((folder, first)) = self.linked.get(&(found.st_dev, found.st_ino)) {
                return linkat(&**folder, first.as_c_str(), &**to, name, AtFlags::empty());
            }
            self.linked.insert(
                (found.st_dev, found.st_ino),
                (Rc::clone(to), name.to_owned()),
            );
        }
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let mut old = File::from(openat(from, name, flags, Mode::empty())?);
        let flags =
            OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mut new = File::from(openat(&**to, name, flags, Mode::S_IRUSR | Mode::S_IWUSR)?);
        copy_data(&mut old, &mut new)
            .map_err(|error| error.raw_os_error().map_or(Errno::EIO, Errno::from_raw))?;
        fchmod(&new, Mode::from_bits_truncate(found.st_mode & 0o777))?;
        times(to.as_fd(), name, found)
    }
}

/// Copies a file's data, and keeps its holes.
fn copy_data(old: &mut File, new: &mut File) -> io::Result<()> {
    let length = old.metadata()?.len();
    let mut at = 0_i64;
    while let Ok(data) = lseek(&*old, at, Whence::SeekData) {
        let end = lseek(&*old, data, Whence::SeekHole)
            .unwrap_or_else(|_| i64::try_from(length).unwrap_or(i64::MAX));
        old.seek(SeekFrom::Start(data as u64))?;
        new.seek(SeekFrom::Start(data as u64))?;
        io::copy(&mut Read::by_ref(old).take((end - data) as u64), new)?;
        at = end;
    }
    new.set_len(length.max(new.metadata()?.len()))
}

/// Removes a folder with its contents, or only the contents.
fn remove(above: BorrowedFd<'_>, name: &CStr, keep: bool) -> Result<(), Errno> {
    let folder = open(above, name)?;
    for entry in names(&folder)? {
        if is_folder(&stat(folder.as_fd(), &entry)?) {
            remove(folder.as_fd(), &entry, false)?;
        } else {
            unlinkat(&folder, entry.as_c_str(), UnlinkatFlags::NoRemoveDir)?;
        }
    }
    if keep {
        Ok(())
    } else {
        unlinkat(above, name, UnlinkatFlags::RemoveDir)
    }
}

fn times(folder: BorrowedFd<'_>, name: &CStr, stat: &FileStat) -> Result<(), Errno> {
    let (read, written) = (
        TimeSpec::new(stat.st_atime, stat.st_atime_nsec),
        TimeSpec::new(stat.st_mtime, stat.st_mtime_nsec),
    );
    utimensat(
        folder,
        name,
        &read,
        &written,
        UtimensatFlags::NoFollowSymlink,
    )
}

/// Sets the mode and the times of another folder.
fn copy_metadata(folder: &OwnedFd, stat: &FileStat) -> Result<(), Errno> {
    fchmod(folder, Mode::from_bits_truncate(stat.st_mode & 0o1777))?;
    times(folder.as_fd(), c".", stat)
}

#[cfg(test)]
mod tests;
