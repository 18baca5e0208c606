//! The protocol between the host and the guest.
//!
//! Plain data and its bounds: calls, outputs, frames, ids. Nothing here does I/O, and nothing here
//! decides anything; `guest` and `sandbox::link` do the talking. Start with [`message`], then
//! [`Call`] and [`Output`].
//!
//! `docs/protocol.md` describes the same from outside.

mod background;
mod call;
mod copy_name;
mod egress;
mod exec_rules;
mod fault;
pub mod frame;
mod git_words;
mod hidden;
pub mod keep;
mod left_out;
mod limit;
pub mod message;
mod output;
mod path;
pub mod programs;
mod protected;
mod quoted_name;
mod seen;
mod text;
mod write_gate;

pub use background::Background;
pub use background::MAX_RAN;
pub use background::Process;
pub use background::RanInBackground;
// A new call has one line for this, in its folder.
pub use call::*;
pub use egress::BLOCKED;
pub use egress::EGRESS_FOLDER;
pub use egress::EGRESS_SOCKET;
pub use egress::EgressAccess;
pub use egress::EgressAttempt;
pub use egress::EgressCommand;
pub use egress::EgressEffect;
pub use egress::EgressEvent;
pub use egress::EgressHostFrame;
pub use egress::EgressHostPart;
pub use egress::EgressName;
pub use egress::EgressOpening;
pub use egress::EgressPurpose;
pub use egress::EgressRule;
pub use egress::EgressUpstream;
pub use egress::HOST_CHUNK;
pub use egress::HOST_MACHINE;
pub use egress::HOST_STREAMS;
pub use egress::HOST_WINDOW;
pub use egress::MAX_ATTEMPT_LINE;
pub use egress::MAX_NAME_PORTS;
pub use egress::MAX_OPENING;
pub use egress::MAX_RULES_LINE;
pub use egress::OPENING;
pub use egress::PROXY_PORT;
pub use exec_rules::AskedProgram;
pub use exec_rules::Because;
pub use exec_rules::Denied;
pub use exec_rules::ExecEffect;
pub use exec_rules::ExecRule;
pub use exec_rules::ExecScope;
pub use exec_rules::MAX_DENIED;
pub use exec_rules::MAX_QUESTIONS;
pub use exec_rules::MAX_RULES;
pub use exec_rules::are_too_many;
pub use fault::Fault;
pub use git_words::GIT_CHANGES;
pub use git_words::GIT_READS;
pub use git_words::behind_git_options;
pub use git_words::is_git_verb;
pub use hidden::is_hidden;
pub use left_out::LeftOut;
pub use limit::n_bytes;
pub use limit::size;
pub use message::CallId;
pub use message::ExecGate;
pub use output::Change;
pub use output::Changed;
pub use output::CommandEnded;
pub use output::Culprit;
pub use output::DirectoryEntry;
pub use output::DirectoryListing;
pub use output::Edited;
pub use output::Encoding;
pub use output::End;
pub use output::EntryKind;
pub use output::Environment;
pub use output::FileChange;
pub use output::FileText;
pub use output::FoundFiles;
pub use output::Image;
pub use output::ImageKind;
pub use output::Limit;
pub use output::MatchedFile;
pub use output::MatchedLine;
pub use output::Matches;
pub use output::MeantName;
pub use output::Moved;
pub use output::Output;
pub use output::Read;
pub use output::Variable;
pub use output::Written;
pub use path::BytesPath;
pub use programs::Program;
pub use programs::Programs;
pub use protected::Protected;
pub use protected::SecretName;
pub use protected::protected_name;
pub use protected::secret_name;
pub use protected::secret_path;
pub use quoted_name::unquoted;
pub use seen::Known;
pub use seen::KnownFile;
pub use seen::Mark;
pub use seen::Memo;
pub use seen::below;
pub use text::shown_text;
pub use write_gate::AskedWrite;
pub use write_gate::WriteChange;
pub use write_gate::WriteGate;

/// The protocol's version; both ends must have the same one.
pub const PROTOCOL: u32 = 1;
