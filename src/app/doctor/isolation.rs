//! What keeps a sandbox closed on this engine and this kernel.

use super::check::Check;
use super::check::Group;
use super::gate;
use podbay_engine::Details;
use podbay_engine::Facts;
use podbay_wire::ExecGate;

const GROUP: Group = Group::Isolation;

/// The version of landlock's interface from which on each call gets a domain of its own.
const DOMAINS: u32 = 2;

/// What the kernel of this machine says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Kernel {
    /// Version of landlock's interface; 0 where the kernel has none.
    pub(super) landlock: u32,
    /// Security modules that are on, as the kernel lists them; `None` where it does not show.
    pub(super) modules: Option<String>,
    /// Whether a filter of a process here may ask about programs; `None` where that was not tried.
    pub(super) exec_gate: Option<ExecGate>,
    /// What a filter of system calls can do, as the kernel lists it; `None` where it has no
    /// filters.
    pub(super) filters: Option<String>,
}

impl Kernel {
    pub(super) fn look() -> Self {
        let read = |path| std::fs::read_to_string(path).ok();
        let exec_gate = Some(podbay_guest::probe_exec_gate());
        Self {
            landlock: landlock(),
            exec_gate,
            modules: read("/sys/kernel/security/lsm"),
            filters: read("/proc/sys/kernel/seccomp/actions_avail"),
        }
    }
}

/// Asks the kernel for the version of landlock's interface, which makes and changes nothing.
fn landlock() -> u32 {
    const VERSION: libc::c_uint = 1;
    let nothing = std::ptr::null::<libc::c_void>();
    #[expect(unsafe_code, reason = "neither libc nor nix has this call")]
    // SAFETY: with this flag the kernel reads no memory, only returns a number.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0_usize, VERSION) };
    u32::try_from(version).unwrap_or(0)
}

/// Judges an engine's isolation. With `strict`, what a run would refuse is a failure.
pub(super) fn judge(facts: &Facts, details: &Details, kernel: &Kernel, strict: bool) -> Vec<Check> {
    let shares_kernel = facts.local && !facts.desktop;
    vec![
        users(facts),
        cgroup(facts, details),
        limits(facts, details, strict),
        seccomp(details),
        module(details, kernel),
        landlock_of(kernel, shares_kernel),
        gate::of_engine(
            kernel.exec_gate.filter(|_| shares_kernel),
            &details.runtime,
            strict,
        ),
    ]
}

/// Judges this machine's kernel by itself, where there is no engine that could be asked.
pub(super) fn judge_kernel(kernel: &Kernel) -> Vec<Check> {
    vec![filters(kernel), modules(kernel), landlock_of(kernel, true)]
}

fn filters(kernel: &Kernel) -> Check {
    // A filter of ours answers with an error number.
    if kernel
        .filters
        .as_deref()
        .is_some_and(|filters| filters.split_whitespace().any(|action| action == "errno"))
    {
        return Check::ok(GROUP, "seccomp", "the kernel can filter system calls");
    }
    Check::fail(
        GROUP,
        "seccomp",
        "the kernel cannot filter system calls, so no sandbox could start",
        "use a kernel with CONFIG_SECCOMP_FILTER; if /proc/sys cannot be seen from here, look from outside of this container",
    )
}

fn modules(kernel: &Kernel) -> Check {
    let name = "security module";
    let Some(on) = kernel.modules.as_deref() else {
        return Check::ok(
            GROUP,
            name,
            "the kernel does not show from here which it has (/sys/kernel/security/lsm)",
        );
    };
    let found: Vec<&str> = mandatory(on).collect();
    if found.is_empty() {
        let remedy = "boot a kernel with AppArmor (`lsm=…,apparmor`)";
        return Check::warn(
            GROUP,
            name,
            "the kernel has neither AppArmor nor SELinux: one layer less, the others hold",
            remedy,
        );
    }
    Check::ok(
        GROUP,
        name,
        format!(
            "the kernel has {}; whether an engine uses it, only the engine can say",
            found.join(", ")
        ),
    )
}

