//! Commands that the person's settings tie to moments of a session, and what they hold back.
//!
//! A hook is judged, and reaches the sandbox or the host, the way every call does:
//! [`Policy::judge_hook`](podbay_policy::Policy::judge_hook) and dispatch. What it is told it finds
//! on its standard input, as one JSON object ([`told`]), and in its environment; what it says is
//! read to its end and kept up to a bound. Before a call it can hold the call back; nobody waits
//! for one that comes after.

mod end;
mod moment;
mod options;
mod placeholder;
mod told;

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use moment::Held;
pub use options::BlockOn;
pub use options::Hook;
pub use options::HookOptions;
pub use options::OnTimeout;
pub use options::Place;

use podbay_event::Moment;
use podbay_event::SessionId;

/// Most hooks that wait for their turn after calls; a session that makes calls faster than its
/// hooks end loses some, and hears of it.
const WAITING: usize = 64;

/// The hooks of one session.
pub(super) struct Hooks {
    options: HookOptions,
    session: Option<SessionId>,
    /// Those that nobody waits for.
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

    /// Returns how long a hook of this moment may take at the most.
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
