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

/// Such values, by the names of their variables.
#[derive(Default)]
pub(super) struct Texts(HashMap<String, String>);

impl Texts {
    /// Remembers what a command gives to variables of the shell.
    pub(super) fn note(&mut self, command: &Command) {
        let declares = matches!(command.name(), Some("export" | "local" | "declare" | "typeset" | "readonly"));
        if !command.words.is_empty() && !declares {
            return;
        }
        for Assignment { name, value } in &command.assignments {
            match value.as_ref().and_then(text).filter(|_| self.0.len() < TEXTS_MAX) {
                Some(text) => _ = self.0.insert(name.clone(), text),
                None => _ = self.0.remove(name),
            }
        }
    }

    /// Returns the text that a shell reads where such a variable stands for a command, or is handed to a shell.
    pub(super) fn read_by(&self, command: &Command) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        let held = |word: &Word| self.0.get(word.text.strip_prefix('$')?.trim_start_matches('{').trim_end_matches('}'));
        let reads = command.name().is_some_and(|name| name == "eval" || RUNNING.contains(&name));
        let from = command.words.iter().position(|word| held(word).is_some()).filter(|at| *at == 0 || reads)?;
        let said = |word: &Word| held(word).unwrap_or(&word.text).clone();
        Some(command.words[from..].iter().map(said).collect::<Vec<_>>().join(" "))
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
    use crate::code::shell;

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
    }
}
