//! Advice for errors that programs print about a masked or read-only file, or about a folder that
//! cannot be renamed.

/// Looks for such errors in the output of a failed command. The advice says "may", since any
/// program can print these words.
pub(super) fn hint(printed: &str) -> Option<&'static str> {
    let is_said = |words: &[&str]| {
        printed
            .lines()
            .any(|line| words.iter().all(|word| line.contains(word)))
    };
    // A masked file is a device node, which no command may create.
    if is_said(&["cannot create special file", "not permitted"])
        || is_said(&["mknod", "not permitted"])
    {
        return Some(
            "what cannot be copied may be a file that is hidden from this sandbox, such as .env: leave it out",
        );
    }
    if is_said(&[".git/", "Read-only file system"]) {
        return Some(
            "git can only read here: leave the changes as they are in the files, and commit nothing",
        );
    }
    // Overlay file systems and bind mounts refuse to rename a folder (EXDEV).
    if is_said(&["cross-device link"]) {
        return Some(
            "this folder cannot be renamed in one step here: `mv` copies it, and `git add --all` then tells git of it",
        );
    }
    if is_said(&["Device or resource busy"]) {
        return Some(
            "what is busy may be hidden or read-only in this sandbox, and then stays in its place: leave it there",
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_about_masked_files_are_recognized() {
        for printed in [
            "cp: cannot create special file '/tmp/x/.env': Operation not permitted\n",
            "a\ntar: ./.env: Cannot mknod: Operation not permitted\ntar: Exiting with failure status due to previous errors\n",
            "rsync: [receiver] mknod \"/tmp/x/.env\" failed: Operation not permitted (1)\n",
        ] {
            assert!(
                hint(printed).is_some_and(|hint| hint.contains("hidden from this sandbox")),
                "{printed}"
            );
        }
        for printed in [
            "fatal: Unable to create '/workspace/.git/index.lock': Read-only file system\n",
            "error: could not lock config file .git/config: Read-only file system\n",
        ] {
            assert!(
                hint(printed).is_some_and(|hint| hint.contains("commit nothing")),
                "{printed}"
            );
        }
        for printed in [
            "fatal: renaming 'src' failed: Invalid cross-device link\n",
            "OSError: [Errno 18] Invalid cross-device link: 'src' -> 'lib'\n",
            "Error: EXDEV: cross-device link not permitted, rename 'src' -> 'lib'\n",
        ] {
            assert!(
                hint(printed).is_some_and(|hint| hint.contains("`mv` copies it")),
                "{printed}"
            );
        }
        assert!(
            hint("rm: cannot remove '.env': Device or resource busy\n")
                .is_some_and(|hint| hint.contains("stays in its place"))
        );
        for printed in [
            "",
            "mknod\nOperation not permitted\n",
            "cp: cannot create regular file 'x': Permission denied\n",
            "busy\n",
            "touch: cannot touch '/x': Read-only file system\n",
        ] {
            assert_eq!(hint(printed), None, "{printed}");
        }
    }
}
