//! What stands in a text in another place than where it counts: values of variables, and what one command writes for the next.
//!
//! All of it is read besides, and takes nothing off: a command whose words are not known stays one.

use std::collections::HashMap;

use super::Command;
use super::Value;
use super::Word;
use super::WordKind;

/// Longest value that is put in.
const VALUE_MAX: usize = 1024;

/// Values that the text gives to variables.
#[derive(Default)]
pub(super) struct Values(HashMap<String, String>);

impl Values {
    /// Remembers what a command sets for those behind it.
    pub(super) fn note(&mut self, command: &Command) {
        match command.name() {
            Some("read") => self.note_read(command),
            Some("set") => self.note_set(command.arguments()),
            _ => {}
        }
        if !command.words.is_empty() && !matches!(command.name(), Some("export" | "local" | "declare" | "typeset" | "readonly")) {
            return;
        }
        for assignment in &command.assignments {
            let value = assignment.value.as_ref().and_then(|value| match value.known() {
                Some(text) => Some(text.to_owned()),
                None => self.replaced(&value.text),
            });
            match value.filter(|value| value.len() <= VALUE_MAX && !value.contains('$')) {
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
            if let Some(all) = listed(word) {
                is_new = true;
                return vec![all];
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
        let listed = listed(&self.word);
        let word = listed.as_ref().unwrap_or(&self.word);
        let text = (word.kind != WordKind::Unknown && word.text.len() <= VALUE_MAX).then(|| word.text.clone())?;
        Values(HashMap::from([(self.variable.clone(), text)])).put_in(command, &mut VALUE_MAX.saturating_mul(16))
    }
}

/// Returns the pattern that a word stands for in which `ls` lists all of a folder.
fn listed(word: &Word) -> Option<Word> {
    if word.kind != WordKind::Unknown {
        return None;
    }
    let text = word.text.strip_prefix("$(").and_then(|text| text.strip_suffix(')'));
    let text = text.or_else(|| word.text.strip_prefix('`').and_then(|text| text.strip_suffix('`')))?;
    let mut words = text.split_whitespace();
    let is_any = |word: &str| word.starts_with('-') || word.chars().all(|c| "./*".contains(c));
    let is_all = words.next() == Some("ls") && words.all(is_any);
    is_all.then(|| Word { text: "*".to_owned(), kind: WordKind::Pattern, plain: false, quoted: false })
}

/// Returns what a command's input holds: a text that it is given, or what the one in front of it writes.
pub(super) fn given<'a>(command: &Command, before: Option<&'a Command>) -> Option<String> {
    let text = command.redirections.iter().rev().find(|redirection| matches!(redirection.operator.as_str(), "<<" | "<<<"));
    if let Some(text) = text {
        return text.target.as_ref().and_then(Word::known).map(ToOwned::to_owned);
    }
    let before = before?;
    let arguments = before.arguments();
    let operands = || arguments.iter().take_while(|word| !word.text.starts_with(['-', '(', '!'])).map(|word| word.text.as_str());
    let is_all = |word: &Word| word.text.chars().all(|c| "./*?".contains(c));
    let reads = |names: &[&str]| command.name().is_some_and(|name| names.contains(&name));
    match before.name()? {
        "echo" | "printf" => {
            let word = |word: &'a Word| (word.kind != WordKind::Unknown).then_some(word.text.as_str());
            let words: Option<Vec<&str>> = arguments.iter().map(word).collect();
            Some(words?.join(" ").replace("\\n", "\n"))
        }
        "ls" if reads(&["xargs", "read"]) => {
            let as_they_are =
                arguments.iter().any(|word| word.text.starts_with('-') && !word.text.starts_with("--") && word.text.contains('d'));
            let inside = |word: &Word| match word.kind {
                WordKind::Unknown => None,
                WordKind::Known if !as_they_are => Some(format!("{}/*", word.text.trim_end_matches('/'))),
                WordKind::Known | WordKind::Pattern => Some(word.text.clone()),
            };
            let listed: Option<Vec<String>> = arguments.iter().filter(|word| !word.text.starts_with('-')).map(inside).collect();
            let listed = listed?;
            Some(if listed.is_empty() { if as_they_are { "." } else { "./*" }.to_owned() } else { listed.join(" ") })
        }
        "find" if reads(&["xargs", "read"]) => {
            // With a test it names some of them, but for one that all names pass.
            let mut rest = arguments.iter().skip(operands().count());
            while let Some(word) = rest.next() {
                match word.text.as_str() {
                    "-print" | "-print0" | "-depth" => {}
                    "-mindepth" | "-maxdepth" | "-type" => {
                        rest.next();
                    }
                    "-name" | "-path" if rest.next().is_some_and(is_all) => {}
                    _ => return None,
                }
            }
            let places: Vec<&str> = operands().collect();
            Some(if places.is_empty() { ".".to_owned() } else { places.join(" ") })
        }
        _ => None,
    }
}
