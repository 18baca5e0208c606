//! Words that a text is given and moves along, `shift`, and programs that are named by one of several values.

use std::iter;

use super::Reader;
use crate::shell::Command;
use crate::shell::Value;
use crate::shell::Word;
use crate::shell::WordKind;

/// Most programs that are put where one of several values names them, in all of a text.
pub(super) const NAMED_MAX: usize = 64;
/// Most values that are noted of words which `set` gave and `shift` moves along.
pub(super) const MOVED_MAX: usize = 64;
/// Most times that functions and files are read once more with fewer words, together.
pub(super) const READINGS_MAX: usize = 64;
/// How many values are looked at for one.
const VALUES_MAX: usize = 64;
/// How many words `shift` may take away.
const SHIFTS_MAX: usize = 6;
/// The variables that the first of the words are, and all of them.
const NAMES: [&str; 5] = ["1", "2", "3", "@", "*"];

/// Returns the lists of words that a text may have, which is given one, behind the name that comes first: that, and where it moves them along, what is
/// left each time. When it does so is not looked at.
pub(super) fn given(text: &str, words: &[Word]) -> Vec<Vec<Word>> {
    let Some((name, rest)) = words.split_first() else { return vec![Vec::new()] };
    let n_shifts = if text.contains("shift") { rest.len().saturating_sub(1).min(SHIFTS_MAX) } else { 0 };
    (0..=n_shifts).map(|from| iter::once(name).chain(&rest[from..]).cloned().collect()).collect()
}

/// Returns which of its words a text names, where it moves them along.
pub(super) fn moved(text: &str) -> Vec<&'static str> {
    if !text.contains("shift") {
        return Vec::new();
    }
    let is_named = |name: &&str| text.contains(&format!("${name}")) || text.contains(&format!("${{{name}"));
    NAMES.into_iter().filter(is_named).collect()
}

impl Reader {
    /// Remembers what the words of a text may be behind `set`, which it names by these and moves along: each may be any that stands behind it.
    pub(super) fn note_moved(&mut self, names: &[&'static str], words: &[Word]) {
        for from in 1..words.len().min(SHIFTS_MAX + 1) {
            let rest = &words[from..];
            for (at, name) in NAMES.into_iter().enumerate().filter(|(_, name)| names.contains(name)) {
                let all = || rest.iter().all(|word| word.kind != WordKind::Unknown).then(|| joined(rest));
                let Some(word) = (if at < 3 { rest.get(at).cloned() } else { all() }) else { continue };
                if self.moved_left == 0 {
                    return self.doubt("shift", "too many words are moved along for all of them to be read");
                }
                self.moved_left -= 1;
                self.script.values.push(Value { variable: name.to_owned(), word });
            }
        }
    }

    /// Returns a command with each program that one of several values may make it: `for tool in git make; do $tool …`.
    pub(super) fn with_programs_by_value(&mut self, command: &Command) -> Vec<Command> {
        let Some(program) = command.program().filter(|program| program.kind == WordKind::Unknown) else { return Vec::new() };
        let values = self.script.values.iter().filter(|value| program.text.contains(&value.variable)).take(VALUES_MAX);
        let made = values.filter_map(|value| value.put_in(command)).filter(|made| made.name().is_some());
        let made: Vec<Command> = made.take(self.named_left).collect();
        self.named_left -= made.len();
        made
    }
}

fn joined(words: &[Word]) -> Word {
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    Word { kind: WordKind::Known, ..Word::unknown(&texts.join(" ")) }
}
