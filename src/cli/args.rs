use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use clap::Parser;
use clap::Subcommand;
use clap::ValueEnum;

use super::agents::AgentsCommand;
use super::cache::CacheCommand;
use super::completions::CompleteArgs;
use super::completions::CompletionsArgs;
use super::completions::ManArgs;
use super::config::ConfigArgs;
use super::debug::DebugCommand;
use super::images::ImagesCommand;
use super::jobs::JobsCommand;
use super::later::LaterFlags;
use super::later::WITHOUT_TASK;
use super::mcp::McpCommand;
use super::memory::MemoryCommand;
use super::models::ModelsCommand;
use super::network::NetworkCommand;
use super::number::fraction;
use super::number::whole;
use super::presets;
use super::review::ReviewArgs;
use super::sessions::SessionsCommand;
use super::skills::SkillsCommand;
use super::stats::StatsArgs;
use super::undo::UndoArgs;
use super::why::WhyArgs;
use podbay_event::Seconds;

/// Run a coding agent whose hands are in a sandbox
///
/// The agent thinks outside, everything it does happens in a container: no network, no host file
/// but the project, bounded processor, memory, processes and time. Without a command it opens a
/// chat in the current folder.
#[derive(Debug, Parser)]
#[command(
    name = "podbay",
    version,
    max_term_width = 100,
    args_conflicts_with_subcommands = true
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Option<Command>,
    #[command(flatten)]
    pub(super) chat: SessionFlags,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Set everything up and run a real task on a copy of an example
    Quickstart(QuickstartArgs),
    /// Work on one task unattended
    Run(RunArgs),
    /// Talk to the agent; it asks before it changes anything
    Chat(SessionFlags),
    /// Execute one tool call without a model; what it changes is changed in place
    Call(CallArgs),
    /// Open a shell, or run one command, in the sandbox; what it changes is changed in place
    Sh(ShArgs),
    /// List, show or stop the commands that `sh --detach` has left running
    #[command(subcommand)]
    Jobs(JobsCommand),
    /// Install the project's dependencies into caches of its own: registries alone are reached, and
    /// only until it ends
    Install(InstallArgs),
    /// List or remove what installations have left
    #[command(subcommand)]
    Cache(CacheCommand),
    /// Start the project's sandbox, in which changes are made in place, and the model server, and
    /// leave them running
    Up(UpArgs),
    /// End what `up` and earlier runs left running
    Down(PlaceFlags),
    /// Show what is running
    Status(StatusArgs),
    /// Show what our own model server prints
    Logs(LogsArgs),
    /// Show what sessions took: requests, tokens, tools, time and cost
    Stats(StatsArgs),
    /// Explain what was denied last: what denied it, and what would allow it
    Why(WhyArgs),
    /// Find out which hosts a command needs
    #[command(subcommand)]
    Network(NetworkCommand),
    /// Build or list Podbay's own images, or take them elsewhere
    #[command(subcommand)]
    Images(ImagesCommand),
    /// List MCP servers, and enable those of a project
    #[command(subcommand)]
    Mcp(McpCommand),
    /// List, show or remove the notes of sessions for later ones
    #[command(subcommand)]
    Memory(MemoryCommand),
    /// List the agents that the model may start
    #[command(subcommand)]
    Agents(AgentsCommand),
    /// List or show the skills that the model may read
    #[command(subcommand)]
    Skills(SkillsCommand),
    /// List, load or remove models for the model server
    #[command(subcommand)]
    Models(ModelsCommand),
    /// List, show, continue, copy or remove sessions
    #[command(subcommand)]
    Sessions(SessionsCommand),
    /// Show pending changes, and apply or discard them
    Review(ReviewArgs),
    /// Undo what the agent's turns changed, or bring it back
    Undo(UndoArgs),
    /// Check everything that a run needs, each with its remedy
    Doctor(DoctorArgs),
    /// Prepare a project: settings to fill in, and a folder for compose beside it
    Init(InitArgs),
    /// Show or change settings, with the origin of each, or trust those of a project
    Config(ConfigArgs),
    /// Remove what killed runs left behind
    Gc(GcArgs),
    /// Look inside: what is understood of a model's text
    #[command(subcommand)]
    Debug(DebugCommand),
    /// Print what a shell needs to complete commands and flags
    Completions(CompletionsArgs),
    /// Print ids for the scripts of `completions`
    #[command(hide = true)]
    Complete(CompleteArgs),
    /// Write the manual pages into a folder
    #[command(hide = true)]
    Man(ManArgs),
    /// Become the model server, in a container that compose has made
    #[command(hide = true)]
    ServeModel(ServeModelArgs),
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputFormat {
    /// For people
    #[default]
    Text,
    /// One object at the end
    Json,
    /// Each event as it happens, and the result last
    Jsonl,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ModeFlag {
    /// Allow whatever stays in the sandbox
    Auto,
    /// Ask before anything is changed
    Ask,
    /// Only allow reading
    Deny,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum AutonomyFlag {
    /// Nothing: each change and each command is asked about, and the task's open questions
    Architect,
    /// Whatever only reads
    Ask,
    /// Whatever stays in the sandbox
    Auto,
    /// The same, and nobody is asked anything
    Unattended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum SetFlag {
    /// Seven tools, for small context windows
    Small,
    /// What most work needs
    Standard,
    /// All of them
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ChangesFlag {
    /// Written in place
    Live,
    /// Pending review until they are accepted
    Review,
    /// Into the project at the end of each turn of a chat
    Turn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum NetworkFlag {
    /// Loopback only
    None,
    /// Hosts that rules allow, through a gateway
    Allowlist,
    /// Whatever this machine reaches
    Open,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum RuntimeFlag {
    /// Python with pip and the usual test tools
    Python,
    /// Node.js with npm
    Node,
    /// Go
    Go,
    /// A JDK with Maven
    Java,
    /// Rust with Cargo
    Rust,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum BackendFlag {
    /// Containers of a Docker engine
    Docker,
    /// Not yet: namespaces of this machine
    #[value(hide = true)]
    Native,
}

/// The forms of a result that is not a run's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ResultFormat {
    /// For people
    #[default]
    Text,
    /// One object
    Json,
}

/// How a list, or another result that is not a run's, is printed.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(super) struct FormatFlags {
    /// Print one JSON object; the same as --output json
    #[arg(long, conflicts_with = "output")]
    json: bool,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    output: ResultFormat,
}

impl FormatFlags {
    pub(super) fn is_json(self) -> bool {
        self.json || self.output == ResultFormat::Json
    }

    /// Returns what is shown meanwhile: with JSON no progress is.
    pub(super) fn shown(self) -> OutputFormat {
        if self.is_json() {
            OutputFormat::Json
        } else {
            OutputFormat::Text
        }
    }
}

/// Settings files.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct ConfigFlags {
    /// Read this settings file on top of the others
    #[arg(long, value_name = "FILE", alias = "config-path")]
    pub(super) config: Option<PathBuf>,
    /// Say more about what happens
    #[arg(long, short)]
    pub(super) verbose: bool,
}

#[derive(Debug, Args)]
pub(super) struct GcArgs {
    /// Also remove the snapshots (for `podbay undo`) of projects that are not there any more
    #[arg(long)]
    pub(super) snapshots: bool,
    /// Also remove what sessions that are over did with git and what was not taken over
    #[arg(long)]
    pub(super) git: bool,
    #[command(flatten)]
    pub(super) config: ConfigFlags,
}

/// Which project, and what its sandbox is like.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct PlaceFlags {
    /// Project folder
    #[arg(long, short = 'C', value_name = "DIR", aliases = ["working-dir", "workdir"])]
    pub(super) path: Option<PathBuf>,
    /// Image the sandbox is made from; any image works
    #[arg(long, value_name = "REF", help_heading = "Sandbox")]
    pub(super) image: Option<String>,
    /// One of Podbay's own images
    #[arg(
        long,
        value_enum,
        value_name = "NAME",
        conflicts_with = "image",
        help_heading = "Sandbox"
    )]
    pub(super) runtime: Option<RuntimeFlag>,
    /// Processor cores
    #[arg(long, value_name = "N", help_heading = "Sandbox", allow_hyphen_values = true, value_parser = fraction)]
    pub(super) cpus: Option<f64>,
    /// Memory, such as 2GiB or 512m
    #[arg(
        long,
        value_name = "SIZE",
        help_heading = "Sandbox",
        allow_hyphen_values = true
    )]
    pub(super) memory: Option<String>,
    /// Processes at once
    #[arg(long, value_name = "N", help_heading = "Sandbox", allow_hyphen_values = true, value_parser = whole::<u32>)]
    pub(super) pids: Option<u32>,
    /// Network of the sandbox
    #[arg(long, value_enum, help_heading = "Sandbox")]
    pub(super) network: Option<NetworkFlag>,
    /// Let the sandbox reach a host: NAME or *.NAME, with a port where it is not 80 or 443; @npm and
    /// other presets stand for theirs, host.docker.internal:PORT for a port of your own machine
    #[arg(long, value_name = "HOST[:PORT]", help_heading = "Sandbox")]
    pub(super) allow_host: Vec<String>,
    /// What sandboxes are made of
    #[arg(long, value_enum, help_heading = "Sandbox")]
    pub(super) backend: Option<BackendFlag>,
    /// Refuse whatever would only be warned about
    #[arg(long, help_heading = "Sandbox")]
    pub(super) strict: bool,
    #[command(flatten)]
    pub(super) model: ModelFlags,
    #[command(flatten)]
    pub(super) config: ConfigFlags,
}

