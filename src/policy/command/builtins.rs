//! The shell's own commands that certainly only read: some of them would run what a value or a name in it says.

use super::variables::is_own;
use super::words::may_be_option;
use podbay_code::shell::Assignment;
use podbay_code::shell::Word;
use podbay_code::shell::WordKind;

/// Builtins that read the value of a list once more.
const DECLARES: [&str; 6] = ["local", "declare", "typeset", "export", "readonly", "unset"];

/// Returns whether one of the shell's own commands only reads; `None` for another program.
pub(super) fn only_reads(name: &str, arguments: &[Word]) -> Option<bool> {
    Some(match name {
        // A list's place in it would be computed. Behind the keyword no word is split, and which one is an operator is known beforehand.
        "[[" => {
            !arguments.iter().any(|word| matches!(word.text.as_str(), "-v" | "-R") || may_be_option(word) && word.kind == WordKind::Pattern)
        }
        "test" | "[" => tests(arguments),
        "printf" => prints(arguments),
        "read" => reads_own(arguments),
        "mapfile" | "readarray" => reads_lines(arguments),
        "set" => sets(arguments),
        "wait" => arguments.iter().all(|word| word.known().is_some_and(is_job)),
        _ if DECLARES.contains(&name) => names_own_variables(arguments),
        _ => return None,
    })
}

/// Returns whether nothing that a declaration is given is taken for the text of a list, which it would expand.
pub(super) fn declares_no_list(name: &str, assignments: &[Assignment]) -> bool {
    !DECLARES.contains(&name) || assignments.iter().all(is_no_list)
}

/// A value that no declaration takes for the text of a list, which it would expand.
fn is_no_list(assignment: &Assignment) -> bool {
    assignment.value.as_ref().is_none_or(|value| value.known().is_some_and(is_plain_value))
}

fn is_plain_value(text: &str) -> bool {
    !text.contains(['(', '$', '`', '['])
}

fn is_variable(text: &str) -> bool {
    !text.is_empty() && is_own(text)
}

fn names_own_variables(arguments: &[Word]) -> bool {
    arguments.iter().all(|word| match word.known() {
        Some("-r" | "-a" | "-A" | "-x" | "-g" | "-p") => true,
        Some(text) => text.split_once('=').map_or(is_variable(text), |(name, value)| is_variable(name) && is_plain_value(value)),
        None => false,
    })
}

/// `test` that computes nothing. A value may be an operator or several words, so it may stand only where no operator is taken from it: alone
/// behind one that looks at a text, in quotes, or beside `=`.
fn tests(arguments: &[Word]) -> bool {
    let words = match arguments.split_last() {
        Some((last, rest)) if last.text == "]" => rest,
        _ => arguments,
    };
    if words.iter().all(|word| word.kind == WordKind::Known) {
        return !words.iter().any(|word| matches!(word.text.as_str(), "-v" | "-R"));
    }
    let is = |at: usize, allowed: &[&str]| words.get(at).and_then(Word::known).is_some_and(|text| allowed.contains(&text));
    let is_one = |at: usize| words.get(at).is_some_and(|word| word.kind == WordKind::Known || word.quoted);
    let rest = if is(0, &["!"]) { &words[1..] } else { words };
    let from = words.len() - rest.len();
    match rest.len() {
        1 => is_one(from),
        2 => is(from, &["-n", "-z", "-e", "-f", "-d", "-r", "-w", "-x", "-s", "-L", "-h", "-p", "-S"]) && is_one(from + 1),
        3 => is(from + 1, &["=", "==", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"]) && is_one(from) && is_one(from + 2),
        _ => false,
    }
}

/// `printf` that sets no variable: neither by `-v` nor by `%n`.
fn prints(arguments: &[Word]) -> bool {
    let format = match arguments {
        [dashes, format, ..] if dashes.text == "--" => format,
        [format, ..] if !format.text.starts_with('-') => format,
        _ => return false,
    };
    let counts = |piece: &str| piece.trim_start_matches(|c: char| "-+ #0123456789.*'hlLjztq".contains(c)).starts_with('n');
    format.known().is_some_and(|text| !text.split('%').skip(1).any(counts))
}

/// `read` into variables of the script's own.
fn reads_own(arguments: &[Word]) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let mut words = arguments.iter().map(Word::known);
    while let Some(word) = words.next() {
        let Some(text) = word else { return false };
        let Some(letters) = text.strip_prefix('-') else {
            if is_variable(text) {
                continue;
            }
            return false;
        };
        for (at, letter) in letters.char_indices() {
            if matches!(letter, 'r' | 's') {
                continue;
            }
            let attached = Some(&letters[at + letter.len_utf8()..]).filter(|rest| !rest.is_empty());
            let Some(value) = attached.or_else(|| words.next().flatten()) else { return false };
            let is_plain = match letter {
                'a' => is_variable(value),
                't' | 'u' | 'n' | 'N' => is_number(value),
                'd' | 'p' => true,
                _ => false,
            };
            if !is_plain {
                return false;
            }
            break;
        }
    }
    true
}

/// `mapfile` into a list of the script's own.
fn reads_lines(arguments: &[Word]) -> bool {
    let mut words = arguments.iter().map(Word::known);
    let mut n_lists = 0;
    while let Some(word) = words.next() {
        let is_plain = match word {
            Some("-t") => true,
            Some("-d") => words.next().flatten().is_some(),
            Some("-n" | "-s" | "-O" | "-u") => {
                words.next().flatten().is_some_and(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
            }
            Some(text) => {
                n_lists += 1;
                is_variable(text)
            }
            None => false,
        };
        if !is_plain {
            return false;
        }
    }
    n_lists <= 1
}

fn is_job(text: &str) -> bool {
    let number = text.strip_prefix('%').unwrap_or(text);
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// `set` with options that only make the shell stop earlier or say more: `-k` would make variables of a program's words.
fn sets(arguments: &[Word]) -> bool {
    const NAMES: [&str; 7] = ["pipefail", "errexit", "nounset", "xtrace", "verbose", "noglob", "noclobber"];
    let mut wants_name = false;
    for word in arguments {
        let Some(text) = word.known() else { return false };
        if std::mem::take(&mut wants_name) {
            if !NAMES.contains(&text) {
                return false;
            }
            continue;
        }
        let Some(letters) = text.strip_prefix(['-', '+']) else { return false };
        if text == "--" {
            return true;
        }
        if letters.is_empty() || !letters.chars().all(|c| "euxvfCo".contains(c)) {
            return false;
        }
        wants_name = letters.contains('o');
    }
    true
}
