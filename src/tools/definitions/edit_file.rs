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
use podbay_wire::EditFile;
use podbay_wire::Replacement;

#[derive(Deserialize)]
struct Arguments {
    path: String,
    old_string: Option<String>,
    new_string: Option<String>,
    #[serde(default)]
    replace_all: bool,
    #[serde(default)]
    create_if_missing: bool,
    edits: Option<Vec<OneEdit>>,
}

#[derive(Deserialize)]
pub(super) struct OneEdit {
    pub(super) old_string: String,
    pub(super) new_string: String,
    #[serde(default)]
    pub(super) replace_all: bool,
}

pub(super) fn tool() -> Tool {
    Tool::new("edit_file", "Replace text in a file. old_string must be copied exactly and stand there once.", object(
                &json!({
                    "path": { "type": "string" },
                    "old_string": { "type": "string", "description": "Text to replace" },
                    "new_string": { "type": "string", "description": "Text to put there" },
                    "replace_all": { "type": "boolean", "description": "Replace every place" },
                    "create_if_missing": { "type": "boolean", "description": "With an empty old_string: make the file" },
                    "edits": {
                        "type": "array",
                        "description": "Instead of the above: several replacements, all or none",
                        "items": object(
                            &json!({ "old_string": { "type": "string" }, "new_string": { "type": "string" }, "replace_all": { "type": "boolean" } }),
                            &["old_string", "new_string"],
                        ),
                    },
                }),
                &["path"],
            ), make).renamed(&[
                ("file_path", "path"),
                ("filepath", "path"),
                ("filename", "path"),
                ("file", "path"),
                ("old_str", "old_string"),
                ("new_str", "new_string"),
                ("old", "old_string"),
                ("new", "new_string"),
                ("old_text", "old_string"),
                ("new_text", "new_string"),
                ("find", "old_string"),
                ("replace", "new_string"),
            ]).in_sets_from(ToolSet::Small).small(&["path", "old_string", "new_string", "replace_all"], &["path", "old_string", "new_string"]).such_as(r#"{"path": "a.txt", "old_string": "old", "new_string": "new"}"#)
}

fn make(arguments: Value, _: &Options, _: &mut Vec<String>) -> Result<Action, String> {
    let Arguments {
        path,
        old_string,
        new_string,
        replace_all,
        create_if_missing,
        edits,
    } = parse(arguments)?;
    let edits = match (edits, old_string, new_string) {
        (Some(_), None, None) if replace_all => {
            return Err(
                "`replace_all` is for one edit; give it in each of `edits` that it is for"
                    .to_owned(),
            );
        }
        (Some(edits), None, None) if !edits.is_empty() => edits
            .into_iter()
            .map(
                |OneEdit {
                     old_string,
                     new_string,
                     replace_all,
                 }| Replacement {
                    old_string,
                    new_string,
                    replace_all,
                },
            )
            .collect(),
        (Some(_), _, _) => return Err(
            "give either `edits` or `old_string` and `new_string`, not both and not an empty list"
                .to_owned(),
        ),
        (None, Some(old_string), Some(new_string)) => vec![Replacement {
            old_string,
            new_string,
            replace_all,
        }],
        (None, None, Some(new_string)) if create_if_missing => {
            vec![Replacement {
                old_string: String::new(),
                new_string,
                replace_all: false,
            }]
        }
        (None, None, _) => return Err("`old_string` is missing".to_owned()),
        (None, Some(_), None) => return Err("`new_string` is missing".to_owned()),
    };
    Ok(Action::Box(Call::EditFile(EditFile {
        path: path_argument(path)?,
        edits,
        create_if_missing,
        protected: false,
        known: None,
    })))
}
