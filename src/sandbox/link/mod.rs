//! The host's end of the wall: one attached stream into a sandbox, many calls.
//!
//! Every byte that comes is hostile. Frames, counts and queues have bounds; what nobody asked for
//! is dropped and counted; a guest that breaks the rules loses its stream and never more than that.
//! What the outputs mean is for others.
//!
//! Start with [`Link::connect`] and [`Link::call`]; `open.rs` is the form for a user at a
//! terminal, `traffic.rs` what both share.

mod asks;
mod error;
mod open;
mod outbox;
mod traffic;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_recursion::async_recursion as boxed;
use futures::SinkExt;
use futures::StreamExt;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::codec::FramedRead;
use tokio_util::codec::FramedWrite;
use tokio_util::sync::CancellationToken;

pub use self::asks::Asks;
pub use self::asks::Nobody;
pub use self::error::Error;
pub use self::error::Reason;
pub use self::open::CallInput;
pub use self::open::CallUpdate;
pub use self::open::OpenCall;
use self::traffic::Traffic;
use podbay_wire::Call;
use podbay_wire::CommandEnded;
use podbay_wire::End;
use podbay_wire::ExecGate;
use podbay_wire::Fault;
use podbay_wire::Output;
use podbay_wire::PROTOCOL;
use podbay_wire::TimeLimit;
use podbay_wire::frame;
use podbay_wire::keep::FindOrder;
use podbay_wire::keep::FindResult;
use podbay_wire::message::DiskLimits;
use podbay_wire::message::Facts;
use podbay_wire::message::GuestHello;
use podbay_wire::message::HostHello;
use podbay_wire::message::MAX_MOUNTS;
use podbay_wire::message::SearchTime;
use podbay_wire::message::Stream;
use podbay_wire::message::ToGuest;
use podbay_wire::message::ToHost;

/// How long a call may take to end after it was cancelled, beside its own grace.
const CANCELLED: Duration = Duration::from_secs(5);

/// How long it may take where its time was over before: the sandbox had its time to end it by then.
const OVERDUE: Duration = Duration::from_secs(2);

/// Names that a hello may tell.
const MAX_NAMES: usize = 256;

/// Most bytes of such a name; the kernel has 255, some file systems three times as many.
const MAX_NAME: usize = 1024;

/// The line into one sandbox; clones share it. It ends with the last clone.
#[derive(Clone, Debug)]
pub struct Link {
    traffic: Arc<Traffic>,
    exec_gate: ExecGate,
}

