//! A model server that says what a test tells it to say, with llama-server's manners: `/props`,
//! `/v1/models`, `/tokenize`, `/apply-template`, `/slots`, and `/v1/chat/completions` with and
//! without a stream.
//!
//! ```ignore
//! let model = ScriptedModel::new().calls("bash", json!({"command": "ls"})).says("Done.").start().await;
//! run_something(model.endpoint());
//! assert_eq!(model.requests().len(), 2);
//! ```
//!
//! After the script it says `DONE`. It has a thread and a runtime of its own, so a test may block
//! on a child process meanwhile. It checks the conversation of each request; what is wrong with it
//! is a fault, and dropping a [`Running`] with faults fails the test.

pub(crate) mod faults;
mod running;
pub(crate) mod serve;
mod stream;

use std::time::Duration;

pub(crate) use running::Running;
use serde_json::Value;
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// What it says while its model loads, with status 503.
pub(crate) const LOADING: &str =
    r#"{"error":{"message":"Loading model","type":"unavailable_error","code":503}}"#;

/// What the server will do, turn by turn.
#[derive(Clone, Debug)]
pub(crate) struct ScriptedModel {
    turns: Vec<Turn>,
    tools: bool,
    context: Value,
    key: Option<String>,
    other_server: bool,
    vision: bool,
    /// What the next turn that answers thinks first.
    thinking: Option<String>,
    /// What it says when it is asked to sum up, whatever turn it is.
    summary: Option<String>,
    /// Asked to sum up, it says nothing for so long.
    summary_stall: Option<Duration>,
    /// Bytes that it reads as one token.
    density: usize,
    n_slots: u64,
    /// How many of its slots have work; `None` where it does not say.
    n_busy: Option<u64>,
    /// It never says what its slots do.
    silent_slots: bool,
    /// It never says what it is.
    silent_props: bool,
    is_asleep: bool,
    /// It writes out what its template makes of a conversation.
    has_template: bool,
    /// So often it says first that its model still loads, whatever it is asked.
    n_loading: usize,
    /// Its template as `/props` shows it.
    template: String,
    /// What it answers on other pages than that for completions: path, status, body, and how often
    /// from the first time on.
    pages: Vec<(String, u16, Value, usize)>,
}

#[derive(Clone, Debug)]
enum Turn {
    Answer(Answer),
    Status {
        code: u16,
        headers: String,
        content_type: &'static str,
        body: String,
    },
    Raw {
        bytes: Vec<u8>,
        hold: Duration,
    },
    Halves {
        first: String,
        go_on: CancellationToken,
        second: String,
    },
    Stall(Duration),
    Drip {
        text: String,
        n_chars: usize,
        every: Duration,
    },
    DieMidAnswer {
        text: String,
    },
    /// The stream says `event: error`; asked without a stream the status is 500.
    SseError(Value),
    /// The stream ends without a word; asked without a stream this is the answer.
    Silence {
        code: u16,
        body: Value,
    },
}

#[derive(Clone, Debug, Default)]
struct Answer {
    text: Option<String>,
    thinking: Option<String>,
    calls: Vec<Call>,
}

#[derive(Clone, Debug)]
struct Call {
    name: String,
    arguments: String,
}

impl Default for ScriptedModel {
    fn default() -> Self {
        Self::new()
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "`calls(\"bash\", json!({..}))` reads best"
)]
impl ScriptedModel {
    pub(crate) fn new() -> Self {
        Self {
            turns: Vec::new(),
            tools: true,
            context: json!(32_768),
            key: None,
            other_server: false,
            vision: false,
            thinking: None,
            summary: None,
            summary_stall: None,
            density: 4,
            n_slots: 1,
            n_busy: Some(0),
            silent_slots: false,
            silent_props: false,
            is_asleep: false,
            has_template: true,
            n_loading: 0,
            template: "{# scripted #}".to_owned(),
            pages: Vec::new(),
        }
    }

    fn turn(mut self, turn: Turn) -> Self {
        self.turns.push(turn);
        self
    }

    fn answer(mut self, text: Option<&str>, calls: Vec<Call>) -> Self {
        let thinking = self.thinking.take();
        self.turn(Turn::Answer(Answer {
            text: text.map(str::to_owned),
            thinking,
            calls,
        }))
    }

