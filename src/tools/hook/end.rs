//! How a hook ended, and whether that blocks something.

use super::BlockOn;
use super::HookOptions;
use super::OnTimeout;
use crate::limit_words;
use crate::screen::shown;
use podbay_wire::End;
use podbay_wire::Limit;
use podbay_wire::Output;

/// Most characters of a hook's output in a reason or an event.
const SAID: usize = 2000;

/// Most characters of a hook's command line in a message.
const NAMED: usize = 200;

/// The result of one hook.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) end: Ended,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Exited(i32),
    /// Killed by a signal, or by a limit, as text.
    Killed(String),
    Late,
    /// It never ran, for this reason.
    NotRun(String),
    Cancelled,
}

/// What a hook's end means for the call or message it was asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Pass,
    Block(String),
    /// The failure is reported; nothing is blocked.
    Fail(String),
    Cancelled,
}

impl Ended {
    pub(super) fn of(output: &Output) -> Self {
        let ended = match output {
            Output::Command(ended) => ended,
            Output::Fault(fault) => return Self::NotRun(fault.to_string()),
            _ => return Self::NotRun("the sandbox answered with something else".to_owned()),
        };
        match (&ended.limit, &ended.end) {
            (Some(Limit::Time { .. }), _) => Self::Late,
            (_, End::Cancelled) => Self::Cancelled,
            (_, End::Exited { code }) => Self::Exited(*code),
            (Some(limit), _) => Self::Killed(limit_words(*limit, ended.culprit.as_ref())),
            (None, End::Signaled { signal }) => {
                Self::Killed(format!("it was ended by signal {signal}"))
            }
            (None, End::Running { .. }) => {
                Self::NotRun("it was left running, which no hook is".to_owned())
            }
        }
    }
}

impl Ran {
    /// Returns its output: standard error, else standard output.
    pub(super) fn said(&self) -> String {
        let text = |bytes: &[u8]| {
            shown(bytes)
                .text
                .trim()
                .chars()
                .take(SAID)
                .collect::<String>()
        };
        let errors = text(&self.stderr);
        if errors.is_empty() {
            text(&self.stdout)
        } else {
            errors
        }
    }

    /// Returns the verdict; only a hook with `may_block` can block.
    ///
    /// Messages that are not the hook's own output name its command.
    pub(super) fn meaning(&self, run: &str, options: &HookOptions, may_block: bool) -> Meaning {
        let says_itself = matches!(self.end, Ended::Exited(_)) && !self.said().is_empty();
        let (blocks, why) = match &self.end {
            Ended::Exited(0) => return Meaning::Pass,
            Ended::Cancelled => return Meaning::Cancelled,
            Ended::Exited(code) => {
                let said = self.said();
                let why = if said.is_empty() {
                    format!("it ended with exit code {code} and said nothing")
                } else {
                    said
                };
                (options.block_on == BlockOn::Nonzero || *code == 2, why)
            }
            Ended::Late => (
                options.on_timeout == OnTimeout::Block,
                "it did not end in its time".to_owned(),
            ),
            Ended::Killed(why) => (options.block_on == BlockOn::Nonzero, why.clone()),
            Ended::NotRun(why) => (
                options.block_on == BlockOn::Nonzero,
                format!("it could not be run: {why}"),
            ),
        };
        match (blocks && may_block, says_itself) {
            (true, true) => Meaning::Block(why),
            (true, false) => Meaning::Block(format!(
                "`{}`: {why}",
                run.chars().take(NAMED).collect::<String>()
            )),
            (false, _) => Meaning::Fail(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(end: Ended, [nonzero, exit2]: [&str; 2]) {
        let ran = Ran {
            end,
            stdout: b"out\n".to_vec(),
            stderr: Vec::new(),
        };
        for (block_on, expected) in [(BlockOn::Nonzero, nonzero), (BlockOn::Exit2, exit2)] {
            let options = HookOptions {
                block_on,
                ..HookOptions::default()
            };
            let word = |may_block| match ran.meaning("check", &options, may_block) {
                Meaning::Pass => "pass",
                Meaning::Block(_) => "block",
                Meaning::Fail(_) => "fail",
                Meaning::Cancelled => "cancelled",
            };
            assert_eq!(word(true), expected, "{block_on:?}");
            assert_ne!(word(false), "block");
        }
    }

    #[test]
    fn which_ends_hold_back() {
        check(Ended::Exited(0), ["pass", "pass"]);
        check(Ended::Exited(1), ["block", "fail"]);
        check(Ended::Exited(2), ["block", "block"]);
        check(Ended::Exited(127), ["block", "fail"]);
        check(Ended::Killed("memory".to_owned()), ["block", "fail"]);
        check(Ended::NotRun("no shell".to_owned()), ["block", "fail"]);
        check(Ended::Late, ["block", "block"]);
        check(Ended::Cancelled, ["cancelled", "cancelled"]);
        let late = Ran {
            end: Ended::Late,
            stdout: Vec::new(),
            stderr: Vec::new(),
        };
        let passes = HookOptions {
            on_timeout: OnTimeout::Pass,
            ..HookOptions::default()
        };
        assert_eq!(
            late.meaning("check", &passes, true),
            Meaning::Fail("it did not end in its time".to_owned())
        );
        let blocked = Meaning::Block("`scripts/check`: it did not end in its time".to_owned());
        assert_eq!(
            late.meaning("scripts/check", &HookOptions::default(), true),
            blocked
        );
    }

    #[test]
    fn the_reason_is_its_standard_error_else_its_output() {
        let ran = |stdout: &[u8], stderr: &[u8]| Ran {
            end: Ended::Exited(1),
            stdout: stdout.to_vec(),
            stderr: stderr.to_vec(),
        };
        assert_eq!(ran(b"out", b" err\n").said(), "err");
        assert_eq!(ran(b"out\n", b" \n").said(), "out");
        let silent = ran(b"", b"").meaning("check", &HookOptions::default(), true);
        assert_eq!(
            silent,
            Meaning::Block("`check`: it ended with exit code 1 and said nothing".to_owned())
        );
        assert_eq!(ran(&vec![b'x'; 9000], b"").said().len(), SAID);
    }
}