/// Which model answers.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct ModelFlags {
    /// Use this OpenAI-compatible server instead of one of our own
    #[arg(long, value_name = "URL", alias = "base-url", help_heading = "Model")]
    pub(super) endpoint: Option<String>,
    /// Use the model server of this name: a section `[providers.NAME]` of the settings
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with = "endpoint",
        help_heading = "Model"
    )]
    pub(super) provider: Option<String>,
    /// Model to use: a name at the endpoint, or for our own server a name that `podbay models list`
    /// shows, or a GGUF file's path or address
    #[arg(long, value_name = "NAME", help_heading = "Model")]
    pub(super) model: Option<String>,
    /// Environment variable that holds the endpoint's key
    #[arg(long, value_name = "VAR", help_heading = "Model")]
    pub(super) api_key_env: Option<String>,
    /// Not accepted: a key on the command line can be read by everybody on the machine
    #[arg(long, value_name = "KEY", hide = true)]
    pub(super) api_key: Option<String>,
}

/// What an agent may do and how far it goes.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct SessionFlags {
    /// What is allowed without asking
    #[arg(long, value_enum, help_heading = "Permissions")]
    pub(super) mode: Option<ModeFlag>,
    /// How much the agent decides by itself
    #[arg(
        long,
        value_enum,
        conflicts_with = "mode",
        help_heading = "Permissions"
    )]
    pub(super) autonomy: Option<AutonomyFlag>,
    /// Begin in plan mode: nothing changes the project until you approve the agent's plan
    #[arg(long, help_heading = "Permissions")]
    pub(super) plan: bool,
    /// A bundle of settings
    #[arg(long, value_parser = presets::parser(), value_name = "NAME", help_heading = "Permissions")]
    pub(super) preset: Option<String>,
    /// Which tools the model knows of
    #[arg(long, value_enum, help_heading = "Model")]
    pub(super) tools: Option<SetFlag>,
    /// How results are printed; `json` is not for a chat
    #[arg(long, value_enum, default_value_t)]
    pub(super) output: OutputFormat,
    /// Show a chat on a screen of its own, also where it would go line by line
    #[arg(long, conflicts_with = "classic")]
    pub(super) tui: bool,
    /// Have a chat go line by line
    #[arg(long)]
    pub(super) classic: bool,
    /// Where changes go: those of a run wait for a review, those of a chat go into the project at
    /// the end of each turn, unless you say otherwise
    #[arg(long, value_enum)]
    pub(super) changes: Option<ChangesFlag>,
    /// Apply what was pending once the task is done; for `run`
    #[arg(long)]
    pub(super) apply: bool,
    /// Also apply files that programs on your machine run by themselves: with --apply, or in a chat
    #[arg(long, visible_alias = "yes")]
    pub(super) accept_auto_run: bool,
    /// Requests to the model for one task; the last is without tools and says what was done
    #[arg(long, value_name = "N", help_heading = "Limits", allow_hyphen_values = true, value_parser = whole::<u32>)]
    pub(super) max_turns: Option<u32>,
    /// Time for one task, such as 90s, 10m or 1h, 0 for no limit; with `run` that is all it does,
    /// from its start
    #[arg(
        long,
        value_name = "DURATION",
        help_heading = "Limits",
        allow_hyphen_values = true
    )]
    pub(super) timeout: Option<String>,
    /// Tokens for one task, 0 for no limit; an answer that is finished counts, whatever it took
    #[arg(long, value_name = "N", help_heading = "Limits", allow_hyphen_values = true, value_parser = whole::<u64>)]
    pub(super) max_tokens: Option<u64>,
    /// Cost of one task in US dollars, where the server says what an answer cost or a price is
    /// named for it
    #[arg(long, value_name = "USD", help_heading = "Limits", allow_hyphen_values = true, value_parser = fraction)]
    pub(super) max_cost: Option<f64>,
    /// Allow what this rule says, such as `write_file(src/**)`
    #[arg(long, value_name = "RULE", help_heading = "Permissions")]
    pub(super) allow: Vec<String>,
    /// Ask about what this rule says, also where it is allowed
    #[arg(long, value_name = "RULE", help_heading = "Permissions")]
    pub(super) ask: Vec<String>,
    /// Want a word each time about what this rule says; where nobody is asked, it is denied
    #[arg(long, value_name = "RULE", help_heading = "Permissions")]
    pub(super) gate: Vec<String>,
    /// Deny what this rule says; a denial always wins
    #[arg(long, value_name = "RULE", help_heading = "Permissions")]
    pub(super) deny: Vec<String>,
    /// End with code 4 if anything was denied
    #[arg(long, help_heading = "Permissions")]
    pub(super) deny_is_failure: bool,
    /// Continue with an earlier session of this project: its id, the beginning of one, its name, or
    /// `last`; a chat lists them where none is named
    #[arg(
        long,
        value_name = "ID",
        num_args = 0..=1,
        default_missing_value = "",
        conflicts_with = "go_on",
        help_heading = "Session"
    )]
    pub(super) resume: Option<String>,
    /// Continue with the session of this project that was worked on last
    #[arg(long = "continue", help_heading = "Session")]
    pub(super) go_on: bool,
    #[command(flatten)]
    pub(super) place: PlaceFlags,
    #[command(flatten)]
    pub(super) later: LaterFlags,
}

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// What is to be done; `-` reads it from the standard input. A pipe or a file on the standard
    /// input is added to it, at most 256 KiB. With --resume or --continue TASK may be missing: the
    /// open task continues. `@shot.png` in it shows the model that image of the project, if it is
    /// there and the model sees
    #[arg(value_name = "TASK", required_unless_present_any = WITHOUT_TASK, conflicts_with = "prompt")]
    pub(super) task: Option<String>,
    /// The same as TASK
    #[arg(long, short, value_name = "TASK")]
    pub(super) prompt: Option<String>,
    /// Show a run without a model and without an engine: a script answers, files are in memory, no
    /// command is run
    #[arg(long, conflicts_with_all = ["resume", "go_on", "endpoint", "model", "api_key_env", "plan"])]
    pub(super) demo: bool,
    /// Approve the last plan of the session and implement it; with --resume or --continue
    #[arg(long, conflicts_with_all = ["plan", "demo"])]
    pub(super) implement: bool,
    /// Show the execution report at the end, or write it to FILE, which ends with .md, .html, .json
    /// or .txt
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "-"
    )]
    pub(super) report: Option<PathBuf>,
    #[command(flatten)]
    pub(super) session: SessionFlags,
}

