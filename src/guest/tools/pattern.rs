use globset::GlobBuilder;
use globset::GlobSet;
use globset::GlobSetBuilder;
use ignore::gitignore::Gitignore;
use ignore::gitignore::GitignoreBuilder;

use super::invalid;
use crate::lookalike::normalize_with;
use crate::root::as_path;
use podbay_wire::Fault;

/// Longest pattern accepted; a longer one only keeps the compiler busy.
const MAX_PATTERN: usize = 4096;

/// Remedy for an invalid pattern.
pub(super) const SIGNS: &str = "write `*` for any letters, and a backslash before a sign that is meant literally, such as `\\[` or `\\{`";

/// A glob for paths, in the manner of ripgrep and gitignore: without a slash it matches a name at
/// any depth, with one it starts at the folder; `*` and `?` stay within a name, `**` crosses
/// folders, `{a,b}` is either. A component that is also a literal name, such as `[id]`, matches
/// that name as well.
#[derive(Debug)]
pub(super) struct Pattern {
    /// Folders at its start without a wildcard: the search begins there, even if they are ignored
    /// or hidden.
    pub(super) folder: String,
    /// Greatest depth of a match below `folder`.
    max_depth: usize,
    /// Whether a component starts with a dot, so that hidden names are wanted.
    pub(super) names_hidden: bool,
    /// Whether it restricts a file's name.
    pub(super) names_files: bool,
    /// Its text without the leading folder.
    pub(super) text: String,
    set: GlobSet,
}

impl Pattern {
    pub(super) fn new(field: &str, text: &str) -> Result<Self, Fault> {
        Self::with_start(field, text, |folder, glob| (folder, glob))
    }

    /// A pattern for names in their normalized form. It starts at the top, since its leading
    /// folders may exist in other characters.
    pub(super) fn alike(field: &str, text: &str) -> Result<Self, Fault> {
        let of_all = |folder: &'_ str, glob: String| {
            if folder.is_empty() {
                glob
            } else {
                format!("{}/{glob}", escaped(folder))
            }
        };
        let pattern = Self::with_start(field, &plain_pattern(text), |folder, glob| {
            ("", of_all(folder, glob))
        })?;
        Ok(Self {
            max_depth: usize::MAX,
            ..pattern
        })
    }

    fn with_start(
        field: &str,
        text: &str,
        start: impl for<'a> Fn(&'a str, String) -> (&'a str, String),
    ) -> Result<Self, Fault> {
        check_length(field, text)?;
        let text = text.strip_prefix("./").unwrap_or(text);
        let (folder, rest) = split(text.trim_start_matches('/'));
        if rest.is_empty() && folder.is_empty() {
            return Err(invalid(field, "is empty; use ** to find all files"));
        }
        let anchored = text.contains('/') && !text.ends_with('/') || !folder.is_empty();
        let name = components(rest.trim_end_matches('/'))
            .into_iter()
            .map(or_itself)
            .collect::<Vec<_>>()
            .join("/");
        let glob = match (anchored, rest.ends_with('/') || rest.is_empty()) {
            (true, false) => name,
            (false, false) => format!("**/{name}"),
            (true, true) if name.is_empty() => "**".to_string(),
            (true, true) => format!("{name}/**"),
            // A folder alone matches everything in it.
            (false, true) => format!("**/{name}/**"),
        };
        let max_depth =
            if anchored && !rest.contains("**") && !rest.is_empty() && !rest.ends_with('/') {
                rest.matches('/').count() + 1
            } else {
                usize::MAX
            };
        let names_hidden = rest.starts_with('.')
            || ["/.", "{.", ",.", "[."]
                .iter()
                .any(|start| rest.contains(start));
        let last = rest.rsplit('/').next().unwrap_or_default();
        let (folder, glob) = start(folder, glob);
        Ok(Self {
            folder: folder.to_owned(),
            max_depth,
            names_hidden,
            names_files: !last.trim_matches(['*', '?']).is_empty(),
            text: text.trim_start_matches('/').to_owned(),
            set: compiled(field, &glob)?,
        })
    }

    /// A pattern for one literal path, whatever characters it has.
    pub(super) fn plain(field: &str, path: &str) -> Result<Self, Fault> {
        let text = path.trim_start_matches('/');
        let (folder, name) = text.rsplit_once('/').unwrap_or(("", text));
        Ok(Self {
            folder: folder.to_owned(),
            max_depth: 1,
            names_hidden: true,
            names_files: true,
            text: text.to_owned(),
            set: compiled(field, &escaped(name))?,
        })
    }

    /// Returns whether a path, relative to the pattern's start, matches.
    pub(super) fn is_match(&self, path: &[u8]) -> bool {
        let Some(below) = below(path, self.folder.as_bytes()).filter(|below| !below.is_empty())
        else {
            return false;
        };
        (self.max_depth == usize::MAX || depth(below) <= self.max_depth)
            && self.set.is_match(as_path(below))
    }

    /// Returns whether a match can be in a folder, or below it.
    pub(super) fn reaches(&self, folder: &[u8]) -> bool {
        self.leads_through(folder)
            || below(folder, self.folder.as_bytes())
                .is_some_and(|below| self.max_depth == usize::MAX || depth(below) < self.max_depth)
    }

    /// Returns whether a folder is one of those before the first wildcard.
    pub(super) fn leads_through(&self, folder: &[u8]) -> bool {
        !folder.is_empty() && below(self.folder.as_bytes(), folder).is_some()
    }
}

