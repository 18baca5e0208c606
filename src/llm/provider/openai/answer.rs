use serde::Deserialize;
use serde_json::Value;
use serde_json::json;
use serde_json::value::RawValue;

use super::shapes;
use super::shapes::Words;
use crate::event::Usage;
use crate::llm::error::Error;
use crate::llm::provider::assemble::Assembler;
use crate::llm::provider::calls::Piece;
use crate::llm::provider::failure::Failure;
use crate::llm::provider::half::Halved;
use crate::llm::provider::half::mended;
use crate::llm::sse::Event;
use crate::llm::stream::Finish;
use crate::llm::stream::Timings;
use crate::llm::stream::Update;

/// Events that are no JSON are skipped; this many mean that the server speaks something else.
const MAX_MALFORMED: u32 = 50;

#[derive(Deserialize)]
struct Chunk<'a> {
    /// Missing where this is no chunk of an answer.
    #[serde(borrow, default, deserialize_with = "shapes::some_list")]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(default, deserialize_with = "shapes::maybe")]
    usage: Option<WireUsage>,
    #[serde(default, deserialize_with = "shapes::maybe")]
    timings: Option<WireTimings>,
    #[serde(default, deserialize_with = "shapes::maybe")]
    prompt_progress: Option<WireProgress>,
    #[serde(default, deserialize_with = "shapes::value")]
    error: Value,
}

impl Chunk<'_> {
    fn is_progress(&self) -> bool {
        let says = |choice: &Choice<'_>| {
            let is_said = |delta: &Option<Delta<'_>>| delta.as_ref().is_some_and(|delta| !delta.is_empty());
            is_said(&choice.delta) || is_said(&choice.message) || choice.finish_reason.is_some()
        };
        let counts = self.usage.is_some() || self.timings.is_some() || self.prompt_progress.is_some();
        counts || self.choices.iter().flatten().any(says)
    }
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(default, deserialize_with = "shapes::index")]
    index: Option<u64>,
    #[serde(borrow, default, deserialize_with = "shapes::maybe")]
    delta: Option<Delta<'a>>,
    /// Instead of `delta` where the answer is not streamed.
    #[serde(borrow, default, deserialize_with = "shapes::maybe")]
    message: Option<Delta<'a>>,
    #[serde(default, deserialize_with = "shapes::text")]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(default)]
    content: Option<Words>,
    /// Instead of `content` where the model declines.
    #[serde(default)]
    refusal: Option<Words>,
    #[serde(default)]
    reasoning_content: Option<Words>,
    /// The name that vLLM, Ollama and `OpenRouter` use.
    #[serde(default)]
    reasoning: Option<Words>,
    #[serde(borrow, default, deserialize_with = "shapes::list")]
    tool_calls: Vec<CallDelta<'a>>,
    /// The one call of an answer, as the API had it before there were several.
    #[serde(borrow, default, deserialize_with = "shapes::maybe")]
    function_call: Option<FunctionDelta<'a>>,
}

impl Delta<'_> {
    fn is_empty(&self) -> bool {
        let words = [&self.content, &self.refusal, &self.reasoning_content, &self.reasoning];
        words.into_iter().flatten().all(Words::is_empty) && self.tool_calls.is_empty() && self.function_call.is_none()
    }
}

#[derive(Deserialize)]
struct CallDelta<'a> {
    #[serde(default, deserialize_with = "shapes::index")]
    index: Option<u64>,
    #[serde(default, deserialize_with = "shapes::text")]
    id: Option<String>,
    #[serde(borrow, default, deserialize_with = "shapes::maybe")]
    function: Option<FunctionDelta<'a>>,
    /// What belongs into `function` and stands beside it at some servers.
    #[serde(default, deserialize_with = "shapes::text")]
    name: Option<String>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

impl CallDelta<'_> {
    fn piece(self) -> Piece {
        let function = self.function.unwrap_or(FunctionDelta { name: None, arguments: None });
        FunctionDelta { name: function.name.or(self.name), arguments: function.arguments.or(self.arguments) }.piece(self.index, self.id)
    }
}

#[derive(Deserialize)]
struct FunctionDelta<'a> {
    #[serde(default, deserialize_with = "shapes::text")]
    name: Option<String>,
    /// A string, or from some servers the object itself.
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

