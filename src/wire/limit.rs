//! Limits in words, which both ends use.

use std::fmt;

use super::Limit;

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Time { ms } => {
                write!(f, "it ran longer than the limit of {} s", ms.div_ceil(1000))
            }
            Self::Memory { bytes } => write!(
                f,
                "out of memory, the limit of `sandbox.memory` is {}",
                size(bytes)
            ),
            Self::Processes { count } => write!(
                f,
                "it ran into the limit of {count} processes in the sandbox, `sandbox.pids`"
            ),
            Self::FileSize { bytes } => write!(
                f,
                "a file reached {}, the limit of `sandbox.file_size`",
                size(bytes)
            ),
            Self::Disk { bytes } => {
                write!(
                    f,
                    "the project, /tmp and the home folder have grown by more than {} in this session, the limit of `sandbox.disk`",
                    size(bytes)
                )
            }
            Self::Files { count } => {
                write!(
                    f,
                    "the project, /tmp and the home folder have gained more than {count} files in this session, the limit of `sandbox.disk_files`"
                )
            }
            Self::FreeSpace { bytes } => {
                write!(
                    f,
                    "less than {} is free on the disk of the project, which `sandbox.disk_floor` keeps for the host",
                    size(bytes)
                )
            }
            Self::FreeFiles { count } => {
                write!(
                    f,
                    "fewer than {count} more files fit on the disk of the project, which are kept for the host"
                )
            }
        }
    }
}

/// Returns an exact number of bytes: `1 byte`, `4096 bytes`.
pub fn n_bytes(bytes: u64) -> String {
    format!("{bytes} byte{}", if bytes == 1 { "" } else { "s" })
}

/// Returns a rounded size with one decimal: `23.5 GiB`, `512 bytes`.
pub fn size(bytes: u64) -> String {
    const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match UNITS.into_iter().find(|(_, shift)| bytes >> shift > 0) {
        Some((unit, shift)) => format!("{:.1} {unit}", bytes as f64 / (1_u64 << shift) as f64),
        None => n_bytes(bytes),
    }
}