impl Link {
    /// Greets the guest on a stream just attached and tells it what to watch; `build` is our own.
    pub async fn connect<S>(
        stream: S,
        build: &str,
        disk: DiskLimits,
        deadline: Duration,
        cancel: &CancellationToken,
    ) -> Result<(Link, Facts), Error>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        Self::connect_looking(stream, build, disk, None, deadline, cancel)
            .await
            .map(|(link, facts, _)| (link, facts))
    }

    /// Like [`Link::connect`]; a guest that is told what to look for in the project says before
    /// anything else what it found.
    pub async fn connect_looking<S>(
        stream: S,
        build: &str,
        disk: DiskLimits,
        find: Option<FindOrder>,
        deadline: Duration,
        cancel: &CancellationToken,
    ) -> Result<(Link, Facts, Option<FindResult>), Error>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (reader, writer) = tokio::io::split(stream);
        let mut frames = FramedRead::new(reader, frame::codec());
        let mut sink = FramedWrite::new(writer, frame::codec());
        let greeting = async {
            let looks = find.is_some();
            let hello = hello(build, disk, find, SearchTime::First);
            let facts = greet(&mut frames, &mut sink, build, hello).await?;
            Ok((
                facts,
                if looks {
                    Some(found(&mut frames).await?)
                } else {
                    None
                },
            ))
        };
        let (facts, found) = tokio::select! {
            greeted = tokio::time::timeout(deadline, greeting) => greeted.map_err(|_elapsed| Error::NoHello { within: deadline })??,
            () = cancel.cancelled() => return Err(Error::Cancelled { doing: "greet the sandbox".to_owned() }),
        };
        Ok((
            Link {
                traffic: Traffic::start(frames, sink, None),
                exec_gate: facts.exec_gate,
            },
            facts,
            found,
        ))
    }

    /// Like [`Link::connect`], of a guest that looks for something in the project beside the calls.
    /// The receiver gets what it found; where the search fails or the stream ends, nothing.
    pub async fn connect_searching<S>(
        stream: S,
        build: &str,
        disk: DiskLimits,
        find: FindOrder,
        deadline: Duration,
        cancel: &CancellationToken,
    ) -> Result<(Link, Facts, oneshot::Receiver<FindResult>), Error>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (reader, writer) = tokio::io::split(stream);
        let mut frames = FramedRead::new(reader, frame::codec());
        let mut sink = FramedWrite::new(writer, frame::codec());
        let hello = hello(build, disk, Some(find), SearchTime::Beside);
        let greeting = greet(&mut frames, &mut sink, build, hello);
        let facts = tokio::select! {
            greeted = tokio::time::timeout(deadline, greeting) => greeted.map_err(|_elapsed| Error::NoHello { within: deadline })??,
            () = cancel.cancelled() => return Err(Error::Cancelled { doing: "greet the sandbox".to_owned() }),
        };
        let (found, receiver) = oneshot::channel();
        let link = Link {
            traffic: Traffic::start(frames, sink, Some(found)),
            exec_gate: facts.exec_gate,
        };
        Ok((link, facts, receiver))
    }

    /// Returns whether the programs that commands start are seen there, as the guest told it before
    /// any of them ran.
    pub fn exec_gate(&self) -> ExecGate {
        self.exec_gate
    }

    /// Executes one call; `on_chunk` gets its output as it comes.
    ///
    /// Cancelled, it waits for the guest's word that everything of the call has ended. The deadline
    /// is for a guest that does not answer; the limits of a command itself are in the call. A call
    /// that is done all the same, only late, has its answer.
    pub async fn call(
        &self,
        call: Call,
        on_chunk: impl FnMut(Stream, &[u8]) + Send,
        cancel: &CancellationToken,
        deadline: Duration,
    ) -> Result<Output, Error> {
        self.call_with_haste(call, on_chunk, cancel, &CancellationToken::new(), deadline)
            .await
    }

    /// Like [`Link::call`]; once cancelled, `haste` takes away the time that a command has to end
    /// by itself.
    pub async fn call_with_haste(
        &self,
        call: Call,
        on_chunk: impl FnMut(Stream, &[u8]) + Send,
        cancel: &CancellationToken,
        haste: &CancellationToken,
        deadline: Duration,
    ) -> Result<Output, Error> {
        self.call_asking(call, on_chunk, &Nobody, cancel, haste, deadline)
            .await
    }

    /// Like [`Link::call_with_haste`]; where the guest asks whether a program continues, `asks`
    /// answers. The deadline stands still meanwhile.
    pub async fn call_asking(
        &self,
        call: Call,
        mut on_chunk: impl FnMut(Stream, &[u8]) + Send,
        asks: &dyn Asks,
        cancel: &CancellationToken,
        haste: &CancellationToken,
        deadline: Duration,
    ) -> Result<Output, Error> {
        enum Next {
            Update(Option<CallUpdate>),
            Cancelled,
            Haste,
            TimeLimit,
            Answered(bool),
        }

        let doing = error::describe(&call);
        let bound = grace(&call) + CANCELLED;
        let limit = timeout(&call);
        let mut open = self.open(call)?;
        let mut ends_at = Instant::now() + deadline;
        let mut is_late = false;
        let mut is_cancelled = false;
        let mut is_hasty = false;
        let mut asking = None;
        loop {
            let next = tokio::select! {
                update = open.recv() => Next::Update(update),
                () = cancel.cancelled(), if !is_cancelled => Next::Cancelled,
                () = haste.cancelled(), if is_cancelled && !is_hasty => Next::Haste,
                go_on = answer(&mut asking), if asking.is_some() => Next::Answered(go_on),
                () = tokio::time::sleep_until(ends_at), if asking.is_none() => Next::TimeLimit,
            };
            match next {
                Next::Update(Some(CallUpdate::Chunk { stream, data })) => on_chunk(stream, &data),
                Next::Update(Some(CallUpdate::Done(output))) if is_late && was_stopped(&output) => {
                    return Err(Error::TimedOut {
                        doing,
                        after: deadline,
                    });
                }
                Next::Update(Some(CallUpdate::Asked { question, .. })) if is_cancelled => {
                    open.answer(question, false);
                }
                Next::Update(Some(CallUpdate::Asked { question, program })) => {
                    asking = Some(Asking {
                        question,
                        since: Instant::now(),
                        answer: asks.ask(*program),
                    });
                }
                Next::Answered(go_on) => {
                    if let Some(asked) = asking.take() {
                        ends_at += asked.since.elapsed();
                        open.answer(asked.question, go_on);
                    }
                }
                // What was done in spite of it is told as done.
                Next::Update(Some(CallUpdate::Done(output))) => return Ok(output),
                Next::Update(None) => {
                    return Err(Error::Ended {
                        doing,
                        reason: self.ended().unwrap_or(Reason::EndOfStream),
                    });
                }
                Next::Cancelled => {
                    // Nobody needs the answer any more.
                    asking = None;
                    is_cancelled = true;
                    ends_at = ends_at.min(Instant::now() + bound);
                    open.cancel();
                }
                Next::Haste => {
                    is_hasty = true;
                    ends_at = ends_at.min(Instant::now() + CANCELLED);
                    open.cancel();
                }
                Next::TimeLimit if is_late => {
                    return Err(match limit {
                        Some(limit) => Error::Overdue { doing, limit },
                        None => Error::Unresponsive {
                            doing,
                            after: OVERDUE,
                        },
                    });
                }
                Next::TimeLimit if is_cancelled => {
                    return Err(Error::Unresponsive {
                        doing,
                        after: bound,
                    });
                }
                Next::TimeLimit => {
                    (is_late, is_cancelled) = (true, true);
                    ends_at = Instant::now() + OVERDUE;
                    open.cancel();
                }
            }
        }
    }

    /// Begins a call whose output, input and terminal the caller drives.
    pub fn open(&self, call: Call) -> Result<OpenCall, Error> {
        OpenCall::begin(&self.traffic, call)
    }

    /// Returns why the stream has ended; `None`: it has not.
    pub fn ended(&self) -> Option<Reason> {
        self.traffic.ended()
    }

    /// Waits for the end of the stream.
    #[boxed]
    pub async fn wait_ended(&self) -> Reason {
        self.traffic.wait_ended().await
    }

    /// Ends the stream now; a guest that serves it ends everything it started.
    pub fn close(&self) {
        self.traffic.end(Reason::Closed);
    }
}

