//! Attacks on what a sandbox may take. Where no limit is in force nothing is tried: that would be an
//! attack on the machine.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::inside::Inside;
use super::inside::Terms;
use crate::Error;
use podbay_config::Config;
use podbay_event::ByteSize;
use podbay_guest::attack::Finding;
use podbay_wire::End;
use podbay_wire::Limit;
use podbay_wire::Output;

#[cfg(test)]
pub(super) const IDS: &[&str] = &["R-04", "R-07"];

/// By how much what the kernel says of processors may be above what was asked for, in thousandths
/// of a core: it rounds.
const ROUNDED: u64 = 10;

/// What a machine has, so that a limit above it is seen for what it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Machine {
    pub(super) memory: u64,
    pub(super) n_processes: u64,
    /// Size of the disk that the project lies on; `None` where it cannot be asked.
    pub(super) disk: Option<u64>,
}

impl Machine {
    /// Looks at this machine; `memory` is what the engine says of its own, if it does.
    pub(super) fn look(memory: Option<u64>, project: &std::path::Path) -> Self {
        let number = |path: &str| {
            std::fs::read_to_string(path)
                .ok()
                .and_then(|text| text.trim().parse().ok())
        };
        let own = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let own = own.lines().find_map(|line| {
            line.strip_prefix("MemTotal:")?
                .trim()
                .strip_suffix(" kB")?
                .parse::<u64>()
                .ok()
        });
        let processes = ["/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"]
            .into_iter()
            .filter_map(number)
            .min();
        let disk = nix::sys::statvfs::statvfs(project)
            .ok()
            .map(|facts| facts.blocks() * facts.fragment_size());
        Self {
            memory: memory
                .filter(|&bytes| bytes > 0)
                .or(own.map(|kib| kib << 10))
                .unwrap_or(u64::MAX),
            n_processes: processes.unwrap_or(u64::MAX),
            disk,
        }
    }
}

/// What judging needs besides the sandbox: the settings as the user has them.
pub(super) struct Measure<'a> {
    pub(super) config: &'a Config,
    pub(super) machine: Machine,
    /// What the guest found in the sandbox with the user's own limits; the attacks may run in a
    /// smaller one.
    pub(super) memory: Option<u64>,
    pub(super) n_processes: Option<u64>,
    pub(super) millicores: Option<u64>,
    /// Thousandths of a core that were asked for; `None` in a sandbox that Podbay did not start.
    pub(super) asked: Option<u64>,
    /// How much the project may grow in the sandbox that is filled up; `None` where that is the
    /// person's own project.
    pub(super) growth: Option<u64>,
}

/// Executes one of them; `None` where the id is not one of these.
pub(super) async fn attack(
    inside: &Inside<'_>,
    measure: &Measure<'_>,
    id: &str,
) -> Result<Option<Finding>, Error> {
    let sandbox = &measure.config.sandbox;
    let ran = match id {
        "R-01" => {
            if let Some(found) = judge(
                measure.n_processes,
                measure.machine.n_processes,
                "processes",
                |count| count.to_string(),
            ) {
                return Ok(Some(found));
            }
            inside
                .attack(id, &[inside.facts.n_processes.unwrap_or(0).to_string()])
                .await?
        }
        "R-02" => {
            let show = |bytes| ByteSize::new(bytes).rounded();
            if let Some(found) = judge(measure.memory, measure.machine.memory, "memory", show) {
                return Ok(Some(found));
            }
            return hog(inside).await.map(Some);
        }
        "R-04" => {
            return Ok(Some(processors(measure.millicores, measure.asked)));
        }
        "R-05" => return output(inside).await.map(Some),
        "R-06" => return drip(inside).await.map(Some),
        "R-07" => return cancelled(inside).await.map(Some),
        "R-08" => {
            let limit = sandbox.file_size;
            if let Some(disk) = measure.machine.disk.filter(|&disk| limit.bytes() >= disk) {
                let got = format!(
                    "the limit of {} is all that the disk has ({})",
                    limit.rounded(),
                    ByteSize::new(disk).rounded()
                );
                return Ok(Some(Finding { held: false, got }));
            }
            inside.attack(id, &[limit.bytes().to_string()]).await?
        }
        "R-10" => inside.attack(id, &[sandbox.open_files.to_string()]).await?,
        "R-12" => {
            let started = inside.attack(id, &[]).await?.found();
            if !started.held {
                return Ok(Some(started));
            }
            inside.attack("count", &[]).await?
        }
        "R-15" => inside.attack(id, &[]).await?,
        "R-18" => return growth(inside, measure).await.map(Some),
        _ => return Ok(None),
    };
    and_then_works(inside, ran.found()).await.map(Some)
}

