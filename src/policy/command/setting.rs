//! What `set` says of a shell: that it is left where a command fails, or where a variable has no value.

use std::collections::HashMap;

use podbay_code::shell::Command;
use podbay_code::shell::Script;
use podbay_code::shell::Word;

/// A setting that ends a shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    /// `set -e`
    OnError,
    /// `set -u`
    OnUnset,
}

impl Setting {
    fn named(self) -> (char, &'static str) {
        match self {
            Self::OnError => ('e', "errexit"),
            Self::OnUnset => ('u', "nounset"),
        }
    }
}

/// What each shell of a script was set to so far, by its number.
#[derive(Default)]
pub(super) struct Settings([HashMap<usize, bool>; 2]);

impl Settings {
    /// Notes what a command sets. What may not be carried out, or cannot be read, sets nothing and may take everything back.
    pub(super) fn note(&mut self, command: &Command) {
        if command.name() == Some("shopt") && command.arguments().iter().any(|word| word.text.starts_with('-') && word.text.contains('o')) {
            // By other names it sets the same.
            for shells in &mut self.0 {
                shells.insert(command.shell, false);
            }
        }
        if command.name() != Some("set") {
            return;
        }
        for setting in [Setting::OnError, Setting::OnUnset] {
            match said(command.arguments(), setting.named()) {
                Some(true) if !command.is_certain => {}
                Some(is_on) => {
                    self.0[setting as usize].insert(command.shell, is_on);
                }
                None => {}
            }
        }
    }

    /// Returns whether a command's shell is left then: what it, or else the one around it, was set to.
    pub(super) fn ends(&self, setting: Setting, command: &Command, script: &Script) -> bool {
        let mut shell = command.shell;
        loop {
            if let Some(is_on) = self.0[setting as usize].get(&shell) {
                return *is_on;
            }
            match shell.checked_sub(1).and_then(|at| script.shells.get(at)) {
                Some(around) if *around < shell => shell = *around,
                _ => return false,
            }
        }
    }
}

/// Returns what the words behind `set` say of one option, if they do.
fn said(arguments: &[Word], (letter, name): (char, &str)) -> Option<bool> {
    let mut said = None;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let Some(text) = word.known() else { return Some(false) };
        let (is_on, letters) = match text.split_at_checked(1) {
            Some(("-", letters)) if !letters.is_empty() && letters != "-" => (true, letters),
            Some(("+", letters)) => (false, letters),
            // What follows are words that the script is given.
            _ => return said,
        };
        if letters.contains(letter) {
            said = Some(is_on);
        }
        if letters.contains('o') {
            match words.next().map(Word::known) {
                Some(Some(option)) if option == name => said = Some(is_on),
                Some(None) => return Some(false),
                _ => {}
            }
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, on_error: Option<bool>, on_unset: Option<bool>) {
        let script = podbay_code::shell::read(text);
        let arguments = script.commands[0].arguments();
        assert_eq!(said(arguments, Setting::OnError.named()), on_error, "{text}");
        assert_eq!(said(arguments, Setting::OnUnset.named()), on_unset, "{text}");
    }

    #[test]
    fn what_a_shell_is_set_to_is_read_up_to_its_words() {
        check("set -e", Some(true), None);
        check("set -euo pipefail", Some(true), Some(true));
        check("set -eo pipefail -u", Some(true), Some(true));
        check("set -o errexit -o nounset", Some(true), Some(true));
        check("set +e -u", Some(false), Some(true));
        check("set +o errexit", Some(false), None);
        check("set -e +e", Some(false), None);
        check("set -x", None, None);
        check("set -- -e", None, None);
        check("set a -u", None, None);
        check("set $x", Some(false), Some(false));
        check("set", None, None);
    }
}
