//! What goes over the stream: a task that reads, one that writes, and what both know.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use futures::StreamExt;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::sync::Semaphore;
use tokio::sync::mpsc;
use tokio::sync::oneshot;
use tokio_util::codec::FramedRead;
use tokio_util::codec::FramedWrite;
use tokio_util::codec::LengthDelimitedCodec;
use tokio_util::sync::CancellationToken;

use super::error::Reason;
use super::open::CallUpdate;
use super::outbox::Full;
use super::outbox::MAX_WAITING;
use super::outbox::Outbox;
use podbay_wire::AskedProgram;
use podbay_wire::Call;
use podbay_wire::CallId;
use podbay_wire::MAX_QUESTIONS;
use podbay_wire::Output;
use podbay_wire::frame;
use podbay_wire::keep::FindResult;
use podbay_wire::message::CHUNK;
use podbay_wire::message::MAX_CALLS;
use podbay_wire::message::ToGuest;
use podbay_wire::message::ToHost;
use podbay_wire::message::WINDOW;
use podbay_wire::message::cost;

/// Frames for calls that are not under way, before the stream is given up.
const MAX_STRAY: u32 = 1000;

/// The shared state of one stream.
#[derive(Debug)]
pub(super) struct Traffic {
    state: Mutex<State>,
    outbox: Arc<Outbox>,
    /// Set when the stream has ended, for whatever reason.
    over: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    calls: HashMap<CallId, Entry>,
    next_id: u32,
    n_stray: u32,
    ended: Option<Reason>,
    /// Gets what the guest finds in the project, where it was asked to search beside the calls.
    found: Option<oneshot::Sender<FindResult>>,
}

/// A call under way, as the reader knows it.
#[derive(Debug)]
struct Entry {
    /// Bounded by the window: a chunk takes credit, which comes back when it is consumed. `None`:
    /// nobody wants to know any more.
    updates: Option<mpsc::UnboundedSender<CallUpdate>>,
    /// What the guest may still send.
    window: u32,
    /// What we may still send as input.
    input: Arc<Semaphore>,
    /// The question that is open, and the least number that the next one can have.
    open: Option<u32>,
    next_question: u32,
}

/// What the caller of a call holds of it.
pub(super) struct Begun {
    pub(super) id: CallId,
    pub(super) updates: mpsc::UnboundedReceiver<CallUpdate>,
    pub(super) input: Arc<Semaphore>,
}

/// Why a call was not begun.
pub(super) enum NotBegun {
    TooMany,
    Ended(Reason),
}

/// Ends the stream when the last holder of its [`Traffic`] is gone; the tasks hold none.
impl Drop for Traffic {
    fn drop(&mut self) {
        self.over.cancel();
    }
}

