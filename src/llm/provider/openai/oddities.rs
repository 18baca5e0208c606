//! Tests of answers in shapes that the API does not define.

use serde_json::Value;
use serde_json::json;

use super::answer::tests::delta;
use super::answer::tests::read;
use super::answer::whole;
use crate::error::Error;
use crate::format::text::Tools;
use crate::provider::assemble::Assembler;
use crate::provider::assemble::Reading;
use crate::provider::failure::Failure;
use crate::stream::Finish;
use crate::stream::Update;
use podbay_event::Usage;

#[test]
fn text_and_usage_in_odd_shapes_are_parsed() {
    let native = Reading::Native { with_calls: true };
    let choice = |index: &Value, text: &str| json!({"choices": [{"index": index, "delta": {"content": text}}]});
    let call = json!({"index": "0", "id": "c1", "function": {"name": "bash", "arguments": "{}"}});
    let usage = json!({"prompt_tokens": "10", "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": []}, "cost": "0.5"});
    let (reply, updates) = read(
        native,
        &[
            delta(
                &json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}),
            ),
            delta(
                &json!({"content": [{"type": "text", "text": "a"}, "b", {"type": "image_url"}, 7]}),
            ),
            delta(&json!({"refusal": "No."})),
            choice(&json!("0"), "c"),
            choice(&json!(-1), "d"),
            choice(&json!("1"), "of another"),
            delta(&json!({"tool_calls": [call]})),
            json!({"choices": [], "usage": usage}),
        ],
    );
    let reply = reply.expect("a reply");
    assert_eq!(
        (
            reply.text.as_str(),
            reply.thinking.as_str(),
            reply.calls.len()
        ),
        ("abNo.cd", "hm", 1)
    );
    assert_eq!(
        reply.usage,
        Usage {
            prompt: 10,
            cached: 0,
            completion: 3,
            cost_usd: Some(0.5)
        }
    );
    assert_eq!(updates[0], Update::Thinking("hm".into()));
    for cost in [json!({"usd": 1}), json!("much"), json!("inf"), json!(true)] {
        let usage = json!({"prompt_tokens": 10, "completion_tokens": 3, "cost": cost});
        let (reply, _) = read(
            native,
            &[
                delta(&json!({"content": "a"})),
                json!({"choices": [], "usage": usage}),
            ],
        );
        assert_eq!(
            reply.expect("a reply").usage,
            Usage {
                prompt: 10,
                cached: 0,
                completion: 3,
                cost_usd: None
            },
            "{cost}"
        );
    }
}

#[test]
fn implausible_counts_are_ignored() {
    let sums = json!({"prompt_tokens": u64::MAX, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 1e300}});
    let (reply, _) = read(
        Reading::Native { with_calls: true },
        &[
            delta(&json!({"content": "a"})),
            json!({"choices": [], "usage": sums}),
        ],
    );
    assert_eq!(
        reply.expect("a reply").usage,
        Usage {
            prompt: 0,
            cached: 0,
            completion: 3,
            cost_usd: None
        }
    );
}

#[track_caller]
fn calls(chunks: &[Value], expected: &[(&str, &str)]) {
    let (reply, _) = read(Reading::Native { with_calls: true }, chunks);
    let calls = reply.expect("a reply").calls;
    let calls: Vec<(&str, &str)> = calls
        .iter()
        .map(|call| (call.name.as_str(), call.arguments.as_str()))
        .collect();
    assert_eq!(calls, expected);
}

#[test]
fn calls_in_odd_shapes_are_parsed() {
    let function = |arguments: &Value| json!({"name": "bash", "arguments": arguments});
    let call = |arguments: &Value| json!({"index": 0, "id": "c1", "type": "function", "function": function(arguments)});
    let more = |arguments: &str| json!({"index": 0, "function": {"arguments": arguments}});
    let with = |call: &Value| delta(&json!({ "tool_calls": call }));
    let one = [("bash", "{\"a\":1}")];
    // One call instead of a list of them, whole and in pieces.
    calls(&[with(&call(&json!("{\"a\":1}")))], &one);
    calls(&[with(&call(&json!("{\"a\""))), with(&more(":1}"))], &one);
    // Arguments as an object, or missing so far.
    calls(&[with(&json!([call(&json!({"a": 1}))]))], &one);
    calls(
        &[
            with(&json!([call(&json!(null))])),
            with(&json!([more("{\"a\":1}")])),
        ],
        &one,
    );
    // Without the object around them.
    calls(
        &[with(
            &json!([{"index": 0, "id": "c1", "name": "bash", "arguments": {"a": 1}}]),
        )],
        &one,
    );
    // Ids that are numbers, and invalid names.
    calls(
        &[with(
            &json!([{"index": "0", "id": 7, "function": function(&json!("{\"a\":1}"))}, null, 7, "x"]),
        )],
        &one,
    );
    calls(
        &[
            with(&json!([call(&json!("{\"a\""))])),
            with(
                &json!([{"index": 0, "id": null, "function": {"name": null, "arguments": ":1}"}}]),
            ),
        ],
        &one,
    );
    // The call of older servers, with its own finish reason.
    let older = |function: &Value| {
        delta(&json!({"role": "assistant", "content": null, "function_call": function}))
    };
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "function_call"}]});
    calls(
        &[
            older(&function(&json!(""))),
            older(&json!({"arguments": "{\"a\""})),
            older(&json!({"arguments": ":1}"})),
            end,
        ],
        &one,
    );
    calls(&[older(&function(&json!({"a": 1})))], &one);
    calls(
        &[
            older(&json!(null)),
            with(&json!(null)),
            with(&json!({})),
            with(&json!("none")),
        ],
        &[],
    );
}

