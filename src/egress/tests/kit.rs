//! A gateway with made-up names and addresses, and clients of it.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use futures::future::BoxFuture;
use podbay_wire::EgressAttempt;
use podbay_wire::EgressEffect;
use podbay_wire::EgressHostFrame;
use podbay_wire::EgressName;
use podbay_wire::EgressOpening;
use podbay_wire::EgressPurpose;
use podbay_wire::EgressRule;
use podbay_wire::EgressUpstream;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::UnixListener;
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::sync::oneshot;
use tokio::sync::watch;

use crate::Dial;
use crate::Gateway;
use crate::HostStreams;
use crate::Limits;
use crate::Resolve;
use crate::ResolveError;
use crate::RuleSet;
use crate::host_name::HostName;
use crate::limits::ATTEMPTS;
use crate::rule::Rules;

/// A public address.
pub(super) const WEB: &str = "93.184.216.34";

/// What a test waits for at most; none waits so long unless something is wrong.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Answers one list of addresses after the other; the last one stays. A name without a list is
/// never answered.
#[derive(Default)]
pub(super) struct StubNames {
    answers: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    asked: Mutex<Vec<String>>,
}

impl StubNames {
    pub(super) fn answer(&self, name: &str, answers: &[&[&str]]) {
        let parse = |answer: &&[&str]| {
            answer
                .iter()
                .map(|address| address.parse().expect("an address"))
                .collect()
        };
        self.answers
            .lock()
            .expect("a lock")
            .insert(name.to_owned(), answers.iter().map(parse).collect());
    }

    pub(super) fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("a lock").clone()
    }
}

impl Resolve for StubNames {
    fn resolve<'a>(
        &'a self,
        name: &'a HostName,
    ) -> BoxFuture<'a, Result<Vec<IpAddr>, ResolveError>> {
        self.asked.lock().expect("a lock").push(name.to_string());
        let mut answers = self.answers.lock().expect("a lock");
        let Some(answers) = answers.get_mut(name.as_str()) else {
            return Box::pin(std::future::pending());
        };
        let answer = if answers.len() > 1 {
            answers.remove(0)
        } else {
            answers[0].clone()
        };
        Box::pin(async { Ok(answer) })
    }
}

/// Leads addresses to servers of this machine.
#[derive(Default)]
pub(super) struct StubDial {
    servers: Mutex<HashMap<SocketAddr, SocketAddr>>,
    dialled: Mutex<Vec<SocketAddr>>,
}

impl StubDial {
    pub(super) fn lead(&self, address: &str, server: SocketAddr) {
        self.servers
            .lock()
            .expect("a lock")
            .insert(address.parse().expect("an address with a port"), server);
    }

    pub(super) fn dialled(&self) -> Vec<String> {
        self.dialled
            .lock()
            .expect("a lock")
            .iter()
            .map(ToString::to_string)
            .collect()
    }
}

impl Dial for StubDial {
    fn dial(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>> {
        self.dialled.lock().expect("a lock").push(address);
        let server = self.servers.lock().expect("a lock").get(&address).copied();
        Box::pin(async move {
            let server = server.ok_or(io::ErrorKind::ConnectionRefused)?;
            TcpStream::connect(server).await
        })
    }
}

pub(super) struct TestGateway {
    pub names: Arc<StubNames>,
    pub dial: Arc<StubDial>,
    rules: watch::Sender<RuleSet>,
    /// What it tells the controller of streams to the user's machine.
    pub host: mpsc::Receiver<EgressHostFrame>,
    pub streams: Arc<HostStreams>,
    attempts: mpsc::Receiver<EgressAttempt>,
    pub socket: PathBuf,
    _end: oneshot::Sender<()>,
    _folder: tempfile::TempDir,
}

impl TestGateway {
    pub(super) fn start(rules: &[EgressRule]) -> Self {
        Self::with(Limits::default(), rules)
    }

    pub(super) fn with(limits: Limits, rules: &[EgressRule]) -> Self {
        Self::with_attempts(limits, rules, ATTEMPTS)
    }

    pub(super) fn with_attempts(limits: Limits, rules: &[EgressRule], n_attempts: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("egress.sock");
        let listener = UnixListener::bind(&socket).expect("a socket");
        let (names, dial) = (Arc::<StubNames>::default(), Arc::<StubDial>::default());
        let (set_rules, in_force) = watch::channel(rule_set(rules));
        let (told, attempts) = mpsc::channel(n_attempts);
        let (end, ended) = oneshot::channel::<()>();
        let (outgoing, host) = mpsc::channel(16);
        let streams = HostStreams::new(outgoing);
        let gateway = Gateway::new(
            limits,
            names.clone(),
            dial.clone(),
            Arc::clone(&streams),
            in_force,
            told,
        );
        tokio::spawn(gateway.serve(listener, async { drop(ended.await) }));
        Self {
            names,
            dial,
            rules: set_rules,
            host,
            streams,
            attempts,
            socket,
            _end: end,
            _folder: folder,
        }
    }

