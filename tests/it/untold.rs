//! Calls of tools that the model is not told of, and under names that it is not told: what keeps an
//! example from being executed keeps these.

use podbay::event::RunStatus;
use podbay::llm;
use podbay::llm::ToolModeChoice;
use serde_json::Value;
use serde_json::json;

use crate::support::Desk;
use crate::support::ScriptedModel;
use crate::support::desk::Wishes;

const MODES: [ToolModeChoice; 3] = [
    ToolModeChoice::Native,
    ToolModeChoice::Text,
    ToolModeChoice::Constrained,
];

async fn desk(mode: ToolModeChoice, model: ScriptedModel, file: &str) -> Desk {
    let llm = llm::Options {
        tool_mode: mode,
        retries: 0,
        ..llm::Options::default()
    };
    let desk = Desk::new(
        model.start().await,
        Wishes {
            llm,
            ..Wishes::default()
        },
    )
    .await;
    for (name, text) in [("a", file), ("old.txt", "kept\n")] {
        std::fs::write(desk.guest.path(name), text).expect("written");
    }
    desk
}

fn tagged(name: &str, arguments: &Value) -> String {
    format!(
        "<tool_call>\n{}\n</tool_call>",
        json!({"name": name, "arguments": arguments})
    )
}

/// The names that the file of the test could lose its content by.
fn calls() -> [(&'static str, Value); 5] {
    [
        ("delete_file", json!({"path": "old.txt"})),
        (
            "move_file",
            json!({"source": "old.txt", "destination": "new.txt"}),
        ),
        ("shell", json!({"command": "rm old.txt"})),
        ("Delete_File", json!({"path": "old.txt"})),
        ("start_background_process", json!({"command": "rm old.txt"})),
    ]
}

#[tokio::test]
async fn an_example_of_one_is_none() {
    for mode in MODES {
        for (name, arguments) in calls() {
            let call = tagged(name, &arguments);
            for answer in [
                format!("```\n{call}\n```\nThat would lose it."),
                format!("It is written `{}`.", call.replace('\n', "")),
            ] {
                let desk = desk(
                    mode,
                    ScriptedModel::new().says(&answer).says("That is all."),
                    "",
                )
                .await;
                let outcome = desk.work("give me an example of a dangerous call").await;
                assert!(
                    desk.guest.path("old.txt").exists(),
                    "{mode:?} {answer}\n{outcome:?}"
                );
            }
        }
    }
}

/// What nobody showed is a call, as one of any other tool.
#[tokio::test]
async fn one_that_is_meant_is_carried_out() {
    for mode in MODES {
        for (name, arguments) in [
            ("delete_file", json!({"path": "old.txt"})),
            ("shell", json!({"command": "rm old.txt"})),
        ] {
            let model = ScriptedModel::new()
                .says(&format!("I remove it.\n{}", tagged(name, &arguments)))
                .says("Done.");
            let desk = desk(mode, model, "").await;
            let outcome = desk.work("remove what is old").await;
            assert_eq!(
                (outcome.status, outcome.response.as_str()),
                (RunStatus::Completed, "Done."),
                "{mode:?} {name}\n{outcome:?}"
            );
            assert!(!desk.guest.path("old.txt").exists(), "{mode:?} {name}");
        }
    }
}

/// What has been read once need not be read again: the beginning of the prompt and the list of
/// tools stay as they are.
#[tokio::test]
async fn finding_and_using_one_leaves_the_prompt_and_its_tools_as_they_were() {
    let model = ScriptedModel::new()
        .calls("more_tools", json!({}))
        .calls("more_tools", json!({"tool": "mkdir"}))
        .calls(
            "more_tools",
            json!({"tool": "mkdir", "arguments": {"path": "made"}}),
        )
        .calls("mkdir", json!({"path": "also"}))
        .says("Done.");
    let desk = desk(ToolModeChoice::Native, model, "").await;
    assert_eq!(desk.work("make folders").await.status, RunStatus::Completed);
    assert!(desk.guest.path("made").is_dir() && desk.guest.path("also").is_dir());
    let requests = desk.model.requests();
    assert_eq!(requests.len(), 5);
    let messages = |request: &Value| request["messages"].as_array().expect("messages").clone();
    for pair in requests.windows(2) {
        let (before, after) = (messages(&pair[0]), messages(&pair[1]));
        assert!(
            after.len() > before.len() && after[..before.len()] == before,
            "{after:#?}"
        );
        assert_eq!(pair[0]["tools"], pair[1]["tools"]);
    }
    let told = requests[0]["tools"].to_string();
    assert!(
        told.contains("more_tools") && !told.contains("mkdir"),
        "{told}"
    );
}