/// A question on its way.
struct Asking<'asks> {
    question: u32,
    since: Instant,
    answer: Pin<Box<dyn Future<Output = bool> + Send + 'asks>>,
}

async fn answer(asking: &mut Option<Asking<'_>>) -> bool {
    match asking {
        Some(asking) => asking.answer.as_mut().await,
        None => std::future::pending().await,
    }
}

fn hello(build: &str, disk: DiskLimits, find: Option<FindOrder>, search: SearchTime) -> ToGuest {
    ToGuest::Hello(HostHello {
        protocol: PROTOCOL,
        build: build.to_owned(),
        disk,
        find,
        search,
    })
}

async fn greet<R, W>(
    frames: &mut FramedRead<R, tokio_util::codec::LengthDelimitedCodec>,
    sink: &mut FramedWrite<W, tokio_util::codec::LengthDelimitedCodec>,
    build: &str,
    hello: ToGuest,
) -> Result<Facts, Error>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let hello = frame::encode(&hello).map_err(|source| Error::Greet {
        reason: Reason::Protocol(source.to_string()),
    })?;
    let broken = |reason| Error::Greet { reason };
    // A guest that refused to start may be gone before it reads; what it said is worth more than
    // that it is gone.
    let sent = sink.send(hello).await;
    let first = match frames.next().await {
        Some(Ok(first)) => first,
        Some(Err(error)) => return Err(broken(Reason::from_read(&error))),
        None => {
            return Err(broken(sent.err().map_or(Reason::EndOfStream, |error| {
                Reason::Broken(error.to_string())
            })));
        }
    };
    match frame::decode(&first) {
        Ok(ToHost::Hello(GuestHello { protocol, .. })) if protocol != PROTOCOL => {
            Err(Error::Protocol {
                ours: PROTOCOL,
                theirs: protocol,
            })
        }
        Ok(ToHost::Hello(hello)) if hello.build != build => Err(Error::Build {
            ours: build.to_owned(),
            theirs: error::harmless(&hello.build, 64),
        }),
        Ok(ToHost::Hello(hello)) if hello.facts.workspace_names.len() > MAX_NAMES => Err(broken(
            Reason::Protocol("the hello tells more names than it may".to_owned()),
        )),
        Ok(ToHost::Hello(hello))
            if hello
                .facts
                .workspace_names
                .iter()
                .any(|name| name.as_bytes().len() > MAX_NAME) =>
        {
            Err(broken(Reason::Protocol(
                "the hello tells a name that no file can have".to_owned(),
            )))
        }
        Ok(ToHost::Hello(hello))
            if hello.facts.mounts.len().max(hello.facts.foreign.len()) > MAX_MOUNTS =>
        {
            Err(broken(Reason::Protocol(
                "the hello tells of more mounts than it may".to_owned(),
            )))
        }
        Ok(ToHost::Hello(hello)) => Ok(hello.facts),
        Ok(ToHost::Closing { reason }) => Err(broken(Reason::from_closing(&reason))),
        Ok(_) => Err(broken(Reason::Protocol(
            "the first frame is not a hello".to_owned(),
        ))),
        Err(error) => Err(broken(Reason::from_frame(&error))),
    }
}

