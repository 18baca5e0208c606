use std::fmt;
use std::time::Duration;

use thiserror::Error;

use super::http;
use super::provider::instead::Instead;
use super::provider::too_long;
use super::refusal::KeySource;
use super::refusal::Refusal;
use super::sse::TooLarge;
use super::stream::Reply;
use podbay_event::Secret;

/// Why a request to the model failed.
/// All but [`Error::ContextExceeded`] and [`Error::Cancelled`] mean that the model cannot be used.
/// Texts from the server are truncated and stripped of control characters before they get here, and
/// never contain the key.
#[derive(Debug, Error)]
pub enum Error {
    #[error(transparent)]
    Http(#[from] http::Error),
    #[error("the API key is not sent to {endpoint}: plain HTTP would show it to the network")]
    KeyOverPlainHttp { endpoint: String },
    #[error("cannot reach the model server at {endpoint}")]
    Unreachable {
        endpoint: String,
        source: reqwest::Error,
    },
    #[error("no secure connection to the model server at {endpoint}")]
    Tls {
        endpoint: String,
        source: rustls::Error,
    },
    #[error("the connection to the model server at {endpoint} broke")]
    Connection {
        endpoint: String,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("the model's answer broke off")]
    BrokenOff {
        /// The part received before; it was already shown.
        partial: Box<Reply>,
        source: Box<Error>,
    },
    #[error("the model did not finish its answer within {}", Span(*.after))]
    Timeout { after: Duration },
    #[error("the model server at {endpoint} did not answer within {}", Span(*.after))]
    NoAnswer { endpoint: String, after: Duration },
    #[error("the model server {} for {}", if *.has_bytes { "made no progress" } else { "sent nothing" }, Span(*.after))]
    IdleTimeout {
        after: Duration,
        /// Bytes did arrive: comments, empty chunks, a slowly dripping line.
        has_bytes: bool,
    },
    #[error("the model server answered with status {code}: {message}")]
    Status {
        code: u16,
        message: String,
        /// How long the server asks to wait before the next try.
        retry_after: Option<Duration>,
    },
    #[error("the model server refused the key{}: {message}", Status(*.code))]
    Unauthorized {
        /// The HTTP status, if there was one.
        code: Option<u16>,
        message: String,
        key: KeySource,
    },
    #[error("the model server refuses {what}: {message}")]
    Refused {
        /// Never [`Refusal::Key`].
        what: Refusal,
        message: String,
        key: KeySource,
    },
    #[error(
        "the model server answered with a redirect (status {code}) to `{location}`, which is not followed"
    )]
    Redirect { code: u16, location: String },
    #[error("{endpoint} answered with {what}, not with JSON")]
    NotJson { endpoint: String, what: Instead },
    #[error("the conversation does not fit the model's context window{}", Window(*.prompt, *.context))]
    ContextExceeded {
        /// Tokens of the prompt, if the server reports them.
        prompt: Option<u64>,
        /// Tokens of the window, if the server reports them.
        context: Option<u64>,
    },
    #[error("the model server's answer is too large: {what} is over {limit} bytes")]
    TooLarge { what: &'static str, limit: u64 },
    #[error("the model server reported an error: {message}")]
    Reported { message: String },
    #[error("the model server could not read its model's answer: {message}")]
    Unreadable {
        message: String,
        /// The model's output from where the server stopped parsing, if it is reported. A call is
        /// parsed from these exact bytes, which may contain the key, so they are never shown.
        raw: Secret,
    },
    #[error("invalid answer from the model server: {problem}")]
    Protocol { problem: String },
    #[error("the model server at {endpoint} is still loading its model after {}", Span(*.waited))]
    ModelLoading { endpoint: String, waited: Duration },
    #[error("cancelled")]
    Cancelled,
}

impl Error {
    /// Returns the error that [`Error::BrokenOff`] wraps, or this one.
    pub fn root(&self) -> &Self {
        match self {
            Self::BrokenOff { source, .. } => source.root(),
            other => other,
        }
    }

