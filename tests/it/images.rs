//! Images: shown to a model that can see, and refused with a hint to one that cannot.

use podbay::event::RunStatus;
use podbay::session::Past;
use serde_json::json;

use crate::support::Desk;
use crate::support::ScriptedModel;
use crate::support::desk::Wishes;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0and so on";

async fn desk(model: ScriptedModel) -> Desk {
    let model = model.calls("read_file", json!({"path": "a.png"})).says("A cat.").says("Still a cat.").start().await;
    let desk = Desk::new(model, Wishes::default()).await;
    std::fs::write(desk.guest.path("a.png"), PNG).expect("written");
    desk
}

#[tokio::test]
async fn a_model_that_sees_is_shown_an_image() {
    let desk = desk(ScriptedModel::new().sees()).await;
    let outcome = desk.work("what is it?").await;
    assert_eq!((outcome.status, outcome.response.as_str()), (RunStatus::Completed, "A cat."));
    assert!(desk.results(1)[0].starts_with("a.png: image/png, 19 bytes"), "{:?}", desk.results(1));
    let requests = desk.model.requests();
    let last = requests[1]["messages"].as_array().and_then(|messages| messages.last()).expect("messages");
    assert_eq!(last["role"], "user");
    assert_eq!(last["content"][1]["image_url"]["url"], "data:image/png;base64,iVBORw0KGgoAAGFuZCBzbyBvbg==");
    assert_eq!(desk.work("sure?").await.response, "Still a cat.");
    desk.model.assert_append_only();
    // The log keeps words, not pictures.
    let past = Past::of(&desk.events());
    assert!(format!("{past:?}").contains("a.png, as read_file found it") && !format!("{:?}", desk.events()).contains("iVBOR"));
}

#[tokio::test]
async fn a_model_that_does_not_see_is_told_what_can_be_done_instead() {
    for model in [ScriptedModel::new(), ScriptedModel::new().without_props()] {
        let desk = desk(model).await;
        assert_eq!(desk.work("what is it?").await.status, RunStatus::Completed);
        let result = &desk.results(1)[0];
        assert!(result.contains("PNG image (19 bytes)") && result.contains("images cannot be shown to you"), "{result}");
        assert!(!desk.model.requests()[1].to_string().contains("image_url"));
    }
}

#[tokio::test]
async fn an_image_that_is_too_large_is_refused_by_its_size() {
    let desk = desk(ScriptedModel::new().sees()).await;
    std::fs::write(desk.guest.path("a.png"), [PNG, &vec![0; 4 << 20][..]].concat()).expect("written");
    desk.work("what is it?").await;
    assert!(desk.results(1)[0].contains("4194304"), "{:?}", desk.results(1));
}
