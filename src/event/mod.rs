//! What happens, as plain data: the one [`Event`] that the session log, `--output jsonl`,
//! `events.jsonl` and the screen share, and the
//! [`Command`]s that a user sends back.
//!
//! Nothing here acts. A tool call appears by its name and its argument bytes, never as an action:
//! whoever only watches need not know what it would do. Start with [`Kind`].

mod address;
mod agent;
mod capability;
mod command;
mod duration;
mod encoded;
mod execution_report;
mod field;
mod frontmatter;
mod git_taken;
mod hidden_names;
mod id;
mod kind;
mod line;
mod memory;
mod message_queue;
mod name;
mod network;
mod open_answer;
mod plan;
mod program_words;
mod project_changes;
mod secret;
mod size;
mod task_end;
mod usage;

use std::sync::Arc;

pub use address::shown_address;
pub use agent::AgentEnd;
pub use agent::AgentVerdict;
pub use capability::Capability;
pub use capability::Decision;
pub use command::Answer;
pub use command::Answered;
pub use command::Asked;
pub use command::Command;
pub use command::Lasting;
pub use command::LastingCommand;
pub use duration::Seconds;
pub use execution_report::ActionDone;
pub use execution_report::CommandRun;
pub use execution_report::DeniedAction;
pub use execution_report::ExecutionReport;
pub use execution_report::FileTouched;
pub use field::CallStatus;
pub use field::Evicted;
pub use field::HookOutcome;
pub use field::LimitKind;
pub use field::Moment;
pub use field::Progress;
pub use field::RunStatus;
pub use field::ToolCall;
pub use field::ToolMode;
pub use field::ToolTold;
pub use field::Unit;
pub use frontmatter::FRONTMATTER_FENCE;
pub use frontmatter::frontmatter;
pub use frontmatter::frontmatter_among_others;
pub use git_taken::git_taken;
pub use git_taken::git_taken_whole;
pub use hidden_names::hidden_names;
pub use id::InstanceId;
pub use id::SessionId;
pub use kind::Event;
pub use kind::Kind;
pub use line::json_fault;
pub use line::json_line;
pub use memory::Memory;
pub use memory::MemoryKind;
pub use memory::memory_saved_words;
pub use message_queue::MessageQueue;
pub use message_queue::QueuedMessage;
pub use name::is_same_name;
pub use network::NetworkAttempt;
pub use open_answer::HalfCall;
pub use open_answer::OpenAnswer;
pub use plan::Plan;
pub use plan::PlanAnswer;
pub use plan::PlanDecision;
pub use plan::plan_decided_words;
pub use plan::plan_mode_words;
pub use program_words::program_words;
pub use project_changes::ChangedLines;
pub use project_changes::ChangedPath;
pub use project_changes::PathChanged;
pub use project_changes::ProjectChanges;
pub use secret::Secret;
pub use size::ByteSize;
pub use task_end::TaskEnd;
pub use usage::Usage;

pub use podbay_wire::is_hidden;
pub use podbay_wire::keep::NamedList;

/// The detail of a step that ended without what was waited for.
pub const GIVEN_UP: &str = "given up";
/// The note to a model whose answer reached the most tokens that one may have: what it says next
/// continues that one.
pub const CUT_OFF: &str = "Your answer was cut off: it reached the most tokens that one answer may have. Continue exactly where it stopped, without \
                           repeating anything; if a tool call was to come, make it now.";

/// Where a room sends what happens; cheap to clone, never blocks for long.
pub type Sink = Arc<dyn Fn(Event) + Send + Sync>;

/// Where a slow step says how far it is.
pub type ProgressSink = Arc<dyn Fn(Progress) + Send + Sync>;