    /// Returns the part of the answer received before it broke off.
    pub fn partial(&self) -> Option<&Reply> {
        match self {
            Self::BrokenOff { partial, .. } => Some(partial),
            _ => None,
        }
    }

    /// Returns whether the same request may succeed a little later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::Connection { .. }
            | Self::IdleTimeout { .. }
            | Self::ModelLoading { .. } => true,
            // A chat template that rejects the conversation rejects it every time, and without a
            // status the message is the only evidence.
            Self::Status {
                code: 500, message, ..
            }
            | Self::Reported { message } => {
                !is_template_error(message) && self.objection().is_none()
            }
            // A server without a feature will not gain it by a retry.
            Self::Status {
                code: 501 | 505, ..
            } => false,
            Self::Status { code, .. } => *code == 408 || *code == 429 || (500..600).contains(code),
            _ => false,
        }
    }

    /// Returns whether the connection was lost or went silent: the part received so far may be
    /// valid.
    pub fn is_lost(&self) -> bool {
        matches!(
            self.root(),
            Self::Connection { .. } | Self::IdleTimeout { .. } | Self::Unreachable { .. }
        )
    }

    /// Returns whether the server aborted its answer for a reason that may not recur.
    pub fn is_given_up(&self) -> bool {
        let root = self.root();
        let is_reported = matches!(root, Self::Reported { .. } | Self::Status { .. });
        is_reported && root.is_retryable() && self.partial().is_some() && self.objection().is_none()
    }

    /// Returns whether the server's own log may say why.
    pub fn is_of_server(&self) -> bool {
        matches!(
            self.root(),
            Self::Unreachable { .. }
                | Self::Connection { .. }
                | Self::NoAnswer { .. }
                | Self::IdleTimeout { .. }
                | Self::Status { .. }
                | Self::Reported { .. }
                | Self::Refused {
                    what: Refusal::Request,
                    ..
                }
                | Self::Unreadable { .. }
                | Self::ModelLoading { .. }
        )
    }

    /// Returns whether a refusal may be about the conversation's length, where that is uncertain.
    pub fn may_be_too_long(&self) -> bool {
        self.words_of_refusal().is_some_and(too_long::may_be)
    }

    /// Returns two numbers in a refusal, the larger of which may be the conversation's length and
    /// the other its window.
    pub fn two_sizes(&self) -> Option<(u64, u64)> {
        self.words_of_refusal().and_then(too_long::two_sizes)
    }

    fn words_of_refusal(&self) -> Option<&str> {
        match self.root() {
            Self::Status {
                code: 400 | 422 | 500,
                message,
                ..
            }
            | Self::Reported { message }
            | Self::Refused {
                what: Refusal::Request,
                message,
                ..
            } => Some(message),
            _ => None,
        }
    }

    /// Returns whether the server rejected the key.
    pub fn is_refused_key(&self) -> bool {
        matches!(self.root(), Self::Unauthorized { .. })
    }

    /// Returns whether the cause is invalid input of the user.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Http(http::Error::InvalidEndpoint { .. }))
    }

    /// Returns what the user can do about it.
    pub fn hint(&self) -> Option<String> {
        let hint = match self.root() {
            Self::Http(http::Error::InvalidEndpoint { .. }) => "give an address such as `--endpoint http://127.0.0.1:7474/v1`".to_owned(),
            Self::Http(_) | Self::Cancelled | Self::BrokenOff { .. } => return None,
            Self::KeyOverPlainHttp { .. } => "use an https address, or a server on this machine, or leave the key out".to_owned(),
            Self::Unreachable { .. } => "is the model server running? try `curl URL/models`; `--endpoint URL` names another one".to_owned(),
            Self::Tls { source: rustls::Error::InvalidCertificate(_), .. } => {
                "is the address right? Add a certificate authority of your own to those of the system, or to the file that \
                 SSL_CERT_FILE names"
                    .to_owned()
            }
            Self::Tls { .. } => "does the server speak TLS at this port? One without it has an http:// address".to_owned(),
            Self::Connection { .. } => "the server may have crashed or run out of memory; its own log says more".to_owned(),
            Self::Timeout { .. } => "allow more time with `--timeout`, or use a smaller model".to_owned(),
            Self::NoAnswer { .. } => "is it a model server, and is it overloaded? A slow one needs a larger `llm.probe_timeout_s`".to_owned(),
            Self::IdleTimeout { .. } => "is the server busy or stuck? A slow machine needs a larger `llm.idle_timeout_s`".to_owned(),
            Self::Status { code: 404, .. } => "is the address right? It usually ends in `/v1`; `--model NAME` chooses the model".to_owned(),
            Self::Status { code: 429, retry_after: Some(pause), .. } => {
                format!("the server limits the request rate; wait {} before the next request", Span(*pause))
            }
            Self::Status { code: 429, .. } => "the server limits the request rate; wait a little".to_owned(),
            Self::Status { message, .. } if is_template_error(message) => {
                "the model's chat template refuses this conversation; try `llm.tool_mode = \"constrained\"`".to_owned()
            }
            Self::Unreadable { .. } => {
                "try `llm.tool_mode = \"constrained\"`, or `\"text\"` if that is already set: the server then parses nothing".to_owned()
            }
            Self::Status { message, .. } if message.starts_with("a web page") => {
                "a proxy or a login page is in front of the model server: is the server up, and is the API let through?".to_owned()
            }
            Self::Status { code: 501 | 505, .. } => {
                "the server does not support this request: does it serve chat models, and is it recent enough? Its own log may say more".to_owned()
            }
            Self::Refused { what: Refusal::Account, key, .. } => key.account_remedy(),
            Self::Refused { what: Refusal::Model, .. } => {
                "`--model NAME` names another one; `curl URL/models` lists those that the server has".to_owned()
            }
            Self::Status { .. } | Self::Reported { .. } | Self::Refused { .. } => "the server's own log says more".to_owned(),
            Self::Unauthorized { key, .. } => key.remedy(),
            Self::Redirect { .. } => "if you trust it, give that address with `--endpoint`".to_owned(),
            Self::NotJson { what: Instead::Page { .. }, .. } => {
                "is the address right? The API's usually ends in `/v1`. If a proxy or a login page is in front of it, the API must be let through"
                    .to_owned()
            }
            Self::NotJson { what: Instead::Packed { .. }, .. } => {
                "a proxy may compress the response: let it pass the API through unchanged, or use the server's own address".to_owned()
            }
            Self::NotJson { .. } => "is the address right? The API's usually ends in `/v1`".to_owned(),
            Self::ContextExceeded { .. } => "start a new session, or use a server with a larger context (`inference.context`)".to_owned(),
            Self::TooLarge { .. } => {
                "is the model stuck in a loop? `llm.max_output_tokens` limits an answer. Or is this not an OpenAI-compatible server, whose \
                 address usually ends in /v1?"
                    .to_owned()
            }
            Self::Protocol { .. } => "is this an OpenAI-compatible server? its address usually ends in /v1".to_owned(),
            Self::ModelLoading { .. } => "large models take minutes to load; try again, or raise `inference.start_timeout`".to_owned(),
        };
        Some(hint)
    }
}

