use podbay_code::shell::Word;
use podbay_code::shell::WordKind;

/// Returns whether one of the words is, or may turn out to be, one of these options.
///
/// Short ones are letters (`-f` is also in `-xdf`), long ones count when they are shortened (`--har` or `--h` for `--hard`), as most
/// programs take them.
pub(super) fn may_have(words: &[Word], letters: &str, long: &[&str]) -> bool {
    before_dashes(words).iter().any(|word| may_be_option(word) || is_option(&word.text, letters, long))
}

/// The same, for options that are there for certain.
pub(super) fn has(words: &[Word], letters: &str, long: &[&str]) -> bool {
    words.iter().take_while(|word| word.text != "--").any(|word| word.kind == WordKind::Known && is_option(&word.text, letters, long))
}

/// Returns the words in front of a `--` that certainly ends the options: behind one of them it may be what that is given.
pub(super) fn before_dashes(words: &[Word]) -> &[Word] {
    let ends = |at: usize| {
        let before = at.checked_sub(1).and_then(|at| words.get(at));
        words[at].text == "--" && before.is_none_or(|word| word.kind == WordKind::Known && !word.text.starts_with('-'))
    };
    &words[..(0..words.len()).find(|at| ends(*at)).unwrap_or(words.len())]
}

pub(super) fn is_option(text: &str, letters: &str, long: &[&str]) -> bool {
    if text.starts_with("--") {
        let name = text.split('=').next().unwrap_or(text);
        return name.len() > 2 && long.iter().any(|option| option.starts_with(name));
    }
    text.strip_prefix('-').is_some_and(|rest| rest.contains(|c| letters.contains(c)))
}

/// A word that is not known may be an option, or become several words with one among them, unless all of it is one that begins like a name or
/// a path.
pub(super) fn may_be_option(word: &Word) -> bool {
    let splits = || word.kind == WordKind::Unknown && !word.quoted && word.text.contains(['$', '`']);
    may_begin_option(word) || (splits() && !is_descriptor(word))
}

/// Returns whether a word that is not known may begin as an option does.
pub(super) fn may_begin_option(word: &Word) -> bool {
    match word.kind {
        WordKind::Known => false,
        WordKind::Unknown if is_descriptor(word) => false,
        WordKind::Pattern | WordKind::Unknown => !word.text.starts_with(|c: char| c.is_ascii_alphanumeric() || "./~_".contains(c)),
    }
}

/// Returns whether a word that is not known is one word for certain, with a dot or a slash in it that is written there.
pub(super) fn has_dot_or_slash(word: &Word) -> bool {
    let is_one = word.kind == WordKind::Pattern || word.quoted;
    if !is_one || word.text.contains(['`', '[']) || word.text.contains("$(") {
        return false;
    }
    // What stands between the expansions, none of which is within another.
    let is_open = |part: &str| part.starts_with('{') && !part.contains('}');
    !word.text.split('$').any(is_open)
        && word.text.split('$').enumerate().any(|(at, part)| {
            let written = match (at, part.strip_prefix('{')) {
                (0, _) => part,
                (_, Some(inside)) => inside.split_once('}').map_or("", |(_, behind)| behind),
                (_, None) => part.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_'),
            };
            written.contains(['.', '/'])
        })
}

/// Returns whether a word is the name of a descriptor that the shell puts there.
fn is_descriptor(word: &Word) -> bool {
    word.text.starts_with("<(") && word.text.ends_with(')')
}

/// Returns the words that are no options; after `--` all of them.
pub(super) fn operands(words: &[Word]) -> impl Iterator<Item = &Word> {
    let mut only_operands = false;
    words.iter().filter(move |word| {
        let is_dashes = word.text == "--" && !only_operands;
        only_operands |= is_dashes;
        !is_dashes && (only_operands || !word.text.starts_with('-') || word.text == "-")
    })
}
