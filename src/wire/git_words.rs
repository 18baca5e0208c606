//! Git's global options, and the verbs that are its own.

/// Global options that take the next word as their value.
const VALUED: [&str; 8] = [
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--super-prefix",
    "--config-env",
    "--attr-source",
];

/// Returns the verb of a git command with its arguments, from the words after `git`.
pub fn behind_git_options<W: AsRef<[u8]>>(mut words: &[W]) -> &[W] {
    while let [first, rest @ ..] = words {
        let first = first.as_ref();
        if !first.starts_with(b"-") {
            break;
        }
        let n_values = usize::from(VALUED.iter().any(|option| option.as_bytes() == first));
        words = rest.get(n_values..).unwrap_or_default();
    }
    words
}

/// Verbs that only read, with all options except those that write a file or run a program.
pub const GIT_READS: [&str; 28] = [
    "annotate",
    "blame",
    "cat-file",
    "check-attr",
    "check-ignore",
    "cherry",
    "count-objects",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "for-each-ref",
    "grep",
    "log",
    "ls-files",
    "ls-tree",
    "merge-base",
    "name-rev",
    "range-diff",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "show-ref",
    "status",
    "version",
    "whatchanged",
];

/// Git's other verbs.
pub const GIT_CHANGES: [&str; 96] = [
    "add",
    "am",
    "apply",
    "archive",
    "bisect",
    "branch",
    "bugreport",
    "bundle",
    "check-mailmap",
    "check-ref-format",
    "checkout",
    "checkout-index",
    "cherry-pick",
    "citool",
    "clean",
    "clone",
    "column",
    "commit",
    "commit-graph",
    "commit-tree",
    "config",
    "credential",
    "daemon",
    "diagnose",
    "difftool",
    "fast-export",
    "fast-import",
    "fetch",
    "fetch-pack",
    "fmt-merge-msg",
    "format-patch",
    "fsck",
    "gc",
    "get-tar-commit-id",
    "gui",
    "hash-object",
    "help",
    "hook",
    "http-fetch",
    "index-pack",
    "init",
    "interpret-trailers",
    "lfs",
    "ls-remote",
    "mailinfo",
    "maintenance",
    "merge",
    "merge-file",
    "merge-tree",
    "mergetool",
    "mktag",
    "mktree",
    "multi-pack-index",
    "mv",
    "notes",
    "pack-objects",
    "pack-refs",
    "patch-id",
    "prune-packed",
    "pull",
    "push",
    "read-tree",
    "rebase",
    "reflog",
    "remote",
    "repack",
    "replace",
    "request-pull",
    "rerere",
    "reset",
    "restore",
    "revert",
    "rm",
    "show-branch",
    "sparse-checkout",
    "stage",
    "stash",
    "stripspace",
    "submodule",
    "subtree",
    "svn",
    "switch",
    "symbolic-ref",
    "tag",
    "unpack-file",
    "unpack-objects",
    "update-server-info",
    "var",
    "verify-commit",
    "verify-pack",
    "verify-tag",
    "worktree",
    "write-tree",
    "p4",
    "update-index",
    "update-ref",
];

/// Returns whether a verb is git's own, and not an alias.
pub fn is_git_verb(verb: &[u8]) -> bool {
    GIT_READS
        .iter()
        .chain(&GIT_CHANGES)
        .any(|known| known.as_bytes() == verb)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verb_is_found_behind_global_options() {
        let check = |words: &str, expected: &str| {
            let words: Vec<&str> = words.split_whitespace().collect();
            assert_eq!(behind_git_options(&words).join(" "), expected);
        };
        check("push origin", "push origin");
        check("-C sub --no-pager -c a.b=c push -f", "push -f");
        check("--git-dir x --git-dir=y --exec-path=z status", "status");
        check("-C", "");
        check("--version", "");
        assert!(
            is_git_verb(b"push") && is_git_verb(b"log") && !is_git_verb(b"p") && !is_git_verb(b"")
        );
    }
}
