use std::time::Duration;

use thiserror::Error;

/// Why a server is of no use, or a call of its tool has no result. No text in it comes from a
/// server without bounds.
#[derive(Debug, Error)]
pub enum Error {
    #[error("it cannot be started: {problem}")]
    Open { problem: String },
    #[error("it ended{how}")]
    Ended { how: String },
    #[error("no answer comes from it{how}")]
    NoAnswer { how: String },
    #[error("it does not speak the protocol: {problem}")]
    Protocol { problem: String },
    #[error("it answered with an error: {message}")]
    Refused { message: String },
    #[error("the call failed: {problem}")]
    NoMessage { problem: String },
    #[error("it did not answer within {} s", .after.as_secs())]
    TimedOut { after: Duration },
    #[error("it has ended {count} times in a row and is started again in {} s at the earliest", .wait.as_secs().max(1))]
    BackOff { count: u32, wait: Duration },
    #[error("the call was cancelled")]
    Cancelled,
    #[error("there is no such server or tool any more")]
    Unknown,
    #[error("it describes this tool in another way now: `podbay mcp accept {server}` shows how")]
    Changed { server: String },
    #[error("it is off: {why}")]
    Off { why: String },
}

impl Error {
    /// Returns whether the server itself is of no use now, and the next call starts it again.
    pub(super) fn ends_server(&self) -> bool {
        match self {
            Self::Open { .. }
            | Self::Ended { .. }
            | Self::NoAnswer { .. }
            | Self::Protocol { .. } => true,
            Self::Refused { .. }
            | Self::NoMessage { .. }
            | Self::TimedOut { .. }
            | Self::BackOff { .. }
            | Self::Cancelled
            | Self::Unknown
            | Self::Changed { .. }
            | Self::Off { .. } => false,
        }
    }
}
