use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Later;
use super::Options;
use super::Services;
use super::host::Came;
use super::host::Host;
use super::seen::Seen;
use podbay_policy::Action;
use podbay_policy::Approved;
use podbay_policy::HostCall;
use podbay_sandbox as sandbox;
use podbay_sandbox::Ended;
use podbay_sandbox::Sandbox;
use podbay_sandbox::link::Asks;
use podbay_sandbox::link::Link;
use podbay_wire::BytesPath;
use podbay_wire::Call;
use podbay_wire::ExecGate;
use podbay_wire::Fault;
use podbay_wire::MeantName;
use podbay_wire::Output;
use podbay_wire::Processes;
use podbay_wire::message::Stream;

/// Receives a command's output while it runs.
pub type OnChunk<'a> = Box<dyn FnMut(Stream, &[u8]) + Send + 'a>;

/// Whatever carries out calls in a box: a session's sandbox, or one link.
pub trait Workspace: Send + Sync {
    fn call<'a>(
        &'a self,
        call: Call,
        on_chunk: OnChunk<'a>,
        cancel: &'a CancellationToken,
        deadline: Duration,
    ) -> Later<'a, Result<Output, sandbox::Error>>;

    /// Like [`Workspace::call`]; where the box asks whether a program goes on, `asks` answers.
    /// Whoever has no box that asks need not know of it.
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

    /// Tells whether the programs that commands start are seen there, as far as that is known.
    fn exec_gate(&self) -> Later<'_, ExecGate> {
        Box::pin(std::future::ready(ExecGate::Absent))
    }

    /// Waits until the box ends by itself: a question about what is to be done in it is then about
    /// nothing. Whoever has no box that could end waits for ever.
    fn ended(&self) -> Later<'_, Ended> {
        Box::pin(std::future::pending())
    }

    /// Tells the person of such an end, and returns what the model is told.
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

    fn ended(&self) -> Later<'_, Ended> {
        Box::pin(self.ended())
    }

    fn tell_ended(&self, ended: Ended) -> Later<'_, String> {
        Box::pin(self.tell_ended(ended))
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

/// What is told while a call is under way.
pub(super) enum Told<'a> {
    /// A command printed this.
    Printed(&'a [u8]),
    /// A person is being asked.
    Asked,
}

/// What a command printed, as far as it was kept.
#[derive(Debug, Default)]
pub(super) struct Printed {
    pub(super) head: Vec<u8>,
    /// The end, where the middle was not kept.
    pub(super) tail: Vec<u8>,
    /// Names that were taken for others which look like them.
    pub(super) meant: Vec<MeantName>,
}

/// How often a call may begin anew because its names lead to files that it was not told of. Each
/// link on the way can take one.
const ROUNDS: usize = 4;

/// Carries out an approved action. Nothing else reaches the box or the host's services.
///
/// A call that changes files is told what the model knows of them. Where it must be told more, it
/// says so before it does anything, and is sent again.
pub(super) async fn dispatch(
    action: Approved<Action>,
    workspace: &dyn Workspace,
    seen: &Seen,
    host: Host<'_>,
    options: &Options,
    mut tell: impl FnMut(Told<'_>) + Send,
    cancel: &CancellationToken,
) -> Result<(Came, Printed), sandbox::Error> {
    let is_by_name = action.is_by_name();
    let sent = |call: Call| if is_by_name { by_name(call) } else { call };
    match action.into_inner() {
        Action::Host(call) => Ok((host.serve(call, tell, cancel).await, Printed::default())),
        Action::Box(mut call) => {
            let deadline = deadline(&call, options);
            let most = usize::try_from(
                options
                    .bash_stream
                    .bytes()
                    .saturating_add(options.bash_tail.bytes()),
            )
            .unwrap_or(usize::MAX);
            let mut printed = Printed::default();
            let mut on_chunk = |stream: Stream, bytes: &[u8]| {
                let kept = if stream == Stream::Tail {
                    &mut printed.tail
                } else {
                    &mut printed.head
                };
                // The guest keeps this bound too, but the guest is not believed.
                let room = most.saturating_sub(kept.len());
                kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
                tell(Told::Printed(bytes));
            };
            if call.known_mut().is_none() {
                let output = workspace
                    .call_asking(sent(call), Box::new(on_chunk), host.asks, cancel, deadline)
                    .await?;
                return Ok(came(output, printed));
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
                    output => return Ok(came(output, printed)),
                }
            }
            tell_known(&mut call, seen, &besides);
            let output = workspace
                .call(sent(call), Box::new(on_chunk), cancel, deadline)
                .await?;
            Ok(came(output, printed))
        }
    }
}

fn came(output: Output, printed: Printed) -> (Came, Printed) {
    let (output, meant) = output.apart();
    (Came::Output(output), Printed { meant, ..printed })
}

/// Returns a call that goes through no link, where it names a path at all.
fn by_name(call: Call) -> Call {
    match call {
        Call::Bash(_) | Call::Exec(_) | Call::Hook(_) | Call::Env(_) | Call::Processes(_) => call,
        call => Call::ByName {
            call: Box::new(call),
        },
    }
}

/// Most files that a call is told of besides those that it names; no call changes more at once.
const MOST_BESIDES: usize = 1000;

fn tell_known(call: &mut Call, seen: &Seen, besides: &[BytesPath]) {
    let known = seen.known(call, besides);
    if let Some(told) = call.known_mut() {
        *told = Some(known);
    }
}

/// Carries out a look at the project that no model asked for.
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
            problem: "there is nothing to look at on the host".to_owned(),
        })),
    }
}

/// Carries out a command of the person's settings that may run; both its streams go to `tell`.
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
            problem: "it is no hook".to_owned(),
        })),
    }
}

/// What a guest has beyond a command's time, to kill all of it and to say so.
const COMMAND: Duration = Duration::from_secs(5);

fn deadline(call: &Call, options: &Options) -> Duration {
    match call {
        Call::Bash(bash) => {
            Duration::from_millis(bash.timeout_ms.saturating_add(bash.grace_ms)) + COMMAND
        }
        Call::Hook(hook) => {
            Duration::from_millis(hook.timeout_ms.saturating_add(hook.grace_ms)) + COMMAND
        }
        Call::Git(git) => {
            Duration::from_millis(
                git.timeout_ms
                    .saturating_mul(2)
                    .saturating_add(git.grace_ms),
            ) + Duration::from_secs(10)
        }
        Call::Processes(Processes::Stop { grace_ms, .. }) => {
            Duration::from_millis(*grace_ms) + options.file_timeout.duration()
        }
        Call::Grep(grep) => Duration::from_millis(grep.timeout_ms) + Duration::from_secs(10),
        Call::Exec(exec) => exec
            .timeout_ms
            .map_or(Duration::from_secs(365 * 24 * 3600), |ms| {
                Duration::from_millis(ms) + Duration::from_secs(10)
            }),
        _ => options.file_timeout.duration(),
    }
}
