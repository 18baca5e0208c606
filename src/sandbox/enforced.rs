//! Whether the limits that were asked for are in force: an engine takes them all, and not every one
//! can keep them.

use super::Spec;
use podbay_event::ByteSize;
use podbay_wire::message::DiskLimits;
use podbay_wire::message::Facts;
use podbay_wire::message::kept_free;

/// Compares what was asked for with what the guest read in its cgroup files, and says what is
/// missing.
pub(super) fn missing(spec: &Spec, facts: &Facts) -> Vec<String> {
    let mut warnings = compare(spec.memory(), spec.n_processes(), spec.millicores(), facts);
    warnings.extend(floor(spec.disk, facts));
    warnings.extend(facts.no_names.as_deref().map(no_names));
    warnings
}

/// Says what can be kept free of the project's disk where that is less than what was asked for.
pub(super) fn floor(asked: DiskLimits, facts: &Facts) -> Option<String> {
    let free = facts.disk?.bytes;
    let kept = kept_free(asked.floor, free);
    (kept < asked.floor).then(|| {
        format!(
            "`sandbox.disk_floor` is {}, and {} of the project's disk is free: only {} can be kept for the host, so that small work still can be done",
            ByteSize::new(asked.floor).rounded(),
            ByteSize::new(free).rounded(),
            ByteSize::new(kept).rounded()
        )
    })
}

fn no_names(problem: &str) -> String {
    let problem: String = problem
        .chars()
        .filter(|c| !c.is_control())
        .take(200)
        .collect();
    format!(
        "the sandbox has no name server ({problem}): programs that know nothing of proxies reach no host"
    )
}

fn compare(memory: u64, n_processes: u32, millicores: u64, facts: &Facts) -> Vec<String> {
    let mut warnings = Vec::new();
    if facts.memory_bytes.is_none_or(|bytes| bytes > memory) {
        warnings.push("the memory limit is not in force in this engine: a command can use all memory of the machine".to_owned());
    }
    if facts
        .n_processes
        .is_none_or(|count| count > u64::from(n_processes))
    {
        warnings.push("the limit on processes is not in force in this engine".to_owned());
    }
    // The engine rounds to what the kernel can count.
    if facts
        .millicores
        .is_none_or(|found| found > millicores + millicores / 20 + 1)
    {
        warnings.push("the processor limit is not in force in this engine".to_owned());
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_wire::message::DiskBegan;

    #[track_caller]
    fn check(
        memory_bytes: Option<u64>,
        n_processes: Option<u64>,
        millicores: Option<u64>,
        expected: &[&str],
    ) {
        let facts = Facts {
            memory_bytes,
            n_processes,
            millicores,
            ..Facts::default()
        };
        let said = compare(1 << 30, 512, 2000, &facts);
        assert_eq!(said.len(), expected.len(), "{said:?}");
        assert!(
            said.iter()
                .zip(expected)
                .all(|(said, words)| said.contains(words)),
            "{said:?}"
        );
    }

    #[test]
    fn a_floor_that_cannot_be_kept_is_said_with_what_can() {
        let said = |asked: u64, free: u64| {
            let disk = Some(DiskBegan {
                at: 1,
                bytes: free,
                files: None,
            });
            floor(
                DiskLimits {
                    floor: asked,
                    ..DiskLimits::default()
                },
                &Facts {
                    disk,
                    ..Facts::default()
                },
            )
        };
        assert_eq!((said(1 << 30, 2 << 30), said(0, 0)), (None, None));
        let words = said(1 << 30, 1 << 30).expect("a warning");
        assert!(
            words.contains("`sandbox.disk_floor` is 1") && words.contains("only 512"),
            "{words}"
        );
    }

    #[test]
    fn limits_in_force_are_compared_with_those_asked_for_and_what_is_missing_is_said() {
        check(Some(1 << 30), Some(512), Some(2000), &[]);
        check(Some(1 << 29), Some(500), Some(1), &[]);
        check(
            Some((1 << 30) + 1),
            Some(512),
            Some(2000),
            &["memory limit"],
        );
        check(
            None,
            Some(513),
            Some(2000),
            &["memory limit", "limit on processes"],
        );
        check(Some(1 << 30), Some(512), Some(4000), &["processor limit"]);
        check(
            None,
            None,
            None,
            &["memory limit", "limit on processes", "processor limit"],
        );
    }
}
