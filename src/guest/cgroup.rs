//! The limits of the sandbox and how often they were met, from the kernel's cgroup files.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

/// A limit this high is none; version 1 writes the largest multiple of a page.
const UNLIMITED: u64 = 1 << 60;

/// The cgroup files of this sandbox.
#[derive(Clone, Debug)]
pub(super) struct Cgroup {
    root: PathBuf,
    version: u8,
}

/// How often the kernel has enforced a limit since the sandbox started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    /// Processes killed because memory was full.
    pub(super) oom_kills: u64,
    /// Forks refused because the process table was full.
    pub(super) refused_forks: u64,
}

impl Cgroup {
    pub(super) fn find() -> Self {
        Self::at(Path::new("/sys/fs/cgroup"))
    }

    fn at(root: &Path) -> Self {
        let is_first = root.join("memory").is_dir() || root.join("pids").is_dir();
        let version = if root.join("cgroup.controllers").exists() {
            2
        } else {
            u8::from(is_first)
        };
        Self {
            root: root.to_owned(),
            version,
        }
    }

    /// 1 or 2; 0 without cgroup files.
    pub(super) fn version(&self) -> u8 {
        self.version
    }

    pub(super) fn memory_bytes(&self) -> Option<u64> {
        self.limit("memory/memory.limit_in_bytes", "memory.max")
    }

    /// Memory in use, including the page cache.
    pub(super) fn used_bytes(&self) -> Option<u64> {
        self.pick("memory/memory.usage_in_bytes", "memory.current")?
            .trim()
            .parse()
            .ok()
    }

    pub(super) fn n_processes(&self) -> Option<u64> {
        self.limit("pids/pids.max", "pids.max")
    }

    /// Returns whether no further process can be started.
    pub(super) fn has_no_free_process(&self) -> bool {
        let current = self
            .pick("pids/pids.current", "pids.current")
            .and_then(|text| text.trim().parse::<u64>().ok());
        matches!((current, self.n_processes()), (Some(current), Some(limit)) if current >= limit)
    }

    /// CPU limit in thousandths of a core.
    pub(super) fn millicores(&self) -> Option<u64> {
        let text = match self.version {
            1 => format!(
                "{} {}",
                self.read("cpu/cpu.cfs_quota_us")?.trim(),
                self.read("cpu/cpu.cfs_period_us")?.trim()
            ),
            _ => self.read("cpu.max")?,
        };
        let (quota, period) = text.trim().split_once(' ')?;
        let (quota, period) = (quota.parse::<u64>().ok()?, period.parse::<u64>().ok()?);
        (quota * 1000).checked_div(period)
    }

    pub(super) fn counters(&self) -> Counters {
        Counters {
            oom_kills: self.counter("memory/memory.oom_control", "memory.events", "oom_kill"),
            refused_forks: self.counter("pids/pids.events", "pids.events", "max"),
        }
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.root.join(name)).ok()
    }

    fn pick(&self, first: &str, second: &str) -> Option<String> {
        self.read(if self.version == 1 { first } else { second })
    }

    fn limit(&self, first: &str, second: &str) -> Option<u64> {
        self.pick(first, second)?
            .trim()
            .parse()
            .ok()
            .filter(|&limit| limit < UNLIMITED)
    }

    fn counter(&self, first: &str, second: &str, name: &str) -> u64 {
        let text = self.pick(first, second).unwrap_or_default();
        text.lines()
            .find_map(|line| {
                line.strip_prefix(name)?
                    .strip_prefix(' ')?
                    .trim()
                    .parse()
                    .ok()
            })
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates files in a folder of its own and reads them as a cgroup.
    #[track_caller]
    fn check(
        name: &str,
        files: &[(&str, &str)],
        expected: (u8, Option<u64>, Option<u64>, Option<u64>, u64, u64),
    ) {
        let root =
            std::env::temp_dir().join(format!("podbay-cgroup-{}-{name}", std::process::id()));
        for (file, text) in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().expect("below the root")).expect("folder");
            fs::write(path, text).expect("file");
        }
        let cgroup = Cgroup::at(&root);
        let counters = cgroup.counters();
        let found = (
            cgroup.version(),
            cgroup.memory_bytes(),
            cgroup.n_processes(),
            cgroup.millicores(),
            counters.oom_kills,
            counters.refused_forks,
        );
        fs::remove_dir_all(&root).ok();
        assert_eq!(found, expected);
    }

    #[test]
    fn version_one_files_are_read() {
        let files = [
            ("memory/memory.limit_in_bytes", "67108864\n"),
            (
                "memory/memory.oom_control",
                "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
            ),
            ("pids/pids.max", "64\n"),
            ("pids/pids.events", "max 12\n"),
            ("cpu/cpu.cfs_quota_us", "150000\n"),
            ("cpu/cpu.cfs_period_us", "100000\n"),
        ];
        check(
            "one",
            &files,
            (1, Some(67_108_864), Some(64), Some(1500), 3, 12),
        );
    }

    #[test]
    fn version_two_files_are_read() {
        let files = [
            ("cgroup.controllers", "cpu memory pids\n"),
            ("memory.max", "max\n"),
            (
                "memory.events",
                "low 0\nhigh 0\nmax 9\noom 2\noom_kill 1\noom_group_kill 0\n",
            ),
            ("pids.max", "512\n"),
            ("pids.events", "max 0\n"),
            ("cpu.max", "max 100000\n"),
        ];
        check("two", &files, (2, None, Some(512), None, 1, 0));
    }

    #[test]
    fn no_files_mean_no_limits() {
        check("none", &[("something", "")], (0, None, None, None, 0, 0));
    }

    #[test]
    fn a_full_process_table_is_seen_without_a_counter() {
        for (current, limit, is_full) in [
            ("60", "60", true),
            ("59", "60", false),
            ("60", "max", false),
        ] {
            let root = std::env::temp_dir().join(format!(
                "podbay-cgroup-{}-full-{current}-{limit}",
                std::process::id()
            ));
            fs::create_dir_all(&root).expect("folder");
            for (name, text) in [
                ("cgroup.controllers", "pids"),
                ("pids.current", current),
                ("pids.max", limit),
            ] {
                fs::write(root.join(name), text).expect("file");
            }
            let found = Cgroup::at(&root).has_no_free_process();
            fs::remove_dir_all(&root).expect("removed");
            assert_eq!(found, is_full, "{current} of {limit}");
        }
    }
}
