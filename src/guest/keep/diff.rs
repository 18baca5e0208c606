use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;
use std::time::Instant;

use super::super::line_diff::LineDiff;
use super::Error;
use super::Store;
use super::compare::Change;
use super::compare::path_changes;
use super::node::Node;
use super::text::is_binary;
use super::text::is_text;
use podbay_wire::BytesPath;
use podbay_wire::keep::ChangeKind;
use podbay_wire::keep::CountedPath;
use podbay_wire::keep::EntryType;
use podbay_wire::keep::LineCount;
use podbay_wire::keep::PathChange;

/// Most bytes of a unified diff of one file.
pub const MOST_FILE_DIFF: usize = 128 * 1024;

/// Most bytes of all diffs together: a frame holds 8 MiB, and a byte may take six in JSON.
pub const MOST_DIFF: usize = 1024 * 1024;

/// Most bytes of the diff of a single requested file: all lines of two texts of the largest size
/// fit.
const MOST_ALONE: usize = 4 * super::text::MOST_TEXT + (1 << 16);

/// Most bytes of it as JSON, in a frame with the rest of the answer.
const MOST_ALONE_AS_JSON: usize = 6 << 20;

/// Time for all comparisons together.
const WHOLE_TIME: Duration = Duration::from_secs(5);

/// Changes as unified diffs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    pub text: String,
    /// Paths that were left out because of size or time.
    pub n_left_out: u64,
    /// Paths of which only the beginning is shown.
    pub n_cut: u64,
    /// Line counts by path, also of truncated diffs; `None`: it is not text.
    pub lines: BTreeMap<BytesPath, Option<LineCount>>,
}

impl Diff {
    /// Adds the lines to a change of its.
    pub fn counted(&self, change: PathChange) -> CountedPath {
        let known = self.lines.get(&change.path).copied().flatten();
        CountedPath {
            lines: known.filter(|_| has_lines(&change)),
            change,
        }
    }
}

/// Whether a change is one of lines: a folder has some only if it replaced a file.
pub(super) fn has_lines(change: &PathChange) -> bool {
    change.entry != EntryType::Folder || matches!(change.what, ChangeKind::Type { .. })
}

/// Writes changes as a unified diff in git's format, of at most `most` bytes. Names are shown as
/// [`BytesPath`] shows them; bytes that are not UTF-8 as escapes.
pub fn unified(store: &Store, changes: &[Change], most: usize) -> Result<Diff, Error> {
    unified_with(store, changes, MOST_FILE_DIFF, most)
}

/// Writes the diff of a single requested path: complete if it fits into an answer.
pub fn unified_alone(store: &Store, changes: &[Change]) -> Result<Diff, Error> {
    let whole = unified_with(store, changes, MOST_ALONE, MOST_ALONE)?;
    let fits = serde_json::to_vec(&whole.text).is_ok_and(|json| json.len() <= MOST_ALONE_AS_JSON);
    if fits {
        Ok(whole)
    } else {
        unified(store, changes, MOST_DIFF)
    }
}

fn unified_with(
    store: &Store,
    changes: &[Change],
    most_of_one: usize,
    most: usize,
) -> Result<Diff, Error> {
    let mut difference = Diff::default();
    let start = Instant::now();
    for told in path_changes(changes) {
        if difference.text.len() >= most || start.elapsed() > WHOLE_TIME {
            difference.n_left_out += 1;
            continue;
        }
        let find = |path: &BytesPath| {
            changes
                .binary_search_by(|change| change.path.cmp(path))
                .ok()
                .map(|at| &changes[at])
        };
        let change = find(&told.path);
        let from = match &told.what {
            ChangeKind::Renamed { from } => find(from),
            _ => change,
        };
        let before = from.and_then(|change| change.before.as_ref());
        let after = change.and_then(|change| change.after.as_ref());
        let PathDiff {
            text,
            is_cut,
            lines,
        } = path_diff(store, &told, before, after, most_of_one)?;
        match lines {
            LineCounts::Lines(lines) => _ = difference.lines.insert(told.path, Some(lines)),
            LineCounts::NoText => _ = difference.lines.insert(told.path, None),
            LineCounts::No => {}
        }
        if difference.text.len() + text.len() > most {
            difference.n_left_out += 1;
        } else {
            difference.text.push_str(&text);
            difference.n_cut += u64::from(is_cut);
        }
    }
    Ok(difference)
}

/// The diff of one path.
struct PathDiff {
    text: String,
    is_cut: bool,
    lines: LineCounts,
}

/// The line counts of a diff.
enum LineCounts {
    Lines(LineCount),
    /// Not text.
    NoText,
    No,
}

