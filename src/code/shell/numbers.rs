//! Variables that hold numbers and nothing else: what is computed from any other may run what that holds.

use std::collections::BTreeSet;

use super::Command;
use super::Script;
use super::Word;
use super::WordKind;

/// Why something that is computed is in doubt.
pub(super) const COMPUTES: &str = "arithmetic may run what a variable holds";

/// Something that is computed from variables.
pub(super) struct Computed {
    pub(super) what: String,
    pub(super) variables: Vec<String>,
}

/// How long a chain of variables may be that are copies of one another.
const COPIES_MAX: usize = 8;
/// Variables in capitals that the shell itself keeps a number in.
const OF_THE_SHELL: [&str; 10] = ["COLUMNS", "EPOCHSECONDS", "EUID", "LINENO", "LINES", "PPID", "RANDOM", "SECONDS", "SHLVL", "UID"];
/// Commands that give the variables among their words a value.
const SET: [&str; 12] =
    ["declare", "export", "getopts", "local", "mapfile", "printf", "read", "readarray", "readonly", "select", "typeset", "wait"];

/// What a script says of its variables.
pub(super) struct Numbers {
    /// Those that a number is assigned to.
    numbers: BTreeSet<String>,
    /// Those that may hold something else.
    others: BTreeSet<String>,
    /// Any may.
    all_may: bool,
}

impl Numbers {
    /// Returns whether a variable holds a number, or was given no value at all. Those in capitals may have one from elsewhere.
    pub(super) fn is_one(&self, name: &str) -> bool {
        let is_lower = name != "_" && !name.bytes().any(|byte| byte.is_ascii_uppercase());
        !self.all_may && !self.others.contains(name) && (is_lower || self.numbers.contains(name) || OF_THE_SHELL.contains(&name))
    }

    /// Returns whether a word is the value of a variable that holds a number.
    pub(super) fn is_word(&self, word: &Word) -> bool {
        let Some(name) = word.text.strip_prefix('$').filter(|_| word.kind == WordKind::Unknown) else { return false };
        let name = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name);
        self.numbers.contains(name) && self.is_one(name)
    }
}

/// Looks through all that gives variables of a script a value.
pub(super) fn of(script: &Script) -> Numbers {
    let mut numbers = Numbers { numbers: BTreeSet::new(), others: BTreeSet::new(), all_may: false };
    // A function by such a name may say anything.
    let renames = script.functions.iter().any(|function| ["date", "nproc", "seq", "wc"].contains(&function.name.as_str()));
    let mut copies: Vec<(&str, &str)> = Vec::new();
    let assigned = script.commands.iter().flat_map(|command| &command.assignments).map(|set| (set.name.as_str(), set.value.as_ref()));
    // The variable of a loop stands among what it goes through.
    let gone_through =
        script.values.iter().filter(|value| value.word.text != value.variable).map(|value| (value.variable.as_str(), Some(&value.word)));
    for (name, value) in assigned.chain(gone_through) {
        match value.map(kind) {
            Some(Kind::Said) if renames => {
                numbers.others.insert(name.to_owned());
            }
            Some(Kind::Number | Kind::Said) => {
                numbers.numbers.insert(name.to_owned());
            }
            Some(Kind::Copy(of)) => copies.push((name, of)),
            Some(Kind::Other) | None => {
                numbers.others.insert(name.to_owned());
            }
        }
    }
    for command in &script.commands {
        told(command, &mut numbers);
    }
    // A copy of what is none is none. Of a chain that is longer nothing is said.
    let mut is_settled = false;
    for _ in 0..COPIES_MAX {
        let before = numbers.others.len();
        for (name, of) in &copies {
            if !numbers.is_one(of) {
                numbers.others.insert((*name).to_owned());
            }
        }
        is_settled = numbers.others.len() == before;
        if is_settled {
            break;
        }
    }
    if !is_settled {
        numbers.others.extend(copies.iter().map(|(name, _)| (*name).to_owned()));
    }
    numbers.numbers.extend(copies.iter().map(|(name, _)| (*name).to_owned()));
    numbers
}

/// Notes the variables that a command of the shell sets, by its words.
fn told(command: &Command, numbers: &mut Numbers) {
    let Some(name) = command.name().filter(|name| SET.contains(name)) else { return };
    let arguments = command.arguments();
    if name == "printf" && arguments.first().is_some_and(|word| word.known().is_some_and(|text| !text.starts_with('-'))) {
        return;
    }
    let declares = matches!(name, "declare" | "typeset" | "local" | "export" | "readonly");
    for word in arguments {
        match word.known() {
            // By a name for another one, whatever is assigned to it goes there.
            Some(text) if declares && text.starts_with('-') && text.contains('n') => numbers.all_may = true,
            Some(text) if declares && !text.contains(['=', '[', '+']) => {}
            Some(text) => {
                let name = text.split(['=', '[', '+']).next().unwrap_or(text);
                numbers.others.insert(name.to_owned());
            }
            None => numbers.all_may = true,
        }
    }
    // Where no variable is named, it is one of these.
    if matches!(name, "read" | "select" | "getopts" | "mapfile" | "readarray") {
        numbers.others.extend(["REPLY", "OPTARG", "MAPFILE"].map(str::to_owned));
    }
}

enum Kind<'a> {
    Number,
    /// What a program says that says numbers.
    Said,
    /// What another variable holds.
    Copy(&'a str),
    Other,
}

fn kind(word: &Word) -> Kind<'_> {
    const COUNTS: [&str; 4] = ["$(wc -l <", "$(wc -c <", "$(date +%s)", "$(nproc)"];
    let text = word.text.as_str();
    let is_number = |text: &str| text.strip_prefix(['-', '+']).unwrap_or(text).bytes().all(|byte| byte.is_ascii_digit());
    let is_name = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if word.kind != WordKind::Unknown {
        let list = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).map(|inside| inside.split(".."));
        let counts = list.is_some_and(|mut parts| parts.all(|part| !part.is_empty() && is_number(part)));
        return if is_number(text) || counts { Kind::Number } else { Kind::Other };
    }
    // Whatever comes of it is a number, or an end with an error; what it is computed from is looked at where that is.
    if let Some(inside) = text.strip_prefix("$((").and_then(|rest| rest.strip_suffix("))")) {
        return if inside.contains("$(") || inside.contains("))") { Kind::Other } else { Kind::Number };
    }
    if text == "$#" || text == "$?" || text.strip_prefix("${#").and_then(|rest| rest.strip_suffix('}')).is_some_and(is_name) {
        return Kind::Number;
    }
    let bare = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).or_else(|| text.strip_prefix('$'));
    if let Some(of) = bare.filter(|name| is_name(name) && !name.starts_with(|c: char| c.is_ascii_digit())) {
        return Kind::Copy(of);
    }
    let is_one =
        !text.contains([';', '&', '\n', '`']) && !text.contains("||") && text.matches("$(").count() == 1 && text.matches(')').count() == 1;
    let counts = COUNTS.iter().any(|known| text.starts_with(known)) && !text.contains('|');
    let ends_counting = text.starts_with("$(") && text.ends_with("| wc -l)");
    let sequence = text.starts_with("$(seq ") && !text.contains(['|', '\'', '"', '-']);
    if is_one && (counts || ends_counting || sequence) { Kind::Said } else { Kind::Other }
}
