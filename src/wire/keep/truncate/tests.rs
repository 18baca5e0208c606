use super::*;
use crate::BytesPath;
use crate::frame;
use crate::keep::ChangeKind;
use crate::keep::CountedPath;
use crate::keep::EntryType;
use crate::keep::FromKeeper;
use crate::keep::GitRefusal;
use crate::keep::ImportedGit;
use crate::keep::LeftPath;
use crate::keep::LeftReason;
use crate::keep::MayRun;
use crate::keep::MovedOutGit;
use crate::keep::MovedOutRepository;
use crate::keep::MovedRef;
use crate::keep::NotImported;
use crate::keep::PathChange;
use crate::keep::PendingRef;
use crate::keep::PendingRepository;
use crate::keep::PreparedRepository;
use crate::keep::ReviewApplied;
use crate::keep::ReviewDifference;
use crate::keep::RunTrigger;
use crate::keep::TurnDifference;
use crate::keep::TurnEnded;
use crate::keep::TurnState;
use crate::keep::TurnSummary;
use crate::keep::UndoOutcome;
use crate::keep::UndoneTurn;
use podbay_soak as soak;

/// The longest path, of characters that need the most bytes in JSON.
fn long(n: usize) -> BytesPath {
    BytesPath::from_bytes([vec![1; 4090], format!("{n:05}").into_bytes()].concat())
}

/// Whether it fits into one frame.
fn goes(answer: GitAnswer) -> bool {
    frame::encode(&FromKeeper::Done {
        id: 1,
        kept: Kept::Git {
            answer: Box::new(answer),
        },
    })
    .is_ok()
}

#[test]
fn the_report_of_a_huge_session_fits_into_one_frame() {
    let aside = |n: usize| MovedOutRepository {
        left: Some(long(n)),
        problem: Some("x".repeat(5000)),
        ..MovedOutRepository::at(&long(n))
    };
    let moved = NamedList {
        n: 9000,
        first: (0..200).map(aside).collect(),
    };
    let not_imported = |n: usize| NotImported {
        what: if n == 299 {
            "HEAD".into()
        } else {
            format!("refs/heads/{n}").as_str().into()
        },
        why: "x".repeat(900),
    };
    let first = ImportedRepository {
        path: ".git".into(),
        moved: (0..300)
            .map(|n| MovedRef {
                name: long(n),
                old: None,
                new: "1".repeat(40),
            })
            .collect(),
        not_imported: (0..300).map(not_imported).collect(),
        notes: vec!["x".repeat(4000); 300],
        ..ImportedRepository::default()
    };
    let other = |n: usize| ImportedRepository {
        path: long(n),
        not_imported: vec![not_imported(n)],
        ..ImportedRepository::default()
    };
    let mut settled = SettledGit {
        imported: ImportedGit {
            repositories: std::iter::once(first).chain((1..400).map(other)).collect(),
            n_more: 0,
        },
        aside: MovedOutGit {
            moved,
            ..MovedOutGit::default()
        },
        is_settled: false,
        goes_on: false,
        held: (0..300)
            .map(|n| MayRun {
                path: long(n),
                why: "x".repeat(4000),
                when: RunTrigger::ByItself,
            })
            .collect(),
        may_run: NamedList::default(),
    };
    assert!(!goes(GitAnswer::Settled(settled.clone())), "as it was");
    settled.fit();
    let (first, imported) = (&settled.imported.repositories[0], &settled.imported);
    assert_eq!((settled.aside.moved.n, settled.held.n), (9000, 300));
    assert!(
        settled.aside.moved.first.len() > 20 && settled.held.first.len() > 20,
        "some are named"
    );
    assert_eq!(
        first.not_imported.len() as u64 + first.n_more.not_imported,
        300
    );
    assert_eq!(
        (
            first.moved.len() as u64 + first.n_more.moved,
            first.notes.len() as u64 + first.n_more.notes
        ),
        (300, 300)
    );
    assert!(
        first.not_imported[0].what.as_bytes() == b"HEAD",
        "it is named first"
    );
    assert!(
        imported.n_more > 0
            && imported.repositories.len() as u64 + imported.n_more == 400
            && !imported.is_whole()
    );
    assert!(
        imported.repositories.iter().all(|one| !one.is_whole()),
        "also where nothing is named"
    );
    settled.may_run = std::mem::take(&mut settled.held);
    assert!(goes(GitAnswer::Settled(settled)));
}

#[test]
fn a_project_of_many_repositories_fits_into_one_frame() {
    let repository = |n: usize| PreparedRepository {
        hidden: (0..if n == 0 { 300 } else { 0 }).map(long).collect(),
        notes: vec!["x".repeat(4000); if n == 0 { 300 } else { 1 }],
        ..PreparedRepository::refused(&long(n), GitRefusal::WorktreeBelow)
    };
    let mut prepared = PreparedGit {
        repositories: (0..400).map(repository).collect(),
        ..PreparedGit::default()
    };
    prepared.obeyed.said = (0..400).map(long).collect();
    assert!(!goes(GitAnswer::Prepared(prepared.clone())), "as it was");
    prepared.fit();
    assert!(prepared.n_more > 0 && prepared.repositories.len() as u64 + prepared.n_more == 400);
    assert!(goes(GitAnswer::Prepared(prepared)));
    // A usual one is not truncated.
    let small = PreparedGit {
        repositories: vec![PreparedRepository::refused(
            &".git".into(),
            GitRefusal::Sha256,
        )],
        ..PreparedGit::default()
    };
    let mut fitting = small.clone();
    fitting.fit();
    assert_eq!(fitting, small);
}

