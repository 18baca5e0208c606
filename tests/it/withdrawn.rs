//! REL-28: a question whose sandbox has ended is about nothing.

use podbay::event::CallStatus;
use podbay::event::Kind;
use podbay::event::RunStatus;
use podbay::policy::Mode;
use serde_json::json;

use crate::support::ScriptedModel;
use crate::support::desk::Desk;
use crate::support::desk::Wishes;

fn status(desk: &Desk) -> Vec<CallStatus> {
    let status = |kind| {
        if let Kind::CallFinished { status, .. } = kind {
            Some(status)
        } else {
            None
        }
    };
    desk.kinds().into_iter().filter_map(status).collect()
}

#[tokio::test]
async fn a_question_is_withdrawn_when_its_box_ends_and_the_model_is_told() {
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "touch a"}))
        .says("I leave it.")
        .start()
        .await;
    let policy = podbay::policy::Options {
        ask: vec!["bash".to_owned()],
        ..podbay::policy::Options::default()
    };
    // The user thinks for ever.
    let desk = Desk::new(
        model,
        Wishes {
            mode: Mode::Ask,
            policy,
            ..Wishes::default()
        },
    )
    .await;
    let ends = async {
        while !desk
            .kinds()
            .iter()
            .any(|kind| matches!(kind, Kind::PermissionAsked { .. }))
        {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        desk.guest.link.close();
    };
    let (outcome, ()) = tokio::join!(desk.work("work"), ends);
    assert_eq!(
        (outcome.status, outcome.response.as_str()),
        (RunStatus::Completed, "I leave it.")
    );
    assert_eq!(
        (status(&desk), desk.reached().len()),
        (vec![CallStatus::Failed], 0)
    );
    assert!(!desk.kinds().iter().any(|kind| matches!(
        kind,
        Kind::PermissionAnswered { .. } | Kind::CallStarted { .. }
    )));
    let told = desk.results(1);
    assert!(
        told[0].starts_with("The sandbox ended while the user was asked about this call: ")
            && told[0].contains("not executed"),
        "{told:?}"
    );
}

/// A question of the model's has nothing to do with the sandbox.
#[tokio::test]
async fn a_question_that_needs_no_box_stands_when_the_box_ends() {
    let model = ScriptedModel::new()
        .calls("ask_user", json!({"question": "Which one?"}))
        .says("Done.")
        .start()
        .await;
    let tools = podbay::tools::Options {
        set: podbay::tools::ToolSet::Full,
        ..podbay::tools::Options::default()
    };
    let desk = Desk::new(
        model,
        Wishes {
            mode: Mode::Ask,
            tools,
            ..Wishes::default()
        },
    )
    .await;
    desk.guest.link.close();
    desk.work("work").await;
    assert_eq!(status(&desk), [CallStatus::Ok]);
    assert!(
        desk.results(1)[0].contains("what is `Which one?`?"),
        "{:?}",
        desk.results(1)
    );
}
