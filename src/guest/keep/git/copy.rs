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

use super::folder::Folder;
use super::folder::Kind;
use super::folder::failed;
use podbay_wire::Fault;

const MAX_DEPTH: usize = 500;

/// How much is copied at once: between two such pieces somebody looks at the clock.
const PIECE: u64 = 8 << 20;

/// What a file system counts its blocks in, for everybody who asks.
const BLOCK: u64 = 512;

/// How much may be written where repositories go that a session made, all of them together. What
/// goes over it stays in the project, under a name that git does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    pub bytes: u64,
    pub files: u64,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            bytes: 2 << 30,
            files: 500_000,
        }
    }
}

impl Room {
    /// Takes some of it, if there is that much.
    fn take(&mut self, bytes: u64, files: u64) -> Result<(), Stop> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or(Stop::TooMuch)?;
        self.files = self.files.checked_sub(files).ok_or(Stop::TooMuch)?;
        Ok(())
    }
}

/// Why something was not copied to its end.
#[derive(Debug, PartialEq)]
pub(super) enum Stop {
    /// It is more than there is room for.
    TooMuch,
    Late,
    Fault(Fault),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Takes along what a session made, whatever it is. A hole in a file stays one, and what was
/// written counts also where it is removed again: so a session cannot have the person's disk
/// filled, or kept busy.
pub(super) struct Copy<'a> {
    from: &'a Folder,
    to: &'a Folder,
    room: Room,
    end: Instant,
    /// Pipes and the like, and what could not be read.
    n_passed_over: u64,
}

impl<'a> Copy<'a> {
    pub(super) fn new(from: &'a Folder, to: &'a Folder, room: Room, end: Instant) -> Self {
        Self {
            from,
            to,
            room,
            end,
            n_passed_over: 0,
        }
    }

    /// Copies whatever has this name in a folder, and returns how much of it was passed over.
    pub(super) fn copy(&mut self, parent: &[u8], name: &[u8], new: &[u8]) -> Result<u64, Stop> {
        self.n_passed_over = 0;
        let parent = self
            .from
            .through(parent)
            .map_err(|errno| failed("open", parent, &errno.into()))?;
        // Of a large one nothing is written where all of it would be too much.
        measure(&parent, name, &mut self.room.clone(), 0)?;
        self.go(&parent, name, (self.to, new), 0)?;
        Ok(self.n_passed_over)
    }

    /// Goes from folder to folder: with all that is above it the path of something deep down would
    /// be too long for the kernel.
    fn go(
        &mut self,
        from: &Folder,
        name: &[u8],
        (to, new): (&Folder, &[u8]),
        depth: usize,
    ) -> Result<(), Stop> {
        self.room.take(0, 1)?;
        if depth > MAX_DEPTH {
            return Err(Stop::TooMuch);
        }
        if Instant::now() > self.end {
            return Err(Stop::Late);
        }
        match from.kind(name) {
            Some(Kind::Folder) => {
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
            Some(Kind::Link) => {
                let made = from
                    .link_target(name)
                    .and_then(|target| symlinkat(target.as_slice(), to, new));
                if let Err(errno @ (Errno::ENOSPC | Errno::EDQUOT)) = made {
                    return Err(failed("copy", name, &errno.into()).into());
                }
                self.n_passed_over += u64::from(made.is_err());
            }
            Some(Kind::File) => {
                let Ok(Some((file, stat))) = from.open_file(name) else {
                    self.n_passed_over += 1;
                    return Ok(());
                };
                // Nothing in there is to be run by accident.
                let copy = to.create(new, 0o600)?;
                self.file(&file, &copy, stat.st_size as u64, name)?;
            }
            Some(Kind::Special) | None => self.n_passed_over += 1,
        }
        Ok(())
    }

    fn file(
        &mut self,
        mut file: &File,
        mut copy: &File,
        size: u64,
        name: &[u8],
    ) -> Result<(), Stop> {
        let wrong = |error: io::Error| match error.kind() {
            // It is all holes, of which the other file system takes less.
            io::ErrorKind::FileTooLarge => Stop::TooMuch,
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
                    return Err(Stop::Late);
                }
                if io::copy(&mut file.take(piece), &mut copy).map_err(wrong)? < piece {
                    // Somebody made it shorter.
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

/// Returns where the next bytes of a file are that are no hole; `None`: there are none.
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
        // A file system that does not know.
        Err(_) => Some((at, size)),
    }
}

/// Takes as much room as something will need, as far as that can be told without reading it.
fn measure(from: &Folder, name: &[u8], room: &mut Room, depth: usize) -> Result<(), Stop> {
    room.take(0, 1)?;
    if depth > MAX_DEPTH {
        return Err(Stop::TooMuch);
    }
    let Ok(stat) = from.stat(name) else {
        return Ok(());
    };
    match super::folder::kind(&stat) {
        Kind::Folder => {
            let _ = from.unlock(name);
            let Ok((from, names)) = listed(from, name) else {
                return Ok(());
            };
            names
                .iter()
                .try_for_each(|name| measure(&from, name, room, depth + 1))
        }
        Kind::File => room.take((stat.st_size as u64).min(stat.st_blocks as u64 * BLOCK), 0),
        Kind::Link | Kind::Special => Ok(()),
    }
}

fn listed(from: &Folder, name: &[u8]) -> Result<(Folder, Vec<Vec<u8>>), Errno> {
    let folder = from.descend(name)?;
    let names = folder
        .names(b".")?
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    Ok((folder, names))
}
