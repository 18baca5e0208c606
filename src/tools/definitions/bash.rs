use serde::Deserialize;
use serde_json::Value;
use serde_json::json;

use crate::Options;
use crate::ToolSet;
use crate::arguments::bounded;
use crate::arguments::nonempty;
use crate::arguments::parse;
use crate::arguments::written;
use crate::tool::Tool;
use crate::tool::object;
use podbay_policy::Action;
use podbay_wire::Bash;
use podbay_wire::Call;

#[derive(Deserialize)]
struct Arguments {
    command: String,
    working_directory: Option<String>,
    timeout_seconds: Option<i64>,
    #[serde(default)]
    background: bool,
}

pub(super) fn tool(options: &Options) -> Tool {
    Tool::new(
        "bash",
        "Run a shell command in the project folder. The folder it ends in is kept. Only hosts that the user allows are reachable.",
        object(
            &json!({
                "command": { "type": "string" },
                "working_directory": { "type": "string", "description": "Folder to run in" },
                "timeout_seconds": {
                    "type": "integer",
                    "description": format!("Default {}, at most {}", options.bash_timeout.get(), options.bash_timeout_max.get()),
                },
                "description": { "type": "string", "description": "What it is for, in a few words" },
                "background": { "type": "boolean", "description": "Leave it running and continue" },
            }),
            &["command"],
        ),
        make,
    )
    .renamed(&[
        ("cmd", "command"),
        ("script", "command"),
        ("cwd", "working_directory"),
        ("workdir", "working_directory"),
        ("timeout", "timeout_seconds"),
    ])
    .in_sets_from(ToolSet::Small)
    .small(&["command", "timeout_seconds"], &["command"])
    .such_as(r#"{"command": "ls -l"}"#)
}

pub(super) fn make(
    arguments: Value,
    options: &Options,
    notes: &mut Vec<String>,
) -> Result<Action, String> {
    let Arguments {
        command,
        working_directory,
        timeout_seconds,
        background,
    } = parse(arguments)?;
    let default = u32::try_from(options.bash_timeout.get()).unwrap_or(u32::MAX);
    let most = u32::try_from(options.bash_timeout_max.get()).unwrap_or(u32::MAX);
    if background && timeout_seconds.is_some_and(|seconds| seconds > 0) {
        notes.push(
            "timeout_seconds is ignored in the background: the command runs until it ends or is stopped"
                .to_owned(),
        );
    }
    let timeout_seconds = timeout_seconds.filter(|&seconds| !background || seconds != 0);
    Ok(Action::Box(Call::Bash(Bash {
        command: nonempty("command", command)?,
        working_directory: working_directory
            .filter(|path| !path.is_empty())
            .map(|path| written(&path)),
        timeout_ms: u64::from(bounded(
            "timeout_seconds",
            timeout_seconds,
            default,
            most,
            notes,
        )?) * 1000,
        grace_ms: options.bash_grace.get().saturating_mul(1000),
        stream_bytes: options.bash_stream.bytes(),
        tail_bytes: options.bash_tail.bytes(),
        background,
        rules: Vec::new(),
        write_gate: None,
    })))
}
