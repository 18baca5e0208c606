//! Folders that are created on the way to a new file.

use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use nix::sys::stat::mkdirat;
use nix::unistd::UnlinkatFlags;
use nix::unistd::unlinkat;

use super::target_entry::refused;
use crate::beneath::Links;
use crate::root::Root;
use crate::root::fault;
use crate::root::join;
use crate::root::with_slashes;
use podbay_wire::BytesPath;
use podbay_wire::Fault;

/// Folders created for a file, the outermost first, each with its parent; removed again if the file
/// was not written.
#[derive(Debug, Default)]
pub(super) struct MadeFolders(Vec<(OwnedFd, Vec<u8>)>);

impl MadeFolders {
    /// Keeps the folders: the file was written.
    pub(super) fn keep(&mut self) {
        self.0.clear();
    }
}

impl Drop for MadeFolders {
    fn drop(&mut self) {
        for (folder, name) in self.0.iter().rev() {
            let _ = unlinkat(folder, name.as_slice(), UnlinkatFlags::RemoveDir);
        }
    }
}

/// Creates the missing folders of `parent`; each prefix is resolved anew, so that links on the way
/// stay beneath.
///
/// A missing folder that the path leaves again by `..` is not created: it would stay empty.
pub(super) fn make_folders(
    root: &Root,
    path: &BytesPath,
    parent: &[u8],
    made: &mut MadeFolders,
) -> Result<OwnedFd, Fault> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY;
    let failed = |errno| fault(path, errno);
    let mut here = root
        .beneath()
        .open(b"", flags, Links::Follow)
        .map_err(failed)?;
    let mut prefix = Vec::new();
    let names: Vec<&[u8]> = parent
        .split(|byte| *byte == b'/')
        .filter(|name| !name.is_empty())
        .collect();
    for (at, name) in names.iter().copied().enumerate() {
        prefix = join(&prefix, name);
        here = match root.beneath().open(&prefix, flags, Links::Follow) {
            Err(Errno::ENOENT) if names[at..].contains(&&b".."[..]) => {
                return Err(root.fault(path, Errno::ENOENT));
            }
            Err(Errno::ENOENT) => {
                refuse_backslash(path, name)?;
                if root.only_checks() {
                    return Err(Fault::OnlyChecked);
                }
                match mkdirat(&here, name, Mode::from_bits_truncate(0o777)) {
                    Ok(()) => made.0.push((here, name.to_vec())),
                    // Another process created it, or a dangling link has the name; opening it
                    // tells.
                    Err(Errno::EEXIST) => {}
                    Err(errno) => return Err(failed(errno)),
                }
                root.beneath()
                    .open(&prefix, flags, Links::Follow)
                    .map_err(|errno| root.fault(path, errno))?
            }
            other => other.map_err(|errno| root.fault(path, errno))?,
        };
    }
    Ok(here)
}

/// Refuses to create a name with a backslash: a Windows path was probably meant. An existing one is
/// accepted.
pub(super) fn refuse_backslash(path: &BytesPath, name: &[u8]) -> Result<(), Fault> {
    match with_slashes(path).filter(|_| name.contains(&b'\\')) {
        Some(slashed) => Err(refused(
            path,
            format!(
                "a backslash is not a separator here but part of the name, and nothing has this name; write {slashed}. Nothing was changed; a name \
                 that is to have a backslash in it can be made with a command"
            ),
        )),
        None => Ok(()),
    }
}
