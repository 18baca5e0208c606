//! How a hook ended, and whether that blocks something.

use super::BlockOn;
use super::HookOptions;
use super::OnTimeout;
use crate::limit_message;
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
pub(super) struct HookRun {
    pub(super) end: HookEnd,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HookEnd {
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
pub(super) enum HookVerdict {
    Pass,
    Block(String),
    /// The failure is reported; nothing is blocked.
    Fail(String),
    Cancelled,
}

impl HookEnd {
    pub(super) fn of(output: &Output) -> Self {
        let ended = match output {
            Output::Command(ended) => ended,
            Output::Fault(fault) => return Self::NotRun(fault.to_string()),
            _ => return Self::NotRun("the sandbox sent an unexpected answer".to_owned()),
        };
        match (&ended.limit, &ended.end) {
            (Some(Limit::Time { .. }), _) => Self::Late,
            (_, End::Cancelled) => Self::Cancelled,
            (_, End::Exited { code }) => Self::Exited(*code),
            (Some(limit), _) => Self::Killed(limit_message(*limit, ended.culprit.as_ref())),
            (None, End::Signaled { signal }) => {
                Self::Killed(format!("it was killed by signal {signal}"))
            }
            (None, End::Running { .. }) => {
                Self::NotRun("a hook must not run in the background".to_owned())
            }
        }
    }
}

impl HookRun {
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
    pub(super) fn verdict(&self, run: &str, options: &HookOptions, may_block: bool) -> HookVerdict {
        let says_itself = matches!(self.end, HookEnd::Exited(_)) && !self.said().is_empty();
        let (blocks, why) = match &self.end {
            HookEnd::Exited(0) => return HookVerdict::Pass,
            HookEnd::Cancelled => return HookVerdict::Cancelled,
            HookEnd::Exited(code) => {
                let said = self.said();
                let why = if said.is_empty() {
                    format!("it ended with exit code {code} and without output")
                } else {
                    said
                };
                (options.block_on == BlockOn::Nonzero || *code == 2, why)
            }
            HookEnd::Late => (
                options.on_timeout == OnTimeout::Block,
                "it timed out".to_owned(),
            ),
            HookEnd::Killed(why) => (options.block_on == BlockOn::Nonzero, why.clone()),
            HookEnd::NotRun(why) => (
                options.block_on == BlockOn::Nonzero,
                format!("it could not be run: {why}"),
            ),
        };
        match (blocks && may_block, says_itself) {
            (true, true) => HookVerdict::Block(why),
            (true, false) => HookVerdict::Block(format!(
                "`{}`: {why}",
                run.chars().take(NAMED).collect::<String>()
            )),
            (false, _) => HookVerdict::Fail(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(end: HookEnd, [nonzero, exit2]: [&str; 2]) {
        let ran = HookRun {
            end,
            stdout: b"out\n".to_vec(),
            stderr: Vec::new(),
        };
        for (block_on, expected) in [(BlockOn::Nonzero, nonzero), (BlockOn::Exit2, exit2)] {
            let options = HookOptions {
                block_on,
                ..HookOptions::default()
            };
            let word = |may_block| match ran.verdict("check", &options, may_block) {
                HookVerdict::Pass => "pass",
                HookVerdict::Block(_) => "block",
                HookVerdict::Fail(_) => "fail",
                HookVerdict::Cancelled => "cancelled",
            };
            assert_eq!(word(true), expected, "{block_on:?}");
            assert_ne!(word(false), "block");
        }
    }

    #[test]
    fn which_hook_ends_block() {
        check(HookEnd::Exited(0), ["pass", "pass"]);
        check(HookEnd::Exited(1), ["block", "fail"]);
        check(HookEnd::Exited(2), ["block", "block"]);
        check(HookEnd::Exited(127), ["block", "fail"]);
        check(HookEnd::Killed("memory".to_owned()), ["block", "fail"]);
        check(HookEnd::NotRun("no shell".to_owned()), ["block", "fail"]);
        check(HookEnd::Late, ["block", "block"]);
        check(HookEnd::Cancelled, ["cancelled", "cancelled"]);
        let late = HookRun {
            end: HookEnd::Late,
            stdout: Vec::new(),
            stderr: Vec::new(),
        };
        let passes = HookOptions {
            on_timeout: OnTimeout::Pass,
            ..HookOptions::default()
        };
        assert_eq!(
            late.verdict("check", &passes, true),
            HookVerdict::Fail("it timed out".to_owned())
        );
        let blocked = HookVerdict::Block("`scripts/check`: it timed out".to_owned());
        assert_eq!(
            late.verdict("scripts/check", &HookOptions::default(), true),
            blocked
        );
    }

    #[test]
    fn a_hooks_reason_is_its_stderr_else_its_stdout() {
        let ran = |stdout: &[u8], stderr: &[u8]| HookRun {
            end: HookEnd::Exited(1),
            stdout: stdout.to_vec(),
            stderr: stderr.to_vec(),
        };
        assert_eq!(ran(b"out", b" err\n").said(), "err");
        assert_eq!(ran(b"out\n", b" \n").said(), "out");
        let silent = ran(b"", b"").verdict("check", &HookOptions::default(), true);
        assert_eq!(
            silent,
            HookVerdict::Block("`check`: it ended with exit code 1 and without output".to_owned())
        );
        assert_eq!(ran(&vec![b'x'; 9000], b"").said().len(), SAID);
    }
}