impl FunctionDelta<'_> {
    fn piece(self, index: Option<u64>, id: Option<String>) -> Piece {
        let arguments = self.arguments.map(RawValue::get).filter(|raw| *raw != "null").map_or_else(Halved::default, |raw| {
            // Never a text as it is written: its quotes and escapes are none of the call's.
            if raw.starts_with('"') { Halved::of_json(raw).unwrap_or_default() } else { raw.to_owned().into() }
        });
        Piece { index, id, name: self.name, arguments }
    }
}

/// Counts are read as any number, since servers write -1 for "unknown" and 12.0 for 12.
#[derive(Deserialize)]
struct WireUsage {
    #[serde(default, deserialize_with = "shapes::number")]
    prompt_tokens: Option<f64>,
    #[serde(default, deserialize_with = "shapes::number")]
    completion_tokens: Option<f64>,
    #[serde(default, deserialize_with = "shapes::maybe")]
    prompt_tokens_details: Option<WireDetails>,
    /// In US dollars, from `OpenRouter`.
    #[serde(default, deserialize_with = "shapes::number")]
    cost: Option<f64>,
}

#[derive(Deserialize)]
struct WireDetails {
    #[serde(default, deserialize_with = "shapes::number")]
    cached_tokens: Option<f64>,
}

#[derive(Deserialize)]
struct WireTimings {
    #[serde(default, deserialize_with = "shapes::number")]
    cache_n: Option<f64>,
    #[serde(default, deserialize_with = "shapes::number")]
    prompt_n: Option<f64>,
    #[serde(default, deserialize_with = "shapes::number")]
    predicted_n: Option<f64>,
    #[serde(default, deserialize_with = "shapes::number")]
    prompt_ms: Option<f64>,
    #[serde(default, deserialize_with = "shapes::number")]
    predicted_ms: Option<f64>,
}

#[derive(Deserialize)]
struct WireProgress {
    #[serde(default, deserialize_with = "shapes::number")]
    total: Option<f64>,
    #[serde(default, deserialize_with = "shapes::number")]
    processed: Option<f64>,
}

/// No window and no bill comes near this: a server that says more says nothing.
const MAX_COUNT: f64 = (1_u64 << 40) as f64;

/// A cast from floating point saturates: what is negative or not a number becomes 0, as does what cannot be meant.
fn count(number: Option<f64>) -> u64 {
    number.filter(|number| *number <= MAX_COUNT).unwrap_or_default() as u64
}

/// Reads the events of one answer.
#[derive(Debug, Default)]
pub(in crate::llm) struct Parser {
    n_malformed: u32,
    /// How many events brought something on: words, a piece of a call, how far the prompt is read, sums, a reason.
    pub(in crate::llm) n_progress: u64,
    pub(in crate::llm) done: bool,
}

impl Parser {
    /// Takes one event. After `[DONE]` nothing counts any more.
    pub(in crate::llm) fn event(
        &mut self,
        event: &Event,
        failure: &Failure<'_>,
        to: &mut Assembler,
        on: &mut (dyn FnMut(Update) + Send),
    ) -> Result<(), Error> {
        let data = event.data.trim();
        if self.done || data.is_empty() {
            return Ok(());
        }
        if data == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        if event.name == "error" {
            let value = serde_json::from_str::<Value>(&mended(data)).unwrap_or_else(|_| Value::from(data));
            let value = if value.get("error").is_some() { value } else { json!({ "error": value }) };
            return Err(failure.of_value(&value).unwrap_or_else(|| Error::Reported { message: "no explanation".to_owned() }));
        }
        let Ok(chunk) = serde_json::from_str::<Chunk<'_>>(data) else {
            self.n_malformed += 1;
            if self.n_malformed > MAX_MALFORMED {
                return Err(Error::Protocol { problem: format!("{MAX_MALFORMED} events of its stream are not what the API says") });
            }
            return Ok(());
        };
        self.n_progress += u64::from(chunk.is_progress());
        take(chunk, failure, to, on)
    }
}

/// Takes an answer that came as one JSON body.
pub(in crate::llm) fn whole(
    body: &[u8],
    failure: &Failure<'_>,
    to: &mut Assembler,
    on: &mut (dyn FnMut(Update) + Send),
) -> Result<(), Error> {
    let text = std::str::from_utf8(body).map_err(|_| failure_of(body, failure))?;
    let value: Value = serde_json::from_str(&mended(text)).map_err(|_| failure_of(body, failure))?;
    if let Some(error) = failure.of_value(&value) {
        return Err(error);
    }
    let chunk = serde_json::from_str::<Chunk<'_>>(text)
        .map_err(|error| Error::Protocol { problem: format!("its completion is not what the API says: {error}") })?;
    if chunk.choices.is_none() {
        return Err(Error::Protocol { problem: "its completion holds no choices".to_owned() });
    }
    take(chunk, failure, to, on)
}

