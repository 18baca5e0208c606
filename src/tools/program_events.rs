//! Events about the programs of a command: which ran, and which were denied.

use super::Pipeline;
use super::program_approval::ProgramAsker;
use super::render_denied::sentence;
use podbay_event::CallStatus;
use podbay_event::Decision;
use podbay_event::Kind;
use podbay_event::Sink;
use podbay_event::ToolCall;
use podbay_wire::Background;
use podbay_wire::Because;
use podbay_wire::CommandEnded;
use podbay_wire::Denied;
use podbay_wire::Programs;

/// What was refused during a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Refusals {
    /// A program, by a rule.
    program: bool,
    /// A write, by the user or because none could answer.
    write: bool,
}

impl Refusals {
    fn of(denied: &[Denied]) -> Self {
        let is_write = |denied: &Denied| matches!(denied.because, Because::Write { .. });
        Self {
            program: denied.iter().any(|denied| !is_write(denied)),
            write: denied.iter().any(is_write),
        }
    }

    /// Returns the status of a call with these refusals.
    ///
    /// A denial by a rule counts like one before the call starts. A command that succeeds in spite
    /// of a refused write has succeeded; one that fails was denied.
    pub(super) fn status(self, status: CallStatus) -> CallStatus {
        match status {
            CallStatus::Ok if self.program => CallStatus::Denied,
            CallStatus::Failed if self.program || self.write => CallStatus::Denied,
            status => status,
        }
    }
}

impl Pipeline {
    /// Sends events for the programs that ran, and for each denial as if it came before the call.
    pub(super) fn tell_programs(
        &self,
        call: &ToolCall,
        name: &str,
        ended: &CommandEnded,
        asks: &ProgramAsker<'_>,
    ) -> Refusals {
        tell_ran(&self.sink, &call.id, Origin::Call, &ended.programs);
        for denied in &ended.denied {
            let reason = sentence(denied) + asks.why_nobody(&denied.because);
            let (call, name) = (call.id.clone(), name.to_owned());
            (self.sink)(
                Kind::CallDecided {
                    call,
                    name,
                    decision: Decision::Deny,
                    reason,
                }
                .into(),
            );
        }
        Refusals::of(&ended.denied)
    }
}

/// Sends events for the programs that a hook started, and a warning for each denial.
pub(super) fn tell_of_hook(sink: &Sink, call: Option<&str>, run: &str, ended: &CommandEnded) {
    tell_ran(
        sink,
        call.unwrap_or_default(),
        Origin::Hook(run),
        &ended.programs,
    );
    for denied in &ended.denied {
        let message = format!("in the hook `{run}` {}", sentence(denied));
        sink(Kind::Warning { message }.into());
    }
}

/// Sends events for what background commands had started that have ended by now, and a warning for
/// each denial.
pub(super) fn tell_of_background(sink: &Sink, call: &str, background: &Background) {
    for ran in &background.ran {
        tell_ran(sink, call, Origin::Background(&ran.command), &ran.programs);
        for denied in &ran.denied {
            let message = format!(
                "in the background command `{}` {}",
                ran.command,
                sentence(denied)
            );
            sink(Kind::Warning { message }.into());
        }
    }
}

/// What started programs.
#[derive(Clone, Copy)]
enum Origin<'a> {
    Call,
    /// A command of the settings.
    Hook(&'a str),
    Background(&'a str),
}

fn tell_ran(sink: &Sink, call: &str, origin: Origin<'_>, programs: &Programs) {
    if !programs.is_empty() {
        let Programs {
            listed: programs,
            n_more,
        } = programs.clone();
        let (hook, background) = match origin {
            Origin::Call => (None, None),
            Origin::Hook(run) => (Some(run.to_owned()), None),
            Origin::Background(command) => (None, Some(command.to_owned())),
        };
        sink(
            Kind::CallRan {
                call: call.to_owned(),
                programs,
                n_more,
                hook,
                background,
            }
            .into(),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(because: Because, ended: CallStatus, expected: CallStatus) {
        let denied = Denied {
            argv: vec!["make".into()],
            truncated: false,
            count: 1,
            because,
            killed: false,
        };
        assert_eq!(Refusals::of(&[denied]).status(ended), expected);
    }

    #[test]
    fn a_rule_denies_the_call_and_a_refused_write_only_if_it_fails() {
        use CallStatus::Cancelled;
        use CallStatus::Denied;
        use CallStatus::Failed;
        use CallStatus::Ok;
        use CallStatus::TimedOut;
        let rule = || Because::Refused {
            rule: "bash(make)".to_owned(),
        };
        let write = || Because::Write { path: "a".into() };
        for (because, ended, expected) in [
            (rule(), Ok, Denied),
            (rule(), Failed, Denied),
            (rule(), TimedOut, TimedOut),
            (rule(), Cancelled, Cancelled),
            (write(), Ok, Ok),
            (write(), Failed, Denied),
        ] {
            check(because, ended, expected);
        }
        assert_eq!(Refusals::default().status(Failed), Failed);
    }
}
