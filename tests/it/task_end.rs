//! A run that is stopped once its task has an answer gives that answer when it continues, and asks
//! nobody again.

use podbay::agent::Outcome;
use podbay::event::Event;
use podbay::event::Kind;
use podbay::event::RunStatus;
use podbay::policy;
use podbay::session;
use podbay::session::ResumeState;
use serde_json::json;

use crate::resume::resumed;
use crate::support::Desk;
use crate::support::ScriptedModel;
use crate::support::desk::Wishes;

/// Has a first process answer and end right there, and a second one continue, which asks nobody and
/// says nothing into the log.
async fn ended_and_gone_on(
    first: ScriptedModel,
    wishes: impl Fn() -> Wishes,
) -> (Outcome, Outcome) {
    let before = Desk::new(first.start().await, wishes()).await;
    let ended = before.work("look").await;
    let past = resumed(&before.events());
    let after = Desk::new(
        ScriptedModel::new().says("Twice.").start().await,
        Wishes { past, ..wishes() },
    )
    .await;
    let outcome = after.go_on().await;
    assert_eq!(
        (
            after.model.requests().len(),
            after.reached(),
            after.events()
        ),
        (0, Vec::<String>::new(), Vec::<Event>::new())
    );
    (ended, outcome)
}

#[tokio::test]
async fn an_answer_is_given_as_it_stands() {
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "echo x >> ran"}))
        .says("Done.");
    let (_, outcome) = ended_and_gone_on(model, Wishes::default).await;
    assert_eq!(
        (outcome.status, outcome.response.as_str()),
        (RunStatus::Completed, "Done.")
    );
    assert_eq!(
        (outcome.turns, outcome.tool_calls),
        (0, 0),
        "what was spent is the earlier run's"
    );
}

#[tokio::test]
async fn an_answer_of_pieces_is_given_whole() {
    let model = ScriptedModel::new()
        .raw_sse(&crate::open_answer::piece("One, "))
        .says("two.");
    let (ended, outcome) = ended_and_gone_on(model, Wishes::default).await;
    assert_eq!(
        (ended.response.as_str(), outcome.response.as_str()),
        ("One, two.", "One, two.")
    );
}

#[tokio::test]
async fn what_was_denied_is_known_still() {
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "date"}))
        .says("I may not.");
    let deny = || policy::Options {
        deny: vec!["bash".into()],
        ..policy::Options::default()
    };
    let (ended, outcome) = ended_and_gone_on(model, || Wishes {
        policy: deny(),
        ..Wishes::default()
    })
    .await;
    assert_eq!(
        (outcome.status, outcome.response.as_str()),
        (RunStatus::Blocked, "I may not.")
    );
    assert_eq!((outcome.denied.len(), &outcome.denied), (1, &ended.denied));
}

#[tokio::test]
async fn what_a_person_says_next_is_a_task_of_its_own() {
    let before = Desk::new(
        ScriptedModel::new().says("Done.").start().await,
        Wishes::default(),
    )
    .await;
    before.work("look").await;
    let past = resumed(&before.events());
    let after = Desk::new(
        ScriptedModel::new().says("Again.").start().await,
        Wishes {
            past,
            ..Wishes::default()
        },
    )
    .await;
    assert_eq!(after.work("and now?").await.response, "Again.");
}

#[tokio::test]
async fn a_run_that_a_limit_ended_goes_on() {
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "date"}))
        .says("So far.");
    let mut wishes = Wishes::default();
    wishes.agent.max_turns = 2;
    let before = Desk::new(model.start().await, wishes).await;
    assert_eq!(before.work("look").await.status, RunStatus::Limit);
    // Its last word is in the log, whatever comes now.
    let last = before.kinds().pop();
    assert!(
        matches!(&last, Some(Kind::TaskEnded(ended)) if ended.status == RunStatus::Limit && ended.response == "So far."),
        "{last:?}"
    );
    let past = resumed(&before.events());
    assert_eq!(past.settled(), None);
    let after = Desk::new(
        ScriptedModel::new().says("Done.").start().await,
        Wishes {
            past,
            ..Wishes::default()
        },
    )
    .await;
    assert_eq!(
        (
            after.go_on().await.response.as_str(),
            after.model.requests().len()
        ),
        ("Done.", 1)
    );
}

