use serde::Deserialize;
use serde_json::Value;
use serde_json::json;

use crate::arguments::bounded;
use crate::arguments::parse;
use crate::tool::Tool;
use crate::tool::object;
use podbay_policy::Action;
use podbay_wire::Call;
use podbay_wire::Processes;

#[derive(Deserialize)]
struct Arguments {
    process_id: String,
    tail_lines: Option<i64>,
}

pub(super) fn tool() -> Tool {
    Tool::new(
        "get_process_output",
        "Read the end of what a background process has printed.",
        object(
            &json!({
                "process_id": { "type": "string", "description": "Its number, or \"last\"" },
                "tail_lines": { "type": "integer", "description": "Default 50, at most 1000" },
            }),
            &["process_id"],
        ),
        |arguments, _, notes| {
            let Arguments {
                process_id,
                tail_lines,
            } = parse(arguments)?;
            let tail_lines = bounded("tail_lines", tail_lines, 50, 1000, notes)?;
            Ok(Action::Box(Call::Processes(Processes::Output {
                id: process(&process_id)?,
                tail_lines,
            })))
        },
    )
    .renamed(&PROCESS)
    .such_as(r#"{"process_id": "last"}"#)
}

/// Aliases of the process number.
pub(super) const PROCESS: [(&str, &str); 7] = [
    ("pid", "process_id"),
    ("id", "process_id"),
    ("process", "process_id"),
    ("bash_id", "process_id"),
    ("shell_id", "process_id"),
    ("lines", "tail_lines"),
    ("tail", "tail_lines"),
];

/// Parses the process number; `None` means the last one that was started.
pub(super) fn process(given: &str) -> Result<Option<i32>, String> {
    let given = given.trim();
    if given.eq_ignore_ascii_case("last") {
        return Ok(None);
    }
    let shown: Value = given.chars().take(40).collect::<String>().into();
    let id = given.parse::<i32>().ok().filter(|id| *id > 0);
    id.map(Some).ok_or(format!(
        "`process_id` is {shown}; it is a number that list_processes shows, or \"last\""
    ))
}
