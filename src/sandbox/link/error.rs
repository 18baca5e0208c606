//! What can go wrong on the line, in words that hold nothing the guest could have put there
//! unfiltered.

use std::fmt::Write;
use std::io;
use std::time::Duration;

use thiserror::Error;

use podbay_wire::Call;
use podbay_wire::CallVerb;
use podbay_wire::Fault;
use podbay_wire::frame;
use podbay_wire::message::MAX_CALLS;

/// Most characters of a guest's own words in an error.
const MAX_WORDS: usize = 500;

/// Why something on the line could not be done.
#[derive(Debug, Error)]
pub enum Error {
    #[error("greet the sandbox: no hello within {within:?}")]
    NoHello { within: Duration },
    #[error("greet the sandbox: {reason}")]
    Greet { reason: Reason },
    #[error(
        "greet the sandbox: it speaks protocol {theirs}, this podbay speaks {ours}; start the sandbox anew"
    )]
    Protocol { ours: u32, theirs: u32 },
    #[error(
        "greet the sandbox: it runs build {theirs}, this podbay is build {ours}; start the sandbox anew"
    )]
    Build { ours: String, theirs: String },
    #[error("{doing}: cancelled")]
    Cancelled { doing: String },
    #[error("{doing}: {reason}")]
    Ended { doing: String, reason: Reason },
    #[error("{doing}: the call has ended already")]
    CallEnded { doing: String },
    #[error("{doing}: did not end within {after:?} and was stopped")]
    TimedOut { doing: String, after: Duration },
    #[error("the sandbox did not answer within {after:?} after the call was cancelled: {doing}")]
    Unresponsive { doing: String, after: Duration },
    #[error("the call ran longer than its limit of {} s, and the sandbox did not answer: {doing}", limit.as_secs_f64().ceil())]
    Overdue { doing: String, limit: Duration },
    #[error("{doing}: {MAX_CALLS} calls are under way already")]
    TooManyCalls { doing: String },
    #[error("{doing}: the call is longer than one frame may be ({bytes} bytes)")]
    TooLong { doing: String, bytes: usize },
}

impl Error {
    /// Returns what a model can read of it, where the guest is well and only this call came to
    /// nothing.
    pub fn into_fault(self) -> Result<Fault, Self> {
        match self {
            Self::Cancelled { .. } => Ok(Fault::Cancelled),
            Self::TimedOut { doing, after } => Ok(Fault::TimedOut {
                doing,
                after_ms: u64::try_from(after.as_millis()).unwrap_or(u64::MAX),
            }),
            Self::TooLong { .. } | Self::TooManyCalls { .. } | Self::CallEnded { .. } => {
                Ok(Fault::Io {
                    doing: "not executed".to_owned(),
                    problem: self.to_string(),
                })
            }
            error => Err(error),
        }
    }
}

/// Why a stream has ended.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Reason {
    #[error("this end closed the stream")]
    Closed,
    #[error("the sandbox ended the stream; it was stopped or removed, or its guest was killed")]
    EndOfStream,
    #[error("the stream broke: {0}")]
    Broken(String),
    #[error("the sandbox broke the protocol: {0}")]
    Protocol(String),
    /// In the guest's own words, made harmless.
    #[error("the sandbox ended itself: {0}")]
    Closing(String),
}

impl Reason {
    pub(super) fn from_read(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::InvalidData {
            return Self::Protocol(format!("a frame is longer than {} bytes", frame::MAX_FRAME));
        }
        // A frame cut off by the end of the stream arrives as an error of this kind too.
        if error.kind() == io::ErrorKind::UnexpectedEof
            || error.to_string().contains("remaining on stream")
        {
            return Self::Broken("it ended in the middle of a frame".to_owned());
        }
        Self::Broken(error.to_string())
    }

    pub(super) fn from_frame(error: &frame::Error) -> Self {
        // The parser's message can quote what it met.
        let source =
            std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
        Self::Protocol(format!(
            "a frame is not what the protocol says: {}",
            harmless(&source, 200)
        ))
    }

    pub(super) fn from_closing(reason: &str) -> Self {
        Self::Closing(harmless(reason, MAX_WORDS))
    }
}

/// Returns the text without anything that a terminal could act on, and cut.
pub(super) fn harmless(text: &str, limit: usize) -> String {
    let mut out = String::new();
    for (at, character) in text.chars().enumerate() {
        if at == limit {
            out.push('…');
            break;
        }
        if character == ' ' || character.is_alphanumeric() || character.is_ascii_punctuation() {
            out.push(character);
        } else {
            let _ = write!(out, "{}", character.escape_unicode());
        }
    }
    out
}

/// Names a call in an error.
pub(super) fn describe(call: &Call) -> String {
    let path = |path: &podbay_wire::BytesPath| harmless(&path.to_text(), 200);
    let line = |text: &str| harmless(text.lines().next().unwrap_or_default(), 100);
    match call.facts().verb {
        CallVerb::Plain(verb) => verb.to_owned(),
        CallVerb::Path(verb, named) => {
            format!("{verb} {}", named.map_or_else(|| "files".to_owned(), path))
        }
        CallVerb::Paths(verb, from, word, to) => {
            format!("{verb} {} {word} {}", path(from), path(to))
        }
        CallVerb::Pattern(verb, pattern) => format!("{verb} {}", harmless(pattern, 100)),
        CallVerb::CommandLine(verb, command) => format!("{verb} `{}`", line(command)),
        CallVerb::Program(verb, program) => {
            let program = program.map_or_else(|| "the shell".to_owned(), path);
            format!("{verb} {program}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_guest_cannot_reach_a_terminal_as_they_are() {
        assert_eq!(
            harmless("a\x1b]0;t\x07b\u{202e}c", 100),
            "a\\u{1b}]0;t\\u{7}b\\u{202e}c"
        );
        assert_eq!(harmless("abcdef", 3), "abc…");
    }
}