/// REL-26: what a log of this state of the format says is read again, and written again it is the
/// same.
#[test]
fn what_a_task_came_to_is_read_from_the_log() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it/fixtures/sessions/task_end.jsonl");
    let events = session::read(&path).expect("reads").events;
    let written: Vec<String> = events
        .iter()
        .map(|event| podbay::event::json_line(event).expect("JSON"))
        .collect();
    assert_eq!(
        written,
        std::fs::read_to_string(&path)
            .expect("there")
            .lines()
            .collect::<Vec<_>>()
    );
    let responses = (1..=events.len()).map(|end| {
        ResumeState::of(&events[..end])
            .settled()
            .map(|ended| (ended.response.clone(), ended.denied.len()))
    });
    let mut responses: Vec<_> = responses.collect();
    responses.dedup();
    assert_eq!(
        responses,
        [
            None,
            Some(("I may not.".to_owned(), 1)),
            None,
            Some(("Done.".to_owned(), 0))
        ]
    );
    // A run that was interrupted while it came to its end has not given it; one that came to it
    // has.
    let run_ended = |status: &str| -> Event {
        let end = json!({"type": "run_finished", "at": "2026-11-27T10:00:05Z", "status": status, "exit_code": 0, "response": "Done.", "turns": 1,
            "tool_calls": 0, "usage": {"prompt": 1, "cached": 0, "completion": 1, "cost_usd": null}, "duration_ms": 1});
        serde_json::from_value(end).expect("an event")
    };
    let left_after = |status| {
        ResumeState::of(&[events.clone(), vec![run_ended(status)]].concat())
            .settled()
            .is_some()
    };
    assert_eq!(
        ["completed", "interrupted", "failed"].map(left_after),
        [false, true, true]
    );
    // Told once, it is told, however often it stands in the log.
    let again = events.last().expect("the end of the task").clone();
    assert!(matches!(again.kind, Kind::TaskEnded(_)));
    let past = ResumeState::of(&[events.clone(), vec![run_ended("completed"), again]].concat());
    assert!(past.settled().is_none() && past.is_done());
    let chat = Kind::SessionResumed {
        podbay: "1".into(),
        mode: "auto".into(),
        task: None,
    };
    let nothing = json!({"type": "run_finished", "at": "2026-11-27T10:00:05Z", "status": "completed", "exit_code": 0, "response": "", "turns": 0,
        "tool_calls": 0, "usage": {"prompt": 0, "cached": 0, "completion": 0, "cost_usd": null}, "duration_ms": 1});
    let left = vec![
        Event::now(chat),
        serde_json::from_value(nothing).expect("an event"),
    ];
    assert!(
        ResumeState::of(&[events.clone(), left].concat())
            .settled()
            .is_some()
    );
    let done = |more: Vec<Event>| ResumeState::of(&[events.clone(), more].concat()).is_done();
    assert!(!done(Vec::new()), "nobody was told");
    // What the user did about it themselves is behind it; a chat in which nothing was said is no
    // word of it.
    let undone = || {
        Event::now(Kind::ContextAdded {
            text: "it was undone".into(),
            instructions: Vec::new(),
            seen: Vec::new(),
        })
    };
    let past = ResumeState::of(&[events.clone(), vec![undone()]].concat());
    assert!(
        past.settled().is_none() && past.is_done(),
        "nobody does it again"
    );
    let by_hand = Event::now(Kind::NoteAdded {
        text: "ran ls".into(),
    });
    assert_eq!(
        ResumeState::of(&[events.clone(), vec![by_hand]].concat()).settled(),
        None
    );
    let rewound = Kind::SessionRewound { turns: 1 };
    assert_eq!(
        ResumeState::of(&[events.clone(), vec![Event::now(rewound)]].concat()).settled(),
        None
    );
    let other = Kind::SessionResumed {
        podbay: "1".into(),
        mode: "auto".into(),
        task: Some("other".into()),
    };
    assert_eq!(
        ResumeState::of(&[events, vec![Event::now(other)]].concat()).settled(),
        None
    );
}

/// What says nothing does not stand in the conversation, which then ends with what the model was
/// asked last.
#[tokio::test]
async fn a_task_that_is_done_is_not_open_whatever_was_asked_last() {
    let model = ScriptedModel::new()
        .says("I run them:\n```json\n{\"name\": \"bash\", \"arguments\": {\"command\": \"make test\"}}\n```")
        .says("")
        .says("")
        .says("");
    let desk = Desk::new(model.start().await, Wishes::default()).await;
    let ended = desk.work("run the tests").await;
    assert_eq!(ended.status, RunStatus::Completed);
    let past = resumed(&desk.events());
    assert!(past.history.is_open() && !past.is_open() && past.settled().is_some());
    let end = json!({"type": "run_finished", "at": "2026-11-27T10:00:05Z", "status": "completed", "exit_code": 0, "response": ended.response,
        "turns": 1, "tool_calls": 0, "usage": {"prompt": 1, "cached": 0, "completion": 1, "cost_usd": null}, "duration_ms": 1});
    let end: Event = serde_json::from_value(end).expect("an event");
    let chat = Event::now(Kind::SessionResumed {
        podbay: "1".into(),
        mode: "auto".into(),
        task: None,
    });
    for more in [vec![end.clone()], vec![end, chat]] {
        let past = resumed(&[desk.events(), more].concat());
        assert!(past.is_done() && past.settled().is_none());
    }
}