/// Returns those modules of the kernel's list that confine containers.
fn mandatory(modules: &str) -> impl Iterator<Item = &str> {
    modules
        .trim()
        .split(',')
        .filter(|name| ["apparmor", "selinux"].contains(name))
}

fn users(facts: &Facts) -> Check {
    if facts.userns {
        return Check::fail(
            GROUP,
            "users",
            "the engine shifts user ids (userns-remap), so nothing in a sandbox could write to a project",
            "use a rootless engine, or take `userns-remap` out of /etc/docker/daemon.json",
        );
    }
    if facts.rootless {
        return Check::ok(
            GROUP,
            "users",
            "the engine is rootless: a way out of a container leads to an ordinary user",
        );
    }
    Check::ok(
        GROUP,
        "users",
        "the engine runs as root; commands run as the project's owner, without any capability",
    )
}

fn cgroup(facts: &Facts, details: &Details) -> Check {
    let driver = &details.cgroup_driver;
    if driver == "none" {
        let detail = format!(
            "version {}, without a driver: nothing limits a sandbox's memory, processor and processes",
            facts.cgroup
        );
        let remedy = "give the rootless engine cgroups: version 2 and systemd's delegation (`systemctl edit user@.service`, Delegate=yes)";
        return Check::fail(GROUP, "cgroups", detail, remedy);
    }
    let driver = if driver.is_empty() {
        String::new()
    } else {
        format!(", driver {driver}")
    };
    Check::ok(
        GROUP,
        "cgroups",
        format!("version {}{driver}", facts.cgroup),
    )
}

fn limits(facts: &Facts, details: &Details, strict: bool) -> Check {
    let limits = &details.limits;
    let all = [
        ("memory", limits.memory),
        ("swap", limits.swap),
        ("processor", limits.cpu),
        ("processes", limits.pids),
    ];
    // Engines say some of it in words only.
    let said = |name: &str| {
        let name = match name {
            "processor" => "cpu cfs",
            "processes" => "pids",
            name => name,
        };
        facts
            .warnings
            .iter()
            .any(|warning| warning.to_lowercase().contains(&format!("no {name}")))
    };
    let missing: Vec<&str> = all
        .iter()
        .filter(|(name, is_on)| *is_on == Some(false) || said(name))
        .map(|(name, _)| *name)
        .collect();
    if missing.is_empty() {
        let enforced: Vec<&str> = all
            .iter()
            .filter(|(_, is_on)| *is_on == Some(true))
            .map(|(name, _)| *name)
            .collect();
        let detail = if enforced.is_empty() {
            "the engine does not say what it enforces".to_owned()
        } else {
            enforced.join(", ")
        };
        return Check::ok(GROUP, "limits", detail);
    }
    let detail = format!("not enforced: {}", missing.join(", "));
    let remedy = "boot with `cgroup_enable=memory swapaccount=1`, or use cgroup version 2 with the controllers delegated to the engine";
    if strict {
        Check::fail(GROUP, "limits", detail, remedy)
    } else {
        Check::warn(GROUP, "limits", detail, remedy)
    }
}

/// Returns whether the engine lists this security option.
fn has(details: &Details, name: &str) -> bool {
    details.security.iter().any(|option| {
        option
            .split(',')
            .any(|part| part == format!("name={name}") || part == name)
    })
}

fn seccomp(details: &Details) -> Check {
    if has(details, "seccomp") {
        return Check::ok(
            GROUP,
            "seccomp",
            "system calls are filtered, by a profile of our own",
        );
    }
    Check::fail(
        GROUP,
        "seccomp",
        "the engine cannot filter system calls, so no sandbox starts",
        "use a kernel with CONFIG_SECCOMP_FILTER and an engine built with seccomp",
    )
}

