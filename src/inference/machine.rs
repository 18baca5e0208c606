use std::fs;
use std::path::Path;

use super::Options;
use super::nvidia;

/// Hardware facts that decide which models a machine can run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Bytes; 0 if unknown.
    pub memory: u64,
    pub gpu: Option<Gpu>,
}

/// A GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// Its name, such as `NVIDIA GeForce RTX 3090`.
    pub name: String,
    /// Bytes of memory of all GPUs together; `None` if unknown.
    pub memory: Option<u64>,
}

impl Machine {
    /// Reads the facts of this machine. The GPU's memory, which can take a moment to query, is read
    /// only if the settings name an image that may use it.
    pub fn detect(options: &Options) -> Self {
        Self::look_below(Path::new("/"), options.image.is_some())
    }

    fn look_below(root: &Path, with_gpu_memory: bool) -> Self {
        let read = |path: &str| fs::read_to_string(root.join(path)).ok();
        let total = read("proc/meminfo").and_then(|text| meminfo(&text));
        // In a container its limit counts, not the machine's memory.
        let limits = [
            "sys/fs/cgroup/memory.max",
            "sys/fs/cgroup/memory/memory.limit_in_bytes",
        ];
        let limit = limits
            .into_iter()
            .filter_map(read)
            .find_map(|text| text.trim().parse::<u64>().ok());
        let memory = [total, limit].into_iter().flatten().min().unwrap_or(0);
        Self {
            memory,
            gpu: gpu(root, with_gpu_memory),
        }
    }
}

fn meminfo(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim()
        .strip_suffix("kB")?
        .trim()
        .parse::<u64>()
        .ok()?
        .checked_mul(1024)
}

/// Finds a discrete GPU; integrated graphics are no faster than the processor.
fn gpu(root: &Path, with_memory: bool) -> Option<Gpu> {
    let nvidia = |name: String| Gpu {
        name,
        memory: with_memory.then(|| nvidia::memory(root)).flatten(),
    };
    let entries = |path: &str| {
        fs::read_dir(root.join(path))
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
    };
    for card in entries("proc/driver/nvidia/gpus") {
        let text = fs::read_to_string(card.join("information")).unwrap_or_default();
        if let Some(model) = text.lines().find_map(|line| line.strip_prefix("Model:")) {
            return Some(nvidia(
                model
                    .trim()
                    .chars()
                    .filter(|c| !c.is_control())
                    .take(60)
                    .collect(),
            ));
        }
    }
    let of_card = |card: &Path, file: &str| {
        fs::read_to_string(card.join("device").join(file))
            .ok()
            .map(|text| text.trim().to_owned())
    };
    entries("sys/class/drm").find_map(|card| match of_card(&card, "vendor")?.as_str() {
        "0x10de" => Some(nvidia("an NVIDIA card".to_owned())),
        "0x1002" => {
            let memory = of_card(&card, "mem_info_vram_total").and_then(|bytes| bytes.parse().ok());
            Some(Gpu {
                name: "an AMD card".to_owned(),
                memory,
            })
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_gpu_are_detected() {
        let root = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        };
        let detect = || Machine::look_below(root.path(), true);
        assert_eq!(detect(), Machine::default());
        write(
            "proc/meminfo",
            "MemTotal:       16384000 kB\nMemFree: 1 kB\n",
        );
        assert_eq!(detect().memory, 16_384_000 << 10);
        write("sys/fs/cgroup/memory.max", "max\n");
        assert_eq!(detect().memory, 16_384_000 << 10);
        write("sys/fs/cgroup/memory.max", "1073741824\n");
        write("sys/class/drm/card0/device/vendor", "0x8086\n");
        assert_eq!(
            detect(),
            Machine {
                memory: 1 << 30,
                gpu: None
            }
        );
        let card = |name: &str, memory| {
            Some(Gpu {
                name: name.to_owned(),
                memory,
            })
        };
        write("sys/class/drm/card1/device/vendor", "0x1002\n");
        assert_eq!(detect().gpu, card("an AMD card", None));
        write(
            "sys/class/drm/card1/device/mem_info_vram_total",
            "17163091968\n",
        );
        assert_eq!(detect().gpu, card("an AMD card", Some(17_163_091_968)));
        write(
            "proc/driver/nvidia/gpus/0/information",
            "Model: \t NVIDIA T4\nIRQ: 3\n",
        );
        assert_eq!(detect().gpu, card("NVIDIA T4", None));
    }
}