    /// Gives a name a public address, and that a server.
    pub(super) fn host(&self, name: &str, port: u16, server: SocketAddr) {
        self.names.answer(name, &[&[WEB]]);
        self.dial.lead(&format!("{WEB}:{port}"), server);
    }

    pub(super) fn set_rules(&self, rules: &[EgressRule]) {
        self.rules.send_replace(rule_set(rules));
    }

    pub(super) fn set_upstream(&self, rules: &[EgressRule], host: &str, port: u16) {
        let upstream = Some(EgressUpstream {
            host: host.to_owned(),
            port,
        });
        self.rules.send_replace(RuleSet {
            upstream,
            ..rule_set(rules)
        });
    }

    pub(super) async fn open(&self) -> UnixStream {
        UnixStream::connect(&self.socket)
            .await
            .expect("the gateway listens")
    }

    /// Connects as a guest does, for a program.
    pub(super) async fn open_for(&self, purpose: EgressPurpose, program: &str) -> UnixStream {
        let opening = EgressOpening {
            purpose,
            program: Some(program.to_owned()),
        };
        let mut stream = self.open().await;
        let bytes = opening.to_bytes().expect("it is short");
        stream.write_all(&bytes).await.expect("sent");
        stream
    }

    /// Connects as a program that believes to be connected to a host.
    pub(super) async fn open_direct(&self, host: &str, port: u16) -> UnixStream {
        let host = host.to_owned();
        self.open_for(EgressPurpose::Direct { host, port }, "a program")
            .await
    }

    /// Asks which ports of a name may be reached.
    pub(super) async fn ports(&self, host: &str) -> Vec<u16> {
        let host = host.to_owned();
        let mut stream = self
            .open_for(EgressPurpose::Name { host }, "a program")
            .await;
        let answer = read_all(&mut stream).await;
        serde_json::from_str::<EgressName>(&answer)
            .unwrap_or_else(|error| panic!("{answer}: {error}"))
            .ports
    }

    /// Sends bytes and returns all that comes until the end.
    pub(super) async fn send(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut stream = self.open().await;
        // The gateway may answer and close before it has read all.
        drop(stream.write_all(bytes.as_ref()).await);
        read_all(&mut stream).await
    }

    /// Sends a request after which the connection closes.
    pub(super) async fn get(&self, url: &str) -> String {
        let host = url.split('/').nth(2).expect("a host");
        self.send(format!(
            "GET {url} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        ))
        .await
    }

    /// Asks for a tunnel; returns it with the answer's head.
    pub(super) async fn connect(&self, host: &str) -> (UnixStream, String) {
        let mut stream = self.open().await;
        stream
            .write_all(format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())
            .await
            .expect("sent");
        let head = read_head(&mut stream).await;
        (stream, head)
    }

    pub(super) async fn attempt(&mut self) -> EgressAttempt {
        tokio::time::timeout(PATIENCE, self.attempts.recv())
            .await
            .expect("in time")
            .expect("an attempt")
    }
}

fn rule_set(rules: &[EgressRule]) -> RuleSet {
    RuleSet {
        rules: Rules::parse(rules).expect("rules"),
        upstream: None,
    }
}

pub(super) fn allow(host: &str) -> EgressRule {
    EgressRule {
        host: host.to_owned(),
        ..EgressRule::default()
    }
}

pub(super) fn deny(host: &str) -> EgressRule {
    EgressRule {
        effect: EgressEffect::Deny,
        ..allow(host)
    }
}

pub(super) fn raw(host: &str) -> EgressRule {
    EgressRule {
        raw: true,
        ..allow(host)
    }
}

/// Returns all that comes until the end, whichever way it ends.
pub(super) async fn read_all(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut read = Vec::new();
    drop(
        tokio::time::timeout(PATIENCE, stream.read_to_end(&mut read))
            .await
            .expect("an end in time"),
    );
    String::from_utf8_lossy(&read).into_owned()
}

/// Returns what comes up to the end of a head, and no byte more.
pub(super) async fn read_head(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match tokio::time::timeout(PATIENCE, stream.read_u8())
            .await
            .expect("in time")
        {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&head).into_owned()
}
