use podbay_wire::Culprit;
use podbay_wire::Limit;
use podbay_wire::size;

/// Longest process name that is shown; the kernel has 15 bytes, and the guest is not trusted.
const NAME: usize = 32;

/// Returns which limit a command met, its value, and the process that used most of it.
pub fn limit_message(limit: Limit, culprit: Option<&Culprit>) -> String {
    let met = match limit {
        // This limit does not end a command: the process that it could not start may not matter.
        Limit::Processes { .. } => limit.to_string(),
        limit => format!("killed: {limit}"),
    };
    match culprit.and_then(|culprit| who(limit, culprit)) {
        Some(who) => format!("{met}; {who}"),
        None => met,
    }
}

/// Returns the description of the process that used most; `None` if nothing relevant was measured,
/// so as not to blame a bystander.
fn who(limit: Limit, culprit: &Culprit) -> Option<String> {
    let name: String = culprit
        .name
        .chars()
        .filter(|c| !c.is_control())
        .take(NAME)
        .collect();
    let Culprit { count, bytes, .. } = *culprit;
    let least = if culprit.at_least { "at least " } else { "" };
    let processes = if count == 1 {
        String::new()
    } else {
        format!(" in {least}{count} processes")
    };
    Some(match limit {
        Limit::Memory { .. }
        | Limit::FileSize { .. }
        | Limit::Disk { .. }
        | Limit::FreeSpace { .. }
            if bytes == 0 =>
        {
            return None;
        }
        Limit::Time { .. } if bytes == 0 => {
            format!("most of what still ran was `{name}`{processes}")
        }
        Limit::Time { .. } => {
            format!(
                "what took the most memory of what still ran: `{name}`, {}{processes}",
                size(bytes)
            )
        }
        Limit::Memory { .. } => format!(
            "most of it was seen with `{name}`, {}{processes}",
            size(bytes)
        ),
        Limit::Processes { .. } => {
            format!("most of those that were seen: `{name}`, {least}{count}")
        }
        Limit::Files { .. } | Limit::FreeFiles { .. } => format!("busiest was `{name}`{processes}"),
        Limit::FileSize { .. } | Limit::Disk { .. } | Limit::FreeSpace { .. } => {
            format!("most was written by `{name}`, {}{processes}", size(bytes))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(limit: Limit, culprit: Option<(&str, u64, u64)>, expected: &str) {
        let culprit = culprit.map(|(name, count, bytes)| Culprit {
            name: name.to_owned(),
            count,
            bytes,
            at_least: false,
        });
        assert_eq!(limit_message(limit, culprit.as_ref()), expected);
    }

    #[test]
    fn a_limit_is_reported_with_its_value_and_its_culprit() {
        let memory = Limit::Memory { bytes: 64 << 20 };
        check(
            memory,
            None,
            "killed: out of memory, the limit of `sandbox.memory` is 64.0 MiB",
        );
        check(
            memory,
            Some(("python3", 8, 60 << 20)),
            "killed: out of memory, the limit of `sandbox.memory` is 64.0 MiB; most of it was seen with `python3`, 60.0 MiB in 8 processes",
        );
        check(
            Limit::Processes { count: 512 },
            Some(("sh", 498, 0)),
            "it ran into the limit of 512 processes in the sandbox, `sandbox.pids`; most of those that were seen: `sh`, 498",
        );
        check(
            Limit::Disk { bytes: 10 << 30 },
            Some(("d\u{1b}[31md", 1, 3 << 20)),
            "killed: the project, /tmp and the home folder have grown by more than 10.0 GiB in this session, the limit of `sandbox.disk`; most was written by `d[31md`, \
             3.0 MiB",
        );
        // Who wrote nothing was only there.
        check(
            Limit::FreeSpace { bytes: 1 << 30 },
            Some(("sleep", 1, 0)),
            &format!("killed: {}", Limit::FreeSpace { bytes: 1 << 30 }),
        );
        check(
            Limit::Memory { bytes: 64 << 20 },
            Some(("sleep", 3, 0)),
            "killed: out of memory, the limit of `sandbox.memory` is 64.0 MiB",
        );
        let long = "x".repeat(5000);
        let words = limit_message(
            Limit::Time { ms: 1500 },
            Some(&Culprit {
                name: long,
                count: 1,
                bytes: 0,
                at_least: false,
            }),
        );
        assert!(
            words.starts_with("killed: it ran longer than the limit of 2 s; ") && words.len() < 200,
            "{words}"
        );
    }

    #[test]
    fn an_incomplete_measurement_says_at_least() {
        let culprit = Culprit {
            name: "python3".to_owned(),
            count: 7,
            bytes: 0,
            at_least: true,
        };
        let words = limit_message(Limit::Time { ms: 3000 }, Some(&culprit));
        assert!(
            words.ends_with("most of what still ran was `python3` in at least 7 processes"),
            "{words}"
        );
        let words = limit_message(Limit::Processes { count: 300 }, Some(&culprit));
        assert!(
            words.ends_with("most of those that were seen: `python3`, at least 7"),
            "{words}"
        );
    }
}
