//! Starts a server where it runs; carries the standard streams of one in the sandbox.

use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::io::DuplexStream;
use tokio_util::sync::CancellationToken;

use super::host_server::HostServers;
use crate::record::with_causes;
use podbay_mcp::ByteStream;
use podbay_mcp::Later;
use podbay_mcp::Opener;
use podbay_mcp::ServerEnd;
use podbay_mcp::ServerOptions;
use podbay_mcp::ServerPlace;
use podbay_policy::Action;
use podbay_policy::Approved;
use podbay_sandbox::Sandbox;
use podbay_sandbox::link::CallInput;
use podbay_sandbox::link::CallUpdate;
use podbay_sandbox::link::OpenCall;
use podbay_wire::BytesPath;
use podbay_wire::End;
use podbay_wire::Exec;
use podbay_wire::Fault;
use podbay_wire::Output;
use podbay_wire::message::Stream;

/// Bytes that wait in each direction.
pub(super) const WAITING: usize = 64 << 10;

/// How long a server may take to end after its input has ended.
pub(super) const LEAVING: Duration = Duration::from_secs(1);

/// The project's folder in the sandbox.
const ROOT: &str = "file:///workspace";

/// Where a sandbox has this program.
const PROGRAM: &str = "/run/podbay/bin/podbay";

/// Starts the servers of a session.
pub(super) struct SessionOpener {
    pub(super) sandbox: SandboxServers,
    pub(super) host: HostServers,
    /// Whether a user can answer what servers ask.
    pub(super) can_ask: bool,
}

/// Starts servers in the sandbox.
pub(super) struct SandboxServers {
    pub(super) sandbox: Sandbox,
    /// Milliseconds between TERM and KILL.
    pub(super) grace_ms: u64,
}

impl Opener for SessionOpener {
    fn open<'a>(
        &'a self,
        server: &'a ServerOptions,
        cancel: &'a CancellationToken,
    ) -> Later<'a, Result<ByteStream, String>> {
        Box::pin(async move {
            match server.place {
                ServerPlace::Sandbox => self.sandbox.open(server, cancel).await,
                ServerPlace::Host => self.host.open(server),
            }
        })
    }

    fn gateway<'a>(
        &'a self,
        server: &'a str,
        cancel: &'a CancellationToken,
    ) -> Later<'a, Result<ByteStream, String>> {
        Box::pin(async move {
            let words = [PROGRAM, "web", "gateway", server];
            let exec = Exec {
                argv: words
                    .iter()
                    .map(|word| BytesPath::from_text(word))
                    .collect(),
                working_directory: None,
                environment: Vec::new(),
                terminal: None,
                timeout_ms: None,
                grace_ms: self.sandbox.grace_ms,
            };
            self.sandbox.run(exec, cancel).await
        })
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn can_ask(&self) -> bool {
        self.can_ask
    }

    fn close(&self) -> Later<'_, ()> {
        Box::pin(self.host.close())
    }
}

impl SandboxServers {
    async fn open(
        &self,
        server: &ServerOptions,
        cancel: &CancellationToken,
    ) -> Result<ByteStream, String> {
        let words = std::iter::once(&server.command).chain(&server.args);
        let exec = Exec {
            argv: words.map(|word| BytesPath::from_text(word)).collect(),
            working_directory: server.cwd.as_deref().map(BytesPath::from_text),
            environment: server.env.clone().into_iter().collect(),
            terminal: None,
            timeout_ms: None,
            grace_ms: self.grace_ms,
        };
        self.run(exec, cancel).await
    }

    /// Starts a program. The user has named the server that it is, or that it leads to, in the
    /// settings, or enabled the file that names it.
    async fn run(&self, exec: Exec, cancel: &CancellationToken) -> Result<ByteStream, String> {
        let approved = Approved::by_hand(exec);
        let Action::Box(call) = approved.into_inner() else {
            return Err("a server is a program in the sandbox".to_owned());
        };
        let open = self.sandbox.open(call, cancel).await;
        Ok(carry(open.map_err(|error| with_causes(&error))?))
    }
}

/// Carries the streams of a program for as long as both ends are there.
fn carry(open: OpenCall) -> ByteStream {
    let end = ServerEnd::default();
    let (reader, out) = tokio::io::duplex(WAITING);
    let (writer, input) = tokio::io::duplex(WAITING);
    let left = CancellationToken::new();
    tokio::spawn(feed(input, open.input_handle(), left.clone()));
    tokio::spawn(drain(open, out, end.clone(), left));
    ByteStream {
        reader: Box::new(reader),
        writer: Box::new(writer),
        end,
        root: ROOT.to_owned(),
    }
}

/// Sends what is written to the program; once nobody can write any more, its input ends.
async fn feed(mut from: DuplexStream, to: CallInput, left: CancellationToken) {
    let mut buffer = vec![0; WAITING];
    while let Ok(n_read @ 1..) = from.read(&mut buffer).await {
        if to.send(&buffer[..n_read]).await.is_err() {
            break;
        }
    }
    to.close();
    left.cancel();
}

/// Hands over what the program prints. Dropping the call at the end ends all its processes.
async fn drain(mut open: OpenCall, mut to: DuplexStream, end: ServerEnd, left: CancellationToken) {
    let leave = async {
        left.cancelled().await;
        tokio::time::sleep(LEAVING).await;
    };
    tokio::pin!(leave);
    loop {
        let update = tokio::select! {
            update = open.recv() => update,
            () = &mut leave => break,
        };
        match update {
            Some(CallUpdate::Chunk {
                stream: Stream::Stderr,
                data,
            }) => end.keep_stderr(&data),
            Some(CallUpdate::Chunk { data, .. }) => {
                let handed = tokio::select! {
                    handed = to.write_all(&data) => handed.is_ok(),
                    () = &mut leave => false,
                };
                if !handed {
                    break;
                }
            }
            // The settings name the program, so that no gate asks about it.
            Some(CallUpdate::Asked { question, .. }) => open.answer(question, false),
            Some(CallUpdate::Done(output)) => {
                end.note(how(&output));
                break;
            }
            None => {
                end.note_sandbox();
                break;
            }
        }
    }
}

/// Returns how a program ended, in words.
fn how(output: &Output) -> String {
    match output {
        Output::Command(ended) => match ended.end {
            End::Exited { code } => format!("exit code {code}"),
            End::Signaled { signal } => format!("signal {signal}"),
            End::Cancelled => "it was told to end".to_owned(),
            End::Running { .. } => "it went to the background".to_owned(),
        },
        Output::Fault(Fault::NotFound { .. }) => {
            "there is no such program in the sandbox".to_owned()
        }
        Output::Fault(fault) => fault.to_string(),
        _ => "the sandbox answered with something else than a program's end".to_owned(),
    }
}
