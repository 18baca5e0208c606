use serde::Deserialize;
use serde_json::json;

use crate::arguments::nonempty;
use crate::arguments::parse;
use crate::tool::Tool;
use crate::tool::object;
use podbay_policy::Action;
use podbay_policy::HostCall;

#[derive(Deserialize)]
struct Arguments {
    thought: String,
}

/// A scratchpad for models that do not reason before they answer.
pub(super) fn tool() -> Tool {
    Tool::new(
        "think",
        "Write down a thought before you continue. Nothing is done.",
        object(&json!({ "thought": { "type": "string" } }), &["thought"]),
        |arguments, _, _| {
            let Arguments { thought } = parse(arguments)?;
            Ok(Action::Host(HostCall::Think {
                thought: nonempty("thought", thought)?,
            }))
        },
    )
    .known_as(&["Think", "reflect"])
    .renamed(&[
        ("thoughts", "thought"),
        ("text", "thought"),
        ("content", "thought"),
        ("reasoning", "thought"),
    ])
    .such_as(r#"{"thought": "The test fails because the file is missing."}"#)
}
