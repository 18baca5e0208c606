//! Streams to the user's own machine, which a gateway does not reach: they go as frames between the
//! role and the controller, which dials. Both ends have these.
//!
//! Each direction of a stream has a window of its own. Frames that come are taken without waiting,
//! so that a stream that nobody reads stops no other one.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;
use std::time::Duration;

use podbay_wire::EgressHostFrame;
use podbay_wire::EgressHostPart;
use podbay_wire::HOST_CHUNK;
use podbay_wire::HOST_STREAMS;
use podbay_wire::HOST_WINDOW;
use podbay_wire::message::Data;
use podbay_wire::message::cost;
use tokio::io::AsyncRead;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWrite;
use tokio::io::AsyncWriteExt;
use tokio::io::DuplexStream;
use tokio::sync::Semaphore;
use tokio::sync::mpsc;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::attempt::Activity;

/// What a chunk takes of the window.
const FULL: u32 = HOST_CHUNK as u32;

/// Without a byte in either direction. An end that is gone is not always seen.
const IDLE: Duration = Duration::from_secs(5 * 60);

/// All streams of a gateway.
pub struct HostStreams {
    open: Mutex<HashMap<u32, Entry>>,
    n_opened: AtomicU32,
    outgoing: mpsc::Sender<EgressHostFrame>,
}

/// What frames of a stream are taken with.
struct Entry {
    port: u16,
    /// The window bounds it.
    data: mpsc::UnboundedSender<Vec<u8>>,
    window: Arc<Window>,
    opened: Option<oneshot::Sender<Result<(), String>>>,
    closed: CancellationToken,
}

struct Window {
    /// What may still be sent.
    credit: Semaphore,
    /// What came and is not passed on.
    held: AtomicU32,
}

/// One end of a stream.
pub struct HostStream {
    id: u32,
    streams: Arc<HostStreams>,
    data: mpsc::UnboundedReceiver<Vec<u8>>,
    window: Arc<Window>,
    closed: CancellationToken,
    activity: Arc<Activity>,
    /// What the other end is told if this one is dropped.
    ended: Option<String>,
}

impl HostStreams {
    /// `outgoing` leads to the other end.
    pub fn new(outgoing: mpsc::Sender<EgressHostFrame>) -> Arc<Self> {
        Arc::new(Self {
            open: Mutex::default(),
            n_opened: AtomicU32::new(0),
            outgoing,
        })
    }

    /// Opens a stream to a port of the user's machine.
    pub(crate) async fn open(self: &Arc<Self>, port: u16) -> Result<DuplexStream, String> {
        let id = self.n_opened.fetch_add(1, Ordering::Relaxed);
        let (told, opened) = oneshot::channel();
        let stream = self.enter(id, port, Some(told))?;
        stream.send(EgressHostPart::Open { port }).await;
        opened
            .await
            .unwrap_or_else(|_| Err("the controller is gone".to_owned()))?;
        let (ours, theirs) = tokio::io::duplex(2 * HOST_CHUNK);
        tokio::spawn(stream.carry(ours));
        Ok(theirs)
    }

    /// Takes a stream that the other end opens. Where there is no place for it, that is told.
    pub fn accept(self: &Arc<Self>, id: u32, port: u16) -> Option<HostStream> {
        let stream = self.enter(id, port, None);
        stream
            .map_err(|reason| self.tell_soon(id, EgressHostPart::Closed { reason }))
            .ok()
    }

    /// Takes a frame of a stream. Those of streams that are over mean nothing.
    pub fn hear(&self, frame: EgressHostFrame) {
        let mut open = self.lock();
        let Some(entry) = open.get_mut(&frame.stream) else {
            return;
        };
        let is_over = match frame.part {
            EgressHostPart::Open { .. } => true,
            EgressHostPart::Opened => {
                entry.tell(Ok(()));
                false
            }
            EgressHostPart::Data { data } => !entry.take(data.0),
            EgressHostPart::Credit { bytes } => {
                entry.window.give(bytes);
                false
            }
            EgressHostPart::Closed { reason } => {
                entry.tell(Err(reason));
                true
            }
        };
        if is_over && let Some(entry) = open.remove(&frame.stream) {
            entry.closed.cancel();
        }
    }

    /// Closes streams to ports that are allowed no more.
    pub fn retain(&self, is_allowed: impl Fn(u16) -> bool) {
        for entry in self.lock().values() {
            if !is_allowed(entry.port) {
                entry.closed.cancel();
            }
        }
    }

    /// Closes all of them.
    pub fn close(&self) {
        self.retain(|_| false);
    }

