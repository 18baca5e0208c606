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
use podbay_wire::Call;
use podbay_wire::Grep;
use podbay_wire::GrepOutput;

#[derive(Deserialize)]
struct Arguments {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    context: Option<i64>,
    #[serde(default)]
    case_insensitive: bool,
    output_mode: Option<GrepOutput>,
    #[serde(default)]
    include_ignored: bool,
    max_results: Option<i64>,
}

pub(super) fn tool() -> Tool {
    Tool::new(
        "grep",
        "Search file contents with a regular expression.",
        object(
            &json!({
                "pattern": { "type": "string", "description": "Regular expression" },
                "path": { "type": "string", "description": "Folder or file to search (default: the project)" },
                "glob": { "type": "string", "description": "Only files like this, such as *.rs" },
                "context": { "type": "integer", "description": "Lines around each match" },
                "case_insensitive": { "type": "boolean" },
                "output_mode": { "type": "string", "enum": ["content", "files_only", "count"] },
                "include_ignored": { "type": "boolean", "description": "Also hidden and git-ignored files" },
                "max_results": { "type": "integer" },
            }),
            &["pattern"],
        ),
        make,
    )
    .renamed(&[
        ("query", "pattern"),
        ("regex", "pattern"),
        ("search", "pattern"),
        ("dir", "path"),
        ("directory", "path"),
        ("folder", "path"),
        ("file_path", "path"),
        ("filepath", "path"),
        ("no_ignore", "include_ignored"),
        ("include_hidden", "include_ignored"),
        ("file", "path"),
        ("include", "glob"),
        ("ignore_case", "case_insensitive"),
    ])
    .in_sets_from(ToolSet::Small)
    .small(&["pattern", "path", "glob"], &["pattern"])
    .such_as(r#"{"pattern": "fn main"}"#)
}

fn make(arguments: Value, options: &Options, notes: &mut Vec<String>) -> Result<Action, String> {
    let Arguments {
        pattern,
        path,
        glob,
        context,
        case_insensitive,
        output_mode,
        include_ignored,
        max_results,
    } = parse(arguments)?;
    Ok(Action::Box(Call::Grep(Grep {
        pattern: nonempty("pattern", pattern)?,
        path: folder(path.as_deref()),
        glob,
        include_ignored,
        context: bounded("context", context, 0, 50, notes)?,
        case_insensitive,
        output: output_mode.unwrap_or(GrepOutput::Content),
        max_results: bounded(
            "max_results",
            max_results,
            options.search_results,
            options.search_results_max,
            notes,
        )?,
        timeout_ms: options.search_timeout.get().saturating_mul(1000),
        protected: false,
    })))
}