impl Traffic {
    /// Starts the two tasks over a stream whose hellos are exchanged.
    pub(super) fn start<R, W>(
        frames: FramedRead<R, LengthDelimitedCodec>,
        sink: FramedWrite<W, LengthDelimitedCodec>,
        found: Option<oneshot::Sender<FindResult>>,
    ) -> Arc<Self>
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let outbox = Arc::new(Outbox::new(sink));
        let over = CancellationToken::new();
        let traffic = Arc::new(Self {
            state: Mutex::new(State {
                found,
                ..State::default()
            }),
            outbox: Arc::clone(&outbox),
            over: over.clone(),
        });
        tokio::spawn(read(frames, Arc::downgrade(&traffic), over.clone()));
        tokio::spawn(write(outbox, Arc::downgrade(&traffic), over));
        traffic
    }

    pub(super) fn begin(&self, call: Call) -> Result<Begun, NotBegun> {
        let (sender, updates) = mpsc::unbounded_channel();
        let input = Arc::new(Semaphore::new(WINDOW as usize));
        let mut state = self.lock();
        if let Some(reason) = &state.ended {
            return Err(NotBegun::Ended(reason.clone()));
        }
        if state.calls.len() >= MAX_CALLS {
            return Err(NotBegun::TooMany);
        }
        let id = CallId(state.next_id);
        state.next_id = state
            .next_id
            .checked_add(1)
            .expect("four billion calls are more than a stream lives to see");
        state.calls.insert(
            id,
            Entry {
                updates: Some(sender),
                window: WINDOW,
                input: Arc::clone(&input),
                open: None,
                next_question: 0,
            },
        );
        drop(state);
        self.send(&ToGuest::Call { id, call });
        Ok(Begun { id, updates, input })
    }

    /// Sends a frame. One that finds too many waiting means that the guest has stopped to read,
    /// which ends the stream.
    pub(super) fn send(&self, message: &ToGuest) {
        match frame::encode(message).map(|frame| self.outbox.send(frame)) {
            Ok(Ok(())) => {}
            Ok(Err(Full)) => self.end(Reason::Protocol(format!(
                "it has left {MAX_WAITING} frames unread"
            ))),
            Err(error) => self.end(Reason::Broken(error.to_string())),
        }
    }

    /// Gives back the credit of a chunk that was consumed.
    pub(super) fn consumed(&self, id: CallId, bytes: u32) {
        let is_known = match self.lock().calls.get_mut(&id) {
            Some(entry) => {
                entry.window = entry.window.saturating_add(bytes).min(WINDOW);
                true
            }
            None => false,
        };
        if is_known {
            self.send(&ToGuest::Credit { id, bytes });
        }
    }

    /// Answers a question that is open.
    pub(super) fn answer(&self, id: CallId, question: u32, go_on: bool) {
        let is_open = self
            .lock()
            .calls
            .get_mut(&id)
            .is_some_and(|entry| entry.open.take_if(|open| *open == question).is_some());
        if is_open {
            self.send(&ToGuest::Answer {
                id,
                question,
                go_on,
            });
        }
    }

    /// Cancels a call that nobody listens to any more. Its frames are dropped until its end.
    pub(super) fn abandon(&self, id: CallId) {
        let is_known = match self.lock().calls.get_mut(&id) {
            Some(entry) => entry.updates.take().is_some(),
            None => false,
        };
        if is_known {
            self.send(&ToGuest::Cancel { id });
        }
    }

    pub(super) fn ended(&self) -> Option<Reason> {
        self.lock().ended.clone()
    }

    pub(super) async fn wait_ended(&self) -> Reason {
        self.over.cancelled().await;
        self.ended().unwrap_or(Reason::Closed)
    }

    /// Ends the stream; the first reason counts. All calls under way end with it.
    pub(super) fn end(&self, reason: Reason) {
        let mut state = self.lock();
        state.ended.get_or_insert(reason);
        state.found = None;
        for (_, entry) in state.calls.drain() {
            entry.input.close();
        }
        drop(state);
        self.over.cancel();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in one frame of the guest; an error ends the stream.
    fn handle(&self, message: ToHost) -> Result<(), Reason> {
        match message {
            ToHost::Hello(_) => Err(Reason::Protocol("a second hello".to_owned())),
            ToHost::Found(found) if found.is_too_much() => Err(Reason::Protocol(
                "more was found than a look may bring".to_owned(),
            )),
            ToHost::Found(found) => match self.lock().found.take() {
                Some(receiver) => {
                    let _ = receiver.send(found);
                    Ok(())
                }
                None => Err(Reason::Protocol(
                    "it found what nobody looks for".to_owned(),
                )),
            },
            ToHost::Closing { reason } => Err(Reason::from_closing(&reason)),
            ToHost::Chunk { id, stream, data } => {
                let bytes = data.0.len();
                if bytes == 0 || bytes > CHUNK {
                    return Err(Reason::Protocol(format!("a chunk of {bytes} bytes")));
                }
                let mut state = self.lock();
                let Some(entry) = state.calls.get_mut(&id) else {
                    return state.stray();
                };
                let Some(window) = entry.window.checked_sub(cost(bytes)) else {
                    return Err(Reason::Protocol(
                        "more output than it had credit for".to_owned(),
                    ));
                };
                entry.window = window;
                if let Some(updates) = &entry.updates {
                    let _ = updates.send(CallUpdate::Chunk {
                        stream,
                        data: data.0,
                    });
                }
                Ok(())
            }
            ToHost::Credit { id, bytes } => {
                let mut state = self.lock();
                let Some(entry) = state.calls.get_mut(&id) else {
                    return state.stray();
                };
                if entry.input.available_permits() + bytes as usize > WINDOW as usize {
                    return Err(Reason::Protocol(
                        "more credit than the window holds".to_owned(),
                    ));
                }
                entry.input.add_permits(bytes as usize);
                Ok(())
            }
            ToHost::Done { id, output } => self.done(id, output),
            ToHost::Asks {
                id,
                question,
                program,
            } => self.asked(id, question, program),
        }
    }

    /// Takes in the one thing that a guest may ask.
    fn asked(&self, id: CallId, question: u32, program: AskedProgram) -> Result<(), Reason> {
        if program.is_too_much() {
            return Err(Reason::Protocol(
                "a question that is longer than it may be".to_owned(),
            ));
        }
        let mut state = self.lock();
        let Some(entry) = state.calls.get_mut(&id) else {
            return state.stray();
        };
        if entry.open.is_some() || question < entry.next_question || question >= MAX_QUESTIONS {
            return Err(Reason::Protocol(
                "more questions than it may ask".to_owned(),
            ));
        }
        (entry.open, entry.next_question) = (Some(question), question + 1);
        if let Some(updates) = &entry.updates {
            let _ = updates.send(CallUpdate::Asked {
                question,
                program: Box::new(program),
            });
        }
        Ok(())
    }

    fn done(&self, id: CallId, output: Output) -> Result<(), Reason> {
        if output.tells_too_much() {
            return Err(Reason::Protocol(
                "it tells of more programs than it may".to_owned(),
            ));
        }
        let mut state = self.lock();
        let Some(entry) = state.calls.remove(&id) else {
            return state.stray();
        };
        entry.input.close();
        if let Some(updates) = entry.updates {
            let _ = updates.send(CallUpdate::Done(output));
        }
        Ok(())
    }
}

