//! Removals that are fed a list which nobody can read: it may name every file there is.

use std::collections::HashMap;

use crate::code::shell::Command;
use crate::code::shell::Script;

const REMOVE: [&str; 6] = ["rm", "srm", "unlink", "shred", "truncate", "gtruncate"];
/// What `grep` finds in every line.
const IN_EVERY_LINE: [&str; 7] = ["", ".", ".*", "^", "$", "^.*$", "*"];

/// Returns the commands that remove what such a list names, each with its place and why it is blocked.
pub(super) fn blocked(script: &Script) -> Vec<(usize, String)> {
    let mut blocked = Vec::new();
    if !script.commands.iter().any(is_feeder) {
        return blocked;
    }
    // Whether what goes through a pipe was chosen by something that can be read; by the number of the shell.
    let mut pipes: HashMap<usize, bool> = HashMap::new();
    for (at, command) in script.commands.iter().enumerate() {
        let is_chosen = command.piped && pipes.remove(&command.shell).unwrap_or_default();
        // What is given is put in its place, and judged there.
        if is_feeder(command) && command.given.is_none() && !is_chosen {
            let started = script.commands[at..].iter().take_while(|command| command.starts_another).count();
            let inner = script.commands.get(at + started).filter(|inner| inner.name().is_some_and(|name| REMOVE.contains(&name)));
            blocked.extend(inner.and_then(Command::name).map(|name| {
                let reason = format!("{name} is given a list that cannot be read, which may name the whole project; name the files, or choose them with `find`");
                (at + started, reason)
            }));
        }
        pipes.insert(command.shell, chooses(command, is_chosen));
    }
    blocked
}

fn is_feeder(command: &Command) -> bool {
    matches!(command.name(), Some("xargs" | "gxargs"))
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
