//! Variables that nothing gives a value: what stands behind one may be all of a path.

use std::collections::BTreeSet;
use std::ops::Range;

use podbay_code::shell::Command;
use podbay_code::shell::Guard;
use podbay_code::shell::Script;
use podbay_code::shell::Word;
use podbay_code::shell::WordKind;
use podbay_code::shell::expansion_end;

/// Variables that a shell or the box gives a value; with those whose names end as `ENDINGS` do, which images set.
const SET: [&str; 19] = [
    "BASHPID",
    "BASH_SOURCE",
    "EPOCHSECONDS",
    "EUID",
    "FUNCNAME",
    "GROUPS",
    "HOME",
    "HOSTNAME",
    "LANG",
    "LINENO",
    "OSTYPE",
    "PATH",
    "PPID",
    "PWD",
    "RANDOM",
    "SECONDS",
    "SHELL",
    "UID",
    "USER",
];
const ENDINGS: [&str; 3] = ["_HOME", "PATH", "_VERSION"];
/// Commands of the shell that give the variables among their words a value.
const GIVING: [&str; 13] =
    ["declare", "export", "getopts", "local", "mapfile", "printf", "read", "readarray", "readonly", "select", "source", "typeset", "."];

/// Programs that say nothing where what they are asked for is not there.
const SILENT_ON_FAILURE: [&str; 14] =
    ["awk", "cat", "cut", "egrep", "fd", "find", "grep", "head", "jq", "ls", "rg", "sed", "tail", "which"];

/// Most variables that are known to hold what another one does.
const COPIES_MAX: usize = 64;
/// Most tests that are kept in mind.
const PROVED_MAX: usize = 64;

