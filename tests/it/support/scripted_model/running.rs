use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;
use std::time::Instant;

use serde_json::Value;
use tokio::net::TcpListener;

use super::ScriptedModel;
use super::serve::find;
use super::serve::serve;

/// A listening server; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

#[expect(dead_code, reason = "later tests ask for what those of today do not")]
impl Running {
    /// Listens on a free port of 127.0.0.1.
    pub(super) fn start(script: ScriptedModel) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("a socket option");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        let shared = Arc::new(Shared {
            script,
            seen: Mutex::default(),
        });
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let thread = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .expect("a runtime");
                runtime.block_on(async move {
                    let listener = TcpListener::from_std(listener).expect("a listening socket");
                    let serve = async {
                        while let Ok((stream, _)) = listener.accept().await {
                            // The end of an answer must not wait until the beginning was
                            // acknowledged.
                            stream.set_nodelay(true).expect("a socket option");
                            let shared = Arc::clone(&shared);
                            // A client that hangs up is no concern of the script's.
                            tokio::spawn(async move { drop(serve(stream, &shared).await) });
                        }
                    };
                    tokio::select! {
                        () = serve => {}
                        _ = stopped => {}
                    }
                });
            }
        });
        Self {
            address,
            shared,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Returns `http://127.0.0.1:PORT/v1`.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the bodies of the requests for a completion, in order.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.seen(|seen| {
            seen.bodies
                .iter()
                .map(|body| serde_json::from_slice(body).unwrap_or(Value::Null))
                .collect()
        })
    }

    /// Returns the same bodies, byte for byte.
    pub(crate) fn raw_bodies(&self) -> Vec<Vec<u8>> {
        self.seen(|seen| seen.bodies.clone())
    }

    /// Returns every request as it came, headers included, also those for `/props`.
    pub(crate) fn raw_requests(&self) -> Vec<Vec<u8>> {
        self.seen(|seen| seen.raw.clone())
    }

    /// Returns what was sent to one of its pages, such as `/tokenize`, in order.
    pub(crate) fn sent_to(&self, page: &str) -> Vec<Value> {
        let begins = format!("POST {page} ");
        let body = |raw: &[u8]| {
            find(raw, b"\r\n\r\n")
                .and_then(|at| serde_json::from_slice(&raw[at + 4..]).ok())
                .unwrap_or_default()
        };
        self.seen(|seen| {
            seen.raw
                .iter()
                .filter(|raw| raw.starts_with(begins.as_bytes()))
                .map(|raw| body(raw))
                .collect()
        })
    }

    /// Returns how long each request for a completion but the first came after the last byte of the
    /// answer before it.
    pub(crate) fn pauses(&self) -> Vec<Duration> {
        self.seen(|seen| {
            seen.times
                .windows(2)
                .map(|pair| pair[1].received.saturating_duration_since(pair[0].answered))
                .collect()
        })
    }

    /// Returns what was wrong with the conversations, and forgets it: a test that expects faults
    /// takes them.
    pub(crate) fn take_faults(&self) -> Vec<String> {
        self.seen(|seen| std::mem::take(&mut seen.faults))
    }

    /// Returns the requests' bytes up to the end of their messages.
    pub(crate) fn heads(&self) -> Vec<Vec<u8>> {
        self.raw_bodies()
            .iter()
            .map(|body| head(body).to_vec())
            .collect()
    }

    /// Panics unless each request's tools and messages begin with the bytes of the one before.
    #[track_caller]
    pub(crate) fn assert_append_only(&self) {
        let heads = self.heads();
        for (n, pair) in heads.windows(2).enumerate() {
            assert!(
                pair[1].starts_with(&pair[0]),
                "request {} does not begin with request {n}:\n{}\n{}",
                n + 1,
                String::from_utf8_lossy(&pair[0]),
                String::from_utf8_lossy(&pair[1])
            );
        }
    }

    fn seen<T>(&self, with: impl FnOnce(&mut Seen) -> T) -> T {
        with(
            &mut self
                .shared
                .seen
                .lock()
                .expect("no test panics while it holds this lock"),
        )
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
        let faults = self.take_faults();
        assert!(
            faults.is_empty() || std::thread::panicking(),
            "the conversation was at fault: {faults:#?}"
        );
    }
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) script: ScriptedModel,
    pub(super) seen: Mutex<Seen>,
}

/// When one request for a completion had come whole, and when its answer had gone.
#[derive(Debug)]
pub(super) struct Times {
    pub(super) received: Instant,
    pub(super) answered: Instant,
}

#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) times: Vec<Times>,
    pub(super) raw: Vec<Vec<u8>>,
    pub(super) bodies: Vec<Vec<u8>>,
    pub(super) faults: Vec<String>,
    pub(super) n_turns: usize,
    /// Tokens of the last prompt: what the cache holds.
    pub(super) cached: usize,
    /// How a silent turn answers when it is asked again.
    pub(super) second: Option<(u16, Value)>,
}

impl Seen {
    /// Returns how often a page was asked for.
    pub(super) fn n_asked(&self, page: &str) -> usize {
        let is_it = |raw: &[u8]| raw.split(|byte| *byte == b' ').nth(1) == Some(page.as_bytes());
        self.raw.iter().filter(|raw| is_it(raw)).count()
    }
}

/// Returns the body up to the end of its messages.
fn head(body: &[u8]) -> &[u8] {
    let (mut depth, mut in_string, mut escaped) = (0_u32, false, false);
    let from = find(body, b"\"messages\":[").map_or(0, |at| at + b"\"messages\":".len());
    for (at, &byte) in body.iter().enumerate().skip(from) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => {
                depth -= 1;
                if depth == 0 {
                    return &body[..at];
                }
            }
            _ => {}
        }
    }
    body
}
