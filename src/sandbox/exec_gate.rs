//! What it means where the guest does not see which programs commands start, and what to do about
//! it.

use podbay_wire::ExecGate;

/// Why there is no exec gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateLack {
    /// The cause, as far as the kernel says.
    pub cause: &'static str,
    pub remedy: &'static str,
}

/// What holds without it.
const WITHOUT: &str = "rules about commands are judged by the text of the command alone, and mode ask asks about every command";

impl GateLack {
    /// Returns the cause and what it means, in one line.
    pub fn words(self) -> String {
        format!(
            "the sandbox does not see which programs run ({}): {WITHOUT}",
            self.cause
        )
    }
}

/// Returns what is missing where the gate does not work.
pub fn gate_lack(gate: ExecGate) -> Option<GateLack> {
    match gate {
        ExecGate::Works => None,
        ExecGate::Taken => Some(GateLack {
            cause: "a program around the sandbox is asked by the kernel already, which asks one alone: WSL2 with mirrored networking, or LXC that \
                    intercepts system calls",
            remedy: "for WSL2 set `networkingMode=nat` in .wslconfig and run `wsl --shutdown`; for LXC switch off `security.syscalls.intercept.*`",
        }),
        ExecGate::Absent => Some(GateLack {
            cause: "the kernel does not tell: Linux before 5.5, or gVisor",
            remedy: "use Linux 5.5 or later, and runc or crun as the engine's runtime",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_says_its_cause_and_what_holds_without() {
        assert_eq!(gate_lack(ExecGate::Works), None);
        for (gate, cause) in [(ExecGate::Taken, "WSL2"), (ExecGate::Absent, "gVisor")] {
            let words = gate_lack(gate).expect("one").words();
            assert!(
                words.contains(cause)
                    && words.contains("by the text of the command alone")
                    && !words.contains('\n'),
                "{words}"
            );
        }
    }
}