/// Normalizes the characters of a pattern; a character that becomes an operator is escaped.
fn plain_pattern(text: &str) -> String {
    normalize_with(text, |letter| {
        if is_special(letter) || letter == ',' {
            format!("\\{letter}")
        } else {
            letter.to_string()
        }
    })
}

fn compiled(field: &str, glob: &str) -> Result<GlobSet, Fault> {
    let glob = GlobBuilder::new(glob)
        .literal_separator(true)
        .backslash_escape(true)
        .empty_alternates(true)
        .build();
    // Without the text of the pattern, which has a prefix that the model did not write.
    let glob = glob.map_err(|error| invalid(field, format!("{}; {SIGNS}", error.kind())))?;
    let set = GlobSetBuilder::new().add(glob).build();
    set.map_err(|_| {
        invalid(
            field,
            "is nested too deep or stands for too much; use a simpler one",
        )
    })
}

/// Returns the part of a path below a folder; the empty folder contains all.
fn below<'a>(path: &'a [u8], folder: &[u8]) -> Option<&'a [u8]> {
    if folder.is_empty() {
        return Some(path);
    }
    match path.strip_prefix(folder)? {
        [] => Some(b""),
        [b'/', rest @ ..] => Some(rest),
        _ => None,
    }
}

fn depth(path: &[u8]) -> usize {
    if path.is_empty() {
        0
    } else {
        memchr::memchr_iter(b'/', path).count() + 1
    }
}

