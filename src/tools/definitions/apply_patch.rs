use serde::Deserialize;
use serde_json::Value;
use serde_json::json;

use crate::Options;
use crate::ToolSet;
use crate::arguments::nonempty;
use crate::arguments::parse;
use crate::patch;
use crate::tool::Tool;
use crate::tool::object;
use podbay_policy::Action;
use podbay_wire::ApplyPatch;
use podbay_wire::Call;

#[derive(Deserialize)]
struct Arguments {
    patch: String,
    #[serde(default)]
    dry_run: bool,
}

pub(super) fn tool() -> Tool {
    Tool::new(
        "apply_patch",
        "Apply a patch to files, all or nothing.",
        object(
            &json!({
                "patch": { "type": "string", "description": "Unified diff, or *** Begin Patch" },
                "dry_run": { "type": "boolean", "description": "Only check that it fits" },
            }),
            &["patch"],
        ),
        make,
    )
    .renamed(&[
        ("diff", "patch"),
        ("input", "patch"),
        ("patch_text", "patch"),
        ("content", "patch"),
    ])
    .in_sets_from(ToolSet::Standard)
    .such_as(r#"{"patch": "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+new\n"}"#)
}

fn make(arguments: Value, _: &Options, _: &mut Vec<String>) -> Result<Action, String> {
    let Arguments { patch, dry_run } = parse(arguments)?;
    let files =
        patch::parse(&nonempty("patch", patch)?).map_err(|problem| format!("`patch` {problem}"))?;
    Ok(Action::Box(Call::ApplyPatch(ApplyPatch {
        files,
        dry_run,
        protected: false,
        known: None,
    })))
}
