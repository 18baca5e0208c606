/// Returns whether two names of an argument are the same but for case, underscores and hyphens:
/// `filePath` is `file_path`. A flag such as `-C` is the same as nothing else.
pub fn is_same_name(one: &str, other: &str) -> bool {
    if one.starts_with('-') || other.starts_with('-') {
        return one == other;
    }
    letters(one).eq(letters(other))
}

fn letters(name: &str) -> impl Iterator<Item = u8> {
    name.bytes()
        .filter(|byte| !matches!(byte, b'_' | b'-'))
        .map(|byte| byte.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_underscores_and_hyphens_make_no_other_name() {
        for other in [
            "filePath",
            "FilePath",
            "file-path",
            "FILE_PATH",
            "filepath",
            "file_path",
        ] {
            assert!(is_same_name("file_path", other), "{other}");
        }
        for other in [
            "file",
            "path",
            "file path",
            "file_paths",
            "filé_path",
            "-file_path",
            "",
        ] {
            assert!(!is_same_name("file_path", other), "{other}");
        }
        assert!(is_same_name("-C", "-C") && !is_same_name("-C", "-c") && !is_same_name("-C", "c"));
    }
}
