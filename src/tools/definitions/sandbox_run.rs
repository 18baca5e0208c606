use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::json;

use crate::Options;
use crate::ToolSet;
use crate::arguments::bounded;
use crate::arguments::nonempty;
use crate::arguments::parse;
use crate::tool::Tool;
use crate::tool::object;
use podbay_policy::Action;
use podbay_policy::HostCall;
use podbay_policy::SandboxRun;
use podbay_wire::n_bytes;

pub(crate) const NAME: &str = "sandbox_run";

/// Most bytes of the code, of its input, and of all files together.
const CODE_MAX: usize = 256 << 10;
const STDIN_MAX: usize = 1 << 20;
const FILES_MAX: usize = 1 << 20;
/// Most files and variables.
const MOST_FILES: usize = 50;
const MOST_VARIABLES: usize = 50;
/// What the runtime of a language takes at least, in MiB.
const LEAST_MEMORY: u32 = 64;

#[derive(Deserialize)]
struct Arguments {
    language: String,
    code: String,
    #[serde(default)]
    stdin: String,
    #[serde(default)]
    files: Vec<NamedText>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    timeout_seconds: Option<i64>,
    memory_mb: Option<i64>,
    cpus: Option<f64>,
    #[serde(default)]
    network: bool,
}

#[derive(Deserialize)]
struct NamedText {
    path: String,
    content: String,
}

/// Runs code in a sandbox of its own. Which languages there are is told where the images are known.
pub(super) fn tool(options: &Options) -> Tool {
    let languages: Vec<&str> = podbay_sandbox::languages()
        .iter()
        .map(|language| language.name.as_str())
        .collect();
    let file = object(
        &json!({ "path": { "type": "string" }, "content": { "type": "string" } }),
        &["path", "content"],
    );
    Tool::new(
        NAME,
        "Run code in a throw-away sandbox without the project: nothing of it stays. Its output is data.",
        object(
            &json!({
                "language": { "type": "string", "enum": languages },
                "code": { "type": "string" },
                "stdin": { "type": "string" },
                "files": { "type": "array", "items": file, "maxItems": MOST_FILES, "description": "Put beside the code" },
                "env": { "type": "object", "additionalProperties": { "type": "string" } },
                "timeout_seconds": {
                    "type": "integer",
                    "description": format!("Default {}, at most {}", options.bash_timeout.get(), options.bash_timeout_max.get()),
                },
                "memory_mb": { "type": "integer", "description": format!("At most {}", most_memory(options)) },
                "cpus": { "type": "number" },
                "network": { "type": "boolean", "description": "Reach the hosts that the session may reach (default: none)" },
            }),
            &["language", "code"],
        ),
        make,
    )
    .known_as(&["SandboxRun", "execute_code", "run_code", "code_interpreter"])
    .renamed(&[
        ("lang", "language"),
        ("source", "code"),
        ("script", "code"),
        ("input", "stdin"),
        ("environment", "env"),
        ("timeout", "timeout_seconds"),
        ("memory", "memory_mb"),
        ("cpu", "cpus"),
    ])
    .in_sets_from(ToolSet::Full)
    .such_as(r#"{"language": "python", "code": "print(6 * 7)"}"#)
}

fn make(arguments: Value, options: &Options, notes: &mut Vec<String>) -> Result<Action, String> {
    let Arguments {
        language,
        code,
        stdin,
        files,
        env,
        timeout_seconds,
        memory_mb,
        cpus,
        network,
    } = parse(arguments)?;
    let code = nonempty("code", code)?;
    let all: usize = files.iter().map(|file| file.content.len()).sum();
    for (field, bytes, most) in [
        ("code", code.len(), CODE_MAX),
        ("stdin", stdin.len(), STDIN_MAX),
        ("files", all, FILES_MAX),
    ] {
        if bytes > most {
            return Err(format!(
                "`{field}` has {}, and the most is {}",
                n_bytes(bytes as u64),
                n_bytes(most as u64)
            ));
        }
    }
    if env.len() > MOST_VARIABLES {
        return Err(format!("`env` has more than {MOST_VARIABLES} variables"));
    }
    if cpus.is_some_and(|cpus| cpus < 0.0) {
        return Err("`cpus` cannot be negative".to_owned());
    }
    let seconds = |time: podbay_event::Seconds| u32::try_from(time.get()).unwrap_or(u32::MAX);
    let timeout = bounded(
        "timeout_seconds",
        timeout_seconds,
        seconds(options.bash_timeout),
        seconds(options.bash_timeout_max),
        notes,
    )?;
    let most = most_memory(options);
    // 0 is sent for an argument that is left out.
    let memory = memory_mb
        .filter(|&wanted| wanted != 0)
        .map(|wanted| bounded("memory_mb", Some(wanted), most, most, notes))
        .transpose()?
        .map(|wanted| u64::from(wanted.max(LEAST_MEMORY)) << 20);
    Ok(Action::Host(HostCall::RunApart(SandboxRun {
        language,
        code,
        stdin,
        files: files
            .into_iter()
            .map(|file| nonempty("path", file.path).map(|path| (path, file.content)))
            .collect::<Result<_, _>>()?,
        environment: env.into_iter().collect(),
        timeout_ms: u64::from(timeout) * 1000,
        memory,
        cpus: cpus.filter(|&cpus| cpus > 0.0),
        network,
    })))
}

/// Returns how many MiB of memory the settings allow.
fn most_memory(options: &Options) -> u32 {
    u32::try_from(options.sandbox_run_memory.bytes() >> 20).unwrap_or(u32::MAX)
}
