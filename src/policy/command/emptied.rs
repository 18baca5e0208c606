//! Commands that take all of what is precious away without `rm`: they empty every file, or pack it and remove it.

use super::blocked::is_nothing;
use super::ground::Ground;
use super::place;
use super::taking;
use super::words;
use crate::code::shell::Command;
use crate::code::shell::Word;

/// Returns why a command is blocked, if it is.
pub(super) fn reason(command: &Command, ground: &Ground) -> Option<String> {
    let is_project = |word: &Word| place::precious(&word.text, ground).as_deref() == Some(place::PROJECT);
    // A loop puts each file in the place of the star.
    if taking::written_over(command).any(|target| target.text.contains('*') && is_project(target)) {
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
        "rsync" if arguments.iter().any(|word| word.text.starts_with("--del")) => {
            // Whatever the other side lacks goes.
            let to = words::operands(arguments).skip(1).last().and_then(|to| place::precious(&to.text, ground));
            to.map(|what| format!("it may empty {what}"))
        }
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

/// Lines as they are found in any file.
const LINES: [&str; 5] = ["fn main() {", "}", "x = 1;", "# A text.", "import a"];

/// Returns whether a word is a script of `sed` that leaves next to nothing of a file.
pub(super) fn deletes_all(word: &Word) -> bool {
    let script = word.text.trim().trim_start_matches("-i").trim_start_matches("-e");
    script.len() <= SCRIPT_MAX && script.split([';', '\n']).any(|step| step_deletes(step.trim()))
}

/// The longest script that is looked through.
const SCRIPT_MAX: usize = 256;

fn step_deletes(step: &str) -> bool {
    if let Some(mark) = step.strip_prefix('s').and_then(|rest| rest.chars().next()).filter(char::is_ascii_punctuation) {
        let mut parts = step[2..].split(mark);
        let (Some(pattern), Some("")) = (parts.next(), parts.next()) else { return false };
        return finds(&format!("^(?:{pattern})$"));
    }
    let Some(address) = step.strip_suffix(['d', 'D', 'Q']).map(str::trim_end) else { return false };
    // All but what it names, which may be every line that says something.
    if let Some(kept) = address.strip_suffix('!') {
        let named = kept.trim_end().strip_prefix('/').and_then(|rest| rest.split_once('/'));
        return !named.is_some_and(|(pattern, behind)| finds(pattern) && matches!(behind, "" | ",$"));
    }
    if address.is_empty() {
        return true;
    }
    let (from, to) = match address.strip_prefix('/').map(|rest| rest.split_once('/')) {
        Some(Some((pattern, behind))) if finds(pattern) => return behind.is_empty() || behind == ",$",
        Some(_) => return false,
        None => address.split_once(',').unwrap_or((address, "")),
    };
    if matches!(from, "0~1" | "1~1") || (from == "1" && step.ends_with('Q')) {
        return true;
    }
    let number = |text: &str| text.trim().trim_start_matches(['+', '~']).parse::<u64>().ok();
    // From one of the first lines to the end, or to one that few files have.
    number(from).is_some_and(|from| from <= 3) && (to == "$" || number(to).is_some_and(|to| to >= 100))
}

/// Returns whether a pattern is found in any line.
fn finds(pattern: &str) -> bool {
    let plain = pattern.replace("\\(", "(").replace("\\)", ")").replace("\\|", "|");
    let regex = regex::RegexBuilder::new(&plain).size_limit(1 << 16).build();
    regex.is_ok_and(|regex| LINES.iter().all(|line| regex.is_match(line)))
}
