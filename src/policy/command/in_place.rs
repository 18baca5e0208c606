//! Programs that change files in their places and leave next to nothing of each: `sed -i d`, `sed -n -i ''`, `perl -ni -e 1`.

use super::words;
use podbay_code::shell::Command;
use podbay_code::shell::LineProgram;
use podbay_code::shell::SedScripts;
use podbay_code::shell::Word;

/// What says in `perl` and `ruby` that something is written.
const WRITING: [&str; 5] = ["print", "say", "put", "p ", "write"];
/// Programs of theirs that make nothing of a line, without blanks.
const CLEARING: [&str; 4] = ["$_=\"\"", "$_=''", "undef$_", "undef($_)"];
/// Programs of `awk` that print nothing, without blanks.
const SILENT: [&str; 5] = ["", "0", "{}", "{exit}", "{next}"];

/// Returns whether a command empties the files that it is given, or nearly.
pub(super) fn empties(command: &Command) -> bool {
    let arguments = command.arguments();
    match command.name() {
        Some("sed" | "gsed") => {
            let leaves_nothing = || arguments.iter().any(deletes_all) || SedScripts::of(arguments).prints_nothing();
            words::may_have(arguments, "i", &["--in-place"]) && leaves_nothing()
        }
        Some("perl" | "ruby") => LineProgram::of(command).is_some_and(|program| program.is_in_place && clears_each(&program)),
        Some("gawk") => {
            let is_silent = |word: &Word| word.known().is_some_and(|text| SILENT.contains(&without_blanks(text).as_str()));
            let is_in_place = |pair: &[Word]| pair[0].text == "-i" && pair[1].text == "inplace";
            arguments.windows(2).any(is_in_place) && arguments.iter().any(is_silent)
        }
        _ => false,
    }
}

/// Returns whether nothing of any line is written back.
fn clears_each(program: &LineProgram<'_>) -> bool {
    if program.prints {
        let steps = || program.text.split(';').map(str::trim);
        // With something behind the substitution it may be done to some of the lines.
        let clears = |step: &str| taken_out(step).is_some_and(|flags| flags.chars().all(|flag| "gimsx".contains(flag)));
        let is_short = program.text.len() <= SCRIPT_MAX;
        CLEARING.contains(&without_blanks(&program.text).trim_end_matches(';')) || is_short && steps().any(clears)
    } else {
        !WRITING.iter().any(|writing| program.text.contains(writing))
    }
}

fn without_blanks(text: &str) -> String {
    text.split_whitespace().collect()
}

/// Lines as they are found in any file.
const LINES: [&str; 5] = ["fn main() {", "}", "x = 1;", "# A text.", "import a"];

/// Returns whether a word is a script of `sed` that leaves next to nothing of a file.
fn deletes_all(word: &Word) -> bool {
    let script = word.text.trim().trim_start_matches("-i").trim_start_matches("-e");
    script.len() <= SCRIPT_MAX && script.split([';', '\n']).any(|step| step_deletes(step.trim()))
}

/// The longest script that is looked through.
const SCRIPT_MAX: usize = 256;

/// Returns what stands behind a substitution that takes all of a line out: `s/.*//`.
fn taken_out(step: &str) -> Option<&str> {
    let mark = step.strip_prefix('s')?.chars().next().filter(char::is_ascii_punctuation)?;
    let (pattern, behind) = step[2..].split_once(mark)?;
    let flags = if behind.is_empty() { behind } else { behind.strip_prefix(mark)? };
    finds(&format!("^(?:{pattern})$")).then_some(flags)
}

fn step_deletes(step: &str) -> bool {
    if step.strip_prefix('s').is_some_and(|rest| rest.starts_with(|mark: char| mark.is_ascii_punctuation())) {
        return taken_out(step).is_some();
    }
    // Other lines in the places of all, or none behind the first ones.
    let changed = step.split_once('c').filter(|(_, text)| text.starts_with([' ', '\\'])).map(|(address, _)| address.trim());
    if changed.is_some_and(|address| matches!(address, "" | "1,$" | "0~1" | "1~1")) {
        return true;
    }
    if let Some(last) = step.strip_suffix('q').map(str::trim) {
        return last.is_empty() || last.parse::<u64>().is_ok_and(|last| last <= 3);
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
    let regex = regex::RegexBuilder::new(&plain).size_limit(1 << 13).build();
    regex.is_ok_and(|regex| LINES.iter().all(|line| regex.is_match(line)))
}
