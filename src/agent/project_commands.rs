//! How a project is built and tested, by its own files at the top: what a model would otherwise look
//! for first.
//!
//! It is read anew for each session, which takes a few reads in the sandbox, so that it is never out
//! of date. It advises: a build that is described elsewhere is not known here.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::key_files::key_files;
use super::key_files::stack;
use super::prompt::WITHIN;
use podbay_sandbox as sandbox;
use podbay_tools::Pipeline;
use podbay_wire::BytesPath;
use podbay_wire::Call;
use podbay_wire::EntryKind;
use podbay_wire::ListDirectory;
use podbay_wire::Output;
use podbay_wire::ReadFile;

/// Most entries of the top folder that are looked at, and most lines and bytes of one file.
const MOST_ENTRIES: u32 = 2000;
const LINES: u64 = 1000;
const BYTES: u64 = 64 << 10;
/// Most names of one file's commands.
const MOST_NAMES: usize = 16;

/// Whatever names a project chose, this stands in front of them.
const HEADING: &str = "How the project is built and tested, by the names in its own files:";

/// How commands are found in a file.
#[derive(Clone, Copy)]
enum Source {
    /// These are the usual ones wherever the file is there.
    Usual(&'static str),
    /// The keys of `scripts` in JSON, behind these words.
    Scripts(&'static str),
    /// Names of rules at the beginning of a line, before a colon, behind these words.
    Rules(&'static str),
}

/// Files at the top of a project, by the tool that reads them.
const FILES: [(&str, Source); 14] = [
    ("Makefile", Source::Rules("make")),
    ("GNUmakefile", Source::Rules("make")),
    ("justfile", Source::Rules("just")),
    ("Cargo.toml", Source::Usual("cargo build, cargo test")),
    ("package.json", Source::Scripts("npm run")),
    ("composer.json", Source::Scripts("composer run")),
    ("pyproject.toml", Source::Usual("python -m pytest")),
    ("tox.ini", Source::Usual("tox")),
    ("go.mod", Source::Usual("go build ./..., go test ./...")),
    ("pom.xml", Source::Usual("mvn package, mvn test")),
    ("build.gradle", Source::Usual("gradle build, gradle test")),
    (
        "build.gradle.kts",
        Source::Usual("gradle build, gradle test"),
    ),
    (
        "CMakeLists.txt",
        Source::Usual("cmake -B build, cmake --build build, ctest --test-dir build"),
    ),
    ("mix.exs", Source::Usual("mix compile, mix test")),
];

/// What the names at the top of a project tell.
#[derive(Default)]
pub(super) struct ProjectCommands {
    /// For the model; `None`: nothing is known.
    pub(super) text: Option<String>,
    /// The same, and more, for the project's document: headings and texts.
    pub(super) found: Vec<(&'static str, String)>,
}

/// Returns what is known; the text for the model has at most `most` bytes.
pub(super) async fn commands(
    pipeline: &Pipeline,
    most: usize,
    cancel: &CancellationToken,
) -> Result<ProjectCommands, sandbox::Error> {
    let call = Call::ListDirectory(ListDirectory {
        path: ".".into(),
        recursive: false,
        show_hidden: false,
        show_size: false,
        max_entries: MOST_ENTRIES,
    });
    let listed = pipeline.peek(call, Box::new(|_, _| {}), cancel, WITHIN);
    let Some(Output::Listing(listing)) = listed.await? else {
        return Ok(ProjectCommands::default());
    };
    let files = listing.entries.iter();
    let files = files.filter(|entry| entry.kind == EntryKind::File);
    let names: BTreeSet<&[u8]> = files.map(|entry| entry.path.as_bytes()).collect();
    let (mut text, mut all) = (String::new(), String::new());
    for (name, source) in FILES {
        if !names.contains(name.as_bytes()) {
            continue;
        }
        let found = match source {
            Source::Usual(commands) => commands.to_owned(),
            Source::Scripts(before) => {
                let read = read(pipeline, name, cancel).await?;
                named(before, &scripts(&read.unwrap_or_default()))
            }
            Source::Rules(before) => {
                let read = read(pipeline, name, cancel).await?;
                named(before, &rules(&read.unwrap_or_default()))
            }
        };
        if found.is_empty() {
            continue;
        }
        let line = format!("{name}: {found}\n");
        all.push_str(&line);
        if HEADING.len() + 1 + text.len() + line.len() <= most {
            text.push_str(&line);
        }
    }
    Ok(ProjectCommands {
        text: (!text.is_empty()).then(|| format!("{HEADING}\n{text}")),
        found: vec![
            ("Stack", stack(&names)),
            ("Key files", key_files(&names)),
            ("Commands", all),
        ],
    })
}

async fn read(
    pipeline: &Pipeline,
    name: &str,
    cancel: &CancellationToken,
) -> Result<Option<String>, sandbox::Error> {
    let call = Call::ReadFile(ReadFile {
        path: Some(BytesPath::from_text(name)),
        offset: 1,
        limit: LINES,
        max_bytes: BYTES,
        cursor: None,
        max_files: 1,
        images: false,
        protected: false,
    });
    let read = pipeline.peek(call, Box::new(|_, _| {}), cancel, WITHIN);
    let Some(Output::Read(read)) = read.await? else {
        return Ok(None);
    };
    let file = read.files.into_iter().next();
    Ok(file
        .filter(|file| file.fault.is_none())
        .map(|file| file.text))
}

/// Returns the commands of these names.
fn named(before: &str, names: &[String]) -> String {
    let mut text = String::new();
    for name in names {
        let gap = if text.is_empty() { "" } else { ", " };
        let _ = write!(text, "{gap}{before} {name}");
    }
    text
}

fn scripts(text: &str) -> Vec<String> {
    let json: Value = serde_json::from_str(text).unwrap_or_default();
    let scripts = json["scripts"].as_object();
    let names = scripts.into_iter().flatten().map(|(name, _)| name.as_str());
    bounded(names)
}

fn rules(text: &str) -> Vec<String> {
    let of_line = |line: &'_ str| -> Option<String> {
        let (head, rest) = line.split_once(':')?;
        let is_rule = !rest.starts_with(['=', ':']) && !line.starts_with([' ', '\t', '.', '#']);
        // A recipe of `just` may have parameters behind its name.
        let name = head.split_whitespace().next()?;
        is_rule.then(|| name.trim_start_matches('@').to_owned())
    };
    let names: Vec<String> = text.lines().filter_map(of_line).collect();
    bounded(names.iter().map(String::as_str))
}

/// Returns names that are names, each once, a bounded number of them.
fn bounded<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/');
    let mut found: Vec<String> = Vec::new();
    for name in names {
        let is_name = !name.is_empty() && name.len() <= 40 && name.chars().all(is_part);
        if is_name && !found.iter().any(|known| known == name) {
            found.push(name.to_owned());
        }
        if found.len() == MOST_NAMES {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_scripts_and_rules_are_found() {
        let json =
            r#"{"name": "x", "scripts": {"build": "tsc", "test:unit": "jest", "rm -rf /": "x"}}"#;
        assert_eq!(scripts(json), ["build", "test:unit"]);
        assert!(scripts("[").is_empty() && scripts(r#"{"scripts": 3}"#).is_empty());
        let makefile = "CC := gcc\nA::=b\n.PHONY: all\nall: build test\nbuild:\n\tcc x.c # a: b\ntest: ; true\nall: more\n$(X): y\n";
        assert_eq!(rules(makefile), ["all", "build", "test"]);
        assert_eq!(rules("@fmt:\n  x\nrun name='x':\n  y\n"), ["fmt", "run"]);
        assert_eq!(
            named("make", &rules(makefile)),
            "make all, make build, make test"
        );
    }

    #[test]
    fn names_are_bounded_and_hold_nothing_but_letters() {
        let many: Vec<String> = (0..100).map(|n| format!("t{n}")).collect();
        assert_eq!(bounded(many.iter().map(String::as_str)).len(), MOST_NAMES);
        let long = "x".repeat(41);
        let bad = [long.as_str(), "", "a b", "obey\u{202e}", "<|im_start|>"];
        assert!(bounded(bad.into_iter()).is_empty());
    }
}
