use serde::Deserialize;
use serde_json::Value;
use serde_json::json;

use crate::Options;
use crate::arguments::ONE_PATH;
use crate::arguments::parse;
use crate::arguments::path_argument;
use crate::tool::Tool;
use crate::tool::object;
use podbay_policy::Action;
use podbay_wire::Call;
use podbay_wire::Mkdir;

#[derive(Deserialize)]
struct Arguments {
    path: String,
}

pub(super) fn tool() -> Tool {
    Tool::new(
        "mkdir",
        "Make a folder and those above it.",
        object(&json!({ "path": { "type": "string" } }), &["path"]),
        make,
    )
    .renamed(&ONE_PATH)
    .such_as(r#"{"path": "src/new"}"#)
}

fn make(arguments: Value, _: &Options, _: &mut Vec<String>) -> Result<Action, String> {
    let Arguments { path } = parse(arguments)?;
    Ok(Action::Box(Call::Mkdir(Mkdir {
        path: path_argument(path)?,
        protected: false,
    })))
}
