use std::collections::hash_map::RandomState;
use std::fs::File;
use std::hash::BuildHasher;
use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;

use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::fcntl::OFlag;
use nix::fcntl::RenameFlags;
use nix::fcntl::openat;
use nix::fcntl::renameat;
use nix::fcntl::renameat2;
use nix::sys::stat::Mode;
use nix::sys::stat::SFlag;
use nix::sys::stat::fstat;
use nix::sys::stat::fstatat;
use nix::sys::stat::mkdirat;
use nix::unistd::UnlinkatFlags;
use nix::unistd::unlinkat;

use super::Workspace;
use super::contents;
use super::contents::MAX_COPY;
use super::delete_file::refuse_inside;
use super::save::Parents;
use super::seen::SeenFiles;
use super::stop::Stop;
use super::target_entry::TargetEntry;
use super::target_entry::refused;
use super::walk::Kind;
use super::walk::Name;
use crate::beneath::Links;
use crate::root::check_regular;
use crate::root::fault;
use crate::root::file_type;
use podbay_wire::BytesPath;
use podbay_wire::Change;
use podbay_wire::Changed;
use podbay_wire::CopyFile;
use podbay_wire::Fault;
use podbay_wire::FileChange;

/// Copies to a temporary name beside the destination and renames it: a reader sees nothing or all
/// of it, and a stopped copy leaves nothing behind. A named link is followed; links inside a folder
/// are copied as links.
pub(super) fn run(
    workspace: &Workspace,
    seen: &SeenFiles,
    call: &CopyFile,
    stop: &AtomicBool,
) -> Result<Changed, Fault> {
    let stop = &Stop::new(stop, None);
    let root = &workspace.root;
    let _changing = workspace.changing();
    // The source is only read: a name that must not be changed may be copied.
    let source = TargetEntry::find(root, &call.source, true, Parents::MustExist)?;
    let is_folder = file_type(&root.look(&call.source)?) == SFlag::S_IFDIR;
    if is_folder && !call.recursive {
        return Err(refused(
            &call.source,
            "is a folder; set recursive to copy it with its contents",
        ));
    }
    let flags = if is_folder {
        OFlag::O_RDONLY | OFlag::O_DIRECTORY
    } else {
        OFlag::O_RDONLY
    };
    let opened = root
        .beneath()
        .open(
            root.relative(&call.source)?.as_bytes(),
            flags,
            Links::Follow,
        )
        .map_err(|errno| root.fault(&call.source, errno))?;
    let real = root.refuse_secret(&call.source, &opened, call.protected)?;
    let entries = survey_source(call, &opened, is_folder, real.as_bytes(), stop)?;
    let mut destination =
        TargetEntry::find(root, &call.destination, call.protected, Parents::Make)?;
    refuse_itself(&call.source, real.as_bytes(), &destination)?;
    let replaced = refuse_destination(is_folder, &destination, call.overwrite)?;
    seen.refuse_stale(&destination)?;
    seen.settle()?;
    let copy = StagedCopy::beside(&destination, is_folder);
    copy.fill(&call.source, opened, real.as_bytes(), stop)?;
    copy.rename(replaced)?;
    drop(copy);
    destination.made.keep();
    seen.forget(&destination.real);
    let change = FileChange {
        path: destination.shown,
        change: Change::Copied,
        from: Some(source.shown),
        replaced,
        entries,
        ..FileChange::default()
    };
    Ok(Changed {
        files: vec![change],
        dry_run: false,
        memos: Vec::new(),
    })
}

/// Inspects everything that would be copied, so that a refusal comes before anything is created.
/// Returns the number of entries in a folder.
fn survey_source(
    call: &CopyFile,
    opened: &OwnedFd,
    is_folder: bool,
    real: &[u8],
    stop: &Stop<'_>,
) -> Result<Option<u64>, Fault> {
    let mut bytes = 0;
    let mut entries = None;
    if is_folder {
        let see = &mut |path: &[u8], folder: BorrowedFd<'_>, name: &Name| {
            refuse_inside(&call.source, path, name, call.protected)?;
            if matches!(name.kind, Kind::File | Kind::Other) {
                let path = BytesPath::from_bytes(path);
                let stat = fstatat(folder, &*name.name, AtFlags::AT_SYMLINK_NOFOLLOW)
                    .map_err(|errno| fault(&path, errno))?;
                check_regular(&path, &stat)?;
                bytes += stat.st_size as u64;
            }
            Ok(())
        };
        entries = Some(contents::survey(opened.as_fd(), real, stop, see)?);
    } else {
        let stat = fstat(opened).map_err(|errno| fault(&call.source, errno))?;
        check_regular(&call.source, &stat)?;
        bytes = stat.st_size as u64;
    }
    if bytes > MAX_COPY {
        return Err(Fault::TooLarge {
            path: call.source.clone(),
            bytes,
            limit: MAX_COPY,
        });
    }
    Ok(entries)
}

