use super::*;
use crate::keep::testing::Scene;

fn begin(turn: u64) -> TurnRecord {
    let before = ObjectId::of(b"before");
    TurnRecord::Begin {
        turn,
        session: "s".to_owned(),
        n_turn: turn,
        words: format!("turn {turn}"),
        at: 7,
        before,
    }
}

fn end(turn: u64) -> TurnRecord {
    TurnRecord::End {
        turn,
        after: ObjectId::of(b"after"),
        n_changed: 3,
        is_interrupted: false,
    }
}

#[test]
fn the_log_is_read_back_and_a_partial_last_line_is_removed() {
    let scene = Scene::new();
    let state = scene.state();
    let mut log = TurnLog::load(&state).expect("loads");
    assert_eq!(log.next_turn(), 1);
    let back = || TurnRecord::Back {
        turn: 2,
        left: vec!["a".into()],
        is_final: false,
    };
    for record in [
        begin(1),
        end(1),
        begin(2),
        end(2),
        back(),
        TurnRecord::Forward {
            turn: 2,
            left: Vec::new(),
        },
        back(),
    ] {
        log.add(record).expect("added");
    }
    let turns = log.turns.clone();
    assert_eq!(
        (log.back().count(), log.forward().count(), log.next_turn()),
        (1, 1, 3)
    );
    let whole = state.read(NAME).expect("reads").expect("there");
    for end in [
        &b"{\"type\":\"begin\",\"turn\":3"[..],
        b"\0\0\0\0",
        b"{}\n",
        b"\xff\n",
    ] {
        state.replace(NAME, &[&whole, end].concat()).expect("torn");
        let mut log = TurnLog::load(&state).expect("loads");
        assert_eq!(log.turns, turns, "{end:?}");
        log.add(begin(3)).expect("added");
        assert_eq!(
            TurnLog::load(&state).expect("loads").turns.len(),
            3,
            "{end:?}"
        );
    }
    // Without its line break the last line is partial, too.
    state
        .replace(NAME, &whole[..whole.len() - 1])
        .expect("torn");
    assert!(!TurnLog::load(&state).expect("loads").turns[1].is_back);
    // The format before left paths were recorded.
    state
        .replace(
            NAME,
            &[&whole, &b"{\"type\":\"back\",\"turn\":1}\n"[..]].concat(),
        )
        .expect("added");
    let log = TurnLog::load(&state).expect("loads");
    assert_eq!(
        (
            log.back().count(),
            log.forward().count(),
            log.left().count()
        ),
        (0, 2, 1)
    );
}

#[test]
fn a_turn_with_paths_left_is_kept_when_another_one_begins() {
    let scene = Scene::new();
    let state = scene.state();
    let mut log = TurnLog::load(&state).expect("loads");
    for turn in 1..=2 {
        log.add(begin(turn)).expect("added");
        log.add(end(turn)).expect("added");
    }
    log.add(TurnRecord::Back {
        turn: 2,
        left: Vec::new(),
        is_final: false,
    })
    .expect("added");
    log.add(TurnRecord::Back {
        turn: 1,
        left: vec!["a".into()],
        is_final: false,
    })
    .expect("added");
    log.end_forward().expect("ended");
    for log in [log, TurnLog::load(&state).expect("loads")] {
        assert_eq!(
            (
                log.turns.len(),
                log.back().count(),
                log.forward().count(),
                log.left().count()
            ),
            (1, 0, 0, 1)
        );
    }
}

#[test]
fn the_first_non_empty_line_of_a_message_is_kept() {
    assert_eq!(first_words("\n  fix it \nplease"), "fix it");
    assert_eq!(first_words(&"ä".repeat(100)), "ä".repeat(80));
    assert_eq!(first_words(""), "");
}
