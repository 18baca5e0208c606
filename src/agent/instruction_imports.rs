//! Files that a file of instructions imports with `@path`, as other agents write it.
//!
//! The guest opens them beneath the project, so that neither a path nor a link leads out of it, and
//! rules are asked about each as if the model read it. A name that is no file is no import: `@` also
//! begins names of people and packages.

use std::collections::VecDeque;

use tokio_util::sync::CancellationToken;

use super::Options;
use super::instruction_file::read;
use podbay_sandbox as sandbox;
use podbay_tools::Pipeline;
use podbay_wire::Memo;
use podbay_wire::n_bytes;

/// How deep files may import others, how many files are read, and how many names are tried.
const DEEPEST: usize = 3;
const MOST_READ: usize = 16;
const MOST_TRIED: usize = 48;
/// Longest path.
const LONGEST: usize = 255;

/// What the imports of some files come to.
#[derive(Default)]
pub(super) struct Imported {
    /// Ready to be told; empty where nothing is imported.
    pub(super) text: String,
    pub(super) files: Vec<String>,
    pub(super) seen: Vec<Memo>,
    pub(super) warnings: Vec<String>,
}

/// Reads what files import, each given by its path and text, within `room` bytes. Files in `known`
/// are told already.
pub(super) async fn imported(
    pipeline: &Pipeline,
    options: &Options,
    files: Vec<(String, String)>,
    known: &[Memo],
    room: usize,
    cancel: &CancellationToken,
) -> Result<Imported, sandbox::Error> {
    let mut imported = Imported::default();
    let mut room = room;
    let mut tried: Vec<String> = files.iter().map(|(path, _)| path.clone()).collect();
    let n_given = tried.len();
    let mut open: VecDeque<(String, String, usize)> = files
        .into_iter()
        .map(|(path, text)| (path, text, 1))
        .collect();
    while let Some((from, text, depth)) = open.pop_front() {
        for written in written(&text) {
            let Some(path) = joined(&from, written) else {
                imported.warnings.push(format!(
                    "{from} imports {written}, which lies outside of the project and is not followed"
                ));
                continue;
            };
            if tried.contains(&path) || tried.len() - n_given == MOST_TRIED {
                continue;
            }
            tried.push(path.clone());
            let mut problems = Vec::new();
            let file = read(pipeline, options, &path, room, &mut problems, cancel).await?;
            imported.warnings.append(&mut problems);
            let Some(file) = file else { continue };
            if file.is_among(known) || file.is_among(&imported.seen) {
                continue;
            }
            if depth > DEEPEST || imported.files.len() == MOST_READ || room == 0 {
                imported.warnings.push(format!(
                    "{from} imports {path}, which is not followed: there are too many imports, or they are too deep or too long"
                ));
                continue;
            }
            let (text, is_cut) = file.cut(room);
            if is_cut {
                imported.warnings.push(format!(
                    "{path} is too long: only the first {} of it are followed",
                    n_bytes(text.len() as u64)
                ));
            }
            room -= text.len();
            imported.text.push_str(&format!(
                "\nThe project's own instructions ({path}, imported by {from}):\n{text}\n"
            ));
            imported.seen.extend(file.seen);
            imported.files.push(path.clone());
            open.push_back((path, text, depth + 1));
        }
    }
    Ok(imported)
}

/// Returns the paths that a text imports: words that begin with `@`, outside of code.
fn written(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let begins = line.trim_start();
        let mark = ["```", "~~~"]
            .into_iter()
            .find(|mark| begins.starts_with(mark));
        if let Some(mark) = mark {
            match fence {
                None => fence = Some(mark),
                Some(open) if open == mark => fence = None,
                Some(_) => {}
            }
            continue;
        }
        if fence.is_some() {
            continue;
        }
        for part in outside_code(line) {
            found.extend(part.split_whitespace().filter_map(path_of));
        }
    }
    found
}

/// Returns the parts of a line that do not lie between backticks, of which as many close as open.
fn outside_code(line: &str) -> Vec<&str> {
    let (mut parts, mut begun, mut at, mut open) = (Vec::new(), 0, 0, 0);
    while let Some(found) = line[at..].find('`') {
        let tick = at + found;
        let n_ticks = line[tick..]
            .bytes()
            .take_while(|byte| *byte == b'`')
            .count();
        at = tick + n_ticks;
        if open == 0 {
            parts.push(&line[begun..tick]);
            open = n_ticks;
        } else if open == n_ticks {
            (open, begun) = (0, at);
        }
    }
    if open == 0 {
        parts.push(&line[begun..]);
    }
    parts
}

/// Returns the path of a word such as `@docs/style.md,`; `None`: it is no path.
fn path_of(word: &str) -> Option<&str> {
    let path = word.trim_start_matches('(').strip_prefix('@')?;
    let path = path.trim_end_matches([',', ';', ':', '!', '?', ')', '.']);
    let is_path = path.contains(['.', '/']) && path.len() <= LONGEST;
    (is_path && !path.chars().any(podbay_event::is_hidden)).then_some(path)
}

/// Returns an import's path in the project; `None`: it leads out of it.
fn joined(from: &str, written: &str) -> Option<String> {
    let below = written.strip_prefix("/workspace/");
    if below.is_none() && (written.starts_with('/') || written.starts_with('~')) {
        return None;
    }
    let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
    let folder = if below.is_some() { "" } else { folder };
    let mut names: Vec<&str> = folder.split('/').filter(|name| !name.is_empty()).collect();
    for name in below.unwrap_or(written).split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()?),
            name => names.push(name),
        }
    }
    Some(names.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(written(text), expected, "{text}");
    }

    #[test]
    fn words_with_an_at_outside_of_code_are_imports() {
        check(
            "See @docs/style.md, and (@README.md).",
            &["docs/style.md", "README.md"],
        );
        check("- @./a.md\n- @../b.md", &["./a.md", "../b.md"]);
        check("ask @ann or write to ann@b.example", &[]);
        check("use `@types/node.md` and ``@a/b.md``", &[]);
        check("```sh\n@a.md\n```\n@b.md", &["b.md"]);
        check("~~~\n```\n@a.md\n~~~\n@b.md", &["b.md"]);
        check(&format!("@{}.md", "x".repeat(300)), &[]);
        check("@a\u{202e}.md", &[]);
    }

    #[test]
    fn a_path_is_that_of_the_importing_files_folder_and_never_leads_out() {
        for (from, written, expected) in [
            ("AGENTS.md", "docs/a.md", Some("docs/a.md")),
            ("docs/AGENTS.md", "a.md", Some("docs/a.md")),
            ("docs/x/AGENTS.md", "../a.md", Some("docs/a.md")),
            ("docs/AGENTS.md", "/workspace/a.md", Some("a.md")),
            ("AGENTS.md", "../a.md", None),
            ("docs/AGENTS.md", "../../a.md", None),
            ("AGENTS.md", "/etc/passwd", None),
            ("AGENTS.md", "/workspace/../etc/passwd", None),
            ("AGENTS.md", "~/.ssh/config", None),
        ] {
            assert_eq!(joined(from, written).as_deref(), expected, "{written}");
        }
    }
}
