//! `--model`: what the model really does, asked one thing after the other.
//!
//! Connectivity, a chat, a stream, calls by the server's own means, by a schema and by text; then
//! which way a run would choose, the whole prompt of one, and code for a file. Every question but
//! that of a run is small, is asked once, and has its own time.

use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::check::Check;
use super::check::Group;
use super::check::Status;
use super::check::chain;
use super::full;
use super::model::mode_word;
use super::model::serves;
use super::nudged;
use crate::Error;
use crate::model;
use podbay_config::Config;
use podbay_engine::Engine;
use podbay_engine::Provision;
use podbay_event::Progress;
use podbay_event::ProgressSink;
use podbay_event::Secret;
use podbay_event::ToolMode;
use podbay_event::Unit;
use podbay_inference::ModelServer;
use podbay_inference::Paths;
use podbay_inference::ServerUse;
use podbay_inference::Serving;
use podbay_inference::Store;
use podbay_llm as llm;
use podbay_llm::Client;
use podbay_llm::Endpoint;
use podbay_llm::Message;
use podbay_llm::ProbeResult;
use podbay_llm::Prompt;
use podbay_llm::Reply;
use podbay_llm::Request;
use podbay_llm::ToolSpec;
use podbay_llm::Update;
use podbay_sandbox::Backend;
use podbay_session::State;

pub(super) const GROUP: Group = Group::Trial;

/// How long one question may take; a large model on a processor reads slowly.
const PATIENCE: Duration = Duration::from_mins(3);

/// How long a server that was just started may take to say what it serves.
const PROBE: Duration = Duration::from_secs(30);

/// The tool that the model is asked to call. Nothing carries the call out.
const TOOL: &str = "read_file";

/// Where the model is had from.
pub(super) struct Source<'a> {
    pub(super) config: &'a Config,
    /// The endpoint's key.
    pub(super) key: Option<Secret>,
    pub(super) engine: Option<&'a Engine>,
    pub(super) state: Option<&'a std::path::Path>,
    pub(super) progress: &'a ProgressSink,
}

/// Tries the endpoint, or our own server, which is started as a run would.
pub(super) async fn run(source: &Source<'_>, cancel: &CancellationToken) -> Vec<Check> {
    let begun = Instant::now();
    let (client, probed, _hold) = match source.connect(cancel).await {
        Ok(found) => found,
        Err(error) => {
            let hint = error.hint();
            return vec![Check::error(
                GROUP,
                "connectivity",
                &error,
                hint,
                "the lines above may say why",
            )];
        }
    };
    let mut checks = vec![Check::ok(
        GROUP,
        "connectivity",
        format!("{} ({})", serves(&probed), took(begun)),
    )];
    checks.extend(slots(&probed));
    let step = |what: &str, finished: bool| {
        let task = "trying the model".to_owned();
        (source.progress)(Progress {
            task,
            done: 0,
            total: None,
            unit: Unit::Steps,
            detail: what.to_owned(),
            finished,
        });
    };
    step("a chat", false);
    let asked = chat(&client, cancel).await;
    let goes_on = asked.remedy.is_none();
    checks.push(asked);
    if !goes_on {
        step("", true);
        // The rest would only fail the same way.
        return checks;
    }
    step("a stream", false);
    checks.push(stream(&client, cancel).await);
    let mode = probed.tools;
    let mut can_call = false;
    for way in [ToolMode::Native, ToolMode::Constrained, ToolMode::Text] {
        step(names(way).0, false);
        let check = call(&client, way, mode, cancel).await;
        can_call |= way == mode && check.status == Status::Ok;
        checks.push(check);
    }
    checks.push(Check::ok(
        GROUP,
        "mode of a run",
        format!("{}: {}", mode_word(mode), probed.reason),
    ));
    step("the prompt of a run", false);
    checks.push(full::check(&client, &source.config.tools, mode, can_call, cancel).await);
    step("code for a file", false);
    checks.push(nudged::check(&client, mode, cancel).await);
    step("", true);
    checks
}