/// Returns whether a shell, the box or the image gives a variable a value, or whoever called the text that a command stands in: `$1`.
fn is_set(name: &str, command: &Command) -> bool {
    match name.parse::<usize>() {
        Ok(number) => return number <= command.given_words,
        Err(_) if matches!(name, "@" | "*") => return command.given_words > 0,
        Err(_) => {}
    }
    SET.contains(&name)
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
        || !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// Returns whether a command gives the variables among its words a value.
pub(super) fn gives(name: &str) -> bool {
    GIVING.contains(&name)
}

/// Variables that hold something.
pub(super) struct Given {
    /// Names that something in the script may give a value.
    names: BTreeSet<String>,
    /// Names that a test found to hold something, and the commands that are carried out only then.
    proved: Vec<(String, Range<usize>)>,
}

impl Given {
    pub(super) fn of(script: &Script) -> Self {
        let mut names: BTreeSet<String> = script.values.iter().map(|value| value.variable.clone()).collect();
        // `OUT=$DIR` gives it what `DIR` holds, which may be nothing.
        let mut copies: Vec<(&str, &str, &Command)> = Vec::new();
        for command in &script.commands {
            for set in &command.assignments {
                match set.value.as_ref().and_then(held).filter(|_| copies.len() < COPIES_MAX) {
                    Some(from) => copies.push((&set.name, from, command)),
                    // One element of a list.
                    None => _ = names.insert(set.name.split('[').next().unwrap_or(&set.name).to_owned()),
                }
            }
            let gives = command.name().is_some_and(gives);
            let set = command.arguments().iter().filter(|_| gives).filter_map(|word| word.text.split(['=', '[', '+']).next());
            names.extend(set.map(ToOwned::to_owned));
            let defaults = command.arguments().iter().filter(|_| command.name() == Some(":")).filter_map(default);
            names.extend(defaults.map(ToOwned::to_owned));
            // Where the shell was before, which it knows once it went elsewhere.
            if matches!(command.name(), Some("cd" | "pushd" | "popd")) {
                names.insert("OLDPWD".to_owned());
            }
            // What a file sets is not known.
            if matches!(command.name(), Some("source" | ".")) {
                names.insert(String::new());
            }
        }
        // Each may be of one further down.
        let proved = proved(script);
        let holds = |names: &BTreeSet<String>, from: &str, command: &Command| {
            names.contains(from) || is_set(from, command) || proved.iter().any(|(name, _)| name == from)
        };
        while let Some(at) = copies.iter().position(|(_, from, command)| holds(&names, from, command)) {
            names.insert(copies.swap_remove(at).0.to_owned());
        }
        Self { names, proved }
    }

    fn holds(&self, name: &str, at: usize) -> bool {
        self.names.contains(name)
            || self.names.contains("")
            || self.proved.iter().any(|(proved, range)| proved == name && range.contains(&at))
    }
}

/// Returns the variables that tests find to hold something, with the commands that are carried out only then.
fn proved(script: &Script) -> Vec<(String, Range<usize>)> {
    if script.commands.iter().any(|command| command.name() == Some("unset")) {
        return Vec::new();
    }
    let tested = script.commands.iter().enumerate().filter_map(|(at, command)| {
        let Guard { from, until, by_working, .. } = command.guard;
        let name = tested(command, by_working)?;
        Some((name.to_owned(), from.max(at + 1)..until))
    });
    tested.take(PROVED_MAX).collect()
}

/// Returns the variable that holds something where a test works, or where one for nothing fails; and where `mkdir` makes a folder of its name.
fn tested(command: &Command, by_working: bool) -> Option<&str> {
    const HOLDING: [&str; 8] = ["-n", "-d", "-e", "-f", "-s", "-r", "-w", "-x"];
    let is_own = !command.is_started && !command.piped;
    let (words, splits) = match (command.name()?, command.arguments()) {
        ("[", [words @ .., end]) if end.text == "]" => (words, true),
        ("[[", [words @ .., end]) if end.text == "]]" => (words, false),
        ("test", words) => (words, true),
        ("mkdir", [word] | [.., word]) if !by_working && is_own => return held(word).filter(|_| word.quoted),
        _ => return None,
    };
    let word = match words {
        [word] if !by_working => word,
        [option, word] if !by_working && option.known().is_some_and(|option| HOLDING.contains(&option)) => word,
        [option, word] if by_working && option.known() == Some("-z") => word,
        _ => return None,
    };
    held(word).filter(|_| is_own && (word.quoted || !splits))
}

/// Returns the variable that a word holds the value of, or nothing: `$X`, `${X}`, `${X:-}`.
fn held(word: &Word) -> Option<&str> {
    let text = word.text.strip_prefix('$').filter(|_| word.kind == WordKind::Unknown)?;
    let name = match text.strip_prefix('{') {
        Some(inside) => {
            let inside = inside.strip_suffix('}')?;
            inside.strip_suffix(":-").or_else(|| inside.strip_suffix('-')).unwrap_or(inside)
        }
        None => text,
    };
    (!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')).then_some(name)
}

/// Returns the variable that a word gives a default which certainly is more than nothing: `${OUT:=build}`.
fn default(word: &Word) -> Option<&str> {
    let (name, default) = word.text.strip_prefix("${")?.split_once(":=")?;
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (is_name && default.starts_with(|c: char| c.is_ascii_alphanumeric() || "./_".contains(c))).then_some(name)
}

/// Returns a command with nothing in the place of each such variable that stands before a `/` or a `*`, or that is all of a place that `find` is given;
/// `None` where it has none.
pub(super) fn without(command: &Command, given: &Given, at: usize) -> Option<Command> {
    let mut is_new = false;
    let is_find = matches!(command.name(), Some("find" | "gfind"));
    let empty = |word: &Word| {
        // All that lies below a place which is not known itself: `find $1 | xargs rm`.
        let is_below = command.is_started && word.text.ends_with("/**");
        if word.kind != WordKind::Unknown && !is_below {
            return Some(word.clone());
        }
        let Some(text) = emptied(&word.text, command, given, at) else { return Some(word.clone()) };
        match text.is_empty() {
            // In quotes, only a list of words may be none.
            true if is_find && (!word.quoted || word.text == "$@") => {
                is_new = true;
                None
            }
            true => Some(word.clone()),
            false => {
                is_new = true;
                let kind = match &text {
                    text if text.contains('$') => WordKind::Unknown,
                    text if text.contains('*') && !word.quoted => WordKind::Pattern,
                    _ => WordKind::Known,
                };
                Some(Word { text, kind, ..word.clone() })
            }
        }
    };
    let words: Vec<Word> = command.words.iter().filter_map(empty).collect();
    is_new.then(|| Command { words, ..command.clone() })
}

/// Returns a word's text with nothing in the place of what may be empty and stands before a `/` or a `*`, or is all of the word; of a folder to search
/// or to go to, also what it ends with.
pub(super) fn emptied(text: &str, command: &Command, given: &Given, at: usize) -> Option<String> {
    let is_folder = matches!(command.name(), Some("find" | "gfind" | "cd" | "pushd"));
    let (mut made, mut rest, mut is_new) = (String::new(), text, false);
    while let Some(begin) = rest.find(['$', '`']) {
        made.push_str(&rest[..begin]);
        let (expansion, behind) = rest[begin..].split_at(expansion_end(&rest[begin..]));
        let is_part = if behind.is_empty() { is_folder || made.is_empty() } else { behind.starts_with(['/', '$', '*', '`']) };
        if is_part && may_be_empty(expansion, command, given, at) {
            is_new = true;
        } else {
            made.push_str(expansion);
        }
        rest = behind;
    }
    made.push_str(rest);
    is_new.then_some(made)
}

/// Returns whether nothing may be what an expansion becomes: a variable that nothing gives a value, or what a program says that failed.
fn may_be_empty(expansion: &str, command: &Command, given: &Given, at: usize) -> bool {
    let inside = expansion.strip_prefix("$(").and_then(|rest| rest.strip_suffix(')'));
    if let Some(inside) = inside.or_else(|| expansion.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'))) {
        // At the top of a repository there is nothing to say.
        let is_where = matches!(inside, "git rev-parse --show-prefix" | "git rev-parse --show-cdup");
        return is_where || inside.split_whitespace().next().is_some_and(|program| SILENT_ON_FAILURE.contains(&program));
    }
    let Some(rest) = expansion.strip_prefix('$') else { return false };
    let inside = rest.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(rest);
    let end = inside.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(inside.len());
    let (name, operator) = inside.split_at(if inside.starts_with(['@', '*']) { 1 } else { end });
    let operator = operator.strip_prefix('[').and_then(|rest| rest.split_once(']')).map_or(operator, |(_, rest)| rest);
    let is_cut = operator.strip_prefix(':').is_some_and(|rest| rest.trim_start().starts_with(|c: char| c.is_ascii_digit()));
    // What is cut off nothing or replaced in it leaves nothing; a default and a `?` do not.
    let stays_empty = operator.is_empty() || is_cut || operator.starts_with(['%', '#', ',', '^', '/', '+']) || operator.starts_with(":+");
    stays_empty && !name.is_empty() && !given.holds(name, at) && !is_set(name, command)
}
