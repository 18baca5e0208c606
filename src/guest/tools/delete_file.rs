use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicBool;

use nix::errno::Errno;
use nix::unistd::UnlinkatFlags;
use nix::unistd::unlinkat;

use super::Workspace;
use super::contents;
use super::save::Parents;
use super::seen::SeenFiles;
use super::stop::Stop;
use super::target_entry::TargetEntry;
use super::target_entry::is_rooted;
use super::target_entry::refused;
use super::walk::Name;
use crate::root::fault;
use crate::root::file_type;
use podbay_wire::BytesPath;
use podbay_wire::Change;
use podbay_wire::Changed;
use podbay_wire::DeleteFile;
use podbay_wire::Fault;
use podbay_wire::FileChange;
use podbay_wire::protected_name;

pub(super) fn run(
    workspace: &Workspace,
    seen: &SeenFiles,
    call: &DeleteFile,
    stop: &AtomicBool,
) -> Result<Changed, Fault> {
    let stop = &Stop::new(stop, None);
    let _changing = workspace.changing();
    let target_entry = TargetEntry::find(
        &workspace.root,
        &call.path,
        call.protected,
        Parents::MustExist,
    )?;
    let stat = target_entry.there(&workspace.root)?;
    target_entry.refuse_rooted()?;
    let failed = |errno| fault(&call.path, errno);
    let entries = if target_entry.is_folder() {
        let folder =
            contents::open_folder(&target_entry.folder, &target_entry.name).map_err(failed)?;
        let n = contents::survey(
            folder.as_fd(),
            &target_entry.real,
            stop,
            &mut |path, _: BorrowedFd<'_>, name| {
                refuse_inside(&call.path, path, name, call.protected)
            },
        )?;
        if n > 0 && !call.recursive {
            return Err(refused(
                &call.path,
                format!("is a folder with {n} entries in it; set recursive to delete them too"),
            ));
        }
        seen.refuse_stale_below(workspace, &target_entry.real)?;
        seen.settle()?;
        let mut n_gone = 0;
        contents::remove(target_entry.folder.as_fd(), &target_entry.name, &target_entry.real, &mut n_gone).map_err(|fault| {
            let n_left = n.saturating_sub(n_gone);
            refused(
                &call.path,
                format!(
                    "could not be deleted as a whole: {fault}. {n_gone} of the {n} entries in it are gone for good, and {n_left} are left, as is \
                     the folder itself; list_directory shows which"
                ),
            )
        })?;
        Some(n)
    } else {
        // A file without any write bit was made read-only on purpose; a link always has all of
        // them.
        if file_type(stat) == nix::sys::stat::SFlag::S_IFREG && stat.st_mode & 0o222 == 0 {
            return Err(Fault::ReadOnly {
                path: call.path.clone(),
            });
        }
        seen.refuse_stale(&target_entry)?;
        seen.settle()?;
        match unlinkat(
            &target_entry.folder,
            target_entry.name.as_slice(),
            UnlinkatFlags::NoRemoveDir,
        ) {
            Err(Errno::ENOENT) => {
                return Err(Fault::Changed {
                    path: call.path.clone(),
                });
            }
            other => other.map_err(failed)?,
        }
        None
    };
    seen.forget(&target_entry.real);
    let change = FileChange {
        path: target_entry.shown,
        change: Change::Deleted,
        entries,
        ..FileChange::default()
    };
    Ok(Changed {
        files: vec![change],
        dry_run: false,
        memos: Vec::new(),
    })
}

/// Refuses to delete a folder as a whole where an entry in it is protected: that name was not asked
/// about.
pub(super) fn refuse_inside(
    asked: &BytesPath,
    path: &[u8],
    name: &Name,
    protected: bool,
) -> Result<(), Fault> {
    let path = BytesPath::from_bytes(path);
    if is_rooted(&name.name) {
        return Err(refused(
            asked,
            format!("contains {path}, which belongs to git or to Podbay and cannot be deleted"),
        ));
    }
    if protected_name(&path).is_some() && !(protected && protected_name(asked).is_some()) {
        return Err(Fault::Protected {
            path: asked.clone(),
            name: path,
        });
    }
    Ok(())
}
