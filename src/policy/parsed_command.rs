//! A shell command, parsed once for all checks: its literal words, not what they may expand to.

use std::collections::BTreeSet;

use super::Action;
use super::HostCall;
use super::command_pattern::UNKNOWN;
use super::exact_call::trimmed;
use super::program_table;
use podbay_code::shell;
use podbay_code::shell::Command;
use podbay_code::shell::Script;
use podbay_event::Capability;
use podbay_wire::Call;

/// Longest command that may be asked about, in bytes as written in a call: the question shows all
/// of it.
const ASKED_MAX: usize = 64 << 10;

#[derive(Clone, Debug)]
pub(super) struct ParsedCommand {
    /// The script, trimmed.
    pub(super) text: String,
    pub(super) script: Script,
    /// The capability that the user must decide about, for each of its commands in order.
    required_decision: Vec<Option<Capability>>,
}

impl ParsedCommand {
    pub(super) fn new(text: &str) -> Self {
        let script = shell::read(text);
        let required_decision = script
            .commands
            .iter()
            .map(|command| program_table::required_decision(&command.texts(UNKNOWN)))
            .collect();
        Self {
            text: trimmed(text).to_owned(),
            script,
            required_decision,
        }
    }

    /// Parses the command of an action; `None` if it is no command.
    pub(super) fn of(action: &Action) -> Option<Self> {
        match action {
            Action::Box(Call::Bash(bash)) => Some(Self::new(&bash.command)),
            Action::Box(Call::Hook(hook)) | Action::Host(HostCall::Hook(hook)) => {
                Some(Self::new(&hook.command))
            }
            _ => None,
        }
    }

    /// Returns its commands, each with the capability that the user must decide about.
    pub(super) fn commands(&self) -> impl Iterator<Item = (&Command, Option<&Capability>)> {
        self.script
            .commands
            .iter()
            .zip(self.required_decision.iter().map(Option::as_ref))
    }

    /// Returns the capabilities that all of it needs.
    pub(super) fn capabilities(&self) -> Vec<Capability> {
        self.capabilities_except(|_, _| false)
    }

    /// Returns the capabilities that it needs except those that are granted.
    pub(super) fn capabilities_except(
        &self,
        is_open: impl Fn(&Command, &Capability) -> bool,
    ) -> Vec<Capability> {
        let decided = self.commands().filter_map(|(command, required_decision)| {
            required_decision.filter(|required_decision| !is_open(command, required_decision))
        });
        let all: BTreeSet<Capability> =
            decided.cloned().chain([Capability::RunInSandbox]).collect();
        all.into_iter().collect()
    }

    /// Describes what could not be parsed.
    pub(super) fn unknown(&self) -> String {
        let unknown = self.script.unknown;
        unknown.map_or_else(String::new, |what| {
            format!(" (the command cannot be parsed completely: it has {what}; write it out, one command at a time)")
        })
    }

    /// Returns why it is not asked about: the user would approve what a question cannot show.
    pub(super) fn too_long(&self) -> Option<String> {
        let n_bytes = serde_json::Value::from(self.text.as_str())
            .to_string()
            .len();
        (n_bytes > ASKED_MAX).then(|| {
            format!(
                "it needs the user's approval, and a command of {n_bytes} bytes is longer than a question shows (64 KiB); write what is long into a file \
                 with write_file, and run a short command"
            )
        })
    }
}
