//! Values of several words in which something expands, which a shell reads later: `CMD="git push $REMOTE"; $CMD`.
//!
//! What expands in them stays in doubt; as a text for a shell the rest is what it says.

use std::collections::HashMap;

use super::Assignment;
use super::Command;
use super::Word;
use super::WordKind;
use super::runs::RUNNING;
use super::written;

/// Most values that are kept.
const TEXTS_MAX: usize = 32;
/// The longest of them.
const LENGTH_MAX: usize = 1024;

/// How often one of them is read.
const READ_MAX: usize = 32;

/// Such values, by the names of their variables.
#[derive(Default)]
pub(super) struct Texts {
    held: HashMap<String, String>,
    n_read: usize,
}

impl Texts {
    /// Remembers what a command gives to variables of the shell.
    pub(super) fn note(&mut self, command: &Command) {
        let declares = matches!(command.name(), Some("export" | "local" | "declare" | "typeset" | "readonly"));
        if !command.words.is_empty() && !declares {
            return;
        }
        for Assignment { name, value } in &command.assignments {
            match value.as_ref().and_then(text).filter(|_| self.held.len() < TEXTS_MAX) {
                Some(text) => _ = self.held.insert(name.clone(), text),
                None => _ = self.held.remove(name),
            }
        }
    }

    /// Returns the text that a shell reads where such a variable stands for a command, or is handed to a shell.
    pub(super) fn read_by(&mut self, command: &Command) -> Option<String> {
        if self.held.is_empty() || self.n_read >= READ_MAX {
            return None;
        }
        let held = |word: &Word| self.held.get(word.text.strip_prefix('$')?.trim_start_matches('{').trim_end_matches('}'));
        let is_text_option = |word: &Word| word.text.starts_with('-') && !word.text.starts_with("--") && word.text.contains('c');
        let (from, until) = match command.name() {
            Some("eval") => (1, command.words.len()),
            // Behind its text stand words that the text is given.
            Some(name) if RUNNING.contains(&name) => {
                let at = command.words.iter().position(is_text_option)? + 1;
                (at, at + 1)
            }
            _ => (0, command.words.len()),
        };
        let words = command.words.get(from..until)?;
        let is_held =
            if from == 0 { words.first().is_some_and(|word| held(word).is_some()) } else { words.iter().any(|word| held(word).is_some()) };
        let said = |word: &Word| held(word).unwrap_or(&word.text).clone();
        let text = is_held.then(|| words.iter().map(said).collect::<Vec<_>>().join(" "))?;
        self.n_read += 1;
        Some(text)
    }
}

/// Returns a value as the text that it is, where something expands in it and it is more than that.
fn text(value: &Word) -> Option<String> {
    if value.kind != WordKind::Unknown {
        return None;
    }
    let text = written::substituted(value).map_or_else(|| value.text.clone(), |said| said.text);
    let is_text = text.contains(char::is_whitespace) && !text.starts_with(['$', '`']) && text.len() <= LENGTH_MAX;
    is_text.then_some(text)
}

#[cfg(test)]
mod tests {
    use crate::shell;

    #[track_caller]
    fn check(text: &str, is_read: bool) {
        let script = shell::read(text);
        let is_push = |command: &shell::Command| command.words.iter().take(2).map(|word| word.text.as_str()).eq(["git", "push"]);
        assert_eq!(script.commands.iter().any(is_push), is_read, "{text}");
        assert!(!is_read || !script.is_known(), "{text}: it stays in doubt");
    }

    #[test]
    fn a_value_in_which_something_expands_is_read_where_a_shell_gets_it() {
        check("CMD=\"git push $B\"; $CMD", true);
        check("CMD=\"git push $B\"; ${CMD} --force", true);
        check("CMD=\"git push $B\"; eval \"$CMD\"", true);
        check("CMD=\"git push $B\"; bash -c \"$CMD\"", true);
        check("export CMD=\"git push $B\"; sh -c \"$CMD\"", true);
        check("CMD=\"git push $B\"; echo \"$CMD\"", false);
        check("CMD=\"git push $B\"; CMD=ls; $CMD", false);
        check("CMD=\"$A $B\"; $CMD", false);
        check("MSG=\"git push $X\"; bash notify.sh \"$MSG\"", false);
        check("MSG=\"git push $X\"; bash -c 'echo \"$1\"' _ \"$MSG\"", false);
    }
}