impl State {
    /// Counts a frame for a call that is not under way: late credit is normal, a flood is not.
    fn stray(&mut self) -> Result<(), Reason> {
        self.n_stray += 1;
        if self.n_stray > MAX_STRAY {
            return Err(Reason::Protocol(format!(
                "over {MAX_STRAY} frames for calls that are not under way"
            )));
        }
        Ok(())
    }
}

type Weak = std::sync::Weak<Traffic>;

async fn read<R: AsyncRead + Unpin>(
    mut frames: FramedRead<R, LengthDelimitedCodec>,
    traffic: Weak,
    over: CancellationToken,
) {
    enum Next {
        Frame(Option<io::Result<bytes::BytesMut>>),
        Over,
    }
    loop {
        let next = tokio::select! {
            frame = frames.next() => Next::Frame(frame),
            () = over.cancelled() => Next::Over,
        };
        let result = match next {
            Next::Over => return,
            Next::Frame(None) => Err(Reason::EndOfStream),
            Next::Frame(Some(Err(error))) => Err(Reason::from_read(&error)),
            Next::Frame(Some(Ok(bytes))) => {
                frame::decode(&bytes).map_err(|error| Reason::from_frame(&error))
            }
        };
        let Some(traffic) = traffic.upgrade() else {
            return;
        };
        if let Err(reason) = result.and_then(|message| traffic.handle(message)) {
            return traffic.end(reason);
        }
    }
}

async fn write(outbox: Arc<Outbox>, traffic: Weak, over: CancellationToken) {
    let broken = tokio::select! {
        error = outbox.write_what_is_left() => Some(error),
        () = over.cancelled() => None,
    };
    if let (Some(error), Some(traffic)) = (broken, traffic.upgrade()) {
        // A guest that has ended may have said why; reading that comes first.
        tokio::select! {
            () = over.cancelled() => {}
            () = tokio::time::sleep(std::time::Duration::from_secs(1)) => traffic.end(Reason::Broken(error.to_string())),
        }
    }
    outbox.close().await;
}
