use serde::Deserialize;
use serde_json::json;

use crate::arguments::nonempty;
use crate::arguments::parse;
use crate::arguments::written;
use crate::tool::Tool;
use crate::tool::object;
use podbay_policy::Action;
use podbay_wire::Call;
use podbay_wire::Cd;

#[derive(Deserialize)]
struct Arguments {
    path: String,
}

/// Sets the working directory of later commands. Paths of the other tools stay relative to the
/// project's folder: a path must not depend on earlier calls, or rules could not match it.
pub(super) fn tool() -> Tool {
    Tool::new(
        "cd",
        "Set the folder that later commands run in. Paths of other tools stay relative to the project.",
        object(&json!({ "path": { "type": "string", "description": "Folder, from the project's" } }), &["path"]),
        |arguments, _, _| {
            let Arguments { path } = parse(arguments)?;
            Ok(Action::Box(Call::Cd(Cd { path: written(&nonempty("path", path)?) })))
        },
    )
    .renamed(&[("directory", "path"), ("dir", "path"), ("folder", "path"), ("working_directory", "path"), ("cwd", "path")])
    .such_as(r#"{"path": "src"}"#)
}