/// Returns how many conversations the server holds at once and whether others have them all, where
/// it says so.
fn slots(probed: &ProbeResult) -> Option<Check> {
    let slots = match probed.n_slots? {
        1 => "1 conversation at a time".to_owned(),
        n_slots => format!("{n_slots} conversations at a time"),
    };
    if probed.is_full() {
        let remedy = "what follows waits for it, and a run would: wait until it is done, or start llama-server with more slots (`-np N`)";
        return Some(Check::warn(
            GROUP,
            "slots",
            format!("{slots}, and other requests have them all"),
            remedy,
        ));
    }
    Some(Check::ok(
        GROUP,
        "slots",
        match probed.n_busy {
            None => format!("{slots}; whether others wait for it, it does not say"),
            Some(0) => format!("{slots}, and nobody else asks"),
            Some(n_busy) => format!("{slots}, {n_busy} of them for others"),
        },
    ))
}

impl Source<'_> {
    async fn connect(
        &self,
        cancel: &CancellationToken,
    ) -> Result<(Client, ProbeResult, Option<Arc<ServerUse>>), Error> {
        let (endpoint, key, hold, within) = if let Some(text) = &self.config.llm.endpoint {
            let endpoint = Endpoint::parse(text).map_err(|error| Error::Model(error.into()))?;
            (
                endpoint,
                self.key.clone(),
                None,
                self.config.llm.probe_timeout(),
            )
        } else {
            let serving = self.own(cancel).await?;
            (
                serving.endpoint,
                Some(serving.key),
                Some(serving.hold),
                PROBE,
            )
        };
        // Asked once: what only works the third time is not well.
        let options = llm::Options {
            retries: 0,
            temperature: Some(0.0),
            ..self.config.llm.clone()
        };
        let client = Client::new(endpoint, key, options).map_err(Error::Model)?;
        let probed = client.probe(cancel, within).await.map_err(Error::Model)?;
        Ok((client, probed, hold))
    }

    /// Returns our own server, and starts it where it does not run: image and model included.
    async fn own(&self, cancel: &CancellationToken) -> Result<Serving, Error> {
        if self.config.sandbox.backend == Backend::Attach {
            return Err(model::not_named());
        }
        let engine = self.engine.ok_or_else(|| {
            Error::usage(
                "our own model server needs a container engine",
                "see the engine's lines above, or use --endpoint",
            )
        })?;
        let root = self.state.ok_or_else(|| {
            Error::usage(
                "our own model server needs a state folder",
                "set PODBAY_HOME",
            )
        })?;
        let state = State::open(root).map_err(Error::Session)?;
        let options = &self.config.inference;
        let paths = Paths::new(state.root());
        let provision = Provision::new(
            engine,
            &self.config.engine,
            self.config.offline,
            state.locks(),
            self.progress,
        );
        let image = async {
            provision
                .ensure(options.image_name(), cancel)
                .await
                .map_err(Error::of_server_image)
        };
        let model = async {
            Store::new(options, &paths, self.config.offline)?
                .resolve(self.progress, cancel)
                .await
        };
        let model = async { model.await.map_err(Error::Inference) };
        let (image, model) = tokio::try_join!(image, model)?;
        ModelServer::new(engine, options, &paths)
            .ensure(&image, &model, self.progress, cancel)
            .await
            .map_err(Error::Inference)
    }
}

/// What came of one question.
pub(super) struct Answer {
    pub(super) reply: Reply,
    /// Pieces of text or thinking that came one by one.
    n_pieces: usize,
    /// Until the first of them.
    first: Option<Duration>,
    pub(super) took: Duration,
}

pub(super) async fn ask(
    client: &Client,
    prompt: &Prompt,
    max_tokens: u64,
    cancel: &CancellationToken,
) -> Result<Answer, llm::Error> {
    let begun = Instant::now();
    let (mut n_pieces, mut first) = (0, None);
    let mut on = |update: Update| {
        if matches!(
            update,
            Update::Text(_) | Update::Thinking(_) | Update::CallStarted { .. }
        ) {
            n_pieces += 1;
            first.get_or_insert_with(|| begun.elapsed());
        }
    };
    let request = Request {
        max_tokens: Some(max_tokens),
        ..Request::default()
    };
    let reply = client
        .stream(prompt, &request, &mut on, cancel, PATIENCE)
        .await?;
    Ok(Answer {
        reply,
        n_pieces,
        first,
        took: begun.elapsed(),
    })
}

