use std::io;
use std::time::Instant;

use serde_json::Value;
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::Answer;
use super::Turn;
use super::faults::faults;
use super::running::Seen;
use super::running::Shared;
use super::running::Times;
use super::stream::Events;
use super::stream::whole;

/// How its template begins every prompt.
pub(crate) const TEMPLATE: &str = "<|begin|>";

/// Serves one connection, request after request.
pub(super) async fn serve(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    let mut buffer = Vec::new();
    loop {
        let head_end = loop {
            if let Some(at) = find(&buffer, b"\r\n\r\n") {
                break at + 4;
            }
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        };
        let head = String::from_utf8_lossy(&buffer[..head_end]).into_owned();
        let length: usize = header(&head, "content-length")
            .and_then(|value| value.parse().ok())
            .unwrap_or(0);
        while buffer.len() < head_end + length {
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        }
        let request: Vec<u8> = buffer.drain(..head_end + length).collect();
        let body = request[head_end..].to_vec();
        let n_before = lock(shared, |seen| {
            seen.raw.push(request);
            seen.raw.len() - 1
        });
        if n_before < shared.script.n_loading {
            respond(
                &mut stream,
                503,
                "",
                "application/json",
                super::LOADING.as_bytes(),
            )
            .await?;
            continue;
        }
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        if let Some(key) = &shared.script.key
            && header(&head, "authorization").as_deref() != Some(&format!("Bearer {key}"))
        {
            respond(
                &mut stream,
                401,
                "",
                "application/json",
                br#"{"error":{"code":401,"message":"Invalid API Key","type":"authentication_error"}}"#,
            )
            .await?;
            continue;
        }
        let keep = if path.ends_with("/chat/completions") {
            let received = Instant::now();
            let keep = complete(&mut stream, shared, &body).await?;
            lock(shared, |seen| {
                seen.times.push(Times {
                    received,
                    answered: Instant::now(),
                });
            });
            keep
        } else {
            small(&mut stream, shared, &path, &body).await?
        };
        if !keep {
            return stream.shutdown().await;
        }
    }
}

fn lock<T>(shared: &Shared, with: impl FnOnce(&mut Seen) -> T) -> T {
    with(
        &mut shared
            .seen
            .lock()
            .expect("no test panics while it holds this lock"),
    )
}

fn header(head: &str, name: &str) -> Option<String> {
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim().to_owned())
}

pub(super) async fn respond(
    stream: &mut TcpStream,
    code: u16,
    headers: &str,
    content_type: &str,
    body: &[u8],
) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {code} Scripted\r\nContent-Type: {content_type}\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body).await
}

/// Answers everything but completions.
async fn small(
    stream: &mut TcpStream,
    shared: &Shared,
    path: &str,
    body: &[u8],
) -> io::Result<bool> {
    let script = &shared.script;
    let request: Value = serde_json::from_slice(body).unwrap_or_default();
    if let Some((_, code, answer, n_times)) = script.pages.iter().find(|(page, ..)| page == path)
        && lock(shared, |seen| seen.n_asked(path)) <= *n_times
    {
        respond(
            stream,
            *code,
            "",
            "application/json",
            answer.to_string().as_bytes(),
        )
        .await?;
        return Ok(true);
    }
    let (code, answer) = match path {
        "/props" if script.silent_props => std::future::pending().await,
        "/props" if script.other_server => {
            (404, json!({"error": {"message": "not found", "code": 404}}))
        }
        "/props" => {
            let caps = json!({
                "supports_tools": script.tools, "supports_tool_calls": script.tools, "supports_parallel_tool_calls": script.tools,
                "supports_object_arguments": script.tools, "supports_system_role": true, "supports_string_content": true,
            });
            let props = json!({
                "default_generation_settings": {"n_ctx": script.context, "params": {}}, "total_slots": script.n_slots, "model_alias": "scripted",
                "model_path": "/m/scripted.gguf", "chat_template": script.template, "chat_template_caps": caps,
                "modalities": {"vision": script.vision}, "build_info": "b0-scripted", "is_sleeping": script.is_asleep,
            });
            (200, props)
        }
        "/v1/models" => (
            200,
            json!({"object": "list", "data": [{"id": "scripted", "object": "model", "meta": {"n_ctx_train": script.context}}]}),
        ),
        "/tokenize" => {
            let n = request["content"].as_str().map_or(0, str::len) / script.density;
            (200, json!({"tokens": (0..n.max(1)).collect::<Vec<_>>()}))
        }
        "/apply-template" if !script.has_template => (
            404,
            json!({"error": {"message": "File Not Found", "code": 404}}),
        ),
        "/apply-template" => {
            let tools = request
                .get("tools")
                .map(Value::to_string)
                .unwrap_or_default();
            (
                200,
                json!({"prompt": format!("{TEMPLATE}{tools}{}", request["messages"])}),
            )
        }
        "/slots" if script.silent_slots => std::future::pending().await,
        "/slots" => match script.n_busy {
            Some(n_busy) => (
                200,
                (0..script.n_slots)
                    .map(|id| json!({"id": id, "is_processing": id < n_busy}))
                    .collect(),
            ),
            None => (
                501,
                json!({"error": {"message": "This server does not support slots endpoint.", "type": "not_supported_error", "code": 501}}),
            ),
        },
        "/health" => (200, json!({"status": "ok"})),
        _ => (
            404,
            json!({"error": {"message": "File Not Found", "type": "not_found_error", "code": 404}}),
        ),
    };
    respond(
        stream,
        code,
        "",
        "application/json",
        answer.to_string().as_bytes(),
    )
    .await?;
    Ok(true)
}

