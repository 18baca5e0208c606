//! What stands in a text in another place than where it counts: values of variables, and what one command writes for the next.
//!
//! All of it is read besides, and takes nothing off: a command whose words are not known stays one.

use std::collections::HashMap;

use super::Command;
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

    /// Returns a command with values in the places of its variables; `None` where it has none that are known.
    pub(super) fn put_in(&self, command: &Command, left: &mut usize) -> Option<Command> {
        if self.0.is_empty() {
            return None;
        }
        let mut is_new = false;
        let mut length = 0;
        let mut put = |word: &Word| {
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
            let name = &name[..name.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(name.len())];
            let after = behind.strip_prefix('{').unwrap_or(behind).strip_prefix(name).unwrap_or_default();
            let after = if is_braced { after.strip_prefix('}') } else { Some(after) };
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

/// Returns what a command's input holds: a text that it is given, or what the one in front of it writes.
pub(super) fn given(command: &Command, before: Option<&Command>) -> Option<String> {
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
            let words: Option<Vec<&str>> = arguments.iter().map(Word::known).collect();
            Some(words?.join(" ").replace("\\n", "\n"))
        }
        "ls" if reads(&["xargs"]) && arguments.iter().all(|word| word.text.starts_with('-')) => Some("./*".to_owned()),
        "find" if reads(&["xargs"]) => {
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
