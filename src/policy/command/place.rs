//! Where a path leads by its letters: into the project, or out of it.

use crate::code::shell::Script;
use crate::code::shell::WordKind;

/// Folders outside of the project that a command may do with as it likes.
const SCRATCH: [&str; 4] = ["tmp", "var/tmp", "dev/shm", "run/user"];

/// Returns how many folders below the project's top a command may be when it names a path with `..`.
///
/// The working directory and every `cd` of the script are counted together: that is the deepest it can be.
pub(super) fn depth(script: &Script, working_directory: Option<&str>) -> usize {
    let below = |path: &str| {
        let parts = path.strip_prefix("/workspace").unwrap_or(path).split('/');
        parts.filter(|part| !part.is_empty() && *part != "." && *part != "..").count()
    };
    let changes = script.commands.iter().filter(|command| matches!(command.name(), Some("cd" | "pushd")));
    let depths = changes.filter_map(|command| command.arguments().first()).map(|word| match word.kind {
        WordKind::Known => below(&word.text),
        // Anywhere.
        WordKind::Pattern | WordKind::Unknown => 100,
    });
    depths.sum::<usize>() + working_directory.map_or(0, below)
}

/// Returns what a path names that nobody would want to lose whole: the root, the home folder, a folder of the system, what lies beyond the
/// project.
pub(super) fn precious(path: &str, depth: usize) -> Option<String> {
    let bare = path.trim_end_matches(['*', '.']).trim_end_matches('/');
    let bare = if bare.is_empty() && path.starts_with('/') { "/" } else { bare };
    for home in ["~", "$HOME", "${HOME}"] {
        if bare == home {
            return Some("the home folder".to_owned());
        }
    }
    if path.starts_with('/') {
        let mut parts: Vec<&str> = Vec::new();
        for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
            if part == ".." {
                parts.pop();
            } else {
                parts.push(part);
            }
        }
        let has_rest = parts.last().is_some_and(|last| last.chars().all(|c| matches!(c, '*' | '?' | '.')));
        if has_rest {
            parts.pop();
        }
        return match parts.as_slice() {
            [] => Some("the root folder".to_owned()),
            ["workspace"] => Some("the whole project".to_owned()),
            ["tmp"] if has_rest => None,
            [one] => Some(format!("/{one}")),
            _ => None,
        };
    }
    climbs(path, depth).then(|| "what lies beyond the project".to_owned())
}

/// Returns whether a path leads to something outside of the project and of the folders for passing things.
pub(super) fn is_outside(path: &str, depth: usize) -> bool {
    if let Some(rest) = path.strip_prefix('/') {
        let path = rest.trim_start_matches('/');
        let is_in = |folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        let at_top = path.trim_end_matches('/') == "workspace";
        return path.split('/').any(|part| part == "..") || !(at_top || is_in("workspace") || SCRATCH.iter().any(|folder| is_in(folder)));
    }
    precious(path, depth).is_some()
}

fn climbs(path: &str, depth: usize) -> bool {
    let mut at = depth as isize;
    for part in path.split('/') {
        match part {
            ".." => at -= 1,
            "" | "." => {}
            _ => at += 1,
        }
        if at < 0 {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_precious_is_known_by_its_path() {
        for path in
            ["/", "//", "/.", "/*", "/../", "/usr", "/etc/*", "/usr/..", "~", "~/", "~/*", "$HOME", "${HOME}/*", "..", "../x", "a/../../b"]
        {
            assert!(precious(path, 0).is_some(), "{path}");
        }
        for path in
            ["a", "./a", "a/../b", "target", "*", "/tmp/x", "/tmp/*", "/workspace/a", "/var/lib/apt/lists/*", "~/.cache", "$HOME/x", ""]
        {
            assert!(precious(path, 0).is_none(), "{path}");
        }
        assert!(precious("../x", 1).is_none() && precious("../../x", 1).is_some());
    }
}
