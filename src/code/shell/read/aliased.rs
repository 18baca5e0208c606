//! Names that the text gives to other programs: by an alias, or in the table of where programs are.

use super::Reader;
use super::TOO_MUCH;
use crate::shell::Command;
use crate::shell::Word;
use crate::shell::WordKind;

/// Most names that are remembered.
const NAMES_MAX: usize = 32;
/// The longest text of an alias that is remembered.
const TEXT_MAX: usize = 1024;
/// Most words of one that are put in its place; each call of it costs them again.
const WORDS_MAX: usize = 16;
/// Most words that are put in the place of names in all of a text.
pub(super) const TOTAL_MAX: usize = 20_000;
/// Most aliases that stand for one another.
const CHAIN_MAX: usize = 4;

impl Reader {
    /// Remembers the names that a command gives: `alias NAME=TEXT`, `hash -p PATH NAME`.
    pub(super) fn note_aliases(&mut self, command: &Command) {
        let texts = command.arguments().iter().filter_map(Word::known);
        let named: Vec<(&str, &str)> = match (command.name(), command.arguments()) {
            (Some("alias"), _) => texts.filter_map(|text| text.split_once('=')).collect(),
            (Some("hash"), words) => {
                let Some((path, names)) = path_and_names(words) else { return };
                names.iter().filter_map(|name| Some((name.known()?, path))).collect()
            }
            _ => return,
        };
        for (name, text) in named.into_iter().filter(|(_, text)| text.len() <= TEXT_MAX) {
            if self.aliases.len() < NAMES_MAX {
                // Of several commands that is the last, which gets the words; all of them are read where the alias is made.
                let last = text.rsplit([';', '|', '&', '\n', '(', '{', '`']).next().unwrap_or_default();
                self.aliases.insert(name.to_owned(), last.to_owned());
            }
        }
    }

    /// Returns a command with what its name stands for in its place.
    pub(super) fn aliased(&mut self, command: &Command) -> Option<Command> {
        let mut words = command.words.clone();
        for _ in 0..CHAIN_MAX {
            let name = words.first().and_then(Word::known).filter(|_| !command.is_started);
            let Some(text) = name.and_then(|name| self.aliases.get(name)) else { break };
            let mut stands_for = text.split_whitespace().map(word);
            let begin: Vec<Word> = stands_for.by_ref().take(WORDS_MAX).collect();
            // Whatever more there is may be anything.
            let more = stands_for.next().map(|_| Word::unknown(""));
            words.splice(..1, begin.into_iter().chain(more));
        }
        if words.first() == command.program() || self.aliased_left == 0 {
            return None;
        }
        self.aliased_left = self.aliased_left.saturating_sub(words.len());
        if self.aliased_left == 0 {
            self.doubt(command.name().unwrap_or_default(), TOO_MUCH);
        }
        Some(Command { words, redirections: command.redirections.clone(), given: command.given.clone(), ..Command::default() })
    }
}

/// Returns what `hash -p PATH NAME` is given; the path may stand right behind the letter.
fn path_and_names(words: &[Word]) -> Option<(&str, &[Word])> {
    let (option, rest) = words.split_first()?;
    match option.known()?.strip_prefix("-p")? {
        "" => rest.split_first().map(|(path, names)| (path.known().unwrap_or_default(), names)),
        path => Some((path, rest)),
    }
}

fn word(text: &str) -> Word {
    let bare = text.replace(['\'', '"'], "");
    let kind = match text {
        _ if text.contains('$') => WordKind::Unknown,
        _ if text.len() == bare.len() && text.contains(['*', '?']) => WordKind::Pattern,
        _ => WordKind::Known,
    };
    Word { kind, ..Word::unknown(&bare) }
}
