//! Calls that run on the host, not in the sandbox.

use serde_json::Map;
use serde_json::Value;

use podbay_event::Memory;
use podbay_wire::CallNeed;
use podbay_wire::Hook;

use super::tool::HOOK;

/// A call that the host executes itself.
#[derive(Clone, Debug, PartialEq)]
pub enum HostCall {
    /// Reads lines of a result that was too long to show.
    ReadArtifact {
        id: String,
        /// First line, from 1.
        offset: u64,
        limit: u64,
    },
    /// Records a thought.
    Think {
        thought: String,
    },
    Tasks(TaskChange),
    /// Asks the user a question that is not about a permission.
    AskUser {
        question: String,
        /// Suggested answers; any other answer can always be typed.
        options: Vec<String>,
    },
    FindTools(FindTools),
    Plan(PlanCall),
    /// Saves a note that later sessions of the project are shown.
    SaveMemory(Memory),
    /// Writes a section of the document that later sessions of the project are shown.
    WriteSection(DocumentSection),
    /// Reads a skill, and puts the files of one of the user's into the sandbox's home folder.
    UseSkill(SkillCall),
    /// Gets the project's dependencies in an install phase.
    Install(InstallCall),
    /// Asks the user's search engine.
    Search(WebSearch),
    /// Runs code in a sandbox of its own, which has nothing of the project.
    RunApart(SandboxRun),
    /// Runs a command from the user's own settings on their machine.
    Hook(Hook),
    Foreign(ForeignCall),
    /// Starts an agent, whose calls are judged as those of the one that starts it.
    Spawn(SpawnCall),
}

/// A section of the project's document in the state folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentSection {
    pub heading: String,
    /// Empty removes the section.
    pub content: String,
}

/// A skill to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillCall {
    pub name: String,
}

/// An agent to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpawnCall {
    /// What it is to do; all that it knows of the conversation.
    pub task: String,
    /// What it is for, in a few words for the user.
    pub description: String,
    /// The name of its type.
    pub agent: String,
    /// The tools that it may use, of those that its type has; `None`: all of them.
    pub tools: Option<Vec<String>>,
    /// Added to the prompt of its type.
    pub system_prompt: Option<String>,
}

/// A call of a tool of an MCP server. The server runs in the sandbox, and the host only has the
/// stream to it; or on the host, where the user's own settings say so.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignCall {
    /// The tool's full name, `mcp__SERVER__TOOL`.
    pub name: String,
    pub arguments: Map<String, Value>,
    /// Whether the server runs on the user's machine, outside of the sandbox.
    pub on_host: bool,
    /// Whether the server is elsewhere, and is sent a key of the user that no command has.
    pub with_key: bool,
}

impl ForeignCall {
    /// Returns the name of the server.
    pub(super) fn server(&self) -> &str {
        let name = self.name.strip_prefix(FOREIGN).unwrap_or(&self.name);
        name.split_once("__").map_or(name, |(server, _)| server)
    }
}

/// An install phase that the model asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstallCall {
    /// Package managers by name; empty: those that the project's manifests show.
    pub ecosystems: Vec<String>,
    /// What it runs and which hosts it reaches, as the user is asked about it. The host fills it
    /// in; a model's words are not in it.
    pub words: String,
}

/// A search of the web.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebSearch {
    pub query: String,
    pub max_results: u32,
}

/// Code to run in a throw-away sandbox.
#[derive(Clone, Debug, PartialEq)]
pub struct SandboxRun {
    /// The name of its language.
    pub language: String,
    pub code: String,
    /// Its whole standard input.
    pub stdin: String,
    /// Files beside it: path, relative to the folder that it runs in, and content.
    pub files: Vec<(String, String)>,
    /// Variables: name and value.
    pub environment: Vec<(String, String)>,
    pub timeout_ms: u64,
    /// Bytes; `None`: as much as the settings allow.
    pub memory: Option<u64>,
    /// Processor cores; `None`: as many as the settings allow.
    pub cpus: Option<f64>,
    /// Whether it reaches the hosts that the session may reach; else it reaches none.
    pub network: bool,
}

/// What the name of each tool of an MCP server begins with.
pub const FOREIGN: &str = "mcp__";