impl Error {
    /// Adds where the key came from, to errors that mention it.
    pub(super) fn with_key_source(self, from: impl FnOnce() -> KeySource) -> Self {
        match self {
            Self::Unauthorized { code, message, .. } => Self::Unauthorized {
                code,
                message,
                key: from(),
            },
            Self::Refused { what, message, .. } => Self::Refused {
                what,
                message,
                key: from(),
            },
            Self::BrokenOff { partial, source } => Self::BrokenOff {
                partial,
                source: Box::new(source.with_key_source(from)),
            },
            other => other,
        }
    }
}

impl From<TooLarge> for Error {
    fn from(bound: TooLarge) -> Self {
        Self::TooLarge {
            what: bound.what,
            limit: bound.limit,
        }
    }
}

pub(super) fn is_template_error(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    [
        "jinja",
        "chat template",
        "roles must alternate",
        "raise_exception",
    ]
    .iter()
    .any(|word| message.contains(word))
}

/// A human-readable duration: `120 s`, `1.5 s`.
struct Span(Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} s", (self.0.as_secs_f64() * 10.0).round() / 10.0)
    }
}

/// An HTTP status in parentheses, after other words.
struct Status(Option<u16>);

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |code| write!(f, " (status {code})"))
    }
}

struct Window(Option<u64>, Option<u64>);

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0, self.1) {
            (Some(prompt), Some(context)) => write!(f, ": {prompt} tokens, and it holds {context}"),
            (Some(prompt), None) => write!(f, ": {prompt} tokens"),
            (None, Some(context)) => write!(f, " of {context} tokens"),
            (None, None) => Ok(()),
        }
    }
}