#[derive(Debug, Args)]
pub(super) struct QuickstartArgs {
    /// How results are printed
    #[arg(long, value_enum, default_value_t)]
    pub(super) output: OutputFormat,
    #[command(flatten)]
    pub(super) model: ModelFlags,
    #[command(flatten)]
    pub(super) config: ConfigFlags,
}

#[derive(Debug, Args)]
pub(super) struct ServeModelArgs {
    /// State folder that the models are in
    #[arg(long, value_name = "DIR")]
    pub(super) home: PathBuf,
    /// Socket to listen on
    #[arg(long, value_name = "PATH")]
    pub(super) socket: PathBuf,
    /// File that holds the key
    #[arg(long, value_name = "FILE")]
    pub(super) api_key_file: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct CallArgs {
    /// Name of the tool, such as `read_file`
    #[arg(value_name = "TOOL")]
    pub(super) tool: String,
    /// Its arguments, such as '{"path":"README.md"}'; - reads them from the standard input
    #[arg(value_name = "JSON")]
    pub(super) arguments: String,
    /// What is allowed without asking
    #[arg(long, value_enum, default_value_t = ModeFlag::Auto)]
    pub(super) mode: ModeFlag,
    #[command(flatten)]
    pub(super) place: PlaceFlags,
}

#[derive(Debug, Args)]
pub(super) struct ShArgs {
    /// Folder of the project in which it runs
    #[arg(long, value_name = "DIR")]
    pub(super) cwd: Option<PathBuf>,
    /// Variable that it finds in its environment; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub(super) env: Vec<(String, String)>,
    /// How long it may take, such as 90s or 10m; exit code 124 if it took longer
    #[arg(long, value_name = "DURATION")]
    pub(super) timeout: Option<Seconds>,
    /// Leave it running in the sandbox of `podbay up`, and print its id for `podbay jobs`
    #[arg(long, short = 'd', requires = "command")]
    pub(super) detach: bool,
    /// The job that this process holds
    #[arg(long, value_name = "ID", hide = true, conflicts_with = "detach")]
    pub(super) job: Option<String>,
    #[command(flatten)]
    pub(super) place: PlaceFlags,
    /// Command and its arguments; without one a shell is opened
    #[arg(last = true, value_name = "CMD")]
    pub(super) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(super) struct InstallArgs {
    /// Package managers, such as pip or npm, or `setup`; by default those that the project's
    /// manifests show, and the commands of `[setup]`
    #[arg(value_name = "NAME")]
    pub(super) names: Vec<String>,
    /// Run the commands of `[setup]` also if they ran before with this image and these lock files
    #[arg(long)]
    pub(super) again: bool,
    #[command(flatten)]
    pub(super) format: FormatFlags,
    #[command(flatten)]
    pub(super) place: PlaceFlags,
}

#[derive(Debug, Args)]
pub(super) struct UpArgs {
    /// Start the sandbox alone: no model is contacted or started
    #[arg(long)]
    pub(super) no_model: bool,
    #[command(flatten)]
    pub(super) place: PlaceFlags,
}

#[derive(Debug, Args)]
pub(super) struct StatusArgs {
    #[command(flatten)]
    pub(super) format: FormatFlags,
    #[command(flatten)]
    pub(super) place: PlaceFlags,
}

#[derive(Debug, Args)]
pub(super) struct LogsArgs {
    /// Print what the last session in the project tried of the network instead
    #[arg(long, conflicts_with_all = ["follow", "lines"])]
    pub(super) network: bool,
    /// Session whose attempts are printed: an id, the beginning of one, or `last`
    #[arg(long, value_name = "ID", requires = "network")]
    pub(super) session: Option<String>,
    /// Continue as more is printed
    #[arg(long, short)]
    pub(super) follow: bool,
    /// How many lines of what was printed before
    #[arg(long, short = 'n', value_name = "N", default_value_t = 100, value_parser = whole::<u32>, allow_hyphen_values = true)]
    pub(super) lines: u32,
    #[command(flatten)]
    pub(super) place: PlaceFlags,
}

#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    #[command(flatten)]
    pub(super) format: FormatFlags,
    /// Try the model too: a chat, a stream, tool calls; starts our own model server if no endpoint
    /// is set
    #[arg(long)]
    pub(super) model: bool,
    /// Attack a sandbox of your settings, in a project that is thrown away, and say what held
    #[arg(long, conflicts_with_all = ["model", "endpoint", "provider", "api_key_env"])]
    pub(super) attack: bool,
    /// Project folder
    #[arg(long, short = 'C', value_name = "DIR", aliases = ["working-dir", "workdir"])]
    pub(super) path: Option<PathBuf>,
    /// Check this OpenAI-compatible server instead of one of our own
    #[arg(long, value_name = "URL", alias = "base-url")]
    pub(super) endpoint: Option<String>,
    /// Check the model server of this name: a section `[providers.NAME]` of the settings
    #[arg(long, value_name = "NAME", conflicts_with = "endpoint")]
    pub(super) provider: Option<String>,
    /// Environment variable that holds the endpoint's key
    #[arg(long, value_name = "VAR")]
    pub(super) api_key_env: Option<String>,
    #[command(flatten)]
    pub(super) config: ConfigFlags,
}

#[derive(Debug, Args)]
pub(super) struct InitArgs {
    /// Project folder
    #[arg(long, short = 'C', value_name = "DIR", aliases = ["working-dir", "workdir"])]
    pub(super) path: Option<PathBuf>,
    /// Taken only to say how a folder is named
    #[arg(hide = true, value_name = "DIR")]
    pub(super) misplaced: Option<PathBuf>,
}

/// Reads `NAME=VALUE`.
fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use crate::help;

    #[test]
    fn the_command_line_is_consistent() {
        help::command().debug_assert();
    }
}
