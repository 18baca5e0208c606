//! The guest's end of the protocol: one stream, many calls.

use std::collections::BTreeSet;
use std::collections::HashMap;
use std::io;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::SinkExt;
use futures::StreamExt;
use thiserror::Error;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::codec::FramedRead;
use tokio_util::codec::FramedWrite;
use tokio_util::codec::LengthDelimitedCodec;

use super::call_channel::CallChannel;
use super::call_channel::HostMessage;
use super::cgroup::Cgroup;
use super::command::SPAWNER_KILLED;
use super::facts;
use super::keep::find;
use super::memory;
use super::mounts;
use super::session::Session;
use super::session::Setup;
use super::shell::Shell;
use super::unix::lower_priority;
use podbay_wire::BytesPath;
use podbay_wire::Call;
use podbay_wire::CallId;
use podbay_wire::Fault;
use podbay_wire::Output;
use podbay_wire::PROTOCOL;
use podbay_wire::frame;
use podbay_wire::keep::FindOrder;
use podbay_wire::message::GuestHello;
use podbay_wire::message::HostHello;
use podbay_wire::message::MAX_CALLS;
use podbay_wire::message::SearchTime;
use podbay_wire::message::ToGuest;
use podbay_wire::message::ToHost;

/// How long the last messages may take to be written.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// After so long without calls, the program's own pages are released; the next call gets the needed
/// ones back by touching them, which costs a fraction of a millisecond.
const QUIET: Duration = Duration::from_secs(1);

/// Why serving ended other than by the end of the stream.
#[derive(Debug, Error)]
pub enum Error {
    #[error("open the workspace {path}")]
    Workspace { path: String, source: io::Error },
    #[error("read from the host")]
    Read(#[source] io::Error),
    #[error("understand the host")]
    Frame(#[from] frame::Error),
    #[error("look through the project")]
    Look(#[source] io::Error),
    #[error(
        "the host speaks protocol {protocol} of build {build}; this guest is {PROTOCOL} of {own_build}"
    )]
    Mismatch {
        protocol: u32,
        build: String,
        own_build: String,
    },
    #[error("the first frame of the host is not its hello")]
    NoHello,
    #[error("{0}")]
    Closed(String),
}

/// Serves calls until the input ends; then all started processes end too.
pub async fn serve<R, W>(input: R, output: W, setup: Setup) -> Result<(), Error>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (outgoing, queue) = mpsc::unbounded_channel();
    let mut writer = JoinSet::new();
    writer.spawn(write(output, queue));
    let result = talk(input, &outgoing, setup).await;
    if let Err(error) = &result {
        let _ = outgoing.send(ToHost::Closing {
            reason: error.to_string(),
        });
    }
    drop(outgoing);
    if result.is_err() {
        let _ = tokio::time::timeout(LAST_WORDS, writer.join_next()).await;
    }
    result
}

async fn talk<R: AsyncRead + Unpin>(
    input: R,
    outgoing: &mpsc::UnboundedSender<ToHost>,
    setup: Setup,
) -> Result<(), Error> {
    let cgroup = Cgroup::find();
    let build = setup.build.clone();
    let shell = Shell::find();
    let facts = facts::find(&setup.workspace, &setup.on_disk(), &cgroup);
    let covered: BTreeSet<BytesPath> = facts.mounts.iter().cloned().collect();
    let _ = outgoing.send(ToHost::Hello(GuestHello {
        protocol: PROTOCOL,
        build: build.clone(),
        facts,
    }));
    let path = setup.workspace.display().to_string();
    let workspace = setup.workspace.clone();
    let (fatal, reasons) = mpsc::channel(1);
    let mut session = Session::open(setup, shell, cgroup, fatal)
        .map_err(|source| Error::Workspace { path, source })?;
    let mut frames = FramedRead::new(input, frame::codec());
    match frames.next().await {
        None => return Ok(()),
        Some(frame) => {
            let hello = greet(frame::decode(&frame.map_err(Error::Read)?)?, build)?;
            session.disk.limit(hello.disk);
            match (hello.find, hello.search) {
                (Some(order), SearchTime::First) => {
                    let found = find::find(&workspace, &order, &covered).map_err(Error::Look)?;
                    let _ = outgoing.send(ToHost::Found(found));
                }
                (Some(order), SearchTime::Beside) => {
                    search_beside(workspace.clone(), order, covered.clone(), outgoing.clone());
                }
                (None, _) => {}
            }
        }
    }
    let mut serving = Serving {
        session: Arc::new(session),
        outgoing,
        calls: HashMap::new(),
        running: JoinSet::new(),
        reasons,
        busy_until: Some(Instant::now()),
    };
    let uncovered = mounts::gone(&workspace, &covered);
    tokio::pin!(uncovered);
    loop {
        let next = tokio::select! {
            next = serving.next(&mut frames) => next?,
            gone = &mut uncovered => {
                let gone = gone.map_err(|error| Error::Closed(format!("what is mounted in the project cannot be watched: {error}")))?;
                return Err(Error::Closed(format!(
                    "`{gone}` of the project was replaced or removed while the sandbox ran, on the host or by a command that moved its folder in the \
                     session's copy, and was covered there no longer"
                )));
            }
        };
        if !serving.handle(next)? {
            return Ok(());
        }
    }
}

