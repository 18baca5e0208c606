use std::io;

use serde_json::Value;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::Answer;
use super::Call;
use super::serve::respond;

/// Characters of one piece of a stream.
const WORD: usize = 24;

/// Answers without a stream.
pub(super) async fn whole(
    stream: &mut TcpStream,
    n: usize,
    answer: &Answer,
    (prompt, cached): (usize, usize),
) -> io::Result<bool> {
    let calls: Vec<Value> = answer
        .calls
        .iter()
        .enumerate()
        .map(|(at, call)| wire_call(n, at, call, &call.arguments))
        .collect();
    let mut message =
        json!({"role": "assistant", "content": answer.text, "reasoning_content": answer.thinking});
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    let finish = if calls.is_empty() {
        "stop"
    } else {
        "tool_calls"
    };
    let body = json!({
        "id": format!("c{n}"), "object": "chat.completion", "created": 1, "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage(prompt, cached), "timings": timings(prompt, cached),
    });
    respond(
        stream,
        200,
        "",
        "application/json",
        body.to_string().as_bytes(),
    )
    .await?;
    Ok(true)
}

fn wire_call(n: usize, at: usize, call: &Call, arguments: &str) -> Value {
    json!({"index": at, "id": format!("call_{n}_{at}"), "type": "function", "function": {"name": call.name, "arguments": arguments}})
}

fn usage(prompt: usize, cached: usize) -> Value {
    json!({"prompt_tokens": prompt, "completion_tokens": 8, "total_tokens": prompt + 8, "prompt_tokens_details": {"cached_tokens": cached}})
}

fn timings(prompt: usize, cached: usize) -> Value {
    json!({"cache_n": cached, "prompt_n": prompt - cached, "prompt_ms": 10.0, "predicted_n": 8, "predicted_ms": 80.0})
}

/// A stream in chunked encoding, as llama-server sends it: only a proper end is an end.
pub(super) struct Events<'a> {
    pub(super) stream: &'a mut TcpStream,
    /// Which completion it is.
    pub(super) n: usize,
}

impl Events<'_> {
    pub(super) async fn begin(&mut self) -> io::Result<()> {
        self.stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n").await
    }

    pub(super) async fn chunk(&mut self, text: &str) -> io::Result<()> {
        self.stream
            .write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
            .await
    }

    async fn event(&mut self, mut fields: Value) -> io::Result<()> {
        for (key, value) in [
            ("id", json!(format!("c{}", self.n))),
            ("object", json!("chat.completion.chunk")),
            ("created", json!(1)),
            ("model", json!("scripted")),
        ] {
            fields[key] = value;
        }
        self.chunk(&format!("data: {fields}\n\n")).await
    }

    pub(super) async fn delta(&mut self, delta: &Value) -> io::Result<()> {
        self.event(json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}))
            .await
    }

    pub(super) async fn answer(
        &mut self,
        answer: &Answer,
        counts: (usize, usize),
        progress: bool,
    ) -> io::Result<bool> {
        self.begin().await?;
        if progress {
            let (prompt, cached) = counts;
            self.event(json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": null}, "finish_reason": null}], "prompt_progress": {"total": prompt, "cache": cached, "processed": prompt, "time_ms": 10}})).await?;
        }
        if let Some(thinking) = &answer.thinking {
            self.delta(&json!({"reasoning_content": thinking})).await?;
        }
        if let Some(text) = &answer.text {
            let chars: Vec<char> = text.chars().collect();
            for piece in chars.chunks(WORD) {
                self.delta(&json!({"content": piece.iter().collect::<String>()}))
                    .await?;
            }
        }
        for (at, call) in answer.calls.iter().enumerate() {
            self.delta(&json!({"tool_calls": [wire_call(self.n, at, call, "")]}))
                .await?;
            let chars: Vec<char> = call.arguments.chars().collect();
            for piece in chars.chunks(WORD) {
                self.delta(&json!({"tool_calls": [{"index": at, "function": {"arguments": piece.iter().collect::<String>()}}]})).await?;
            }
        }
        self.finish(
            if answer.calls.is_empty() {
                "stop"
            } else {
                "tool_calls"
            },
            counts,
        )
        .await
    }

    pub(super) async fn finish(
        &mut self,
        reason: &str,
        (prompt, cached): (usize, usize),
    ) -> io::Result<bool> {
        self.event(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}))
            .await?;
        self.event(json!({"choices": [], "usage": usage(prompt, cached), "timings": timings(prompt, cached)})).await?;
        self.end(true).await
    }

    pub(super) async fn end(&mut self, done: bool) -> io::Result<bool> {
        if done {
            self.chunk("data: [DONE]\n\n").await?;
        }
        self.stream.write_all(b"0\r\n\r\n").await?;
        Ok(true)
    }
}