/// What is known of a host call, beside how it is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HostFacts<'a> {
    /// The tool that makes it, by which rules and answers refer to it.
    pub(super) tool: &'a str,
    pub(super) effect: HostEffect,
    pub(super) needs: &'static [CallNeed],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostEffect {
    /// Several such calls may run concurrently.
    Nothing,
    /// Only the conversation: questions to the user come one at a time, and the model's own list
    /// changes in order.
    Conversation,
    /// Nothing here: a query leaves the machine, once the model has written it to its end.
    Requests,
    /// Nothing that stays: only a sandbox of its own, which is removed with all that is in it.
    Apart,
    /// Only the user's notes in the state folder; nothing in the project.
    Notes,
    /// Whatever a program in the sandbox changes there.
    Sandbox,
    /// Whatever the calls of an agent change, each of which is judged by itself.
    Agent,
    /// Whatever a command or a server changes on the user's machine, or with the user's key.
    Host,
}

/// Tools of host calls: they name neither a path nor a command. `read_file`, which also reads
/// artifacts, is a tool of the sandbox.
pub const HOST_TOOLS: [&str; 13] = [
    "think",
    "task_list",
    "ask_user",
    "more_tools",
    "enter_plan_mode",
    "create_plan",
    "implement_plan",
    "memory_save",
    "use_skill",
    "spawn_agent",
    "install_dependencies",
    "web_search",
    "sandbox_run",
];

impl HostCall {
    /// Returns what is known of it.
    pub(super) fn facts(&self) -> HostFacts<'_> {
        let (tool, effect, needs): (&str, _, &[CallNeed]) = match self {
            Self::ReadArtifact { .. } => ("read_file", HostEffect::Nothing, &[CallNeed::ReadFiles]),
            Self::Think { .. } => ("think", HostEffect::Nothing, &[]),
            Self::Tasks(_) => ("task_list", HostEffect::Conversation, &[]),
            Self::AskUser { .. } => ("ask_user", HostEffect::Conversation, &[]),
            Self::FindTools(_) => ("more_tools", HostEffect::Nothing, &[]),
            Self::Plan(plan) => (plan.tool(), HostEffect::Conversation, &[]),
            // A section is a note too, though another tool writes it.
            Self::SaveMemory(_) | Self::WriteSection(_) => {
                ("memory_save", HostEffect::Notes, &[CallNeed::SaveMemory])
            }
            Self::UseSkill(_) => ("use_skill", HostEffect::Nothing, &[CallNeed::ReadFiles]),
            Self::Install(_) => (
                "install_dependencies",
                HostEffect::Sandbox,
                &[CallNeed::InstallDependencies],
            ),
            // The user's own setting names who is asked.
            Self::Search(_) => ("web_search", HostEffect::Requests, &[]),
            Self::RunApart(_) => ("sandbox_run", HostEffect::Apart, &[CallNeed::RunInSandbox]),
            Self::Hook(_) => (HOOK, HostEffect::Host, &[CallNeed::Command]),
            Self::Spawn(_) => ("spawn_agent", HostEffect::Agent, &[CallNeed::SpawnAgent]),
            Self::Foreign(call) if call.on_host || call.with_key => {
                (&call.name, HostEffect::Host, &[])
            }
            Self::Foreign(call) => (&call.name, HostEffect::Sandbox, &[CallNeed::RunInSandbox]),
        };
        HostFacts {
            tool,
            effect,
            needs,
        }
    }
}

/// A step between plan mode and work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanCall {
    /// The project becomes read-only.
    Enter,
    /// Has the user decide about this plan, in Markdown.
    Create { text: String },
    /// Has the user decide about the last plan.
    Implement,
}

impl PlanCall {
    fn tool(&self) -> &'static str {
        match self {
            Self::Enter => "enter_plan_mode",
            Self::Create { .. } => "create_plan",
            Self::Implement => "implement_plan",
        }
    }
}

/// A change of the model's task list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskChange {
    Show,
    Add {
        task: String,
    },
    /// Sets the status of a task, given by its number from 1.
    Mark {
        id: u32,
        status: TaskStatus,
    },
    Remove {
        id: u32,
    },
    /// Replaces the list.
    Replace(Vec<Task>),
}

/// One task of the model's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    pub content: String,
    pub status: TaskStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskStatus {
    Pending,
    InProgress,
    Completed,
}

/// Searches for tools that are not in the model's tool list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FindTools {
    /// Tools by name, to describe completely.
    pub names: Vec<String>,
    /// Words to search others by; `None`: all of them.
    pub query: Option<String>,
    pub max_results: u32,
}