#[test]
fn a_call_sent_twice_is_one() {
    let begun = |arguments: &str| {
        delta(
            &json!({ "tool_calls": [{"index": 0, "id": "c1", "function": {"name": "bash", "arguments": arguments}}] }),
        )
    };
    let more = |arguments: &str| {
        delta(&json!({ "tool_calls": [{"index": 0, "function": {"arguments": arguments}}] }))
    };
    let other = |arguments: &str| {
        delta(&json!({ "tool_calls": [{"index": 1, "function": {"arguments": arguments}}] }))
    };
    let one = [("bash", "{\"a\":1,\"b\":\"x\"}")];
    calls(
        &[
            begun(""),
            more("{\"a\":1,"),
            more("\"b\":\"x\"}"),
            more("{\"a\": 1, \"b\": \"x\"}"),
        ],
        &one,
    );
    calls(&[begun("{}{\"a\":1,\"b\":\"x\"}")], &one);
    calls(
        &[
            begun("{\"a\":1"),
            more("{\"a\":1,\"b\""),
            more("{\"a\":1,\"b\":\"x\"}"),
        ],
        &one,
    );
    calls(&[begun("{\"a\":1,"), more("\"b\":\"x\"")], &one);
    calls(
        &[
            begun("{\"a\":1,\"b\":\"x\"}"),
            begun("{\"b\":\"x\",\"a\":1}"),
        ],
        &one,
    );
    calls(
        &[
            begun("{\"a\":1,\"b\":\"x\"}"),
            other("{\"a\":1, \"b\":\"x\"}"),
        ],
        &one,
    );
    // Different ones are two.
    calls(
        &[begun("{\"a\":1}"), more("{\"a\":2}")],
        &[("bash", "{\"a\":1}"), ("bash", "{\"a\":2}")],
    );
}

