//! Values of variables, put where the variables stand.
//!
//! All of it is read besides, and takes nothing off: a command whose words are not known stays one.

use std::collections::HashMap;

use super::Command;
use super::Value;
use super::Word;
use super::WordKind;
use super::said;

/// How the folder is written that a command runs in.
pub const HERE: [&str; 12] = [
    "$PWD",
    "${PWD}",
    "${PWD%/}",
    "~+",
    "$(pwd)",
    "`pwd`",
    "$(realpath .)",
    "$(readlink -f .)",
    "$(readlink -e .)",
    "$(pwd -P)",
    "$(pwd -L)",
    "$(echo $PWD)",
];
/// Longest value that is put in.
const VALUE_MAX: usize = 1024;
/// Most lines of one text that are put into a variable, one after the other.
const LINES_MAX: usize = 16;

/// Values that the text gives to variables.
#[derive(Default)]
pub(super) struct Values(HashMap<String, String>);

impl Values {
    /// Remembers what a command sets for those behind it.
    pub(super) fn note(&mut self, command: &Command) {
        match command.name() {
            Some("read") => self.note_read(command),
            Some("mapfile" | "readarray") => self.note_lines(command),
            Some("set") => self.note_set(command.arguments()),
            _ => {}
        }
        if !command.words.is_empty() && !matches!(command.name(), Some("export" | "local" | "declare" | "typeset" | "readonly")) {
            return;
        }
        for assignment in &command.assignments {
            let value = assignment.value.as_ref().and_then(|value| match value.known() {
                Some(text) => Some(text.to_owned()),
                None if HERE.contains(&value.text.as_str()) => Some(value.text.clone()),
                None => self.replaced(&value.text).or_else(|| joined(&said::listed(value)?)),
            });
            let is_settled = |value: &String| value.len() <= VALUE_MAX && (!value.contains('$') || HERE.contains(&value.as_str()));
            match value.filter(is_settled) {
                Some(value) => self.0.insert(assignment.name.clone(), value),
                None => self.0.remove(&assignment.name),
            };
        }
    }

    /// `read A B` takes a line apart; the last one gets what is left.
    fn note_read(&mut self, command: &Command) {
        let Some(line) = command.given.as_deref().and_then(|given| given.lines().next()) else { return };
        let mut rest = line.trim();
        let mut names = command.arguments().iter().map(|word| word.text.as_str()).filter(|text| !text.starts_with('-')).peekable();
        while let Some(name) = names.next() {
            let (first, behind) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
            let value = if names.peek().is_some() { first } else { rest };
            if value.len() <= VALUE_MAX {
                self.0.insert(name.to_owned(), value.to_owned());
            }
            rest = behind.trim_start();
        }
    }

    /// `mapfile A` makes a list of all lines.
    fn note_lines(&mut self, command: &Command) {
        let (Some(text), Some(name)) = (&command.given, variable(command)) else { return };
        let all = text.lines().map(str::trim).collect::<Vec<_>>().join(" ");
        if all.len() <= VALUE_MAX {
            self.0.insert(name.to_owned(), all);
        }
    }

    /// `set -- A B` makes them `$1` and `$2`.
    fn note_set(&mut self, arguments: &[Word]) {
        let is_bare = arguments.first().is_some_and(|word| !word.text.starts_with(['-', '+']));
        let from = arguments.iter().position(|word| word.text == "--").map(|at| at + 1).or(is_bare.then_some(0));
        let Some(from) = from else { return };
        let words: Vec<&Word> = arguments[from..].iter().take_while(|word| word.kind != WordKind::Unknown).collect();
        for (at, word) in words.iter().enumerate() {
            self.0.insert((at + 1).to_string(), word.text.clone());
        }
        let all = words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
        if all.len() <= VALUE_MAX {
            self.0.insert("@".to_owned(), all.clone());
            self.0.insert("*".to_owned(), all);
        }
    }

