//! Values of variables, put where the variables stand.
//!
//! All of it is read besides, and takes nothing off: a command whose words are not known stays one.

use std::collections::HashMap;

use super::Command;
use super::Value;
use super::Word;
use super::WordKind;
use super::expansion;
use super::expansion::Followed;
use super::held;
use super::said;
use super::unwrap::unnamed;

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
/// How the project's own folder is asked for.
pub const TOP: [&str; 2] = ["$(git rev-parse --show-toplevel)", "`git rev-parse --show-toplevel`"];
/// How git is asked for the folder that it keeps all in.
pub const GIT_FOLDER: [&str; 4] =
    ["$(git rev-parse --git-dir)", "`git rev-parse --git-dir`", "`git rev-parse --absolute-git-dir`", "`git rev-parse --git-common-dir`"];
/// How the folder is asked for that lies above.
pub const ABOVE: [&str; 6] =
    ["$(dirname $PWD)", "$(dirname \"$PWD\")", "$(dirname $(pwd))", "$(dirname \"$(pwd)\")", "`dirname $PWD`", "`dirname \"$PWD\"`"];
/// Longest value that is put in.
const VALUE_MAX: usize = 1024;
/// Most lines of one text that are put into a variable, one after the other.
pub const LINES_MAX: usize = 16;

/// Most variables that stand for others.
const REFERENCES_MAX: usize = 16;
/// Most of the words that a text is given that are put in by their numbers.
const GIVEN_MAX: usize = 10;

/// Values that the text gives to variables.
#[derive(Default)]
pub(super) struct Values(HashMap<String, String>, Followed, Vec<(String, String)>);

impl Values {
    /// Remembers what the command at this place of the script sets for those behind it; the text that it stands in is given so many words.
    pub(super) fn note(&mut self, command: &Command, given_words: usize, at: usize) {
        match command.name() {
            Some("read") => self.note_read(command),
            Some("mapfile" | "readarray") => self.note_lines(command),
            Some("set") => self.note_set(command.arguments(), at),
            Some("printf") => self.note_printf(command.arguments()),
            Some(":") => self.note_defaults(command.arguments()),
            _ => {}
        }
        let declares = matches!(command.name(), Some("export" | "local" | "declare" | "typeset" | "readonly"));
        if !command.words.is_empty() && !declares {
            return;
        }
        // `export "A=B"` is no assignment to the grammar.
        for (name, value) in
            command.arguments().iter().filter(|word| is_settled(word) || word.quoted).filter_map(|word| word.text.split_once('='))
        {
            if value.len() <= VALUE_MAX && is_name(name) && (!value.contains('$') || is_folder(value)) {
                self.0.insert(name.to_owned(), held::marked(value.to_owned(), at));
            }
        }
        let is_reference = matches!(command.name(), Some("declare" | "local" | "typeset"))
            && command.arguments().iter().any(|word| word.text.strip_prefix('-').is_some_and(|letters| letters.contains('n')));
        for assignment in &command.assignments {
            let value = assignment.value.as_ref().and_then(|value| match value.known() {
                Some(text) => Some(text.to_owned()),
                None if is_folder(&value.text) => Some(value.text.clone()),
                None => self.replaced(&value.text).or_else(|| Self::said(value, given_words)),
            });
            let stays = |value: &String| {
                value.len() <= VALUE_MAX && (!value.contains('$') || is_folder(value) || missing(value, given_words).is_some())
            };
            match value.filter(stays).map(|value| held::marked(value, at)) {
                Some(named) if is_reference => self.refer(&assignment.name, named),
                Some(value) => self.give(&assignment.name, value),
                None => _ = self.0.remove(&assignment.name),
            }
        }
    }

    /// Returns what a value comes to that no other variable says.
    fn said(value: &Word, given_words: usize) -> Option<String> {
        let listed = said::listed(value).and_then(|listed| joined(&listed));
        let program = || unnamed::said(&value.text).first().map(|name| (*name).to_owned());
        listed.or_else(program).or_else(|| missing(&value.text, given_words))
    }

    /// Gives a variable a value, and those that stand for it.
    fn give(&mut self, name: &str, value: String) {
        for (reference, _) in self.2.iter().filter(|(_, named)| named == name) {
            self.0.insert(reference.clone(), value.clone());
        }
        self.0.insert(name.to_owned(), value);
    }

    /// Makes a variable stand for another one: `declare -n A=B`.
    fn refer(&mut self, name: &str, named: String) {
        if let Some(value) = self.0.get(&named).cloned() {
            self.0.insert(name.to_owned(), value);
        }
        if self.2.len() < REFERENCES_MAX {
            self.2.push((name.to_owned(), named));
        }
    }