/// Says why a limit is none; `None`: it is one.
fn judge(
    limit: Option<u64>,
    machine: u64,
    of: &str,
    show: impl Fn(u64) -> String,
) -> Option<Finding> {
    let got = match limit {
        None => format!("no limit of {of} is in force; nothing was tried"),
        Some(limit) if limit >= machine => {
            format!(
                "the limit of {} is all that the machine has ({}); nothing was tried",
                show(limit),
                show(machine)
            )
        }
        Some(_) => return None,
    };
    Some(Finding { held: false, got })
}

/// Compares what the guest found in its control group with what was asked for.
fn processors(in_force: Option<u64>, asked: Option<u64>) -> Finding {
    let cores = |millicores: u64| format!("{:.2} cores", millicores as f64 / 1000.0);
    match (in_force, asked) {
        (None, _) => Finding {
            held: false,
            got: "no limit is in force".to_owned(),
        },
        (Some(in_force), None) => Finding {
            held: true,
            got: cores(in_force),
        },
        (Some(in_force), Some(asked)) => Finding {
            held: in_force <= asked + ROUNDED,
            got: format!("{} of {} asked for", cores(in_force), cores(asked)),
        },
    }
}

async fn growth(inside: &Inside<'_>, measure: &Measure<'_>) -> Result<Finding, Error> {
    let limit = measure.config.sandbox.disk;
    if limit.bytes() == 0 {
        return Ok(Finding {
            held: false,
            got: "no limit is set; nothing was tried".to_owned(),
        });
    }
    if let Some(disk) = measure.machine.disk.filter(|&disk| limit.bytes() >= disk) {
        let got = format!(
            "the limit of {} is all that the disk has ({}); nothing was tried",
            limit.rounded(),
            ByteSize::new(disk).rounded()
        );
        return Ok(Finding { held: false, got });
    }
    let Some(bytes) = measure.growth else {
        return Ok(Finding {
            held: true,
            got: format!(
                "the guest was told the limit of {}; nothing was tried in your own project",
                limit.rounded()
            ),
        });
    };
    let file_size = measure.config.sandbox.file_size.bytes();
    let terms = inside.patient();
    let ran = inside
        .attack_with("R-18", &[bytes.to_string(), file_size.to_string()], &terms)
        .await?;
    match ran.ended().and_then(|ended| ended.limit) {
        // Where files may be small only, it takes so many that another limit comes first.
        Some(limit) if limit.is_of_disk() => {
            and_then_works(
                inside,
                Finding {
                    held: true,
                    got: format!("killed, and told: {limit}"),
                },
            )
            .await
        }
        _ => {
            // When others free as much at the same time, nothing is seen of it.
            inside.is_disturbed.store(true, Ordering::Relaxed);
            Ok(Finding {
                held: false,
                got: ran.found().got,
            })
        }
    }
}

async fn and_then_works(inside: &Inside<'_>, found: Finding) -> Result<Finding, Error> {
    if !found.held {
        return Ok(found);
    }
    let next = inside.look_again().await?;
    Ok(if next.held {
        found
    } else {
        Finding {
            held: false,
            got: format!(
                "{}, but the next call did not work: {}",
                found.got, next.got
            ),
        }
    })
}

async fn hog(inside: &Inside<'_>) -> Result<Finding, Error> {
    let ran = inside
        .attack(
            "R-02",
            &[inside.facts.memory_bytes.unwrap_or(0).to_string()],
        )
        .await?;
    let limit = ran.ended().and_then(|ended| ended.limit);
    match limit {
        Some(Limit::Memory { bytes }) => {
            and_then_works(
                inside,
                Finding {
                    held: true,
                    got: format!(
                        "killed, and told the limit of {}",
                        ByteSize::new(bytes).rounded()
                    ),
                },
            )
            .await
        }
        _ => Ok(Finding {
            held: false,
            got: ran.found().got,
        }),
    }
}

