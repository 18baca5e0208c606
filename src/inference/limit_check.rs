//! Checks whether the server's limits are in force.
//!
//! No guest runs in its container to read them, as in a sandbox. So they are read from the host's
//! cgroup files, where the engine runs on this machine; otherwise the engine's own report is used.

use std::fs;
use std::path::Component;
use std::path::Path;

use podbay_engine::ContainerSpec;
use podbay_engine::ContainerState;
use podbay_engine::ReportedLimits;

/// A limit this high means none; cgroup version 1 writes the largest multiple of a page.
const UNLIMITED: u64 = 1 << 60;

/// Returns warnings about requested limits that are not in force.
pub(super) fn missing(asked: &ContainerSpec, state: &ContainerState) -> Vec<String> {
    let kernel = state
        .pid
        .and_then(|pid| of_process(Path::new("/"), pid, &state.id.0));
    compare(asked, kernel.unwrap_or(state.limits))
}

fn compare(asked: &ContainerSpec, held: ReportedLimits) -> Vec<String> {
    let mut warnings = Vec::new();
    if held.memory.is_none_or(|bytes| bytes > asked.memory) {
        warnings.push("the model server's memory limit is not in force in this engine: it can use all memory of the machine".to_owned());
    }
    if held
        .n_processes
        .is_none_or(|count| count > u64::from(asked.n_processes))
    {
        warnings.push(
            "the model server's limit on processes is not in force in this engine".to_owned(),
        );
    }
    let millicores = asked.nano_cpus / 1_000_000;
    // The engine rounds to the kernel's units.
    if held
        .millicores
        .is_none_or(|found| found > millicores + millicores / 20 + 1)
    {
        warnings
            .push("the model server's processor limit is not in force in this engine".to_owned());
    }
    warnings
}

/// Reads the limits of a container from its cgroup; `None` if they are not visible. `root` is the
/// host's root folder.
fn of_process(root: &Path, pid: u32, container: &str) -> Option<ReportedLimits> {
    let groups = fs::read_to_string(root.join(format!("proc/{pid}/cgroup"))).ok()?;
    // The pid may be another machine's, or belong to another process by now.
    if container.is_empty() || !groups.contains(container) {
        return None;
    }
    let tree = root.join("sys/fs/cgroup");
    // A missing file does not mean that there is no limit.
    let file = |controller: &str, name: &str| {
        let folder = Path::new(group(&groups, controller)?)
            .strip_prefix("/")
            .ok()?;
        let is_plain = folder
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        is_plain
            .then(|| fs::read_to_string(tree.join(controller).join(folder).join(name)).ok())
            .flatten()
    };
    let (memory, n_processes, quota) = if group(&groups, "memory").is_some() {
        let quota = format!(
            "{} {}",
            file("cpu", "cpu.cfs_quota_us")?.trim(),
            file("cpu", "cpu.cfs_period_us")?.trim()
        );
        (
            file("memory", "memory.limit_in_bytes")?,
            file("pids", "pids.max")?,
            quota,
        )
    } else {
        (
            file("", "memory.max")?,
            file("", "pids.max")?,
            file("", "cpu.max")?,
        )
    };
    Some(ReportedLimits {
        memory: limit(&memory),
        n_processes: limit(&n_processes),
        millicores: millicores(&quota),
    })
}

/// Returns a controller's cgroup from /proc/PID/cgroup; version 2 has one without a name for all.
fn group<'a>(groups: &'a str, controller: &str) -> Option<&'a str> {
    groups.lines().find_map(|line| {
        let (names, path) = line.split_once(':')?.1.split_once(':')?;
        names
            .split(',')
            .any(|name| name == controller)
            .then_some(path)
    })
}

fn limit(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|&limit| limit < UNLIMITED)
}

