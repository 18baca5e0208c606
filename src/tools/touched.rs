use podbay_wire::BytesPath;
use podbay_wire::Change;
use podbay_wire::FileChange;
use podbay_wire::Output;

/// How a file changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touched {
    Created,
    Modified,
    Deleted,
}

/// Returns which files a call's output says it changed, folders with a trailing slash. Changes by
/// commands are not known here.
pub(super) fn touched(output: &Output) -> Vec<(BytesPath, Touched)> {
    let made = |created| {
        if created {
            Touched::Created
        } else {
            Touched::Modified
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

fn of_file(file: &FileChange) -> Vec<(BytesPath, Touched)> {
    let named = |path: &BytesPath| match file.entries {
        Some(_) => BytesPath::from_bytes([path.as_bytes(), b"/"].concat()),
        None => path.clone(),
    };
    let here = |touched| (named(&file.path), touched);
    let arrived = if file.replaced {
        Touched::Modified
    } else {
        Touched::Created
    };
    match file.change {
        Change::Created | Change::Copied => vec![here(arrived)],
        Change::Modified => vec![here(Touched::Modified)],
        Change::Deleted => vec![here(Touched::Deleted)],
        Change::Moved => file
            .from
            .iter()
            .map(|from| (named(from), Touched::Deleted))
            .chain([here(arrived)])
            .collect(),
        Change::Kept => Vec::new(),
    }
}

/// Merges a change into the earlier ones: created and deleted is no change, deleted and created is
/// a modification.
pub fn note(all: &mut Vec<(BytesPath, Touched)>, path: BytesPath, now: Touched) {
    let Some(at) = all.iter().position(|(known, _)| *known == path) else {
        return all.push((path, now));
    };
    match (all[at].1, now) {
        (Touched::Created, Touched::Deleted) => drop(all.remove(at)),
        (Touched::Created, _) => {}
        (_, Touched::Deleted) => all[at].1 = Touched::Deleted,
        (_, Touched::Created | Touched::Modified) => all[at].1 = Touched::Modified,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(steps: &[Touched], expected: Option<Touched>) {
        let mut all = Vec::new();
        for step in steps {
            note(&mut all, "a".into(), *step);
        }
        assert_eq!(
            all.first().map(|(_, touched)| *touched),
            expected,
            "{steps:?}"
        );
    }

    #[test]
    fn what_is_told_is_the_difference_from_the_beginning() {
        use Touched::Created;
        use Touched::Deleted;
        use Touched::Modified;
        check(&[Created, Modified], Some(Created));
        check(&[Created, Deleted], None);
        check(&[Modified, Deleted], Some(Deleted));
        check(&[Deleted, Created], Some(Modified));
        check(&[Modified, Modified], Some(Modified));
    }

    #[test]
    fn a_move_takes_one_name_and_gives_another() {
        let moved = FileChange {
            path: "b".into(),
            from: Some("a".into()),
            change: Change::Moved,
            ..FileChange::default()
        };
        assert_eq!(
            of_file(&moved),
            [
                ("a".into(), Touched::Deleted),
                ("b".into(), Touched::Created)
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
                ("a/".into(), Touched::Deleted),
                ("b/".into(), Touched::Created)
            ]
        );
    }
}
