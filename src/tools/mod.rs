//! From a model's tool call to its result: the catalogue of tools, the pipeline that every call
//! goes through, dispatch to the sandbox, rendering.
//!
//! [`Pipeline::run`] is the only entry: it takes a [`podbay_event::ToolCall`]. `policy` decides
//! what may be done, the guest does it. Start reading at [`Pipeline::run`], which lists its steps
//! in order.

mod agent_options;
mod agent_types;
mod approval;
mod argument_names;
mod arguments;
mod call_asker;
mod call_end;
mod call_status;
mod canonical;
mod catalogue;
mod changed_files;
mod definitions;
mod denied_hosts;
mod dispatch;
mod duplicate_keys;
mod early_call;
mod edit_check;
mod foreign_formats;
mod foreign_tools;
mod git_hint;
mod git_quoting;
mod hook;
mod host;
mod images;
mod json_file;
mod limit_message;
mod mask_hint;
mod missing_arguments;
mod no_network;
mod omissions;
mod options;
mod patch;
mod peek;
mod pipeline;
mod planning;
mod program_approval;
mod program_events;
mod render;
mod render_changed;
mod render_denied;
mod render_session;
mod repair;
mod schema;
mod screen;
mod seen_files;
mod skill;
mod skill_options;
mod spawning;
mod tasks;
mod tool;
mod tool_set;

use std::future::Future;
use std::pin::Pin;

use tokio_util::sync::CancellationToken;

pub use agent_options::AgentOptions;
pub use agent_types::AgentScope;
pub use agent_types::AgentType;
pub use catalogue::Catalogue;
pub use changed_files::FileChangeKind;
pub use changed_files::record_change;
pub use denied_hosts::NETWORK;
pub use denied_hosts::host_allowed_by;
pub use dispatch::OnChunk;
pub use dispatch::Workspace;
pub use early_call::EarlyCall;
pub use foreign_tools::ForeignTool;
pub use hook::BlockOn;
pub use hook::Hook;
pub use hook::HookOptions;
pub use hook::HookPlace;
pub use hook::HookStop;
pub use hook::OnTimeout;
pub use images::ImageError;
pub use limit_message::limit_message;
pub use missing_arguments::MissingArguments;
pub use options::Options;
pub use pipeline::Finished;
pub use pipeline::Pipeline;
pub use pipeline::PipelineError;
pub use render::Window;
pub use seen_files::memos;
pub use skill::Skill;
pub use skill::SkillOffer;
pub use skill_options::SkillOptions;
pub use spawning::AgentAnswer;
pub use spawning::AgentParts;
pub use spawning::SpawnOrder;
pub use tool::Tool;
pub use tool_set::ToolSet;

use podbay_event::Answered;
use podbay_event::Asked;
use podbay_event::Memory;
use podbay_event::PlanAnswer;
use podbay_policy::DocumentSection;
use podbay_policy::ExactCall;
use podbay_policy::ForeignCall;
use podbay_policy::SandboxRun;
use podbay_policy::WebSearch;
use podbay_wire as wire;
use podbay_wire::Fault;
use podbay_wire::Output;

/// A boxed future, as trait objects return it.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Host services for tools; implemented in `app`.
pub trait Services: Send + Sync {
    /// Stores a long result as an artifact; returns its id, or `None` if it cannot be stored.
    fn store_artifact(&self, call: &str, bytes: &[u8]) -> Option<String>;

    /// Returns lines of an artifact, counted from 1.
    fn read_artifact(&self, id: &str, offset: u64, limit: u64) -> Result<KeptLines, String>;

