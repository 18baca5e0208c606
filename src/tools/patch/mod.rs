//! Parses patches as models write them: unified diffs, as git and diff print them, and the format
//! between `*** Begin Patch` and `*** End Patch`.
//!
//! The guest locates the lines; here only the text is known. The parser is lenient where only one
//! meaning is possible (wrong counts, unless several lines are missing at the end, a code fence, an
//! empty line without its space, indentation of the whole patch); other errors name the file and
//! the line.

mod body;
mod sections;
mod unified;

use podbay_wire::FilePatch;
use podbay_wire::Hunk;
use podbay_wire::PatchLine;

/// Parses a patch; the error is for the model.
pub(super) fn parse(patch: &str) -> Result<Vec<FilePatch>, String> {
    let patch = patch.strip_prefix('\u{feff}').unwrap_or(patch);
    let mut lines: Vec<&str> = patch.split('\n').collect();
    if lines.last() == Some(&"") {
        lines.pop();
    }
    // Line ends common to the whole patch are ignored, and the last line may have none; `\r` on
    // only some lines is content.
    let before_last = lines
        .split_last()
        .map(|(_, before)| before)
        .filter(|before| !before.is_empty());
    if before_last
        .unwrap_or(&lines)
        .iter()
        .all(|line| line.ends_with('\r') || line.is_empty())
    {
        for line in &mut lines {
            *line = line.strip_suffix('\r').unwrap_or(line);
        }
    }
    without_indent(&mut lines);
    let is_section = |line: &str| {
        let line = line.trim();
        line == sections::BEGIN
            || [sections::ADD, sections::UPDATE, sections::DELETE]
                .iter()
                .any(|word| line.starts_with(word))
    };
    let files = match lines.iter().position(|line| is_section(line)) {
        // A diff may add a line that looks like one of these; its headers come before it then.
        Some(at) if !lines[..at].iter().any(|line| line.starts_with("@@")) => {
            sections::parse(&lines, at)?
        }
        _ => unified::parse(&lines)?,
    };
    if files.is_empty() {
        return Err("holds no change: it needs `--- a/FILE`, `+++ b/FILE` and `@@` lines, or `*** Begin Patch`".to_owned());
    }
    Ok(files)
}

/// Removes the indentation that all lines of a patch share, as in a list or in code.
fn without_indent(lines: &mut [&str]) {
    let is_begin = |line: &str| {
        let words = [
            sections::BEGIN,
            sections::ADD,
            sections::UPDATE,
            sections::DELETE,
            "diff --git ",
            "--- ",
        ];
        words.iter().any(|word| line.trim_start().starts_with(word))
    };
    let Some(begin) = lines.iter().position(|line| is_begin(line)) else {
        return;
    };
    let indent = &lines[begin][..lines[begin].len() - lines[begin].trim_start().len()];
    let all = &mut lines[begin..];
    if all
        .iter()
        .all(|line| line.trim().is_empty() || line.starts_with(indent))
    {
        for line in all {
            *line = line.strip_prefix(indent).unwrap_or("");
        }
    }
}

/// Returns the text of a new file, all of whose lines are added.
fn content(hunks: &[Hunk]) -> Option<String> {
    let mut text = String::new();
    for line in hunks.iter().flat_map(|hunk| &hunk.lines) {
        let PatchLine::Add(line) = line else {
            return None;
        };
        text.push_str(line);
        text.push('\n');
    }
    if hunks.last().is_some_and(|hunk| hunk.new_unended) {
        text.pop();
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_wire::PatchAction;

    fn lines(patch: &str) -> Vec<Vec<PatchLine>> {
        let files = parse(patch).expect("a patch");
        let hunks = files.into_iter().filter_map(|file| match file.action {
            PatchAction::Update { hunks, .. } => Some(hunks),
            _ => None,
        });
        hunks
            .map(|hunks| hunks.into_iter().flat_map(|hunk| hunk.lines).collect())
            .collect()
    }

    #[test]
    fn line_ends_common_to_the_patch_are_ignored() {
        let changed = vec![vec![
            PatchLine::Keep("a".to_owned()),
            PatchLine::Remove("b".to_owned()),
            PatchLine::Add("c".to_owned()),
        ]];
        let patch = "*** Begin Patch\n*** Update File: x\n@@\n a\n-b\n+c\n*** End Patch";
        for patch in [
            patch.to_owned(),
            patch.replace('\n', "\r\n"),
            patch.replace('\n', "\r\n") + "\r\n",
        ] {
            assert_eq!(lines(&patch), changed, "{patch:?}");
        }
        assert_eq!(
            lines("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-b\r\n+b")[0][0],
            PatchLine::Remove("b\r".to_owned())
        );
    }

    #[test]
    fn the_next_files_names_end_a_hunk_with_too_large_counts() {
        let next = "@@ -1 +1 @@\n-c\n+d\n";
        let first = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n+b\n";
        for names in [
            "--- a/y\n+++ b/y\n",
            "--- /dev/null\n+++ b/y\n",
            "diff --git a/y b/y\n--- a/y\n+++ b/y\n",
            "--- y\n+++ y\n",
        ] {
            let n_files = parse(&format!("{first}{names}{next}")).map(|files| files.len());
            assert_eq!(
                n_files.ok(),
                (!names.contains("null")).then_some(2),
                "{names}"
            );
        }
        // By the header's counts, two names are two lines of a file.
        assert_eq!(
            lines(&format!("{first}--- one\n+++ two\n{next}"))[0].len(),
            6
        );
    }
}
