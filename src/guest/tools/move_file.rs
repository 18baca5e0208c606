use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicBool;

use nix::errno::Errno;
use nix::fcntl::RenameFlags;
use nix::fcntl::renameat;
use nix::fcntl::renameat2;

use super::Workspace;
use super::contents;
use super::copy_file::refuse_destination;
use super::copy_file::refuse_itself;
use super::delete_file::refuse_inside;
use super::save::Parents;
use super::seen::SeenFiles;
use super::stop::Stop;
use super::target_entry::TargetEntry;
use super::target_entry::refused;
use crate::root::fault;
use podbay_wire::Change;
use podbay_wire::Changed;
use podbay_wire::Fault;
use podbay_wire::FileChange;
use podbay_wire::MoveFile;

pub(super) fn run(
    workspace: &Workspace,
    seen: &SeenFiles,
    call: &MoveFile,
    stop: &AtomicBool,
) -> Result<Changed, Fault> {
    let stop = &Stop::new(stop, None);
    let root = &workspace.root;
    let _changing = workspace.changing();
    let source = TargetEntry::find(root, &call.source, call.protected, Parents::MustExist)?;
    source.there(root)?;
    source.refuse_rooted()?;
    let entries = if source.is_folder() {
        let folder = contents::open_folder(&source.folder, &source.name)
            .map_err(|errno| fault(&call.source, errno))?;
        let see = &mut |path: &[u8], _: BorrowedFd<'_>, name: &_| {
            refuse_inside(&call.source, path, name, call.protected)
        };
        Some(contents::survey(folder.as_fd(), &source.real, stop, see)?)
    } else {
        None
    };
    let mut destination =
        TargetEntry::find(root, &call.destination, call.protected, Parents::Make)?;
    refuse_itself(&call.source, &source.real, &destination)?;
    let replaced = refuse_destination(source.is_folder(), &destination, call.overwrite)?;
    refuse_other_name(&source, &destination)?;
    seen.refuse_stale(&destination)?;
    // A file known by metadata alone has another mark under another name.
    let is_known = seen.last(&source.real).is_some() && seen.refuse_stale(&source).is_ok();
    seen.settle()?;
    let (from, to) = (source.name.as_slice(), destination.name.as_slice());
    let renamed = if replaced {
        renameat(&source.folder, from, &destination.folder, to)
    } else {
        match renameat2(
            &source.folder,
            from,
            &destination.folder,
            to,
            RenameFlags::RENAME_NOREPLACE,
        ) {
            // Some file systems know no rename flags.
            Err(Errno::EINVAL | Errno::ENOSYS) => {
                renameat(&source.folder, from, &destination.folder, to)
            }
            other => other,
        }
    };
    match renamed {
        Ok(()) => {
            destination.made.keep();
            seen.moved(&source.real, &destination.real);
            if is_known {
                seen.record_move(&destination);
            }
        }
        Err(Errno::EEXIST | Errno::ENOTEMPTY) => {
            return Err(Fault::Changed {
                path: call.destination.clone(),
            });
        }
        Err(Errno::ENOENT) => {
            return Err(Fault::Changed {
                path: call.source.clone(),
            });
        }
        Err(Errno::EXDEV) => {
            return Err(refused(
                &call.source,
                "cannot be renamed to there in one step; copy it and delete it, as `mv` does",
            ));
        }
        Err(errno) => return Err(fault(&call.source, errno)),
    }
    let change = FileChange {
        path: destination.shown,
        change: Change::Moved,
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

/// Refuses two names of one file (hard links): the kernel would leave both in place and report
/// success.
fn refuse_other_name(source: &TargetEntry, destination: &TargetEntry) -> Result<(), Fault> {
    let (Some(from), Some(to)) = (&source.stat, &destination.stat) else {
        return Ok(());
    };
    if (from.st_dev, from.st_ino) == (to.st_dev, to.st_ino) && from.st_nlink > 1 {
        let problem = format!(
            "and {} are two names of one file already; delete the one that is not needed",
            destination.shown
        );
        return Err(refused(&source.path, problem));
    }
    Ok(())
}
