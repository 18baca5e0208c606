//! MCP servers without an engine: a server in this process, in memory, as friendly or as hostile as
//! a test wants it. `docker/mcp.rs` has real ones in a sandbox.

mod asking;
mod calls;
mod example;
mod hostile;
mod http;
mod resources;

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

use podbay::mcp::ByteStream;
use podbay::mcp::Caller;
use podbay::mcp::Later;
use podbay::mcp::Opener;
use podbay::mcp::ServerEnd;
use podbay::mcp::ServerOptions;
use podbay::mcp::ServerState;
use podbay::mcp::Servers;
use podbay::mcp::Source;
use podbay::mcp::ToolDefinition;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;
use tokio::io::AsyncBufReadExt;
use tokio::io::AsyncWriteExt;
use tokio::io::BufReader;
use tokio_util::sync::CancellationToken;

/// What a server does with one message.
pub(crate) enum Act {
    /// Writes these bytes.
    Write(Vec<u8>),
    Wait(Duration),
    /// Ends, with these words on its standard error.
    End(&'static str),
}

/// What a server does: given which start of it this is, from 0, and the message.
type Script = dyn Fn(usize, &Value) -> Vec<Act> + Send + Sync;

/// Starts servers in this process.
pub(crate) struct Fake {
    script: Arc<Script>,
    pub(crate) n_starts: AtomicUsize,
    /// All messages that any of them got.
    pub(crate) got: Arc<Mutex<Vec<Value>>>,
    can_ask: bool,
}

impl Fake {
    pub(crate) fn new(
        script: impl Fn(usize, &Value) -> Vec<Act> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            script: Arc::new(script),
            n_starts: AtomicUsize::new(0),
            got: Arc::default(),
            can_ask: false,
        })
    }

    /// Servers of a session with a user.
    pub(crate) fn with_user(
        script: impl Fn(usize, &Value) -> Vec<Act> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let fake = Arc::into_inner(Self::new(script)).expect("it was just made");
        Arc::new(Self {
            can_ask: true,
            ..fake
        })
    }

    /// Returns the methods that it was sent, in order.
    pub(crate) fn methods(&self) -> Vec<String> {
        let got = self.got.lock().expect("no test panics while it holds this");
        got.iter()
            .filter_map(|message| message["method"].as_str().map(str::to_owned))
            .collect()
    }
}

impl Opener for Fake {
    fn open<'a>(
        &'a self,
        _server: &'a ServerOptions,
        _cancel: &'a CancellationToken,
    ) -> Later<'a, Result<ByteStream, String>> {
        let n_start = self.n_starts.fetch_add(1, Ordering::Relaxed);
        let (script, got) = (Arc::clone(&self.script), Arc::clone(&self.got));
        let (reader, mut out) = tokio::io::duplex(64 << 10);
        let (writer, input) = tokio::io::duplex(64 << 10);
        let end = ServerEnd::default();
        let its_end = end.clone();
        tokio::spawn(async move {
            let mut lines = BufReader::new(input).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let message: Value = serde_json::from_str(&line).expect("the client sends JSON");
                got.lock()
                    .expect("no test panics while it holds this")
                    .push(message.clone());
                for act in script(n_start, &message) {
                    match act {
                        Act::Write(bytes) => {
                            if out.write_all(&bytes).await.is_err() {
                                return;
                            }
                        }
                        Act::Wait(time) => tokio::time::sleep(time).await,
                        Act::End(stderr) => {
                            its_end.keep_stderr(stderr.as_bytes());
                            its_end.note("exit code 1");
                            return;
                        }
                    }
                }
            }
        });
        Box::pin(std::future::ready(Ok(ByteStream {
            reader: Box::new(reader),
            writer: Box::new(writer),
            end,
            root: "file:///workspace".to_owned(),
        })))
    }

    fn can_ask(&self) -> bool {
        self.can_ask
    }
}

/// A caller without a user.
pub(crate) fn alone(on_progress: &mut (dyn FnMut(&str) + Send)) -> Caller<'_> {
    Caller {
        on_progress,
        user: None,
    }
}

/// Writes one message.
pub(crate) fn line(message: &Value) -> Vec<Act> {
    vec![Act::Write(format!("{message}\n").into_bytes())]
}

/// Answers a request.
pub(crate) fn answer(request: &Value, result: &Value) -> Vec<Act> {
    line(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
}

/// Answers a call with a text.
pub(crate) fn says(request: &Value, text: &str) -> Vec<Act> {
    answer(
        request,
        &json!({"content": [{"type": "text", "text": text}]}),
    )
}

/// A tool as servers list it.
pub(crate) fn tool(name: &str, description: &str) -> Value {
    let schema =
        json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    json!({"name": name, "description": description, "inputSchema": schema})
}

/// What a server does that has these tools; each repeats its text.
pub(crate) fn honest(request: &Value, tools: &[Value]) -> Vec<Act> {
    match request["method"].as_str() {
        Some("initialize") => answer(
            request,
            &json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "fake", "version": "1"}}),
        ),
        Some("tools/list") => answer(request, &json!({"tools": tools})),
        Some("tools/call") => {
            let text = request["params"]["arguments"]["text"].as_str();
            says(request, text.unwrap_or("nothing"))
        }
        _ => Vec::new(),
    }
}

/// A server that has one tool, and does with calls what the test says.
pub(crate) fn on_call(
    call: impl Fn(usize, &Value) -> Vec<Act> + Send + Sync + 'static,
) -> Arc<Fake> {
    Fake::new(move |n_start, request| match request["method"].as_str() {
        Some("tools/call") => call(n_start, request),
        _ => honest(request, &[tool("echo", "Repeats.")]),
    })
}

/// The servers of a session: one, `x`.
pub(crate) struct Session {
    pub(crate) servers: Arc<Servers>,
    pub(crate) tools: Vec<ToolDefinition>,
    /// Whether the settings run the server on the host; here it runs in this process.
    pub(crate) is_on_host: bool,
    /// Whether a key of the user goes to it.
    pub(crate) has_keys: bool,
}

impl Session {
    pub(crate) async fn begin(fake: &Arc<Fake>, timeout: u64) -> Self {
        let options = ServerOptions {
            command: "fake".to_owned(),
            timeout: podbay::event::Seconds::new(timeout),
            ..ServerOptions::default()
        };
        Self::begin_with(fake, options).await
    }

    pub(crate) async fn begin_with(fake: &Arc<Fake>, options: ServerOptions) -> Self {
        let (is_on_host, has_keys) = (options.is_on_host(), options.has_keys());
        let named = [("x".to_owned(), options, Source::Settings)];
        let opener: Arc<dyn Opener> = Arc::clone(fake) as Arc<dyn Opener>;
        let servers = Arc::new(Servers::new(&named, Duration::from_secs(60), opener));
        let tools = servers.begin(&CancellationToken::new()).await;
        servers.offer(tools.clone());
        Self {
            servers,
            tools,
            is_on_host,
            has_keys,
        }
    }

    /// Calls its tool `echo`.
    pub(crate) async fn call(&self, text: &str) -> (bool, String) {
        self.call_until(text, &CancellationToken::new()).await
    }

    pub(crate) async fn call_until(
        &self,
        text: &str,
        cancel: &CancellationToken,
    ) -> (bool, String) {
        let arguments = Map::from_iter([("text".to_owned(), text.into())]);
        let called = self
            .servers
            .call_tool("mcp__x__echo", arguments, &mut alone(&mut |_| {}), cancel)
            .await;
        (called.is_ok, called.text)
    }

    pub(crate) fn state(&self) -> ServerState {
        self.servers.status()[0].state.clone()
    }
}
