//! Answers that are not all: a question about a call in one, and pieces of one, also where the
//! process ended in between.

use podbay::event::Event;
use podbay::event::Kind;
use podbay::event::RunStatus;
use podbay::llm;
use podbay::llm::ToolModeChoice;
use podbay::session;
use podbay::session::ResumeState;
use serde_json::Value;
use serde_json::json;

use crate::resume::resumed;
use crate::support::Desk;
use crate::support::ScriptedModel;
use crate::support::desk::Wishes;

async fn desk(model: ScriptedModel, wishes: Wishes) -> Desk {
    Desk::new(model.start().await, wishes).await
}

fn in_mode(tool_mode: ToolModeChoice) -> Wishes {
    Wishes {
        llm: llm::Options {
            tool_mode,
            ..Wishes::default().llm
        },
        ..Wishes::default()
    }
}

/// An answer that reached its most tokens.
fn cut(delta: &Value) -> String {
    let chunk = |delta: &Value, reason: Value| {
        format!(
            "data: {}\n\n",
            json!({"choices": [{"delta": delta, "finish_reason": reason}]})
        )
    };
    chunk(delta, Value::Null) + &chunk(&json!({}), json!("length")) + "data: [DONE]\n\n"
}

pub(crate) fn piece(words: &str) -> String {
    cut(&json!({ "content": words }))
}

fn call(name: &str, arguments: &str) -> Value {
    json!({"tool_calls": [{"index": 0, "id": "c0", "function": {"name": name, "arguments": arguments}}]})
}

/// Everything that was logged until the request went out that brought these words: there the
/// process is killed. Returns which request it was, too.
fn killed_before(desk: &Desk, words: &str) -> (usize, Vec<Event>) {
    let mut events = desk.events();
    let is_it =
        |event: &Event| matches!(&event.kind, Kind::AssistantMessage { text, .. } if text == words);
    let answer = events.iter().position(is_it).expect("the answer");
    let asked = events[..answer]
        .iter()
        .rposition(|event| event.kind == Kind::ModelAsked)
        .expect("a request");
    events.truncate(asked + 1);
    (
        events
            .iter()
            .filter(|event| event.kind == Kind::ModelAsked)
            .count()
            - 1,
        events,
    )
}

/// Has a first process work until it is killed in its last request, and a second one continue.
async fn killed_and_gone_on(
    first: ScriptedModel,
    second: ScriptedModel,
    wishes: impl Fn() -> Wishes,
) -> (Desk, podbay::agent::Outcome) {
    let before = desk(first.says("never heard"), wishes()).await;
    before.work("look").await;
    let (at, events) = killed_before(&before, "never heard");
    let after = desk(
        second,
        Wishes {
            past: resumed(&events),
            ..wishes()
        },
    )
    .await;
    let outcome = after.go_on().await;
    assert_eq!(
        after.model.heads()[0],
        before.model.heads()[at],
        "what was sent before is sent again"
    );
    after.model.assert_append_only();
    (after, outcome)
}

/// REL-26: what a log of this state of the format says is read again, and written again it is the
/// same.
#[test]
fn what_is_open_is_read_from_the_log() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it/fixtures/sessions/open_answer.jsonl");
    let events = session::read(&path).expect("reads").events;
    let written: Vec<String> = events
        .iter()
        .map(|event| podbay::event::json_line(event).expect("JSON"))
        .collect();
    let text = std::fs::read_to_string(&path).expect("there");
    assert_eq!(written, text.lines().collect::<Vec<_>>());
    let open = ResumeState::of(&events).open_answer;
    assert_eq!(
        (open.pieces.len(), open.half.map(|half| half.begun)),
        (0, Some("{".to_owned()))
    );
    let answered = events
        .iter()
        .position(|event| matches!(event.kind, Kind::AssistantMessage { .. }))
        .expect("an answer");
    for end in [answered, answered + 1, answered + 3] {
        assert_eq!(
            ResumeState::of(&events[..=end]).open_answer.pieces,
            ["One, "],
            "whatever record is the last"
        );
    }
    // A log without the record.
    let older = session::read(&path.with_file_name("seen.jsonl"))
        .expect("reads")
        .events;
    assert!(ResumeState::of(&older).open_answer.is_none());
}

