//! The contents of a folder, for tools that survey, delete or copy it as a whole.
//!
//! Every folder is opened in its parent and no link is followed, so that nothing outside is
//! reached, whatever is exchanged meanwhile.

use std::fs::File;
use std::io;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::fcntl::openat;
use nix::fcntl::readlinkat;
use nix::sys::stat::Mode;
use nix::sys::stat::fchmod;
use nix::sys::stat::fstat;
use nix::sys::stat::mkdirat;
use nix::unistd::UnlinkatFlags;
use nix::unistd::symlinkat;
use nix::unistd::unlinkat;

use super::stop::Stop;
use super::stop::Stoppable;
use super::target_entry::refused;
use super::walk;
use super::walk::Kind;
use super::walk::Name;
use crate::root::check_regular;
use crate::root::fault;
use crate::root::join;
use podbay_wire::BytesPath;
use podbay_wire::Fault;

/// Greatest depth of folders: each level takes an open file and some stack.
const MAX_DEPTH: usize = 128;

/// Most bytes copied in one call. A command that copies is watched while it runs; a file tool is
/// not.
pub(super) const MAX_COPY: u64 = 256 * 1024 * 1024;

/// Called with a path from the project's folder, the parent folder, and the name there.
pub(super) type See<'a> = &'a mut dyn FnMut(&[u8], BorrowedFd<'_>, &Name) -> Result<(), Fault>;

/// Visits all entries of a folder recursively; `see` gets each with its path from the project's
/// folder. Returns their number.
pub(super) fn survey(
    folder: BorrowedFd<'_>,
    path: &[u8],
    stop: &Stop<'_>,
    see: See<'_>,
) -> Result<u64, Fault> {
    survey_at(folder, path, 0, stop, see)
}

fn survey_at(
    folder: BorrowedFd<'_>,
    path: &[u8],
    depth: usize,
    stop: &Stop<'_>,
    see: See<'_>,
) -> Result<u64, Fault> {
    let shown = BytesPath::from_bytes(path);
    if depth > MAX_DEPTH {
        return Err(refused(
            &shown,
            "is nested too deeply for this tool; use bash",
        ));
    }
    let names = open_folder(folder, b".")
        .and_then(|folder| walk::list(folder.as_fd(), stop))
        .map_err(|errno| fault(&shown, errno))?
        .0;
    let mut n = names.len() as u64;
    for name in &names {
        if stop.is_set() {
            return Err(Fault::Cancelled);
        }
        let inner = join(path, &name.name);
        see(&inner, folder, name)?;
        if name.kind == Kind::Folder {
            let opened = open_folder(folder, &name.name)
                .map_err(|errno| fault(&BytesPath::from_bytes(inner.clone()), errno))?;
            n += survey_at(opened.as_fd(), &inner, depth + 1, stop, see)?;
        }
    }
    Ok(n)
}

/// Deletes a folder with its contents, and counts what is gone. It is not stopped half-way: it
/// completes, or reports what could not be deleted.
pub(super) fn remove(
    folder: BorrowedFd<'_>,
    name: &[u8],
    path: &[u8],
    n_gone: &mut u64,
) -> Result<(), Fault> {
    let failed = |errno| fault(&BytesPath::from_bytes(path), errno);
    let opened = open_folder(folder, name).map_err(failed)?;
    let never = std::sync::atomic::AtomicBool::new(false);
    let (names, _) = walk::list(opened.as_fd(), &Stop::new(&never, None)).map_err(failed)?;
    for inner in &names {
        let below = join(path, &inner.name);
        if inner.kind == Kind::Folder {
            remove(opened.as_fd(), &inner.name, &below, n_gone)?;
        } else {
            match unlinkat(&opened, &*inner.name, UnlinkatFlags::NoRemoveDir) {
                // Another process was quicker.
                Ok(()) | Err(Errno::ENOENT) => *n_gone += 1,
                Err(errno) => return Err(fault(&BytesPath::from_bytes(below), errno)),
            }
        }
    }
    unlinkat(folder, name, UnlinkatFlags::RemoveDir).map_err(failed)?;
    *n_gone += 1;
    Ok(())
}

/// Copies the contents of a folder into a new one: files with their modes, links as they are.
pub(super) fn copy(
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    path: &[u8],
    left: &mut u64,
    stop: &Stop<'_>,
) -> Result<(), Fault> {
    let shown = BytesPath::from_bytes(path);
    // Opened again: a listing through this descriptor has left its position at the end.
    let names = open_folder(from, b".")
        .and_then(|folder| walk::list(folder.as_fd(), stop))
        .map_err(|errno| fault(&shown, errno))?
        .0;
    for name in &names {
        if stop.is_set() {
            return Err(Fault::Cancelled);
        }
        let inner = join(path, &name.name);
        let shown = BytesPath::from_bytes(inner.clone());
        let failed = |errno| fault(&shown, errno);
        match name.kind {
            Kind::Folder => {
                let source = open_folder(from, &name.name).map_err(failed)?;
                mkdirat(to, &*name.name, Mode::from_bits_truncate(0o700)).map_err(failed)?;
                let target = open_folder(to, &name.name).map_err(failed)?;
                copy(source.as_fd(), target.as_fd(), &inner, left, stop)?;
                keep_mode(&source, &target).map_err(failed)?;
            }
            Kind::Link => {
                let target = readlinkat(from, &*name.name).map_err(failed)?;
                symlinkat(target.as_os_str(), to, &*name.name).map_err(failed)?;
            }
            Kind::File | Kind::Other => {
                let flags = OFlag::O_RDONLY
                    | OFlag::O_NOFOLLOW
                    | OFlag::O_NONBLOCK
                    | OFlag::O_NOCTTY
                    | OFlag::O_CLOEXEC;
                let source = openat(from, &*name.name, flags, Mode::empty()).map_err(failed)?;
                let flags = OFlag::O_WRONLY
                    | OFlag::O_CREAT
                    | OFlag::O_EXCL
                    | OFlag::O_NOFOLLOW
                    | OFlag::O_CLOEXEC;
                let target = openat(to, &*name.name, flags, Mode::from_bits_truncate(0o600))
                    .map_err(failed)?;
                copy_file(&shown, &File::from(source), &File::from(target), left, stop)?;
            }
        }
    }
    Ok(())
}

/// Copies one open file into another, with its mode; subtracts the size from `left`.
pub(super) fn copy_file(
    path: &BytesPath,
    from: &File,
    mut to: &File,
    left: &mut u64,
    stop: &Stop<'_>,
) -> Result<(), Fault> {
    let stat = fstat(from).map_err(|errno| fault(path, errno))?;
    check_regular(path, &stat)?;
    let before = *left;
    // One byte more than allowed tells that there is more.
    let copied = io::copy(
        &mut io::Read::take(Stoppable::new(from, stop), before.saturating_add(1)),
        &mut to,
    )
    .and_then(|n| {
        to.flush()?;
        Ok(n)
    });
    let copied = match copied {
        Ok(copied) => copied,
        Err(_) if stop.is_cancelled() => return Err(Fault::Cancelled),
        Err(error) => {
            return Err(fault(
                path,
                error.raw_os_error().map_or(Errno::EIO, Errno::from_raw),
            ));
        }
    };
    *left = before.checked_sub(copied).ok_or_else(|| Fault::TooLarge {
        path: path.clone(),
        bytes: (stat.st_size as u64).max(copied),
        limit: MAX_COPY,
    })?;
    keep_mode(from, to).map_err(|errno| fault(path, errno))
}

/// Sets the mode without the set-user-id bits, as a write by the kernel does.
pub(super) fn keep_mode(from: impl AsFd, to: impl AsFd) -> Result<(), Errno> {
    fchmod(to, Mode::from_bits_truncate(fstat(from)?.st_mode & 0o1777))
}

pub(super) fn open_folder(folder: impl AsFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    openat(
        folder,
        name,
        OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC,
        Mode::empty(),
    )
}