/// Searches the project while calls are served. A search that fails is not answered: what it would
/// find is only told.
fn search_beside(
    workspace: PathBuf,
    order: FindOrder,
    covered: BTreeSet<BytesPath>,
    outgoing: mpsc::UnboundedSender<ToHost>,
) {
    // It ends with this process, which waits for no thread.
    std::thread::spawn(move || {
        // Commands have it too, and are waited for.
        lower_priority();
        if let Ok(found) = find::find(&workspace, &order, &covered) {
            let _ = outgoing.send(ToHost::Found(found));
        }
    });
}

fn greet(first: ToGuest, own_build: String) -> Result<HostHello, Error> {
    match first {
        ToGuest::Hello(hello) if hello.protocol == PROTOCOL && hello.build == own_build => {
            Ok(hello)
        }
        ToGuest::Hello(HostHello {
            protocol, build, ..
        }) => Err(Error::Mismatch {
            protocol,
            build,
            own_build,
        }),
        _ => Err(Error::NoHello),
    }
}

enum Next {
    Frame(ToGuest),
    /// The host is gone.
    End,
    Done(CallId, Output),
    Fatal(String),
    SpawnerGone,
    /// No request for a while.
    Quiet,
}

struct Serving<'stream> {
    session: Arc<Session>,
    outgoing: &'stream mpsc::UnboundedSender<ToHost>,
    calls: HashMap<CallId, mpsc::UnboundedSender<HostMessage>>,
    running: JoinSet<(CallId, Output)>,
    reasons: mpsc::Receiver<String>,
    /// When there was last work; `None` once the pages are released.
    busy_until: Option<Instant>,
}

