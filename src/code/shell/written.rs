//! Files that a text writes itself, and then runs.

use super::Command;
use super::Word;
use super::said;

/// Shells and commands of theirs that run a file.
const RUNNING: [&str; 8] = ["bash", "sh", "dash", "ash", "zsh", "ksh", "source", "."];

/// Returns the file that a command writes with what it is given or says itself; with whether it adds to what is there.
pub(super) fn file(command: &Command) -> Option<(String, (String, bool))> {
    let redirection = command.redirections.iter().rev().find(|redirection| redirection.writes());
    let arguments = command.arguments();
    let text = match command.name() {
        Some("cat") if arguments.is_empty() => command.given.clone()?,
        Some("tee") => command.given.clone()?,
        Some("echo" | "printf") => said::written(command)?,
        _ => return None,
    };
    let of_tee = arguments.iter().find(|word| command.name() == Some("tee") && !word.text.starts_with('-'));
    let (target, adds) = match (of_tee, redirection) {
        (Some(word), _) => (word.known()?, arguments.iter().any(|word| word.text == "-a")),
        (None, Some(redirection)) => (redirection.target.as_ref()?.known()?, redirection.operator == ">>"),
        (None, None) => return None,
    };
    Some((plain(target).to_owned(), (text, adds)))
}

/// Returns the file that a command runs, with the words that it is given.
pub(super) fn run(command: &Command) -> Option<(&str, &[Word])> {
    let program = command.program()?.known()?;
    if !RUNNING.contains(&command.name()?) {
        return program.contains('/').then(|| (plain(program), command.words.as_slice()));
    }
    let at = command.words.iter().skip(1).position(|word| !word.text.starts_with('-'))? + 1;
    Some((plain(command.words[at].known()?), &command.words[at..]))
}

/// Returns the file of rules that `make` is given.
pub(super) fn rules(command: &Command) -> Option<&str> {
    let arguments = command.arguments();
    let at = arguments.iter().position(|word| word.text == "-f").filter(|_| matches!(command.name(), Some("make" | "gmake")))?;
    Some(plain(arguments.get(at + 1)?.known()?))
}

fn plain(path: &str) -> &str {
    let path = path.strip_prefix("./").unwrap_or(path);
    path.strip_prefix("/workspace/").unwrap_or(path)
}
