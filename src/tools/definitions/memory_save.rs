use serde::Deserialize;
use serde_json::json;

use crate::ToolSet;
use crate::arguments::nonempty;
use crate::arguments::parse;
use crate::tool::Tool;
use crate::tool::object;
use podbay_event::Memory;
use podbay_event::MemoryKind;
use podbay_policy::Action;
use podbay_policy::HostCall;

pub(crate) const NAME: &str = "memory_save";

#[derive(Deserialize)]
struct Arguments {
    name: String,
    kind: MemoryKind,
    description: String,
    content: String,
}

/// Saves a note for later sessions of the project. What may be saved is checked where it is stored.
pub(super) fn tool() -> Tool {
    Tool::new(
        NAME,
        "Save a short note for later sessions in this project: what is hard to find out again.",
        object(
            &json!({
                "name": { "type": "string", "description": "Such as build-command; the same name replaces a note" },
                "kind": { "type": "string", "enum": MemoryKind::ALL.map(|(word, _)| word) },
                "description": { "type": "string", "description": "One line" },
                "content": { "type": "string" },
            }),
            &["name", "kind", "description", "content"],
        ),
        |arguments, _, _| {
            let Arguments { name, kind, description, content } = parse(arguments)?;
            Ok(Action::Host(HostCall::SaveMemory(Memory {
                name: nonempty("name", name)?,
                kind,
                description: nonempty("description", description)?,
                content: nonempty("content", content)?,
            })))
        },
    )
    .known_as(&["MemorySave", "save_memory", "memory"])
    .renamed(&[("type", "kind"), ("title", "name"), ("summary", "description"), ("text", "content"), ("body", "content")])
    .in_sets_from(ToolSet::Standard)
    .such_as(
        r#"{"name": "build-command", "kind": "project", "description": "How to build it", "content": "Run make all; it needs 5 minutes."}"#,
    )
}
