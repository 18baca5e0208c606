use serde::Deserialize;
use serde_json::Value;
use serde_json::json;

use crate::Options;
use crate::arguments::TWO_PATHS;
use crate::arguments::parse;
use crate::arguments::path;
use crate::tool::Tool;
use crate::tool::object;
use podbay_policy::Action;
use podbay_wire::Call;
use podbay_wire::MoveFile;

#[derive(Deserialize)]
struct Arguments {
    source: String,
    destination: String,
    #[serde(default)]
    overwrite: bool,
}

pub(super) fn tool() -> Tool {
    Tool::new(
        "move_file",
        "Move or rename a file or folder. Folders are made as needed.",
        object(
            &json!({
                "source": { "type": "string" },
                "destination": { "type": "string", "description": "The new path, name included" },
                "overwrite": { "type": "boolean", "description": "Replace a file that is there" },
            }),
            &["source", "destination"],
        ),
        make,
    )
    .renamed(&TWO_PATHS)
    .such_as(r#"{"source": "a.txt", "destination": "b.txt"}"#)
}

fn make(arguments: Value, _: &Options, _: &mut Vec<String>) -> Result<Action, String> {
    let Arguments {
        source,
        destination,
        overwrite,
    } = parse(arguments)?;
    let (source, destination) = (path("source", source)?, path("destination", destination)?);
    Ok(Action::Box(Call::MoveFile(MoveFile {
        source,
        destination,
        overwrite,
        protected: false,
        known: None,
    })))
}
