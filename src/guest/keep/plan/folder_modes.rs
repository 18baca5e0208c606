//! Folders whose modes do not allow the changes in them.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use nix::sys::stat::FchmodatFlags;
use nix::sys::stat::Mode;
use nix::sys::stat::fchmodat;

use super::OPEN;
use super::PASSABLE;
use super::WRITABLE;
use crate::keep::Error;
use crate::keep::compare::Change;
use crate::keep::node::Node;
use crate::keep::path_entry::NameCheck;
use crate::keep::path_entry::PathEntry;
use crate::keep::project::Project;
use crate::keep::read::FoundEntry;
use crate::keep::tree::OWN;
use crate::root::split;
use podbay_wire::BytesPath;
use podbay_wire::keep::UncapturedReason;

/// Makes folders accessible in which something is to be examined or changed, the outermost first,
/// and returns their original modes. Each is noted before it is opened, since a killed process
/// would leave it open.
pub(in crate::keep) fn open_folders(
    project: &Project,
    wanted: &[Change],
    mut note: impl FnMut(&BTreeMap<BytesPath, u32>) -> Result<(), Error>,
) -> Result<BTreeMap<BytesPath, u32>, Error> {
    let mut needed: BTreeMap<&[u8], u32> = BTreeMap::new();
    for change in wanted {
        let path = change.path.as_bytes();
        if matches!(
            change.before,
            Some(Node::Unkept {
                why: UncapturedReason::Unreadable,
                ..
            })
        ) {
            *needed.entry(path).or_default() |= OPEN;
        }
        let mut folder = folder_of(path);
        let mut bits = WRITABLE;
        while let Some(above) = folder {
            let known = needed.entry(above).or_default();
            if *known & bits == bits {
                break;
            }
            *known |= bits;
            folder = folder_of(above);
            bits = PASSABLE;
        }
    }
    let mut opened = BTreeMap::new();
    for (folder, bits) in needed {
        if let Ok(PathEntry {
            folder: Some(parent),
            found: FoundEntry::Folder { stat },
        }) = PathEntry::at(project, folder, NameCheck::Plain)
            && stat.st_mode & bits != bits
        {
            opened.insert(BytesPath::from_bytes(folder), stat.st_mode & 0o7777);
            note(&opened)?;
            // A folder that cannot be opened is reported when a change in it fails.
            let mode = Mode::from_bits_truncate(stat.st_mode & 0o7777 | OPEN);
            let _ = fchmodat(
                &parent,
                split(folder).1,
                mode,
                FchmodatFlags::NoFollowSymlink,
            );
        }
    }
    Ok(opened)
}

/// Returns the folders in which something is to be changed and cannot be, with their final modes.
pub(super) fn folders_to_open(project: &Project, changes: &[Change]) -> BTreeMap<BytesPath, u32> {
    let folders: BTreeSet<&[u8]> = changes
        .iter()
        .filter_map(|change| folder_of(change.path.as_bytes()))
        .collect();
    let mut opened = BTreeMap::new();
    for folder in folders {
        if let Ok(PathEntry {
            found: FoundEntry::Folder { stat },
            ..
        }) = PathEntry::at(project, folder, NameCheck::Plain)
            && stat.st_mode & WRITABLE != WRITABLE
        {
            opened.insert(BytesPath::from_bytes(folder), stat.st_mode & 0o7777);
        }
    }
    opened
}

/// Returns the parent folder of a path; the project's own has none.
fn folder_of(path: &[u8]) -> Option<&[u8]> {
    match split(path).0 {
        b"" if path == OWN => None,
        b"" => Some(OWN),
        folder => Some(folder),
    }
}
