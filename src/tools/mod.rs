//! From the model's words to a result it can read: the catalogue of tools, the one pipeline that
//! every call goes through, dispatch into the box, rendering.
//!
//! There is no second way in: whoever wants something done hands a [`podbay_event::ToolCall`] to
//! [`Pipeline::run`]. What may be done is `policy`'s business, how it is done the guest's. Start
//! with [`Pipeline::run`], which reads like the list of its steps.

mod arguments;
mod asking;
mod canonical;
mod catalogue;
mod class;
mod covered;
mod dispatch;
mod doubled;
mod each;
mod early;
mod foreign;
mod git_name;
mod git_words;
mod hook;
mod host;
mod json_file;
mod lack;
mod left_out;
mod limit;
mod look;
mod names;
mod options;
mod patch;
mod peek;
mod pipeline;
mod program_asked;
mod programs;
mod render;
mod render_changed;
mod render_denied;
mod render_session;
mod repair;
mod schema;
mod screen;
mod seen;
mod set;
mod tasks;
mod tool;
mod touched;

use std::future::Future;
use std::pin::Pin;

use tokio_util::sync::CancellationToken;

pub use catalogue::Catalogue;
pub use dispatch::OnChunk;
pub use dispatch::Workspace;
pub use early::Early;
pub use hook::BlockOn;
pub use hook::Held;
pub use hook::Hook;
pub use hook::HookOptions;
pub use hook::OnTimeout;
pub use hook::Place;
pub use lack::Lack;
pub use limit::limit_words;
pub use look::Unseen;
pub use options::Options;
pub use pipeline::Finished;
pub use pipeline::Pipeline;
pub use pipeline::PipelineError;
pub use render::Window;
pub use seen::memos;
pub use set::Set;
pub use tool::Tool;
pub use touched::Touched;
pub use touched::note;

use podbay_event::Answered;
use podbay_event::Asked;
use podbay_policy::Exact;
use podbay_wire as wire;
use podbay_wire::Fault;
use podbay_wire::Output;

/// A future that a trait object returns.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What the host does for tools outside of the box; composed in `app`.
pub trait Services: Send + Sync {
    /// Keeps a result that is too long to show whole; returns the id by which it is read, or `None`
    /// if it cannot be kept.
    fn store_artifact(&self, call: &str, bytes: &[u8]) -> Option<String>;

    /// Returns lines of what was kept, counted from 1.
    fn read_artifact(&self, id: &str, offset: u64, limit: u64) -> Result<KeptLines, String>;

    /// Runs a command of the person's settings on their machine, in the project's folder; its
    /// output goes to `on_chunk`. Whoever has no machine to offer runs none.
    fn run_hook<'a>(
        &'a self,
        hook: wire::Hook,
        on_chunk: OnChunk<'a>,
        cancel: &'a CancellationToken,
    ) -> Later<'a, Output> {
        let _unused = (hook, on_chunk, cancel);
        let problem = "nothing runs on the host here".to_owned();
        Box::pin(std::future::ready(Output::Fault(Fault::NotStarted {
            problem,
        })))
    }

    /// Returns whether answers can be kept for the project.
    fn keeps_answers(&self) -> bool {
        false
    }

    /// Keeps that a person allowed exactly this for good in this project; the error says why it is
    /// not kept.
    fn keep_answer(&self, exact: &Exact) -> Result<(), String> {
        Err(format!(
            "no answer is kept here, and so this one is not: {}",
            exact.words()
        ))
    }

    /// Takes back what was kept so; the error says why it stays.
    fn forget_answer(&self, exact: &Exact) -> Result<(), String> {
        Err(format!(
            "no answer is kept here, and so none can be taken back: {}",
            exact.words()
        ))
    }
}

/// Some lines of a result that was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptLines {
    pub text: String,
    /// The line to go on from, if there is more.
    pub next: Option<u64>,
    /// All that was kept, in bytes.
    pub bytes: u64,
}

/// Asks a person about one call. Nobody there, an ended input or a withdrawn question is a no.
pub trait Asker: Send + Sync {
    fn ask<'a>(&'a self, asked: &'a Asked) -> Later<'a, Answered>;

    /// Asks a person something that is no permission; `None`: nobody answered. Another answer than
    /// the options can always be given.
    fn question<'a>(
        &'a self,
        question: &'a str,
        options: &'a [String],
    ) -> Later<'a, Option<String>>;

    /// Returns whether anybody can answer at all.
    fn is_somebody_there(&self) -> bool;
}
