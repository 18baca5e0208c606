//! Programs that a command names to another one, which may start them: in an option, a variable, a text in another language, or as a file that it
//! copies.
//!
//! What is data to whom is said by tables; to a program that is in none of them any word may be a program. A script of the project, and what a
//! program does by itself, is not looked at.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use super::heard::heard;
use super::reading;
use super::variables::is_own;
use podbay_code::shell::Command;
use podbay_code::shell::Redirection;
use podbay_code::shell::Script;
use podbay_code::shell::Word;
use podbay_code::shell::WordKind;

/// Programs, besides those that only read, whose words are names, patterns, packages or texts, and start nothing; those that have scripts or
/// options which do are looked at by themselves.
const DATA: [&str; 94] = [
    "[",
    "[[",
    "ack",
    "ag",
    "apk",
    "apropos",
    "apt",
    "apt-cache",
    "apt-get",
    "awk",
    "bg",
    "black",
    "bunzip2",
    "bzip2",
    "cargo",
    "chgrp",
    "chmod",
    "chown",
    "conda",
    "cp",
    "dash",
    "bash",
    "declare",
    "disown",
    "dnf",
    "eslint",
    "export",
    "fg",
    "file",
    "find",
    "flake8",
    "gawk",
    "gem",
    "gfind",
    "gh",
    "git",
    "go",
    "gsed",
    "gunzip",
    "gzip",
    "hash",
    "help",
    "isort",
    "jest",
    "kill",
    "killall",
    "let",
    "local",
    "mawk",
    "mkdir",
    "mktemp",
    "mv",
    "mypy",
    "nano",
    "nawk",
    "npm",
    "pacman",
    "patch",
    "pip",
    "pip3",
    "pkill",
    "pidof",
    "pnpm",
    "poetry",
    "prettier",
    "printf",
    "pytest",
    "read",
    "readonly",
    "rm",
    "rmdir",
    "ruff",
    "sed",
    "service",
    "set",
    "sh",
    "shellcheck",
    "systemctl",
    "tar",
    "test",
    "touch",
    "trap",
    "tsc",
    "typeset",
    "umask",
    "unset",
    "unzip",
    "uv",
    "vitest",
    "wait",
    "whatis",
    "whereis",
    "yarn",
    "yq",
];
/// Those of them that copy a file they are given, or may pack it; the others do where their output goes into a file.
const COPIES: [&str; 17] =
    ["base32", "base64", "bzip2", "cat", "cp", "gzip", "head", "hexdump", "mv", "od", "sort", "tac", "tail", "tar", "tee", "xxd", "xz"];
/// Those that may start what their environment holds.
const AWKS: [&str; 4] = ["awk", "gawk", "mawk", "nawk"];
/// Programs to which a bare word is what they are to make.
const BUILDS: [&str; 10] = ["bazel", "gmake", "gradle", "just", "make", "mvn", "ninja", "rake", "task", "tox"];
/// Verbs of git that start a program which their words name.
const GIT_STARTS: [&str; 17] = [
    "archive",
    "bisect",
    "clone",
    "cvsimport",
    "daemon",
    "difftool",
    "fetch",
    "fetch-pack",
    "filter-branch",
    "for-each-repo",
    "hook",
    "ls-remote",
    "pull",
    "push",
    "rebase",
    "send-email",
    "send-pack",
];
/// What separates names from each other in a text of whatever language.
const BETWEEN: &str = " \t\n\r;|&(){}[]$`'\"=,:!<>@#\\";
/// Methods that stand in many languages between a program and its words, or two of these: `Command::new("git").arg("push")`.
const METHODS: [&str; 11] = ["Add", "add", "append", "arg", "args", "concat", "current_dir", "extend", "push", "to_owned", "to_string"];
/// Types and what stands before a text there: `String::from("push")`, `vec!["push"]`, `r"push"`.
const TYPES: [&str; 10] = ["String", "b", "br", "char", "f", "from", "r", "string", "u", "vec"];
/// What stands in front of a pattern for the files of programs.
pub(crate) const PROGRAMS: &str = "/bin/";
/// Most names that are looked at in one command.
pub(crate) const NAMES_MAX: usize = 32 << 10;

