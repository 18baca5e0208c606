use serde::Deserialize;
use serde_json::Value;
use serde_json::json;

use crate::Options;
use crate::ToolSet;
use crate::arguments::parse;
use crate::arguments::path_argument;
use crate::tool::Tool;
use crate::tool::object;
use podbay_policy::Action;
use podbay_wire::Call;
use podbay_wire::WriteFile;

#[derive(Deserialize)]
struct Arguments {
    path: String,
    content: String,
    #[serde(default)]
    append: bool,
}

pub(super) fn tool() -> Tool {
    Tool::new(
        "write_file",
        "Write a whole file. Folders are made as needed.",
        object(
            &json!({
                "path": { "type": "string" },
                "content": { "type": "string", "description": "The whole text" },
                "append": { "type": "boolean", "description": "Add to the end instead" },
            }),
            &["path", "content"],
        ),
        make,
    )
    .renamed(&[
        ("file_path", "path"),
        ("filename", "path"),
        ("file", "path"),
        ("filepath", "path"),
        ("text", "content"),
        ("contents", "content"),
        ("file_content", "content"),
        ("data", "content"),
    ])
    .in_sets_from(ToolSet::Small)
    .small(&["path", "content"], &["path", "content"])
    .such_as(r#"{"path": "notes.txt", "content": "text"}"#)
}

fn make(arguments: Value, _: &Options, _: &mut Vec<String>) -> Result<Action, String> {
    let Arguments {
        path,
        content,
        append,
    } = parse(arguments)?;
    Ok(Action::Box(Call::WriteFile(WriteFile {
        path: path_argument(path)?,
        content,
        append,
        protected: false,
        known: None,
    })))
}