fn failure_of(body: &[u8], failure: &Failure<'_>) -> Error {
    let is_html = failure.is_html || body.trim_ascii_start().starts_with(b"<");
    let what = if is_html { "a web page" } else { "something else" };
    Error::NotJson { endpoint: failure.endpoint.to_owned(), what: what.to_owned() }
}

fn take(chunk: Chunk<'_>, failure: &Failure<'_>, to: &mut Assembler, on: &mut (dyn FnMut(Update) + Send)) -> Result<(), Error> {
    if !chunk.error.is_null()
        && let Some(error) = failure.of_value(&json!({ "error": chunk.error }))
    {
        return Err(error);
    }
    if let Some(progress) = chunk.prompt_progress {
        let (done, total) = (count(progress.processed), count(progress.total));
        if total > 0 {
            on(Update::Prefill { done: done.min(total), total });
        }
    }
    // Some servers count along with every word: what is counted together with one ends nothing.
    let is_sum = chunk.usage.is_some() || chunk.timings.is_some();
    if let Some(usage) = chunk.usage {
        to.usage = Some(Usage {
            prompt: count(usage.prompt_tokens),
            cached: count(usage.prompt_tokens_details.and_then(|details| details.cached_tokens)),
            completion: count(usage.completion_tokens),
            cost_usd: usage.cost.filter(|cost| cost.is_finite() && *cost >= 0.0),
        });
    }
    if let Some(timings) = chunk.timings {
        to.timings = Some(Timings {
            cache_n: count(timings.cache_n),
            prompt_n: count(timings.prompt_n),
            predicted_n: count(timings.predicted_n),
            prompt_ms: timings.prompt_ms.unwrap_or_default(),
            predicted_ms: timings.predicted_ms.unwrap_or_default(),
        });
    }
    // Only the first of several alternatives; nobody asks for more.
    let Some(choice) = chunk.choices.into_iter().flatten().find(|choice| choice.index.unwrap_or(0) == 0) else {
        to.summed_up |= is_sum && !to.is_empty();
        return Ok(());
    };
    if let Some(delta) = choice.delta.or(choice.message) {
        to.summed_up = is_sum && delta.is_empty() && !to.is_empty();
        take_delta(delta, to, on)?;
    }
    if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
        to.finish = Some(match reason.as_str() {
            "length" => Finish::Length,
            "tool_calls" | "function_call" => Finish::ToolCalls,
            "content_filter" => Finish::ContentFilter,
            _ => Finish::Stop,
        });
    }
    Ok(())
}

