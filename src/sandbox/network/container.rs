//! The container that the gateway runs in: nothing of the project, no secret, nothing to write but
//! the folder of its socket.

use podbay_engine::ContainerSpec;
use podbay_engine::ImageFacts;
use podbay_engine::Labels;
use podbay_engine::Log;
use podbay_engine::Mount;
use podbay_engine::Network;
use podbay_engine::Ulimit;
use podbay_wire::EGRESS_FOLDER;
use podbay_wire::EGRESS_SOCKET;

use super::super::guest_volume_name;
use super::super::spec::GUEST_FOLDER;
use super::super::spec::MASKED_PATHS;
use super::super::spec::READONLY_PATHS;
use super::super::spec::SECCOMP;
use super::NetworkPlan;

/// Nobody on any system, and the owner of the folder that the socket is in.
pub(super) const USER: u32 = 65532;

/// A thousand tunnels that carry as fast as they can hold some 130 MiB of buffers.
const MEMORY: u64 = 256 << 20;

/// Its threads, with room for those of a resolver.
const PROCESSES: u32 = 32;

/// Each connection has two.
const OPEN_FILES: u64 = 8192;

/// How the volume of the socket is mounted: in memory, so that it needs no owner to be made and
/// cannot be filled.
pub(super) fn volume_options() -> String {
    format!("size=64k,nr_inodes=16,mode=0755,uid={USER},gid={USER},nosuid,nodev,noexec")
}

pub(super) fn container(
    name: String,
    image: &ImageFacts,
    labels: Labels,
    volume: &str,
    plan: &NetworkPlan,
) -> ContainerSpec {
    let mut entrypoint = vec![
        format!("{GUEST_FOLDER}/podbay"),
        "egress".to_owned(),
        format!("{EGRESS_FOLDER}/{EGRESS_SOCKET}"),
    ];
    for server in &plan.name_servers {
        entrypoint.extend(["--name-server".to_owned(), server.to_string()]);
    }
    let masked = MASKED_PATHS
        .iter()
        // Its resolver is the one thing of the host's network that it is told.
        .filter(|&&path| path != "/etc/resolv.conf");
    ContainerSpec {
        name,
        image: image.id.clone(),
        user: format!("{USER}:{USER}"),
        entrypoint,
        env: Vec::new(),
        hostname: "gateway".to_owned(),
        labels,
        mounts: vec![
            Mount::Volume {
                name: guest_volume_name(),
                target: GUEST_FOLDER.to_owned(),
                read_only: true,
            },
            Mount::Volume {
                name: volume.to_owned(),
                target: EGRESS_FOLDER.to_owned(),
                read_only: false,
            },
        ],
        tmpfs: Vec::new(),
        network: Network::Outward,
        memory: MEMORY,
        nano_cpus: 1_000_000_000,
        cpu_shares: 512,
        n_processes: PROCESSES,
        ulimits: vec![
            Ulimit {
                name: "core",
                limit: 0,
            },
            Ulimit {
                name: "nofile",
                limit: OPEN_FILES,
            },
        ],
        sysctls: Vec::new(),
        shm: 64 << 10,
        oom_score_adj: 400,
        seccomp: Some(SECCOMP.to_owned()),
        writable_root: false,
        masked_paths: masked.map(|&path| path.to_owned()).collect(),
        readonly_paths: READONLY_PATHS.iter().map(|&path| path.to_owned()).collect(),
        attached: true,
        auto_remove: true,
        log: Log::None,
    }
}
