//! Hooks: commands in the user's settings that run at certain moments of a session and may block a
//! call or message.
//!
//! A hook is judged and dispatched like every call
//! ([`Policy::judge_hook`](podbay_policy::Policy::judge_hook)). It receives one JSON object
//! ([`told`]) on its standard input, and environment variables; its output is read to the end
//! and kept up to a bound. A hook before a call can block it; hooks after a call run in the
//! background.

mod options;
mod outcome;
mod payload;
mod placeholder;
mod runner;

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use options::BlockOn;
pub use options::Hook;
pub use options::HookOptions;
pub use options::HookPlace;
pub use options::OnTimeout;
pub use runner::HookStop;

use podbay_event::Moment;
use podbay_event::SessionId;

/// Most hooks that may be queued after calls; beyond it hooks are dropped with a warning.
const WAITING: usize = 64;

/// The hooks of one session.
pub(super) struct Hooks {
    options: HookOptions,
    session: Option<SessionId>,
    /// Those that run in the background.
    behind: Mutex<JoinSet<()>>,
    /// One at a time, in the order of their calls.
    turn: Arc<Semaphore>,
    end: CancellationToken,
}

impl Hooks {
    pub(super) fn new(options: HookOptions, session: Option<SessionId>) -> Self {
        Self {
            options,
            session,
            behind: Mutex::default(),
            turn: Arc::new(Semaphore::new(1)),
            end: CancellationToken::new(),
        }
    }

    /// Returns the longest timeout of this moment's hooks.
    fn longest(&self, moment: Moment) -> Duration {
        let times = self
            .of(moment)
            .iter()
            .map(|hook| hook.timeout.unwrap_or(self.options.timeout).duration());
        times.max().unwrap_or_default()
    }

    pub(super) fn of(&self, moment: Moment) -> &[Hook] {
        match moment {
            Moment::SessionStart => &self.options.session_start,
            Moment::UserPrompt => &self.options.user_prompt,
            Moment::PreToolUse => &self.options.pre_tool_use,
            Moment::PostToolUse => &self.options.post_tool_use,
            Moment::PreCompact => &self.options.pre_compact,
            Moment::Stop => &self.options.stop,
        }
    }
}
