use super::super::Command;
use super::super::Word;
use super::Inner;
use super::Unwrapped;
use super::place;

/// `find … -exec PROGRAM … ;`, for each action of that kind.
pub(super) fn find(arguments: &[Word], unwrapped: &mut Unwrapped) {
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
        place(&mut inner, Some("{}"), unwrapped);
        if inner.words.is_empty() {
            unwrapped.doubt(text, "it names no program");
        } else {
            unwrapped.inner.push(Inner::Command(inner));
        }
        at += end + 1;
    }
}

/// A word that begins like a path or a pattern of names stays one, whatever takes the place of the rest.
fn leads_to_a_place(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric() || "./~*".contains(c))
}
