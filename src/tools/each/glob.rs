use serde::Deserialize;
use serde_json::Value;
use serde_json::json;

use crate::policy::Action;
use crate::tools::Options;
use crate::tools::Set;
use crate::tools::arguments::bounded;
use crate::tools::arguments::filled;
use crate::tools::arguments::folder;
use crate::tools::arguments::parse;
use crate::tools::tool::Tool;
use crate::tools::tool::object;
use crate::wire::Call;
use crate::wire::Glob;

#[derive(Deserialize)]
struct Arguments {
    pattern: String,
    path: Option<String>,
    exclude: Option<String>,
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
                "max_results": { "type": "integer" },
            }),
            &["pattern"],
        ),
        make,
    )
    .known_as(&["Glob", "search_files", "find_files"])
    .renamed(&[
        ("query", "pattern"),
        ("search", "pattern"),
        ("glob", "pattern"),
        ("dir", "path"),
        ("directory", "path"),
        ("folder", "path"),
        ("file_path", "path"),
        ("filepath", "path"),
    ])
    .in_sets_from(Set::Standard)
    .such_as(r#"{"pattern": "**/*.rs"}"#)
}

fn make(arguments: Value, options: &Options, notes: &mut Vec<String>) -> Result<Action, String> {
    let Arguments { pattern, path, exclude, max_results } = parse(arguments)?;
    let max_results = bounded("max_results", max_results, options.search_results, options.search_results_max, notes)?;
    Ok(Action::Box(Call::Glob(Glob { pattern: filled("pattern", pattern)?, path: folder(path.as_deref()), exclude, max_results })))
}
