//! What lies in a git folder, by names that may be patterns.

use podbay_code::shell;

/// What a git folder holds besides its folders of submodules.
const HELD: [&str; 10] = ["HEAD", "branches", "config", "description", "hooks", "index", "info", "logs", "objects", "packed-refs"];

/// Returns whether what lies here in a git folder is what its commits are known by, or are kept in; those of a submodule are in a git folder within.
pub(super) fn holds_commits(inside: &[String]) -> bool {
    match inside {
        [] => true,
        [one] => ["HEAD", "modules", "objects", "packed-refs", "refs"].iter().any(|name| fits(one, name)),
        [refs, one] if fits(refs, "refs") => ["heads", "tags", "stash"].iter().any(|name| fits(one, name)),
        [modules, _, behind @ ..] if fits(modules, "modules") => {
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
    name.starts_with(&part[..at]) && (at > 0 || !name.starts_with('.')) && shell::fits(part.as_bytes(), name.as_bytes())
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
        for path in [
            "objects",
            "obj*",
            "refs/heads",
            "re*/heads",
            "modules",
            "mod*",
            "m*/x",
            "modules/x",
            "modules/a/b",
            "modules/a/b/refs",
            "modules/hooks",
        ] {
            assert!(holds(path), "{path}");
        }
        for path in ["hooks", "rebase-*", "index.lock", "modules/x/hooks", "modules/a/b/index.lock", "modules/x/logs/refs"] {
            assert!(!holds(path), "{path}");
        }
    }
}