    /// Returns what the lists hold that variables stand for: each of these values once more, by the name of such a variable.
    pub(super) fn referred(&self, values: &[Value]) -> Vec<Value> {
        let listed = |name: &str| {
            values.iter().filter(move |value| value.variable == name).take(LINES_MAX).map(|value| value.word.clone()).collect::<Vec<_>>()
        };
        let references = self.2.iter();
        references.flat_map(|(name, named)| listed(named).into_iter().map(|word| Value { variable: name.clone(), word })).collect()
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

    /// `printf -v A` puts what it would write into a variable.
    fn note_printf(&mut self, arguments: &[Word]) {
        let [option, name, words @ ..] = arguments else { return };
        if option.text != "-v" || words.iter().any(|word| word.kind == WordKind::Unknown) {
            return;
        }
        let words: Vec<String> = words.iter().map(|word| word.text.clone()).collect();
        let value = said::formatted(&words);
        if value.len() <= VALUE_MAX {
            self.0.insert(name.text.clone(), value);
        }
    }

    /// `: "${A:=B}"` gives a variable the value that it has where it had none.
    fn note_defaults(&mut self, arguments: &[Word]) {
        for word in arguments {
            let set = word.text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).and_then(|inside| inside.split_once('='));
            let Some((name, _)) = set else { continue };
            let name = name.trim_end_matches(':');
            if let Some(value) = self.replaced(&word.text).filter(|value| value.len() <= VALUE_MAX && !value.contains('$')) {
                self.0.insert(name.to_owned(), value);
            }
        }
    }

    /// `set -- A B` makes them `$1` and `$2`.
    fn note_set(&mut self, arguments: &[Word], at: usize) {
        let Some(from) = set_from(arguments) else { return };
        let words = arguments[from..].iter().take_while(|word| is_settled(word)).map(|word| held::marked(word.text.clone(), at));
        let words: Vec<String> = words.collect();
        for (number, word) in (1..).zip(&words) {
            self.0.insert(number.to_string(), word.clone());
        }
        let all = words.join(" ");
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
        let mut words: Vec<Word> = command.words.iter().flat_map(&mut put).collect();
        let mut redirections = command.redirections.clone();
        for redirection in &mut redirections {
            // A text that is given is one, whatever blanks are in it.
            let is_text = redirection.operator.starts_with("<<");
            let target = redirection.target.take().map(|target| Word { quoted: target.quoted || is_text, ..target });
            redirection.target = target.and_then(|target| put(&target).into_iter().next());
        }
        // What expands within a program's name may be nothing.
        let unknown = words.first_mut().filter(|word| word.kind == WordKind::Unknown);
        if let Some((word, bare)) = unknown.and_then(|word| expansion::bare(&word.text).map(|bare| (word, bare))) {
            is_new = true;
            *word = Word { text: bare, kind: WordKind::Known, plain: false, quoted: word.quoted };
        }
        *left = left.checked_sub(length)?;
        is_new.then(|| Command { words, redirections, again: command.name().is_some(), ..command.clone() })
    }

    /// Returns a word's text with the values in it that are known; `None` where there is none.
    fn replaced(&self, text: &str) -> Option<String> {
        expansion::replaced(&self.0, &self.1, text)
    }

    /// Puts a list of words, which the command at this place gives, in the place of those that a text is given: `$0`, `$1` and so on. Returns what was there.
    pub(super) fn call(&mut self, words: &[Word], at: usize) -> Vec<(String, Option<String>)> {
        let words: Vec<Word> = words.iter().map(|word| Word { text: held::marked(word.text.clone(), at), ..word.clone() }).collect();
        let known = |word: &&Word| is_settled(word);
        let numbered = (0..GIVEN_MAX).map(|number| (number.to_string(), words.get(number).filter(known).map(|word| word.text.clone())));
        let all = joined(&words.iter().skip(1).filter(known).cloned().collect::<Vec<_>>());
        let all = all.filter(|all| !all.is_empty());
        let new: Vec<_> = numbered.chain(["@", "*"].map(|name| (name.to_owned(), all.clone()))).collect();
        new.into_iter().map(|(name, value)| (name.clone(), self.put(name, value))).collect()
    }

    /// Sets what stands in front of a command that reads a text: `A=B bash -c …`. Returns what was there.
    pub(super) fn set_for(&mut self, command: &Command, at: usize) -> Vec<(String, Option<String>)> {
        let known = |value: &Option<Word>| {
            let value = value.as_ref().filter(|word| is_settled(word) && word.text.len() <= VALUE_MAX);
            value.map(|word| held::marked(word.text.clone(), at))
        };
        command.assignments.iter().map(|set| (set.name.clone(), self.put(set.name.clone(), known(&set.value)))).collect()
    }

