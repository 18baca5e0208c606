use serde::Deserialize;
use serde_json::json;

use crate::arguments::nonempty;
use crate::arguments::parse;
use crate::arguments::written;
use crate::tool::Tool;
use crate::tool::object;
use podbay_policy::Action;
use podbay_wire::Archive;
use podbay_wire::ArchiveAction;
use podbay_wire::BytesPath;
use podbay_wire::Call;

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Operation {
    Create,
    Extract,
    List,
}

#[derive(Deserialize)]
struct Arguments {
    action: Operation,
    archive_path: String,
    source_path: Option<String>,
    output_path: Option<String>,
}

pub(super) fn tool() -> Tool {
    Tool::new(
        "archive",
        "Make, unpack or list a .zip, .tar or .tar.gz.",
        object(
            &json!({
                "action": { "type": "string", "enum": ["create", "extract", "list"] },
                "archive_path": { "type": "string" },
                "source_path": { "type": "string", "description": "File or folder to pack, for create" },
                "output_path": { "type": "string", "description": "Folder to unpack into, for extract (default: the project)" },
            }),
            &["action", "archive_path"],
        ),
        |arguments, options, _| {
            let Arguments { action, archive_path, source_path, output_path } = parse(arguments)?;
            let path = |field: &str, path: String| nonempty(field, path).map(|path| written(&path));
            let archive = path("archive_path", archive_path)?;
            let action = match (action, source_path, output_path) {
                (Operation::List, None, None) => ArchiveAction::List,
                (Operation::List, ..) => return Err("list takes only `archive_path`".to_owned()),
                (Operation::Create, _, Some(_)) => return Err("`output_path` is for extract; create writes to `archive_path`".to_owned()),
                (Operation::Create, None, None) => return Err("`source_path` is missing: what is to be packed".to_owned()),
                (Operation::Create, Some(source), None) => ArchiveAction::Create { source: path("source_path", source)? },
                (Operation::Extract, Some(_), _) => return Err("`source_path` is for create; extract reads `archive_path`".to_owned()),
                (Operation::Extract, None, into) => {
                    ArchiveAction::Extract { into: into.map_or_else(|| Ok(BytesPath::from_text(".")), |into| path("output_path", into))? }
                }
            };
            Ok(Action::Box(Call::Archive(Archive { action, archive, max_entries: options.list_entries.max(1), protected: false })))
        },
    )
    .renamed(&[
        ("operation", "action"),
        ("path", "archive_path"),
        ("archive", "archive_path"),
        ("file", "archive_path"),
        ("source", "source_path"),
        ("input_path", "source_path"),
        ("output", "output_path"),
        ("destination", "output_path"),
        ("target", "output_path"),
    ])
    .such_as(r#"{"action": "list", "archive_path": "data.zip"}"#)
}
