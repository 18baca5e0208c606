//! Advice for errors of git that name no remedy, or one that a model cannot use.

/// Text of an error, and the advice.
const REMEDIES: [(&str, &str); 6] = [
    (
        "unknown repository extension",
        "the git of this sandbox does not know what this repository is made with: continue without git, and say so in your answer",
    ),
    (
        "not a git repository",
        "there is no git repository here: continue without git, or name a folder that has one; `git init` makes one where the task asks for it",
    ),
    (
        "are ignored by one of your .gitignore files",
        "what is ignored is not committed: leave it out, or change .gitignore where the task asks for it",
    ),
    (
        "does not have any commits yet",
        "there is no commit yet: commit something first",
    ),
    (
        "does not have a commit checked out",
        "that folder is a repository of its own without a commit: commit in there first, or leave it out by .gitignore",
    ),
    (
        "Invalid regular expression",
        "it is taken for a regular expression: put a backslash in front of [ ( * and their like",
    ),
];

/// Looks for such errors in the output of a failed git command.
pub(super) fn hint(printed: &str) -> Option<&'static str> {
    let is_gits = |line: &&str| {
        ["fatal: ", "error: ", "The following paths are ignored"]
            .iter()
            .any(|begin| line.starts_with(begin))
    };
    printed.lines().filter(is_gits).find_map(|line| {
        REMEDIES
            .iter()
            .find(|(said, _)| line.contains(said))
            .map(|(_, remedy)| *remedy)
    })
}

#[cfg(test)]
mod tests {
    use super::hint;

    #[test]
    fn errors_of_git_have_a_remedy() {
        for (printed, remedy) in [
            (
                "fatal: not a git repository (or any of the parent directories): .git\n",
                "continue without git",
            ),
            (
                "The following paths are ignored by one of your .gitignore files:\nx\nhint: Use -f if you really want to add them.\n",
                "leave it out",
            ),
            (
                "fatal: unknown repository extension found:\n\tfuture\n",
                "continue without git",
            ),
            (
                "fatal: your current branch 'main' does not have any commits yet\n",
                "commit something first",
            ),
            (
                "error: 'g/' does not have a commit checked out\nfatal: adding files failed\n",
                "commit in there first",
            ),
            (
                "fatal: command line, 'a[': Invalid regular expression\n",
                "put a backslash",
            ),
        ] {
            assert!(
                hint(printed).is_some_and(|hint| hint.contains(remedy)),
                "{printed}"
            );
        }
        for printed in [
            "fatal: pathspec 'x' did not match any files\n",
            "a file that says: not a git repository\n",
            "",
        ] {
            assert_eq!(hint(printed), None, "{printed}");
        }
    }
}
