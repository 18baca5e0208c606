//! An MCP server over HTTP, as it is found in the wild: a session, answers as JSON and as events,
//! and a key where the test wants one.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::io::Write;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use serde_json::Value;
use serde_json::json;

/// What came to a server.
#[derive(Clone, Debug)]
pub(crate) struct HttpRequest {
    pub(crate) method: String,
    pub(crate) target: String,
    /// By their names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
}

/// What it answers.
pub(crate) struct HttpAnswer {
    pub(crate) status: &'static str,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
}

type Script = dyn Fn(&HttpRequest) -> Option<HttpAnswer> + Send + Sync;

/// The server. What its script has no answer for it answers as an honest one.
#[derive(Clone)]
pub(crate) struct HttpServer {
    script: Arc<Script>,
    requests: Arc<Mutex<Vec<HttpRequest>>>,
}

impl HttpServer {
    pub(crate) fn new(
        script: impl Fn(&HttpRequest) -> Option<HttpAnswer> + Send + Sync + 'static,
    ) -> Self {
        Self {
            script: Arc::new(script),
            requests: Arc::default(),
        }
    }

    /// Returns the requests so far.
    pub(crate) fn requests(&self) -> Vec<HttpRequest> {
        let requests = self.requests.lock();
        requests.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the methods of the messages so far.
    pub(crate) fn messages(&self) -> Vec<String> {
        let requests = self.requests().into_iter();
        requests
            .filter_map(|request| request.body["method"].as_str().map(str::to_owned))
            .collect()
    }

    /// Answers on one connection until the client closes it.
    pub(crate) fn serve(&self, stream: impl Read + Write) -> std::io::Result<()> {
        let mut stream = BufReader::new(stream);
        while let Some(request) = read(&mut stream)? {
            let answer = (self.script)(&request).unwrap_or_else(|| honest(&request));
            let requests = self.requests.lock();
            requests
                .unwrap_or_else(PoisonError::into_inner)
                .push(request);
            let mut head = format!("HTTP/1.1 {}\r\n", answer.status);
            for (name, value) in &answer.headers {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
            head.push_str(&format!("Content-Length: {}\r\n\r\n", answer.body.len()));
            stream.get_mut().write_all(head.as_bytes())?;
            stream.get_mut().write_all(&answer.body)?;
            stream.get_mut().flush()?;
        }
        Ok(())
    }
}

fn read(stream: &mut impl BufRead) -> std::io::Result<Option<HttpRequest>> {
    let mut first = String::new();
    if stream.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    let mut words = first.split_whitespace().map(str::to_owned);
    let (method, target) = (words.next(), words.next());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let length = headers
        .get("content-length")
        .and_then(|text| text.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body)?;
    Ok(Some(HttpRequest {
        method: method.unwrap_or_default(),
        target: target.unwrap_or_default(),
        headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    }))
}

/// Answers with one message.
pub(crate) fn json_answer(message: &Value) -> HttpAnswer {
    HttpAnswer {
        status: "200 OK",
        headers: vec![
            ("Content-Type", "application/json; charset=utf-8".to_owned()),
            ("Mcp-Session-Id", "s1".to_owned()),
        ],
        body: message.to_string().into_bytes(),
    }
}

/// Answers with events.
pub(crate) fn event_answer(messages: &[Value]) -> HttpAnswer {
    let event = |message: &Value| format!("event: message\r\ndata: {message}\r\n\r\n");
    HttpAnswer {
        status: "200 OK",
        headers: vec![("Content-Type", "text/event-stream".to_owned())],
        body: messages.iter().map(event).collect::<String>().into_bytes(),
    }
}

/// Answers with a status and words.
pub(crate) fn status_answer(status: &'static str, words: &str) -> HttpAnswer {
    HttpAnswer {
        status,
        headers: vec![("Content-Type", "text/plain".to_owned())],
        body: words.as_bytes().to_vec(),
    }
}

pub(crate) fn result(request: &HttpRequest, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": request.body["id"], "result": result})
}

/// What a server does that has one tool, which repeats its text.
pub(crate) fn honest(request: &HttpRequest) -> HttpAnswer {
    let method = request.body["method"].as_str().unwrap_or_default();
    if request.method != "POST" {
        return status_answer("200 OK", "");
    }
    if method != "initialize"
        && request
            .headers
            .get("mcp-session-id")
            .is_none_or(|id| id != "s1")
    {
        return status_answer("400 Bad Request", "no session");
    }
    match method {
        "initialize" => json_answer(&result(
            request,
            &json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "web", "version": "1"}}),
        )),
        "tools/list" => json_answer(&result(
            request,
            &json!({"tools": [{"name": "echo", "description": "Repeats.", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}]}),
        )),
        "tools/call" => {
            let text = request.body["params"]["arguments"]["text"].as_str();
            let content = json!({"content": [{"type": "text", "text": format!("it heard {}", text.unwrap_or("nothing"))}]});
            let note = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "working"}});
            event_answer(&[note, result(request, &content)])
        }
        _ => status_answer("202 Accepted", ""),
    }
}
