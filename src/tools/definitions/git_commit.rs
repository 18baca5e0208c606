use serde::Deserialize;
use serde_json::Value;
use serde_json::json;

use super::git_status::git;
use crate::Options;
use crate::arguments::nonempty;
use crate::arguments::parse;
use crate::arguments::written;
use crate::tool::Tool;
use crate::tool::object;
use podbay_policy::Action;
use podbay_wire::BytesPath;
use podbay_wire::GitQuery;

#[derive(Deserialize)]
struct Arguments {
    message: String,
    files: Option<Vec<String>>,
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
        make,
    )
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

fn make(arguments: Value, options: &Options, _: &mut Vec<String>) -> Result<Action, String> {
    let Arguments {
        message,
        files,
        path,
    } = parse(arguments)?;
    let named: Vec<BytesPath> = files
        .iter()
        .flatten()
        .filter(|file| !file.trim().is_empty())
        .map(|file| written(file))
        .collect();
    // An empty list would commit all changes.
    if files.is_some() && named.is_empty() {
        return Err("`files` names no file; name those to commit, or leave it out to commit all that has changed".to_owned());
    }
    if message.contains('\0') {
        return Err("`message` holds a zero byte".to_owned());
    }
    let query = GitQuery::Commit {
        message: nonempty("message", message)?,
        files: named,
    };
    Ok(git(query, path.as_deref(), options))
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_wire::Call;

    #[test]
    fn an_empty_file_list_does_not_commit_everything() {
        let made = |arguments: Value| make(arguments, &Options::default(), &mut Vec::new());
        for files in [json!([]), json!([""]), json!([" ", "\t"])] {
            let refused =
                made(json!({ "message": "x", "files": files })).expect_err("it names none");
            assert!(refused.contains("leave it out to commit all"), "{refused}");
        }
        for (arguments, n_files) in [
            (json!({ "message": "x" }), 0),
            (json!({ "message": "x", "files": ["", "a"] }), 1),
        ] {
            let Ok(Action::Box(Call::Git(made))) = made(arguments.clone()) else {
                panic!("{arguments} is refused")
            };
            assert!(
                matches!(&made.query, GitQuery::Commit { files, .. } if files.len() == n_files),
                "{arguments}"
            );
        }
    }
}
