//! Ollama's own API.
//!
//! Its API of `OpenAI`'s kind cannot set the context window: a model that was not loaded otherwise
//! has the server's default, and what does not fit is dropped without a word. Here each request
//! carries the window.

use futures::future::BoxFuture;
use futures::future::FutureExt;
use serde::Deserialize;
use serde::Serialize;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;
use serde_json::value::RawValue;

use super::Api;
use super::ChatApi;
use super::EventParser;
use super::Framing;
use crate::control::ControlTokens;
use crate::dialect;
use crate::dialect::ChatMessage;
use crate::dialect::Dialect;
use crate::error::Error;
use crate::format::constrained;
use crate::http::Endpoint;
use crate::options::Options;
use crate::probe::ProbeResult;
use crate::probe::Server;
use crate::prompt::Prompt;
use crate::provider::COMMON;
use crate::provider::Provider;
use crate::provider::Quirks;
use crate::provider::assemble::Assembler;
use crate::provider::calls::Piece;
use crate::provider::failure::Failure;
use crate::provider::half::Halved;
use crate::provider::listed;
use crate::provider::openai;
use crate::provider::openai::Manner;
use crate::server_query::ServerQuery;
use crate::sse::Event;
use crate::stream::Finish;
use crate::stream::Request;
use crate::stream::Update;
use podbay_event::ToolMode;
use podbay_event::Usage;

/// Lines with invalid JSON are skipped; this many mean that it is another protocol.
const MAX_MALFORMED: u32 = 50;
/// The window where neither the settings nor the model's own file set one, in tokens: a model's
/// maximum may need more memory than there is.
const USUAL_WINDOW: u64 = 8192;
/// No window comes near this.
const MAX_COUNT: u64 = 1 << 40;

#[derive(Debug)]
pub(super) struct Ollama;

impl ChatApi for Ollama {
    fn kinds(&self) -> &'static [&'static dyn Provider] {
        &[&Ollama]
    }

    fn model_names<'a>(
        &'a self,
        asking: &'a ServerQuery<'a>,
    ) -> BoxFuture<'a, Result<Vec<String>, Error>> {
        async move { Ok(names(&asking.get("/api/tags").await?)) }.boxed()
    }

    fn dialect(&self) -> Dialect {
        Dialect {
            name: "ollama",
            tools: dialect::tools,
            message,
            image,
        }
    }

    fn route(&self, endpoint: &Endpoint) -> String {
        endpoint.at_root("/api/chat")
    }

    fn body(
        &self,
        prompt: &Prompt,
        request: &Request,
        options: &Options,
        manner: &Manner,
        stream: bool,
    ) -> Vec<u8> {
        let mut body = prompt.head();
        body.push(']');
        let mut put = |key: &str, value: &Value| {
            body.push_str(&format!(",\"{key}\":{value}"));
        };
        if let Some(model) = &manner.model {
            put("model", &json!(model));
        }
        put("stream", &json!(stream));
        put("options", &sampling(request, options, manner));
        if let Some(format) = format(prompt, request) {
            put("format", &format);
        }
        body.push('}');
        body.into_bytes()
    }

    fn framing(&self) -> Framing {
        Framing::Lines
    }

    fn parser(&self) -> Box<dyn EventParser> {
        Box::<Parser>::default()
    }

    fn whole(
        &self,
        body: &[u8],
        failure: &Failure<'_>,
        to: &mut Assembler,
        on: &mut (dyn FnMut(Update) + Send),
    ) -> Result<(), Error> {
        let line: Line<'_> = serde_json::from_slice(body).map_err(|_| failure.not_json(body))?;
        if line.error.is_null() && line.message.is_none() {
            return Err(Error::Protocol {
                problem: "its answer holds no message".to_owned(),
            });
        }
        Parser::default().take(line, failure, to, on)
    }
}

impl Provider for Ollama {
    fn probe<'a>(
        &'a self,
        asking: &'a ServerQuery<'a>,
        options: &'a Options,
    ) -> BoxFuture<'a, Result<Option<ProbeResult>, Error>> {
        async move {
            let model = match &options.model {
                Some(model) => model.clone(),
                None => {
                    first_model(&asking.get("/api/tags").await?).ok_or_else(|| Error::Protocol {
                        problem: "it has no model; pull one, or name one with `llm.model`"
                            .to_owned(),
                    })?
                }
            };
            let shown = asking
                .post("/api/show", json!({ "model": model }).to_string())
                .await?;
            Ok(Some(probed(model, &shown, options.context)))
        }
        .boxed()
    }

    fn quirks(&self) -> &'static Quirks {
        const QUIRKS: Quirks = Quirks {
            extras: &[],
            // It says `done` even where a model has nothing to say, and reports every error.
            may_be_silent: true,
            replays_thinking: true,
            ..COMMON
        };
        &QUIRKS
    }
}

