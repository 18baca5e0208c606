use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Later;
use super::Options;
use super::Services;
use super::host::CallResult;
use super::host::Host;
use super::host::Served;
use super::seen_files::SeenFiles;
use podbay_policy::Action;
use podbay_policy::Approved;
use podbay_policy::HostCall;
use podbay_sandbox as sandbox;
use podbay_sandbox::Ended;
use podbay_sandbox::Gateway;
use podbay_sandbox::Sandbox;
use podbay_sandbox::Sibling;
use podbay_sandbox::Switched;
use podbay_sandbox::link::Asks;
use podbay_sandbox::link::Link;
use podbay_sandbox::link::Nobody;
use podbay_wire::BytesPath;
use podbay_wire::Call;
use podbay_wire::CallKind;
use podbay_wire::ExecGate;
use podbay_wire::Fault;
use podbay_wire::MeantName;
use podbay_wire::Output;
use podbay_wire::TimeLimit;
use podbay_wire::message::Stream;

/// Receives a command's output while it runs.
pub type OnChunk<'a> = Box<dyn FnMut(Stream, &[u8]) + Send + 'a>;

/// Runs calls in a sandbox: a session's sandbox, or one link.
pub trait Workspace: Send + Sync {
    fn call<'a>(
        &'a self,
        call: Call,
        on_chunk: OnChunk<'a>,
        cancel: &'a CancellationToken,
        deadline: Duration,
    ) -> Later<'a, Result<Output, sandbox::Error>>;

    /// Like [`Workspace::call`]; `asks` answers where the sandbox asks whether a program may
    /// continue. The default is for sandboxes that never ask.
    fn call_asking<'a>(
        &'a self,
        call: Call,
        on_chunk: OnChunk<'a>,
        _asks: &'a dyn Asks,
        cancel: &'a CancellationToken,
        deadline: Duration,
    ) -> Later<'a, Result<Output, sandbox::Error>> {
        self.call(call, on_chunk, cancel, deadline)
    }

    /// Returns whether the sandbox reports the programs that commands start, if known.
    fn exec_gate(&self) -> Later<'_, ExecGate> {
        Box::pin(std::future::ready(ExecGate::Absent))
    }

    /// Returns the way to chosen hosts, where there is one.
    fn gateway(&self) -> Option<&Gateway> {
        None
    }

    /// Makes the next sandbox one in which the project is read-only, or is not; `None`: it is so
    /// already.
    fn set_read_only<'a>(
        &'a self,
        _read_only: bool,
        _cancel: &'a CancellationToken,
    ) -> Later<'a, Result<Option<Switched>, sandbox::Error>> {
        let problem = "this sandbox has no plan mode".to_owned();
        Box::pin(std::future::ready(Err(sandbox::Error::Setting {
            key: "sandbox.backend",
            problem,
        })))
    }

    /// Waits until the sandbox ends by itself, which makes pending questions about it obsolete.
    /// Never returns for a sandbox that cannot end.
    fn ended(&self) -> Later<'_, Ended> {
        Box::pin(std::future::pending())
    }

    /// Reports such an end to the user; returns the text for the model.
    fn tell_ended(&self, ended: Ended) -> Later<'_, String> {
        Box::pin(std::future::ready(ended.reason()))
    }
}

impl Workspace for Sandbox {
    fn call<'a>(
        &'a self,
        call: Call,
        on_chunk: OnChunk<'a>,
        cancel: &'a CancellationToken,
        deadline: Duration,
    ) -> Later<'a, Result<Output, sandbox::Error>> {
        Box::pin(self.call(call, on_chunk, cancel, deadline))
    }

    fn call_asking<'a>(
        &'a self,
        call: Call,
        on_chunk: OnChunk<'a>,
        asks: &'a dyn Asks,
        cancel: &'a CancellationToken,
        deadline: Duration,
    ) -> Later<'a, Result<Output, sandbox::Error>> {
        Box::pin(self.call_asking(call, on_chunk, asks, cancel, deadline))
    }

    fn exec_gate(&self) -> Later<'_, ExecGate> {
        Box::pin(self.exec_gate())
    }

    fn gateway(&self) -> Option<&Gateway> {
        self.gateway()
    }

    fn set_read_only<'a>(
        &'a self,
        read_only: bool,
        cancel: &'a CancellationToken,
    ) -> Later<'a, Result<Option<Switched>, sandbox::Error>> {
        Box::pin(self.set_read_only(read_only, cancel))
    }

    fn ended(&self) -> Later<'_, Ended> {
        Box::pin(self.ended())
    }

    fn tell_ended(&self, ended: Ended) -> Later<'_, String> {
        Box::pin(self.tell_ended(ended))
    }
}