    /// Returns a command with values in the places of its variables; `None` where it has none that are known.
    pub(super) fn put_in(&self, command: &Command, left: &mut usize) -> Option<Command> {
        let mut is_new = false;
        let mut length = 0;
        let mut put = |word: &Word| {
            if let Some(all) = said::listed(word) {
                is_new = true;
                return all;
            }
            let replaced = (word.kind == WordKind::Unknown).then(|| self.replaced(&word.text)).flatten();
            let Some(text) = replaced else { return vec![word.clone()] };
            is_new = true;
            length += text.len();
            let kind = |text: &str| match text {
                _ if text.contains(['$', '`']) || text.contains("<(") => WordKind::Unknown,
                _ if !word.quoted && text.contains(['*', '?']) => WordKind::Pattern,
                _ => WordKind::Known,
            };
            let one = |text: &str| Word { text: text.to_owned(), kind: kind(text), plain: false, quoted: word.quoted };
            let is_whole = word.quoted || kind(&text) == WordKind::Unknown;
            if is_whole { vec![one(&text)] } else { text.split_whitespace().map(one).collect() }
        };
        let words: Vec<Word> = command.words.iter().flat_map(&mut put).collect();
        let mut redirections = command.redirections.clone();
        for redirection in &mut redirections {
            redirection.target = redirection.target.take().and_then(|target| put(&target).into_iter().next());
        }
        *left = left.checked_sub(length)?;
        is_new.then(|| Command { words, redirections, again: command.name().is_some(), ..command.clone() })
    }

    /// Returns a word's text with the values in it that are known; `None` where there is none.
    fn replaced(&self, text: &str) -> Option<String> {
        let mut made = String::new();
        let mut rest = text;
        let mut is_new = false;
        while let Some(at) = rest.find('$') {
            made.push_str(&rest[..at]);
            let behind = &rest[at + 1..];
            let is_braced = behind.starts_with('{');
            let name = behind.trim_start_matches('{');
            let end = if name.starts_with(['@', '*']) {
                1
            } else {
                name.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(name.len())
            };
            let name = &name[..end];
            let after = behind.strip_prefix('{').unwrap_or(behind).strip_prefix(name).unwrap_or_default();
            // One of a list's elements, or all of them.
            let element = after.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(_, rest)| rest);
            let after = if is_braced { element.unwrap_or(after).strip_prefix('}') } else { Some(after) };
            match (after, self.0.get(name)) {
                (Some(after), Some(value)) if made.len() <= VALUE_MAX => {
                    made.push_str(value);
                    is_new = true;
                    rest = after;
                }
                _ => {
                    made.push('$');
                    rest = behind;
                }
            }
        }
        made.push_str(rest);
        is_new.then_some(made)
    }
}

impl Value {
    /// Returns a command with this value in the place of its variable; `None` where it does not name it.
    pub fn put_in(&self, command: &Command) -> Option<Command> {
        let listed = said::listed(&self.word);
        let words = listed.as_deref().unwrap_or(std::slice::from_ref(&self.word));
        let is_known = words.iter().all(|word| word.kind != WordKind::Unknown);
        let text = joined(words).filter(|_| is_known)?;
        Values(HashMap::from([(self.variable.clone(), text)])).put_in(command, &mut VALUE_MAX.saturating_mul(16))
    }
}

fn joined(words: &[Word]) -> Option<String> {
    let text = words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
    (text.len() <= VALUE_MAX).then_some(text)
}

/// Returns the values that a command reads into a variable: line for line, as a loop around it does.
pub(super) fn read_lines(command: &Command) -> Vec<Value> {
    let reads = matches!(command.name(), Some("read" | "mapfile" | "readarray"));
    let (Some(text), Some(name)) = (command.given.as_deref().filter(|_| reads), variable(command)) else { return Vec::new() };
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && line.len() <= VALUE_MAX);
    let word = |line: &str| Word { text: line.to_owned(), kind: WordKind::Known, plain: false, quoted: false };
    lines.take(LINES_MAX).map(|line| Value { variable: name.to_owned(), word: word(line) }).collect()
}

/// Returns the last variable that a command reads into.
fn variable(command: &Command) -> Option<&str> {
    command.arguments().last().and_then(Word::known).filter(|text| !text.starts_with('-'))
}
