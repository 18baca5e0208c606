//! Replaces, makes or removes one file or link, only if it is still the one that was examined.
//!
//! Looking and acting are two system calls, and another program may save the file in between. So
//! the new file takes the place of the old one in one step that leaves the old one beside it
//! (`RENAME_EXCHANGE`), where it is examined again: an unexpected one is moved back. Leftovers of a
//! kill are recognized by their names, and handled by [`SwapTarget::settle`].

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

use super::read::FoundEntry;
use super::sparse_copy;
use super::uncaptured::FileFacts;
use crate::tools::save::errno_of;
use crate::tools::save::is_same;
use podbay_wire::BytesPath;

/// Runs of zeros of this length become holes.
const BLOCK: usize = 64 * 1024;

/// A name in an open folder, and the temporary names beside it.
pub(super) struct SwapTarget<'a> {
    folder: BorrowedFd<'a>,
    name: &'a [u8],
    /// Incomplete.
    part: String,
    /// The complete new entry; after the exchange, the old one.
    new: String,
    /// The entry that is about to be removed.
    old: String,
}

#[cfg(test)]
thread_local! {
    /// Simulates a file system without flags for `renameat2`.
    pub(super) static IS_WITHOUT_FLAGS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Whether a name is a temporary one of a killed application.
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

/// Returns the temporary name of what is exchanged with the entry.
pub(super) fn beside(token: &str, number: usize) -> String {
    format!(".podbay-{token}-{number}.new")
}

/// The new content of a name.
pub(super) enum NewContent {
    File {
        content: Vec<u8>,
        mode: u32,
        is_flushed: bool,
    },
    /// A copy of another file, with its time.
    Copied {
        from: File,
        facts: FileFacts,
    },
    Link {
        target: BytesPath,
    },
}

/// The outcome of a swap.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SwapOutcome {
    Done,
    /// The entry was not the expected one, and is there as before.
    Changed,
    /// The entry was not the expected one, and could not be moved back: it is kept under this name.
    KeptAs(String),
}

impl<'a> SwapTarget<'a> {
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

    /// Replaces the examined entry; `None`: there was none.
    pub(super) fn put(
        &self,
        content: &NewContent,
        looked_at: Option<&FileStat>,
    ) -> Result<SwapOutcome, Errno> {
        let made = self.make(content, looked_at);
        if made.is_err() {
            self.unlink(&self.part);
        }
        made?;
        // A file of that name is complete: after a kill it can be told from the one that was
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
        if !matches!(put, Ok(SwapOutcome::Done | SwapOutcome::KeptAs(_))) {
            self.unlink(&self.new);
        }
        put
    }

    /// Sets the mode of the examined file; it stays the same inode, with all its hard links.
    pub(super) fn set_mode(&self, mode: u32, looked_at: &FileStat) -> Result<SwapOutcome, Errno> {
        let flags = OFlag::O_RDONLY
            | OFlag::O_NOFOLLOW
            | OFlag::O_NONBLOCK
            | OFlag::O_NOCTTY
            | OFlag::O_CLOEXEC;
        let file = match openat(self.folder, self.name, flags, Mode::empty()) {
            Err(Errno::ENOENT | Errno::ELOOP) => return Ok(SwapOutcome::Changed),
            other => other?,
        };
        if !is_same(&fstat(&file)?, looked_at) {
            return Ok(SwapOutcome::Changed);
        }
        fchmod(&file, Mode::from_bits_truncate(mode & 0o1777)).map(|()| SwapOutcome::Done)
    }

    /// Removes the examined entry.
    pub(super) fn remove(&self, looked_at: &FileStat) -> Result<SwapOutcome, Errno> {
        match self.rename(
            self.name,
            self.old.as_bytes(),
            RenameFlags::RENAME_NOREPLACE,
        ) {
            Err(Errno::ENOENT) => return Ok(SwapOutcome::Changed),
            // Some file systems support no flags.
            Err(Errno::EINVAL | Errno::ENOSYS) => {
                if !self.is_still(self.name, looked_at) {
                    return Ok(SwapOutcome::Changed);
                }
                return unlinkat(self.folder, self.name, UnlinkatFlags::NoRemoveDir)
                    .map(|()| SwapOutcome::Done);
            }
            other => other?,
        }
        if self.is_still(self.old.as_bytes(), looked_at) {
            return unlinkat(self.folder, self.old.as_str(), UnlinkatFlags::NoRemoveDir)
                .map(|()| SwapOutcome::Done);
        }
        Ok(self.restore_removed())
    }

    /// Makes a complete entry at a name of our own.
    pub(super) fn make_whole(&self, content: &NewContent) -> Result<(), Errno> {
        let made = self
            .make(content, None)
            .and_then(|()| renameat(self.folder, self.part.as_str(), self.folder, self.name));
        if made.is_err() {
            self.unlink(&self.part);
        }
        made
    }

    /// Moves the ready entry to its place, where nothing exists.
    pub(super) fn put_ready(&self) -> Result<SwapOutcome, Errno> {
        self.put_anew()
    }

    /// Exchanges the entry with the one beside it, whatever the two are.
    pub(super) fn change_places(&self) -> Result<(), Errno> {
        self.rename(self.new.as_bytes(), self.name, RenameFlags::RENAME_EXCHANGE)
    }

    /// Whether the entry beside is the examined one.
    pub(super) fn is_beside(&self, looked_at: &FileStat) -> bool {
        self.is_still(self.new.as_bytes(), looked_at)
    }

    pub(super) fn unlink_part(&self) {
        self.unlink(&self.part);
    }

