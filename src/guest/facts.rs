//! Facts about the sandbox, which the guest reports in its hello.

use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use nix::net::if_::InterfaceFlags;
use nix::unistd::AccessFlags;

use super::cgroup::Cgroup;
use super::disk::FreeSpace;
use super::gate;
use super::mounts;
use super::network;
use podbay_wire::BytesPath;
use podbay_wire::message::DiskBegan;
use podbay_wire::message::Facts;
use podbay_wire::message::MAX_MOUNTS;
use podbay_wire::protected_name;

/// Most names of the workspace that are reported.
const MAX_NAMES: usize = 256;

/// Most names that are read before the first ones are picked.
const MAX_READ: usize = 100_000;

/// `on_disk` are the folders of the session that take space on disks.
pub(super) fn find(workspace: &Path, on_disk: &[PathBuf], cgroup: &Cgroup) -> Facts {
    let mut names: Vec<BytesPath> = fs::read_dir(workspace)
        .into_iter()
        .flatten()
        .flatten()
        .take(MAX_READ)
        .map(|entry| BytesPath::from_bytes(entry.file_name().into_vec()))
        .collect();
    names.sort_unstable();
    names.truncate(MAX_NAMES);
    names.shrink_to_fit();
    let folder = fs::metadata(workspace);
    Facts {
        uid: nix::unistd::geteuid().as_raw(),
        gid: nix::unistd::getegid().as_raw(),
        cgroup: cgroup.version(),
        memory_bytes: cgroup.memory_bytes(),
        n_processes: cgroup.n_processes(),
        millicores: cgroup.millicores(),
        workspace: folder
            .as_ref()
            .map_or((0, 0), |folder| (folder.dev(), folder.ino())),
        workspace_owner: folder
            .as_ref()
            .map_or((0, 0), |folder| (folder.uid(), folder.gid())),
        workspace_writable: nix::unistd::access(workspace, AccessFlags::W_OK).is_ok(),
        networked: is_networked(),
        disk: began(on_disk),
        workspace_names: names,
        mounts: mounts::below(workspace)
            .into_iter()
            .take(MAX_MOUNTS)
            .collect(),
        foreign: mounts::foreign_below(workspace)
            .into_iter()
            .filter(|path| protected_name(path).is_none())
            .take(MAX_MOUNTS)
            .collect(),
        exec_gate: gate::probe_exec_gate(),
        no_names: network::no_names().map(str::to_owned),
    }
}

fn began(folders: &[PathBuf]) -> Option<DiskBegan> {
    let room = FreeSpace::of_all(folders)?;
    let at = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
    Some(DiskBegan {
        at,
        bytes: room.bytes,
        files: room.files,
    })
}

/// Returns whether an interface besides loopback is up; an unreadable one counts as up.
fn is_networked() -> bool {
    let Ok(mut interfaces) = nix::ifaddrs::getifaddrs() else {
        return true;
    };
    interfaces.any(|interface| {
        interface.flags.contains(InterfaceFlags::IFF_UP)
            && !interface.flags.contains(InterfaceFlags::IFF_LOOPBACK)
    })
}