fn failed(name: &str, error: &llm::Error) -> Check {
    let hint = error.hint();
    Check::error(GROUP, name, error, hint, "the server's own log says more")
}

fn question(client: &Client, text: &str) -> Prompt {
    let mut prompt = Prompt::new("", &[], ToolMode::Native).with_dialect(client.dialect());
    prompt.push(&Message::user(text));
    prompt
}

async fn chat(client: &Client, cancel: &CancellationToken) -> Check {
    match ask(
        client,
        &question(client, "Answer with one word: are you ready?"),
        64,
        cancel,
    )
    .await
    {
        Err(error) => failed("chat", &error),
        Ok(answer)
            if answer.reply.text.trim().is_empty() && answer.reply.thinking.trim().is_empty() =>
        {
            let remedy =
                "try another model or chat template: the server's own log shows what it was given";
            Check::fail(
                GROUP,
                "chat",
                format!(
                    "the model answered without a word ({})",
                    seconds(answer.took)
                ),
                remedy,
            )
        }
        Ok(answer) => {
            let text = if answer.reply.text.trim().is_empty() {
                &answer.reply.thinking
            } else {
                &answer.reply.text
            };
            Check::ok(
                GROUP,
                "chat",
                format!("it said \"{}\" ({})", short(text), seconds(answer.took)),
            )
        }
    }
}

async fn stream(client: &Client, cancel: &CancellationToken) -> Check {
    match ask(
        client,
        &question(
            client,
            "Count from 1 to 20, with spaces between the numbers.",
        ),
        96,
        cancel,
    )
    .await
    {
        Err(error) => failed("streaming", &error),
        Ok(answer) => streamed(&answer),
    }
}

fn streamed(answer: &Answer) -> Check {
    let first = answer.first.map_or_else(String::new, |first| {
        format!(", the first after {}", seconds(first))
    });
    let rate = answer.reply.usage.completion as f64 / answer.took.as_secs_f64().max(0.001);
    let rate = if answer.reply.usage.completion > 0 {
        format!(", {rate:.0} tokens/s")
    } else {
        String::new()
    };
    let detail = format!(
        "{} pieces{first}{rate} ({})",
        answer.n_pieces,
        seconds(answer.took)
    );
    if answer.n_pieces > 1 {
        return Check::ok(GROUP, "streaming", detail);
    }
    let remedy = "look for a proxy on the way that holds answers back (nginx: proxy_buffering off), or a server that knows no streams";
    Check::warn(
        GROUP,
        "streaming",
        format!(
            "the answer came in one piece{first}{rate} ({})",
            seconds(answer.took)
        ),
        remedy,
    )
}

/// Has the model call a tool by one of the two ways.
async fn call(client: &Client, way: ToolMode, mode: ToolMode, cancel: &CancellationToken) -> Check {
    let parameters = json!({
        "type": "object",
        "properties": { "path": { "type": "string", "description": "Path of the file." } },
        "required": ["path"],
        "additionalProperties": false,
    });
    let tool = ToolSpec {
        name: TOOL.to_owned(),
        description: "Reads a file and returns its text.".to_owned(),
        parameters,
    };
    let mut prompt = Prompt::new(
        "You use tools. To see a file, call read_file.",
        &[tool],
        way,
    )
    .with_dialect(client.dialect());
    prompt.push(&Message::user("Read the file README.md."));
    let outcome = ask(client, &prompt, 128, cancel).await;
    judge_call(way, mode, &outcome)
}

/// Returns what the question about a way is called, and another way.
fn names(way: ToolMode) -> (&'static str, &'static str) {
    match way {
        ToolMode::Native => ("native tools", "constrained"),
        ToolMode::Constrained => ("constrained tools", "native"),
        ToolMode::Text => ("text tools", "constrained"),
    }
}

