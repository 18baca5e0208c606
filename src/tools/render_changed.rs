use std::fmt::Write;

use super::render::Rendered;
use super::render::omitted;
use podbay_wire::Change;
use podbay_wire::Changed;
use podbay_wire::DirectoryListing;
use podbay_wire::EntryKind;
use podbay_wire::FileChange;

/// Describes each changed file, one line each.
pub(super) fn render_changed(changed: &Changed) -> String {
    let mut text = String::new();
    if changed.dry_run {
        text.push_str("nothing was written (dry_run); all of it fits:\n");
    }
    for file in &changed.files {
        let _ = writeln!(text, "{}", line(file));
    }
    text.truncate(text.trim_end().len());
    text
}

fn line(file: &FileChange) -> String {
    let FileChange { path, from, .. } = file;
    let slash = if file.entries.is_some() { "/" } else { "" };
    let from = from.as_ref().map(ToString::to_string).unwrap_or_default();
    let mut text = match file.change {
        Change::Created => format!("created {path}{slash}"),
        Change::Modified => format!("edited {path}"),
        Change::Deleted => format!("deleted {path}{slash}"),
        Change::Moved => format!("moved {from}{slash} to {path}{slash}"),
        Change::Copied => format!("copied {from}{slash} to {path}{slash}"),
        Change::Kept => format!("{path}{slash} is there already"),
    };
    match file.entries {
        Some(1) => text.push_str(" with the entry in it"),
        Some(n) if n > 0 => {
            let _ = write!(text, " with the {n} entries in it");
        }
        _ => {}
    }
    if file.added + file.removed > 0 {
        let _ = write!(text, " (+{} -{} lines)", file.added, file.removed);
    }
    if file.replaced {
        text.push_str("; what was there is replaced");
    }
    for note in &file.notes {
        let _ = write!(text, "; {note}");
    }
    text
}

/// Renders a tree, each entry indented below its folder.
pub(super) fn render_tree(listing: &DirectoryListing) -> Rendered {
    let mut body = String::new();
    for entry in &listing.entries {
        let text = entry.path.to_string();
        let (folders, name) = text.rsplit_once('/').unwrap_or(("", &text));
        let depth = if folders.is_empty() {
            0
        } else {
            folders.split('/').count()
        };
        let _ = write!(body, "{:1$}{name}", "", depth * 2);
        let _ = match (entry.kind, &entry.target) {
            (EntryKind::Directory, _) => writeln!(body, "/"),
            (EntryKind::Link, Some(target)) => writeln!(body, " -> {target}"),
            (EntryKind::Other, _) => writeln!(body, " (special file)"),
            _ => writeln!(body),
        };
    }
    if listing.entries.is_empty() {
        body.push_str("(nothing in this folder)");
    }
    Rendered {
        body,
        footer: omitted(listing),
        ok: true,
        keep: false,
        unkept: 0,
    }
}
