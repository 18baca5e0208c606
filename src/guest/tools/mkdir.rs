use nix::errno::Errno;
use nix::sys::stat::Mode;
use nix::sys::stat::SFlag;
use nix::sys::stat::mkdirat;

use super::Workspace;
use super::save::Parents;
use super::target_entry::TargetEntry;
use super::target_entry::refused;
use crate::root::fault;
use crate::root::file_type;
use podbay_wire::Change;
use podbay_wire::Changed;
use podbay_wire::Fault;
use podbay_wire::FileChange;
use podbay_wire::Mkdir;

/// Creates a folder and its missing parents, or none of them. An existing folder is a success.
pub(super) fn run(workspace: &Workspace, call: &Mkdir) -> Result<Changed, Fault> {
    let root = &workspace.root;
    let _changing = workspace.changing();
    let mut target_entry = TargetEntry::find(root, &call.path, call.protected, Parents::Make)?;
    let change = match &target_entry.stat {
        None => {
            match mkdirat(
                &target_entry.folder,
                target_entry.name.as_slice(),
                Mode::from_bits_truncate(0o777),
            ) {
                Err(Errno::EEXIST) => {
                    return Err(Fault::Changed {
                        path: call.path.clone(),
                    });
                }
                other => other.map_err(|errno| fault(&call.path, errno))?,
            }
            target_entry.made.keep();
            Change::Created
        }
        Some(_) if target_entry.is_folder() => Change::Kept,
        Some(stat) if file_type(stat) == SFlag::S_IFLNK => {
            // A link to a folder counts as a folder; anything else fails here with the reason.
            root.open_directory(&call.path)?;
            Change::Kept
        }
        Some(_) => {
            return Err(refused(
                &call.path,
                "already exists and is not a folder; name another one, or delete it first",
            ));
        }
    };
    let change = FileChange {
        path: target_entry.shown,
        change,
        entries: Some(0),
        ..FileChange::default()
    };
    Ok(Changed {
        files: vec![change],
        dry_run: false,
        memos: Vec::new(),
    })
}
