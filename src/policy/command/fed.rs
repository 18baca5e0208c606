//! Removals that are fed a list which nobody can read: it may name every file there is.

use std::collections::BTreeSet;
use std::collections::HashMap;

use crate::code::shell;
use crate::code::shell::Command;
use crate::code::shell::Script;
use crate::code::shell::Word;
use crate::code::shell::WordKind;

const REMOVE: [&str; 6] = ["rm", "srm", "unlink", "shred", "truncate", "gtruncate"];
/// What `grep` finds in every line.
const IN_EVERY_LINE: [&str; 7] = ["", ".", ".*", "^", "$", "^.*$", "*"];
/// Programs that pass on what they are given, or what is in a file.
const PASSING: [&str; 7] = ["cat", "tac", "sort", "uniq", "head", "tail", "shuf"];

/// The longest substitution that is read once more.
const INSIDE_MAX: usize = 1024;

/// Returns the commands that remove what such a list names, each with its place and why it is blocked.
pub(super) fn blocked(script: &Script) -> Vec<(usize, String)> {
    let mut blocked = Vec::new();
    if !script.commands.iter().any(may_remove) {
        return blocked;
    }
    let mut feeding = Feeding::default();
    for value in &script.values {
        if is_unchosen(&value.word) {
            feeding.variables.insert(&value.variable);
        }
    }
    for (at, command) in script.commands.iter().enumerate() {
        let is_chosen = feeding.take(command);
        // What is given is put in its place, and judged there.
        if is_feeder(command) && command.given.is_none() && !is_chosen {
            let started = script.commands[at..].iter().take_while(|command| command.starts_another).count();
            let inner = script.commands.get(at + started).filter(|inner| removes(inner));
            let in_a_shell = || script.commands.get(at + 1).filter(|inner| is_shell(inner) && inner.words.iter().any(names_removal));
            blocked.extend(inner.and_then(Command::name).map(|name| (at + started, reason(name))));
            blocked.extend(in_a_shell().map(|_| (at + 1, reason("what the shell runs"))));
        }
        if removes(command)
            && let Some(name) = command.name()
            && command.arguments().iter().any(|word| feeding.feeds(word) || (!word.quoted && is_unchosen(word)))
        {
            blocked.push((at, reason(name)));
        }
        feeding.pass(command, is_chosen);
    }
    blocked
}

fn reason(name: &str) -> String {
    format!("{name} is given a list that cannot be read, which may name the whole project; name the files, or choose them with `find`")
}

fn removes(command: &Command) -> bool {
    command.name().is_some_and(|name| REMOVE.contains(&name))
}

fn may_remove(command: &Command) -> bool {
    removes(command) || (is_shell(command) && command.words.iter().any(names_removal))
}

fn is_shell(command: &Command) -> bool {
    command.name().is_some_and(|name| ["sh", "bash", "dash", "zsh", "ksh"].contains(&name))
}

/// Returns whether a text for a shell starts a program that removes.
fn names_removal(word: &Word) -> bool {
    word.text.split([' ', ';', '\n', '\t', '&', '|', '(', '{']).any(|part| REMOVE.contains(&part.rsplit('/').next().unwrap_or(part)))
}

fn is_feeder(command: &Command) -> bool {
    matches!(command.name(), Some("xargs" | "gxargs"))
}

/// What goes from one command to another.
#[derive(Default)]
struct Feeding<'a> {
    /// Whether what goes through a pipe was chosen by something that can be read; by the number of the shell.
    pipes: HashMap<usize, bool>,
    /// The same of what a loop, or another group of commands, is given.
    around: Option<bool>,
    /// Variables that hold what was not.
    variables: BTreeSet<&'a str>,
}