#[tokio::test]
async fn the_pieces_of_an_answer_are_one_answer_after_a_crash() {
    let first = ScriptedModel::new()
        .raw_sse(&piece("One, "))
        .raw_sse(&piece("two, "));
    let (_, outcome) =
        killed_and_gone_on(first, ScriptedModel::new().says("three."), Wishes::default).await;
    assert_eq!(
        (outcome.status, outcome.response.as_str()),
        (RunStatus::Completed, "One, two, three."),
        "{outcome:?}"
    );
    // Killed before the model was told to continue.
    let before = desk(
        ScriptedModel::new().raw_sse(&piece("One, ")).says("two."),
        Wishes::default(),
    )
    .await;
    before.work("count").await;
    let mut events = before.events();
    let answered = events
        .iter()
        .position(|event| matches!(event.kind, Kind::AssistantMessage { .. }))
        .expect("an answer");
    events.truncate(answered + 1);
    let after = desk(
        ScriptedModel::new().says("two."),
        Wishes {
            past: resumed(&events),
            ..Wishes::default()
        },
    )
    .await;
    assert_eq!(after.go_on().await.response, "One, two.");
    assert!(
        after.told(0).contains("Continue exactly where it stopped"),
        "{}",
        after.told(0)
    );
    // A new task has nothing to do with it.
    let past = resumed(&killed_before(&before, "two.").1);
    let after = desk(
        ScriptedModel::new().says("Other."),
        Wishes {
            past,
            ..Wishes::default()
        },
    )
    .await;
    assert_eq!(after.work("something else").await.response, "Other.");
}

#[tokio::test]
async fn the_end_of_a_call_that_was_cut_is_no_answer_after_a_crash() {
    let (half, rest) = (r#"{"path": "lt.txt", "content": "aaa"#, "bbb\"}");
    let tagged = "I will.\n<tool_call>\n{\"name\": \"write_file\", \"arguments\": {\"path\": \"lt.txt\", \"content\": \"aaa";
    for (sse, rest) in [
        (cut(&call("write_file", half)), rest.to_owned()),
        (piece(tagged), format!("{rest}}}\n</tool_call>")),
    ] {
        let first = ScriptedModel::new().raw_sse(&sse);
        let (desk, outcome) = killed_and_gone_on(
            first,
            ScriptedModel::new().says(&rest).says("I cannot."),
            Wishes::default,
        )
        .await;
        assert_eq!(
            (outcome.status, outcome.response.as_str()),
            (RunStatus::Completed, "I cannot."),
            "{outcome:?}"
        );
        assert!(
            desk.told(1)
                .contains("the end of a call whose beginning was cut off"),
            "{}",
            desk.told(1)
        );
    }
}

#[tokio::test]
async fn the_end_of_an_object_of_ours_that_was_cut_is_no_answer() {
    let half =
        piece("{\"tool\": \"write_file\", \"arguments\": {\"path\": \"lt.txt\", \"content\": \"te");
    let again = json!({"tool": "write_file", "arguments": {"path": "lt.txt", "content": "text"}})
        .to_string();
    let model = ScriptedModel::new()
        .raw_sse(&half)
        .says("xt\"}}")
        .says(&again)
        .says("{\"answer\": \"Done.\"}");
    let desk = desk(model, in_mode(ToolModeChoice::Constrained)).await;
    let outcome = desk.work("write").await;
    assert_eq!(
        (
            outcome.status,
            outcome.response.as_str(),
            outcome.n_succeeded
        ),
        (RunStatus::Completed, "Done.", 1),
        "{outcome:?}"
    );
    assert!(
        desk.told(2)
            .contains("the end of a call whose beginning was cut off"),
        "{}",
        desk.told(2)
    );
    assert_eq!(
        std::fs::read_to_string(desk.guest.path("lt.txt")).expect("there"),
        "text"
    );
    desk.model.assert_append_only();
}
