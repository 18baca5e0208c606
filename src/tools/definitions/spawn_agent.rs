use serde::Deserialize;
use serde_json::json;

use crate::ToolSet;
use crate::agent_types::AgentType;
use crate::arguments::nonempty;
use crate::arguments::parse;
use crate::tool::Tool;
use crate::tool::object;
use podbay_policy::Action;
use podbay_policy::HostCall;
use podbay_policy::SpawnCall;
use podbay_wire::n_bytes;

pub(crate) const NAME: &str = "spawn_agent";

/// The type of an agent for which the model names none.
const DEFAULT: &str = "general-purpose";
/// Most bytes of a task and of what is added to a prompt.
const TASK_MAX: usize = 64 << 10;
const PROMPT_MAX: usize = 16 << 10;
/// Most characters of the words for the user.
const DESCRIPTION_MAX: usize = 80;
const TOOLS_MAX: usize = 64;

#[derive(Deserialize)]
struct Arguments {
    task: String,
    description: Option<String>,
    agent_type: Option<String>,
    tools: Option<Vec<String>>,
    system_prompt: Option<String>,
}

/// Starts an agent and waits for its answer.
pub(super) fn tool() -> Tool {
    Tool::new(
        NAME,
        "Give another agent a task; it knows nothing of yours. Agents that only read run side by side, others in turn.",
        object(
            &json!({
                "task": { "type": "string" },
                "description": { "type": "string", "description": "3 to 6 words for the user" },
                "agent_type": { "type": "string", "description": types(&AgentType::built_in()) },
                "tools": { "type": "array", "items": { "type": "string" }, "description": "Only these of its tools" },
                "system_prompt": { "type": "string", "description": "Added to its rules" },
            }),
            &["task"],
        ),
        |arguments, _, _| {
            let Arguments { task, description, agent_type, tools, system_prompt } = parse(arguments)?;
            let task = bounded("task", nonempty("task", task)?, TASK_MAX)?;
            let system_prompt = system_prompt
                .map(|prompt| bounded("system_prompt", prompt, PROMPT_MAX))
                .transpose()?;
            if tools.as_ref().is_some_and(|tools| tools.len() > TOOLS_MAX) {
                return Err(format!("`tools` names more than {TOOLS_MAX} tools; leave it out for all that the type has"));
            }
            let words = description.filter(|words| !words.trim().is_empty());
            let description = one_line(words.as_deref().unwrap_or(&task));
            let agent = agent_type.filter(|name| !name.trim().is_empty());
            let agent = agent.map_or_else(|| DEFAULT.to_owned(), |name| canonical(&name));
            Ok(Action::Host(HostCall::Spawn(SpawnCall { task, description, agent, tools, system_prompt })))
        },
    )
    .known_as(&["Agent", "agent", "Task", "subagent", "spawn_subagent", "dispatch_agent"])
    .renamed(&[
        ("prompt", "task"),
        ("message", "task"),
        ("subagent_type", "agent_type"),
        ("type", "agent_type"),
        ("agent", "agent_type"),
        ("allowed_tools", "tools"),
        ("system", "system_prompt"),
    ])
    .in_sets_from(ToolSet::Standard)
    .such_as(
        r#"{"task": "Find where the settings file is parsed and name the functions.", "description": "find the parser", "agent_type": "explore"}"#,
    )
}

/// Tells the model which types there are.
pub(crate) fn types(types: &[AgentType]) -> String {
    let of = |agent: &AgentType| format!("{} ({})", agent.name, agent.description);
    let all: Vec<String> = types.iter().map(of).collect();
    format!("{}; without one {DEFAULT}", all.join(", "))
}

/// Returns a type's name as the table writes it.
fn canonical(name: &str) -> String {
    name.trim().to_ascii_lowercase().replace(['_', ' '], "-")
}

fn bounded(field: &str, value: String, most: usize) -> Result<String, String> {
    if value.len() > most {
        Err(format!(
            "`{field}` has {}, and the most is {}: put long material into a file and name it",
            n_bytes(value.len() as u64),
            n_bytes(most as u64)
        ))
    } else {
        Ok(value)
    }
}

fn one_line(words: &str) -> String {
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(DESCRIPTION_MAX) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words,
    }
}
