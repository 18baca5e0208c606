use serde::Deserialize;
use serde_json::Value;
use serde_json::json;

use crate::Options;
use crate::arguments::ONE_PATH;
use crate::arguments::bounded;
use crate::arguments::folder;
use crate::arguments::parse;
use crate::tool::Tool;
use crate::tool::object;
use podbay_policy::Action;
use podbay_wire::Call;
use podbay_wire::Tree;

#[derive(Deserialize)]
struct Arguments {
    path: Option<String>,
    depth: Option<i64>,
}

pub(super) fn tool() -> Tool {
    Tool::new(
        "tree",
        "Show folders in folders, without what git ignores.",
        object(
            &json!({
                "path": { "type": "string", "description": "Folder (default: the project)" },
                "depth": { "type": "integer", "description": "How deep (default 4)" },
            }),
            &[],
        ),
        make,
    )
    .renamed(&ONE_PATH)
    .such_as(r#"{"path": "."}"#)
}

fn make(arguments: Value, options: &Options, notes: &mut Vec<String>) -> Result<Action, String> {
    let Arguments { path, depth } = parse(arguments)?;
    let depth = bounded("depth", depth, 4, 20, notes)?;
    Ok(Action::Box(Call::Tree(Tree {
        path: folder(path.as_deref()),
        depth,
        max_entries: options.list_entries.max(1),
    })))
}
