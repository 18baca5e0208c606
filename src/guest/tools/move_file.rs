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
use super::seen::Seen;
use super::spot::Spot;
use super::spot::refused;
use super::stop::Stop;
use crate::root::fault;
use podbay_wire::Change;
use podbay_wire::Changed;
use podbay_wire::Fault;
use podbay_wire::FileChange;
use podbay_wire::MoveFile;

pub(super) fn run(
    workspace: &Workspace,
    seen: &Seen,
    call: &MoveFile,
    stop: &AtomicBool,
) -> Result<Changed, Fault> {
    let stop = &Stop::new(stop, None);
    let root = &workspace.root;
    let _changing = workspace.changing();
    let source = Spot::find(root, &call.source, call.protected, Parents::MustExist)?;
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
    let mut destination = Spot::find(root, &call.destination, call.protected, Parents::Make)?;
    refuse_itself(&call.source, &source.real, &destination)?;
    let replaced = refuse_destination(source.is_folder(), &destination, call.overwrite)?;
    refuse_other_name(&source, &destination)?;
    seen.refuse_stale(&destination)?;
    // One that goes by what the kernel says of it is another to it under another name.
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
            // Some file systems know no flags.
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
                seen.look_again(&destination);
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

/// Refuses two names of one file: the kernel leaves both of them where they are and calls that a
/// success.
fn refuse_other_name(source: &Spot, destination: &Spot) -> Result<(), Fault> {
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
