//! Commands that take all of what is precious away without `rm`: they empty every file, or pack it and remove it.

use super::blocked::is_nothing;
use super::place;
use super::place::Ground;
use super::words;
use crate::code::shell::Command;
use crate::code::shell::Redirection;
use crate::code::shell::Word;

/// Returns why a command is blocked, if it is.
pub(super) fn reason(command: &Command, ground: &Ground) -> Option<String> {
    let is_project = |word: &Word| place::precious(&word.text, ground).as_deref() == Some(place::PROJECT);
    // A loop puts each file in the place of the star.
    let overwrites = |redirection: &&Redirection| matches!(redirection.operator.as_str(), ">" | ">|" | "&>");
    let mut targets = command.redirections.iter().filter(overwrites).filter_map(|redirection| redirection.target.as_ref());
    if targets.any(|target| target.text.contains('*') && is_project(target)) {
        return Some(format!("it writes over {}", place::PROJECT));
    }
    let arguments = command.arguments();
    let precious = || words::operands(arguments).find_map(|word| place::precious(&word.text, ground));
    // One file that takes the place of each: what comes from nowhere leaves nothing of it.
    let stars = || words::operands(arguments).any(|word| word.text.contains('*') && is_project(word));
    match command.name()? {
        "cp" | "install" | "ln" if arguments.iter().any(is_nothing) && stars() => Some(format!("it empties {}", place::PROJECT)),
        "dd" if arguments.iter().any(|word| word.text.contains('*') && is_output(word, ground)) => {
            Some(format!("it writes over {}", place::PROJECT))
        }
        "truncate" => precious().map(|what| format!("it empties {what}")),
        "tee" if !words::has(arguments, "a", &["--append"]) => {
            words::operands(arguments).any(is_project).then(|| format!("it writes over {}", place::PROJECT))
        }
        "sed" | "gsed" if words::may_have(arguments, "i", &["--in-place"]) && arguments.iter().any(deletes_all) => {
            precious().map(|what| format!("it empties {what}"))
        }
        "tar" | "bsdtar" | "gtar" if has_long(arguments, "--remove-files", "--rem") => precious().map(|what| format!("it removes {what}")),
        "rsync" if has_long(arguments, "--remove-source-files", "--remove-s") => precious().map(|what| format!("it removes {what}")),
        "zip" if words::may_have(arguments, "m", &["--move"]) => precious().map(|what| format!("it removes {what}")),
        _ => None,
    }
}

/// Returns whether a word of `dd` makes it write over what lies in the project.
fn is_output(word: &Word, ground: &Ground) -> bool {
    word.text.strip_prefix("of=").is_some_and(|path| place::precious(path, ground).as_deref() == Some(place::PROJECT))
}

/// Returns whether an option is there, shortened to no less than this.
fn has_long(arguments: &[Word], option: &str, shortest: &str) -> bool {
    arguments.iter().any(|word| option.starts_with(word.text.as_str()) && word.text.starts_with(shortest))
}

/// Returns whether a word is a script of `sed` that leaves no line.
fn deletes_all(word: &Word) -> bool {
    let script = word.text.trim().trim_start_matches("-i").trim_start_matches("-e").trim_end_matches(';');
    matches!(script, "d" | "D" | "1,$d" | "0~1d" | "/^/d" | "/$/d" | "/.*/d" | "/./d" | "//d" | "Q" | "1Q" | "s/.*//")
}
