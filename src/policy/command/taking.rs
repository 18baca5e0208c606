//! Commands that take away what they are given: it is gone, empty, elsewhere or closed to its owner afterwards.

use super::blocked::is_nothing;
use super::blocked::target_folder;
use super::ground::Ground;
use super::in_place;
use super::mode;
use super::place;
use super::words;
use podbay_code::shell;
use podbay_code::shell::Command;
use podbay_code::shell::Redirection;
use podbay_code::shell::Word;
use podbay_code::shell::WordKind;

/// Programs that remove or empty whatever they are given.
const REMOVE: [&str; 8] = ["rm", "srm", "unlink", "shred", "truncate", "gtruncate", "trash", "trash-put"];
/// Shells that read a text.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "ash"];
/// The longest text for a shell that is read once more.
const TEXT_MAX: usize = 1024;

/// Returns whether a command takes away what it is given.
pub(super) fn takes(command: &Command, ground: &Ground) -> bool {
    let arguments = command.arguments();
    let is_given = |text: &str, kind: WordKind| kind == WordKind::Unknown || text.contains("{}");
    match command.name() {
        Some(name) if REMOVE.contains(&name) => true,
        Some("mv") => destination(arguments).is_some_and(|to| place::is_beyond(&to, ground)),
        Some("cp" | "install" | "ln") => arguments.iter().any(is_nothing),
        Some("dd") => arguments.iter().any(|word| word.text.strip_prefix("of=").is_some_and(|to| is_given(to, word.kind))),
        Some("tee") => !words::has(arguments, "a", &["--append"]),
        Some("sed" | "gsed" | "perl" | "ruby" | "gawk") => in_place::empties(command),
        Some("chmod") => mode::takes_reading(arguments),
        _ => false,
    }
}

/// Returns the files that a command writes over by a redirection.
pub(super) fn written_over(command: &Command) -> impl Iterator<Item = &Word> {
    let overwrites = |redirection: &&Redirection| matches!(redirection.operator.as_str(), ">" | ">|" | "&>");
    command.redirections.iter().filter(overwrites).filter_map(|redirection| redirection.target.as_ref())
}

/// Returns whether a command is a shell that is given a text which takes away what it is given.
pub(super) fn in_a_shell(command: &Command, ground: &Ground) -> bool {
    let is_shell = command.name().is_some_and(|name| SHELLS.contains(&name));
    is_shell && command.arguments().iter().any(|word| text_takes(&word.text, ground))
}

fn text_takes(text: &str, ground: &Ground) -> bool {
    // Most words of a shell are no such text.
    if text.len() > TEXT_MAX || !text.contains([' ', '>']) {
        return false;
    }
    let is_given = |word: &Word| word.kind == WordKind::Unknown || word.text.contains("{}");
    shell::read(text).commands.iter().any(|command| takes(command, ground) || written_over(command).any(is_given))
}

/// Returns where `mv` moves what it is given: the folder that an option names, or the last word.
fn destination(arguments: &[Word]) -> Option<String> {
    // What `xargs` adds comes last.
    let last = || words::operands(arguments).filter(|word| word.text != "…" && word.text != "./…").last();
    target_folder(arguments).or_else(|| last().map(|word| word.text.clone()))
}