    /// Answers with text.
    pub(crate) fn says(self, text: &str) -> Self {
        self.answer(Some(text), Vec::new())
    }

    /// Calls one tool.
    pub(crate) fn calls(self, name: &str, arguments: Value) -> Self {
        self.raw_call(name, &arguments.to_string())
    }

    /// Calls one tool with arguments that may be anything.
    pub(crate) fn raw_call(self, name: &str, arguments: &str) -> Self {
        self.answer(
            None,
            vec![Call {
                name: name.to_owned(),
                arguments: arguments.to_owned(),
            }],
        )
    }

    /// Calls several tools in one answer.
    pub(crate) fn calls_many<'a>(self, calls: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let calls = calls
            .into_iter()
            .map(|(name, arguments)| Call {
                name: name.to_owned(),
                arguments: arguments.to_string(),
            })
            .collect();
        self.answer(None, calls)
    }

    /// Says something and calls a tool in the same answer.
    pub(crate) fn says_and_calls(self, text: &str, name: &str, arguments: Value) -> Self {
        self.answer(
            Some(text),
            vec![Call {
                name: name.to_owned(),
                arguments: arguments.to_string(),
            }],
        )
    }

    /// Thinks before the next answer.
    pub(crate) fn thinks(mut self, thinking: &str) -> Self {
        self.thinking = Some(thinking.to_owned());
        self
    }

    /// Answers with an HTTP status and a JSON body.
    pub(crate) fn status(self, code: u16, body: impl Into<String>) -> Self {
        self.status_with(code, "", body)
    }

    /// Answers with an HTTP status and header lines of the test's own, each ended by CRLF.
    pub(crate) fn status_with(self, code: u16, headers: &str, body: impl Into<String>) -> Self {
        self.turn(Turn::Status {
            code,
            headers: headers.to_owned(),
            content_type: "application/json",
            body: body.into(),
        })
    }

    /// Answers as while its model loads.
    pub(crate) fn loading(self) -> Self {
        self.status(503, LOADING)
    }

    /// Says so often that its model still loads before it answers anything.
    pub(crate) fn loads_for(mut self, n_requests: usize) -> Self {
        self.n_loading = n_requests;
        self
    }

    /// Answers as when the prompt does not fit: status 400.
    pub(crate) fn exceeds_context(self, n_prompt: u64, n_ctx: u64) -> Self {
        self.status(400, json!({"error": exceeded(n_prompt, n_ctx)}).to_string())
    }

    /// Answers with a web page.
    pub(crate) fn html(self) -> Self {
        self.turn(Turn::Status {
            code: 200,
            headers: String::new(),
            content_type: "text/html",
            body: "<!DOCTYPE html><h1>It works!</h1>".to_owned(),
        })
    }

    /// Sends exactly these bytes and hangs up.
    pub(crate) fn raw_http(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.turn(Turn::Raw {
            bytes: bytes.into(),
            hold: Duration::ZERO,
        })
    }

    /// Sends exactly these bytes and keeps the connection open.
    pub(crate) fn raw_http_and_hold(self, bytes: impl Into<Vec<u8>>, hold: Duration) -> Self {
        self.turn(Turn::Raw {
            bytes: bytes.into(),
            hold,
        })
    }

    /// Sends exactly these events, as one stream.
    pub(crate) fn raw_sse(self, events: &str) -> Self {
        self.raw_http(format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n{events}"))
    }

    /// Sends the first of these events, waits until the test says `go_on`, sends the others and
    /// hangs up.
    pub(crate) fn raw_sse_in_halves(
        self,
        first: &str,
        go_on: &CancellationToken,
        second: &str,
    ) -> Self {
        let head =
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
        self.turn(Turn::Halves {
            first: format!("{head}{first}"),
            go_on: go_on.clone(),
            second: second.to_owned(),
        })
    }

    /// Sends headers, then nothing for so long, then the end of the stream.
    pub(crate) fn stall(self, duration: Duration) -> Self {
        self.turn(Turn::Stall(duration))
    }

    /// Answers with text, a few characters at a time.
    pub(crate) fn drips(self, text: &str, n_chars: usize, every: Duration) -> Self {
        self.turn(Turn::Drip {
            text: text.to_owned(),
            n_chars,
            every,
        })
    }

    /// Says the text and drops the connection in the middle of the stream.
    pub(crate) fn dies_mid_answer(self, text: &str) -> Self {
        self.turn(Turn::DieMidAnswer {
            text: text.to_owned(),
        })
    }

    /// Answers 200 and then `event: error`.
    pub(crate) fn sse_error(self, error: Value) -> Self {
        self.turn(Turn::SseError(error))
    }

    /// Answers 200 and an empty stream. Where it is asked again without a stream, it answers with
    /// this status and body.
    pub(crate) fn silent(self, code: u16, body: Value) -> Self {
        self.turn(Turn::Silence { code, body })
    }

    /// Says that its chat template has no tools; then calls are written as JSON text, if the
    /// request asks for that.
    pub(crate) fn without_tools(mut self) -> Self {
        self.tools = false;
        self
    }

    /// Says nothing for so long when it is asked to sum up.
    pub(crate) fn silent_summary(mut self, stall: Duration) -> Self {
        self.summary_stall = Some(stall);
        self
    }

    /// Reads this many bytes as one token, instead of four.
    pub(crate) fn density(mut self, bytes: usize) -> Self {
        self.density = bytes;
        self
    }

    /// Has this many slots, so many of them with work; `None` where it does not say.
    pub(crate) fn slots(mut self, n_slots: u64, n_busy: Option<u64>) -> Self {
        (self.n_slots, self.n_busy) = (n_slots, n_busy);
        self
    }

    /// Does not answer when it is asked what its slots do, as while it reads a long prompt.
    pub(crate) fn silent_slots(mut self) -> Self {
        self.silent_slots = true;
        self
    }

    /// Does not answer when it is asked what it is.
    pub(crate) fn silent_props(mut self) -> Self {
        self.silent_props = true;
        self
    }

    /// Says that it sleeps.
    pub(crate) fn sleeps(mut self) -> Self {
        self.is_asleep = true;
        self
    }

    /// Shows this template in `/props`.
    pub(crate) fn template(mut self, template: &str) -> Self {
        template.clone_into(&mut self.template);
        self
    }

    /// Has no `/apply-template`, as before it came.
    pub(crate) fn without_template_page(mut self) -> Self {
        self.has_template = false;
        self
    }

    /// Has this many tokens per slot.
    pub(crate) fn context(self, n_ctx: u64) -> Self {
        self.context_value(json!(n_ctx))
    }

    /// Says this of its window, which may be nonsense.
    pub(crate) fn context_value(mut self, n_ctx: Value) -> Self {
        self.context = n_ctx;
        self
    }

    /// Sums up in these words whenever it is asked to; that takes no turn of the script.
    pub(crate) fn sums_up(mut self, summary: &str) -> Self {
        self.summary = Some(summary.to_owned());
        self
    }

    /// Answers 401 without this key.
    pub(crate) fn key(mut self, key: &str) -> Self {
        self.key = Some(key.to_owned());
        self
    }

    /// Says that its model can be shown images.
    pub(crate) fn sees(mut self) -> Self {
        self.vision = true;
        self
    }

    /// Answers so on a page, such as `/v1/models`, the first `n_times` that it is asked for.
    pub(crate) fn page(mut self, path: &str, code: u16, body: Value, n_times: usize) -> Self {
        self.pages.push((path.to_owned(), code, body, n_times));
        self
    }

    /// Has no `/props`, as servers other than llama-server.
    pub(crate) fn without_props(mut self) -> Self {
        self.other_server = true;
        self
    }

    /// Starts listening on a free port of 127.0.0.1. The result is there at once; it is a future
    /// for symmetry with other servers.
    pub(crate) fn start(self) -> std::future::Ready<Running> {
        std::future::ready(self.start_blocking())
    }

    /// Like [`ScriptedModel::start`], for tests without a runtime.
    pub(crate) fn start_blocking(self) -> Running {
        Running::start(self)
    }
}

/// Returns the error object of a prompt that does not fit, as llama-server writes it.
pub(crate) fn exceeded(n_prompt: u64, n_ctx: u64) -> Value {
    json!({
        "code": 400,
        "message": format!("request ({n_prompt} tokens) exceeds the available context size ({n_ctx} tokens), try increasing it"),
        "type": "exceed_context_size_error",
        "n_prompt_tokens": n_prompt,
        "n_ctx": n_ctx,
    })
}
