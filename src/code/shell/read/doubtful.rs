//! What is in doubt once all of a text was read: what is computed, and programs by names that are not known.

use super::RESERVED;
use super::Reader;
use super::push;
use crate::code::shell::Command;
use crate::code::shell::Word;
use crate::code::shell::numbers;
use crate::code::shell::numbers::Computed;
use crate::code::shell::walk;

impl Reader {
    /// Doubts what is computed from variables that may hold more than a number, and takes those that hold one for one word.
    pub(super) fn numbers(&mut self) {
        let (computed, unread): (Vec<_>, Vec<_>) =
            self.script.commands.iter().flat_map(computed_by_words).partition(|(_, variables)| variables.is_some());
        for (what, _) in unread {
            self.doubt(&what, numbers::COMPUTES);
        }
        let computed = computed.into_iter().map(|(what, variables)| Computed { what, variables: variables.unwrap_or_default() });
        self.computed.extend(computed);
        let sets = self.script.commands.iter().any(|command| !command.assignments.is_empty()) || !self.script.values.is_empty();
        if self.computed.is_empty() && !sets {
            return;
        }
        let numbers = numbers::of(&self.script);
        for Computed { what, variables } in std::mem::take(&mut self.computed) {
            if variables.iter().any(|variable| !numbers.is_one(variable)) {
                self.doubt(&what, numbers::COMPUTES);
            }
        }
        for word in self.script.commands.iter_mut().flat_map(|command| &mut command.words) {
            word.quoted |= numbers.is_word(word);
        }
    }

    /// Doubts the programs whose names are not known, and those that come as a surprise.
    pub(super) fn names(&mut self) {
        let mut found = Vec::new();
        for command in &self.script.commands {
            let Some(program) = command.program() else { continue };
            match program.known() {
                None => push(&mut found, &program.text, "which program that is shows only when it runs"),
                Some("") => push(&mut found, "''", "a program without a name"),
                Some(name) if RESERVED.contains(&name) => {
                    push(&mut found, name, "a word of the shell's grammar out of place");
                }
                Some(_) => {}
            }
        }
        self.script.doubts.append(&mut found);
    }
}

/// Returns what `let`, or a variable that is declared to hold a number, makes the shell compute: the text, and the variables in it where it
/// certainly does no more.
fn computed_by_words(command: &Command) -> Vec<(String, Option<Vec<String>>)> {
    let arguments = command.arguments();
    let text = |word: &Word| word.text.clone();
    match command.name() {
        Some("let") => arguments.iter().map(|word| (text(word), walk::variables(&word.text))).collect(),
        Some("declare" | "typeset" | "local" | "readonly" | "export")
            if arguments.iter().any(|word| word.text.starts_with('-') && word.text.contains('i')) =>
        {
            let named = arguments.iter().filter(|word| !word.text.starts_with(['-', '+'])).map(|word| word.text.as_str());
            let names = command.assignments.iter().map(|set| set.name.as_str()).chain(named);
            names.map(|name| (name.to_owned(), walk::variables(name))).collect()
        }
        _ => Vec::new(),
    }
}