fn judge_call(way: ToolMode, mode: ToolMode, outcome: &Result<Answer, llm::Error>) -> Check {
    let (name, other) = names(way);
    let problem = match outcome {
        Ok(answer) => match answer.reply.calls.first() {
            Some(call)
                if call.name == TOOL
                    && serde_json::from_str::<serde_json::Value>(&call.arguments).is_ok() =>
            {
                return Check::ok(
                    GROUP,
                    name,
                    format!(
                        "it called {} {} ({})",
                        call.name,
                        short(&call.arguments),
                        seconds(answer.took)
                    ),
                );
            }
            Some(call) => format!(
                "it called {} with {}, which is not what it was told of",
                short(&call.name),
                short(&call.arguments)
            ),
            None => format!("it answered without a call ({})", seconds(answer.took)),
        },
        Err(error) => chain(error),
    };
    if way != mode {
        // No run goes this way, so nothing is wrong.
        return Check::ok(GROUP, name, format!("not this way: {problem}"));
    }
    let remedy = format!(
        "try the other way (llm.tool_mode = \"{other}\"), or a model that is made for tools"
    );
    match outcome {
        Ok(_) => Check::warn(GROUP, name, problem, remedy),
        Err(_) => Check::fail(GROUP, name, problem, remedy),
    }
}

/// Returns the first words of a model's text, on one line.
pub(super) fn short(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words,
    }
}

fn took(begun: Instant) -> String {
    seconds(begun.elapsed())
}

pub(super) fn seconds(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        format!("{} ms", time.as_millis())
    } else {
        format!("{:.1} s", time.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_event::ToolCall;

    fn answer(calls: &[(&str, &str)], n_pieces: usize) -> Answer {
        let call = |(name, arguments): &(&str, &str)| ToolCall {
            id: "1".to_owned(),
            name: (*name).to_owned(),
            arguments: (*arguments).to_owned(),
        };
        let reply = Reply {
            calls: calls.iter().map(call).collect(),
            ..Reply::default()
        };
        Answer {
            reply,
            n_pieces,
            first: Some(Duration::from_millis(20)),
            took: Duration::from_millis(1500),
        }
    }

    #[track_caller]
    fn check(way: ToolMode, mode: ToolMode, calls: &[(&str, &str)], status: Status) {
        let found = judge_call(way, mode, &Ok(answer(calls, 1)));
        assert_eq!(
            (found.status, found.remedy.is_some()),
            (status, status != Status::Ok),
            "{found:?}"
        );
    }

    #[test]
    fn a_way_counts_only_if_a_run_would_go_it() {
        use ToolMode::Constrained;
        use ToolMode::Native;
        check(
            Native,
            Native,
            &[(TOOL, r#"{"path":"README.md"}"#)],
            Status::Ok,
        );
        check(Native, Native, &[], Status::Warn);
        check(Native, Native, &[(TOOL, "{")], Status::Warn);
        check(Native, Native, &[("bash", "{}")], Status::Warn);
        check(Native, Constrained, &[], Status::Ok);
        check(Constrained, Native, &[], Status::Ok);
        check(Constrained, Constrained, &[], Status::Warn);
        check(ToolMode::Text, Native, &[], Status::Ok);
        check(ToolMode::Text, ToolMode::Text, &[], Status::Warn);
        let refused = || {
            Err(llm::Error::Reported {
                message: "no".to_owned(),
            })
        };
        assert_eq!(
            judge_call(Constrained, Constrained, &refused()).status,
            Status::Fail
        );
        assert_eq!(
            judge_call(Constrained, Native, &refused()).status,
            Status::Ok
        );
    }

    #[test]
    fn an_answer_in_one_piece_is_no_stream() {
        assert_eq!(streamed(&answer(&[], 1)).status, Status::Warn);
        let found = streamed(&answer(&[], 20));
        assert!(
            found.status == Status::Ok
                && found
                    .detail
                    .contains("20 pieces, the first after 20 ms (1.5 s)"),
            "{found:?}"
        );
    }
}