impl Workspace for Sibling {
    fn call<'a>(
        &'a self,
        call: Call,
        on_chunk: OnChunk<'a>,
        cancel: &'a CancellationToken,
        deadline: Duration,
    ) -> Later<'a, Result<Output, sandbox::Error>> {
        Box::pin(self.call_asking(call, on_chunk, &Nobody, cancel, deadline))
    }

    fn call_asking<'a>(
        &'a self,
        call: Call,
        on_chunk: OnChunk<'a>,
        asks: &'a dyn Asks,
        cancel: &'a CancellationToken,
        deadline: Duration,
    ) -> Later<'a, Result<Output, sandbox::Error>> {
        Box::pin(self.call_asking(call, on_chunk, asks, cancel, deadline))
    }

    fn exec_gate(&self) -> Later<'_, ExecGate> {
        Box::pin(self.exec_gate())
    }

    fn gateway(&self) -> Option<&Gateway> {
        self.gateway()
    }
}

impl Workspace for Link {
    fn call<'a>(
        &'a self,
        call: Call,
        on_chunk: OnChunk<'a>,
        cancel: &'a CancellationToken,
        deadline: Duration,
    ) -> Later<'a, Result<Output, sandbox::Error>> {
        Box::pin(async move {
            let called = Link::call(self, call, on_chunk, cancel, deadline).await;
            called
                .or_else(|error| error.into_fault().map(Output::Fault))
                .map_err(sandbox::Error::Link)
        })
    }

    fn call_asking<'a>(
        &'a self,
        call: Call,
        on_chunk: OnChunk<'a>,
        asks: &'a dyn Asks,
        cancel: &'a CancellationToken,
        deadline: Duration,
    ) -> Later<'a, Result<Output, sandbox::Error>> {
        Box::pin(async move {
            let haste = CancellationToken::new();
            let called =
                Link::call_asking(self, call, on_chunk, asks, cancel, &haste, deadline).await;
            called
                .or_else(|error| error.into_fault().map(Output::Fault))
                .map_err(sandbox::Error::Link)
        })
    }

    fn exec_gate(&self) -> Later<'_, ExecGate> {
        Box::pin(std::future::ready(Link::exec_gate(self)))
    }

    fn ended(&self) -> Later<'_, Ended> {
        Box::pin(Ended::of(self))
    }
}

/// A notification from a running call.
pub(super) enum CallProgress<'a> {
    /// Output of a command.
    Output(&'a [u8]),
    /// The user is being asked.
    Asked,
}

/// Output of a command, as far as it was kept.
#[derive(Debug, Default)]
pub(super) struct CommandOutput {
    pub(super) head: Vec<u8>,
    /// The end, where the middle was not kept.
    pub(super) tail: Vec<u8>,
    /// Names that were replaced by an existing one that looks the same.
    pub(super) meant: Vec<MeantName>,
}

/// How often a call is sent again because its paths lead through symlinks to files it had no known
/// state of. Each symlink on the way can take one round.
const ROUNDS: usize = 4;