    /// Puts back what was there before.
    pub(super) fn come_back(&mut self, kept: Vec<(String, Option<String>)>) {
        // What was set twice was first what it was before all of it.
        for (name, value) in kept.into_iter().rev() {
            self.put(name, value);
        }
    }

    fn put(&mut self, name: String, value: Option<String>) -> Option<String> {
        match value {
            Some(value) => self.0.insert(name, value),
            None => self.0.remove(&name),
        }
    }

    /// Returns what the unknown ones among these hold: what a variable or a list holds that they name.
    pub(super) fn held(&self, values: &[Value], from: usize) -> Vec<Value> {
        let splits = |c: char| c.is_whitespace() || self.0.get("IFS").is_some_and(|signs| signs.contains(c));
        let mut held = Vec::new();
        for Value { variable, word } in values.iter().skip(from).filter(|value| value.word.kind == WordKind::Unknown).take(LINES_MAX) {
            let name = word.text.strip_prefix("${").and_then(|rest| rest.split_once('[')).map(|(name, _)| name);
            let name = name.or_else(|| word.text.strip_prefix('$'));
            let listed = values.iter().filter(|value| Some(value.variable.as_str()) == name && value.variable != *variable);
            held.extend(listed.map(|value| value.word.clone()).take(LINES_MAX).map(|word| Value { variable: variable.clone(), word }));
            let text = self.replaced(&word.text).or_else(|| self.0.contains_key("IFS").then(|| word.text.clone()));
            let parts = text.iter().flat_map(|text| text.split(splits)).filter(|part| !part.is_empty() && !part.contains('$'));
            let kind = |part: &str| if part.contains(['*', '?']) { WordKind::Pattern } else { WordKind::Known };
            let known = |part: &str| Word { text: part.to_owned(), kind: kind(part), plain: false, quoted: false };
            held.extend(parts.take(LINES_MAX).map(|part| Value { variable: variable.clone(), word: known(part) }));
        }
        held
    }
}

impl Value {
    /// Returns a command with this value in the place of its variable; `None` where it does not name it.
    pub fn put_in(&self, command: &Command) -> Option<Command> {
        let listed = said::listed(&self.word);
        let words = listed.as_deref().unwrap_or(std::slice::from_ref(&self.word));
        let text = joined(words).filter(|_| words.iter().all(is_settled))?;
        Values(HashMap::from([(self.variable.clone(), text)]), Followed::default(), Vec::new())
            .put_in(command, &mut VALUE_MAX.saturating_mul(16))
    }
}

/// Returns whether a word's text is what it stands for, or the folder of a command, which its place says.
fn is_settled(word: &Word) -> bool {
    word.kind != WordKind::Unknown || is_folder(&word.text)
}

/// Returns whether a text is how the folder of a command, or the project's, is asked for, or a path from there.
pub fn is_folder(text: &str) -> bool {
    let is_behind = |rest: &str| rest.is_empty() || (rest.starts_with('/') && !rest.contains('$'));
    let named = HERE.iter().chain(&TOP).chain(&GIT_FOLDER).chain(&ABOVE).any(|folder| text.strip_prefix(folder).is_some_and(is_behind));
    // A folder above, `${PWD%/*}`.
    let cut = text.strip_prefix("${PWD%").and_then(|rest| rest.split_once('}')).filter(|(end, _)| !end.contains('$'));
    named || held::behind(text).is_some_and(is_behind) || cut.is_some_and(|(_, behind)| is_behind(behind))
}

/// Returns how a word is written that the text is not given, where a value is no more than that: of `${1:-}`, `$1`.
fn missing(value: &str, given_words: usize) -> Option<String> {
    let name = value.strip_prefix('$')?;
    let name = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name);
    let name = name.strip_suffix(":-").or_else(|| name.strip_suffix('-')).unwrap_or(name);
    let number = if matches!(name, "@" | "*") { 1 } else { name.parse::<usize>().ok()? };
    (number > given_words).then(|| format!("${name}"))
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
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

/// Returns the other words that a command gives the text which it stands in: `set -- A B`.
pub(super) fn set_words(command: &Command) -> Option<&[Word]> {
    let arguments = command.arguments();
    set_from(arguments).filter(|_| command.name() == Some("set")).map(|from| &arguments[from..])
}

/// Returns where the words begin that `set` makes those of the text.
fn set_from(arguments: &[Word]) -> Option<usize> {
    let is_bare = arguments.first().is_some_and(|word| !word.text.starts_with(['-', '+']));
    arguments.iter().position(|word| word.text == "--").map(|at| at + 1).or(is_bare.then_some(0))
}

/// Returns the last variable that a command reads into.
fn variable(command: &Command) -> Option<&str> {
    command.arguments().last().and_then(Word::known).filter(|text| !text.starts_with('-'))
}
