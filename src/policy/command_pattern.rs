//! What a rule matches among commands: an exact command, a pattern over its words, or a regular
//! expression.

use regex::Regex;

use super::exact_call::trimmed;
use super::glob;
use super::parsed_command::ParsedCommand;
use super::path_pattern::regex;
use super::program_version::same_program;
use super::program_version::unversioned_names;
use podbay_code::shell::Command;
use podbay_wire::behind_git_options;

/// Stands for an unknown word when patterns are matched: `*` matches it, and no literal does.
pub(super) const UNKNOWN: &str = "\0";

#[derive(Clone, Debug)]
pub(super) enum CommandPattern {
    /// Without a `*` an exact command, or an exact script.
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

    /// Returns the pattern over words, if it is one.
    pub(super) fn words(&self) -> Option<&str> {
        match self {
            Self::Words(words) => Some(words),
            Self::Regex(_) => None,
        }
    }

    /// Returns the literal words before its first `*`.
    pub(super) fn literal_prefix_words(&self) -> Vec<&str> {
        self.words()
            .and_then(|words| words.split('*').next())
            .unwrap_or_default()
            .split_whitespace()
            .collect()
    }

    /// Returns whether it equals the whole script.
    pub(super) fn names(&self, reading: &ParsedCommand) -> bool {
        self.words()
            .is_some_and(|words| trimmed(words) == reading.text)
    }

    /// Returns whether it allows a command, all of whose words must be known and literal, without
    /// redirects or assignments around it.
    pub(super) fn allows(&self, command: &Command) -> bool {
        let is_plain = command.is_known()
            && !command.words.is_empty()
            && !command.sets_variables
            && !command.writes;
        is_plain && self.fits(&written(&command.texts(UNKNOWN)))
    }

    /// Returns whether a script starts a matching command, as far as the script could be parsed.
    pub(super) fn is_started_by(&self, reading: &ParsedCommand) -> bool {
        let by_text = matches!(self, Self::Regex(regex) if regex.is_match(&reading.text));
        by_text
            || reading.script.commands.iter().any(|command| {
                self.forms(&command.texts(UNKNOWN))
                    .any(|form| self.fits(&form))
            })
    }

    /// Returns whether a script may start a matching command in its unparsed part, or with an
    /// unknown word.
    pub(super) fn may_be_started_by(&self, reading: &ParsedCommand) -> bool {
        let Some(pattern) = self.words() else {
            return false;
        };
        let literal = pattern.split('*').next().unwrap_or_default();
        // They agree as far as both are known.
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

    /// Returns the forms in which a command may be matched: by its path, its name, the names of
    /// other versions, and git's verb without the global options before it.
    fn forms(&self, words: &[&str]) -> impl Iterator<Item = String> {
        let (first, rest) = words
            .split_first()
            .map_or(("", words), |(first, rest)| (*first, rest));
        let name = first.rsplit('/').next().unwrap_or(first);
        let own = self
            .literal_prefix_words()
            .first()
            .copied()
            .filter(|own| same_program(name, own));
        let mut forms: Vec<String> = [first, name]
            .into_iter()
            .chain(own)
            .chain(unversioned_names(name))
            .map(|name| written(&[&[name], rest].concat()))
            .collect();
        if name == "git" {
            forms.push(written(&[&["git"], behind_git_options(rest)].concat()));
        } else if let Some(verb) = name.strip_prefix("git-") {
            forms.push(written(&[&["git", verb], rest].concat()));
        }
        forms.into_iter().filter(|form| !form.is_empty())
    }

    /// Returns whether a command's words match the pattern; `git log *` also matches `git log`.
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

/// Joins words with single blanks, quoting those that contain blanks.
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