/// Executes an approved action. Nothing else reaches the sandbox or the host's services.
///
/// A call that changes files carries what the model knows of them. If the guest needs more, it says
/// so before it changes anything, and the call is sent again.
pub(super) async fn dispatch(
    action: Approved<Action>,
    workspace: &dyn Workspace,
    seen: &SeenFiles,
    host: Host<'_>,
    options: &Options,
    mut tell: impl FnMut(CallProgress<'_>) + Send,
    cancel: &CancellationToken,
) -> Result<(CallResult, CommandOutput), sandbox::Error> {
    let is_by_name = action.is_by_name();
    let sent = |call: Call| if is_by_name { by_name(call) } else { call };
    match action.into_inner() {
        Action::Host(call) => {
            let Served { result, printed } = host.serve(call, tell, cancel).await;
            Ok((result, printed))
        }
        Action::Box(mut call) => {
            let deadline = deadline(&call, options);
            let most = usize::try_from(
                options
                    .bash_stream
                    .bytes()
                    .saturating_add(options.bash_tail.bytes()),
            )
            .unwrap_or(usize::MAX);
            let mut printed = CommandOutput::default();
            let mut on_chunk = |stream: Stream, bytes: &[u8]| {
                let kept = if stream == Stream::Tail {
                    &mut printed.tail
                } else {
                    &mut printed.head
                };
                // The guest keeps this bound too, but the guest is not trusted.
                let room = most.saturating_sub(kept.len());
                kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
                tell(CallProgress::Output(bytes));
            };
            if call.fields_mut().known.is_none() {
                let output = workspace
                    .call_asking(sent(call), Box::new(on_chunk), host.asks, cancel, deadline)
                    .await?;
                return Ok(with_meant_names(output, printed));
            }
            let mut besides: Vec<BytesPath> = Vec::new();
            for _ in 1..ROUNDS {
                tell_known(&mut call, seen, &besides);
                match workspace
                    .call(
                        sent(call.clone()),
                        Box::new(&mut on_chunk),
                        cancel,
                        deadline,
                    )
                    .await?
                {
                    Output::Fault(Fault::Untold { paths }) => {
                        besides.extend(paths.into_iter().take(MOST_BESIDES));
                    }
                    output => return Ok(with_meant_names(output, printed)),
                }
            }
            tell_known(&mut call, seen, &besides);
            let output = workspace
                .call(sent(call), Box::new(on_chunk), cancel, deadline)
                .await?;
            Ok(with_meant_names(output, printed))
        }
    }
}

fn with_meant_names(output: Output, printed: CommandOutput) -> (CallResult, CommandOutput) {
    let (output, meant) = output.apart();
    (
        CallResult::Output(output),
        CommandOutput { meant, ..printed },
    )
}

/// Returns the call with symlinks refused, if it names a path.
fn by_name(call: Call) -> Call {
    match call.facts().kind {
        CallKind::Command => call,
        CallKind::File | CallKind::LongFile | CallKind::Session => Call::ByName {
            call: Box::new(call),
        },
    }
}

/// Most files whose state is sent besides those that the call names; no call changes more at once.
const MOST_BESIDES: usize = 1000;

fn tell_known(call: &mut Call, seen: &SeenFiles, besides: &[BytesPath]) {
    let known = seen.known(call, besides);
    if let Some(told) = call.fields_mut().known {
        *told = Some(known);
    }
}

/// Executes a read of the project that Podbay makes before the first request.
pub(super) async fn dispatch_peek(
    action: Approved<Action>,
    workspace: &dyn Workspace,
    on_chunk: OnChunk<'_>,
    cancel: &CancellationToken,
    within: Duration,
) -> Result<Output, sandbox::Error> {
    let is_by_name = action.is_by_name();
    match action.into_inner() {
        Action::Box(call) => {
            let call = if is_by_name { by_name(call) } else { call };
            workspace
                .call(call, on_chunk, cancel, within)
                .await
                .map(|output| output.apart().0)
        }
        Action::Host(_) => Ok(Output::Fault(Fault::NotStarted {
            problem: "this call does not run in the sandbox".to_owned(),
        })),
    }
}

/// Executes an approved hook; both its streams go to `tell`.
pub(super) async fn dispatch_hook(
    action: Approved<Action>,
    workspace: &dyn Workspace,
    services: &dyn Services,
    options: &Options,
    mut tell: impl FnMut(Stream, &[u8]) + Send,
    cancel: &CancellationToken,
) -> Result<Output, sandbox::Error> {
    match action.into_inner() {
        Action::Box(call @ Call::Hook(_)) => {
            let deadline = deadline(&call, options);
            workspace.call(call, Box::new(tell), cancel, deadline).await
        }
        Action::Host(HostCall::Hook(hook)) => Ok(services
            .run_hook(hook, Box::new(|stream, bytes| tell(stream, bytes)), cancel)
            .await),
        Action::Box(_) | Action::Host(_) => Ok(Output::Fault(Fault::NotStarted {
            problem: "it is not a hook".to_owned(),
        })),
    }
}

/// How long the guest may take beyond a command's time, to kill its processes and to answer.
const COMMAND: Duration = Duration::from_secs(5);

fn deadline(call: &Call, options: &Options) -> Duration {
    let (files, ms) = (options.file_timeout.duration(), Duration::from_millis);
    match call.facts().time {
        TimeLimit::Files => files,
        TimeLimit::Stop { grace_ms } => ms(grace_ms) + files,
        TimeLimit::Search { timeout_ms } => ms(timeout_ms) + Duration::from_secs(10),
        TimeLimit::Git {
            timeout_ms,
            grace_ms,
        } => ms(timeout_ms.saturating_mul(2).saturating_add(grace_ms)) + Duration::from_secs(10),
        TimeLimit::Command {
            timeout_ms,
            grace_ms,
        } => ms(timeout_ms.saturating_add(grace_ms)) + COMMAND,
        TimeLimit::Own { timeout_ms, .. } => timeout_ms
            .map_or(Duration::from_secs(365 * 24 * 3600), |timeout_ms| {
                ms(timeout_ms) + Duration::from_secs(10)
            }),
    }
}
