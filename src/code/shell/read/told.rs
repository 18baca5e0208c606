//! What a text says itself by way of others: a substitution that stands for a text, a group whose output goes into a file.

use super::Reader;
use crate::shell::Assignment;
use crate::shell::Command;
use crate::shell::Redirection;
use crate::shell::Word;
use crate::shell::WordKind;
use crate::shell::runs;
use crate::shell::said;
use crate::shell::written;

/// Most substitutions that are looked at for what they say.
const TOLD_MAX: usize = 256;
/// Why what a command is given is in doubt.
const TOO_MUCH_GIVEN: &str = "too much of what the text says goes from one command to the next";

impl Reader {
    /// Remembers what a command writes where a group or a function around it is written into a file.
    pub(super) fn note_into(&mut self, command: &Command, before: Option<&Command>) {
        let says = matches!(command.name(), Some("cat" | "echo" | "printf"));
        if !says || command.redirections.iter().any(Redirection::writes) {
            return;
        }
        let added = self.into.iter().map(|into| Redirection { operator: ">>".to_owned(), ..into.clone() });
        let redirections: Vec<Redirection> = command.redirections.iter().cloned().chain(added).collect();
        if redirections.len() > command.redirections.len() {
            self.files.note(&Command { redirections, ..command.clone() }, before, self.script.commands.len());
        }
    }

    /// Gives a command the text that goes through a pipe, where something expands in that; returns what goes on behind it.
    pub(super) fn give_what_passes(&mut self, command: &mut Command, passing: Option<String>) -> Option<String> {
        if command.given.is_none() && said::takes_text(command) {
            command.given.clone_from(&passing);
        }
        let passing = said::passed(command, passing);
        self.bound_given(command);
        passing
    }

    /// Takes away what a command is given where that is too much: each command of a pipe has a copy of its own.
    fn bound_given(&mut self, command: &mut Command) {
        let length = command.given.as_ref().map_or(0, String::len);
        if let Some(left) = self.given_left.checked_sub(length) {
            self.given_left = left;
        } else {
            command.given = None;
            self.doubt(command.name().unwrap_or("…"), TOO_MUCH_GIVEN);
        }
    }

    /// Returns a shell with what a substitution says in its place, where that stands in the text: `eval "$(cat <<'END' …)"`.
    pub(super) fn with_told_words(&mut self, command: &Command) -> Option<Command> {
        let reads = command.name().is_some_and(|name| name == "eval" || runs::RUNNING.contains(&name));
        let mut told = command.words.iter().any(|word| reads && word.text.starts_with("$(")).then(|| command.clone())?;
        let mut is_new = false;
        for word in &mut told.words {
            is_new |= self.tell(word);
        }
        told.again = true;
        Some(told).filter(|_| is_new)
    }

    /// Returns a command that sets variables to what substitutions say, in the same way.
    pub(super) fn with_told_values(&mut self, command: &Command) -> Option<Command> {
        let is_said = |set: &Assignment| set.value.as_ref().is_some_and(|value| value.text.starts_with("$("));
        let mut told = command.assignments.iter().any(is_said).then(|| command.clone())?;
        for value in told.assignments.iter_mut().filter_map(|set| set.value.as_mut()) {
            self.tell(value);
        }
        Some(told)
    }

    /// Puts what a substitution says in its place; returns whether that is known, or most of it.
    fn tell(&mut self, word: &mut Word) -> bool {
        if self.n_told >= TOLD_MAX || !word.text.starts_with("$(") {
            return false;
        }
        self.n_told += 1;
        let Some(said) = written::substituted(word) else { return false };
        let kind = if said.expands { WordKind::Unknown } else { WordKind::Known };
        *word = Word { text: said.text, kind, plain: false, quoted: word.quoted };
        true
    }
}
