//! The changes of a turn that were applied at its end, in words.

use super::project_changes::of_reviewed;
use super::report::UNDO_DIFF;
use super::report::may_run_words;
use super::review::how_auto_run_comes;
use super::review::waits_to_be_run;
use podbay_event::ProjectChanges;
use podbay_event::SessionId;
use podbay_sandbox::HeldTurn;
use podbay_wire::BytesPath;
use podbay_wire::keep::LeftReason;

/// How many things of one kind are named.
const MOST_NAMED: usize = 20;

/// What a turn changed.
#[derive(Clone, Debug)]
pub struct Came {
    turn: HeldTurn,
    session: SessionId,
}

impl Came {
    pub(super) fn new(turn: HeldTurn, session: &SessionId) -> Self {
        Self {
            turn,
            session: session.clone(),
        }
    }

    /// Returns how much came, such as "3 files, +12 −4"; `None`: nothing.
    pub fn summary(&self) -> Option<String> {
        let changes = self.changes();
        (changes.n > 0).then(|| changes.words())
    }

    /// Returns what came.
    pub(super) fn changes(&self) -> ProjectChanges {
        of_reviewed(&self.turn.turn.came, false, UNDO_DIFF)
    }

    /// Returns what else a user should know of it, a line each.
    pub fn notes(&self) -> Vec<String> {
        let HeldTurn {
            turn,
            git,
            background,
        } = &self.turn;
        let mut notes: Vec<String> = Vec::new();
        let n_resumed = turn.resumed.as_ref().map_or(0, |resumed| resumed.changed.n);
        notes.extend(
            (n_resumed > 0)
                .then(|| format!("resumed an apply that was interrupted: {n_resumed} paths")),
        );
        let left = turn
            .applied
            .conflicts
            .first
            .iter()
            .chain(&turn.applied.refused.first);
        notes.extend(
            left.clone()
                .take(MOST_NAMED)
                .map(|left| format!("not applied: {} {}", left.path, left.reason)),
        );
        let n_left = turn.applied.conflicts.n + turn.applied.refused.n;
        let n_named = left.count().min(MOST_NAMED) as u64;
        if n_left > n_named {
            notes.push(format!("not applied: {} more", n_left - n_named));
        }
        notes.extend(
            turn.applied
                .stopped
                .iter()
                .map(|why| format!("not all is applied: {why}")),
        );
        if turn.n_left > 0 {
            notes.push(format!(
                "what is not applied is pending, and the session continues with it; when this chat has ended: `podbay review diff {0}`, then `apply` or \
                 `discard`",
                self.session
            ));
        }
        if waits_to_be_run(&turn.applied) {
            notes.push(format!("or {}", how_auto_run_comes(self.session.as_str())));
        }
        if git.is_none() && self.turn.has_pending_commits() {
            let why = if background.is_empty() {
                "like what is not applied".to_owned()
            } else {
                format!("until {} ends", background.join(", "))
            };
            notes.push(format!("commits are pending {why}, or until the chat ends"));
        }
        notes.extend(git.iter().flat_map(podbay_sandbox::git::Ended::not_taken));
        notes
    }

    /// Returns what came that may run on the user's machine later, each with the reason.
    pub fn may_run(&self) -> Vec<String> {
        may_run_words(&self.turn.turn.came.may_run, UNDO_DIFF)
    }

    /// Whether that is known.
    pub fn is_may_run_known(&self) -> bool {
        !self.turn.turn.came.is_may_run_cut
    }

    /// Returns what was left only because programs on the user's machine would run it.
    pub fn left_to_be_run(&self) -> impl Iterator<Item = &BytesPath> {
        let left = self.turn.turn.applied.refused.first.iter();
        left.filter(|left| matches!(left.reason, LeftReason::MayRun { .. }))
            .map(|left| &left.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_wire::keep::ChangeKind;
    use podbay_wire::keep::CountedPath;
    use podbay_wire::keep::EntryType;
    use podbay_wire::keep::LeftPath;
    use podbay_wire::keep::LeftReason;
    use podbay_wire::keep::PathChange;
    use podbay_wire::keep::ReviewedTurn;

    fn came(turn: ReviewedTurn) -> Came {
        Came::new(
            HeldTurn {
                turn,
                git: None,
                background: Vec::new(),
            },
            &SessionId::random(),
        )
    }

    #[test]
    fn what_came_is_summed_up_and_what_did_not_is_named_with_the_way_to_it() {
        assert_eq!(
            (
                came(ReviewedTurn::default()).summary(),
                came(ReviewedTurn::default()).notes()
            ),
            (None, Vec::new())
        );
        let mut turn = ReviewedTurn::default();
        let change = |path: &str| PathChange {
            path: path.into(),
            what: ChangeKind::Modified,
            entry: EntryType::File,
            mode: None,
            n_bytes: Some(1),
            unkept: None,
        };
        turn.came.changes = ["a", "b", "c"]
            .map(|path| CountedPath {
                change: change(path),
                lines: None,
            })
            .into_iter()
            .collect();
        (turn.came.n_added, turn.came.n_removed) = (12, 4);
        assert_eq!(
            came(turn.clone()).summary().as_deref(),
            Some("3 files, +12 −4")
        );
        turn.applied.conflicts.add(LeftPath {
            path: "d".into(),
            reason: LeftReason::ChangedSince,
        });
        turn.applied.refused.add(LeftPath {
            path: ".envrc".into(),
            reason: LeftReason::MayRun {
                why: "a shell runs it".to_owned(),
            },
        });
        turn.n_left = 2;
        let notes = came(turn).notes();
        assert!(
            notes[0].starts_with("not applied: d was changed by another program")
                && notes[1].starts_with("not applied: .envrc"),
            "{notes:?}"
        );
        assert!(
            notes[2].contains("podbay review diff") && notes[3].contains("--accept-auto-run"),
            "{notes:?}"
        );
    }
}
