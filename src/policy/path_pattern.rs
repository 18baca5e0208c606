//! What a rule matches among paths: a glob, or a regular expression.

use std::collections::BTreeSet;

use globset::GlobBuilder;
use globset::GlobMatcher;
use regex::Regex;
use regex::RegexBuilder;

use super::Action;
use super::paths::listed_folder;
use super::paths::normalized;
use super::paths::whole_folders;
use podbay_wire::BytesPath;

/// Maximum memory of a user's compiled regular expression, in bytes.
const REGEX_MAX: usize = 1 << 20;

/// A pattern over paths relative to the project.
#[derive(Clone, Debug)]
pub(super) enum PathPattern {
    Glob(GlobMatcher),
    Regex(Regex),
}

impl PathPattern {
    /// Parses a pattern, and refuses one that no path can match; the error says why, and what to
    /// write.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if let Some(inside) = text
            .strip_prefix('/')
            .and_then(|rest| rest.strip_suffix('/'))
            .filter(|inside| !inside.is_empty())
        {
            if !inside.contains(|c: char| "^$.*+?|()[]{}\\".contains(c)) {
                let inside = inside.strip_prefix("workspace/").unwrap_or(inside);
                return Err(format!(
                    "this looks like a folder; write `{inside}/**` for everything in the project's folder of that name, or `/{inside}.*/` for a \
                     regular expression"
                ));
            }
            let begun = inside.strip_prefix('^').unwrap_or_default();
            if begun.strip_prefix('\\').unwrap_or(begun).starts_with('/') {
                return Err("no path begins with `/`, since paths are relative to the project; write it such as `/^src/`".to_owned());
            }
            return regex(inside).map(Self::Regex);
        }
        let inside = text.strip_prefix("/workspace/").unwrap_or(text);
        if inside.starts_with(['/', '~']) || inside.split('/').any(|part| part == "..") {
            return Err(
                "its path must be relative to the project, such as `write_file(src/**)`".to_owned(),
            );
        }
        if let Some(folder) = inside.strip_suffix('/') {
            return Err(format!(
                "no path ends in `/`; write `{folder}/**` for everything in the folder"
            ));
        }
        // In the form in which paths are compared.
        let parts: Vec<&str> = inside
            .split('/')
            .filter(|part| !matches!(*part, "" | "."))
            .collect();
        glob(&parts.join("/")).map(Self::Glob)
    }

    /// Returns whether a path matches. One with `..` may lead anywhere, so it matches only
    /// `in_doubt`, by its lexical target.
    pub(super) fn matches(&self, path: &BytesPath, in_doubt: bool) -> bool {
        normalized(path, in_doubt).is_some_and(|path| match self {
            Self::Glob(glob) => glob.is_match(path),
            Self::Regex(regex) => regex.is_match(&path),
        })
    }

    /// Returns whether a branch's name matches. One that git resolves (`@{-1}`, the previous
    /// branch) may be any, so it matches only `in_doubt`.
    pub(super) fn matches_branch(&self, name: &str, in_doubt: bool) -> bool {
        let is_other = name.contains("@{") || name == "-";
        if is_other {
            in_doubt
        } else {
            self.matches(&BytesPath::from_text(name), in_doubt)
        }
    }

    /// Returns whether a call lists, processes or searches a folder in which the pattern may match,
    /// judged by its spelling: `secret/**` also matches the folder `secret`.
    pub(super) fn is_in(&self, action: &Action) -> bool {
        if let Some(path) = listed_folder(action) {
            return self.matches_name_in(path);
        }
        let Some(folders) = whole_folders(action) else {
            return false;
        };
        // It continues with files that a search has found, whichever they are.
        if folders.is_empty() {
            return true;
        }
        let Self::Glob(glob) = self else { return true };
        let pattern = glob.glob().glob();
        let literal = pattern
            .split(['*', '?', '[', '{'])
            .next()
            .unwrap_or_default();
        let (is_any_depth, n_parts) = (pattern.contains("**"), pattern.split('/').count());
        let holds = |path: &str| {
            let within = format!("{path}/");
            let may_fit = literal.len() < pattern.len() && within.starts_with(literal);
            path.is_empty()
                || literal.starts_with(&within)
                || may_fit && (is_any_depth || path.split('/').count() < n_parts)
        };
        folders
            .iter()
            .filter_map(|path| normalized(path, true))
            .any(|path| holds(&path))
    }

    /// Returns whether it may match arbitrary names in a folder, as `secret/*` and `secret/**` do
    /// in `secret`.
    fn matches_name_in(&self, path: &BytesPath) -> bool {
        let Some(path) = normalized(path, true) else {
            return false;
        };
        let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
        match self {
            Self::Regex(regex) => may_match_below(regex, &path),
            Self::Glob(pattern) => alternatives(pattern.glob().glob())
                .is_none_or(|all| all.iter().any(|one| matches_child_of(one, &names))),
        }
    }

    /// Returns whether the user wrote this name, or a part of it: `.env*` names `.env`, and `*`
    /// names nothing.
    pub(super) fn names(&self, name: &str) -> bool {
        let letters = |text: &str| {
            text.chars()
                .filter(|c| c.is_alphanumeric())
                .collect::<String>()
                .to_lowercase()
        };
        match self {
            Self::Glob(pattern) => split(pattern.glob().glob()).into_iter().any(|part| {
                let says_something = !letters(&part).is_empty();
                says_something && glob(&part).is_ok_and(|part| part.is_match(name))
            }),
            // What an expression matches cannot be told from its text, so it must contain the name
            // literally.
            Self::Regex(regex) => letters(regex.as_str()).contains(&letters(name)),
        }
    }
}