fn sampling(request: &Request, options: &Options, manner: &Manner) -> Value {
    let mut sampling = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            sampling.insert(key.to_owned(), value);
        }
    };
    let number = |value: Option<f64>| value.filter(|value| value.is_finite()).map(Value::from);
    put("num_ctx", manner.context.map(Value::from));
    put(
        "num_predict",
        openai::max_tokens(request, options, manner).map(Value::from),
    );
    put(
        "temperature",
        number(request.temperature.or(options.temperature)),
    );
    put("top_p", number(options.top_p));
    put("top_k", options.top_k.map(Value::from));
    put("min_p", number(options.min_p));
    put("presence_penalty", number(options.presence_penalty));
    put("repeat_penalty", number(options.repeat_penalty));
    put(
        "stop",
        (!options.stop.is_empty()).then(|| json!(options.stop)),
    );
    Value::Object(sampling)
}

/// Returns the schema that constrains the answer.
fn format(prompt: &Prompt, request: &Request) -> Option<Value> {
    let tools = if request.no_tools {
        &[]
    } else {
        prompt.tools()
    };
    match prompt.mode() {
        _ if request.schema.is_some() => request.schema.clone(),
        ToolMode::Constrained => Some(constrained::schema(tools)),
        ToolMode::Native | ToolMode::Text => None,
    }
}

/// The order of the fields is the order in the JSON.
#[derive(Serialize)]
struct Wire<'a> {
    role: &'static str,
    content: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<&'a RawValue>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: &'a str,
    function: WireFunction<'a>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: &'a str,
    /// An object, unlike in `OpenAI`'s API.
    arguments: &'a RawValue,
}

fn message(message: &ChatMessage<'_>) -> String {
    let answered = message.answered.as_ref();
    let wire = Wire {
        role: message.role,
        content: &message.text,
        thinking: message.thinking.as_deref(),
        images: message.images.iter().map(|image| raw(image)).collect(),
        tool_calls: message
            .calls
            .iter()
            .map(|call| WireCall {
                id: call.id,
                function: WireFunction {
                    name: &call.name,
                    arguments: raw(&call.arguments),
                },
            })
            .collect(),
        tool_name: answered.map(|answered| answered.name.as_ref()),
        tool_call_id: answered.map(|answered| answered.id),
    };
    serde_json::to_string(&wire).expect("strings and JSON always have a JSON form")
}

/// Returns JSON byte for byte.
fn raw(json: &str) -> &RawValue {
    serde_json::from_str(json).unwrap_or(RawValue::NULL)
}

/// Writes the bytes of a `data:` URL, which are in base64 here too.
fn image(url: &str) -> String {
    let bytes = url.split_once(";base64,").map_or(url, |(_, bytes)| bytes);
    Value::from(bytes).to_string()
}

#[derive(Debug, Default)]
struct Parser {
    n_malformed: u32,
    n_progress: u64,
    n_calls: u64,
    done: bool,
}

/// A line of the stream, or the whole answer.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, default)]
    message: Option<Answered<'a>>,
    #[serde(default)]
    done: bool,
    #[serde(default)]
    done_reason: Option<String>,
    #[serde(default)]
    prompt_eval_count: Option<u64>,
    #[serde(default)]
    eval_count: Option<u64>,
    #[serde(default)]
    error: Value,
}

#[derive(Deserialize)]
struct Answered<'a> {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    thinking: Option<String>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<AnsweredCall<'a>>>,
}

#[derive(Deserialize)]
struct AnsweredCall<'a> {
    #[serde(default)]
    id: Option<String>,
    #[serde(borrow)]
    function: AnsweredFunction<'a>,
}

#[derive(Deserialize)]
struct AnsweredFunction<'a> {
    name: String,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

impl EventParser for Parser {
    fn event(
        &mut self,
        event: &Event,
        failure: &Failure<'_>,
        to: &mut Assembler,
        on: &mut (dyn FnMut(Update) + Send),
    ) -> Result<(), Error> {
        if self.done {
            return Ok(());
        }
        match serde_json::from_str(&event.data) {
            Ok(line) => self.take(line, failure, to, on),
            Err(_) if self.n_malformed < MAX_MALFORMED => {
                self.n_malformed += 1;
                Ok(())
            }
            Err(_) => Err(Error::Protocol {
                problem: format!("{MAX_MALFORMED} lines of its stream are not what the API says"),
            }),
        }
    }

