//! What is in doubt once all of a text was read: what is computed, and programs by names that are not known.

use super::RESERVED;
use super::Reader;
use super::push;
use crate::shell::Command;
use crate::shell::Word;
use crate::shell::numbers;
use crate::shell::numbers::Computed;
use crate::shell::walk;

/// Variables of the shell itself that hold numbers: what they are given is computed.
const COMPUTING: [&str; 6] = ["RANDOM", "OPTIND", "HISTCMD", "SECONDS", "LINENO", "SRANDOM"];

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

    /// Doubts what is given to variables that the shell computes: it would run a substitution in the index of what stands there.
    pub(super) fn computing(&mut self) {
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let is_computed = |name: &str, word: Option<&Word>| COMPUTING.contains(&name) && !word.and_then(Word::known).is_some_and(is_number);
        let sets = self.script.commands.iter().flat_map(|command| &command.assignments);
        let sets = sets.filter(|set| is_computed(&set.name, set.value.as_ref())).map(|set| set.name.clone());
        let values = self.script.values.iter().filter(|value| is_computed(&value.variable, Some(&value.word)));
        let reads = self.script.commands.iter().filter(|command| matches!(command.name(), Some("read" | "mapfile" | "readarray")));
        let reads = reads.flat_map(Command::arguments).filter(|word| COMPUTING.contains(&word.text.as_str()));
        let found: Vec<String> =
            sets.chain(values.map(|value| value.variable.clone())).chain(reads.map(|word| word.text.clone())).collect();
        for name in found {
            self.doubt(&name, numbers::COMPUTES);
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