    fn enter(
        self: &Arc<Self>,
        id: u32,
        port: u16,
        opened: Option<oneshot::Sender<Result<(), String>>>,
    ) -> Result<HostStream, String> {
        let mut open = self.lock();
        if open.len() >= HOST_STREAMS {
            return Err(format!(
                "there are {HOST_STREAMS} connections to this machine, which is the most; close some"
            ));
        }
        if open.contains_key(&id) {
            return Err("its number is in use".to_owned());
        }
        let (data, queue) = mpsc::unbounded_channel();
        let window = Arc::new(Window {
            credit: Semaphore::new(HOST_WINDOW as usize),
            held: AtomicU32::new(0),
        });
        let closed = CancellationToken::new();
        let entry = Entry {
            port,
            data,
            window: Arc::clone(&window),
            opened,
            closed: closed.clone(),
        };
        open.insert(id, entry);
        Ok(HostStream {
            id,
            streams: Arc::clone(self),
            data: queue,
            window,
            closed,
            activity: Activity::new(),
            ended: Some("it was given up".to_owned()),
        })
    }

    /// Where the other end takes nothing, it sees the end of the stream by its own time.
    fn tell_soon(&self, stream: u32, part: EgressHostPart) {
        drop(self.outgoing.try_send(EgressHostFrame { stream, part }));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u32, Entry>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn tell(&mut self, opened: Result<(), String>) {
        if let Some(waiting) = self.opened.take() {
            // It was given up meanwhile.
            drop(waiting.send(opened));
        }
    }

    /// Returns whether the bytes are within the bounds.
    fn take(&self, data: Vec<u8>) -> bool {
        let taken = cost(data.len());
        let held = self.window.held.fetch_add(taken, Ordering::Relaxed);
        data.len() <= HOST_CHUNK
            && held.saturating_add(taken) <= HOST_WINDOW
            && self.data.send(data).is_ok()
    }
}

impl Window {
    /// The other end cannot give more than there is.
    fn give(&self, bytes: u32) {
        let room = (HOST_WINDOW as usize).saturating_sub(self.credit.available_permits());
        self.credit.add_permits(room.min(bytes as usize));
    }
}

impl HostStream {
    /// Says that there is a connection now.
    pub async fn opened(&self) {
        self.send(EgressHostPart::Opened).await;
    }

    /// Ends it with a reason.
    pub fn refuse(mut self, reason: String) {
        self.ended = Some(reason);
    }

    /// Carries bytes until both ends have said that no more come, or either is gone.
    pub async fn carry(mut self, stream: impl AsyncRead + AsyncWrite + Unpin) {
        let (from, to) = tokio::io::split(stream);
        let (closed, activity) = (self.closed.clone(), Arc::clone(&self.activity));
        let mut data = std::mem::replace(&mut self.data, mpsc::unbounded_channel().1);
        let both = async { tokio::try_join!(self.outward(from), self.inward(&mut data, to)) };
        let ended = tokio::select! {
            () = closed.cancelled() => Some("it was closed".to_owned()),
            () = activity.until_idle(IDLE) => Some(super::tunnel::idle_for(IDLE)),
            ended = both => ended.err().map(|error| error.to_string()),
        };
        self.ended = ended;
    }

    async fn outward(&self, mut from: impl AsyncRead + Unpin) -> io::Result<()> {
        let mut buffer = vec![0; HOST_CHUNK];
        loop {
            let room = self.window.credit.acquire_many(FULL).await;
            room.expect("it is never closed").forget();
            let n_read = from.read(&mut buffer).await?;
            let taken = cost(n_read).min(FULL);
            self.window.credit.add_permits((FULL - taken) as usize);
            self.activity.touch();
            let data = Data(buffer[..n_read].to_vec());
            self.send(EgressHostPart::Data { data }).await;
            if n_read == 0 {
                return Ok(());
            }
        }
    }

    async fn inward(
        &self,
        data: &mut mpsc::UnboundedReceiver<Vec<u8>>,
        mut to: impl AsyncWrite + Unpin,
    ) -> io::Result<()> {
        while let Some(data) = data.recv().await {
            if data.is_empty() {
                return to.shutdown().await;
            }
            to.write_all(&data).await?;
            self.activity.touch();
            let bytes = cost(data.len());
            self.window.held.fetch_sub(bytes, Ordering::Relaxed);
            self.send(EgressHostPart::Credit { bytes }).await;
        }
        Ok(())
    }

    async fn send(&self, part: EgressHostPart) {
        let stream = self.id;
        // Where nobody takes it, the stream is closed soon.
        drop(
            self.streams
                .outgoing
                .send(EgressHostFrame { stream, part })
                .await,
        );
    }
}

impl Drop for HostStream {
    fn drop(&mut self) {
        self.streams.lock().remove(&self.id);
        if let Some(reason) = self.ended.take() {
            let part = EgressHostPart::Closed { reason };
            self.streams.tell_soon(self.id, part);
        }
    }
}

#[cfg(test)]
mod tests;
