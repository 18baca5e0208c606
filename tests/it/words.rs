//! Plain words: phrases that make a reader stop are not used in what people read.
//!
//! `fixtures/banned_phrases.txt` lists them, each with what to write instead. Looked through are
//! the pages of the documentation and the texts in the sources: messages, help, results of tools.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

/// Decisions are records of their time; the table of phrases itself has all of them.
const EXCEPTED: [&str; 1] = ["docs/decisions"];

#[test]
fn no_banned_phrase_is_in_docs_and_messages() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let banned = banned(root);
    let mut found = Vec::new();
    for page in files(root, &["README.md", "CONTRIBUTING.md", "docs"], "md") {
        let text = fs::read_to_string(&page).expect("a page");
        let lines = text.lines().enumerate();
        found.extend(lines.flat_map(|(n, line)| uses(&banned, &page, n + 1, line)));
    }
    for source in files(root, &["src"], "rs") {
        let text = fs::read_to_string(&source).expect("a source");
        for (line, literal) in literals(&text) {
            found.extend(uses(&banned, &source, line, &literal));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_banned_phrase_in_a_page_or_a_message_is_found() {
    let banned = vec![("to the letter".to_owned(), "exactly".to_owned())];
    let uses = |line: &str| uses(&banned, Path::new("x.md"), 3, line);
    assert_eq!(
        uses("Allowed To the letter."),
        ["x.md:3: `to the letter`: write `exactly`"]
    );
    assert!(uses("from the folder into the letterbox").is_empty());
    let source = "// \"to the letter\"\nlet a = 'x'; let b = \"first \\\n  to the \\\"letter\";\nf(r#\"raw \"text\"#);";
    assert_eq!(
        literals(source),
        [
            (2, "first to the \"letter".to_owned()),
            (4, "raw \"text".to_owned())
        ]
    );
}

/// Phrases, and what to write instead.
fn banned(root: &Path) -> Vec<(String, String)> {
    let table = fs::read_to_string(root.join("tests/it/fixtures/banned_phrases.txt"))
        .expect("the table of phrases");
    let phrases: Vec<_> = table
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| line.split_once(" | ").expect("PHRASE | INSTEAD"))
        .map(|(phrase, instead)| (phrase.to_owned(), instead.to_owned()))
        .collect();
    assert!(phrases.len() > 10, "the table is empty");
    phrases
}

fn uses(banned: &[(String, String)], path: &Path, line: usize, text: &str) -> Vec<String> {
    let text = text.to_lowercase();
    // Names of tests are no words of a page.
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let holds = |phrase: &str| {
        text.match_indices(phrase).any(|(at, _)| {
            !text[..at].ends_with(is_word) && !text[at + phrase.len()..].starts_with(is_word)
        })
    };
    banned
        .iter()
        .filter(|(phrase, _)| holds(phrase))
        .map(|(phrase, instead)| {
            format!("{}:{line}: `{phrase}`: write `{instead}`", path.display())
        })
        .collect()
}

fn files(root: &Path, places: &[&str], extension: &str) -> Vec<PathBuf> {
    let mut to_visit: Vec<PathBuf> = places.iter().map(|place| root.join(place)).collect();
    let mut found = Vec::new();
    while let Some(path) = to_visit.pop() {
        if EXCEPTED.iter().any(|excepted| path.ends_with(excepted)) {
            continue;
        }
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("a folder");
            to_visit.extend(entries.map(|entry| entry.expect("an entry").path()));
        } else if path.extension().is_some_and(|end| end == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Returns the string literals of a source, each with its line. Comments are skipped; what an
/// escaped line end joins is one text.
fn literals(source: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut rest = source;
    let mut line = 1;
    while let Some(c) = rest.chars().next() {
        let at = source.len() - rest.len();
        line += usize::from(c == '\n');
        rest = &rest[c.len_utf8()..];
        match c {
            '/' if rest.starts_with('/') => {
                rest = rest.find('\n').map_or("", |end| &rest[end..]);
            }
            // A character, and not a lifetime.
            '\'' => {
                let is_escape = rest.starts_with('\\');
                let end = rest
                    .char_indices()
                    .skip(if is_escape { 2 } else { 1 })
                    .take(10)
                    .find(|(_, c)| *c == '\'');
                if let Some((end, _)) = end.filter(|(end, _)| is_escape || *end <= 4) {
                    rest = &rest[end + 1..];
                }
            }
            '"' => {
                let hashes = source[..at].chars().rev().take_while(|c| *c == '#').count();
                let is_raw = source[..at - hashes].ends_with('r');
                let (text, tail) = if is_raw {
                    let end = format!("\"{}", "#".repeat(hashes));
                    rest.split_once(&end).unwrap_or((rest, ""))
                } else {
                    rest.split_at(end_of_literal(rest))
                };
                found.push((
                    line,
                    if is_raw {
                        text.to_owned()
                    } else {
                        unescaped(text)
                    },
                ));
                line += text.matches('\n').count();
                rest = if is_raw {
                    tail
                } else {
                    tail.get(1..).unwrap_or("")
                };
            }
            _ => {}
        }
    }
    found
}

fn end_of_literal(rest: &str) -> usize {
    let mut is_escaped = false;
    rest.find(|c| {
        let ends = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends
    })
    .unwrap_or(rest.len())
}

/// Joins lines that an escaped line end joins, and unescapes quotes.
fn unescaped(text: &str) -> String {
    let mut lines = text.split("\\\n");
    let first = lines.next().unwrap_or_default().to_owned();
    let joined = lines.fold(first, |text, line| text + line.trim_start());
    joined.replace("\\\"", "\"")
}
