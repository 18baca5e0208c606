//! Words that a text is given and moves along, `shift`, and programs that are named by one of several values.

use super::Reader;
use crate::code::shell::Command;
use crate::code::shell::Value;
use crate::code::shell::Word;
use crate::code::shell::WordKind;

/// Most programs that are put where one of several values names them, in all of a text.
pub(super) const NAMED_MAX: usize = 64;
/// How many values are looked at for one.
const VALUES_MAX: usize = 64;
/// How many words `shift` may take away.
const SHIFTS_MAX: usize = 6;

impl Reader {
    /// Remembers what the words may be that a text is given where it moves them along. When it does is not looked at: each may be any that stands
    /// behind it.
    pub(super) fn note_shifted(&mut self, text: &str, words: &[Word]) {
        if !text.contains("shift") {
            return;
        }
        let all_from = |from: usize| {
            let texts: Vec<&str> = words[from..].iter().map(|word| word.text.as_str()).collect();
            let is_known = words[from..].iter().all(|word| word.kind != WordKind::Unknown);
            is_known.then(|| Word { kind: WordKind::Known, ..Word::unknown(&texts.join(" ")) })
        };
        for from in 1..words.len().min(SHIFTS_MAX + 1) {
            let named = ["1", "2", "3"].into_iter().zip(&words[from..]).map(|(name, word)| (name, word.clone()));
            let all = all_from(from).into_iter().flat_map(|all| ["@", "*"].map(|name| (name, all.clone())));
            let is_named = |name: &str| text.contains(&format!("${name}")) || text.contains(&format!("${{{name}"));
            let values = named.chain(all).filter(|(name, _)| is_named(name));
            self.script.values.extend(values.map(|(variable, word)| Value { variable: variable.to_owned(), word }));
        }
    }

    /// Returns a command with each program that one of several values may make it: `for tool in git make; do $tool …`.
    pub(super) fn with_programs_by_value(&mut self, command: &Command) -> Vec<Command> {
        if command.program().is_none_or(|program| program.kind != WordKind::Unknown) {
            return Vec::new();
        }
        let made = self.script.values.iter().take(VALUES_MAX).filter_map(|value| value.put_in(command));
        let made: Vec<Command> = made.filter(|made| made.name().is_some()).take(self.named_left).collect();
        self.named_left -= made.len();
        made
    }
}