    /// Runs a hook of the user's settings on the host, in the project's folder; its output goes to
    /// `on_chunk`. The default runs nothing.
    fn run_hook<'a>(
        &'a self,
        hook: wire::Hook,
        on_chunk: OnChunk<'a>,
        cancel: &'a CancellationToken,
    ) -> Later<'a, Output> {
        let _unused = (hook, on_chunk, cancel);
        let problem = "hooks cannot run on the host here".to_owned();
        Box::pin(std::future::ready(Output::Fault(Fault::NotStarted {
            problem,
        })))
    }

    /// Calls a tool of an MCP server of the session; the error says why it has no result. Both are
    /// text for the model. How far it is comes as lines of output; what the server wants to know of
    /// the user is asked through `asker`. The default has no servers.
    fn call_foreign<'a>(
        &'a self,
        call: ForeignCall,
        on_chunk: OnChunk<'a>,
        asker: &'a dyn Asker,
        cancel: &'a CancellationToken,
    ) -> Later<'a, Result<String, String>> {
        let _unused = (call, on_chunk, asker, cancel);
        Box::pin(std::future::ready(Err(
            "there are no servers of tools here".to_owned(),
        )))
    }

    /// Says what an install phase for these package managers runs and reaches, for the question to
    /// the user; the error says why there can be none. Both are text for people and the model. The
    /// default has none.
    fn plan_install(&self, _ecosystems: &[String]) -> Result<String, String> {
        Err(
            "dependencies cannot be installed here; the user does that with `podbay install`"
                .to_owned(),
        )
    }

    /// Gets the project's dependencies in an install phase; what the package managers print goes to
    /// `on_chunk`. The error, for the model, says why there was none.
    fn install<'a>(
        &'a self,
        ecosystems: Vec<String>,
        on_chunk: OnChunk<'a>,
        cancel: &'a CancellationToken,
    ) -> Later<'a, Result<Installed, String>> {
        let _unused = (on_chunk, cancel);
        let planned = self.plan_install(&ecosystems).map(|summary| Installed {
            summary,
            ..Installed::default()
        });
        Box::pin(std::future::ready(planned))
    }

    /// Asks the user's search engine; both results are text for the model. The default has none.
    fn search_web<'a>(
        &'a self,
        _search: &'a WebSearch,
        _cancel: &'a CancellationToken,
    ) -> Later<'a, Result<String, String>> {
        let problem = "the user's settings name no search engine (`search.engine`)";
        Box::pin(std::future::ready(Err(problem.to_owned())))
    }

    /// Runs code in a sandbox of its own, which is gone when this returns; what it prints goes to
    /// `on_chunk`. The default has none.
    fn run_apart<'a>(
        &'a self,
        run: SandboxRun,
        on_chunk: OnChunk<'a>,
        cancel: &'a CancellationToken,
    ) -> Later<'a, Output> {
        let _unused = (run, on_chunk, cancel);
        let problem = "there are no throw-away sandboxes here".to_owned();
        Box::pin(std::future::ready(Output::Fault(Fault::NotStarted {
            problem,
        })))
    }

    /// Saves a note that later sessions of the project are shown; both results are text for the
    /// model. The default has nowhere to save it.
    fn save_memory(&self, memory: Memory) -> Result<String, String> {
        Err(format!(
            "`{}` cannot be saved: notes are not kept here",
            memory.name
        ))
    }

    /// Writes a section of the document that later sessions of the project are shown; both results
    /// are text for the model. The default has nowhere to write it.
    fn write_section(&self, section: &DocumentSection) -> Result<String, String> {
        Err(format!(
            "`{}` cannot be saved: notes are not kept here",
            section.heading
        ))
    }

    /// Returns the skill of this name; the error is text for the model. The default has none.
    fn use_skill(&self, name: &str) -> Result<Skill, String> {
        let shown: String = name.chars().take(60).collect();
        Err(format!("there is no skill `{shown}`"))
    }

    /// Starts an agent and waits for its answer. The default has none.
    fn spawn_agent<'a>(
        &'a self,
        order: SpawnOrder<'a>,
        _cancel: &'a CancellationToken,
    ) -> Later<'a, AgentAnswer> {
        let problem = format!("the agent `{}` cannot be started here", order.wanted.agent);
        Box::pin(std::future::ready(AgentAnswer::failed(problem)))
    }

    /// Returns whether agents of this type, with these tools, only read, so that several may run at
    /// once.
    fn agent_only_reads(&self, _agent: &str) -> bool {
        false
    }

    /// Returns whether answers can be stored for the project.
    fn keeps_answers(&self) -> bool {
        false
    }

    /// Keeps that a user allowed exactly this permanently for this project; the error says why it is
    /// not stored.
    fn keep_answer(&self, exact: &ExactCall) -> Result<(), String> {
        Err(format!(
            "cannot store the answer `{}`: answers are not stored here",
            exact.words()
        ))
    }

    /// Removes a stored answer; the error says why it stays.
    fn forget_answer(&self, exact: &ExactCall) -> Result<(), String> {
        Err(format!(
            "cannot remove the answer `{}`: answers are not stored here",
            exact.words()
        ))
    }
}

/// What came of an install phase.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Installed {
    pub is_ok: bool,
    /// A line for each package manager, and what the model must know of what has changed.
    pub summary: String,
    /// The end of what the package managers printed.
    pub printed: Vec<u8>,
}

/// Lines of an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptLines {
    pub text: String,
    /// The next line to read from, if there is more.
    pub next: Option<u64>,
    /// Size of the whole artifact in bytes.
    pub bytes: u64,
}

/// Asks the user about one call. No user, end of input and a withdrawn question all count as no.
pub trait Asker: Send + Sync {
    fn ask<'a>(&'a self, asked: &'a Asked) -> Later<'a, Answered>;

    /// Asks the user a question that is not about a permission; `None` if nobody answered. Answers
    /// other than the options are allowed.
    fn question<'a>(
        &'a self,
        question: &'a str,
        options: &'a [String],
    ) -> Later<'a, Option<String>>;

    /// Asks whether a task may continue at a limit.
    fn may_continue<'a>(&'a self, _question: &'a str) -> Later<'a, bool> {
        Box::pin(std::future::ready(false))
    }

    /// Has the user decide about a plan; `None` if nobody did.
    fn plan<'a>(&'a self, _plan: &'a str) -> Later<'a, Option<PlanAnswer>> {
        Box::pin(std::future::ready(None))
    }

    /// Returns whether a user can answer at all.
    fn can_answer(&self) -> bool;
}
