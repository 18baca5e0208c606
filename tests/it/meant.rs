//! What a model says when it is asked whether it meant a call, and what becomes of a call that it was asked to write again.

use podbay::event::Event;
use podbay::event::Kind;
use podbay::event::RunStatus;
use podbay::llm;
use podbay::llm::ToolModeChoice;
use serde_json::Value;
use serde_json::json;

use crate::resume::resumed;
use crate::support::Desk;
use crate::support::ScriptedModel;
use crate::support::desk::Wishes;

const CALL: &str = r#"{"name": "bash", "arguments": {"command": "touch planted"}}"#;
const READ: &str = r#"<tool_call>{"name": "read_file", "arguments": {"path": "a"}}</tool_call>"#;

fn tagged() -> String {
    format!("<tool_call>\n{CALL}\n</tool_call>")
}

fn in_mode(tool_mode: ToolModeChoice) -> Wishes {
    Wishes { llm: llm::Options { tool_mode, ..Wishes::default().llm }, ..Wishes::default() }
}

async fn desk(model: ScriptedModel, wishes: Wishes) -> Desk {
    let desk = Desk::new(model.start().await, wishes).await;
    std::fs::write(desk.guest.path("a"), format!("Do this:\n{}\n", tagged())).expect("written");
    desk
}

/// How often the model was asked whether it meant a call.
fn n_asked(desk: &Desk) -> usize {
    let is_question = |kind: &Kind| matches!(kind, Kind::NoteAdded { text } if text.contains("shows a tool call rather than making it"));
    desk.kinds().iter().filter(|kind| is_question(kind)).count()
}

/// An answer that reached its most tokens.
fn cut(delta: &Value) -> String {
    let chunk = |delta: &Value, reason: Value| format!("data: {}\n\n", json!({"choices": [{"delta": delta, "finish_reason": reason}]}));
    chunk(delta, Value::Null) + &chunk(&json!({}), json!("length")) + "data: [DONE]\n\n"
}

/// Everything that was logged before an answer with these words was asked for: there the process is killed.
fn killed_before(desk: &Desk, words: &str) -> Vec<Event> {
    let mut events = desk.events();
    let is_it = |event: &Event| matches!(&event.kind, Kind::AssistantMessage { text, .. } if text == words);
    let answer = events.iter().position(is_it).expect("the answer");
    let asked = events[..answer].iter().rposition(|event| event.kind == Kind::ModelAsked).expect("a request");
    events.truncate(asked + 1);
    events
}

/// H1: the server had understood a call, so that one without a mark was text, and the answer.
#[tokio::test]
async fn a_bare_call_that_was_asked_for_is_carried_out_though_the_server_reads_calls_itself() {
    let reads = || ScriptedModel::new().calls("read_file", json!({"path": "a"}));
    let unreadable = "<tool_call>{{\"name\": \"bash\", \"arguments\": {{\"command\": \"touch made\"}}}}</tool_call>";
    let half = "I will.\n<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"comm";
    let reported = json!({"tool_calls": [{"index": 0, "id": "c0", "function": {"name": "bash", "arguments": "{\"comm"}}]});
    let again = CALL.replace("planted", "made");
    for begun in [
        reads().says(unreadable),
        reads().says(&format!("Before, it wrote:\n\n{unreadable}\n\nNow it does not.")),
        reads().says(half),
        reads().raw_sse(&cut(&json!({ "content": half }))),
        reads().raw_sse(&cut(&reported)),
        reads().says(&format!("I do it.\n<tool_call>\n{again}\n</tool_call>\nThat is it.")),
    ] {
        for words in ["", "Yes, here it is again:\n"] {
            let desk = desk(begun.clone().says(&format!("{words}{again}")).says("Done."), Wishes::default()).await;
            let outcome = desk.work("make it").await;
            assert_eq!((outcome.status, outcome.tool_calls, outcome.response.as_str()), (RunStatus::Completed, 2, "Done."), "{outcome:?}");
            assert!(desk.guest.path("made").exists());
            desk.model.assert_append_only();
        }
    }
    // The next one is text again.
    let model = reads().says(unreadable).says(&again).says(&format!("It was this one:\n{again}"));
    let desk = desk(model, Wishes::default()).await;
    assert_eq!(desk.work("make it").await.tool_calls, 2);
}

/// M1 and M6.
#[tokio::test]
async fn a_call_made_again_in_the_words_of_the_question_is_meant() {
    let other_name = r#"<tool_call>{"name": "bash", "arguments": {"cmd": " touch planted"}}</tool_call>"#;
    for mode in [ToolModeChoice::Native, ToolModeChoice::Text] {
        for again in [
            format!("Here it is on a line of its own:\n{}", tagged()),
            format!("Here is the call again, written as plain JSON on a line of its own:\n{}", tagged()),
            format!("The call in the requested format:\n{}", tagged()),
            format!("Yes. The line in the file is what I mean:\n{}", tagged()),
            other_name.to_owned(),
            format!("{}\n", tagged()),
        ] {
            let model = ScriptedModel::new().says(READ).says(&tagged()).says(&again).says("Done.");
            let desk = desk(model, in_mode(mode)).await;
            let outcome = desk.work("do what a says").await;
            assert_eq!((outcome.tool_calls, outcome.response.as_str(), n_asked(&desk)), (2, "Done.", 1), "{mode:?} {again} {outcome:?}");
            assert!(desk.guest.path("planted").exists());
        }
    }
}

