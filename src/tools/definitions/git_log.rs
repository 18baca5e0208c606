use serde::Deserialize;
use serde_json::json;

use super::git_status::git;
use super::git_status::word;
use crate::arguments::bounded;
use crate::arguments::parse;
use crate::arguments::written;
use crate::tool::Tool;
use crate::tool::object;
use podbay_wire::GitQuery;

#[derive(Deserialize)]
struct Arguments {
    path: Option<String>,
    count: Option<i64>,
    oneline: Option<bool>,
    file: Option<String>,
    author: Option<String>,
}

pub(super) fn tool() -> Tool {
    Tool::new(
        "git_log",
        "Show the last commits.",
        object(
            &json!({
                "count": { "type": "integer", "description": "How many (default 20)" },
                "oneline": { "type": "boolean", "description": "A line each (default true)" },
                "file": { "type": "string", "description": "Only those that touch this file or folder" },
                "author": { "type": "string" },
                "path": { "type": "string", "description": "Repository (default: the project)" },
            }),
            &[],
        ),
        |arguments, options, notes| {
            let Arguments { path, count, oneline, file, author } = parse(arguments)?;
            let count = bounded("count", count, 20, 1000, notes)?;
            let file = file.filter(|file| !file.trim().is_empty()).map(|file| written(&file));
            let query = GitQuery::Log { count, oneline: oneline.unwrap_or(true), file, author: word("author", author)? };
            Ok(git(query, path.as_deref(), options))
        },
    )
    .renamed(&[
        ("max_count", "count"),
        ("n", "count"),
        ("limit", "count"),
        ("file_path", "file"),
        ("repo", "path"),
        ("repository", "path"),
        ("directory", "path"),
    ])
    .such_as(r#"{"count": 5}"#)
}
