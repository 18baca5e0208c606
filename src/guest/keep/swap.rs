//! How one file or link is replaced, made or removed, only if it is still the one that was looked
//! at.
//!
//! Looking and acting are two calls to the kernel, and somebody may save the file in between. So
//! the new file takes the place of the old one in one step that leaves the old one beside it, where
//! it is looked at again: what is not the expected one goes back. What a kill leaves lying beside
//! the place is told by its name, and settled by [`settle`].

use std::fs::File;
use std::io;
use std::io::Seek;
use std::io::SeekFrom;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;

use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::fcntl::OFlag;
use nix::fcntl::RenameFlags;
use nix::fcntl::openat;
use nix::fcntl::renameat;
use nix::fcntl::renameat2;
use nix::sys::stat::FileStat;
use nix::sys::stat::Mode;
use nix::sys::stat::fchmod;
use nix::sys::stat::fstat;
use nix::sys::stat::fstatat;
use nix::sys::stat::futimens;
use nix::sys::time::TimeSpec;
use nix::unistd::Gid;
use nix::unistd::UnlinkatFlags;
use nix::unistd::fchown;
use nix::unistd::fdatasync;
use nix::unistd::fsync;
use nix::unistd::symlinkat;
use nix::unistd::unlinkat;

use super::holes;
use super::read::Found;
use super::unheld::Facts;
use crate::tools::save::errno_of;
use crate::tools::save::is_same;
use podbay_wire::BytesPath;

/// Runs of zeros of this length become holes.
const BLOCK: usize = 64 * 1024;

/// A name in an open folder, and the names beside it that belong to its change.
pub(super) struct Spot<'a> {
    folder: BorrowedFd<'a>,
    name: &'a [u8],
    /// Not complete yet.
    part: String,
    /// Complete, and in exchange for it what stood at the name before.
    new: String,
    /// What is about to be removed.
    old: String,
}

