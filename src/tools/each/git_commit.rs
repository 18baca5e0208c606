use serde::Deserialize;
use serde_json::json;

use super::git_status::git;
use crate::tools::arguments::filled;
use crate::tools::arguments::parse;
use crate::tools::tool::Tool;
use crate::tools::tool::object;
use crate::wire::BytesPath;
use crate::wire::GitQuery;

#[derive(Deserialize)]
struct Arguments {
    message: String,
    #[serde(default)]
    files: Vec<String>,
    path: Option<String>,
}

pub(super) fn tool() -> Tool {
    Tool::new(
        "git_commit",
        "Commit changes.",
        object(
            &json!({
                "message": { "type": "string" },
                "files": { "type": "array", "items": { "type": "string" }, "description": "Only these (default: all that has changed)" },
                "path": { "type": "string", "description": "Repository (default: the project)" },
            }),
            &["message"],
        ),
        |arguments, options, _| {
            let Arguments { message, files, path } = parse(arguments)?;
            let files = files.iter().filter(|file| !file.trim().is_empty()).map(|file| BytesPath::from_text(file)).collect();
            if message.contains('\0') {
                return Err("`message` holds a zero byte".to_owned());
            }
            let query = GitQuery::Commit { message: filled("message", message)?, files };
            Ok(git(query, path.as_deref(), options))
        },
    )
    .known_as(&["GitCommit"])
    .renamed(&[
        ("msg", "message"),
        ("commit_message", "message"),
        ("paths", "files"),
        ("repo", "path"),
        ("repository", "path"),
        ("directory", "path"),
        ("repo_path", "path"),
        ("cwd", "path"),
    ])
    .such_as(r#"{"message": "Fix the parser"}"#)
}
