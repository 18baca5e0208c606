use serde::Deserialize;
use serde_json::json;

use crate::Options;
use crate::ToolSet;
use crate::arguments::parse;
use crate::arguments::written;
use crate::tool::Tool;
use crate::tool::object;
use podbay_policy::Action;
use podbay_wire::Call;
use podbay_wire::Git;
use podbay_wire::GitQuery;

/// Time limit of git in milliseconds: a status reads all of a large tree.
const TIMEOUT_MS: u64 = 60_000;

#[derive(Deserialize)]
struct Arguments {
    path: Option<String>,
}

pub(super) fn tool() -> Tool {
    Tool::new(
        "git_status",
        "Show the branch and the changed files.",
        object(&json!({ "path": { "type": "string", "description": "Repository (default: the project)" } }), &[]),
        |arguments, options, _| {
            let Arguments { path } = parse(arguments)?;
            Ok(git(GitQuery::Status, path.as_deref(), options))
        },
    )
    .renamed(&REPOSITORY)
    .in_sets_from(ToolSet::Standard)
    .such_as("{}")
}

/// Aliases of the repository's folder.
pub(super) const REPOSITORY: [(&str, &str); 5] = [
    ("repo", "path"),
    ("repository", "path"),
    ("directory", "path"),
    ("repo_path", "path"),
    ("cwd", "path"),
];

pub(super) fn git(query: GitQuery, path: Option<&str>, options: &Options) -> Action {
    Action::Box(Call::Git(Git {
        query,
        path: written(path.filter(|path| !path.trim().is_empty()).unwrap_or(".")),
        protected: false,
        timeout_ms: TIMEOUT_MS,
        grace_ms: options.bash_grace.get().saturating_mul(1000),
        stream_bytes: options.bash_stream.bytes(),
        tail_bytes: options.bash_tail.bytes(),
    }))
}

/// Returns a word for git that cannot be an option.
pub(super) fn word(field: &str, text: Option<String>) -> Result<Option<String>, String> {
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else {
        return Ok(None);
    };
    if text.starts_with('-') {
        return Err(format!(
            "`{field}` begins with `-`, as only options do; for options of git use bash"
        ));
    }
    if text.chars().any(char::is_control) {
        return Err(format!("`{field}` holds a control character"));
    }
    if text.len() > 4000 {
        return Err(format!("`{field}` is longer than 4000 bytes"));
    }
    Ok(Some(text))
}
