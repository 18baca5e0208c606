//! The review on a screen: what is pending in the terms of the screen, and what was chosen there in
//! those of the keeper.

use std::collections::HashMap;

use podbay_app as app;
use podbay_app::BytesPath;
use podbay_app::ChangeKind;
use podbay_app::CountedPath;
use podbay_app::PendingChanges;
use podbay_app::RunTrigger;
use podbay_app::TakenHunks;
use podbay_app::TurnSelection;
use podbay_ui::tui::ReviewFile;
use podbay_ui::tui::ReviewView;

/// Whole lines of a diff that was cut.
const CUT: &str = "… ";

/// Returns what is shown of pending changes; `diff` is their unified diff.
pub(super) fn view(
    title: String,
    pending: &PendingChanges,
    diff: &str,
    discard: Option<&str>,
) -> ReviewView {
    let mut parts = parts(diff);
    let files: Vec<ReviewFile> = pending
        .changes
        .first
        .iter()
        .map(|path| file(path, pending, parts.remove(&head_of(path)).as_deref()))
        .collect();
    let mut notes: Vec<String> = pending.git.lines();
    let n_more = pending.changes.n.saturating_sub(files.len() as u64);
    if n_more > 0 {
        notes.push(format!(
            "{n_more} more paths are not shown here and stay pending: `podbay review apply` applies all"
        ));
    }
    if pending.is_may_run_cut {
        notes
            .push("other files than those that are marked may run on your machine, too".to_owned());
    }
    ReviewView {
        title,
        files,
        notes,
        discard: discard.map(str::to_owned),
    }
}

fn file(path: &CountedPath, pending: &PendingChanges, diff: Option<&str>) -> ReviewFile {
    let change = &path.change;
    let runs = pending
        .may_run
        .first
        .iter()
        .find(|file| file.path == change.path);
    let (head, hunks) = diff.map(split).unwrap_or_default();
    let is_cut = diff.is_some_and(|diff| {
        diff.lines()
            .last()
            .is_some_and(|last| last.starts_with(CUT))
    });
    let sign = match &change.what {
        ChangeKind::Created => 'A',
        ChangeKind::Modified | ChangeKind::Mode => 'M',
        ChangeKind::Deleted => 'D',
        ChangeKind::Type { .. } => 'T',
        ChangeKind::Renamed { .. } => 'R',
    };
    let name = match &change.what {
        ChangeKind::Renamed { from } => format!("{from} → {}", change.path),
        _ => change.path.to_string(),
    };
    let head = if diff.is_none() {
        vec!["not shown: `podbay review diff ID PATH` shows it alone".to_owned()]
    } else {
        head
    };
    ReviewFile {
        name,
        sign,
        lines: path.lines.map(|lines| (lines.n_added, lines.n_removed)),
        head,
        is_divisible: change.what == ChangeKind::Modified && !is_cut && !hunks.is_empty(),
        hunks,
        runs: runs.map(|file| file.why.clone()),
        runs_by_itself: runs.is_some_and(|file| file.when == RunTrigger::ByItself),
        is_conflict: pending.conflicts.first.contains(&change.path),
    }
}

/// Returns the line with which the diff of a path begins.
fn head_of(path: &CountedPath) -> String {
    let after = &path.change.path;
    match &path.change.what {
        ChangeKind::Renamed { from } => format!("diff --git a/{from} b/{after}"),
        _ => format!("diff --git a/{after} b/{after}"),
    }
}

/// Divides a diff into those of its paths, each by its first line. No line of a file begins like
/// one: in a hunk there is a sign before it.
fn parts(diff: &str) -> HashMap<String, String> {
    let mut parts: HashMap<String, String> = HashMap::new();
    let mut head = String::new();
    for line in diff.split_inclusive('\n') {
        if line.starts_with("diff --git ") {
            line.trim_end_matches('\n').clone_into(&mut head);
        }
        parts.entry(head.clone()).or_default().push_str(line);
    }
    parts
}

/// Divides the diff of a path into what stands before its hunks and these.
fn split(diff: &str) -> (Vec<String>, Vec<String>) {
    let (mut head, mut hunks): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for line in diff.split_inclusive('\n').skip(1) {
        if line.starts_with("@@ ") {
            hunks.push(line.to_owned());
        } else if let Some(hunk) = hunks.last_mut() {
            hunk.push_str(line);
        } else if !line.starts_with("--- ") && !line.starts_with("+++ ") {
            head.push(line.trim_end_matches('\n').to_owned());
        }
    }
    (head, hunks)
}

