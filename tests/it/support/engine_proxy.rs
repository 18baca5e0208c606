//! A socket in front of the engine's: it notes each request, and a test can look or act before one
//! continues.

use std::io;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::Mutex;

/// One request, without the API's version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
}

impl Request {
    /// Returns the container that it names and what is asked of it.
    pub(crate) fn of_container(&self) -> Option<(&str, &str)> {
        let (id, what) = self.path.strip_prefix("/containers/")?.split_once('/')?;
        Some((id, what.split('?').next().unwrap_or_default()))
    }
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Pass,
    /// The engine never gets it, and says that it has failed.
    Fail,
    /// The same, in these words of JSON.
    Refuse(&'static str),
    /// The engine never gets it, and this JSON is its answer.
    Say(&'static str),
    /// Nobody ever answers.
    Hang,
}

pub(crate) struct EngineProxy {
    socket: PathBuf,
    seen: Arc<Mutex<Vec<Request>>>,
    /// Both ends of every connection so far.
    open: Arc<Mutex<Vec<UnixStream>>>,
}

impl EngineProxy {
    /// Listens at `socket`; `before` is called with each request before the engine gets it.
    pub(crate) fn start(
        socket: PathBuf,
        before: impl Fn(&Request) + Send + Sync + 'static,
    ) -> Self {
        Self::judging(socket, move |request| {
            before(request);
            Fate::Pass
        })
    }

    /// Listens at `socket`; `judge` decides what becomes of each request.
    pub(crate) fn judging(
        socket: PathBuf,
        judge: impl Fn(&Request) -> Fate + Send + Sync + 'static,
    ) -> Self {
        let engine = engine_socket();
        let listener = UnixListener::bind(&socket).expect("a free path");
        let (seen, open) = (
            Arc::new(Mutex::new(Vec::new())),
            Arc::new(Mutex::new(Vec::new())),
        );
        let judge = Arc::new(judge);
        std::thread::spawn({
            let (seen, open) = (Arc::clone(&seen), Arc::clone(&open));
            move || {
                for client in listener.incoming().flatten() {
                    let (seen, judge) = (Arc::clone(&seen), Arc::clone(&judge));
                    // No engine any more is as good as one that went away.
                    let Ok(upstream) = UnixStream::connect(&engine) else {
                        continue;
                    };
                    let ends = [client.try_clone(), upstream.try_clone()]
                        .into_iter()
                        .flatten();
                    open.lock()
                        .expect("no test panics while it holds this")
                        .extend(ends);
                    std::thread::spawn(move || {
                        let note = |request: Request| {
                            let fate = judge(&request);
                            seen.lock()
                                .expect("no test panics while it holds this")
                                .push(request);
                            fate
                        };
                        // Either end may go away at any time.
                        let _ = pass(&client, upstream, note);
                    });
                }
            }
        });
        Self { socket, seen, open }
    }

    /// Breaks every connection that there is, in the middle of whatever it is at.
    pub(crate) fn drop_all(&self) {
        for stream in self
            .open
            .lock()
            .expect("no test panics while it holds this")
            .drain(..)
        {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Takes the socket away: from now on nobody can connect.
    pub(crate) fn vanish(&self) {
        std::fs::remove_file(&self.socket).expect("it was there");
        self.drop_all();
    }

    /// Returns what `DOCKER_HOST` must be.
    pub(crate) fn address(&self) -> String {
        format!("unix://{}", self.socket.display())
    }

    pub(crate) fn seen(&self) -> Vec<Request> {
        self.seen
            .lock()
            .expect("no test panics while it holds this")
            .clone()
    }
}

/// Returns where the engine of these tests is.
pub(crate) fn engine_socket() -> PathBuf {
    let done = Command::new("docker")
        .args([
            "context",
            "inspect",
            "--format",
            "{{.Endpoints.docker.Host}}",
        ])
        .output();
    let host = String::from_utf8(done.expect("the `docker` command").stdout).expect("is text");
    let path = host
        .trim()
        .strip_prefix("unix://")
        .unwrap_or_else(|| panic!("this test needs an engine at a unix socket, not {host}"));
    Path::new(path).to_owned()
}

/// Passes one connection on, request by request, and all that is answered.
fn pass(
    client: &UnixStream,
    mut upstream: UnixStream,
    note: impl Fn(Request) -> Fate,
) -> io::Result<()> {
    std::thread::spawn({
        let (mut from, mut to) = (upstream.try_clone()?, client.try_clone()?);
        move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Write);
        }
    });
    let mut reader = BufReader::new(client);
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            if reader.read_until(b'\n', &mut head)? == 0 {
                return upstream.shutdown(Shutdown::Write);
            }
        }
        let text = String::from_utf8_lossy(&head).into_owned();
        let mut words = text.split(' ');
        let (method, path) = (
            words.next().unwrap_or_default(),
            words.next().unwrap_or_default(),
        );
        let path = path
            .strip_prefix("/v")
            .and_then(|rest| rest.find('/').map(|at| &rest[at..]))
            .unwrap_or(path);
        match note(Request {
            method: method.to_owned(),
            path: path.to_owned(),
        }) {
            Fate::Pass => {}
            Fate::Fail => {
                return answer(
                    client,
                    &upstream,
                    "500 Internal Server Error",
                    r#"{"message":"the disk is on fire"}"#,
                );
            }
            Fate::Refuse(body) => {
                return answer(client, &upstream, "500 Internal Server Error", body);
            }
            Fate::Say(body) => return answer(client, &upstream, "200 OK", body),
            Fate::Hang => loop {
                std::thread::park();
            },
        }
        upstream.write_all(&head)?;
        let header = |name: &str| {
            let of = |line: &str| {
                line.split_once(':')
                    .filter(|(found, _)| found.eq_ignore_ascii_case(name))
                    .map(|(_, value)| value.trim().to_owned())
            };
            text.lines().find_map(of)
        };
        if header("upgrade").is_some() {
            // From here on it is a stream of bytes.
            io::copy(&mut reader, &mut upstream)?;
            return upstream.shutdown(Shutdown::Write);
        }
        if header("transfer-encoding").is_some() {
            loop {
                let mut line = String::new();
                reader.read_line(&mut line)?;
                let size = u64::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
                upstream.write_all(line.as_bytes())?;
                // Two more: the end of the line behind it.
                io::copy(&mut (&mut reader).take(size + 2), &mut upstream)?;
                if size == 0 {
                    break;
                }
            }
        } else if let Some(size) = header("content-length").and_then(|size| size.parse().ok()) {
            io::copy(&mut (&mut reader).take(size), &mut upstream)?;
        }
    }
}

/// Answers in the engine's place, and ends the connection.
fn answer(
    mut client: &UnixStream,
    upstream: &UnixStream,
    status: &str,
    body: &str,
) -> io::Result<()> {
    let length = body.len();
    write!(
        client,
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )?;
    client.shutdown(Shutdown::Both)?;
    upstream.shutdown(Shutdown::Both)
}
