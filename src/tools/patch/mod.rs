//! Reads a patch as models write it into what it does to each file: unified diffs, as git and diff print them, and the sections between
//! `*** Begin Patch` and `*** End Patch`.
//!
//! Where the lines stand is found in the box; here nothing is known but the text. It is read leniently where it can only be meant one way
//! (wrong counts, but for lines that are missing where the text ends, a fence around it, an empty line without its space), and the file's name and the line are said where it cannot be read.

mod body;
mod sections;
mod unified;

use crate::wire::FilePatch;
use crate::wire::Hunk;
use crate::wire::PatchLine;

/// Reads a patch; the error is for the model.
pub(super) fn parse(patch: &str) -> Result<Vec<FilePatch>, String> {
    let patch = patch.strip_prefix('\u{feff}').unwrap_or(patch);
    let mut lines: Vec<&str> = patch.split('\n').collect();
    if lines.last() == Some(&"") {
        lines.pop();
    }
    // Line ends of the whole patch say nothing; some lines with `\r` among others mean it.
    if lines.iter().all(|line| line.ends_with('\r') || line.is_empty()) {
        for line in &mut lines {
            *line = line.strip_suffix('\r').unwrap_or(line);
        }
    }
    let is_section = |line: &str| {
        let line = line.trim_end();
        line == sections::BEGIN || [sections::ADD, sections::UPDATE, sections::DELETE].iter().any(|word| line.starts_with(word))
    };
    let files = match lines.iter().position(|line| is_section(line)) {
        // A diff may well add a line that looks like one of these; it then has its headers before.
        Some(at) if !lines[..at].iter().any(|line| line.starts_with("@@")) => sections::parse(&lines, at)?,
        _ => unified::parse(&lines)?,
    };
    if files.is_empty() {
        return Err("holds no change: it needs `--- a/FILE`, `+++ b/FILE` and `@@` lines, or `*** Begin Patch`".to_owned());
    }
    Ok(files)
}

/// Returns the text of a new file, whose lines are all new.
fn content(hunks: &[Hunk]) -> Option<String> {
    let mut text = String::new();
    for line in hunks.iter().flat_map(|hunk| &hunk.lines) {
        let PatchLine::Add(line) = line else { return None };
        text.push_str(line);
        text.push('\n');
    }
    if hunks.last().is_some_and(|hunk| hunk.new_unended) {
        text.pop();
    }
    Some(text)
}
