use serde_json::Value;
use serde_json::json;

use super::bash;
use crate::Options;
use crate::tool::Tool;
use crate::tool::object;
use podbay_policy::Action;

/// Starts a background command: `bash` with `background`, so that it is parsed and judged as one.
pub(super) fn tool() -> Tool {
    Tool::new(
        "start_background_process",
        "Start a command, such as a server, and leave it running. It ends with the session.",
        object(
            &json!({ "command": { "type": "string" }, "working_directory": { "type": "string", "description": "Folder to run in" } }),
            &["command"],
        ),
        start,
    )
    .renamed(&[("cmd", "command"), ("cwd", "working_directory"), ("workdir", "working_directory"), ("directory", "working_directory")])
    .such_as(r#"{"command": "python3 -m http.server 8000"}"#)
}

fn start(mut given: Value, options: &Options, notes: &mut Vec<String>) -> Result<Action, String> {
    given["background"] = true.into();
    bash::make(given, options, notes)
}
