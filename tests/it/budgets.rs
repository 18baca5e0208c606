//! Advisory code, which guesses at what others write, has a budget of lines. Code that exceeds it
//! is made shorter, or the budget is raised by a decision.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

/// Prefixes of paths, and the most lines of code in all of their files: without tests, comments and
/// blank lines, so that the width of a line counts as little as possible (decision 054).
const BUDGETS: [(&str, usize); 4] = [
    ("src/code/shell/", 500),
    ("src/policy/", 5000),
    ("src/llm/format/", 6500),
    ("src/guest/keep/git/hooks", 600),
];

#[test]
fn what_only_advises_stays_within_its_budget_of_lines() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut over = Vec::new();
    for (prefix, budget) in BUDGETS {
        let folder = root.join(&prefix[..=prefix.rfind('/').expect("a folder")]);
        let start = root.join(prefix);
        let files: Vec<PathBuf> = sources(&folder)
            .into_iter()
            .filter(|path| begins(path, &start))
            .collect();
        assert!(!files.is_empty(), "{prefix} is gone: take its budget away");
        let n_lines: usize = files
            .iter()
            .map(|path| lines_without_tests(&read(path)))
            .sum();
        if n_lines > budget {
            over.push(format!(
                "{prefix}: {n_lines} lines, and {budget} is the most"
            ));
        }
    }
    assert!(over.is_empty(), "{}", over.join("\n"));
}

fn begins(path: &Path, start: &Path) -> bool {
    path.to_str()
        .expect("ours")
        .starts_with(start.to_str().expect("ours"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("a source")
}

/// Returns the files of Rust in a folder and below it, but for modules of tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    // A module's own file may lie beside its folder.
    let own = folder.with_extension("rs");
    let declared: String = entries
        .iter()
        .chain([&own])
        .filter(|path| path.is_file())
        .map(|path| read(path))
        .collect();
    let is_of_tests = |path: &PathBuf| {
        let name = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .unwrap_or_default();
        declared.contains(&format!("#[cfg(test)]\nmod {name};"))
            || declared.contains(&format!("#[cfg(test)]\npub(super) mod {name};"))
    };
    entries.retain(|path| !is_of_tests(path));
    for path in entries {
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// Counts the lines of code of a source outside of modules of tests.
fn lines_without_tests(source: &str) -> usize {
    let mut lines = source.lines().peekable();
    let mut n_lines = 0;
    while let Some(line) = lines.next() {
        if line == "#[cfg(test)]"
            && lines
                .peek()
                .is_some_and(|next| next.starts_with("mod ") && next.ends_with('{'))
        {
            lines.by_ref().find(|line| *line == "}");
            continue;
        }
        let line = line.trim_start();
        n_lines += usize::from(!line.is_empty() && !line.starts_with("//"));
    }
    n_lines
}

#[test]
fn lines_of_tests_are_not_counted() {
    assert_eq!(
        lines_without_tests("a\n\n#[cfg(test)]\nmod tests {\n    x\n}\n  // c\nb\n"),
        2
    );
    assert_eq!(lines_without_tests("#[cfg(test)]\nmod tests;\nb\n"), 3);
}