fn module(details: &Details, kernel: &Kernel) -> Check {
    let names: Vec<&str> = ["apparmor", "selinux"]
        .into_iter()
        .filter(|name| has(details, name))
        .collect();
    if !names.is_empty() {
        let mut detail = names.join(", ");
        if has(details, "selinux") {
            detail.push_str("; containers with your files in them run without its label");
        }
        return Check::ok(GROUP, "security module", detail);
    }
    let on = kernel.modules.as_deref().unwrap_or_default();
    let unused: Vec<&str> = mandatory(on).collect();
    let (detail, remedy) = if unused.is_empty() {
        (
            "neither AppArmor nor SELinux: one layer less, the others hold".to_owned(),
            "boot a kernel with AppArmor (`lsm=…,apparmor`)",
        )
    } else {
        let detail = format!(
            "the kernel has {}, the engine does not use it: one layer less, the others hold",
            unused.join(", ")
        );
        (
            detail,
            "for AppArmor install its tools (`apparmor`), for SELinux start the engine with `--selinux-enabled`",
        )
    };
    Check::warn(GROUP, "security module", detail, remedy)
}

fn landlock_of(kernel: &Kernel, shares_kernel: bool) -> Check {
    if !shares_kernel {
        return Check::ok(
            GROUP,
            "landlock",
            "the engine has another kernel, which cannot be asked from here",
        );
    }
    if kernel.landlock >= DOMAINS {
        let detail = format!(
            "version {} of its interface: each call has a domain of its own",
            kernel.landlock
        );
        return Check::ok(GROUP, "landlock", detail);
    }
    let has = if kernel.landlock == 0 {
        "none".to_owned()
    } else {
        format!("version {} of its interface", kernel.landlock)
    };
    Check::warn(
        GROUP,
        "landlock",
        format!(
            "the kernel has {has}: commands of one sandbox can read and write each other's memory, and debuggers do not work in it"
        ),
        "use a kernel from 5.19 on with `landlock` in its list of security modules (`lsm=landlock,…`)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;
    use podbay_engine::Limits;

    fn details() -> Details {
        let on = Some(true);
        Details {
            cgroup_driver: "systemd".to_owned(),
            security: vec![
                "name=apparmor".to_owned(),
                "name=seccomp,profile=builtin".to_owned(),
            ],
            limits: Limits {
                memory: on,
                swap: on,
                cpu: on,
                pids: on,
            },
            runtime: "runc".to_owned(),
            ..Details::default()
        }
    }

    fn kernel() -> Kernel {
        Kernel {
            landlock: 6,
            exec_gate: Some(ExecGate::Works),
            modules: Some("landlock,lockdown,yama,apparmor\n".to_owned()),
            filters: Some(
                "kill_process kill_thread trap errno user_notif trace log allow\n".to_owned(),
            ),
        }
    }

    #[track_caller]
    fn check(
        facts: &Facts,
        details: &Details,
        kernel: &Kernel,
        strict: bool,
        name: &str,
        status: Status,
    ) {
        let checks = judge(facts, details, kernel, strict);
        let found = checks
            .iter()
            .find(|check| check.name == name)
            .expect("a check of that name");
        assert_eq!(
            (found.status, found.remedy.is_some()),
            (status, status != Status::Ok),
            "{found:?}"
        );
        let worst = checks.iter().map(|check| check.status).max();
        assert_eq!(worst, Some(status), "all else is well: {checks:?}");
    }

    #[test]
    fn a_closed_engine_is_fine() {
        check(
            &Facts::plain(),
            &details(),
            &kernel(),
            true,
            "limits",
            Status::Ok,
        );
        check(
            &Facts {
                rootless: true,
                ..Facts::plain()
            },
            &details(),
            &kernel(),
            false,
            "users",
            Status::Ok,
        );
    }

    #[test]
    fn what_cannot_work_fails() {
        check(
            &Facts {
                userns: true,
                ..Facts::plain()
            },
            &details(),
            &kernel(),
            false,
            "users",
            Status::Fail,
        );
        check(
            &Facts::plain(),
            &Details {
                cgroup_driver: "none".to_owned(),
                ..details()
            },
            &kernel(),
            false,
            "cgroups",
            Status::Fail,
        );
        check(
            &Facts::plain(),
            &Details {
                security: vec!["name=apparmor".to_owned()],
                ..details()
            },
            &kernel(),
            false,
            "seccomp",
            Status::Fail,
        );
    }

    #[test]
    fn limits_that_are_not_enforced_are_warned_about_and_strict_fails() {
        let without = Details {
            limits: Limits {
                pids: Some(false),
                ..details().limits
            },
            ..details()
        };
        check(
            &Facts::plain(),
            &without,
            &kernel(),
            false,
            "limits",
            Status::Warn,
        );
        check(
            &Facts::plain(),
            &without,
            &kernel(),
            true,
            "limits",
            Status::Fail,
        );
        let said = Facts {
            warnings: vec!["WARNING: No swap limit support".to_owned()],
            ..Facts::plain()
        };
        check(&said, &details(), &kernel(), false, "limits", Status::Warn);
        let silent = Details {
            limits: Limits::default(),
            ..details()
        };
        check(
            &Facts::plain(),
            &silent,
            &kernel(),
            false,
            "limits",
            Status::Ok,
        );
    }

    #[test]
    fn missing_layers_are_warned_about() {
        let bare = Details {
            security: vec!["name=seccomp,profile=default".to_owned()],
            ..details()
        };
        check(
            &Facts::plain(),
            &bare,
            &kernel(),
            false,
            "security module",
            Status::Warn,
        );
        check(
            &Facts::plain(),
            &bare,
            &Kernel {
                modules: None,
                ..kernel()
            },
            false,
            "security module",
            Status::Warn,
        );
        for (landlock, status) in [(0, Status::Warn), (1, Status::Warn), (DOMAINS, Status::Ok)] {
            check(
                &Facts::plain(),
                &details(),
                &Kernel {
                    landlock,
                    ..kernel()
                },
                false,
                "landlock",
                status,
            );
        }
        check(
            &Facts {
                local: false,
                ..Facts::plain()
            },
            &details(),
            &Kernel::default(),
            false,
            "landlock",
            Status::Ok,
        );
    }

    #[track_caller]
    fn check_kernel(kernel: &Kernel, statuses: [Status; 3]) {
        let checks = judge_kernel(kernel);
        assert_eq!(
            checks
                .iter()
                .map(|check| check.name.as_str())
                .collect::<Vec<_>>(),
            ["seccomp", "security module", "landlock"]
        );
        assert_eq!(
            checks.iter().map(|check| check.status).collect::<Vec<_>>(),
            statuses,
            "{checks:?}"
        );
        assert!(
            checks
                .iter()
                .all(|check| check.remedy.is_some() == (check.status != Status::Ok)),
            "{checks:?}"
        );
    }

    #[test]
    fn without_an_engine_the_kernel_is_judged_by_itself() {
        use Status::Fail;
        use Status::Ok;
        use Status::Warn;
        check_kernel(&kernel(), [Ok, Ok, Ok]);
        check_kernel(
            &Kernel {
                filters: None,
                ..kernel()
            },
            [Fail, Ok, Ok],
        );
        check_kernel(
            &Kernel {
                filters: Some("kill_thread allow".to_owned()),
                ..kernel()
            },
            [Fail, Ok, Ok],
        );
        check_kernel(
            &Kernel {
                modules: Some("landlock,yama\n".to_owned()),
                ..kernel()
            },
            [Ok, Warn, Ok],
        );
        check_kernel(
            &Kernel {
                modules: None,
                ..kernel()
            },
            [Ok, Ok, Ok],
        );
        check_kernel(
            &Kernel {
                landlock: 0,
                ..kernel()
            },
            [Ok, Ok, Warn],
        );
    }

    #[test]
    fn the_kernel_can_be_asked() {
        // Whatever it says, it is no nonsense: interfaces of landlock are counted from 1, and a few
        // a year is much.
        assert!(Kernel::look().landlock < 100);
    }
}
