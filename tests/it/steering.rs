//! What the user types while a task runs joins it between two requests.

use podbay::event::Kind;
use podbay::event::MessageQueue;
use podbay::event::QueuedMessage;
use podbay::event::RunStatus;
use podbay::llm;
use podbay::llm::ToolModeChoice;
use podbay::session::ResumeState;
use podbay::ui::slash;
use serde_json::json;

use crate::support::Desk;
use crate::support::ScriptedModel;
use crate::support::desk::Wishes;

const MORE: &str = "also change the docs";

async fn desk(mode: ToolModeChoice, model: ScriptedModel) -> (Desk, MessageQueue) {
    let llm = llm::Options {
        tool_mode: mode,
        retries: 0,
        ..llm::Options::default()
    };
    let wishes = Wishes {
        llm,
        ..Wishes::default()
    };
    let desk = Desk::new(model.start().await, wishes).await;
    let queue = MessageQueue::default();
    desk.agent.lock().await.read_queue(queue.clone());
    (desk, queue)
}

fn waiting(queue: &MessageQueue) -> Vec<String> {
    let (messages, _) = queue.peek(10);
    messages.into_iter().map(|message| message.text).collect()
}

#[tokio::test]
async fn a_message_typed_while_a_task_runs_is_read_with_the_next_request() {
    let native = ScriptedModel::new()
        .calls("bash", json!({"command": "echo one"}))
        .says("Done.");
    let call = r#"<tool_call>{"name": "bash", "arguments": {"command": "echo one"}}</tool_call>"#;
    let text = ScriptedModel::new().says(call).says("Done.");
    for (mode, model) in [
        (ToolModeChoice::Native, native),
        (ToolModeChoice::Text, text),
    ] {
        let (desk, queue) = desk(mode, model).await;
        for message in [MORE, "/undo", "later"] {
            queue.push(slash::queued(message.to_owned()));
        }
        let outcome = desk.work("change the code").await;
        assert_eq!(outcome.status, RunStatus::Completed, "{outcome:?}");
        // What comes behind a command waits for it.
        assert_eq!(waiting(&queue), ["/undo", "later"]);
        let requests = desk.model.requests();
        let said = |n: usize| {
            let messages = requests[n]["messages"].as_array().cloned();
            let messages = messages.expect("a conversation");
            messages
                .iter()
                .map(|message| message["content"].to_string())
                .collect::<Vec<_>>()
        };
        assert!(!said(0).concat().contains(MORE), "{:?}", said(0));
        let last = said(1).pop().expect("there are some");
        assert!(last.contains(MORE), "{last}");
        let is_added =
            |kind: &Kind| matches!(kind, Kind::UserMessageAdded { text } if text == MORE);
        assert_eq!(desk.kinds().iter().filter(|kind| is_added(kind)).count(), 1);
        // A session that is resumed has it as a part of the same turn.
        let mut past = ResumeState::of(&desk.events());
        assert_eq!(
            past.history.said(),
            [format!("change the code\n\n{MORE}")],
            "{mode:?}"
        );
        past.history.rewind(1);
        assert_eq!(past.history.messages().len(), past.history.n_context());
    }
}

#[tokio::test]
async fn a_task_that_makes_no_other_request_leaves_the_message_to_the_next() {
    let (desk, queue) = desk(
        ToolModeChoice::Native,
        ScriptedModel::new().says("Done.").says("Twice."),
    )
    .await;
    queue.push(QueuedMessage {
        text: MORE.to_owned(),
        joins_task: true,
    });
    let outcome = desk.work("say done").await;
    assert_eq!(outcome.response, "Done.");
    assert_eq!(waiting(&queue), [MORE]);
}

#[test]
fn commands_and_messages_that_name_files_wait_for_the_end() {
    let joins = |text: &str| slash::queued(text.to_owned()).joins_task;
    assert!(joins(MORE));
    assert!(joins("mail me@example.org"));
    for text in [
        "/undo",
        "//etc is a folder",
        "!ls",
        "see @app.py",
        "(@a.png)",
        "/nosuch",
    ] {
        assert!(!joins(text), "{text}");
    }
}