/// Splits a pattern at slashes and commas: each part is a pattern of names.
fn split(pattern: &str) -> Vec<String> {
    alternatives(pattern)
        .unwrap_or_default()
        .iter()
        .flat_map(|text| text.split('/'))
        .map(ToOwned::to_owned)
        .collect()
}

/// Expands braces into a pattern for each alternative; `None` if there are too many.
fn alternatives(pattern: &str) -> Option<Vec<String>> {
    let mut alternatives = vec![pattern.to_owned()];
    // Each alternative in braces counts separately: `{.env,*}` names one of them.
    while let Some(at) = alternatives
        .iter()
        .position(|text| text.contains('{') && text.contains('}'))
    {
        let text = alternatives.swap_remove(at);
        let end = text.find('}').unwrap_or_default();
        let Some(begin) = text[..end].rfind('{') else {
            break;
        };
        if alternatives.len() > 64 {
            return None;
        }
        alternatives.extend(
            text[begin + 1..end]
                .split(',')
                .map(|one| format!("{}{one}{}", &text[..begin], &text[end + 1..])),
        );
    }
    Some(alternatives)
}

/// Returns whether a pattern without braces matches some name directly below a folder, other than
/// one it spells out.
fn matches_child_of(pattern: &str, folder: &[&str]) -> bool {
    let parts: Vec<&str> = pattern.split('/').collect();
    // How many components of the pattern may be consumed; `**` is any number of names.
    let closed = |mut reached: BTreeSet<usize>| {
        for (at, part) in parts.iter().enumerate() {
            if *part == "**" && reached.contains(&at) {
                reached.insert(at + 1);
            }
        }
        reached
    };
    let step = |reached: BTreeSet<usize>, name: &&str| {
        let next = |at: usize| match parts.get(at) {
            Some(&"**") => Some(at),
            Some(part) => glob(part)
                .is_ok_and(|part| part.is_match(name))
                .then_some(at + 1),
            None => None,
        };
        closed(reached.into_iter().filter_map(next).collect())
    };
    let reached = folder.iter().fold(closed(BTreeSet::from([0])), step);
    reached.into_iter().any(|at| {
        parts
            .get(at)
            .is_some_and(|part| part.contains(['*', '?', '[']))
            && parts[at + 1..].iter().all(|part| *part == "**")
    })
}

/// Returns whether an expression may match something below a folder, judged by its literal prefix.
fn may_match_below(regex: &Regex, folder: &str) -> bool {
    let Some(begin) = regex
        .as_str()
        .strip_prefix('^')
        .filter(|rest| !rest.contains('|'))
    else {
        return true;
    };
    let end = begin
        .find(|c: char| !(c.is_alphanumeric() || "_-/".contains(c)))
        .unwrap_or(begin.len());
    // What precedes one of these is optional.
    let end = if begin[end..].starts_with(['?', '*', '{']) {
        begin[..end].char_indices().last().map_or(0, |(at, _)| at)
    } else {
        end
    };
    let (letters, within) = (&begin[..end], format!("{folder}/"));
    folder.is_empty() && !letters.contains('/')
        || within.starts_with(letters)
        || letters.starts_with(&within)
}

fn glob(pattern: &str) -> Result<GlobMatcher, String> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    glob.map(|glob| glob.compile_matcher())
        .map_err(|error| error.kind().to_string())
}

/// Compiles a user's regular expression.
pub(super) fn regex(text: &str) -> Result<Regex, String> {
    let built = RegexBuilder::new(text).size_limit(REGEX_MAX).build();
    built.map_err(|error| error.to_string().replace('\n', " "))
}