/// Returns what was chosen: for each file its taken hunks, or `None` where it is left.
pub(super) fn selection(
    pending: &PendingChanges,
    view: &ReviewView,
    chosen: &[Option<Vec<u32>>],
) -> TurnSelection {
    let files = pending.changes.first.iter().zip(&view.files).zip(chosen);
    let (mut only, mut hunks): (Vec<BytesPath>, Vec<TakenHunks>) = (Vec::new(), Vec::new());
    let (mut with_auto_run, mut is_all) = (false, true);
    for ((path, file), taken) in files {
        let Some(taken) = taken else {
            is_all = false;
            continue;
        };
        let change = &path.change;
        only.push(change.path.clone());
        if let ChangeKind::Renamed { from } = &change.what {
            // Half of a rename would be a copy.
            only.push(from.clone());
        }
        with_auto_run |= file.runs_by_itself;
        let n_hunks = file.hunks.len() as u32;
        if file.is_divisible && (taken.len() as u32) < n_hunks {
            is_all = false;
            hunks.push(TakenHunks {
                path: change.path.clone(),
                n_hunks,
                taken: taken.clone(),
            });
        }
    }
    // What is not on the screen was not looked at.
    let is_whole = is_all && pending.changes.n == pending.changes.first.len() as u64;
    TurnSelection {
        only: if is_whole { Vec::new() } else { only },
        hunks,
        with_auto_run,
    }
}

/// Returns the same in words, for where there is no screen.
pub(super) fn lines(view: &ReviewView) -> String {
    let mut out = String::new();
    for file in &view.files {
        let lines = file
            .lines
            .map(|(added, removed)| format!("  +{added} −{removed}"))
            .unwrap_or_default();
        let runs = match &file.runs {
            Some(why) if file.runs_by_itself => format!("  runs by itself: {why}"),
            Some(why) => format!("  may run: {why}"),
            None => String::new(),
        };
        let conflict = if file.is_conflict {
            "  changed since"
        } else {
            ""
        };
        out.push_str(&podbay_ui::text::line(&format!(
            "  {} {}{lines}{conflict}{runs}",
            file.sign, file.name
        )));
        out.push('\n');
    }
    for note in &view.notes {
        out.push_str(&podbay_ui::text::line(note));
        out.push('\n');
    }
    out
}

/// Whether somebody could decide on these on a screen: the app's own list may be empty where only
/// commits are pending.
pub(super) fn has_paths(pending: &app::PendingChanges) -> bool {
    !pending.changes.first.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "\
diff --git a/new b/new
new file mode 100644
--- /dev/null
+++ b/new
@@ -0,0 +1 @@
+diff --git a/x b/x
diff --git a/old b/moved
rename from old
rename to moved
diff --git a/text b/text
--- a/text
+++ b/text
@@ -1 +1 @@
-a
+b
@@ -9 +9 @@
-c
+d
";

    fn pending() -> PendingChanges {
        let path = |path: &str, what: serde_json::Value| {
            let change = serde_json::json!({ "path": path, "what": what, "entry": "file", "mode": null, "n_bytes": null, "unkept": null });
            serde_json::from_value::<CountedPath>(
                serde_json::json!({ "change": change, "lines": { "n_added": 1, "n_removed": 1 } }),
            )
            .expect("a path")
        };
        let mut pending = PendingChanges::default();
        for one in [
            path("new", "created".into()),
            path("moved", serde_json::json!({ "renamed": { "from": "old" } })),
            path("text", "modified".into()),
        ] {
            pending.changes.add(one);
        }
        pending
    }

    #[test]
    fn each_path_gets_its_own_part_of_the_diff() {
        let view = view("t".to_owned(), &pending(), DIFF, None);
        let all: Vec<(&str, char, usize, bool)> = view
            .files
            .iter()
            .map(|file| (&*file.name, file.sign, file.hunks.len(), file.is_divisible))
            .collect();
        assert_eq!(
            all,
            [
                ("new", 'A', 1, false),
                ("old → moved", 'R', 0, false),
                ("text", 'M', 2, true),
            ]
        );
        assert_eq!(view.files[0].head, ["new file mode 100644"]);
        assert_eq!(view.files[2].hunks[1], "@@ -9 +9 @@\n-c\n+d\n");
    }

    #[test]
    fn what_was_chosen_names_paths_and_hunks_and_all_of_it_names_none() {
        let pending = pending();
        let view = view("t".to_owned(), &pending, DIFF, None);
        let all = [Some(vec![0]), Some(vec![0]), Some(vec![0, 1])];
        assert_eq!(
            selection(&pending, &view, &all),
            TurnSelection::default(),
            "all of it"
        );
        let some = selection(&pending, &view, &[None, Some(vec![0]), Some(vec![1])]);
        let only: Vec<String> = some.only.iter().map(ToString::to_string).collect();
        assert_eq!(only, ["moved", "old", "text"]);
        assert_eq!(some.hunks.len(), 1);
        assert_eq!(
            (some.hunks[0].n_hunks, &*some.hunks[0].taken),
            (2, &[1][..])
        );
        let mut more = pending.clone();
        more.changes.n += 1;
        let shown = super::view("t".to_owned(), &more, DIFF, None);
        assert_eq!(selection(&more, &shown, &all).only.len(), 4);
        assert!(
            shown.notes[0].starts_with("1 more paths"),
            "{:?}",
            shown.notes
        );
    }
}
