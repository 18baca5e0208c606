use std::fs;
use std::path::Path;

/// What decides which models a machine can run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Bytes; 0 where nobody says.
    pub memory: u64,
    /// What it is, such as `NVIDIA GeForce RTX 3090`.
    pub gpu: Option<String>,
}

impl Machine {
    /// Looks at this machine.
    pub fn look() -> Self {
        Self::look_below(Path::new("/"))
    }

    fn look_below(root: &Path) -> Self {
        let read = |path: &str| fs::read_to_string(root.join(path)).ok();
        let total = read("proc/meminfo").and_then(|text| meminfo(&text));
        // In a container the limit counts, not the machine.
        let limits = ["sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"];
        let limit = limits.into_iter().filter_map(read).find_map(|text| text.trim().parse::<u64>().ok());
        let memory = [total, limit].into_iter().flatten().min().unwrap_or(0);
        Self { memory, gpu: gpu(root) }
    }
}

fn meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Finds a card that computes; graphics in the processor are no faster than the processor itself.
fn gpu(root: &Path) -> Option<String> {
    let entries = |path: &str| fs::read_dir(root.join(path)).into_iter().flatten().flatten().map(|entry| entry.path());
    for card in entries("proc/driver/nvidia/gpus") {
        let text = fs::read_to_string(card.join("information")).unwrap_or_default();
        if let Some(model) = text.lines().find_map(|line| line.strip_prefix("Model:")) {
            return Some(model.trim().chars().filter(|c| !c.is_control()).take(60).collect());
        }
    }
    let vendors = entries("sys/class/drm").filter_map(|card| fs::read_to_string(card.join("device/vendor")).ok());
    vendors.into_iter().find_map(|vendor| match vendor.trim() {
        "0x10de" => Some("an NVIDIA card".to_owned()),
        "0x1002" => Some("an AMD card".to_owned()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_card_are_found() {
        let root = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        };
        assert_eq!(Machine::look_below(root.path()), Machine::default());
        write("proc/meminfo", "MemTotal:       16384000 kB\nMemFree: 1 kB\n");
        assert_eq!(Machine::look_below(root.path()).memory, 16_384_000 << 10);
        write("sys/fs/cgroup/memory.max", "max\n");
        assert_eq!(Machine::look_below(root.path()).memory, 16_384_000 << 10);
        write("sys/fs/cgroup/memory.max", "1073741824\n");
        write("sys/class/drm/card0/device/vendor", "0x8086\n");
        assert_eq!(Machine::look_below(root.path()), Machine { memory: 1 << 30, gpu: None });
        write("sys/class/drm/card1/device/vendor", "0x1002\n");
        assert_eq!(Machine::look_below(root.path()).gpu.as_deref(), Some("an AMD card"));
        write("proc/driver/nvidia/gpus/0/information", "Model: \t NVIDIA T4\nIRQ: 3\n");
        assert_eq!(Machine::look_below(root.path()).gpu.as_deref(), Some("NVIDIA T4"));
    }
}
