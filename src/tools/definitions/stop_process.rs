use serde::Deserialize;
use serde_json::json;

use super::get_process_output::process;
use crate::arguments::parse;
use crate::tool::Tool;
use crate::tool::object;
use podbay_policy::Action;
use podbay_wire::Call;
use podbay_wire::Processes;

#[derive(Deserialize)]
struct Arguments {
    process_id: String,
}

pub(super) fn tool() -> Tool {
    Tool::new(
        "stop_process",
        "End a background process and all that it has started.",
        object(&json!({ "process_id": { "type": "string", "description": "Its number, or \"last\"" } }), &["process_id"]),
        |arguments, options, _| {
            let Arguments { process_id } = parse(arguments)?;
            let grace_ms = options.bash_grace.get().saturating_mul(1000);
            Ok(Action::Box(Call::Processes(Processes::Stop { id: process(&process_id)?, grace_ms })))
        },
    )
    .renamed(&[("pid", "process_id"), ("id", "process_id"), ("process", "process_id"), ("shell_id", "process_id")])
    .such_as(r#"{"process_id": "last"}"#)
}