/// Makes a text from the server safe to show: without control characters, truncated to `max`
/// characters.
pub(super) fn plain(text: &str, max: usize) -> String {
    let mut out = String::new();
    let mut n = 0;
    for c in text.trim().chars() {
        // Bidirectional marks would let a name pretend to be another one.
        let hidden = matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
        if n == max {
            out.push('…');
            break;
        }
        if !hidden {
            out.push(if c.is_control() { ' ' } else { c });
            n += 1;
        }
    }
    out.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_timeouts_name_their_duration() {
        let idle = |has_bytes| {
            Error::IdleTimeout {
                after: Duration::from_mins(2),
                has_bytes,
            }
            .to_string()
        };
        assert_eq!(idle(false), "the model server sent nothing for 120 s");
        assert_eq!(idle(true), "the model server made no progress for 120 s");
        assert_eq!(
            Error::Timeout {
                after: Duration::from_millis(1500)
            }
            .to_string(),
            "the model did not finish its answer within 1.5 s"
        );
    }

    #[test]
    fn a_context_error_says_what_it_knows() {
        let text = |prompt, context| Error::ContextExceeded { prompt, context }.to_string();
        assert_eq!(
            text(Some(9), Some(8)),
            "the conversation does not fit the model's context window: 9 tokens, and it holds 8"
        );
        assert_eq!(
            text(None, Some(8)),
            "the conversation does not fit the model's context window of 8 tokens"
        );
        assert_eq!(
            text(None, None),
            "the conversation does not fit the model's context window"
        );
    }

    #[test]
    fn server_texts_are_stripped_of_escapes_and_truncated() {
        assert_eq!(plain(" a\u{1b}[31mb\u{202e}\nc ", 100), "a [31mb c");
        assert_eq!(plain("abcdef", 3), "abc…");
    }

    #[test]
    fn transient_errors_are_retried_and_permanent_ones_are_not() {
        let status = |code, message: &str| {
            Error::Status {
                code,
                message: message.to_owned(),
                retry_after: None,
            }
            .is_retryable()
        };
        assert_eq!(
            [429, 500, 502, 503, 504, 529, 400, 404, 422, 501, 505].map(|code| status(code, "x")),
            [
                true, true, true, true, true, true, false, false, false, false, false
            ]
        );
        assert!(!status(
            500,
            "Jinja Exception: Conversation roles must alternate user/assistant"
        ));
        let reported = |message: &str| {
            Error::Reported {
                message: message.to_owned(),
            }
            .is_retryable()
        };
        assert!(
            reported("the worker crashed"),
            "without a status nobody knows"
        );
        assert!(
            !reported("Jinja Exception: no such filter")
                && !reported("json_schema is not supported")
        );
        assert!(
            Error::IdleTimeout {
                after: Duration::from_mins(2),
                has_bytes: false
            }
            .is_retryable()
        );
        assert!(
            !Error::Timeout {
                after: Duration::from_mins(30)
            }
            .is_retryable(),
            "all the time there was is over"
        );
        assert!(
            !Error::ContextExceeded {
                prompt: None,
                context: None
            }
            .is_retryable()
        );
    }
}