/// Splits a pattern at the slashes outside of braces and brackets.
fn components(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_u32, 0);
    for (at, char) in text.char_indices() {
        match char {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            '/' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Returns a pattern that also matches its own text as a name: `[id]` is a character class, and a
/// folder name in many projects.
fn or_itself(component: &str) -> String {
    if !component.contains(['[', ']', '{', '}', '\\']) {
        return component.to_owned();
    }
    format!("{{{component},{}}}", escaped(component))
}

fn escaped(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 8);
    for char in name.chars() {
        if is_special(char) || matches!(char, ',' | '!') {
            out.push('\\');
        }
        out.push(char);
    }
    out
}

/// Compiles `exclude`, which excludes folders with their contents; patterns may be separated by
/// commas.
pub(super) fn excluded(field: &str, text: &str) -> Result<Gitignore, Fault> {
    check_length(field, text)?;
    let mut builder = GitignoreBuilder::new("/");
    // Git takes an unclosed bracket literally; a model that leaves one open means something else.
    builder.allow_unclosed_class(false);
    for part in split_commas(text) {
        let part = components(part)
            .into_iter()
            .map(or_itself)
            .collect::<Vec<_>>()
            .join("/");
        builder
            .add_line(None, &part)
            .map_err(|error| invalid(field, format!("{}; {SIGNS}", without_pattern(&error))))?;
    }
    builder
        .build()
        .map_err(|error| invalid(field, without_pattern(&error)))
}

/// Returns the error without the text of the pattern, which has a prefix that the model did not
/// write.
fn without_pattern(error: &ignore::Error) -> String {
    match error {
        ignore::Error::Glob { err, .. } => err.clone(),
        ignore::Error::WithLineNumber { err, .. }
        | ignore::Error::WithPath { err, .. }
        | ignore::Error::WithDepth { err, .. } => without_pattern(err),
        other => other.to_string(),
    }
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
        return Err(invalid(
            field,
            format!("is longer than {MAX_PATTERN} bytes"),
        ));
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
        let pattern = Pattern::new("pattern", pattern).expect("a good pattern");
        assert_eq!(
            pattern.is_match(path.as_bytes()),
            expected,
            "{pattern:?} on {path}"
        );
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        assert!(
            !expected || pattern.reaches(folder.as_bytes()),
            "{pattern:?} on {path}"
        );
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
    fn a_slash_anchors_the_pattern_to_the_folder() {
        check("src/*.rs", "src/main.rs", true);
        check("src/*.rs", "src/deep/main.rs", false);
        check("src/*.rs", "other/src/main.rs", false);
        check("/*.rs", "main.rs", true);
        check("/*.rs", "src/main.rs", false);
        check("src/{a,b}/*.rs", "src/b/c.rs", true);
        check("./src/**/x?.rs", "src/a/b/x1.rs", true);
    }

    #[test]
    fn two_stars_match_across_folders() {
        check("**/*.rs", "main.rs", true);
        check("src/**", "src/a/b.c", true);
        check("src/**/*.rs", "src/main.rs", true);
        check("src/", "src/a/b.c", true);
        check("a/src/", "a/src/b.c", true);
        check("**", "a/b", true);
    }

    #[test]
    fn a_component_matches_its_own_text_as_a_name() {
        check("app/[id]/page.tsx", "app/[id]/page.tsx", true);
        check("app/[id]/page.tsx", "app/i/page.tsx", true);
        check("app/[id]/page.tsx", "app/x/page.tsx", false);
        check(
            "**/[[...slug]]/*.tsx",
            "app/docs/[[...slug]]/page.tsx",
            true,
        );
        check("{{name}}/*.py", "{{name}}/setup.py", true);
        check("{a,b}.txt", "{a,b}.txt", true);
        check("{a,b}.txt", "b.txt", true);
        check(r"a\b.txt", r"a\b.txt", true);
        check(r"\[id\]/x", "[id]/x", true);
        check("src/[ab]*.rs", "src/apple.rs", true);
        check("src/[!a]*.rs", "src/apple.rs", false);
        check("[id].tsx", "deep/[id].tsx", true);
        let excludes = |pattern: &str, path: &str| {
            let patterns = excluded("exclude", pattern).expect("a pattern");
            patterns.matched(as_path(path.as_bytes()), true).is_ignore()
        };
        assert!(
            excludes("app/[id]", "app/[id]")
                && excludes("app/[id]", "app/d")
                && !excludes("app/[id]", "app/x")
        );
        let plain = Pattern::plain("pattern", "a/[b.txt").expect("a path");
        assert!(
            plain.is_match(b"a/[b.txt") && !plain.is_match(b"[b.txt") && plain.leads_through(b"a")
        );
    }

    #[test]
    fn only_folders_that_can_contain_a_match_are_reached() {
        let reaches = |pattern: &str, folder: &str| {
            Pattern::new("pattern", pattern)
                .expect("a pattern")
                .reaches(folder.as_bytes())
        };
        assert!(
            reaches("src/*.rs", "src")
                && !reaches("src/*.rs", "other")
                && !reaches("src/*.rs", "src/deep")
        );
        assert!(
            reaches("a/b/*.rs", "a")
                && reaches("*.rs", "any/where")
                && reaches("src/**", "src/a/b")
                && !reaches("/*.rs", "src")
        );
        let through = |folder: &[u8]| {
            Pattern::new("pattern", ".github/workflows/*")
                .expect("a pattern")
                .leads_through(folder)
        };
        assert!(
            through(b".github")
                && through(b".github/workflows")
                && !through(b".github/other")
                && !through(b".git")
        );
    }

    #[test]
    fn commas_within_braces_do_not_separate() {
        assert_eq!(split_commas("*.ts, *.{js,jsx},"), ["*.ts", "*.{js,jsx}"]);
    }

    #[test]
    fn invalid_patterns_say_why() {
        let problem = |pattern: &str| {
            Pattern::new("pattern", pattern)
                .expect_err("not a pattern")
                .to_string()
        };
        for (pattern, cause) in [
            ("{a", "unclosed alternate"),
            ("[", "unclosed character class"),
            ("src/[b-a]", "invalid range"),
        ] {
            let problem = problem(pattern);
            assert!(
                problem.contains(cause)
                    && problem.contains("a backslash before")
                    && !problem.contains("**"),
                "{problem}"
            );
        }
        for pattern in ["{a", "["] {
            let problem = excluded("exclude", pattern)
                .expect_err("not a pattern")
                .to_string();
            assert!(
                problem.starts_with("`exclude`: ") && problem.contains("a backslash before"),
                "{problem}"
            );
        }
        assert!(problem("").contains("is empty"));
        assert!(problem(&"{".repeat(5000)).contains("longer than"));
        assert!(
            problem(&format!("{}a{}", "{a,".repeat(1000), "}".repeat(1000)))
                .contains("nested too deep")
        );
    }
}
