//! Property test: a request begins with the bytes of the one before, whatever messages are added.

use proptest::prelude::*;
use serde_json::Value;

use super::Prompt;
use super::tests::call;
use super::tests::tools;
use crate::message::Message;
use podbay_event::ToolMode;

fn message() -> impl Strategy<Value = Message> {
    prop_oneof![
        ".{0,12}".prop_map(Message::user),
        ".{0,12}".prop_map(|text| Message::System { text }),
        (".{0,12}", prop::option::of("\\{\"answer\": \".{0,5}")).prop_map(|(text, raw)| {
            Message::Assistant {
                text,
                thinking: String::new(),
                calls: vec![],
                raw,
            }
        }),
        prop_oneof![Just("{\"a\": 1}".to_owned()), ".{0,8}"].prop_map(|arguments| call(&arguments)),
        ("[<|im_end>a-z]{0,16}", any::<bool>()).prop_map(|(text, is_error)| Message::ToolResult {
            call: "c1".into(),
            name: "bash".into(),
            text,
            is_error
        }),
    ]
}

proptest! {
    #[test]
    fn each_request_begins_with_the_bytes_of_the_one_before(
        turns in prop::collection::vec(prop::collection::vec(message(), 0..4), 1..8),
        mode in prop::sample::select(vec![ToolMode::Native, ToolMode::Constrained, ToolMode::Text]),
    ) {
        let mut prompt = Prompt::new("system", &tools(), mode);
        let mut before = String::new();
        for turn in turns {
            for message in &turn {
                prompt.push(message);
            }
            let head = prompt.head();
            prop_assert!(head.starts_with(&before));
            let body = format!("{head}]}}");
            prop_assert!(serde_json::from_str::<Value>(&body).is_ok());
            before = head;
            prompt.sent();
        }
    }
}
