use serde::Deserialize;
use serde_json::Value;
use serde_json::json;

use crate::policy::Action;
use crate::tools::Options;
use crate::tools::arguments::ONE_PATH;
use crate::tools::arguments::named;
use crate::tools::arguments::parse;
use crate::tools::tool::Tool;
use crate::tools::tool::object;
use crate::wire::Call;
use crate::wire::Mkdir;

#[derive(Deserialize)]
struct Arguments {
    path: String,
}

pub(super) fn tool() -> Tool {
    Tool::new("mkdir", "Make a folder and those above it.", object(&json!({ "path": { "type": "string" } }), &["path"]), make)
        .known_as(&["create_directory", "make_directory"])
        .renamed(&ONE_PATH)
        .such_as(r#"{"path": "src/new"}"#)
}

fn make(arguments: Value, _: &Options, _: &mut Vec<String>) -> Result<Action, String> {
    let Arguments { path } = parse(arguments)?;
    Ok(Action::Box(Call::Mkdir(Mkdir { path: named(path)?, protected: false })))
}
