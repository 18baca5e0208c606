//! Variables that are a script's own: no program obeys them.

/// Variables that change no more than how something looks.
const LOOKS: [&str; 9] = ["LANG", "LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_MESSAGES", "TZ", "COLUMNS", "LINES", "NO_COLOR"];

/// Words that names in capitals are made of which no program that only reads takes orders from, alone or together: `SRC_DIR`.
const WORDS: [&str; 64] = [
    "A", "B", "BASE", "BRANCH", "C", "COMMIT", "COUNT", "CURRENT", "D", "DATE", "DIR", "DIRS", "DST", "END", "EXPECTED", "EXT", "F",
    "FILE", "FILES", "FIRST", "FOLDER", "FOUND", "HASH", "I", "ID", "IDX", "IN", "INDEX", "INPUT", "ITEM", "J", "K", "KEY", "LAST", "LINE",
    "LIST", "MAX", "MIN", "MSG", "N", "NAME", "NAMES", "NEW", "NOW", "NUM", "OLD", "OUT", "OUTPUT", "P", "PATTERN", "RESULT", "ROOT", "S",
    "SIZE", "SRC", "START", "STATUS", "SUM", "TARGET", "TEST", "TOTAL", "VALUE", "X", "Y",
];

/// Returns whether a variable is a script's own: programs take their orders from names in capitals, but not from all of them.
pub(super) fn is_own(name: &str) -> bool {
    let is_made_of_words = || name.split('_').all(|part| WORDS.contains(&part.trim_end_matches(|c: char| c.is_ascii_digit())));
    LOOKS.contains(&name) || (is_lower(name) && !is_of_npm(name)) || is_made_of_words()
}

/// `npm_config_script_shell`: npm and pnpm take their settings from such names, and some of those say which program is started.
fn is_of_npm(name: &str) -> bool {
    name.starts_with("npm_config_") || name.starts_with("pnpm_config_")
}

fn is_lower(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_a_program_may_obey_is_not_a_scripts_own() {
        for name in ["x", "my_file2", "FILES", "SRC_DIR", "F1", "TZ", "NEW_NAME"] {
            assert!(is_own(name), "{name}");
        }
        for name in [
            "PATH",
            "GIT_DIR",
            "LD_PRELOAD",
            "IFS",
            "PAGER",
            "TMPDIR",
            "NODE_OPTIONS",
            "ENV",
            "",
            "Files",
            "PS4",
            "SHELLOPTS",
            "DIR_",
            "npm_config_script_shell",
        ] {
            assert!(!is_own(name), "{name}");
        }
    }
}
