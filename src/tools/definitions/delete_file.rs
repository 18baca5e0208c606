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
use podbay_wire::DeleteFile;

#[derive(Deserialize)]
struct Arguments {
    path: String,
    #[serde(default)]
    recursive: bool,
}

pub(super) fn tool() -> Tool {
    Tool::new(
        "delete_file",
        "Delete a file or folder.",
        object(
            &json!({
                "path": { "type": "string" },
                "recursive": { "type": "boolean", "description": "A folder with all in it" },
            }),
            &["path"],
        ),
        make,
    )
    .renamed(&ONE_PATH)
    .such_as(r#"{"path": "old.txt"}"#)
}

fn make(arguments: Value, _: &Options, _: &mut Vec<String>) -> Result<Action, String> {
    let Arguments { path, recursive } = parse(arguments)?;
    Ok(Action::Box(Call::DeleteFile(DeleteFile {
        path: path_argument(path)?,
        recursive,
        protected: false,
        known: None,
    })))
}
