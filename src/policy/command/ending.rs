//! Commands that end every process there is: whatever the agent needs, too.

use super::words;
use podbay_code::shell::Word;

/// Names of programs that have nothing in common: a pattern that finds all of them finds any.
const ORDINARY: [&str; 5] = ["bash", "node", "podbay", "sleep 5", "vim"];
/// Options of `pkill` behind which a value stands.
const VALUED: &str = "FGOPUgqrstu";
/// Those by which it certainly means some: by file, age, parent, group, session, terminal; the newest and the oldest.
const CHOOSING: &str = "FOPgnost";

/// `-1` as a process, not as a signal.
pub(super) fn by_number(arguments: &[Word]) -> bool {
    let mut rest = arguments;
    match rest.first().map(|word| word.text.as_str()) {
        Some("-s" | "-n" | "--signal") => rest = rest.get(2..).unwrap_or_default(),
        Some(first) if first.starts_with('-') && first != "--" => rest = &rest[1..],
        _ => {}
    }
    rest.iter().any(|word| word.text == "-1")
}

/// `pkill .`, and `pkill -u NAME` without a pattern: in the box all that runs is of one user.
pub(super) fn by_pattern(arguments: &[Word]) -> bool {
    let (mut pattern, mut is_exact, mut of_user, mut only_operands) = (None, false, false, false);
    let mut arguments = arguments.iter();
    while let Some(word) = arguments.next() {
        let text = word.text.as_str();
        if only_operands || !text.starts_with('-') {
            pattern.get_or_insert(word);
            continue;
        }
        if let Some(long) = text.strip_prefix("--") {
            let name = long.split('=').next().unwrap_or(long);
            only_operands |= name.is_empty();
            is_exact |= name == "exact";
            of_user |= matches!(name, "euid" | "uid" | "group");
            if matches!(name, "newest" | "oldest" | "older" | "parent" | "pgroup" | "session" | "terminal" | "pidfile") {
                return false;
            }
            if matches!(name, "signal" | "euid" | "uid" | "group") && !long.contains('=') {
                arguments.next();
            }
            continue;
        }
        let letters = &text[1..];
        if is_signal(letters) {
            continue;
        }
        let end = letters.find(|letter| VALUED.contains(letter)).map(|at| at + 1);
        let is_apart = end == Some(letters.len());
        let letters = &letters[..end.unwrap_or(letters.len())];
        if letters.contains(|letter| CHOOSING.contains(letter)) {
            return false;
        }
        is_exact |= letters.contains('x');
        of_user |= letters.contains(['u', 'U', 'G']);
        if is_apart {
            arguments.next();
        }
    }
    match pattern {
        Some(pattern) => pattern.known().is_some_and(|pattern| finds_all(pattern, is_exact)),
        None => of_user,
    }
}

/// `killall -r .`, and `killall -u NAME` without a name.
pub(super) fn by_name(arguments: &[Word]) -> bool {
    let has = |letter: &str, long: &str| words::has(arguments, letter, &[long]);
    let mut names = words::operands(arguments).filter_map(Word::known);
    if has("r", "--regexp") {
        return names.any(|pattern| finds_all(pattern, false));
    }
    has("u", "--user") && names.count() < 2
}

/// Returns whether letters behind a dash are a signal: `-9`, `-KILL`, `-SIGTERM`.
fn is_signal(text: &str) -> bool {
    let is_name = text.len() > 2 && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    is_name || text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether a regular expression finds whatever program, as a part of its name or as all of it.
fn finds_all(pattern: &str, is_exact: bool) -> bool {
    let whole = if is_exact { format!("^(?:{pattern})$") } else { pattern.to_owned() };
    let regex = regex::RegexBuilder::new(&whole).size_limit(1 << 16).build();
    regex.is_ok_and(|regex| ORDINARY.iter().all(|name| regex.is_match(name)))
}
