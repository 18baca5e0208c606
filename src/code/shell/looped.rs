//! Variables that a loop gives the names of files, and nothing else does: `for f in src/*.py`.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use super::Script;
use super::Word;
use super::WordKind;

/// What lists the names of files, each as it lies there.
const LISTING: [&str; 3] = ["$(git ls-files ", "$(find ", "$(ls "];
/// Commands of the shell that give the variables among their words a value.
const GIVING: [&str; 11] =
    ["declare", "eval", "export", "getopts", "local", "mapfile", "printf", "read", "readarray", "readonly", "typeset"];

/// Returns the variables to which loops give files that are written there or found by their names, and nothing else a value: none is an option,
/// unless somebody called a file so.
pub fn looped_files(script: &Script) -> BTreeSet<&str> {
    let mut looped: BTreeMap<&str, bool> = BTreeMap::new();
    for value in &script.values {
        *looped.entry(&value.variable).or_insert(true) &= is_file(&value.word);
    }
    let mut files: BTreeSet<&str> = looped.into_iter().filter(|(_, are_files)| *are_files).map(|(name, _)| name).collect();
    if !files.is_empty() {
        for name in set_otherwise(script) {
            files.remove(name);
        }
    }
    files
}

/// Returns the names that a script gives a value by other means than a loop, and those that it may.
fn set_otherwise(script: &Script) -> impl Iterator<Item = &str> {
    script.commands.iter().flat_map(|command| {
        let gives = command.name().is_none_or(|program| GIVING.contains(&program));
        let words = command.arguments().iter().filter(move |_| gives);
        let names = words.flat_map(|word| word.text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')));
        command.assignments.iter().map(|set| set.name.as_str()).chain(names)
    })
}

/// Returns the variable that a word is, in quotes.
pub fn quoted_variable(word: &Word) -> Option<&str> {
    let name = word.text.strip_prefix('$').filter(|_| word.quoted && word.kind == WordKind::Unknown)?;
    Some(name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name))
}

fn is_file(word: &Word) -> bool {
    match word.kind {
        WordKind::Known | WordKind::Pattern => names_file(word),
        WordKind::Unknown => LISTING.iter().any(|listing| word.text.starts_with(listing)) && !word.text.contains(['|', ';', '&', '`', '<']),
    }
}

/// Returns whether a word is the name of a file, or a pattern that chooses some by theirs: `*.py`.
pub fn names_file(word: &Word) -> bool {
    let begins = word.text.starts_with(|c: char| c.is_ascii_alphanumeric() || "./~_*?".contains(c));
    word.kind != WordKind::Unknown && begins && word.text.contains(|c: char| c.is_ascii_alphanumeric())
}