#[test]
fn a_character_split_into_surrogates_is_joined() {
    let raw = |delta: &str| {
        Value::from(format!(
            "{{\"choices\": [{{\"index\": 0, \"delta\": {delta}}}]}}"
        ))
    };
    let native = Reading::Native { with_calls: true };
    let more = |arguments: &str| {
        raw(&format!(
            "{{\"tool_calls\": [{{\"index\": 0, \"function\": {{\"arguments\": \"{arguments}\"}}}}]}}"
        ))
    };
    let begin = delta(
        &json!({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "bash", "arguments": "{\"a\": \""}}]}),
    );
    calls(
        &[begin.clone(), more(r"x\ud83d"), more(r#"\ude00 y\"}"#)],
        &[("bash", "{\"a\": \"x\u{1f600} y\"}")],
    );
    calls(
        &[begin.clone(), more(r"\ude00 x\ud83d"), more(r#"y\"}"#)],
        &[("bash", "{\"a\": \"\u{fffd} x\u{fffd}y\"}")],
    );
    calls(
        &[begin, more(r"x\ud83d")],
        &[("bash", "{\"a\": \"x\u{fffd}")],
    );
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
    assert_eq!(
        (reply.text.as_str(), reply.thinking.as_str()),
        ("a \u{1f600} b\u{fffd}cd \u{fffd}", "hm \u{1f600}")
    );
    let shown: String = updates
        .iter()
        .filter_map(|update| {
            if let Update::Text(text) = update {
                Some(text.as_str())
            } else {
                None
            }
        })
        .collect();
    assert_eq!(shown, reply.text);
    let (reply, _) = read(native, &[json!(r#"{"error": {"message": "no \ud83d"}}"#)]);
    assert_eq!(
        reply.expect_err("an error").to_string(),
        "the model server reported an error: no \u{fffd}"
    );
    let mut whole_reply = Assembler::new(native, &Tools::default());
    let body = br#"{"choices": [{"message": {"content": "a \ud83d"}}]}"#;
    whole(body, &Failure::default(), &mut whole_reply, &mut |_| {}).expect("a completion");
    assert_eq!(
        whole_reply
            .finish(|_| false, &mut |_| {})
            .expect("a reply")
            .text,
        "a \u{fffd}"
    );
}

#[test]
fn empty_fields_are_harmless() {
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
    assert_eq!(
        reply.usage,
        Usage {
            prompt: 5,
            cached: 0,
            completion: 2,
            cost_usd: None
        }
    );
    assert_eq!(
        updates,
        [Update::Text("a".into()), Update::Text("b".into())]
    );
}

#[test]
fn tags_end_no_thought_if_the_server_separates_reasoning() {
    let text = "Add this line:\n</think>\nto the template.";
    for reading in [
        Reading::Native { with_calls: true },
        Reading::Text { with_calls: true },
        Reading::Json { with_calls: true },
    ] {
        let (reply, _) = read(
            reading,
            &[
                delta(&json!({"reasoning_content": "I know it."})),
                delta(&json!({ "content": text })),
            ],
        );
        let reply = reply.expect("a reply");
        assert_eq!(
            (reply.text.as_str(), reply.thinking.as_str()),
            (text, "I know it."),
            "{reading:?}"
        );
        // Otherwise the tag is the end of one.
        let (reply, _) = read(
            reading,
            &[
                delta(&json!({"reasoning_content": ""})),
                delta(&json!({ "content": text })),
            ],
        );
        assert_eq!(
            reply.expect("a reply").text,
            "to the template.",
            "{reading:?}"
        );
    }
}

#[test]
fn a_whole_message_at_the_end_of_a_stream_is_not_repeated() {
    let native = Reading::Native { with_calls: true };
    let call = json!({"index": 0, "id": "c1", "function": {"name": "bash", "arguments": "{}"}});
    let last = |message: Value| json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]});
    let whole = json!({"role": "assistant", "content": "One, two."});
    let (reply, _) = read(
        native,
        &[
            delta(&json!({"content": "One, "})),
            delta(&json!({"content": "two."})),
            last(whole.clone()),
        ],
    );
    assert_eq!(reply.expect("a reply").text, "One, two.");
    let with_call = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let (reply, _) = read(
        native,
        &[
            delta(&json!({"tool_calls": [call]})),
            last(with_call.clone()),
        ],
    );
    assert_eq!(
        reply
            .expect("a reply")
            .calls
            .iter()
            .map(|call| call.arguments.as_str())
            .collect::<Vec<_>>(),
        ["{}"]
    );
    // New text counts.
    for (message, pieces) in [
        (whole, vec![]),
        (
            json!({"content": "two."}),
            vec![delta(&json!({"content": "One, "}))],
        ),
    ] {
        let (reply, _) = read(native, &[pieces, vec![last(message)]].concat());
        assert_eq!(reply.expect("a reply").text, "One, two.");
    }
    let (reply, _) = read(
        native,
        &[
            delta(&json!({"content": "I look."})),
            last(json!({"content": "I look.", "tool_calls": [call]})),
        ],
    );
    assert_eq!(reply.expect("a reply").calls.len(), 1);
}

#[test]
fn an_invalid_number_loses_no_text() {
    let native = Reading::Native { with_calls: true };
    let raw = |delta: &str, beside: &str| {
        Value::from(format!(
            "{{\"choices\": [{{\"index\": 0, \"delta\": {delta}, {beside}}}]}}"
        ))
    };
    let sums = r#"{"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": Infinity}, "timings": {"prompt_n": 5, "prompt_ms": NaN, "predicted_ms": -Infinity}}"#;
    let (reply, updates) = read(
        native,
        &[
            raw(
                r#"{"content": "a is NaN, "}"#,
                r#""logprobs": {"content": [{"token": "a", "logprob": -Infinity, "top": [NaN]}]}"#,
            ),
            raw(
                r#"{"content": "b"}"#,
                r#""finish_reason": null, "score": nan"#,
            ),
            raw(
                r#"{"tool_calls": [{"index": 0, "function": {"name": "bash", "arguments": "{\"a\": \"NaN\"}"}}]}"#,
                r#""logprob": .5"#,
            ),
            Value::from(sums),
        ],
    );
    let reply = reply.expect("a reply");
    assert_eq!(
        (reply.text.as_str(), reply.calls[0].arguments.as_str()),
        ("a is NaN, b", r#"{"a": "NaN"}"#)
    );
    assert_eq!(
        reply.usage,
        Usage {
            prompt: 5,
            cached: 0,
            completion: 0,
            cost_usd: None
        }
    );
    assert_eq!(
        reply
            .timings
            .map(|timings| (timings.prompt_n, timings.prompt_ms.to_bits())),
        Some((5, 0))
    );
    assert_eq!(
        updates[..2],
        [Update::Text("a is NaN, ".into()), Update::Text("b".into())]
    );
    // Nor without streaming.
    let mut whole_reply = Assembler::new(native, &Tools::default());
    let body = br#"{"choices": [{"message": {"content": "NaN"}, "logprobs": NaN}], "usage": {"cost": Infinity}}"#;
    whole(body, &Failure::default(), &mut whole_reply, &mut |_| {}).expect("a completion");
    let reply = whole_reply.finish(|_| false, &mut |_| {}).expect("a reply");
    assert_eq!((reply.text.as_str(), reply.usage.cost_usd), ("NaN", None));
    // Other invalid chunks are still counted.
    let (reply, _) = read(native, &vec![Value::from("{\"a\": NaN"); 51]);
    assert!(matches!(reply, Err(Error::Protocol { .. })));
}
