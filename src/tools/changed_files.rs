use podbay_wire::BytesPath;
use podbay_wire::Change;
use podbay_wire::FileChange;
use podbay_wire::Output;

/// How a file changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileChangeKind {
    Created,
    Modified,
    Deleted,
}

/// Returns which files a call's output says it changed, folders with a trailing slash. Changes by
/// commands are not known here.
pub(super) fn changed_files(output: &Output) -> Vec<(BytesPath, FileChangeKind)> {
    let made = |created| {
        if created {
            FileChangeKind::Created
        } else {
            FileChangeKind::Modified
        }
    };
    match output {
        Output::Written(written) => vec![(written.path.clone(), made(written.created))],
        Output::Edited(edited) => vec![(edited.path.clone(), made(edited.created))],
        Output::Changed(changed) if !changed.dry_run => {
            changed.files.iter().flat_map(of_file).collect()
        }
        _ => Vec::new(),
    }
}

fn of_file(file: &FileChange) -> Vec<(BytesPath, FileChangeKind)> {
    let named = |path: &BytesPath| match file.entries {
        Some(_) => BytesPath::from_bytes([path.as_bytes(), b"/"].concat()),
        None => path.clone(),
    };
    let here = |changed_files| (named(&file.path), changed_files);
    let arrived = if file.replaced {
        FileChangeKind::Modified
    } else {
        FileChangeKind::Created
    };
    match file.change {
        Change::Created | Change::Copied => vec![here(arrived)],
        Change::Modified => vec![here(FileChangeKind::Modified)],
        Change::Deleted => vec![here(FileChangeKind::Deleted)],
        Change::Moved => file
            .from
            .iter()
            .map(|from| (named(from), FileChangeKind::Deleted))
            .chain([here(arrived)])
            .collect(),
        Change::Kept => Vec::new(),
    }
}

/// Merges a change into the earlier ones: created and deleted is no change, deleted and created is
/// a modification.
pub fn record_change(
    all: &mut Vec<(BytesPath, FileChangeKind)>,
    path: BytesPath,
    now: FileChangeKind,
) {
    let Some(at) = all.iter().position(|(known, _)| *known == path) else {
        return all.push((path, now));
    };
    match (all[at].1, now) {
        (FileChangeKind::Created, FileChangeKind::Deleted) => drop(all.remove(at)),
        (FileChangeKind::Created, _) => {}
        (_, FileChangeKind::Deleted) => all[at].1 = FileChangeKind::Deleted,
        (_, FileChangeKind::Created | FileChangeKind::Modified) => {
            all[at].1 = FileChangeKind::Modified;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(steps: &[FileChangeKind], expected: Option<FileChangeKind>) {
        let mut all = Vec::new();
        for step in steps {
            record_change(&mut all, "a".into(), *step);
        }
        assert_eq!(
            all.first().map(|(_, changed_files)| *changed_files),
            expected,
            "{steps:?}"
        );
    }

    #[test]
    fn changes_are_merged_relative_to_the_start() {
        use FileChangeKind::Created;
        use FileChangeKind::Deleted;
        use FileChangeKind::Modified;
        check(&[Created, Modified], Some(Created));
        check(&[Created, Deleted], None);
        check(&[Modified, Deleted], Some(Deleted));
        check(&[Deleted, Created], Some(Modified));
        check(&[Modified, Modified], Some(Modified));
    }

    #[test]
    fn a_move_deletes_one_name_and_creates_another() {
        let moved = FileChange {
            path: "b".into(),
            from: Some("a".into()),
            change: Change::Moved,
            ..FileChange::default()
        };
        assert_eq!(
            of_file(&moved),
            [
                ("a".into(), FileChangeKind::Deleted),
                ("b".into(), FileChangeKind::Created)
            ]
        );
        let folder = FileChange {
            entries: Some(3),
            replaced: false,
            ..moved
        };
        assert_eq!(
            of_file(&folder),
            [
                ("a/".into(), FileChangeKind::Deleted),
                ("b/".into(), FileChangeKind::Created)
            ]
        );
    }
}