/// Plays the next turn; returns whether the connection continues.
async fn complete(stream: &mut TcpStream, shared: &Shared, body: &[u8]) -> io::Result<bool> {
    let request: Value = serde_json::from_slice(body).unwrap_or_default();
    let streamed = request["stream"] == json!(true);
    let (n, turn, usage) = lock(shared, |seen| {
        seen.bodies.push(body.to_vec());
        seen.faults.extend(faults(&request));
        let prompt = body.len() / shared.script.density;
        let cached = std::mem::replace(&mut seen.cached, prompt).min(prompt);
        let n = seen.n_turns;
        if let Some((code, body)) = seen.second.take().filter(|_| !streamed) {
            return (
                n,
                Turn::Status {
                    code,
                    headers: String::new(),
                    content_type: "application/json",
                    body: body.to_string(),
                },
                (prompt, cached),
            );
        }
        if let Some(summary) = shared
            .script
            .summary
            .as_ref()
            .filter(|_| asks_to_sum_up(body))
        {
            let answer = Answer {
                text: Some(summary.clone()),
                ..Answer::default()
            };
            return (n, Turn::Answer(answer), (prompt, cached));
        }
        if let Some(stall) = shared.script.summary_stall.filter(|_| asks_to_sum_up(body)) {
            return (n, Turn::Stall(stall), (prompt, cached));
        }
        seen.n_turns += 1;
        let done = || {
            Turn::Answer(Answer {
                text: Some("DONE".to_owned()),
                ..Answer::default()
            })
        };
        let turn = shared.script.turns.get(n).cloned().unwrap_or_else(done);
        if let Turn::Silence { code, body } = &turn {
            seen.second = Some((*code, body.clone()));
        }
        (n, turn, (prompt, cached))
    });
    let mut out = Events { stream, n };
    match turn {
        Turn::Status {
            code,
            headers,
            content_type,
            body,
        } => {
            respond(out.stream, code, &headers, content_type, body.as_bytes()).await?;
            Ok(true)
        }
        Turn::Raw { bytes, hold } => {
            out.stream.write_all(&bytes).await?;
            tokio::time::sleep(hold).await;
            Ok(false)
        }
        Turn::Halves {
            first,
            go_on,
            second,
        } => {
            out.stream.write_all(first.as_bytes()).await?;
            go_on.cancelled().await;
            out.stream.write_all(second.as_bytes()).await?;
            Ok(false)
        }
        Turn::Stall(duration) => {
            out.begin().await?;
            tokio::time::sleep(duration).await;
            out.end(true).await
        }
        Turn::Drip {
            text,
            n_chars,
            every,
        } => {
            out.begin().await?;
            let chars: Vec<char> = text.chars().collect();
            for piece in chars.chunks(n_chars.max(1)) {
                out.delta(&json!({"content": piece.iter().collect::<String>()}))
                    .await?;
                tokio::time::sleep(every).await;
            }
            out.finish("stop", usage).await
        }
        Turn::DieMidAnswer { text } => {
            out.begin().await?;
            out.delta(&json!({"content": text})).await?;
            Ok(false)
        }
        Turn::SseError(error) if streamed => {
            out.begin().await?;
            out.chunk(&format!(
                "event: error\ndata: {}\n\n",
                json!({"error": error})
            ))
            .await?;
            out.end(false).await
        }
        Turn::SseError(error) => {
            respond(
                out.stream,
                500,
                "",
                "application/json",
                json!({"error": error}).to_string().as_bytes(),
            )
            .await?;
            Ok(true)
        }
        Turn::Silence { .. } => {
            out.begin().await?;
            out.end(false).await
        }
        Turn::Answer(answer) => {
            let answer = fit(answer, &request, shared.script.tools);
            if streamed {
                out.answer(&answer, usage, request["return_progress"] == json!(true))
                    .await
            } else {
                whole(out.stream, n, &answer, usage).await
            }
        }
    }
}

/// Returns whether a request asks for a summary of the conversation, rather than for its next
/// message.
pub(crate) fn asks_to_sum_up(body: &[u8]) -> bool {
    find(body, b"will be replaced by a summary that you write now").is_some()
}

/// Writes an answer as the request wants it: as JSON text where it has a schema, without calls
/// where the template has none.
fn fit(answer: Answer, request: &Value, tools: bool) -> Answer {
    let says = |text: String| Answer {
        text: Some(text),
        thinking: answer.thinking.clone(),
        calls: Vec::new(),
    };
    if request.get("response_format").is_some() && !tools {
        return match answer.calls.first() {
            Some(call) => says(format!(
                "{{\"tool\": {}, \"arguments\": {}}}",
                json!(call.name),
                call.arguments
            )),
            None => says(format!(
                "{{\"answer\": {}}}",
                json!(answer.text.clone().unwrap_or_default())
            )),
        };
    }
    match answer.calls.first() {
        // llama-server drops the tools without a word, and the model can only talk.
        Some(call) if !tools => says(format!("I would call {}.", call.name)),
        _ => answer,
    }
}

pub(super) fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}
