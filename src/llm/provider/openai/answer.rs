use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::json;

use super::chunk::CallDelta;
use super::chunk::Chunk;
use super::chunk::Delta;
use super::chunk::count;
use super::numbers;
use super::progress::Progress;
use super::shapes::Words;
use crate::error::Error;
use crate::provider::api::EventParser;
use crate::provider::assemble::Assembler;
use crate::provider::failure::Failure;
use crate::provider::half::mended;
use crate::sse::Event;
use crate::stream::Finish;
use crate::stream::Timings;
use crate::stream::Update;
use podbay_event::Usage;

/// Events with invalid JSON are skipped; this many mean that it is another protocol.
const MAX_MALFORMED: u32 = 50;

/// Maximum plausible cost of an answer, in US dollars; a larger one is ignored, so that sums stay
/// finite.
const MAX_COST: f64 = 1e6;

/// Finish reasons that mean a failure: the server gave up, and the answer is truncated. The last
/// one is `DeepSeek`'s.
const GIVEN_UP: [&str; 3] = ["error", "abort", "insufficient_system_resource"];

/// Parses the events of one answer.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    n_malformed: u32,
    /// How many events made progress: text, a piece of a call, prompt reading, usage, a finish
    /// reason; not repetitions.
    n_progress: u64,
    progress: Progress,
    done: bool,
}

impl EventParser for Parser {
    fn event(
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
            let value =
                serde_json::from_str::<Value>(&mended(data)).unwrap_or_else(|_| Value::from(data));
            let value = if value.get("error").is_some() {
                value
            } else {
                json!({ "error": value })
            };
            return Err(failure.of_value(&value).unwrap_or_else(|| Error::Reported {
                message: "no explanation".to_owned(),
            }));
        }
        let mended;
        let chunk = if let Ok(chunk) = serde_json::from_str::<Chunk<'_>>(data) {
            Some(chunk)
        } else {
            // An invalid number in an optional field must not lose text.
            mended = numbers::without_odd_ones(data);
            mended
                .as_deref()
                .and_then(|data| serde_json::from_str(data).ok())
        };
        let Some(chunk) = chunk else {
            self.n_malformed += 1;
            if self.n_malformed > MAX_MALFORMED {
                return Err(Error::Protocol {
                    problem: format!(
                        "{MAX_MALFORMED} events of its stream are not what the API says"
                    ),
                });
            }
            return Ok(());
        };
        self.n_progress += u64::from(self.progress.is_made_by(&chunk));
        take(chunk, failure, to, on)
    }

    fn n_progress(&self) -> u64 {
        self.n_progress
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

/// Processes an answer that came as one JSON body.
pub(crate) fn whole(
    body: &[u8],
    failure: &Failure<'_>,
    to: &mut Assembler,
    on: &mut (dyn FnMut(Update) + Send),
) -> Result<(), Error> {
    let text = std::str::from_utf8(body).map_err(|_| failure.not_json(body))?;
    let is_json = serde_json::from_str::<IgnoredAny>(text).is_ok();
    let with_null = if is_json {
        None
    } else {
        numbers::without_odd_ones(text)
    };
    let text = with_null.as_deref().unwrap_or(text);
    let value: Value = serde_json::from_str(&mended(text)).map_err(|_| failure.not_json(body))?;
    if let Some(error) = failure.of_value(&value) {
        return Err(error);
    }
    let chunk = serde_json::from_str::<Chunk<'_>>(text).map_err(|error| Error::Protocol {
        problem: format!("its completion is not what the API says: {error}"),
    })?;
    if chunk.choices.is_none() {
        return Err(Error::Protocol {
            problem: "its completion holds no choices".to_owned(),
        });
    }
    take(chunk, failure, to, on)
}