/// Refuses to copy something onto or into itself.
pub(super) fn refuse_itself(
    path: &BytesPath,
    real: &[u8],
    destination: &TargetEntry,
) -> Result<(), Fault> {
    match destination.real.strip_prefix(real) {
        Some([]) => Err(refused(path, "is its own destination; name another one")),
        Some([b'/', ..]) => Err(refused(
            path,
            format!("cannot go into itself, as {} lies in it", destination.shown),
        )),
        _ => Ok(()),
    }
}

/// Refuses an existing destination that must not be replaced; returns whether one will be replaced.
pub(super) fn refuse_destination(
    source_is_folder: bool,
    destination: &TargetEntry,
    overwrite: bool,
) -> Result<bool, Fault> {
    let Some(stat) = &destination.stat else {
        return Ok(false);
    };
    let path = &destination.path;
    let exists = |remedy: &str| Fault::Exists {
        path: path.clone(),
        remedy: remedy.to_owned(),
    };
    if destination.is_folder() {
        return Err(exists(
            "it is a folder: name a path inside it, or delete it first",
        ));
    }
    if source_is_folder {
        return Err(exists("a folder replaces no file; delete it first"));
    }
    if !overwrite {
        return Err(exists(
            "set overwrite to replace it, or name another destination",
        ));
    }
    if file_type(stat) == SFlag::S_IFREG && stat.st_mode & 0o222 == 0 {
        return Err(Fault::ReadOnly { path: path.clone() });
    }
    if file_type(stat) != SFlag::S_IFLNK {
        check_regular(path, stat)?;
    }
    Ok(true)
}

/// A copy, or another file or folder, under a temporary name; removed when it is dropped before it
/// was renamed.
pub(super) struct StagedCopy<'a> {
    destination: &'a TargetEntry,
    name: String,
    is_folder: bool,
    done: std::cell::Cell<bool>,
}

impl<'a> StagedCopy<'a> {
    pub(super) fn beside(destination: &'a TargetEntry, is_folder: bool) -> Self {
        let name = format!(
            ".podbay-{:016x}.tmp",
            RandomState::new().hash_one(&destination.name)
        );
        Self {
            destination,
            name,
            is_folder,
            done: std::cell::Cell::new(false),
        }
    }

    fn fill(
        &self,
        source: &BytesPath,
        opened: OwnedFd,
        real: &[u8],
        stop: &Stop<'_>,
    ) -> Result<(), Fault> {
        let failed = |errno| fault(&self.destination.path, errno);
        let folder = &self.destination.folder;
        let mut left = MAX_COPY;
        if self.is_folder {
            mkdirat(folder, self.name.as_str(), Mode::from_bits_truncate(0o700)).map_err(failed)?;
            let target = contents::open_folder(folder, self.name.as_bytes()).map_err(failed)?;
            contents::copy(opened.as_fd(), target.as_fd(), real, &mut left, stop)?;
            return contents::keep_mode(&opened, &target).map_err(failed);
        }
        contents::copy_file(
            source,
            &File::from(opened),
            &self.make_for(0o600)?,
            &mut left,
            stop,
        )
    }

    /// Creates the file, for the caller to fill.
    pub(super) fn make(&self) -> Result<File, Fault> {
        self.make_for(0o666)
    }

    fn make_for(&self, mode: u32) -> Result<File, Fault> {
        let flags =
            OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let made = openat(
            &self.destination.folder,
            self.name.as_str(),
            flags,
            Mode::from_bits_truncate(mode),
        );
        made.map(File::from)
            .map_err(|errno| fault(&self.destination.path, errno))
    }

    pub(super) fn rename(&self, replaces: bool) -> Result<(), Fault> {
        let TargetEntry {
            path, folder, name, ..
        } = self.destination;
        let plain = || renameat(folder, self.name.as_str(), folder, name.as_slice());
        let renamed = if replaces {
            plain()
        } else {
            match renameat2(
                folder,
                self.name.as_str(),
                folder,
                name.as_slice(),
                RenameFlags::RENAME_NOREPLACE,
            ) {
                // Some file systems know no rename flags.
                Err(Errno::EINVAL | Errno::ENOSYS) => plain(),
                other => other,
            }
        };
        match renamed {
            Err(Errno::EEXIST | Errno::ENOTEMPTY | Errno::EISDIR) => {
                Err(Fault::Changed { path: path.clone() })
            }
            other => {
                other.map_err(|errno| fault(path, errno))?;
                self.done.set(true);
                Ok(())
            }
        }
    }
}

impl Drop for StagedCopy<'_> {
    fn drop(&mut self) {
        if self.done.get() {
            return;
        }
        let folder = &self.destination.folder;
        if self.is_folder {
            // Only what this call created is in it.
            let _ = contents::remove(
                folder.as_fd(),
                self.name.as_bytes(),
                self.name.as_bytes(),
                &mut 0,
            );
        } else {
            let _ = unlinkat(folder, self.name.as_str(), UnlinkatFlags::NoRemoveDir);
        }
    }
}
