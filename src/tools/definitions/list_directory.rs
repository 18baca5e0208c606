use serde::Deserialize;
use serde_json::Value;
use serde_json::json;

use crate::Options;
use crate::ToolSet;
use crate::arguments::bounded;
use crate::arguments::folder;
use crate::arguments::parse;
use crate::tool::Tool;
use crate::tool::object;
use podbay_policy::Action;
use podbay_wire::Call;
use podbay_wire::ListDirectory;

#[derive(Deserialize)]
struct Arguments {
    path: Option<String>,
    #[serde(default)]
    recursive: bool,
    #[serde(default)]
    show_hidden: bool,
    show_size: Option<bool>,
    max_entries: Option<i64>,
}

pub(super) fn tool() -> Tool {
    Tool::new(
        "list_directory",
        "List the files in a folder.",
        object(
            &json!({
                "path": { "type": "string", "description": "Folder (default: the project)" },
                "recursive": { "type": "boolean", "description": "Also what is in its folders" },
                "show_hidden": { "type": "boolean" },
                "show_size": { "type": "boolean" },
                "max_entries": { "type": "integer" },
            }),
            &[],
        ),
        make,
    )
    .renamed(&[
        ("dir", "path"),
        ("directory", "path"),
        ("folder", "path"),
        ("file_path", "path"),
        ("filepath", "path"),
        ("file", "path"),
    ])
    .in_sets_from(ToolSet::Small)
    .small(&["path", "recursive"], &[])
    .such_as(r#"{"path": "."}"#)
}

fn make(arguments: Value, options: &Options, notes: &mut Vec<String>) -> Result<Action, String> {
    let Arguments {
        path,
        recursive,
        show_hidden,
        show_size,
        max_entries,
    } = parse(arguments)?;
    let max_entries = bounded(
        "max_entries",
        max_entries,
        options.list_entries,
        options.list_entries.max(1),
        notes,
    )?;
    Ok(Action::Box(Call::ListDirectory(ListDirectory {
        path: folder(path.as_deref()),
        recursive,
        show_hidden,
        show_size: show_size.unwrap_or(true),
        max_entries,
    })))
}
