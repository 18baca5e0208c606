//! What a rule says of paths: a pattern of names, or a regular expression.

use std::collections::BTreeSet;

use globset::GlobBuilder;
use globset::GlobMatcher;
use regex::Regex;
use regex::RegexBuilder;

use super::Action;
use super::paths::listed;
use super::paths::plain;
use super::paths::whole;
use podbay_wire::BytesPath;

/// Most memory that a person's regular expression may take when it is made ready.
const REGEX_MAX: usize = 1 << 20;

/// A pattern over paths as they are named from the project's folder.
#[derive(Clone, Debug)]
pub(super) enum PathPattern {
    Glob(GlobMatcher),
    Regex(Regex),
}

impl PathPattern {
    /// Reads a pattern, and refuses one that no path can fit; the error says why, and what to
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
                    "this looks like a folder; write `{inside}/**` for all that is in the project's folder of that name, or `/{inside}.*/` for a \
                     regular expression"
                ));
            }
            let begun = inside.strip_prefix('^').unwrap_or_default();
            if begun.strip_prefix('\\').unwrap_or(begun).starts_with('/') {
                return Err("no path begins with `/`, as they are named from the project's folder; write it such as `/^src/`".to_owned());
            }
            return regex(inside).map(Self::Regex);
        }
        let inside = text.strip_prefix("/workspace/").unwrap_or(text);
        if inside.starts_with(['/', '~']) || inside.split('/').any(|part| part == "..") {
            return Err(
                "its path must be named from the project's folder, such as `write_file(src/**)`"
                    .to_owned(),
            );
        }
        if let Some(folder) = inside.strip_suffix('/') {
            return Err(format!(
                "no path ends in `/`; write `{folder}/**` for all that is in the folder"
            ));
        }
        // As paths are compared.
        let parts: Vec<&str> = inside
            .split('/')
            .filter(|part| !matches!(*part, "" | "."))
            .collect();
        glob(&parts.join("/")).map(Self::Glob)
    }

    /// Returns whether a path fits. One with `..` in it may lead anywhere, so that it fits only in
    /// doubt, by what its letters lead to.
    pub(super) fn matches(&self, path: &BytesPath, in_doubt: bool) -> bool {
        plain(path, in_doubt).is_some_and(|path| match self {
            Self::Glob(glob) => glob.is_match(path),
            Self::Regex(regex) => regex.is_match(&path),
        })
    }

    /// Returns whether a branch's name fits. One that git looks up (`@{-1}`, the branch before) may
    /// be of any, so that it fits only in doubt.
    pub(super) fn is_of_branch(&self, name: &str, in_doubt: bool) -> bool {
        let is_other = name.contains("@{") || name == "-";
        if is_other {
            in_doubt
        } else {
            self.matches(&BytesPath::from_text(name), in_doubt)
        }
    }

    /// Returns whether a call lists a folder, takes it as a whole, or looks through it, and the
    /// pattern has matches in there, as far as its letters tell: `secret/**` also speaks of the
    /// folder `secret`.
    pub(super) fn is_in(&self, action: &Action) -> bool {
        if let Some(path) = listed(action) {
            return self.is_of_names_in(path);
        }
        let Some(folders) = whole(action) else {
            return false;
        };
        // It goes on with files that a search has found, whichever they are.
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
            .filter_map(|path| plain(path, true))
            .any(|path| holds(&path))
    }

    /// Returns whether it may fit names in a folder that no pattern of it says to the letter, as
    /// `secret/*` and `secret/**` do in `secret`.
    fn is_of_names_in(&self, path: &BytesPath) -> bool {
        let Some(path) = plain(path, true) else {
            return false;
        };
        let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
        match self {
            Self::Regex(regex) => may_fit_below(regex, &path),
            Self::Glob(pattern) => alternatives(pattern.glob().glob())
                .is_none_or(|all| all.iter().any(|one| is_of_a_name_below(one, &names))),
        }
    }

    /// Returns whether the person wrote this name, or a part of it: `.env*` names `.env`, and `*`
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
            // What an expression says of a name cannot be told from its signs: it has to hold the
            // name's own letters.
            Self::Regex(regex) => letters(regex.as_str()).contains(&letters(name)),
        }
    }
}

/// Takes a pattern apart at slashes and commas: each part is a pattern of names.
fn split(pattern: &str) -> Vec<String> {
    alternatives(pattern)
        .unwrap_or_default()
        .iter()
        .flat_map(|text| text.split('/'))
        .map(ToOwned::to_owned)
        .collect()
}

/// Returns a pattern for each of the names between braces; `None`: they are too many.
fn alternatives(pattern: &str) -> Option<Vec<String>> {
    let mut alternatives = vec![pattern.to_owned()];
    // Each of the names between braces counts by itself: `{.env,*}` names one of them.
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

/// Returns whether a pattern without braces fits some name right below a folder, but for one that
/// it says to the letter.
fn is_of_a_name_below(pattern: &str, folder: &[&str]) -> bool {
    let parts: Vec<&str> = pattern.split('/').collect();
    // How many parts of the pattern may be used up; `**` is any number of names.
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

/// Returns whether an expression may fit something below a folder, as far as the letters tell that
/// it begins with.
fn may_fit_below(regex: &Regex, folder: &str) -> bool {
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
    // What stands in front of one of these need not be there.
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

/// Makes a person's regular expression ready.
pub(super) fn regex(text: &str) -> Result<Regex, String> {
    let built = RegexBuilder::new(text).size_limit(REGEX_MAX).build();
    built.map_err(|error| error.to_string().replace('\n', " "))
}
