//! Modes that lock the whole project: its owner could read its files, or enter its folders, no more.

use super::ground::Ground;
use super::place;
use super::place::Whole;
use super::words;
use podbay_code::shell::Word;
use podbay_code::shell::WordKind;

/// What is left to a file's owner.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Left {
    reads: bool,
    enters: bool,
}

const NOTHING: Left = Left { reads: false, enters: false };

/// Returns why a `chmod` is blocked, if it locks the project.
pub(super) fn reason(arguments: &[Word], ground: &Ground) -> Option<String> {
    let (left, targets) = read(arguments);
    let recursive = words::has(arguments, "R", &["--recursive"]);
    let locks = |target: &&Word| match place::whole(&target.text, ground) {
        Some(Whole::Content) if !recursive => !left.reads,
        Some(_) => !left.reads || !left.enters,
        None => false,
    };
    targets.into_iter().find(locks)?;
    Some(format!(
        "it may leave nobody able to read or enter {}; give `X`, which leaves folders open, as in `chmod -R u+rwX`, or name the files",
        place::PROJECT
    ))
}

/// Returns whether the files that a `chmod` is given can be read no more.
pub(super) fn takes_reading(arguments: &[Word]) -> bool {
    !read(arguments).0.reads
}

/// Returns what a `chmod` leaves to the owner, and its files. A mode that cannot be read leaves nothing.
fn read(arguments: &[Word]) -> (Left, Vec<&Word>) {
    let mut left = None;
    let mut files = Vec::new();
    let mut only_operands = false;
    for word in arguments {
        let text = word.text.as_str();
        if !only_operands && text == "--" {
            only_operands = true;
        } else if !only_operands && text.starts_with("--") {
            if text.len() > 3 && "--reference".starts_with(text.split('=').next().unwrap_or(text)) {
                left = Some(NOTHING);
            }
        } else if left.is_none() && (only_operands || !text.starts_with('-') || is_mode(text)) {
            left = Some(if word.kind == WordKind::Known { of(text) } else { NOTHING });
        } else if only_operands || !text.starts_with('-') || text == "-" {
            files.push(word);
        }
    }
    (left.unwrap_or(Left { reads: true, enters: true }), files)
}

/// Returns whether a word with a dash is a mode, as `-rwx` is, and no option.
fn is_mode(text: &str) -> bool {
    text.strip_prefix('-').is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| "rwxXstugoa+-=,01234567".contains(c)))
}

fn of(mode: &str) -> Left {
    let mut bits = 7;
    for clause in mode.split(',') {
        let who = clause.len() - clause.trim_start_matches(['u', 'g', 'o', 'a']).len();
        let (who, mut rest) = clause.split_at(who);
        let is_owner = who.is_empty() || who.contains(['u', 'a']);
        if !rest.starts_with(['+', '-', '=']) {
            // Without a sign it is a number that says all.
            bits = number(rest);
            continue;
        }
        while let Some(sign) = rest.chars().next() {
            let end = rest[1..].find(['+', '-', '=']).map_or(rest.len(), |at| at + 1);
            let named = &rest[1..end];
            rest = &rest[end..];
            if is_owner {
                bits = changed(bits, sign, named);
            }
        }
    }
    Left { reads: bits & 4 != 0, enters: bits & 1 != 0 }
}

/// Returns the owner's bits after one change. What others may is not known: it adds nothing, and takes everything.
fn changed(bits: u32, sign: char, named: &str) -> u32 {
    let is_number = named.starts_with(|c: char| c.is_ascii_digit());
    let is_of_others = named.contains(['g', 'o']);
    let named = if is_number {
        number(named)
    } else {
        named.chars().fold(0, |all, letter| {
            all | match letter {
                'r' => 4,
                'w' => 2,
                'x' | 'X' => 1,
                'u' => bits,
                _ => 0,
            }
        })
    };
    match sign {
        '+' => bits | named,
        '-' if is_of_others => 0,
        '-' => bits & !named,
        _ => named,
    }
}

/// Returns the owner's digit: the third from the end. What is no number leaves nothing.
fn number(text: &str) -> u32 {
    if !text.chars().all(|c| c.is_digit(8)) {
        return 0;
    }
    text.chars().rev().nth(2).and_then(|digit| digit.to_digit(8)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_mode_leaves_to_the_owner_is_known() {
        for mode in
            ["755", "0755", "u+rwX", "u+rwX,go-rwx", "go-w", "a-x,u+X", "a-w", "+x", "go=", "u=rwx", "a=rX", "=755", "u-r+r", "00700"]
        {
            assert!(of(mode) == Left { reads: true, enters: true }, "{mode}");
        }
        for mode in ["000", "0", "a-rwx", "u=", "-rwx", "u=g", "a-x", "644", "u-r", "=", "u=w", "77", "9", "u-g", "x", "u=x"] {
            assert!(of(mode) != Left { reads: true, enters: true }, "{mode}");
        }
    }
}
