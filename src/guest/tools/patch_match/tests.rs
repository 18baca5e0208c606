use std::sync::atomic::AtomicBool;

use super::*;

const N_LINES: u64 = 200_000;

fn hunk(line: Option<u64>, old: &str, new: &str) -> Hunk {
    let lines = vec![PatchLine::Remove(old.into()), PatchLine::Add(new.into())];
    Hunk {
        line,
        lines,
        ..Hunk::default()
    }
}

fn patched(text: &str, hunks: &[Hunk], is_cancelled: bool) -> Result<PatchedText, HunkFailure> {
    let stop = AtomicBool::new(is_cancelled);
    apply(text.as_bytes(), hunks, &Stop::new(&stop, None))
}

/// Searched in all lines for each hunk, these would take minutes.
#[test]
fn many_hunks_are_applied_to_many_lines() {
    let own: String = (0..N_LINES).map(|number| format!("{number}\n")).collect();
    let same = "same\n".repeat(N_LINES as usize);
    let numbers: Vec<u64> = (0..N_LINES).step_by(100).collect();
    let found: Vec<Hunk> = numbers
        .iter()
        .map(|number| hunk(None, &number.to_string(), "x"))
        .collect();
    let named: Vec<Hunk> = numbers
        .iter()
        .map(|number| hunk(Some(number + 1), "same", "x"))
        .collect();
    for (text, hunks) in [(own, found), (same, named)] {
        let patched = patched(&text, &hunks, false).expect("fits");
        let changed = patched
            .text
            .split(|byte| *byte == b'\n')
            .enumerate()
            .filter(|(_, line)| *line == b"x");
        assert_eq!(
            changed.map(|(at, _)| at as u64).collect::<Vec<_>>(),
            numbers
        );
    }
}

/// Compared at each position, or against all occupied ranges, these would take minutes.
#[test]
fn many_candidate_places_and_fuzz_take_no_quadratic_time() {
    let same = "same\n".repeat(N_LINES as usize);
    let keep = |line: &str| PatchLine::Keep(line.into());
    let change = [PatchLine::Remove("same".into()), PatchLine::Add("x".into())];
    let next = Hunk {
        lines: [&[keep("same")][..], &change].concat(),
        form: PatchForm::Sections,
        ..Hunk::default()
    };
    let n_hunks = 10_000;
    let in_order = patched(&same, &vec![next; n_hunks], false).expect("fits");
    assert!(
        in_order.text.starts_with(b"same\nx\nsame\nx\n")
            && in_order.notes.len() == n_hunks
            && in_order.by_number
    );
    // Without its ends it is many lines, each of which occurs in the file many times:
    // everywhere, or nowhere because one line is missing.
    let runs = format!("{}other\n", "same\n".repeat(999)).repeat(N_LINES as usize / 1000);
    for (text, n_lines) in [(&same, 50_000), (&runs, 999)] {
        let lines = [
            &[keep("one")][..],
            &vec![keep("same"); n_lines],
            &change,
            &[keep("two")],
        ]
        .concat();
        let missed = HunkFailure {
            hunk: 1,
            why: HunkProblem::Nowhere { applied: false },
        };
        assert_eq!(
            patched(
                text,
                &[Hunk {
                    lines,
                    ..Hunk::default()
                }],
                false
            ),
            Err(missed)
        );
    }
}

#[test]
fn a_cancelled_patch_is_not_applied() {
    let cancelled = HunkFailure {
        hunk: 1,
        why: HunkProblem::Cancelled,
    };
    assert_eq!(
        patched("a\n", &[hunk(None, "a", "b")], true),
        Err(cancelled)
    );
}