/// What the whole script says of each of its commands.
pub(crate) struct Around<'a> {
    functions: BTreeSet<&'a str>,
    /// Values that programs find in their environment.
    exported: Vec<&'a str>,
    /// It goes to a folder of programs, where their names alone say which file is meant.
    stands_among_programs: bool,
    /// What it wrote, by the places of the commands that may run it.
    heard: BTreeMap<usize, Vec<&'a str>>,
}

impl<'a> Around<'a> {
    pub(crate) fn of(script: &'a Script) -> Self {
        let goes = |command: &Command| {
            matches!(command.name(), Some("cd" | "pushd"))
                && command.arguments().iter().any(|word| word.text.trim_end_matches('/').ends_with("bin"))
        };
        let functions: BTreeSet<&str> = script.functions.iter().map(|function| function.name.as_str()).collect();
        let heard = heard(script, |command| command.name().is_some_and(|name| is_data(name, &functions)));
        Self { functions, exported: exported(script), stands_among_programs: script.commands.iter().any(goes), heard }
    }
}

fn is_data(name: &str, functions: &BTreeSet<&str>) -> bool {
    DATA.contains(&name) || reading::is_reader(name) || functions.contains(name)
}

/// Returns the values that a script puts into the environment: in front of a command, by `export`, or all of them by `set -a`.
fn exported(script: &Script) -> Vec<&str> {
    let is_set = |command: &Command, letter: char, long: &str| {
        let is_it = |word: &Word| word.text == long || word.text.strip_prefix('-').is_some_and(|rest| rest.contains(letter));
        command.arguments().iter().any(is_it)
    };
    let declares = |command: &Command| matches!(command.name(), Some("declare" | "typeset" | "local" | "readonly"));
    let exports = |command: &Command| command.name() == Some("export") || (declares(command) && is_set(command, 'x', "-x"));
    let takes_all = script.commands.iter().any(|command| command.name() == Some("set") && is_set(command, 'a', "allexport"));
    let mut values = Vec::new();
    let mut names = BTreeSet::new();
    for command in script.commands.iter().filter(|command| exports(command)) {
        for word in command.arguments() {
            let (name, value) = word.text.split_once('=').unwrap_or((&word.text, ""));
            names.insert(name);
            values.push(value);
        }
        names.extend(command.assignments.iter().map(|set| set.name.as_str()));
    }
    for command in script.commands.iter().filter(|command| !command.assignments.is_empty()) {
        let is_for_itself = !command.words.is_empty() && !declares(command);
        let meant = command.assignments.iter().filter(|set| is_for_itself || takes_all || names.contains(set.name.as_str()));
        values.extend(meant.filter_map(|set| Some(set.value.as_ref()?.text.as_str())));
    }
    let held = script.values.iter().filter(|value| takes_all || names.contains(value.variable.as_str()));
    values.extend(held.map(|value| value.word.text.as_str()));
    values
}

