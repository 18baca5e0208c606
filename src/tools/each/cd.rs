use serde::Deserialize;
use serde_json::json;

use crate::policy::Action;
use crate::tools::arguments::filled;
use crate::tools::arguments::parse;
use crate::tools::tool::Tool;
use crate::tools::tool::object;
use crate::wire::BytesPath;
use crate::wire::Call;
use crate::wire::Cd;

#[derive(Deserialize)]
struct Arguments {
    path: String,
}

/// Where commands run from now on. Paths of the other tools go on being seen from the project's folder: what a path means must not depend
/// on what was called before, or no rule could speak of it.
pub(super) fn tool() -> Tool {
    Tool::new(
        "cd",
        "Set the folder that later commands run in. Paths of other tools stay relative to the project.",
        object(&json!({ "path": { "type": "string", "description": "Folder, from the project's" } }), &["path"]),
        |arguments, _, _| {
            let Arguments { path } = parse(arguments)?;
            Ok(Action::Box(Call::Cd(Cd { path: BytesPath::from_text(&filled("path", path)?) })))
        },
    )
    .known_as(&["Cd", "change_directory", "chdir", "set_working_directory"])
    .renamed(&[("directory", "path"), ("dir", "path"), ("folder", "path"), ("working_directory", "path"), ("cwd", "path")])
    .such_as(r#"{"path": "src"}"#)
}
