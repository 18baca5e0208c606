//! Variables in commands of git: where what they hold certainly is a name, it is no option.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::BTreeSet;

use super::words;
use podbay_code::shell::Command;
use podbay_code::shell::Script;
use podbay_code::shell::Word;
use podbay_code::shell::WordKind;

/// What the values of a variable have in common, none of which is an option.
#[derive(Clone, Copy)]
pub(super) struct Named {
    /// Each is one word without quotes, too.
    is_one: bool,
    /// Some begin with a star, and only a dot in them says that they are no option of a verb that moves or removes.
    has_dot: bool,
}

/// Returns the variables among these whose values certainly are no options.
pub(super) fn names<'a>(script: &'a Script, files: &BTreeSet<&'a str>) -> BTreeMap<&'a str, Named> {
    let begins = |word: &Word| word.text.starts_with(|c: char| c.is_ascii_alphanumeric() || "./_".contains(c));
    let has_dot = |word: &Word| word.kind == WordKind::Pattern && words::has_dot_or_slash(word);
    let is_name = |word: &Word| word.kind != WordKind::Unknown && (begins(word) || has_dot(word));
    let values = |name: &'a str| script.values.iter().filter(move |value| value.variable == name).map(|value| &value.word);
    let named = |name: &'a str| Named {
        is_one: values(name).all(|word| word.known().is_some_and(|text| !text.contains([' ', '\t', '\n']))),
        has_dot: !values(name).all(begins),
    };
    files.iter().copied().filter(|name| values(name).all(is_name)).map(|name| (name, named(name))).collect()
}

/// Returns a command with words that are put together from these variables made to look like paths: they are no options either.
pub(super) fn with_names<'a>(command: &'a Command, names: &BTreeMap<&str, Named>) -> Cow<'a, Command> {
    if command.name() != Some("git") || names.is_empty() {
        return Cow::Borrowed(command);
    }
    let moves = command.arguments().first().is_some_and(|verb| matches!(verb.known(), Some("mv" | "rm")));
    let is_name = |word: &Word| {
        let mut parts = word.text.split('$');
        let mut is_one = true;
        let begins = parts.next().is_some_and(|before| before.is_empty() || !words::may_begin_option(word));
        let all = parts.enumerate().all(|(at, part)| {
            let inside = part.strip_prefix('{').and_then(|inside| inside.split_once('}'));
            let (inside, behind) = inside
                .unwrap_or_else(|| part.split_at(part.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(part.len())));
            let (name, is_cut) = inside.split_once('%').map_or((inside, false), |(name, _)| (name, true));
            let named = names.get(name);
            is_one &= named.is_some_and(|named| named.is_one);
            let is_first = at == 0 && word.text.starts_with('$');
            let is_name = named.is_some_and(|named| !named.has_dot || (moves && !is_cut));
            (!is_first && word.quoted) || (is_name && !behind.starts_with('-'))
        });
        word.kind == WordKind::Unknown && !word.text.contains('`') && begins && all && (word.quoted || is_one)
    };
    let named =
        |word: &Word| if is_name(word) { Word { text: format!("./{}", word.text), quoted: true, ..word.clone() } } else { word.clone() };
    Cow::Owned(Command { words: command.words.iter().map(named).collect(), ..command.clone() })
}