#[test]
fn changes_at_the_longest_paths_fit_into_one_frame() {
    let goes = |kept: &Kept| {
        frame::encode(&FromKeeper::Done {
            id: 1,
            kept: kept.clone(),
        })
        .is_ok()
    };
    let change = |n: usize| PathChange {
        path: long(n),
        entry: EntryType::File,
        what: ChangeKind::Renamed {
            from: long(n + 1000),
        },
        mode: None,
        n_bytes: None,
        unkept: None,
    };
    let changes: NamedList<PathChange> = (0..300).map(change).collect();
    let may_run: NamedList<MayRun> = (0..300)
        .map(|n| MayRun {
            path: long(n),
            why: "x".repeat(100),
            when: RunTrigger::ByItself,
        })
        .collect();
    let names = |n: usize| PendingRef {
        name: long(n),
        old: None,
        new: "1".repeat(40),
        n_commits: None,
        subject: None,
        is_anew: false,
        called: None,
    };
    let repository = PendingRepository {
        path: ".git".into(),
        names: (0..300).map(names).collect(),
        stashes: vec!["x".repeat(4000); 300],
        odd: vec!["x".repeat(4000); 100],
        ..PendingRepository::default()
    };
    let git = PendingGit {
        repositories: vec![repository],
    };
    let path = |change| CountedPath {
        change,
        lines: None,
    };
    let pending = PendingChanges {
        changes: changes.first.iter().cloned().map(path).collect(),
        may_run: may_run.clone(),
        git: git.clone(),
        ..PendingChanges::default()
    };
    let review = PendingReview {
        name: "r".into(),
        words: String::new(),
        at: 1,
        n_changes: Some(300),
        git: git.clone(),
        elsewhere: None,
    };
    let left = |n: usize| LeftPath {
        path: long(n),
        reason: LeftReason::ChangedSince,
    };
    let applied = ApplyOutcome {
        changed: (0..300).map(long).collect(),
        removed: (0..300).map(long).collect(),
        conflicts: (0..300).map(left).collect(),
        ..ApplyOutcome::default()
    };
    let turn = TurnSummary {
        turn: 1,
        session: String::new(),
        n_turn: 1,
        words: String::new(),
        at: 1,
        state: TurnState::Done,
        n_changed: None,
        is_interrupted: false,
        n_left: 0,
    };
    let difference = |text: String| TurnDifference {
        turn: turn.clone(),
        changes: changes.clone(),
        text,
        n_left_out: 0,
    };
    let undone = UndoneTurn {
        turn: turn.clone(),
        applied: applied.clone(),
    };
    let reviews = |answer| Kept::Review {
        answer: Box::new(answer),
    };
    let shown = ReviewDifference {
        review: review.clone(),
        pending: pending.clone(),
        text: "\x01".repeat(1 << 20),
        n_left_out: 0,
        n_cut: 0,
    };
    let all = [
        Kept::Turn {
            answer: Box::new(TurnAnswer::Ended(TurnEnded {
                turn: 1,
                changes: NamedList {
                    n: changes.n,
                    ..pending.changes.clone()
                },
                may_run,
                ..TurnEnded::default()
            })),
        },
        Kept::Undo {
            answer: Box::new(UndoAnswer::Differences {
                turns: vec![
                    difference("\x01".repeat(1 << 20)),
                    difference(String::new()),
                ],
            }),
        },
        Kept::Undo {
            answer: Box::new(UndoAnswer::Undone(UndoOutcome {
                turns: vec![undone],
                ..UndoOutcome::default()
            })),
        },
        reviews(ReviewAnswer::Ended(pending)),
        reviews(ReviewAnswer::Reviews {
            reviews: std::iter::repeat_n(review, 20).collect(),
        }),
        reviews(ReviewAnswer::Difference(shown)),
        reviews(ReviewAnswer::Applied(Box::new(ReviewApplied {
            applied,
            resumed: None,
            may_run: NamedList::default(),
            n_left: 1,
            git,
        }))),
    ];
    for mut kept in soak::sample(all, 3) {
        assert!(!goes(&kept), "as it was: {:.80}", format!("{kept:?}"));
        kept.fit();
        assert!(goes(&kept), "{:.80}", format!("{kept:?}"));
        if let Kept::Turn { answer } = kept
            && let TurnAnswer::Ended(ended) = *answer
        {
            assert_eq!((ended.may_run.n, ended.changes.n), (300, 300));
            assert!(
                ended.may_run.first.len() > 50,
                "what may run is named first"
            );
        }
    }
}
