use super::super::Command;
use super::super::Word;
use super::super::WordKind;
use super::super::said;
use super::Inner;
use super::Unwrapped;
use super::place;

/// `find … -exec PROGRAM … ;`, for each action of that kind.
pub(super) fn find(command: &Command, unwrapped: &mut Unwrapped) {
    let arguments = command.arguments();
    let all = said::found(command);
    let begins_with_a_name = said::begins_with_a_name(arguments);
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        at += 1;
        let Some(text) = word.known() else {
            if !leads_to_a_place(&word.text) {
                unwrapped.doubt(&word.text, "it may be an action of find");
            }
            continue;
        };
        if !matches!(text, "-exec" | "-execdir" | "-ok" | "-okdir") {
            continue;
        }
        let rest = &arguments[at..];
        let is_end = |(n, word): (usize, &Word)| word.text == ";" || (word.text == "+" && n > 0 && rest[n - 1].text == "{}");
        let Some(end) = rest.iter().enumerate().position(is_end) else {
            return unwrapped.doubt(text, "where the program that it starts ends is not certain");
        };
        let mut inner = Command { words: rest[..end].to_vec(), ..Command::default() };
        unwrapped.inner.extend(all.as_ref().and_then(|all| with(&inner, all)).map(Inner::Command));
        place(&mut inner, Some("{}"), unwrapped);
        // A name that begins with a place is no option.
        if begins_with_a_name {
            inner.words.iter_mut().filter(|word| word.text == "{}").for_each(|word| word.text.insert_str(0, "./"));
        }
        if inner.words.is_empty() {
            unwrapped.doubt(text, "it names no program");
        } else {
            unwrapped.inner.push(Inner::Command(inner));
        }
        at += end + 1;
    }
}

/// Returns a command with all that was found in the place of the first `{}`.
fn with(command: &Command, all: &str) -> Option<Command> {
    let found = |text: &str| Word { text: text.to_owned(), kind: WordKind::Known, plain: false, quoted: false };
    let at = command.words.iter().position(|word| word.text == "{}")?;
    let mut words = command.words.clone();
    words.splice(at..=at, all.split_whitespace().map(found));
    Some(Command { words, ..Command::default() })
}

/// A word that begins like a path or a pattern of names stays one, whatever takes the place of the rest.
fn leads_to_a_place(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric() || "./~*".contains(c))
}
