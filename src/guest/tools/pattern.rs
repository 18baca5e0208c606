use globset::GlobBuilder;
use globset::GlobSet;
use globset::GlobSetBuilder;
use ignore::gitignore::Gitignore;
use ignore::gitignore::GitignoreBuilder;

use super::invalid;
use crate::root::as_path;
use podbay_wire::Fault;

/// Longest pattern taken; a longer one is no pattern but an attempt to keep the compiler busy.
const MAX_PATTERN: usize = 4096;

/// What can be done about a pattern that is none.
pub(super) const SIGNS: &str =
    "write `*` for any letters, and a backslash before a sign that is meant as it stands, such as `\\[` or `\\{`";

/// A glob for paths, in ripgrep's and gitignore's manner: without a slash it matches a name at any depth, with one it starts at
/// the folder; `*` and `?` stay within a name, `**` goes through folders, `{a,b}` is either.
#[derive(Debug)]
pub(super) struct Pattern {
    /// Folders at its start without a wildcard: the search begins there, even if they are ignored or hidden.
    pub(super) folder: String,
    /// Names below `folder` that a path can have; everything deeper cannot match.
    pub(super) max_depth: usize,
    /// Whether a name in it starts with a dot, so that hidden names are wanted.
    pub(super) names_hidden: bool,
    /// Whether it is a plain path.
    pub(super) is_literal: bool,
    set: GlobSet,
}

impl Pattern {
    pub(super) fn new(text: &str) -> Result<Self, Fault> {
        check_length("pattern", text)?;
        let text = text.strip_prefix("./").unwrap_or(text);
        let (folder, rest) = split(text.trim_start_matches('/'));
        if rest.is_empty() && folder.is_empty() {
            return Err(invalid("pattern", "is empty; use ** to find all files"));
        }
        let anchored = text.contains('/') && !text.ends_with('/') || !folder.is_empty();
        let name = rest.trim_end_matches('/');
        let glob = match (anchored, rest.ends_with('/') || rest.is_empty()) {
            (true, false) => name.to_string(),
            (false, false) => format!("**/{name}"),
            (true, true) if name.is_empty() => "**".to_string(),
            (true, true) => format!("{name}/**"),
            // A folder alone stands for all that is in it.
            (false, true) => format!("**/{name}/**"),
        };
        let glob = GlobBuilder::new(&glob).literal_separator(true).backslash_escape(true).empty_alternates(true).build();
        // Without the text of the pattern: what was put before it is not the model's.
        let glob = glob.map_err(|error| invalid("pattern", format!("{}; {SIGNS}", error.kind())))?;
        let set = GlobSetBuilder::new().add(glob).build();
        let set = set.map_err(|_| invalid("pattern", "is nested too deep or stands for too much; use a simpler one"))?;
        let max_depth = if anchored && !rest.contains("**") && !rest.is_empty() && !rest.ends_with('/') {
            rest.matches('/').count() + 1
        } else {
            usize::MAX
        };
        let names_hidden = rest.starts_with('.') || ["/.", "{.", ",.", "[."].iter().any(|start| rest.contains(start));
        Ok(Self { folder: folder.to_string(), max_depth, names_hidden, is_literal: !text.contains(is_special), set })
    }

    /// Says whether a path below `folder` matches.
    pub(super) fn is_match(&self, path: &[u8]) -> bool {
        self.set.is_match(as_path(path))
    }
}

/// What `exclude` leaves out, folders with all they hold; several patterns may be separated by commas.
pub(super) fn excluded(text: &str) -> Result<Gitignore, Fault> {
    check_length("exclude", text)?;
    let mut builder = GitignoreBuilder::new("/");
    // Git takes an open bracket as a letter; a model that leaves one open means something else.
    builder.allow_unclosed_class(false);
    for part in split_commas(text) {
        builder.add_line(None, part).map_err(|error| invalid("exclude", format!("{error}; {SIGNS}")))?;
    }
    builder.build().map_err(|error| invalid("exclude", error.to_string()))
}

/// Splits at the commas outside of braces: `*.ts,*.{js,jsx}` is two patterns.
pub(super) fn split_commas(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_u32, 0);
    for (at, char) in text.char_indices() {
        match char {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

pub(super) fn check_length(field: &str, text: &str) -> Result<(), Fault> {
    if text.len() > MAX_PATTERN {
        return Err(invalid(field, format!("is longer than {MAX_PATTERN} bytes")));
    }
    Ok(())
}

fn is_special(char: char) -> bool {
    matches!(char, '*' | '?' | '[' | ']' | '{' | '}' | '\\')
}

/// Splits off the folders before the first wildcard; the last name stays with the rest.
fn split(text: &str) -> (&str, &str) {
    let end = text.find(is_special).unwrap_or(text.len());
    match text[..end].rfind('/') {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => ("", text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, path: &str, expected: bool) {
        let pattern = Pattern::new(pattern).expect("a good pattern");
        let below = match pattern.folder.as_str() {
            "" => Some(path),
            folder => path.strip_prefix(folder).and_then(|path| path.strip_prefix('/')),
        };
        let found = below.is_some_and(|path| path.split('/').count() <= pattern.max_depth && pattern.is_match(path.as_bytes()));
        assert_eq!(found, expected, "{pattern:?} on {path}");
    }

    #[test]
    fn a_name_alone_matches_at_any_depth() {
        check("*.rs", "main.rs", true);
        check("*.rs", "src/deep/main.rs", true);
        check("main.rs", "src/main.rs", true);
        check("*.rs", "main.rsx", false);
        check("{a,b}.txt", "x/b.txt", true);
    }

    #[test]
    fn a_slash_ties_the_pattern_to_the_folder() {
        check("src/*.rs", "src/main.rs", true);
        check("src/*.rs", "src/deep/main.rs", false);
        check("src/*.rs", "other/src/main.rs", false);
        check("/*.rs", "main.rs", true);
        check("/*.rs", "src/main.rs", false);
        check("src/{a,b}/*.rs", "src/b/c.rs", true);
        check("./src/**/x?.rs", "src/a/b/x1.rs", true);
    }

    #[test]
    fn two_stars_go_through_folders() {
        check("**/*.rs", "main.rs", true);
        check("src/**", "src/a/b.c", true);
        check("src/**/*.rs", "src/main.rs", true);
        check("src/", "src/a/b.c", true);
        check("a/src/", "a/src/b.c", true);
        check("**", "a/b", true);
    }

    #[test]
    fn commas_within_braces_separate_nothing() {
        assert_eq!(split_commas("*.ts, *.{js,jsx},"), ["*.ts", "*.{js,jsx}"]);
    }

    #[test]
    fn patterns_that_are_none_say_why() {
        let problem = |pattern: &str| Pattern::new(pattern).expect_err("not a pattern").to_string();
        for (pattern, cause) in [("{a", "unclosed alternate"), ("[", "unclosed character class"), ("src/[b-a]", "invalid range")] {
            let problem = problem(pattern);
            assert!(problem.contains(cause) && problem.contains("a backslash before") && !problem.contains("**"), "{problem}");
        }
        for pattern in ["{a", "["] {
            let problem = excluded(pattern).expect_err("not a pattern").to_string();
            assert!(problem.starts_with("`exclude`: ") && problem.contains("a backslash before"), "{problem}");
        }
        assert!(problem("").contains("is empty"));
        assert!(problem(&"{".repeat(5000)).contains("longer than"));
        assert!(problem(&format!("{}a{}", "{a,".repeat(1000), "}".repeat(1000))).contains("nested too deep"));
    }
}