/// Returns the names in what a command is given, one after the other, as far as each may be a program that it starts or copies.
pub(crate) fn named(script: &Script, around: &Around<'_>, at: usize) -> Vec<String> {
    let command = &script.commands[at];
    let name = command.name().unwrap_or_default();
    let obeyed = command.assignments.iter().filter(|set| !is_own(&set.name));
    let mut texts: Vec<&str> = obeyed.filter_map(|set| Some(set.value.as_ref()?.text.as_str())).collect();
    let mut patterns = Vec::new();
    let own = own_words(command, script.commands.get(at + 1));
    let is_data = command.words.is_empty() || only_asks(command) || is_data(name, &around.functions);
    let read = command.redirections.iter().filter(|redirection| redirection.reads()).filter_map(|redirection| redirection.target.as_ref());
    if !is_data || starts_by_verb(name, own) {
        // Behind such a word stands a command of its own: `tox exec -- …`, `just --command …`.
        let has_command = own.iter().any(|word| matches!(word.text.as_str(), "--" | "--command" | "-c"));
        let is_target = |word: &&Word| BUILDS.contains(&name) && !has_command && !word.text.starts_with('-') && !word.text.contains('=');
        let words = own.iter().filter(|word| !is_target(word)).chain(command.documents()).chain(read.filter(|word| may_be_program(word)));
        texts.extend(words.map(|word| word.text.as_str()));
        texts.extend(command.given.as_deref());
        texts.extend(&around.exported);
    } else if COPIES.contains(&name) && (around.stands_among_programs || own.iter().any(|word| is_of_programs(&word.text))) {
        texts.extend(own.iter().map(|word| word.text.as_str()));
        patterns = own.iter().filter(|word| word.kind == WordKind::Pattern).map(|word| format!("{PROGRAMS}{}", word.text)).collect();
    } else if COPIES.contains(&name) || command.redirections.iter().any(Redirection::writes) {
        texts.extend(own.iter().chain(read).filter(|word| may_be_program(word)).map(|word| word.text.as_str()));
    }
    // What a script of `sed` starts is read, and the rest is patterns.
    texts.extend(command.run_files().filter(|(name, _)| !matches!(*name, "sed" | "gsed")).map(|(_, text)| text));
    texts.extend(around.heard.get(&at).into_iter().flatten());
    if AWKS.contains(&name) {
        texts.extend(&around.exported);
    }
    let mut names = patterns;
    for text in texts {
        take(text, &mut names);
    }
    names
}

/// Returns the words of a command that are not those of the one which it starts: those are looked at by themselves.
fn own_words<'a>(command: &'a Command, next: Option<&Command>) -> &'a [Word] {
    let words = command.arguments();
    let started = next.filter(|next| next.is_started).and_then(Command::program);
    let end = started.and_then(|started| words.iter().position(|word| word.text == started.text)).unwrap_or(words.len());
    &words[..end]
}

/// Returns whether a command asks where a program is, and starts none.
fn only_asks(command: &Command) -> bool {
    let asked = command.arguments().first().filter(|_| command.name() == Some("command")).and_then(Word::known);
    matches!(asked, Some("-v" | "-V"))
}

/// Returns whether a program that takes most of its words for data starts what these name.
fn starts_by_verb(name: &str, words: &[Word]) -> bool {
    let verb = words.iter().find(|word| !word.text.starts_with('-')).map_or("", |word| word.text.as_str());
    match name {
        "git" => GIT_STARTS.contains(&verb),
        // What it finds outside of the project, it may hand on.
        "find" | "gfind" => words.iter().any(|word| word.text.starts_with("-exec") || word.text.starts_with("-ok")) && is_outside(verb),
        // A script of the project is given what stands behind its name; a text, and what that is given, is read.
        "bash" | "dash" | "sh" => runs_script(words),
        // `go build -toolexec`, `cargo --config`, `npm --script-shell`.
        "go" | "cargo" | "npm" | "pnpm" | "yarn" | "uv" | "pytest" => {
            // Options, and what they are given, may stand in front of the verb.
            let starts = |word: &Word| match word.text.as_str() {
                "watch" => name == "cargo",
                "exec" | "x" | "dlx" | "pkg" | "config" | "env" => name != "cargo" && name != "go",
                option => option.starts_with('-') && has_program(option),
            };
            words.iter().any(starts) || (matches!(name, "cargo" | "go") && matches!(verb_of(words), Some("run" | "r")))
        }
        _ => false,
    }
}