async fn output(inside: &Inside<'_>) -> Result<Finding, Error> {
    let n_bytes = printed(inside.facts.millicores);
    let terms = Terms {
        delay: Duration::from_micros(200),
        ..inside.patient()
    };
    let ran = inside
        .attack_with("R-05", &[n_bytes.to_string()], &terms)
        .await?;
    let arrived = ran.n_bytes;
    // The line of the finding comes on top.
    if ran.finding.is_some() && (n_bytes..n_bytes + 200).contains(&arrived) {
        return and_then_works(
            inside,
            Finding {
                held: true,
                got: format!("{arrived} bytes arrived"),
            },
        )
        .await;
    }
    let got = if ran.finding.is_some() {
        String::new()
    } else {
        format!("; {}", ran.found().got)
    };
    Ok(Finding {
        held: false,
        got: format!("{arrived} bytes of {n_bytes} arrived{got}"),
    })
}

/// Returns how much is printed: what a small part of a core brings through in the time that there
/// is.
fn printed(millicores: Option<u64>) -> u64 {
    const MOST: u64 = 32 << 20;
    let millicores = millicores.unwrap_or(1000).min(1000);
    if millicores == 1000 {
        MOST
    } else {
        (MOST / 1000 * millicores).max(1 << 20)
    }
}

async fn drip(inside: &Inside<'_>) -> Result<Finding, Error> {
    let terms = Terms {
        time: Duration::from_secs(1),
        grace: Duration::from_millis(300),
        ..inside.terms()
    };
    let ran = inside.attack_with("R-06", &[], &terms).await?;
    let said = ran
        .ended()
        .is_some_and(|ended| matches!(ended.limit, Some(Limit::Time { .. })));
    in_time(inside, said, ran.took, "its time was over").await
}

async fn cancelled(inside: &Inside<'_>) -> Result<Finding, Error> {
    let terms = Terms {
        grace: Duration::from_millis(300),
        ..inside.terms()
    };
    let cancel = terms.cancel.clone();
    let later = async {
        tokio::time::sleep(Duration::from_millis(700)).await;
        cancel.cancel();
    };
    let (ran, ()) = tokio::join!(inside.attack_with("R-06", &[], &terms), later);
    let ran = ran?;
    let said = match &ran.output {
        Output::Command(ended) => matches!(ended.end, End::Cancelled),
        Output::Fault(fault) => matches!(fault, podbay_wire::Fault::Cancelled),
        _ => false,
    };
    in_time(inside, said, ran.took, "it was cancelled").await
}

async fn in_time(
    inside: &Inside<'_>,
    said: bool,
    took: Duration,
    what: &str,
) -> Result<Finding, Error> {
    // A second until it is asked, its grace, and what a slow machine takes, or a sandbox that has
    // little of a core.
    let held = said && took < Duration::from_secs(5) * inside.slowness();
    let got = format!(
        "{} after {:.1} s",
        if said { what } else { "it ended otherwise" },
        took.as_secs_f64()
    );
    and_then_works(inside, Finding { held, got }).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_in_force_are_compared_with_those_asked_for() {
        let check = |in_force, asked, expected| {
            assert_eq!(
                processors(in_force, asked).held,
                expected,
                "{in_force:?} of {asked:?}"
            );
        };
        check(Some(2000), Some(2000), true);
        check(Some(1500), Some(2000), true);
        check(Some(4000), Some(2000), false);
        check(None, Some(2000), false);
        check(Some(4000), None, true);
    }

    #[test]
    fn a_slow_box_prints_less() {
        assert_eq!(
            (printed(None), printed(Some(4000)), printed(Some(10))),
            (32 << 20, 32 << 20, 1 << 20)
        );
        assert!((7 << 20..9 << 20).contains(&printed(Some(250))));
    }

    #[test]
    fn a_limit_that_limits_nothing_is_none() {
        let check = |limit, expected| {
            assert_eq!(
                judge(limit, 100, "things", |n| n.to_string()).is_none(),
                expected,
                "{limit:?}"
            );
        };
        check(Some(99), true);
        check(Some(100), false);
        check(None, false);
    }
}
