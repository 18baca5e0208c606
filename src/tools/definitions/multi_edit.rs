use serde::Deserialize;
use serde_json::Value;
use serde_json::json;

use super::edit_file::OneEdit;
use crate::Options;
use crate::ToolSet;
use crate::arguments::parse;
use crate::arguments::path_argument;
use crate::tool::Tool;
use crate::tool::object;
use podbay_policy::Action;
use podbay_wire::Call;
use podbay_wire::FileEdit;
use podbay_wire::MultiEdit;
use podbay_wire::Replacement;

#[derive(Deserialize)]
struct Arguments {
    edits: Vec<EditOfFile>,
}

#[derive(Deserialize)]
struct EditOfFile {
    path: String,
    #[serde(flatten)]
    edit: OneEdit,
}

pub(super) fn tool() -> Tool {
    Tool::new(
        "multi_edit",
        "Replace text in several files, all or nothing.",
        object(
            &json!({
                "edits": {
                    "type": "array",
                    "description": "Made in order",
                    "items": object(
                        &json!({
                            "path": { "type": "string" },
                            "old_string": { "type": "string" },
                            "new_string": { "type": "string" },
                            "replace_all": { "type": "boolean" },
                        }),
                        &["path", "old_string", "new_string"],
                    ),
                },
            }),
            &["edits"],
        ),
        make,
    )
    .renamed(&[("changes", "edits"), ("replacements", "edits")])
    .in_sets_from(ToolSet::Standard)
    .such_as(r#"{"edits": [{"path": "a.txt", "old_string": "old", "new_string": "new"}]}"#)
}

fn make(arguments: Value, _: &Options, _: &mut Vec<String>) -> Result<Action, String> {
    let Arguments { edits } = parse(arguments)?;
    if edits.is_empty() {
        return Err(
            "`edits` is empty: give each edit with its `path`, `old_string` and `new_string`"
                .to_owned(),
        );
    }
    let edits = edits.into_iter().map(|EditOfFile { path: of, edit }| {
        let OneEdit {
            old_string,
            new_string,
            replace_all,
        } = edit;
        Ok(FileEdit {
            path: path_argument(of)?,
            edit: Replacement {
                old_string,
                new_string,
                replace_all,
            },
        })
    });
    Ok(Action::Box(Call::MultiEdit(MultiEdit {
        edits: edits.collect::<Result<_, String>>()?,
        protected: false,
        known: None,
    })))
}