fn take_delta(delta: Delta<'_>, to: &mut Assembler, on: &mut (dyn FnMut(Update) + Send)) -> Result<(), Error> {
    let content = delta.content.unwrap_or_default();
    let thinking = delta.reasoning_content.or(delta.reasoning).map(Words::together);
    for thinking in [thinking.unwrap_or_default(), content.thinking] {
        to.add_cut_thinking(&thinking, on)?;
    }
    for text in [content.text, delta.refusal.map(Words::together).unwrap_or_default()] {
        to.add_cut_text(&text, on)?;
    }
    // The pieces of an older server's one call have nothing else by which they could be told to belong together.
    let older = delta.function_call.map(|function| function.piece(Some(0), None));
    for piece in delta.tool_calls.into_iter().map(CallDelta::piece).chain(older).filter(|piece| !piece.is_empty()) {
        to.add_call(piece, on);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::ToolCall;
    use crate::llm::format::text::Tools;
    use crate::llm::provider::assemble::Reading;
    use crate::llm::stream::Reply;

    fn read(reading: Reading, chunks: &[Value]) -> (Result<Reply, Error>, Vec<Update>) {
        let (mut parser, mut assembler, mut updates) = (Parser::default(), Assembler::new(reading, &Tools::default()), Vec::new());
        let failure = Failure::default();
        for chunk in chunks {
            let data = chunk.as_str().map_or_else(|| chunk.to_string(), str::to_owned);
            if let Err(error) =
                parser.event(&Event { name: String::new(), data }, &failure, &mut assembler, &mut |update| updates.push(update))
            {
                return (Err(error), updates);
            }
        }
        let reply = assembler.finish(|_| false, &mut |update| updates.push(update));
        (reply, updates)
    }

    fn delta(delta: &Value) -> Value {
        json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
    }

    #[test]
    fn an_answer_with_everything_is_put_together() {
        let native = Reading::Native { with_calls: true };
        let (reply, updates) = read(
            native,
            &[
                json!({"choices": [], "prompt_progress": {"total": 10, "cache": 5, "processed": 7, "time_ms": 1}}),
                delta(&json!({"role": "assistant", "content": null})),
                delta(&json!({"reasoning_content": "hm"})),
                delta(&json!({"content": "Let me "})),
                json!("not json"),
                delta(&json!({"content": "see."})),
                delta(
                    &json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "bash", "arguments": ""}}]}),
                ),
                delta(&json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"a\""}}]})),
                delta(
                    &json!({"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}, {"index": 1, "id": "c2", "function": {"name": "grep", "arguments": {"b": 2}}}]}),
                ),
                json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
                json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 5}}, "timings": {"cache_n": 5, "prompt_n": 5, "predicted_n": 3, "prompt_ms": 2.5, "predicted_ms": 4.0, "other": 1}}),
                json!("[DONE]"),
                delta(&json!({"content": "after the end"})),
            ],
        );
        let call = |id: &str, name: &str, arguments: &str| ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() };
        let expected = Reply {
            text: "Let me see.".into(),
            thinking: "hm".into(),
            calls: vec![call("c1", "bash", "{\"a\":1}"), call("c2", "grep", "{\"b\":2}")],
            usage: Usage { prompt: 10, cached: 5, completion: 3, cost_usd: None },
            finish: Finish::ToolCalls,
            timings: Some(Timings { cache_n: 5, prompt_n: 5, predicted_n: 3, prompt_ms: 2.5, predicted_ms: 4.0 }),
            ..Reply::default()
        };
        assert_eq!(reply.expect("a reply"), expected);
        let expected = vec![
            Update::Prefill { done: 7, total: 10 },
            Update::Thinking("hm".into()),
            Update::Text("Let me ".into()),
            Update::Text("see.".into()),
            Update::CallStarted { name: "bash".into() },
            Update::CallStarted { name: "grep".into() },
        ];
        assert_eq!(updates, expected);
    }

    #[test]
    fn a_constrained_answer_becomes_text_or_a_call() {
        let json = Reading::Json { with_calls: true };
        let (reply, updates) =
            read(json, &[delta(&json!({"content": "<think>hm</think>{\"ans"})), delta(&json!({"content": "wer\": \"a\\nb\"}"}))]);
        let reply = reply.expect("a reply");
        assert_eq!((reply.text.as_str(), reply.thinking.as_str(), reply.raw.as_deref()), ("a\nb", "hm", Some("{\"answer\": \"a\\nb\"}")));
        assert_eq!(updates, vec![Update::Thinking("hm".into()), Update::Text("a\nb".into())]);

        let (reply, updates) = read(json, &[delta(&json!({"content": "{\"tool\": \"bash\", \"arguments\": {\"c\": 1}}"}))]);
        let reply = reply.expect("a reply");
        assert_eq!(
            (reply.calls[0].name.as_str(), reply.calls[0].arguments.as_str(), reply.finish),
            ("bash", "{\"c\": 1}", Finish::ToolCalls)
        );
        assert_eq!(updates, vec![Update::CallStarted { name: "bash".into() }]);

        let (reply, updates) = read(json, &[delta(&json!({"content": "```json\n{\"answer\": \"late\"}\n```"}))]);
        assert_eq!((reply.expect("a reply").text.as_str(), updates), ("late", vec![Update::Text("late".into())]));

        let (reply, _) =
            read(Reading::Json { with_calls: false }, &[delta(&json!({"content": "{\"tool\": \"bash\", \"arguments\": {}}"}))]);
        let reply = reply.expect("a reply");
        assert_eq!((reply.calls.len(), reply.fault.is_some()), (0, true));
    }

    #[test]
    fn calls_that_were_not_asked_for_are_no_calls() {
        let (reply, updates) = read(
            Reading::Native { with_calls: false },
            &[delta(&json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "bash", "arguments": "{}"}}]}))],
        );
        assert_eq!((reply.expect("a reply"), updates), (Reply::default(), vec![]));
    }

    #[test]
    fn an_error_within_the_stream_is_the_answer() {
        let (reply, _) = read(
            Reading::Schema,
            &[json!({"error": {"code": 400, "type": "exceed_context_size_error", "message": "x", "n_prompt_tokens": 9, "n_ctx": 8}})],
        );
        assert!(matches!(reply, Err(Error::ContextExceeded { prompt: Some(9), context: Some(8) })));
        let (reply, _) = read(Reading::Schema, &[json!({"error": "boom"})]);
        assert_eq!(reply.expect_err("an error").to_string(), "the model server reported an error: boom");
    }

    #[test]
    fn words_and_sums_of_odd_shapes_are_read() {
        let native = Reading::Native { with_calls: true };
        let choice = |index: &Value, text: &str| json!({"choices": [{"index": index, "delta": {"content": text}}]});
        let call = json!({"index": "0", "id": "c1", "function": {"name": "bash", "arguments": "{}"}});
        let usage = json!({"prompt_tokens": "10", "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": []}, "cost": "0.5"});
        let (reply, updates) = read(
            native,
            &[
                delta(&json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]})),
                delta(&json!({"content": [{"type": "text", "text": "a"}, "b", {"type": "image_url"}, 7]})),
                delta(&json!({"refusal": "No."})),
                choice(&json!("0"), "c"),
                choice(&json!(-1), "d"),
                choice(&json!("1"), "of another"),
                delta(&json!({"tool_calls": [call]})),
                json!({"choices": [], "usage": usage}),
            ],
        );
        let reply = reply.expect("a reply");
        assert_eq!((reply.text.as_str(), reply.thinking.as_str(), reply.calls.len()), ("abNo.cd", "hm", 1));
        assert_eq!(reply.usage, Usage { prompt: 10, cached: 0, completion: 3, cost_usd: Some(0.5) });
        assert_eq!(updates[0], Update::Thinking("hm".into()));
        for cost in [json!({"usd": 1}), json!("much"), json!("inf"), json!(true)] {
            let usage = json!({"prompt_tokens": 10, "completion_tokens": 3, "cost": cost});
            let (reply, _) = read(native, &[delta(&json!({"content": "a"})), json!({"choices": [], "usage": usage})]);
            assert_eq!(reply.expect("a reply").usage, Usage { prompt: 10, cached: 0, completion: 3, cost_usd: None }, "{cost}");
        }
    }

    #[test]
    fn counts_that_cannot_be_meant_are_not_known() {
        let sums = json!({"prompt_tokens": u64::MAX, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 1e300}});
        let (reply, _) =
            read(Reading::Native { with_calls: true }, &[delta(&json!({"content": "a"})), json!({"choices": [], "usage": sums})]);
        assert_eq!(reply.expect("a reply").usage, Usage { prompt: 0, cached: 0, completion: 3, cost_usd: None });
    }

    #[track_caller]
    fn calls(chunks: &[Value], expected: &[(&str, &str)]) {
        let (reply, _) = read(Reading::Native { with_calls: true }, chunks);
        let calls = reply.expect("a reply").calls;
        let calls: Vec<(&str, &str)> = calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str())).collect();
        assert_eq!(calls, expected);
    }

    #[test]
    fn calls_of_odd_shapes_are_read() {
        let function = |arguments: &Value| json!({"name": "bash", "arguments": arguments});
        let call = |arguments: &Value| json!({"index": 0, "id": "c1", "type": "function", "function": function(arguments)});
        let more = |arguments: &str| json!({"index": 0, "function": {"arguments": arguments}});
        let with = |call: &Value| delta(&json!({ "tool_calls": call }));
        let one = [("bash", "{\"a\":1}")];
        // One call instead of a list of them, whole and in pieces.
        calls(&[with(&call(&json!("{\"a\":1}")))], &one);
        calls(&[with(&call(&json!("{\"a\""))), with(&more(":1}"))], &one);
        // Arguments as they are, or not there yet.
        calls(&[with(&json!([call(&json!({"a": 1}))]))], &one);
        calls(&[with(&json!([call(&json!(null))])), with(&json!([more("{\"a\":1}")]))], &one);
        // Without the object around them.
        calls(&[with(&json!([{"index": 0, "id": "c1", "name": "bash", "arguments": {"a": 1}}]))], &one);
        // Ids that are numbers, and names that are none.
        calls(&[with(&json!([{"index": "0", "id": 7, "function": function(&json!("{\"a\":1}"))}, null, 7, "x"]))], &one);
        calls(
            &[
                with(&json!([call(&json!("{\"a\""))])),
                with(&json!([{"index": 0, "id": null, "function": {"name": null, "arguments": ":1}"}}])),
            ],
            &one,
        );
        // The call of older servers, which end with a reason of their own.
        let older = |function: &Value| delta(&json!({"role": "assistant", "content": null, "function_call": function}));
        let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "function_call"}]});
        calls(&[older(&function(&json!(""))), older(&json!({"arguments": "{\"a\""})), older(&json!({"arguments": ":1}"})), end], &one);
        calls(&[older(&function(&json!({"a": 1})))], &one);
        calls(&[older(&json!(null)), with(&json!(null)), with(&json!({})), with(&json!("none"))], &[]);
    }

    #[test]
    fn a_character_that_is_cut_in_two_is_put_together() {
        let raw = |delta: &str| Value::from(format!("{{\"choices\": [{{\"index\": 0, \"delta\": {delta}}}]}}"));
        let native = Reading::Native { with_calls: true };
        let more =
            |arguments: &str| raw(&format!("{{\"tool_calls\": [{{\"index\": 0, \"function\": {{\"arguments\": \"{arguments}\"}}}}]}}"));
        let begin = delta(&json!({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "bash", "arguments": "{\"a\": \""}}]}));
        calls(&[begin.clone(), more(r"x\ud83d"), more(r#"\ude00 y\"}"#)], &[("bash", "{\"a\": \"x\u{1f600} y\"}")]);
        calls(&[begin.clone(), more(r"\ude00 x\ud83d"), more(r#"y\"}"#)], &[("bash", "{\"a\": \"\u{fffd} x\u{fffd}y\"}")]);
        calls(&[begin, more(r"x\ud83d")], &[("bash", "{\"a\": \"x\u{fffd}")]);
        let (reply, updates) = read(
            native,
            &[
                raw(r#"{"reasoning_content": "hm \ud83d"}"#),
                raw(r#"{"reasoning_content": "\ude00"}"#),
                raw(r#"{"content": "a \ud83d"}"#),
                raw(r#"{"content": [{"type": "text", "text": "\ude00 b\ud83d"}, {"text": "c"}]}"#),
                raw(r#"{"content": "d \ud83d"}"#),
            ],
        );
        let reply = reply.expect("a reply");
        assert_eq!((reply.text.as_str(), reply.thinking.as_str()), ("a \u{1f600} b\u{fffd}cd \u{fffd}", "hm \u{1f600}"));
        let shown: String =
            updates.iter().filter_map(|update| if let Update::Text(text) = update { Some(text.as_str()) } else { None }).collect();
        assert_eq!(shown, reply.text);
        let (reply, _) = read(native, &[json!(r#"{"error": {"message": "no \ud83d"}}"#)]);
        assert_eq!(reply.expect_err("an error").to_string(), "the model server reported an error: no \u{fffd}");
        let mut whole_reply = Assembler::new(native, &Tools::default());
        let body = br#"{"choices": [{"message": {"content": "a \ud83d"}}]}"#;
        whole(body, &Failure::default(), &mut whole_reply, &mut |_| {}).expect("a completion");
        assert_eq!(whole_reply.finish(|_| false, &mut |_| {}).expect("a reply").text, "a \u{fffd}");
    }

    #[test]
    fn what_says_nothing_costs_nothing() {
        let native = Reading::Native { with_calls: true };
        let (reply, updates) = read(
            native,
            &[
                delta(&json!({"role": "assistant"})),
                json!({"choices": [{"index": 0, "delta": null, "finish_reason": false}]}),
                json!({"choices": {"index": 0, "delta": {"content": "a"}}}),
                json!({"choices": [null, {"delta": {"role": 7, "content": "b"}, "finish_reason": ""}], "usage": "none", "timings": []}),
                json!({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": "none"}}),
                json!({"choices": null, "usage": null, "prompt_progress": false}),
                json!({"choices": "none"}),
            ],
        );
        let reply = reply.expect("a reply");
        assert_eq!((reply.text.as_str(), reply.finish), ("ab", Finish::Stop));
        assert_eq!(reply.usage, Usage { prompt: 5, cached: 0, completion: 2, cost_usd: None });
        assert_eq!(updates, [Update::Text("a".into()), Update::Text("b".into())]);
    }

    #[test]
    fn text_is_bounded_and_so_is_nonsense() {
        let piece = delta(&json!({"content": "x".repeat(1 << 20)}));
        let (reply, _) = read(Reading::Native { with_calls: true }, &vec![piece; 5]);
        assert!(matches!(reply, Err(Error::TooLarge { .. })));
        let (reply, _) = read(Reading::Native { with_calls: true }, &vec![json!("nonsense"); 51]);
        assert!(matches!(reply, Err(Error::Protocol { .. })));
    }
}