impl<'a> Feeding<'a> {
    /// Returns whether what goes into a command was chosen, and notes the variables that it puts that into.
    fn take(&mut self, command: &'a Command) -> bool {
        let piped = command.piped.then(|| self.pipes.remove(&command.shell).unwrap_or_default());
        let redirected = command.redirections.iter().rev().find(|redirection| redirection.reads());
        let file = redirected.and_then(|redirection| redirection.target.as_ref()).map(|target| {
            let inside = target.text.strip_prefix("<(").and_then(|text| text.strip_suffix(')'));
            inside.is_some_and(text_chooses)
        });
        if command.words.is_empty() && (file.is_some() || piped.is_some()) && command.given.is_none() {
            self.around = file.or(piped);
        }
        if matches!(command.name(), Some("read" | "mapfile" | "readarray")) {
            let is_unread = command.given.is_none() && file.or(piped).or(self.around) == Some(false);
            let names = command.arguments().iter().filter_map(Word::known).filter(|text| !text.starts_with('-'));
            for name in names {
                if is_unread {
                    self.variables.insert(name);
                } else {
                    self.variables.remove(name);
                }
            }
        }
        piped.unwrap_or_default()
    }

    fn pass(&mut self, command: &Command, is_chosen: bool) {
        self.pipes.insert(command.shell, chooses(command, is_chosen));
    }

    /// Returns whether a word is what such a variable holds: not where it only ends, or begins, a name of the script's own.
    fn feeds(&self, word: &Word) -> bool {
        let text = word.text.strip_prefix("./").unwrap_or(&word.text);
        let Some(rest) = text.strip_prefix('$') else { return false };
        let name = rest
            .strip_prefix('{')
            .and_then(|rest| rest.split_once('}'))
            .map_or(rest, |(name, behind)| if behind.is_empty() || behind.starts_with('/') { name } else { "" });
        let name = name.split(['/', '[']).next().unwrap_or(name);
        word.kind == WordKind::Unknown && self.variables.contains(name)
    }
}

/// Returns whether a word is put together from a list of names that was not chosen: `$(cat list)`.
fn is_unchosen(word: &Word) -> bool {
    if word.kind != WordKind::Unknown {
        return false;
    }
    let text = word.text.as_str();
    let inside =
        text.strip_prefix("$(").and_then(|rest| rest.strip_suffix(')')).or(text.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')));
    let Some(inside) = inside.filter(|inside| !inside.starts_with('(') && inside.len() <= INSIDE_MAX) else { return false };
    let script = shell::read(inside);
    let Some(first) = script.commands.first() else { return false };
    let passes = match first.name() {
        None => first.words.is_empty() && first.redirections.iter().any(shell::Redirection::reads),
        Some("git") => first.arguments().first().is_some_and(|word| word.text == "ls-files"),
        Some(name) => PASSING.contains(&name),
    };
    passes && !text_chooses(inside)
}

/// Returns whether what a text writes was chosen.
fn text_chooses(text: &str) -> bool {
    text.len() <= INSIDE_MAX
        && shell::read(text).commands.iter().fold(false, |is_chosen, command| chooses(command, command.piped && is_chosen))
}

/// Returns whether a command writes names that were chosen, from whether those were that go into it.
fn chooses(command: &Command, is_chosen: bool) -> bool {
    let arguments = command.arguments();
    let has = |options: &[&str]| arguments.iter().any(|word| options.iter().any(|option| word.text.starts_with(option)));
    match command.name().unwrap_or_default() {
        // Where they choose nothing, all that they say is given to what reads it.
        "find" | "gfind" | "ls" | "echo" | "printf" => true,
        "fd" | "fdfind" => arguments.iter().any(|word| !word.text.starts_with('-') && !IN_EVERY_LINE.contains(&word.text.as_str())),
        "git" => arguments.first().is_some_and(|word| word.text == "ls-files") && arguments.len() > 1,
        "rg" if has(&["--files"]) && !command.piped => has(&["-g", "--glob", "--iglob", "-t", "--type"]),
        "grep" | "egrep" | "fgrep" | "rg" => {
            let is_inverse =
                arguments.iter().any(|word| is_flag(&word.text, 'v') || word.text == "--invert-match" || is_flag(&word.text, 'L'));
            let looked_for = arguments.iter().find(|word| !word.text.starts_with('-'));
            is_chosen || (!is_inverse && looked_for.is_some_and(|word| !IN_EVERY_LINE.contains(&word.text.as_str())))
        }
        _ => is_chosen,
    }
}

fn is_flag(text: &str, letter: char) -> bool {
    text.starts_with('-') && !text.starts_with("--") && text.contains(letter)
}