    /// Cleans up after a killed removal; an entry of another program is moved back.
    pub(super) fn settle_removed(
        &self,
        is_from: impl Fn(&FoundEntry) -> bool,
    ) -> Result<SwapOutcome, Errno> {
        let old = FoundEntry::at(self.folder, self.old.as_bytes())?;
        if matches!(old, FoundEntry::Nothing) {
            return Ok(SwapOutcome::Done);
        }
        if !is_from(&old) {
            return Ok(self.restore_removed());
        }
        self.unlink(&self.old);
        Ok(SwapOutcome::Done)
    }

    /// Cleans up after any killed change.
    pub(super) fn settle(
        &self,
        is_from: impl Fn(&FoundEntry) -> bool,
        is_to: impl Fn(&FoundEntry) -> bool,
    ) -> Result<SwapOutcome, Errno> {
        self.unlink(&self.part);
        let removed = self.settle_removed(&is_from)?;
        if removed != SwapOutcome::Done {
            return Ok(removed);
        }
        let new = FoundEntry::at(self.folder, self.new.as_bytes())?;
        if matches!(new, FoundEntry::Nothing) {
            return Ok(SwapOutcome::Done);
        }
        if !is_from(&new) && !is_to(&new) {
            // It was exchanged for the complete new file, and is another program's change of that
            // very moment.
            if !is_to(&FoundEntry::at(self.folder, self.name)?) {
                return Ok(SwapOutcome::KeptAs(self.new.clone()));
            }
            self.rename(self.new.as_bytes(), self.name, RenameFlags::RENAME_EXCHANGE)?;
            self.unlink(&self.new);
            return Ok(SwapOutcome::Changed);
        }
        self.unlink(&self.new);
        Ok(SwapOutcome::Done)
    }

    fn put_anew(&self) -> Result<SwapOutcome, Errno> {
        match self.rename(
            self.new.as_bytes(),
            self.name,
            RenameFlags::RENAME_NOREPLACE,
        ) {
            Err(Errno::EEXIST) => Ok(SwapOutcome::Changed),
            Err(Errno::EINVAL | Errno::ENOSYS) => {
                match fstatat(self.folder, self.name, AtFlags::AT_SYMLINK_NOFOLLOW) {
                    Err(Errno::ENOENT) => {
                        renameat(self.folder, self.new.as_str(), self.folder, self.name)
                            .map(|()| SwapOutcome::Done)
                    }
                    _ => Ok(SwapOutcome::Changed),
                }
            }
            other => other.map(|()| SwapOutcome::Done),
        }
    }

    fn exchange(&self, looked_at: &FileStat) -> Result<SwapOutcome, Errno> {
        match self.rename(self.new.as_bytes(), self.name, RenameFlags::RENAME_EXCHANGE) {
            Err(Errno::ENOENT) => return Ok(SwapOutcome::Changed),
            Err(Errno::EINVAL | Errno::ENOSYS) => {
                if !self.is_still(self.name, looked_at) {
                    return Ok(SwapOutcome::Changed);
                }
                return renameat(self.folder, self.new.as_str(), self.folder, self.name)
                    .map(|()| SwapOutcome::Done);
            }
            other => other?,
        }
        if self.is_still(self.new.as_bytes(), looked_at) {
            return unlinkat(self.folder, self.new.as_str(), UnlinkatFlags::NoRemoveDir)
                .map(|()| SwapOutcome::Done);
        }
        match self.rename(self.new.as_bytes(), self.name, RenameFlags::RENAME_EXCHANGE) {
            Ok(()) => Ok(SwapOutcome::Changed),
            // Our file was removed there, so the name is free for the old one.
            Err(_) => match self.rename(
                self.new.as_bytes(),
                self.name,
                RenameFlags::RENAME_NOREPLACE,
            ) {
                Ok(()) => Ok(SwapOutcome::Changed),
                Err(_) => Ok(SwapOutcome::KeptAs(self.new.clone())),
            },
        }
    }

    /// Renames the entry that was about to be removed back.
    fn restore_removed(&self) -> SwapOutcome {
        match self.rename(
            self.old.as_bytes(),
            self.name,
            RenameFlags::RENAME_NOREPLACE,
        ) {
            Err(Errno::ENOENT) | Ok(()) => SwapOutcome::Changed,
            Err(_) => SwapOutcome::KeptAs(self.old.clone()),
        }
    }

    fn make(&self, content: &NewContent, looked_at: Option<&FileStat>) -> Result<(), Errno> {
        match content {
            NewContent::Link { target } => {
                symlinkat(target.as_path(), self.folder, self.part.as_str())
            }
            NewContent::File {
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
            NewContent::Copied { from, facts } => {
                let file = self.begin(looked_at)?;
                sparse_copy::copy(from, &file, facts.n_bytes as i64)
                    .map_err(|error| errno_of(&error))?;
                // It was written to meanwhile.
                if !facts.are_of_open(from)? {
                    return Err(Errno::ESTALE);
                }
                fchmod(file.as_fd(), Mode::from_bits_truncate(facts.mode & 0o1777))?;
                let changed = TimeSpec::new(facts.changed.0, facts.changed.1);
                futimens(&file, &TimeSpec::UTIME_OMIT, &changed)?;
                // With its time, by which it is recognized again.
                fsync(&file)
            }
        }
    }

    /// Starts a temporary file.
    fn begin(&self, looked_at: Option<&FileStat>) -> Result<File, Errno> {
        let flags =
            OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        // Private until it has its mode, which may be 0600.
        let file = File::from(openat(
            self.folder,
            self.part.as_str(),
            flags,
            Mode::from_bits_truncate(0o600),
        )?);
        if let Some(old) = looked_at
            && fstat(&file)?.st_gid != old.st_gid
        {
            // A group that we are not a member of cannot be set; the file then has our own.
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

/// Writes the content, with holes for long runs of zeros.
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