fn path_diff(
    store: &Store,
    told: &PathChange,
    before: Option<&Node>,
    after: Option<&Node>,
    most: usize,
) -> Result<PathDiff, Error> {
    let as_it_is = |text: String, lines: LineCounts| {
        Ok(PathDiff {
            text,
            is_cut: false,
            lines,
        })
    };
    let path = &told.path;
    let old_path = match &told.what {
        ChangeKind::Renamed { from } => from,
        _ => path,
    };
    let mut text = format!("diff --git a/{old_path} b/{path}\n");
    match (before, after) {
        (None, Some(Node::Unkept { .. })) | (Some(Node::Unkept { .. }), None) => {}
        (None, Some(after)) => {
            _ = writeln!(text, "new {} mode {:06o}", word(after), git_mode(after));
        }
        (Some(before), None) => {
            _ = writeln!(
                text,
                "deleted {} mode {:06o}",
                word(before),
                git_mode(before)
            );
        }
        (Some(before), Some(after)) if git_mode(before) != git_mode(after) => {
            _ = writeln!(
                text,
                "old mode {:06o}\nnew mode {:06o}",
                git_mode(before),
                git_mode(after)
            );
        }
        _ => {}
    }
    if let ChangeKind::Renamed { from } = &told.what {
        _ = writeln!(text, "rename from {from}\nrename to {path}");
    }
    if let Some(why) = told.unkept {
        _ = writeln!(text, "Not shown: {why}");
        // The other side is there, if it can be read.
        if !matches!(
            (before, after),
            (Some(Node::File { .. }), Some(_)) | (Some(_), Some(Node::File { .. }))
        ) {
            return as_it_is(text, LineCounts::No);
        }
    }
    // If one side is not in the snapshot, there are more lines.
    let known = |lines: LineCounts| {
        if told.unkept.is_none() {
            lines
        } else {
            LineCounts::No
        }
    };
    let [old, new] = [content(store, before)?, content(store, after)?];
    if old == new {
        return as_it_is(text, known(LineCounts::Lines(LineCount::default())));
    }
    if is_binary(&old) || is_binary(&new) {
        _ = writeln!(text, "Binary files a/{old_path} and b/{path} differ");
        return as_it_is(text, known(LineCounts::NoText));
    }
    if !is_text(&old) || !is_text(&new) {
        _ = writeln!(
            text,
            "Not shown: too large, {} bytes before and {} now",
            old.len(),
            new.len()
        );
        return as_it_is(text, LineCounts::No);
    }
    let header = [
        before.map(|_| format!("a/{old_path}")),
        after.map(|_| format!("b/{path}")),
    ]
    .map(|name| name.unwrap_or("/dev/null".into()));
    let [old, new] = [readable(&old), readable(&new)];
    let diff = LineDiff::of(&old, &new);
    let lines = known(LineCounts::Lines(LineCount {
        n_added: diff.n_added(),
        n_removed: diff.n_removed(),
    }));
    let whole = diff.unified(&header[0], &header[1]);
    if whole.len() <= most {
        text.push_str(&whole);
        return as_it_is(text, lines);
    }
    let end = whole.floor_char_boundary(most);
    let end = whole[..end].rfind('\n').map_or(0, |at| at + 1);
    _ = writeln!(
        text,
        "{}… {} more lines of the diff",
        &whole[..end],
        whole[end..].lines().count()
    );
    Ok(PathDiff {
        text,
        is_cut: true,
        lines,
    })
}

/// Returns bytes as text. Bytes that are not UTF-8 become escapes, so that they differ from each
/// other.
pub(super) fn readable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// Returns what is compared: the content of a file, or the target of a link.
pub(super) fn content(store: &Store, node: Option<&Node>) -> Result<Vec<u8>, Error> {
    match node {
        Some(Node::File { object, .. }) => store.get(object),
        Some(Node::Link { target }) => Ok(target.as_bytes().to_vec()),
        Some(Node::Folder { .. } | Node::Unkept { .. }) | None => Ok(Vec::new()),
    }
}

fn word(node: &Node) -> &'static str {
    if node.is_folder() { "folder" } else { "file" }
}