    fn n_progress(&self) -> u64 {
        self.n_progress
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

impl Parser {
    fn take(
        &mut self,
        line: Line<'_>,
        failure: &Failure<'_>,
        to: &mut Assembler,
        on: &mut (dyn FnMut(Update) + Send),
    ) -> Result<(), Error> {
        if let Some(error) = failure.of_value(&json!({ "error": line.error })) {
            return Err(error);
        }
        if let Some(message) = line.message {
            self.take_message(message, to, on)?;
        }
        if line.done {
            self.done = true;
            self.n_progress += 1;
            to.finish = Some(match line.done_reason.as_deref() {
                Some("length") => Finish::Length,
                _ if self.n_calls > 0 => Finish::ToolCalls,
                _ => Finish::Stop,
            });
            let count = |count: Option<u64>| count.filter(|count| *count <= MAX_COUNT);
            if let (prompt @ Some(_), completion) | (prompt, completion @ Some(_)) =
                (count(line.prompt_eval_count), count(line.eval_count))
            {
                to.usage = Some(Usage {
                    prompt: prompt.unwrap_or_default(),
                    completion: completion.unwrap_or_default(),
                    ..Usage::default()
                });
            }
        }
        Ok(())
    }

    fn take_message(
        &mut self,
        message: Answered<'_>,
        to: &mut Assembler,
        on: &mut (dyn FnMut(Update) + Send),
    ) -> Result<(), Error> {
        let thinking = message.thinking.unwrap_or_default();
        let content = message.content.unwrap_or_default();
        let calls = message.tool_calls.unwrap_or_default();
        let is_progress = !thinking.is_empty() || !content.is_empty() || !calls.is_empty();
        self.n_progress += u64::from(is_progress);
        to.add_cut_thinking(&Halved::from(thinking), on)?;
        to.add_cut_text(&Halved::from(content), on)?;
        for call in calls {
            // Each comes whole; some versions give all of them the same index.
            let index = Some(self.n_calls);
            self.n_calls += 1;
            let arguments = call.function.arguments.map_or("{}", RawValue::get);
            to.add_call(
                Piece {
                    index,
                    id: call.id,
                    name: Some(call.function.name),
                    arguments: Halved::from(arguments.to_owned()),
                },
                on,
            );
        }
        Ok(())
    }
}

/// Returns the name of the first model that the server has.
fn first_model(tags: &Value) -> Option<String> {
    names(tags).into_iter().next()
}

/// Returns the names of all models that the server has.
fn names(tags: &Value) -> Vec<String> {
    let models = tags.get("models").and_then(Value::as_array);
    models
        .into_iter()
        .flatten()
        .filter_map(|model| listed::name(model.get("name").or_else(|| model.get("model"))))
        .collect()
}

fn probed(model: String, shown: &Value, wanted_window: u64) -> ProbeResult {
    let can = |what: &str| {
        let all = shown.get("capabilities").and_then(Value::as_array);
        all.is_some_and(|all| all.iter().any(|one| one.as_str() == Some(what)))
    };
    let (tools, reason) = if can("tools") {
        (
            ToolMode::Native,
            "the server says that its model can call tools",
        )
    } else {
        (
            ToolMode::Constrained,
            "the server does not say that its model can call tools",
        )
    };
    ProbeResult {
        model,
        context: Some(window(shown, wanted_window)),
        n_slots: None,
        n_busy: None,
        tools,
        reason: reason.to_owned(),
        server: Server::Only(Api::Ollama),
        images: can("vision"),
        tokens: ControlTokens::default(),
    }
}

/// Returns the window that requests set: as wanted, as the model's file says, or a usual one; never
/// more than the model has.
fn window(shown: &Value, wanted: u64) -> u64 {
    let info = shown.get("model_info").and_then(Value::as_object);
    let most = info
        .into_iter()
        .flatten()
        .find(|(key, _)| key.ends_with(".context_length"))
        .and_then(|(_, value)| listed::window(value));
    let parameters = shown.get("parameters").and_then(Value::as_str);
    let set = parameters.unwrap_or_default().lines().find_map(|line| {
        let (name, value) = line.trim().split_once(char::is_whitespace)?;
        let value: u64 = value.trim().parse().ok()?;
        listed::window(&Value::from(value)).filter(|_| name == "num_ctx")
    });
    let wanted = Some(wanted).filter(|wanted| *wanted > 0);
    let window = wanted.or(set).unwrap_or(USUAL_WINDOW);
    most.map_or(window, |most| window.min(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_as_set_and_never_more_than_the_model_has() {
        let shown = |most: u64, parameters: &str| json!({"model_info": {"general.architecture": "qwen3", "qwen3.context_length": most}, "parameters": parameters});
        for (shown, wanted, expected) in [
            (shown(40_960, ""), 0, 8192),
            (shown(4096, ""), 0, 4096),
            (
                shown(40_960, "stop \"x\"\nnum_ctx                        16384"),
                0,
                16_384,
            ),
            (shown(40_960, "num_ctx 16384"), 32_768, 32_768),
            (shown(40_960, "num_ctx many"), 100_000, 40_960),
            (json!({}), 0, 8192),
            (json!([1]), 2048, 2048),
        ] {
            assert_eq!(window(&shown, wanted), expected, "{shown}");
        }
    }

    #[test]
    fn what_a_model_can_do_is_as_the_server_says() {
        let of = |capabilities: Value| {
            let probed = probed("m".to_owned(), &json!({ "capabilities": capabilities }), 0);
            (probed.tools, probed.images)
        };
        assert_eq!(
            of(json!(["completion", "tools", "vision"])),
            (ToolMode::Native, true)
        );
        assert_eq!(of(json!(["completion"])), (ToolMode::Constrained, false));
        assert_eq!(of(json!("tools")), (ToolMode::Constrained, false));
        let tags = json!({"models": [{"name": ""}, {"name": "a:1b"}, {"name": "b"}]});
        assert_eq!(first_model(&tags).as_deref(), Some("a:1b"));
        assert_eq!(names(&tags), ["a:1b", "b"]);
        assert_eq!(first_model(&json!({})), None);
    }
}
