//! Whether the sandbox sees which programs run: told by a guest, or by the kernel that the sandbox
//! will share.

use super::check::Check;
use super::check::Group;
use podbay_sandbox::gate_lack;
use podbay_wire::ExecGate;

const NAME: &str = "exec gate";

/// Runtimes whose containers have the host's own kernel.
const SHARING: [&str; 3] = ["runc", "crun", "youki"];

/// Judges what a guest said in its hello.
pub(super) fn told(group: Group, gate: ExecGate, strict: bool) -> Check {
    let Some(lack) = gate_lack(gate) else {
        return Check::ok(
            group,
            NAME,
            "the sandbox sees each program that a command starts, so rules hold on what runs",
        );
    };
    if strict {
        Check::fail(group, NAME, lack.words(), lack.remedy)
    } else {
        Check::warn(group, NAME, lack.words(), lack.remedy)
    }
}

/// Judges what this machine's kernel answered to the same attempt as a guest makes; `None` where
/// the sandbox has another kernel.
pub(super) fn of_engine(gate: Option<ExecGate>, runtime: &str, strict: bool) -> Check {
    match gate {
        Some(gate) if SHARING.contains(&runtime) => told(Group::Isolation, gate, strict),
        _ => Check::ok(
            Group::Isolation,
            NAME,
            "not known from here: sandboxes have another kernel; a run says at its start where it does not work",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;

    #[track_caller]
    fn check(check: &Check, status: Status, words: &str) {
        assert_eq!(
            (check.status, check.remedy.is_some()),
            (status, status != Status::Ok),
            "{check:?}"
        );
        assert!(check.detail.contains(words), "{check:?}");
    }

    #[test]
    fn a_gate_that_does_not_work_has_its_cause_and_remedy_and_strict_fails() {
        check(
            &told(Group::Sandbox, ExecGate::Works, true),
            Status::Ok,
            "sees each program",
        );
        check(
            &told(Group::Sandbox, ExecGate::Taken, false),
            Status::Warn,
            "WSL2",
        );
        check(
            &told(Group::Sandbox, ExecGate::Absent, true),
            Status::Fail,
            "gVisor",
        );
    }

    #[test]
    fn nothing_is_said_of_a_kernel_that_was_not_asked() {
        check(
            &of_engine(Some(ExecGate::Works), "runc", false),
            Status::Ok,
            "sees each program",
        );
        check(
            &of_engine(Some(ExecGate::Absent), "crun", true),
            Status::Fail,
            "Linux before 5.5",
        );
        check(
            &of_engine(Some(ExecGate::Works), "runsc", false),
            Status::Ok,
            "not known",
        );
        check(
            &of_engine(Some(ExecGate::Absent), "", true),
            Status::Ok,
            "not known",
        );
        check(&of_engine(None, "runc", true), Status::Ok, "not known");
    }
}