fn git_mode(node: &Node) -> u32 {
    match node {
        Node::Folder { mode, .. } => 0o040_000 | mode,
        Node::File { mode, .. } => 0o100_000 | mode,
        Node::Link { .. } => 0o120_000,
        Node::Unkept { .. } => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::compare::compare;
    use super::super::text::MOST_TEXT;
    use super::*;
    use crate::keep::testing::Scene;

    #[test]
    fn a_diff_shows_text_modes_renames_links_and_binary_files() {
        let scene = Scene::new();
        scene.write("text", "one\ntwo\n");
        scene.write("image", b"\x89PNG\0\0");
        scene.write("run", "x\n");
        scene.write("old name", "moved\n");
        scene.link("here", "link");
        let before = scene.take().id;
        scene.write("text", "one\n2\nthree\n");
        scene.write("image", b"\x89PNG\0\x01");
        scene.mode("run", 0o755);
        scene.remove("old name");
        scene.write(b"new\nname", "moved\n");
        scene.remove("link");
        scene.link("there", "link");
        scene.make("folder");
        std::fs::File::create(scene.path("large"))
            .expect("made")
            .set_len(1 << 30)
            .expect("grows");
        let after = scene.take().id;
        let store = scene.store();
        let difference = unified(
            &store,
            &compare(&store, &before, &after).expect("compares"),
            MOST_DIFF,
        )
        .expect("written");
        insta::assert_snapshot!(difference.text, @r"
        diff --git a/folder b/folder
        new folder mode 040755
        diff --git a/image b/image
        Binary files a/image and b/image differ
        diff --git a/large b/large
        Not shown: larger than 64 MiB
        diff --git a/link b/link
        --- a/link
        +++ b/link
        @@ -1 +1 @@
        -here
        \ No newline at end of file
        +there
        \ No newline at end of file
        diff --git a/old name b/new\x0aname
        rename from old name
        rename to new\x0aname
        diff --git a/run b/run
        old mode 100644
        new mode 100755
        diff --git a/text b/text
        --- a/text
        +++ b/text
        @@ -1,2 +1,3 @@
         one
        -two
        +2
        +three
        ");
        assert_eq!(difference.n_left_out, 0);
    }

    #[test]
    fn only_a_newline_ends_a_line_and_invalid_bytes_stay_distinct() {
        let hunks = |old: &str, new: &str| LineDiff::of(old, new).hunks();
        assert_eq!(
            hunks("a\rb\nc\n", "a\rB\nc\n"),
            "@@ -1,2 +1,2 @@\n-a\rb\n+a\rB\n c\n"
        );
        let end = "\n\\ No newline at end of file\n";
        assert_eq!(
            hunks("a\r", "b\r"),
            format!("@@ -1 +1 @@\n-a\r{end}+b\r{end}")
        );
        assert_eq!(hunks("a\n", "a\r\n"), "@@ -1 +1 @@\n-a\n+a\r\n");
        assert_eq!(
            hunks(&readable(b"\xe9t\xc3\xa9\n"), &readable(b"\xe8\n")),
            "@@ -1 +1 @@\n-\\xe9té\n+\\xe8\n"
        );
    }

    #[test]
    fn a_text_too_large_to_show_is_not_called_binary() {
        let scene = Scene::new();
        scene.write("large", "line\n");
        let before = scene.take().id;
        scene.write("large", "line\n".repeat(MOST_TEXT / 5 + 1));
        scene.write("zeros", vec![0; MOST_TEXT + 1]);
        let after = scene.take().id;
        let store = scene.store();
        let difference = unified(
            &store,
            &compare(&store, &before, &after).expect("compares"),
            MOST_DIFF,
        )
        .expect("written");
        insta::assert_snapshot!(difference.text, @r"
        diff --git a/large b/large
        Not shown: too large, 5 bytes before and 1048580 now
        diff --git a/zeros b/zeros
        new file mode 100644
        Binary files a/zeros and b/zeros differ
        ");
    }

    #[test]
    fn the_diff_of_a_single_file_is_complete_if_it_fits_into_an_answer() {
        let scene = Scene::new();
        let texts = ["a\n".repeat(MOST_TEXT / 2), "\u{1}".repeat(MOST_TEXT)];
        scene.write("file", &texts[0]);
        let before = scene.take().id;
        for (text, n_cut) in [("b\n".repeat(MOST_TEXT / 2), 0), (texts[1].clone(), 1)] {
            scene.write("file", &text);
            let after = scene.take().id;
            let changes = compare(&scene.store(), &before, &after).expect("compares");
            let alone = unified_alone(&scene.store(), &changes).expect("written");
            assert_eq!((alone.n_cut, alone.n_left_out), (n_cut, 0));
            assert_eq!(alone.text.contains(&format!("+{}", &text[..2])), n_cut == 0);
            assert_eq!(
                unified(&scene.store(), &changes, MOST_DIFF)
                    .expect("written")
                    .n_cut,
                1
            );
        }
    }

    #[test]
    fn a_long_diff_is_truncated_and_says_so() {
        let scene = Scene::new();
        let before = scene.take().id;
        for n in 0..30 {
            scene.write(format!("{n:02}"), format!("{n}\n").repeat(100_000));
        }
        let after = scene.take().id;
        let store = scene.store();
        let difference = unified(
            &store,
            &compare(&store, &before, &after).expect("compares"),
            MOST_DIFF,
        )
        .expect("written");
        assert!(difference.text.len() <= MOST_DIFF);
        assert_eq!((difference.n_left_out, difference.n_cut), (23, 7));
        assert!(difference.text.contains("… "), "each is cut");
        let n_lines = |path: &str| {
            difference.lines[&BytesPath::from(path)].map(|lines| (lines.n_added, lines.n_removed))
        };
        assert_eq!(
            (n_lines("00"), n_lines("06")),
            (Some((100_000, 0)), Some((100_000, 0))),
            "all are counted"
        );
    }
}