/// Returns the first word that is no option, nor what may be the value of the one in front of it.
fn verb_of(words: &[Word]) -> Option<&str> {
    let is_option = |word: &Word| word.text.starts_with(['-', '+']);
    let is_value = |at: usize| at > 0 && words[at - 1].text.starts_with("--") && !words[at - 1].text.contains('=');
    let mut others = (0..words.len()).filter(|&at| !is_option(&words[at]));
    let first = others.next()?;
    // `cargo --color always run`, and `cargo --locked run`.
    let verb = if is_value(first) && !matches!(words[first].text.as_str(), "run" | "r") { others.next()? } else { first };
    Some(&words[verb].text)
}

/// Returns whether a shell is given a script's name, and not a text: `-c`, `-lc`.
fn runs_script(words: &[Word]) -> bool {
    let mut words = words.iter().map(|word| word.text.as_str());
    while let Some(option) = words.next() {
        match option {
            "-o" | "+o" | "-O" | "+O" | "--rcfile" | "--init-file" => _ = words.next(),
            _ if option.starts_with("--") => {}
            _ if option.starts_with(['-', '+']) => {
                if option.contains('c') {
                    return false;
                }
            }
            _ => return true,
        }
    }
    false
}

fn is_outside(place: &str) -> bool {
    place.starts_with('/') && !place.starts_with("/workspace") && !place.starts_with("/tmp")
}

fn has_program(option: &str) -> bool {
    ["exec", "tool", "shell", "config", "wrapper", "runner", "linker", "editor", "browser", "cmd"].iter().any(|part| option.contains(part))
}

/// Returns whether a path is a folder of programs.
fn is_of_programs(path: &str) -> bool {
    path.starts_with('/') && path.trim_end_matches('/').ends_with("bin")
}

/// Returns whether a word is the file of a program, or asks for one.
fn may_be_program(word: &Word) -> bool {
    let asks = || ["which ", "command -v ", "type -p ", "type -P "].iter().any(|asked| word.text.contains(asked));
    let is_file = word.text.starts_with(['/', '~', '.'])
        && word.text.contains("bin/")
        && !word.text.contains(|c| BETWEEN.contains(c) && !"[]!".contains(c));
    is_file || (word.kind == WordKind::Unknown && asks())
}

/// Returns whether a part of a text stands between names that belong together.
fn joins(part: &str) -> bool {
    let is_operator = part.bytes().all(|byte| b"+.*%-".contains(&byte));
    let method = part.rsplit_once('.').map(|(_, method)| method);
    is_operator || TYPES.contains(&part) || method.is_some_and(|method| METHODS.contains(&method))
}

/// Takes a text apart into the names in it.
fn take(text: &str, names: &mut Vec<String>) {
    if text.starts_with('/') && text.contains("bin/") && text.contains('[') && !text.contains(' ') {
        let last = text.rsplit('/').next().unwrap_or_default();
        names.push(format!("{PROGRAMS}{last}"));
    }
    for part in text.split(|c| BETWEEN.contains(c)).filter(|part| !part.is_empty() && !joins(part)) {
        if names.len() >= NAMES_MAX {
            return;
        }
        let part = part.trim_end_matches('.');
        // A program's file counts by its name, and that of the project's own folder does not: `src/make` is a folder of it.
        let name = match part.rsplit_once('/') {
            // Whatever a pattern stands for there counts.
            Some((folder, last)) if folder.ends_with("bin") && last.contains(['*', '?', '[']) => {
                names.push(format!("{PROGRAMS}{last}"));
                continue;
            }
            Some((folder, last)) if folder == "." || folder.ends_with("bin") => last,
            _ => part,
        };
        // What an option is given may stand right behind its letter, or behind several.
        let glued =
            name.strip_prefix('-').filter(|rest| !rest.starts_with('-')).and_then(|rest| rest.get(1..)).filter(|rest| rest.len() > 1);
        names.push(name.to_owned());
        names.extend(glued.map(str::to_owned));
    }
}
