//! What lies in a git folder, by names that may be patterns.

use regex::Regex;

/// What a git folder holds besides its folders of submodules.
const HELD: [&str; 10] = ["HEAD", "branches", "config", "description", "hooks", "index", "info", "logs", "objects", "packed-refs"];

/// The longest pattern that is read.
const PATTERN_MAX: usize = 256;

/// Returns whether what lies here in a git folder is what its commits are known by, or are kept in; those of a submodule are in a git folder within.
pub(super) fn holds_commits(inside: &[String]) -> bool {
    match inside {
        [] => true,
        [one] if one == "modules" => true,
        [one] => ["HEAD", "objects", "packed-refs", "refs"].iter().any(|name| fits(one, name)),
        [refs, one] if fits(refs, "refs") => ["heads", "tags", "stash"].iter().any(|name| fits(one, name)),
        [modules, _, behind @ ..] if modules == "modules" => {
            // A submodule is called by its path, which may have several parts.
            let is_held = |part: &String| HELD.contains(&part.as_str()) || part == "refs" || part.strip_suffix(".lock").is_some();
            behind.iter().position(is_held).is_none_or(|at| holds_commits(&behind[at..]))
        }
        _ => false,
    }
}

/// Returns whether a part of a path is this name, or a pattern that stands for it among others. None but one that begins with a dot does so for a
/// name that does.
pub(super) fn fits(part: &str, name: &str) -> bool {
    let Some(at) = part.find(['*', '?', '[']) else { return part == name };
    name.starts_with(&part[..at]) && (at > 0 || !name.starts_with('.')) && pattern(part).is_some_and(|pattern| pattern.is_match(name))
}

/// Returns a pattern of the shell as an expression for the whole of a name; `None` for one that is too large.
pub(super) fn pattern(pattern: &str) -> Option<Regex> {
    if pattern.len() > PATTERN_MAX {
        return None;
    }
    let mut text = String::from("^");
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        // A `]` right behind the opening is a letter, and a class has one of its own.
        let list = rest.get(2..).and_then(|behind| Some(behind.find(']')? + 3)).filter(|_| c == '[');
        let list = list.map(|end| if rest[..end].contains("[:") && rest[end..].starts_with(']') { end + 1 } else { end });
        match (c, list) {
            ('[', Some(end)) => {
                let inside = &rest[1..end];
                text.push('[');
                text.push_str(&inside.strip_prefix('!').map_or_else(|| inside.to_owned(), |inside| format!("^{inside}")));
                rest = &rest[end..];
                continue;
            }
            ('*', _) => text.push_str(".*"),
            ('?', _) => text.push('.'),
            _ => text.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
        }
        rest = &rest[c.len_utf8()..];
    }
    regex::RegexBuilder::new(&format!("{text}$")).size_limit(1 << 16).build().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_fits_the_names_that_the_shell_finds_by_it() {
        for part in [".git", ".g*", ".gi?", ".[g]it", ".gi[[:alpha:]]", ".gi[!x]", ".git*"] {
            assert!(fits(part, ".git"), "{part}");
        }
        for part in ["git", "*git", "?git", "[.]git", ".gi[!t]", ".[!g]*", ".git?", ".github", ".gi[[:digit:]]", ".gi["] {
            assert!(!fits(part, ".git"), "{part}");
        }
    }

    #[test]
    fn commits_are_told_from_what_lies_beside_them() {
        let holds = |path: &str| holds_commits(&path.split('/').map(ToOwned::to_owned).collect::<Vec<_>>());
        for path in
            ["objects", "obj*", "refs/heads", "re*/heads", "modules", "modules/x", "modules/a/b", "modules/a/b/refs", "modules/hooks"]
        {
            assert!(holds(path), "{path}");
        }
        for path in ["hooks", "rebase-*", "index.lock", "modules/x/hooks", "modules/a/b/index.lock", "modules/x/logs/refs"] {
            assert!(!holds(path), "{path}");
        }
    }
}
