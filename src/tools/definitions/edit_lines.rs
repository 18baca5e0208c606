use serde::Deserialize;
use serde_json::Value;
use serde_json::json;

use crate::Options;
use crate::arguments::parse;
use crate::arguments::path_argument;
use crate::tool::Tool;
use crate::tool::object;
use podbay_policy::Action;
use podbay_wire::Call;
use podbay_wire::EditLines;
use podbay_wire::LineOperation;

#[derive(Deserialize)]
struct Arguments {
    path: String,
    operation: LineOperation,
    start_line: Option<i64>,
    end_line: Option<i64>,
    new_content: Option<String>,
}

pub(super) fn tool() -> Tool {
    Tool::new(
        "edit_lines",
        "Change lines by their numbers.",
        object(
            &json!({
                "path": { "type": "string" },
                "operation": { "type": "string", "enum": ["insert", "replace", "delete"] },
                "start_line": { "type": "integer", "description": "First line, from 1; insert puts text before it" },
                "end_line": { "type": "integer", "description": "Last line (default: start_line)" },
                "new_content": { "type": "string" },
            }),
            &["path", "operation", "start_line"],
        ),
        make,
    )
    .renamed(&[
        ("file_path", "path"),
        ("filepath", "path"),
        ("filename", "path"),
        ("file", "path"),
        ("line", "start_line"),
        ("start", "start_line"),
        ("end", "end_line"),
        ("content", "new_content"),
        ("text", "new_content"),
    ])
    .such_as(r#"{"path": "a.txt", "operation": "replace", "start_line": 3, "new_content": "new"}"#)
}

fn make(arguments: Value, _: &Options, _: &mut Vec<String>) -> Result<Action, String> {
    let Arguments {
        path,
        operation,
        start_line,
        end_line,
        new_content,
    } = parse(arguments)?;
    let line = |field: &str, line: i64| {
        u64::try_from(line)
            .ok()
            .filter(|line| *line > 0)
            .ok_or_else(|| format!("`{field}` is {line}; lines are counted from 1"))
    };
    let start_line = line("start_line", start_line.ok_or("`start_line` is missing")?)?;
    let last = end_line.map(|last| line("end_line", last)).transpose()?;
    if last.is_some_and(|last| last < start_line) {
        return Err("`end_line` comes before `start_line`".to_owned());
    }
    let new_content = new_content.filter(|content| !content.is_empty());
    match (operation, last, &new_content) {
        (LineOperation::Delete, _, Some(_)) => {
            return Err("`new_content` is not for delete; use replace".to_owned());
        }
        (LineOperation::Insert | LineOperation::Replace, _, None) => {
            return Err("`new_content` is missing; to take lines away use delete".to_owned());
        }
        (LineOperation::Insert, Some(last), _) if last != start_line => {
            return Err(
                "`end_line` is not for insert, which goes before `start_line`; use replace"
                    .to_owned(),
            );
        }
        _ => {}
    }
    let new_content = new_content.unwrap_or_default();
    let end_line = last.unwrap_or(start_line);
    Ok(Action::Box(Call::EditLines(EditLines {
        path: path_argument(path)?,
        operation,
        start_line,
        end_line,
        new_content,
        protected: false,
        known: None,
    })))
}
