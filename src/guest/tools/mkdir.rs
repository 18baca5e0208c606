use nix::errno::Errno;
use nix::sys::stat::Mode;
use nix::sys::stat::SFlag;
use nix::sys::stat::mkdirat;

use super::Workspace;
use super::save::Parents;
use super::spot::Spot;
use super::spot::refused;
use crate::root::fault;
use crate::root::file_type;
use podbay_wire::Change;
use podbay_wire::Changed;
use podbay_wire::Fault;
use podbay_wire::FileChange;
use podbay_wire::Mkdir;

/// Makes a folder and those above it, or none of them. One that is there already is what was
/// wanted.
pub(super) fn run(workspace: &Workspace, call: &Mkdir) -> Result<Changed, Fault> {
    let root = &workspace.root;
    let _changing = workspace.changing();
    let mut spot = Spot::find(root, &call.path, call.protected, Parents::Make)?;
    let change = match &spot.stat {
        None => {
            match mkdirat(
                &spot.folder,
                spot.name.as_slice(),
                Mode::from_bits_truncate(0o777),
            ) {
                Err(Errno::EEXIST) => {
                    return Err(Fault::Changed {
                        path: call.path.clone(),
                    });
                }
                other => other.map_err(|errno| fault(&call.path, errno))?,
            }
            spot.made.keep();
            Change::Created
        }
        Some(_) if spot.is_folder() => Change::Kept,
        Some(stat) if file_type(stat) == SFlag::S_IFLNK => {
            // A link to a folder does as well as a folder; anything else says why it does not.
            root.open_directory(&call.path)?;
            Change::Kept
        }
        Some(_) => {
            return Err(refused(
                &call.path,
                "is there already and is no folder; name another one, or delete it first",
            ));
        }
    };
    let change = FileChange {
        path: spot.shown,
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