#[cfg(test)]
thread_local! {
    /// Stands for a file system that knows no flags of a rename.
    pub(super) static IS_WITHOUT_FLAGS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Whether a name is one that an application which was killed may have left beside its place.
pub(super) fn is_leftover(name: &[u8]) -> bool {
    let Some((stem, end)) = name
        .strip_prefix(b".podbay-")
        .and_then(|rest| rest.split_last_chunk())
    else {
        return false;
    };
    let is_end = [b".new", b".old"].contains(&end) || end == b"part";
    let mut parts = stem.split(|byte| *byte == b'-');
    let is_token = parts
        .next()
        .is_some_and(|token| token.len() == 16 && token.iter().all(u8::is_ascii_hexdigit));
    let number = parts
        .next()
        .map(|number| number.strip_suffix(b".").unwrap_or(number));
    is_end
        && is_token
        && parts.next().is_none()
        && number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
}

/// Returns the name beside its place of what changes places with what stands there.
pub(super) fn beside(token: &str, number: usize) -> String {
    format!(".podbay-{token}-{number}.new")
}

/// What comes to stand at a name.
pub(super) enum Content {
    File {
        content: Vec<u8>,
        mode: u32,
        is_flushed: bool,
    },
    /// What is read from another file, with its time.
    Copied {
        from: File,
        facts: Facts,
    },
    Link {
        target: BytesPath,
    },
}

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Swapped {
    Done,
    /// It was not what was expected, and is there as before.
    Changed,
    /// It was not what was expected, and could not go back to its name: it lies beside it.
    KeptAs(String),
}

impl<'a> Spot<'a> {
    pub(super) fn new(folder: BorrowedFd<'a>, name: &'a [u8], token: &str, number: usize) -> Self {
        let part = format!(".podbay-{token}-{number}.part");
        let old = format!(".podbay-{token}-{number}.old");
        Self {
            folder,
            name,
            part,
            new: beside(token, number),
            old,
        }
    }

    /// Puts something in the place of what was looked at; `None`: of nothing.
    pub(super) fn put(
        &self,
        content: &Content,
        looked_at: Option<&FileStat>,
    ) -> Result<Swapped, Errno> {
        let made = self.make(content, looked_at);
        if made.is_err() {
            self.unlink(&self.part);
        }
        made?;
        // What has that name is complete: whoever comes after a kill can tell it from what was
        // exchanged for it.
        renameat(
            self.folder,
            self.part.as_str(),
            self.folder,
            self.new.as_str(),
        )?;
        let put = match looked_at {
            None => self.put_anew(),
            Some(stat) => self.exchange(stat),
        };
        if !matches!(put, Ok(Swapped::Done | Swapped::KeptAs(_))) {
            self.unlink(&self.new);
        }
        put
    }

    /// Gives the file that was looked at another mode; it stays the same file, with all its names.
    pub(super) fn set_mode(&self, mode: u32, looked_at: &FileStat) -> Result<Swapped, Errno> {
        let flags = OFlag::O_RDONLY
            | OFlag::O_NOFOLLOW
            | OFlag::O_NONBLOCK
            | OFlag::O_NOCTTY
            | OFlag::O_CLOEXEC;
        let file = match openat(self.folder, self.name, flags, Mode::empty()) {
            Err(Errno::ENOENT | Errno::ELOOP) => return Ok(Swapped::Changed),
            other => other?,
        };
        if !is_same(&fstat(&file)?, looked_at) {
            return Ok(Swapped::Changed);
        }
        fchmod(&file, Mode::from_bits_truncate(mode & 0o1777)).map(|()| Swapped::Done)
    }

    /// Removes what was looked at.
    pub(super) fn remove(&self, looked_at: &FileStat) -> Result<Swapped, Errno> {
        match self.rename(
            self.name,
            self.old.as_bytes(),
            RenameFlags::RENAME_NOREPLACE,
        ) {
            Err(Errno::ENOENT) => return Ok(Swapped::Changed),
            // Some file systems know no flags.
            Err(Errno::EINVAL | Errno::ENOSYS) => {
                if !self.is_still(self.name, looked_at) {
                    return Ok(Swapped::Changed);
                }
                return unlinkat(self.folder, self.name, UnlinkatFlags::NoRemoveDir)
                    .map(|()| Swapped::Done);
            }
            other => other?,
        }
        if self.is_still(self.old.as_bytes(), looked_at) {
            return unlinkat(self.folder, self.old.as_str(), UnlinkatFlags::NoRemoveDir)
                .map(|()| Swapped::Done);
        }
        Ok(self.take_back())
    }

    /// Makes something at a name that is nobody else's: whatever has that name is complete.
    pub(super) fn make_whole(&self, content: &Content) -> Result<(), Errno> {
        let made = self
            .make(content, None)
            .and_then(|()| renameat(self.folder, self.part.as_str(), self.folder, self.name));
        if made.is_err() {
            self.unlink(&self.part);
        }
        made
    }

    /// Puts what lies ready beside its place there, where nothing stands.
    pub(super) fn put_ready(&self) -> Result<Swapped, Errno> {
        self.put_anew()
    }

    /// What stands here and what lies beside it change places, whatever the two are.
    pub(super) fn change_places(&self) -> Result<(), Errno> {
        self.rename(self.new.as_bytes(), self.name, RenameFlags::RENAME_EXCHANGE)
    }

    /// Whether what lies beside its place is what was looked at.
    pub(super) fn is_beside(&self, looked_at: &FileStat) -> bool {
        self.is_still(self.new.as_bytes(), looked_at)
    }

    pub(super) fn unlink_part(&self) {
        self.unlink(&self.part);
    }

    /// Clears up what a removal that was killed left beside its place; what is nobody's but
    /// somebody else's goes back there.
    pub(super) fn settle_removed(
        &self,
        is_from: impl Fn(&Found) -> bool,
    ) -> Result<Swapped, Errno> {
        let old = Found::at(self.folder, self.old.as_bytes())?;
        if matches!(old, Found::Nothing) {
            return Ok(Swapped::Done);
        }
        if !is_from(&old) {
            return Ok(self.take_back());
        }
        self.unlink(&self.old);
        Ok(Swapped::Done)
    }

    /// The same for any change.
    pub(super) fn settle(
        &self,
        is_from: impl Fn(&Found) -> bool,
        is_to: impl Fn(&Found) -> bool,
    ) -> Result<Swapped, Errno> {
        self.unlink(&self.part);
        let removed = self.settle_removed(&is_from)?;
        if removed != Swapped::Done {
            return Ok(removed);
        }
        let new = Found::at(self.folder, self.new.as_bytes())?;
        if matches!(new, Found::Nothing) {
            return Ok(Swapped::Done);
        }
        if !is_from(&new) && !is_to(&new) {
            // It was exchanged for what was complete, and is somebody's change of that very moment.
            if !is_to(&Found::at(self.folder, self.name)?) {
                return Ok(Swapped::KeptAs(self.new.clone()));
            }
            self.rename(self.new.as_bytes(), self.name, RenameFlags::RENAME_EXCHANGE)?;
            self.unlink(&self.new);
            return Ok(Swapped::Changed);
        }
        self.unlink(&self.new);
        Ok(Swapped::Done)
    }

    fn put_anew(&self) -> Result<Swapped, Errno> {
        match self.rename(
            self.new.as_bytes(),
            self.name,
            RenameFlags::RENAME_NOREPLACE,
        ) {
            Err(Errno::EEXIST) => Ok(Swapped::Changed),
            Err(Errno::EINVAL | Errno::ENOSYS) => {
                match fstatat(self.folder, self.name, AtFlags::AT_SYMLINK_NOFOLLOW) {
                    Err(Errno::ENOENT) => {
                        renameat(self.folder, self.new.as_str(), self.folder, self.name)
                            .map(|()| Swapped::Done)
                    }
                    _ => Ok(Swapped::Changed),
                }
            }
            other => other.map(|()| Swapped::Done),
        }
    }

    fn exchange(&self, looked_at: &FileStat) -> Result<Swapped, Errno> {
        match self.rename(self.new.as_bytes(), self.name, RenameFlags::RENAME_EXCHANGE) {
            Err(Errno::ENOENT) => return Ok(Swapped::Changed),
            Err(Errno::EINVAL | Errno::ENOSYS) => {
                if !self.is_still(self.name, looked_at) {
                    return Ok(Swapped::Changed);
                }
                return renameat(self.folder, self.new.as_str(), self.folder, self.name)
                    .map(|()| Swapped::Done);
            }
            other => other?,
        }
        if self.is_still(self.new.as_bytes(), looked_at) {
            return unlinkat(self.folder, self.new.as_str(), UnlinkatFlags::NoRemoveDir)
                .map(|()| Swapped::Done);
        }
        match self.rename(self.new.as_bytes(), self.name, RenameFlags::RENAME_EXCHANGE) {
            Ok(()) => Ok(Swapped::Changed),
            // Our file was taken away from there: then its place is free for the one that was.
            Err(_) => match self.rename(
                self.new.as_bytes(),
                self.name,
                RenameFlags::RENAME_NOREPLACE,
            ) {
                Ok(()) => Ok(Swapped::Changed),
                Err(_) => Ok(Swapped::KeptAs(self.new.clone())),
            },
        }
    }

    /// Gives what was about to be removed its name back.
    fn take_back(&self) -> Swapped {
        match self.rename(
            self.old.as_bytes(),
            self.name,
            RenameFlags::RENAME_NOREPLACE,
        ) {
            Err(Errno::ENOENT) | Ok(()) => Swapped::Changed,
            Err(_) => Swapped::KeptAs(self.old.clone()),
        }
    }

    fn make(&self, content: &Content, looked_at: Option<&FileStat>) -> Result<(), Errno> {
        match content {
            Content::Link { target } => {
                symlinkat(target.as_path(), self.folder, self.part.as_str())
            }
            Content::File {
                content,
                mode,
                is_flushed,
            } => {
                let mut file = self.begin(looked_at)?;
                fill(&mut file, content).map_err(|error| errno_of(&error))?;
                fchmod(file.as_fd(), Mode::from_bits_truncate(mode & 0o1777))?;
                if *is_flushed {
                    fdatasync(&file)
                } else {
                    Ok(())
                }
            }
            Content::Copied { from, facts } => {
                let file = self.begin(looked_at)?;
                holes::copy(from, &file, facts.n_bytes as i64).map_err(|error| errno_of(&error))?;
                // Somebody has written to it meanwhile.
                if !facts.are_of_open(from)? {
                    return Err(Errno::ESTALE);
                }
                fchmod(file.as_fd(), Mode::from_bits_truncate(facts.mode & 0o1777))?;
                let changed = TimeSpec::new(facts.changed.0, facts.changed.1);
                futimens(&file, &TimeSpec::UTIME_OMIT, &changed)?;
                // With its time, by which it is known again.
                fsync(&file)
            }
        }
    }

    /// Begins a file beside its place.
    fn begin(&self, looked_at: Option<&FileStat>) -> Result<File, Errno> {
        let flags =
            OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        // Private until it has its mode: that one may be 0600.
        let file = File::from(openat(
            self.folder,
            self.part.as_str(),
            flags,
            Mode::from_bits_truncate(0o600),
        )?);
        if let Some(old) = looked_at
            && fstat(&file)?.st_gid != old.st_gid
        {
            // A group that we are not in cannot be given; the file is then of our own.
            let _ = fchown(&file, None, Some(Gid::from_raw(old.st_gid)));
        }
        Ok(file)
    }

    fn is_still(&self, name: &[u8], looked_at: &FileStat) -> bool {
        fstatat(self.folder, name, AtFlags::AT_SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| is_same(&stat, looked_at))
    }

    fn rename(&self, from: &[u8], to: &[u8], flags: RenameFlags) -> Result<(), Errno> {
        #[cfg(test)]
        if IS_WITHOUT_FLAGS.get() {
            return Err(Errno::EINVAL);
        }
        renameat2(self.folder, from, self.folder, to, flags)
    }

    fn unlink(&self, name: &str) {
        let _ = unlinkat(self.folder, name, UnlinkatFlags::NoRemoveDir);
    }
}

/// Writes the content, with holes where it has long runs of zeros.
fn fill(file: &mut File, content: &[u8]) -> io::Result<()> {
    for block in content.chunks(BLOCK) {
        if block.len() == BLOCK && block.iter().all(|byte| *byte == 0) {
            file.seek(SeekFrom::Current(BLOCK as i64))?;
        } else {
            file.write_all(block)?;
        }
    }
    file.set_len(content.len() as u64)
}