fn millicores(quota: &str) -> Option<u64> {
    let (quota, period) = quota.trim().split_once(' ')?;
    (quota.parse::<u64>().ok()? * 1000).checked_div(period.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef";

    /// Creates cgroup files as a kernel does, and reads the limits of process 7 from them.
    #[track_caller]
    fn check(files: &[(&str, &str)], expected: Option<ReportedLimits>) {
        let root = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().expect("below the root")).expect("made");
            fs::write(path, text.replace("ID", ID)).expect("written");
        }
        // The container sees its own cgroup as the root.
        let groups = ["memory", "pids", "cpu", ""]
            .map(|controller| root.path().join("sys/fs/cgroup").join(controller));
        for group in groups {
            let _ = fs::rename(group.join("docker/of-it"), group.join("docker").join(ID));
        }
        assert_eq!(of_process(root.path(), 7, ID), expected);
    }

    #[test]
    fn both_cgroup_versions_are_read_from_the_host() {
        let first = "5:cpu,cpuacct:/docker/ID\n4:memory:/docker/ID\n3:pids:/docker/ID\n0::/\n";
        check(
            &[
                ("proc/7/cgroup", first),
                (
                    "sys/fs/cgroup/memory/docker/of-it/memory.limit_in_bytes",
                    "1073741824\n",
                ),
                ("sys/fs/cgroup/pids/docker/of-it/pids.max", "max\n"),
                (
                    "sys/fs/cgroup/cpu/docker/of-it/cpu.cfs_quota_us",
                    "150000\n",
                ),
                (
                    "sys/fs/cgroup/cpu/docker/of-it/cpu.cfs_period_us",
                    "100000\n",
                ),
            ],
            Some(ReportedLimits {
                memory: Some(1 << 30),
                n_processes: None,
                millicores: Some(1500),
            }),
        );
        check(
            &[
                ("proc/7/cgroup", "0::/docker/ID\n"),
                ("sys/fs/cgroup/docker/of-it/memory.max", "max\n"),
                ("sys/fs/cgroup/docker/of-it/pids.max", "72\n"),
                ("sys/fs/cgroup/docker/of-it/cpu.max", "max 100000\n"),
            ],
            Some(ReportedLimits {
                memory: None,
                n_processes: Some(72),
                millicores: None,
            }),
        );
    }

    #[test]
    fn an_invisible_or_foreign_cgroup_gives_no_limits() {
        check(&[("proc/8/cgroup", "0::/docker/ID\n")], None);
        check(
            &[
                ("proc/7/cgroup", "0::/\n"),
                ("sys/fs/cgroup/memory.max", "max\n"),
            ],
            None,
        );
        check(
            &[
                ("proc/7/cgroup", "0::/../docker/ID\n"),
                ("sys/fs/docker/of-it/memory.max", "max\n"),
            ],
            None,
        );
        check(
            &[
                ("proc/7/cgroup", "0::/docker/ID\n"),
                ("sys/fs/cgroup/docker/of-it/memory.max", "max\n"),
            ],
            None,
        );
    }

    #[test]
    fn model_server_limits_not_in_force_are_reported() {
        let said = |memory: Option<u64>, n_processes: Option<u64>, millicores: Option<u64>| {
            compare(
                &super::super::plan::tests::container(),
                ReportedLimits {
                    memory,
                    n_processes,
                    millicores,
                },
            )
        };
        let asked = super::super::plan::tests::container();
        let (memory, n_processes, cores) = (
            asked.memory,
            u64::from(asked.n_processes),
            asked.nano_cpus / 1_000_000,
        );
        assert_eq!(said(Some(memory), Some(n_processes), Some(cores)), [""; 0]);
        assert_eq!(said(Some(1), Some(1), Some(1)), [""; 0]);
        for (found, words) in [
            (said(Some(memory + 1), Some(1), Some(1)), "memory limit"),
            (said(Some(1), None, Some(1)), "limit on processes"),
            (said(Some(1), Some(1), Some(2 * cores)), "processor limit"),
        ] {
            assert!(
                found.len() == 1 && found[0].contains(words) && found[0].contains("not in force"),
                "{found:?}"
            );
        }
        assert_eq!(said(None, None, None).len(), 3);
    }
}
