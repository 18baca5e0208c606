use serde::Deserialize;
use serde_json::json;

use super::git_status::REPOSITORY;
use super::git_status::git;
use super::git_status::word;
use crate::arguments::parse;
use crate::tool::Tool;
use crate::tool::object;
use podbay_wire::GitBranch;
use podbay_wire::GitQuery;

#[derive(Deserialize)]
struct Arguments {
    action: Option<String>,
    name: Option<String>,
    path: Option<String>,
}

pub(super) fn tool() -> Tool {
    Tool::new(
        "git_branch",
        "List, create or delete branches.",
        object(
            &json!({
                "action": { "type": "string", "enum": ["list", "create", "delete"], "description": "Default: list" },
                "name": { "type": "string" },
                "path": { "type": "string", "description": "Repository (default: the project)" },
            }),
            &[],
        ),
        |arguments, options, _| {
            let Arguments { action, name, path } = parse(arguments)?;
            let name = word("name", name)?;
            let named = |action: &str| name.clone().ok_or_else(|| format!("`name` is missing: which branch to {action}"));
            let branch = match action.as_deref().unwrap_or("list") {
                "list" if name.is_some() => return Err("`name` is not for list; to make or delete it, say so with `action`".to_owned()),
                "list" => GitBranch::List,
                "create" => GitBranch::Create { name: named("create")? },
                "delete" => GitBranch::Delete { name: named("delete")? },
                other => return Err(format!("`action` is list, create or delete, and not `{other}`")),
            };
            Ok(git(GitQuery::Branch(branch), path.as_deref(), options))
        },
    )
    .renamed(&REPOSITORY)
    .such_as(r#"{"action": "create", "name": "topic"}"#)
}
