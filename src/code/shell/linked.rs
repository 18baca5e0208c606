//! Links that a text makes, and the files that are one by them.

use super::Command;
use super::Word;
use super::written;
use super::written::key;

/// Most links that are kept.
const LINKS_MAX: usize = 16;

/// Files that are one by links between them, by the last parts of their names, two at a time.
#[derive(Default)]
pub(super) struct Linked(Vec<(String, String)>);

/// What a link does.
pub(super) enum Link {
    /// It makes these two files one.
    Of(String, String),
    /// There are more of them than are kept.
    TooMany,
}

impl Linked {
    /// Remembers the link that a command makes, and returns what it does: `ln A B`, `link A B`, `cp -s A B`.
    pub(super) fn note(&mut self, command: &Command) -> Option<Link> {
        let (from, to) = match (command.name()?, command.arguments()) {
            ("link", [from, to]) => (from, key(to)),
            ("ln", [only]) => (only, key(only)),
            ("ln", _) => written::copied(command).and_then(first)?,
            ("cp", words) if words.iter().any(makes_links) => written::copied(command).and_then(first)?,
            _ => return None,
        };
        let pair = (key(from), to);
        if pair.0 == pair.1 || self.0.contains(&pair) {
            return None;
        }
        if self.0.len() >= LINKS_MAX {
            return Some(Link::TooMany);
        }
        self.0.push(pair.clone());
        Some(Link::Of(pair.0, pair.1))
    }

    /// Returns a file with all that are one with it: what is written into one of them is in each.
    pub(super) fn with(&self, file: String) -> Vec<String> {
        let mut files = vec![file];
        let mut at = 0;
        while let Some(file) = files.get(at).cloned() {
            at += 1;
            for (one, other) in &self.0 {
                let next = if *one == file { other } else { one };
                if (*one == file || *other == file) && !files.contains(next) {
                    files.push(next.clone());
                }
            }
        }
        files
    }
}

fn first<'a>((from, to): (&'a [Word], &Word)) -> Option<(&'a Word, String)> {
    Some((from.iter().find(|word| !word.text.starts_with('-'))?, key(to)))
}

/// Returns whether an option has `cp` make links: `-s`, `-al`, `--symb`, `--link`.
fn makes_links(word: &Word) -> bool {
    let text = word.text.as_str();
    match text.strip_prefix("--") {
        Some(long) => long.len() > 1 && ["symbolic-link", "link"].iter().any(|known| known.starts_with(long)),
        None => text.strip_prefix('-').is_some_and(|letters| letters.contains(['s', 'l'])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_make_files_one_in_both_ways_and_through_each_other() {
        for (text, file, same) in [
            ("ln -s a.sh b.sh", "b.sh", &["a.sh", "b.sh"][..]),
            ("ln d/a.sh b.sh", "a.sh", &["a.sh", "b.sh"]),
            ("ln -s a b; ln -s b c", "a", &["a", "b", "c"]),
            ("ln -s a b; ln -s b c", "c", &["a", "b", "c"]),
            ("link a b", "b", &["a", "b"]),
            ("cp -s a b", "a", &["a", "b"]),
            ("cp -al a b", "a", &["a", "b"]),
            ("cp --symb a b", "a", &["a", "b"]),
            ("cp a b", "a", &["a"]),
            ("cp --sparse=auto a b", "a", &["a"]),
            ("ln -s a b", "c", &["c"]),
            ("ln -s ../d/a.sh", "a.sh", &["a.sh"]),
        ] {
            let mut linked = Linked::default();
            crate::shell::read(text).commands.iter().for_each(|command| drop(linked.note(command)));
            let mut found = linked.with(file.to_owned());
            found.sort_unstable();
            assert_eq!(found, same, "{text} {file}");
        }
    }
}