fn take(
    chunk: Chunk<'_>,
    failure: &Failure<'_>,
    to: &mut Assembler,
    on: &mut (dyn FnMut(Update) + Send),
) -> Result<(), Error> {
    if !chunk.error.is_null()
        && let Some(error) = failure.of_value(&json!({ "error": chunk.error }))
    {
        return Err(error);
    }
    if let Some(progress) = chunk.prompt_progress {
        let (done, total) = (count(progress.processed), count(progress.total));
        if total > 0 {
            on(Update::Prefill {
                done: done.min(total),
                total,
            });
        }
    }
    // Some servers send usage with every text: such usage ends nothing.
    let is_sum = chunk.usage.is_some() || chunk.timings.is_some();
    if let Some(usage) = chunk.usage {
        to.usage = Some(Usage {
            prompt: count(usage.prompt_tokens),
            cached: count(
                usage
                    .prompt_tokens_details
                    .and_then(|details| details.cached_tokens),
            ),
            completion: count(usage.completion_tokens),
            cost_usd: usage.cost.filter(|cost| (0.0..=MAX_COST).contains(cost)),
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
    // Only the first of several alternatives; more are never requested.
    let Some(choice) = chunk
        .choices
        .into_iter()
        .flatten()
        .find(|choice| choice.index.unwrap_or(0) == 0)
    else {
        to.summed_up |= is_sum && !to.is_empty();
        return Ok(());
    };
    if !choice.error.is_null()
        && let Some(error) = failure.of_value(&json!({ "error": choice.error }))
    {
        return Err(error);
    }
    if let Some(reason) = choice
        .finish_reason
        .as_deref()
        .filter(|reason| GIVEN_UP.contains(reason))
    {
        return Err(Error::Reported {
            message: format!("its answer ended with the reason `{reason}`"),
        });
    }
    // Some end a stream with the whole message, which was received already.
    let is_last = choice.finish_reason.is_some();
    let message = choice
        .message
        .filter(|message| !(is_last && message.repeats(to)));
    if let Some(delta) = choice.delta.or(message) {
        to.summed_up = is_sum && delta.is_empty() && !to.is_empty();
        take_delta(delta, to, on)?;
    }
    if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
        to.finish = Some(match reason.as_str() {
            // The second is Mistral's, for the end of the window; the others are passed on by
            // intermediate servers.
            "length" | "model_length" | "max_tokens" | "MAX_TOKENS" => Finish::Length,
            "tool_calls" | "function_call" => Finish::ToolCalls,
            "content_filter" => Finish::ContentFilter,
            _ => Finish::Stop,
        });
    }
    Ok(())
}

fn take_delta(
    delta: Delta<'_>,
    to: &mut Assembler,
    on: &mut (dyn FnMut(Update) + Send),
) -> Result<(), Error> {
    let content = delta.content.unwrap_or_default();
    let thinking = delta
        .reasoning_content
        .or(delta.reasoning)
        .map(Words::together);
    for thinking in [thinking.unwrap_or_default(), content.thinking] {
        to.add_cut_thinking(&thinking, on)?;
    }
    for text in [
        content.text,
        delta.refusal.map(Words::together).unwrap_or_default(),
    ] {
        to.add_cut_text(&text, on)?;
    }
    // The pieces of an older server's only call have nothing else that identifies them as one.
    let older = delta
        .function_call
        .map(|function| function.piece(Some(0), None));
    for piece in delta
        .tool_calls
        .into_iter()
        .map(CallDelta::piece)
        .chain(older)
        .filter(|piece| !piece.is_empty())
    {
        to.add_call(piece, on);
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::format::text::Tools;
    use crate::provider::assemble::Reading;
    use crate::stream::ReadyCall;
    use crate::stream::Reply;
    use podbay_event::ToolCall;

    pub(in super::super) fn read(
        reading: Reading,
        chunks: &[Value],
    ) -> (Result<Reply, Error>, Vec<Update>) {
        let (mut parser, mut assembler, mut updates) = (
            Parser::default(),
            Assembler::new(reading, &Tools::default()),
            Vec::new(),
        );
        let failure = Failure::default();
        for chunk in chunks {
            let data = chunk
                .as_str()
                .map_or_else(|| chunk.to_string(), str::to_owned);
            if let Err(error) = parser.event(
                &Event {
                    name: String::new(),
                    data,
                },
                &failure,
                &mut assembler,
                &mut |update| updates.push(update),
            ) {
                return (Err(error), updates);
            }
        }
        let reply = assembler.finish(|_| false, &mut |update| updates.push(update));
        (reply, updates)
    }

    pub(in super::super) fn delta(delta: &Value) -> Value {
        json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
    }

    #[test]
    fn an_answer_with_every_part_is_assembled() {
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
        let call = |id: &str, name: &str, arguments: &str| ToolCall {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
        };
        let expected = Reply {
            text: "Let me see.".into(),
            thinking: "hm".into(),
            calls: vec![
                call("c1", "bash", "{\"a\":1}"),
                call("c2", "grep", "{\"b\":2}"),
            ],
            usage: Usage {
                prompt: 10,
                cached: 5,
                completion: 3,
                cost_usd: None,
            },
            finish: Finish::ToolCalls,
            timings: Some(Timings {
                cache_n: 5,
                prompt_n: 5,
                predicted_n: 3,
                prompt_ms: 2.5,
                predicted_ms: 4.0,
            }),
            ..Reply::default()
        };
        assert_eq!(reply.expect("a reply"), expected);
        let ready = |id: &str, name: &str, arguments: &str| {
            Update::CallReady(ReadyCall::new(call(id, name, arguments), &Arc::default()))
        };
        let expected = vec![
            Update::Prefill { done: 7, total: 10 },
            Update::Thinking("hm".into()),
            Update::Text("Let me ".into()),
            Update::Text("see.".into()),
            Update::CallStarted {
                name: "bash".into(),
            },
            ready("c1", "bash", "{\"a\":1}"),
            Update::CallStarted {
                name: "grep".into(),
            },
            ready("c2", "grep", "{\"b\":2}"),
        ];
        assert_eq!(updates, expected);
    }

    #[test]
    fn a_constrained_answer_becomes_text_or_a_call() {
        let json = Reading::Json { with_calls: true };
        let (reply, updates) = read(
            json,
            &[
                delta(&json!({"content": "<think>hm</think>{\"ans"})),
                delta(&json!({"content": "wer\": \"a\\nb\"}"})),
            ],
        );
        let reply = reply.expect("a reply");
        assert_eq!(
            (
                reply.text.as_str(),
                reply.thinking.as_str(),
                reply.raw.as_deref()
            ),
            ("a\nb", "hm", Some("{\"answer\": \"a\\nb\"}"))
        );
        assert_eq!(
            updates,
            vec![Update::Thinking("hm".into()), Update::Text("a\nb".into())]
        );

        let (reply, updates) = read(
            json,
            &[delta(
                &json!({"content": "{\"tool\": \"bash\", \"arguments\": {\"c\": 1}}"}),
            )],
        );
        let reply = reply.expect("a reply");
        assert_eq!(
            (
                reply.calls[0].name.as_str(),
                reply.calls[0].arguments.as_str(),
                reply.finish
            ),
            ("bash", "{\"c\": 1}", Finish::ToolCalls)
        );
        assert_eq!(
            updates,
            vec![Update::CallStarted {
                name: "bash".into()
            }]
        );

        let (reply, updates) = read(
            json,
            &[delta(
                &json!({"content": "```json\n{\"answer\": \"late\"}\n```"}),
            )],
        );
        assert_eq!(
            (reply.expect("a reply").text.as_str(), updates),
            ("late", vec![Update::Text("late".into())])
        );

        let (reply, _) = read(
            Reading::Json { with_calls: false },
            &[delta(
                &json!({"content": "{\"tool\": \"bash\", \"arguments\": {}}"}),
            )],
        );
        let reply = reply.expect("a reply");
        assert_eq!((reply.calls.len(), reply.fault.is_some()), (0, true));
    }

    #[test]
    fn unrequested_calls_are_dropped() {
        let (reply, updates) = read(
            Reading::Native { with_calls: false },
            &[delta(
                &json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "bash", "arguments": "{}"}}]}),
            )],
        );
        assert_eq!(
            (reply.expect("a reply"), updates),
            (Reply::default(), vec![])
        );
    }

    #[test]
    fn an_error_within_the_stream_fails_the_answer() {
        let (reply, _) = read(
            Reading::Schema,
            &[
                json!({"error": {"code": 400, "type": "exceed_context_size_error", "message": "x", "n_prompt_tokens": 9, "n_ctx": 8}}),
            ],
        );
        assert!(matches!(
            reply,
            Err(Error::ContextExceeded {
                prompt: Some(9),
                context: Some(8)
            })
        ));
        let (reply, _) = read(Reading::Schema, &[json!({"error": "boom"})]);
        assert_eq!(
            reply.expect_err("an error").to_string(),
            "the model server reported an error: boom"
        );
    }

    #[test]
    fn an_implausible_cost_is_ignored() {
        for (cost, expected) in [
            (json!(0.5), Some(0.5)),
            (json!(1e308), None),
            (json!(-1), None),
            (json!("x"), None),
        ] {
            let sums = json!({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "cost": cost}});
            let (reply, _) = read(
                Reading::Native { with_calls: true },
                &[delta(&json!({"content": "x"})), sums],
            );
            assert_eq!(reply.expect("a reply").usage.cost_usd, expected, "{cost}");
        }
    }

    #[test]
    fn text_and_malformed_events_are_bounded() {
        let piece = delta(&json!({"content": "x".repeat(1 << 20)}));
        let (reply, _) = read(Reading::Native { with_calls: true }, &vec![piece; 5]);
        assert!(matches!(reply, Err(Error::TooLarge { .. })));
        let (reply, _) = read(
            Reading::Native { with_calls: true },
            &vec![json!("nonsense"); 51],
        );
        assert!(matches!(reply, Err(Error::Protocol { .. })));
    }
}
