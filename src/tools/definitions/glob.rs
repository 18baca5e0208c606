use serde::Deserialize;
use serde_json::Value;
use serde_json::json;

use crate::Options;
use crate::ToolSet;
use crate::arguments::bounded;
use crate::arguments::folder;
use crate::arguments::nonempty;
use crate::arguments::parse;
use crate::tool::Tool;
use crate::tool::object;
use podbay_policy::Action;
use podbay_wire::BytesPath;
use podbay_wire::Call;
use podbay_wire::Glob;

#[derive(Deserialize)]
struct Arguments {
    pattern: String,
    path: Option<String>,
    exclude: Option<String>,
    #[serde(default)]
    include_ignored: bool,
    max_results: Option<i64>,
}

pub(super) fn tool() -> Tool {
    Tool::new(
        "glob",
        "Find files by name, newest first.",
        object(
            &json!({
                "pattern": { "type": "string", "description": "Such as **/*.py" },
                "path": { "type": "string", "description": "Folder to look in (default: the project)" },
                "exclude": { "type": "string", "description": "Names to leave out, such as **/test_*" },
                "include_ignored": { "type": "boolean", "description": "Also hidden and git-ignored files" },
                "max_results": { "type": "integer" },
            }),
            &["pattern"],
        ),
        make,
    )
    .renamed(&[
        ("query", "pattern"),
        ("search", "pattern"),
        ("glob", "pattern"),
        ("dir", "path"),
        ("directory", "path"),
        ("folder", "path"),
        ("file_path", "path"),
        ("filepath", "path"),
        ("no_ignore", "include_ignored"),
        ("include_hidden", "include_ignored"),
    ])
    .in_sets_from(ToolSet::Standard)
    .such_as(r#"{"pattern": "**/*.rs"}"#)
}

fn make(arguments: Value, options: &Options, notes: &mut Vec<String>) -> Result<Action, String> {
    let Arguments {
        pattern,
        path,
        exclude,
        include_ignored,
        max_results,
    } = parse(arguments)?;
    let (path, pattern) = apart(folder(path.as_deref()), nonempty("pattern", pattern)?);
    let max_results = bounded(
        "max_results",
        max_results,
        options.search_results,
        options.search_results_max,
        notes,
    )?;
    Ok(Action::Box(Call::Glob(Glob {
        pattern,
        path,
        exclude,
        include_ignored,
        max_results,
    })))
}

/// Splits a pattern into its folder and the rest: it may name the project's folder, which makes
/// `path` irrelevant, and go up from `path`. So rules see the folder that is searched.
fn apart(path: BytesPath, pattern: String) -> (BytesPath, String) {
    let (path, pattern) = match pattern.strip_prefix("/workspace") {
        Some(rest) if rest.starts_with('/') => (BytesPath::from_text("."), anchored(rest)),
        _ => (path, pattern),
    };
    let names: Vec<&str> = pattern.split('/').collect();
    let n_plain = names
        .iter()
        .take_while(|name| !name.contains(['*', '?', '[', ']', '{', '}', '\\']))
        .count();
    match names[..n_plain].iter().rposition(|name| *name == "..") {
        Some(at) if at + 1 < names.len() => (
            folded(&format!("{}/{}", path.to_text(), names[..=at].join("/"))),
            anchored(&names[at + 1..].join("/")),
        ),
        _ => (path, pattern),
    }
}

/// Returns a folder with `x/..` removed.
fn folded(folder: &str) -> BytesPath {
    let mut names: Vec<&str> = Vec::new();
    for name in folder.split('/').filter(|name| !matches!(*name, "" | ".")) {
        if name == ".." && names.last().is_some_and(|last| *last != "..") {
            names.pop();
        } else {
            names.push(name);
        }
    }
    let root = if folder.starts_with('/') { "/" } else { "" };
    let path = format!("{root}{}", names.join("/"));
    BytesPath::from_text(if path.is_empty() { "." } else { &path })
}

/// Returns a pattern anchored to its folder: without a slash it would match a name at any depth.
fn anchored(pattern: &str) -> String {
    let mut pattern = pattern;
    while let Some(rest) = pattern
        .strip_prefix("./")
        .or_else(|| pattern.strip_prefix('/'))
    {
        pattern = rest;
    }
    match pattern {
        "" => "**".to_owned(),
        pattern if pattern.contains('/') => pattern.to_owned(),
        pattern => format!("/{pattern}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_split_into_its_folder_and_the_rest() {
        for (path, pattern, expected) in [
            (".", "**/*.rs", (".", "**/*.rs")),
            ("src", "*.rs", ("src", "*.rs")),
            ("src", "../secret/*", (".", "secret/*")),
            ("src", "../secret/a/*", (".", "secret/a/*")),
            ("src", "a/../../secret.txt", (".", "/secret.txt")),
            ("src", "/workspace/secret/*", (".", "secret/*")),
            ("src", "/workspace/*.rs", (".", "/*.rs")),
            ("src", "/workspace/workspace/x", (".", "workspace/x")),
            ("src", "/workspace/../x", ("..", "/x")),
            ("src", "/workspaces/x", ("src", "/workspaces/x")),
            ("src", "*/../x", ("src", "*/../x")),
            ("src", "..", ("src", "..")),
            ("src/a", "../", ("src", "**")),
            ("src/a", "../b/", ("src", "b/")),
            (".", "../../x", ("../..", "/x")),
            ("/workspace/src", "../*.rs", ("/workspace", "/*.rs")),
            ("/etc", "../x", ("/", "/x")),
            ("a\nb/c", "../x", ("a\\x0ab", "/x")),
            ("src", "/workspace/./*.rs", (".", "/*.rs")),
        ] {
            let (folder, rest) = apart(BytesPath::from_text(path), pattern.to_owned());
            assert_eq!(
                (folder.to_text().as_str(), rest.as_str()),
                expected,
                "{path} {pattern}"
            );
        }
    }
}
