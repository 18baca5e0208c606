//! What a rule says of commands: one to the letter, a pattern over its words, or a regular
//! expression.

use regex::Regex;

use super::exact::trimmed;
use super::glob;
use super::pattern::regex;
use super::reading::Reading;
use super::version::same_program;
use super::version::shorter;
use podbay_code::shell::Command;
use podbay_wire::behind_git_options;

/// Stands for a word that is not known, where patterns are held against it: `*` fits it, and no
/// letter does.
pub(super) const UNKNOWN: &str = "\0";

#[derive(Clone, Debug)]
pub(super) enum CommandPattern {
    /// Without a `*` it is a whole command to the letter, or a whole script.
    Words(String),
    Regex(Regex),
}

impl CommandPattern {
    pub(super) fn parse(pattern: &str) -> Result<Self, String> {
        let inside = pattern
            .strip_prefix('/')
            .and_then(|rest| rest.strip_suffix('/'))
            .filter(|inside| !inside.is_empty());
        inside.map_or_else(
            || Ok(Self::Words(pattern.to_owned())),
            |inside| regex(inside).map(Self::Regex),
        )
    }

    /// Returns the pattern over words, where it is one.
    pub(super) fn words(&self) -> Option<&str> {
        match self {
            Self::Words(words) => Some(words),
            Self::Regex(_) => None,
        }
    }

    /// Returns the words that it says to the letter before its first `*`.
    pub(super) fn literal_words(&self) -> Vec<&str> {
        self.words()
            .and_then(|words| words.split('*').next())
            .unwrap_or_default()
            .split_whitespace()
            .collect()
    }

    /// Returns whether it says the whole script to the letter.
    pub(super) fn names(&self, reading: &Reading) -> bool {
        self.words()
            .is_some_and(|words| trimmed(words) == reading.text)
    }

    /// Returns whether it allows a command, of which all must be known and as it is written, with
    /// nothing around it.
    pub(super) fn allows(&self, command: &Command) -> bool {
        let is_plain = command.is_known()
            && !command.words.is_empty()
            && !command.sets_variables
            && !command.writes;
        is_plain && self.fits(&written(&command.texts(UNKNOWN)))
    }

    /// Returns whether a script starts a command that it speaks of, as far as the script says.
    pub(super) fn is_started_by(&self, reading: &Reading) -> bool {
        let by_text = matches!(self, Self::Regex(regex) if regex.is_match(&reading.text));
        by_text
            || reading.script.commands.iter().any(|command| {
                self.forms(&command.texts(UNKNOWN))
                    .any(|form| self.fits(&form))
            })
    }

    /// Returns whether a script may start one besides: behind what could be read of it, or where a
    /// word that is not known decides.
    pub(super) fn may_be_started_by(&self, reading: &Reading) -> bool {
        let Some(pattern) = self.words() else {
            return false;
        };
        let literal = pattern.split('*').next().unwrap_or_default();
        // As far as both are known, they say the same.
        let may_go_on = |form: &str| {
            literal == form
                || literal.starts_with(&format!("{form} "))
                || literal.len() < pattern.len() && form.starts_with(literal)
        };
        let may_be = |command: &Command| {
            let known = command.known();
            !command.is_known()
                && (known.is_empty() || self.forms(&known).any(|form| may_go_on(&form)))
        };
        reading.script.is_cut || reading.script.commands.iter().any(may_be)
    }

    /// Returns a command by its path, by its name, by that of other versions, and by git's verb
    /// without the options of git in front of it.
    fn forms(&self, words: &[&str]) -> impl Iterator<Item = String> {
        let (first, rest) = words
            .split_first()
            .map_or(("", words), |(first, rest)| (*first, rest));
        let name = first.rsplit('/').next().unwrap_or(first);
        let own = self
            .literal_words()
            .first()
            .copied()
            .filter(|own| same_program(name, own));
        let mut forms: Vec<String> = [first, name]
            .into_iter()
            .chain(own)
            .chain(shorter(name))
            .map(|name| written(&[&[name], rest].concat()))
            .collect();
        if name == "git" {
            forms.push(written(&[&["git"], behind_git_options(rest)].concat()));
        } else if let Some(verb) = name.strip_prefix("git-") {
            forms.push(written(&[&["git", verb], rest].concat()));
        }
        forms.into_iter().filter(|form| !form.is_empty())
    }

    /// Returns whether a command's words are what the pattern says; `git log *` is also `git log`.
    fn fits(&self, text: &str) -> bool {
        match self {
            Self::Words(pattern) if !pattern.contains('*') => pattern == text,
            Self::Words(pattern) => {
                glob::matches(pattern, text)
                    || pattern
                        .strip_suffix(" *")
                        .is_some_and(|short| glob::matches(short, text))
            }
            Self::Regex(regex) => regex.is_match(text),
        }
    }
}

/// Returns words as text: with one blank between them, those with blanks in quotes.
fn written(words: &[&str]) -> String {
    let quoted = |word: &&str| {
        if word.is_empty() || word.contains(char::is_whitespace) {
            format!("'{word}'")
        } else {
            (*word).to_owned()
        }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}
