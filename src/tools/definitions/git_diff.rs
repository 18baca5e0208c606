use serde::Deserialize;
use serde_json::json;

use super::git_status::git;
use super::git_status::word;
use crate::ToolSet;
use crate::arguments::parse;
use crate::arguments::written;
use crate::tool::Tool;
use crate::tool::object;
use podbay_wire::GitQuery;

#[derive(Deserialize)]
struct Arguments {
    path: Option<String>,
    #[serde(default)]
    staged: bool,
    file: Option<String>,
    base: Option<String>,
}

pub(super) fn tool() -> Tool {
    Tool::new(
        "git_diff",
        "Show what has changed since the last commit.",
        object(
            &json!({
                "file": { "type": "string", "description": "Only this file or folder" },
                "staged": { "type": "boolean", "description": "What is staged" },
                "base": { "type": "string", "description": "Branch, commit or range (A..B) to compare with" },
                "path": { "type": "string", "description": "Repository (default: the project)" },
            }),
            &[],
        ),
        |arguments, options, _| {
            let Arguments { path, staged, file, base } = parse(arguments)?;
            let base = word("base", base)?;
            if base.as_deref().is_some_and(|base| [":", "^!", "^@", "^-"].iter().any(|sign| base.contains(sign))) {
                return Err(
                    "`base` is a commit, a branch, a tag or a range of them; name a file in `file`, and for what one commit changed \
                            write COMMIT^..COMMIT"
                        .to_owned(),
                );
            }
            if staged && base.is_some() {
                return Err("`staged` compares with the last commit, `base` with another one; give one of them".to_owned());
            }
            let file = file.filter(|file| !file.trim().is_empty()).map(|file| written(&file));
            Ok(git(GitQuery::Diff { staged, file, base }, path.as_deref(), options))
        },
    )
    .renamed(&[
        ("file_path", "file"),
        ("filename", "file"),
        ("cached", "staged"),
        ("ref", "base"),
        ("commit", "base"),
        ("branch", "base"),
        ("repo", "path"),
        ("repository", "path"),
        ("directory", "path"),
    ])
    .in_sets_from(ToolSet::Standard)
    .such_as(r#"{"file": "src/main.rs"}"#)
}
