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
use crate::wire::DeleteFile;

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
    .known_as(&["DeleteFile", "remove_file", "rm"])
    .renamed(&ONE_PATH)
    .such_as(r#"{"path": "old.txt"}"#)
}

fn make(arguments: Value, _: &Options, _: &mut Vec<String>) -> Result<Action, String> {
    let Arguments { path, recursive } = parse(arguments)?;
    Ok(Action::Box(Call::DeleteFile(DeleteFile { path: named(path)?, recursive, protected: false, known: None })))
}
