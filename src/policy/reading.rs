//! A command of the shell, read once for everything that asks about it: what it says literally, and
//! nothing that it may come to.

use std::collections::BTreeSet;

use super::Action;
use super::HostCall;
use super::command_pattern::UNKNOWN;
use super::exact::trimmed;
use super::programs;
use podbay_code::shell;
use podbay_code::shell::Command;
use podbay_code::shell::Script;
use podbay_event::Capability;
use podbay_wire::Call;

/// The longest command that a person is asked about, as it is written in a call: the question shows
/// all of it.
const ASKED_MAX: usize = 64 << 10;

#[derive(Clone, Debug)]
pub(super) struct Reading {
    /// The script, without blanks around it.
    pub(super) text: String,
    pub(super) script: Script,
    /// What a person has to decide about each of its commands, in their order.
    decides: Vec<Option<Capability>>,
}

impl Reading {
    pub(super) fn new(text: &str) -> Self {
        let script = shell::read(text);
        let decides = script
            .commands
            .iter()
            .map(|command| programs::decides(&command.texts(UNKNOWN)))
            .collect();
        Self {
            text: trimmed(text).to_owned(),
            script,
            decides,
        }
    }

    /// Reads the command that an action is, if it is one.
    pub(super) fn of(action: &Action) -> Option<Self> {
        match action {
            Action::Box(Call::Bash(bash)) => Some(Self::new(&bash.command)),
            Action::Box(Call::Hook(hook)) | Action::Host(HostCall::Hook(hook)) => {
                Some(Self::new(&hook.command))
            }
            _ => None,
        }
    }

    /// Returns its commands, each with what a person has to decide about it.
    pub(super) fn commands(&self) -> impl Iterator<Item = (&Command, Option<&Capability>)> {
        self.script
            .commands
            .iter()
            .zip(self.decides.iter().map(Option::as_ref))
    }

    /// Returns what all of it needs.
    pub(super) fn capabilities(&self) -> Vec<Capability> {
        self.capabilities_but(|_, _| false)
    }

    /// Returns what all of it needs but for what is open.
    pub(super) fn capabilities_but(
        &self,
        is_open: impl Fn(&Command, &Capability) -> bool,
    ) -> Vec<Capability> {
        let decided = self
            .commands()
            .filter_map(|(command, decides)| decides.filter(|decides| !is_open(command, decides)));
        let all: BTreeSet<Capability> =
            decided.cloned().chain([Capability::RunInSandbox]).collect();
        all.into_iter().collect()
    }

    /// Says what of it could not be read.
    pub(super) fn unknown(&self) -> String {
        let unknown = self.script.unknown;
        unknown.map_or_else(String::new, |what| {
            format!(" (not all of the command can be read: it has {what}; write it out, one command at a time)")
        })
    }

    /// Says why nobody is asked about it: what a question would have to leave out, a person would
    /// allow unseen.
    pub(super) fn too_long(&self) -> Option<String> {
        let n_bytes = serde_json::Value::from(self.text.as_str())
            .to_string()
            .len();
        (n_bytes > ASKED_MAX).then(|| {
            format!(
                "a person would have to be asked, and a command of {n_bytes} bytes is more than a question shows (64 KiB); write what is long into a file \
                 with write_file, and run a short command"
            )
        })
    }
}
