use serde::Deserialize;
use serde_json::json;

use super::git_status::git;
use super::git_status::word;
use crate::arguments::parse;
use crate::tool::Tool;
use crate::tool::object;
use podbay_wire::GitQuery;

#[derive(Deserialize)]
struct Arguments {
    target: String,
    #[serde(default)]
    create: bool,
    path: Option<String>,
}

pub(super) fn tool() -> Tool {
    Tool::new(
        "git_checkout",
        "Switch to a branch or commit.",
        object(
            &json!({
                "target": { "type": "string", "description": "Branch or commit" },
                "create": { "type": "boolean", "description": "Make the branch first" },
                "path": { "type": "string", "description": "Repository (default: the project)" },
            }),
            &["target"],
        ),
        |arguments, options, _| {
            let Arguments {
                target,
                create,
                path,
            } = parse(arguments)?;
            let target = word("target", Some(target))?.ok_or("`target` is empty")?;
            Ok(git(
                GitQuery::Checkout { target, create },
                path.as_deref(),
                options,
            ))
        },
    )
    .renamed(&[
        ("branch", "target"),
        ("name", "target"),
        ("ref", "target"),
        ("b", "create"),
        ("repo", "path"),
        ("repository", "path"),
        ("directory", "path"),
        ("repo_path", "path"),
        ("cwd", "path"),
    ])
    .such_as(r#"{"target": "main"}"#)
}
