use std::fs::File;
use std::io;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::time::Instant;

use nix::errno::Errno;
use nix::unistd::Whence;
use nix::unistd::lseek;
use nix::unistd::symlinkat;

use super::untrusted_folder::FileKind;
use super::untrusted_folder::UntrustedFolder;
use super::untrusted_folder::failed;
use podbay_wire::Fault;

const MAX_DEPTH: usize = 500;

/// Bytes that are copied between two looks at the clock.
const PIECE: u64 = 8 << 20;

/// The unit in which `stat` counts blocks.
const BLOCK: u64 = 512;

/// How much may be written for repositories of a session, all of them together. What exceeds it
/// stays in the project, under a name that git does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyAllowance {
    pub bytes: u64,
    pub files: u64,
}

impl Default for CopyAllowance {
    fn default() -> Self {
        Self {
            bytes: 2 << 30,
            files: 500_000,
        }
    }
}

impl CopyAllowance {
    /// Takes bytes and files from the allowance, if there are enough left.
    fn take(&mut self, bytes: u64, files: u64) -> Result<(), CopyError> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or(CopyError::TooMuch)?;
        self.files = self.files.checked_sub(files).ok_or(CopyError::TooMuch)?;
        Ok(())
    }
}

/// Why something was not copied completely.
#[derive(Debug, PartialEq)]
pub(super) enum CopyError {
    /// More than the allowance.
    TooMuch,
    Late,
    Fault(Fault),
}

impl From<Fault> for CopyError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Copies a tree that a session made, whatever it holds. Holes in files stay holes, and removed
/// copies still count against the allowance: so a session cannot fill the user's disk or keep it
/// busy.
pub(super) struct BoundedCopy<'a> {
    from: &'a UntrustedFolder,
    to: &'a UntrustedFolder,
    room: CopyAllowance,
    end: Instant,
    /// Pipes and the like, and unreadable entries.
    n_passed_over: u64,
}

impl<'a> BoundedCopy<'a> {
    pub(super) fn new(
        from: &'a UntrustedFolder,
        to: &'a UntrustedFolder,
        room: CopyAllowance,
        end: Instant,
    ) -> Self {
        Self {
            from,
            to,
            room,
            end,
            n_passed_over: 0,
        }
    }

    /// Copies the entry of this name in a folder, and returns how many entries below it were
    /// skipped.
    pub(super) fn copy(
        &mut self,
        parent: &[u8],
        name: &[u8],
        new: &[u8],
    ) -> Result<u64, CopyError> {
        self.n_passed_over = 0;
        let parent = self
            .from
            .through(parent)
            .map_err(|errno| failed("open", parent, &errno.into()))?;
        // Nothing of a large tree is written if all of it would exceed the allowance.
        measure(&parent, name, &mut self.room.clone(), 0)?;
        self.go(&parent, name, (self.to, new), 0)?;
        Ok(self.n_passed_over)
    }

    /// Copies folder by folder: the full path of a deep entry would be too long for the kernel.
    fn go(
        &mut self,
        from: &UntrustedFolder,
        name: &[u8],
        (to, new): (&UntrustedFolder, &[u8]),
        depth: usize,
    ) -> Result<(), CopyError> {
        self.room.take(0, 1)?;
        if depth > MAX_DEPTH {
            return Err(CopyError::TooMuch);
        }
        if Instant::now() > self.end {
            return Err(CopyError::Late);
        }
        match from.kind(name) {
            Some(FileKind::Folder) => {
                to.make(new)?;
                let _ = from.unlock(name);
                let to = to
                    .descend(new)
                    .map_err(|errno| failed("open", new, &errno.into()))?;
                let Ok((from, names)) = listed(from, name) else {
                    self.n_passed_over += 1;
                    return Ok(());
                };
                for name in names {
                    self.go(&from, &name, (&to, &name), depth + 1)?;
                }
            }
            Some(FileKind::Link) => {
                let made = from
                    .link_target(name)
                    .and_then(|target| symlinkat(target.as_slice(), to, new));
                if let Err(errno @ (Errno::ENOSPC | Errno::EDQUOT)) = made {
                    return Err(failed("copy", name, &errno.into()).into());
                }
                self.n_passed_over += u64::from(made.is_err());
            }
            Some(FileKind::File) => {
                let Ok(Some((file, stat))) = from.open_file(name) else {
                    self.n_passed_over += 1;
                    return Ok(());
                };
                // Nothing in there is to be executed by accident.
                let copy = to.create(new, 0o600)?;
                self.file(&file, &copy, stat.st_size as u64, name)?;
            }
            Some(FileKind::Special) | None => self.n_passed_over += 1,
        }
        Ok(())
    }

    fn file(
        &mut self,
        mut file: &File,
        mut copy: &File,
        size: u64,
        name: &[u8],
    ) -> Result<(), CopyError> {
        let wrong = |error: io::Error| match error.kind() {
            // All of it is holes, and the other file system supports only smaller files.
            io::ErrorKind::FileTooLarge => CopyError::TooMuch,
            _ => failed("copy", name, &error).into(),
        };
        let mut at = 0;
        while let Some((start, end)) = data_from(file, at, size) {
            file.seek(SeekFrom::Start(start))
                .and_then(|_| copy.seek(SeekFrom::Start(start)))
                .map_err(wrong)?;
            at = start;
            while at < end {
                let piece = PIECE.min(end - at);
                self.room.take(piece, 0)?;
                if Instant::now() > self.end {
                    return Err(CopyError::Late);
                }
                if io::copy(&mut file.take(piece), &mut copy).map_err(wrong)? < piece {
                    // It was truncated meanwhile.
                    return Ok(());
                }
                at += piece;
            }
        }
        if at < size {
            copy.set_len(size).map_err(wrong)
        } else {
            Ok(())
        }
    }
}

/// Returns the range of the next data of a file; `None`: the rest is a hole.
fn data_from(file: &File, at: u64, size: u64) -> Option<(u64, u64)> {
    if at >= size {
        return None;
    }
    let seek = |at: u64, whence| lseek(file, at as i64, whence).map(|at| at as u64);
    match seek(at, Whence::SeekData) {
        Ok(start) if start < size => Some((
            start,
            seek(start, Whence::SeekHole).map_or(size, |end| end.min(size)),
        )),
        Ok(_) | Err(Errno::ENXIO) => None,
        // The file system does not support it.
        Err(_) => Some((at, size)),
    }
}

/// Takes the size of a tree from an allowance, as far as it can be told without reading.
fn measure(
    from: &UntrustedFolder,
    name: &[u8],
    room: &mut CopyAllowance,
    depth: usize,
) -> Result<(), CopyError> {
    room.take(0, 1)?;
    if depth > MAX_DEPTH {
        return Err(CopyError::TooMuch);
    }
    let Ok(stat) = from.stat(name) else {
        return Ok(());
    };
    match super::untrusted_folder::kind(&stat) {
        FileKind::Folder => {
            let _ = from.unlock(name);
            let Ok((from, names)) = listed(from, name) else {
                return Ok(());
            };
            names
                .iter()
                .try_for_each(|name| measure(&from, name, room, depth + 1))
        }
        FileKind::File => room.take((stat.st_size as u64).min(stat.st_blocks as u64 * BLOCK), 0),
        FileKind::Link | FileKind::Special => Ok(()),
    }
}

fn listed(from: &UntrustedFolder, name: &[u8]) -> Result<(UntrustedFolder, Vec<Vec<u8>>), Errno> {
    let folder = from.descend(name)?;
    let names = folder
        .names(b".")?
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    Ok((folder, names))
}