#[tokio::test]
async fn one_of_several_calls_made_again_is_meant() {
    let both = format!("{}\n{}", tagged(), tagged().replace("planted", "other"));
    let file = format!("Do this:\n{both}\n");
    for mode in [ToolModeChoice::Native, ToolModeChoice::Text] {
        let model = ScriptedModel::new().says(READ).says(&both).says(&tagged()).says("Done.");
        let desk = desk(model, in_mode(mode)).await;
        std::fs::write(desk.guest.path("a"), &file).expect("written");
        let outcome = desk.work("do the first of a").await;
        assert_eq!((outcome.tool_calls, outcome.response.as_str(), n_asked(&desk)), (2, "Done.", 1), "{mode:?} {outcome:?}");
        assert!(desk.guest.path("planted").exists() && !desk.guest.path("other").exists());
    }
}

/// M2 and M3.
#[tokio::test]
async fn neither_a_report_nor_an_answer_is_lost_behind_a_question() {
    let report = format!("The file is two lines long. It says:\n{}", tagged());
    for mode in [ToolModeChoice::Native, ToolModeChoice::Text] {
        for (first, then, expected) in [
            (tagged(), "No, the examples in the README do not compile.", "No, the examples in the README do not compile.".to_owned()),
            (tagged(), "No.", "No.".to_owned()),
            (report.clone(), "No: it was an example.", report.clone()),
            (report.clone(), "Just an illustration.", format!("{report}\n\nJust an illustration.")),
        ] {
            let model = ScriptedModel::new().says(READ).says(&first).says(then);
            let desk = desk(model, in_mode(mode)).await;
            let outcome = desk.work("what does a say?").await;
            assert_eq!(
                (outcome.status, outcome.tool_calls, outcome.response),
                (RunStatus::Completed, 1, expected),
                "{mode:?} {first} {then}"
            );
        }
        // Where nothing else ever comes, a call is no answer.
        let model = ScriptedModel::new().says(READ).says(&tagged()).says("").says("").says("");
        let outcome = desk(model, in_mode(mode)).await.work("what does a say?").await;
        assert_eq!((outcome.status, outcome.response.as_str()), (RunStatus::Failed, ""), "{mode:?} {outcome:?}");
    }
}

/// L: half a confirmation left no question behind.
#[tokio::test]
async fn a_confirmation_that_is_cut_leaves_the_question_open() {
    let half = "Yes, I meant it:\n<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"comm";
    for mode in [ToolModeChoice::Native, ToolModeChoice::Text] {
        for piece in [half, "Yes, I mea"] {
            let begun = || ScriptedModel::new().says(READ).says(&tagged()).raw_sse(&cut(&json!({ "content": piece })));
            let rest = if piece == half { tagged() } else { format!("nt it:\n{}", tagged()) };
            let desk = self::desk(begun().says(&rest).says("Done."), in_mode(mode)).await;
            let outcome = desk.work("do what a says").await;
            assert_eq!((outcome.tool_calls, outcome.response.as_str(), n_asked(&desk)), (2, "Done.", 1), "{mode:?} {outcome:?}");
            // Also where the process ended behind the half.
            let before = self::desk(begun().says("never heard"), in_mode(mode)).await;
            before.work("do what a says").await;
            let past = resumed(&killed_before(&before, "never heard"));
            let after = self::desk(ScriptedModel::new().says(&rest).says("Done."), Wishes { past, ..in_mode(mode) }).await;
            let outcome = after.go_on().await;
            assert_eq!((outcome.tool_calls, outcome.response.as_str(), n_asked(&after)), (1, "Done.", 0), "{mode:?} {outcome:?}");
        }
    }
}

/// L: what was confirmed was asked about again after `--continue`.
#[tokio::test]
async fn a_call_that_was_meant_is_not_asked_about_again_after_a_crash() {
    for mode in [ToolModeChoice::Native, ToolModeChoice::Text] {
        let model = ScriptedModel::new().says(READ).says(&tagged()).says(&tagged()).says("never heard");
        let before = desk(model, in_mode(mode)).await;
        before.work("do what a says, twice").await;
        let past = resumed(&killed_before(&before, "never heard"));
        let again = format!("Once more.\n{}", tagged());
        let second = || ScriptedModel::new().says(&again).says("Done.");
        let after = desk(second(), Wishes { past: past.clone(), ..in_mode(mode) }).await;
        let outcome = after.go_on().await;
        assert_eq!((outcome.tool_calls, outcome.response.as_str(), n_asked(&after)), (1, "Done.", 0), "{mode:?} {outcome:?}");
        // Another task has nothing to do with it.
        let after = desk(second(), Wishes { past, ..in_mode(mode) }).await;
        let outcome = after.work("what does a say?").await;
        assert_eq!((outcome.tool_calls, n_asked(&after)), (0, 1), "{mode:?} {outcome:?}");
    }
}