/// Returns what the guest found in the project, which it says next.
async fn found<R: AsyncRead + Unpin>(
    frames: &mut FramedRead<R, tokio_util::codec::LengthDelimitedCodec>,
) -> Result<FindResult, Error> {
    let broken = |reason| Error::Greet { reason };
    let next = match frames.next().await {
        Some(Ok(next)) => next,
        Some(Err(error)) => return Err(broken(Reason::from_read(&error))),
        None => return Err(broken(Reason::EndOfStream)),
    };
    match frame::decode(&next) {
        Ok(ToHost::Found(found)) if found.is_too_much() => Err(broken(Reason::Protocol(
            "more was found than a look may bring".to_owned(),
        ))),
        Ok(ToHost::Found(found)) => Ok(found),
        Ok(ToHost::Closing { reason }) => Err(broken(Reason::from_closing(&reason))),
        Ok(_) => Err(broken(Reason::Protocol(
            "the frame after the hello is not what was found".to_owned(),
        ))),
        Err(error) => Err(broken(Reason::from_frame(&error))),
    }
}

/// Returns whether a call was not executed to its end because it was cancelled.
fn was_stopped(output: &Output) -> bool {
    matches!(
        output,
        Output::Fault(Fault::Cancelled)
            | Output::Command(CommandEnded {
                end: End::Cancelled,
                ..
            })
    )
}

fn grace(call: &Call) -> Duration {
    Duration::from_millis(match call.facts().time {
        TimeLimit::Command { grace_ms, .. } | TimeLimit::Own { grace_ms, .. } => grace_ms,
        TimeLimit::Files
        | TimeLimit::Search { .. }
        | TimeLimit::Git { .. }
        | TimeLimit::Stop { .. } => 0,
    })
}

/// Returns the time that a command itself may take.
fn timeout(call: &Call) -> Option<Duration> {
    match call.facts().time {
        TimeLimit::Command { timeout_ms, .. } => Some(timeout_ms),
        TimeLimit::Own { timeout_ms, .. } => timeout_ms,
        TimeLimit::Files
        | TimeLimit::Search { .. }
        | TimeLimit::Git { .. }
        | TimeLimit::Stop { .. } => None,
    }
    .map(Duration::from_millis)
}
