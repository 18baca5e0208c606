//! Changes of the project, as those who compared before and after report them, as an event.

use super::report::UNDO_DIFF;
use super::report::may_run_words;
use podbay_event::ChangedLines;
use podbay_event::ChangedPath;
use podbay_event::PathChanged;
use podbay_event::ProjectChanges;
use podbay_tools::FileChangeKind;
use podbay_wire::BytesPath;
use podbay_wire::keep::ChangeKind;
use podbay_wire::keep::EntryType;
use podbay_wire::keep::LineCount;
use podbay_wire::keep::NamedList;
use podbay_wire::keep::PathChange;
use podbay_wire::keep::PendingChanges;
use podbay_wire::keep::TurnEnded;

/// Returns how one path changed. Where a folder took the place of a file, that is the end of the
/// file: folders are only counted.
pub(super) fn changed_path(change: &PathChange, lines: Option<LineCount>) -> ChangedPath {
    let is_now_folder = change.entry == EntryType::Folder;
    let (how, is_folder) = match &change.what {
        ChangeKind::Type { before } if is_now_folder && *before != EntryType::Folder => {
            (PathChanged::Deleted, false)
        }
        ChangeKind::Type {
            before: EntryType::Folder,
        }
        | ChangeKind::Created => (PathChanged::Created, is_now_folder),
        ChangeKind::Deleted => (PathChanged::Deleted, is_now_folder),
        ChangeKind::Renamed { .. } => (PathChanged::Renamed, is_now_folder),
        ChangeKind::Modified | ChangeKind::Mode | ChangeKind::Type { .. } => {
            (PathChanged::Modified, is_now_folder)
        }
    };
    let from = match &change.what {
        ChangeKind::Renamed { from } => Some(from.to_string()),
        _ => None,
    };
    ChangedPath {
        path: change.path.to_string(),
        change: how,
        from,
        is_folder,
        lines: lines.map(|lines| ChangedLines {
            added: lines.n_added,
            removed: lines.n_removed,
        }),
    }
}

/// Returns what was looked through line by line.
pub(super) fn of_reviewed(reviewed: &PendingChanges, pending: bool, shown: &str) -> ProjectChanges {
    ProjectChanges {
        n: reviewed.changes.n,
        paths: reviewed
            .changes
            .first
            .iter()
            .map(|path| changed_path(&path.change, path.lines))
            .collect(),
        lines: Some(ChangedLines {
            added: reviewed.n_added,
            removed: reviewed.n_removed,
        }),
        may_run: may_run_words(&reviewed.may_run, shown),
        pending,
    }
}

/// Returns what a turn changed in place.
pub(super) fn of_turn(ended: &TurnEnded) -> ProjectChanges {
    ProjectChanges {
        n: ended.changes.n,
        paths: ended
            .changes
            .first
            .iter()
            .map(|path| changed_path(&path.change, path.lines))
            .collect(),
        lines: Some(ChangedLines {
            added: ended.n_added,
            removed: ended.n_removed,
        }),
        may_run: may_run_words(&ended.may_run, UNDO_DIFF),
        pending: false,
    }
}

/// Returns what file tools reported, for want of a comparison; folders have a slash at their end.
pub(super) fn of_tools(changed: &[(BytesPath, FileChangeKind)]) -> ProjectChanges {
    let paths: NamedList<ChangedPath> = changed
        .iter()
        .map(|(path, how)| {
            let path = path.to_text();
            ChangedPath {
                is_folder: path.ends_with('/'),
                path,
                change: match how {
                    FileChangeKind::Created => PathChanged::Created,
                    FileChangeKind::Modified => PathChanged::Modified,
                    FileChangeKind::Deleted => PathChanged::Deleted,
                },
                from: None,
                lines: None,
            }
        })
        .collect();
    ProjectChanges {
        n: paths.n,
        paths: paths.first,
        ..ProjectChanges::default()
    }
}