impl Serving<'_> {
    async fn next<R: AsyncRead + Unpin>(
        &mut self,
        frames: &mut FramedRead<R, LengthDelimitedCodec>,
    ) -> Result<Next, Error> {
        let quiet = self
            .busy_until
            .filter(|_| self.calls.is_empty())
            .map(|at| at + QUIET);
        tokio::select! {
            frame = frames.next() => match frame {
                Some(frame) => Ok(Next::Frame(frame::decode(&frame.map_err(Error::Read)?)?)),
                None => Ok(Next::End),
            },
            Some(reason) = self.reasons.recv() => Ok(Next::Fatal(reason)),
            Some(done) = self.running.join_next(), if !self.running.is_empty() => {
                let (id, output) = done.expect("calls catch their panics and nothing aborts them while this loop runs");
                Ok(Next::Done(id, output))
            }
            () = self.session.spawner.gone() => Ok(Next::SpawnerGone),
            () = tokio::time::sleep_until(quiet.unwrap_or_else(Instant::now)), if quiet.is_some() => Ok(Next::Quiet),
        }
    }

    /// Handles an event; returns whether to continue.
    fn handle(&mut self, next: Next) -> Result<bool, Error> {
        self.busy_until = Some(Instant::now());
        match next {
            Next::Quiet => {
                self.busy_until = None;
                memory::release_program_pages();
            }
            Next::End => {
                // The commands in progress end with this process.
                self.session.keep_open();
                return Ok(false);
            }
            Next::Fatal(reason) => return Err(Error::Closed(reason)),
            Next::SpawnerGone => {
                return Err(Error::Closed(SPAWNER_KILLED.to_owned()));
            }
            Next::Done(id, output) => {
                // The reason for the sandbox's end is sent first; a host that received the call's
                // end first might stop reading.
                if matches!(output, Output::Fault(Fault::BoxEnded { .. }))
                    && let Ok(reason) = self.reasons.try_recv()
                {
                    return Err(Error::Closed(reason));
                }
                self.calls.remove(&id);
                self.session.keep_open();
                self.send(ToHost::Done { id, output });
            }
            Next::Frame(ToGuest::Hello(_)) => return Err(Error::NoHello),
            Next::Frame(ToGuest::Call { id, call }) => self.begin(id, call),
            Next::Frame(ToGuest::Credit { id, bytes }) => self.tell(id, HostMessage::Credit(bytes)),
            Next::Frame(ToGuest::Input { id, data }) => self.tell(id, HostMessage::Input(data.0)),
            Next::Frame(ToGuest::Resize { id, rows, columns }) => {
                self.tell(id, HostMessage::Resize { rows, columns });
            }
            Next::Frame(ToGuest::Answer {
                id,
                question,
                go_on,
            }) => self.tell(id, HostMessage::Answer { question, go_on }),
            Next::Frame(ToGuest::Cancel { id }) => self.tell(id, HostMessage::Cancel),
        }
        Ok(true)
    }

    fn begin(&mut self, id: CallId, call: Call) {
        if self.calls.len() >= MAX_CALLS || self.calls.contains_key(&id) {
            let problem = if self.calls.contains_key(&id) {
                "this id is in use".to_owned()
            } else {
                format!("{MAX_CALLS} calls are under way; wait for one to end")
            };
            let output = Output::Fault(Fault::Invalid {
                field: "id".to_owned(),
                problem,
            });
            return self.send(ToHost::Done { id, output });
        }
        // Messages come from the host, which is trusted, and it keeps to the windows.
        let (words, receiver) = mpsc::unbounded_channel();
        self.calls.insert(id, words);
        let line = CallChannel::new(id, self.outgoing.clone(), receiver);
        let session = Arc::clone(&self.session);
        self.running.spawn(async move {
            let output = AssertUnwindSafe(session.run(call, line))
                .catch_unwind()
                .await
                .unwrap_or_else(|_panic| {
                    Output::Fault(Fault::Io {
                        doing: "run the call".to_owned(),
                        problem: "the guest failed; this is a bug of Podbay: try another way"
                            .to_owned(),
                    })
                });
            (id, output)
        });
    }

    /// A message for a call that has ended meanwhile is dropped.
    fn tell(&self, id: CallId, word: HostMessage) {
        if let Some(words) = self.calls.get(&id) {
            let _ = words.send(word);
        }
    }

    fn send(&self, message: ToHost) {
        // The writer ends only with the stream, which the reader notices too.
        let _ = self.outgoing.send(message);
    }
}

/// Writes what is queued; flushes when the queue is empty.
async fn write<W: AsyncWrite + Unpin>(output: W, mut queue: mpsc::UnboundedReceiver<ToHost>) {
    let mut frames = FramedWrite::new(output, frame::codec());
    while let Some(message) = queue.recv().await {
        if write_all_queued(&mut frames, message, &mut queue)
            .await
            .is_err()
        {
            // The host reads no more; the end of the other direction ends the loop.
            return;
        }
    }
}

async fn write_all_queued<W: AsyncWrite + Unpin>(
    frames: &mut FramedWrite<W, LengthDelimitedCodec>,
    first: ToHost,
    queue: &mut mpsc::UnboundedReceiver<ToHost>,
) -> io::Result<()> {
    frames.feed(encode(&first)).await?;
    while let Ok(message) = queue.try_recv() {
        frames.feed(encode(&message)).await?;
    }
    SinkExt::<bytes::Bytes>::flush(frames).await
}

/// Encodes a message. An output too long for a frame becomes a fault, so that the call still ends.
fn encode(message: &ToHost) -> bytes::Bytes {
    let or_fault = |message: &ToHost| match (frame::encode(message), message) {
        (Err(error), ToHost::Done { id, .. }) => {
            let fault = Fault::Io {
                doing: "send the result".to_owned(),
                problem: error.to_string(),
            };
            frame::encode(&ToHost::Done {
                id: *id,
                output: Output::Fault(fault),
            })
        }
        (result, _) => result,
    };
    or_fault(message)
        .expect("only outputs have no bound of their own, and plain data always has a JSON form")
}
