use serde::Deserialize;
use serde_json::json;

use super::git_status::REPOSITORY;
use super::git_status::git;
use crate::arguments::parse;
use crate::tool::Tool;
use crate::tool::object;
use podbay_wire::GitQuery;
use podbay_wire::GitStash;

#[derive(Deserialize)]
struct Arguments {
    action: Option<String>,
    message: Option<String>,
    index: Option<i64>,
    path: Option<String>,
}

pub(super) fn tool() -> Tool {
    Tool::new(
        "git_stash",
        "Put changes away, or bring them back.",
        object(
            &json!({
                "action": { "type": "string", "enum": ["push", "pop", "list", "apply", "drop"], "description": "Default: push" },
                "message": { "type": "string", "description": "For push" },
                "index": { "type": "integer", "description": "Which stash, 0 is the last one (default 0)" },
                "path": { "type": "string", "description": "Repository (default: the project)" },
            }),
            &[],
        ),
        |arguments, options, _| {
            let Arguments { action, message, index, path } = parse(arguments)?;
            let index = index.unwrap_or(0);
            let index = u32::try_from(index).map_err(|_| format!("`index` cannot be {index}: it counts from 0"))?;
            let message = message.filter(|message| !message.trim().is_empty());
            let action = action.as_deref().unwrap_or("push");
            // Index 0 is the default, so it is accepted everywhere.
            if index > 0 && matches!(action, "push" | "list") {
                return Err(format!("`index` is not for {action}; it names the stash to pop, apply or drop"));
            }
            if message.is_some() && action != "push" {
                return Err(format!("`message` is for push alone, and not for {action}"));
            }
            let stash = match action {
                "push" => GitStash::Push { message },
                "pop" => GitStash::Pop { index },
                "list" => GitStash::List,
                "apply" => GitStash::Apply { index },
                "drop" => GitStash::Drop { index },
                other => return Err(format!("`action` is push, pop, list, apply or drop, and not `{other}`")),
            };
            Ok(git(GitQuery::Stash(stash), path.as_deref(), options))
        },
    )
    .renamed(&REPOSITORY)
    .such_as(r#"{"action": "pop"}"#)
}
