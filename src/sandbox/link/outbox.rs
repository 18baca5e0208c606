//! What is to be written to a guest: by whoever brings it where nothing waits before it, and by a
//! task where the stream does not take it at once.
//!
//! Waking a task costs a call as much as its way through the engine does, and the stream nearly
//! always takes a frame at once.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::task::Context;
use std::task::Poll;
use std::task::Waker;
use std::task::ready;
use std::time::Duration;

use bytes::Bytes;
use futures::Sink;
use futures::SinkExt;
use tokio::sync::Notify;

/// Frames that wait to be written. A guest that reads takes them at once; one that makes us queue
/// more has stopped.
pub(super) const MAX_WAITING: usize = 1024;

/// How long the last frames may take to be written.
const CLOSING: Duration = Duration::from_secs(1);

type Frames = Box<dyn Sink<Bytes, Error = io::Error> + Send + Unpin>;

/// Frames on their way out, in the order in which they were brought.
pub(super) struct Outbox {
    state: Mutex<State>,
    /// Tells the task that something is left for it.
    left: Notify,
}

struct State {
    /// `None`: the stream has ended, and what is brought is dropped.
    frames: Option<Frames>,
    waiting: VecDeque<Bytes>,
    /// Some bytes of what was taken are not written yet.
    is_unflushed: bool,
    broken: Option<io::Error>,
}

/// More waits than may.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

impl Outbox {
    pub(super) fn new(
        frames: impl Sink<Bytes, Error = io::Error> + Send + Unpin + 'static,
    ) -> Self {
        let state = State {
            frames: Some(Box::new(frames)),
            waiting: VecDeque::new(),
            is_unflushed: false,
            broken: None,
        };
        Self {
            state: Mutex::new(state),
            left: Notify::new(),
        }
    }

    /// Writes a frame, or leaves it to the task; what breaks the stream is for the task to tell.
    pub(super) fn send(&self, frame: Bytes) -> Result<(), Full> {
        let mut state = self.lock();
        if state.waiting.len() >= MAX_WAITING {
            return Err(Full);
        }
        // Who wrote now in the task's place would take its waker from the stream.
        let is_first = state.waiting.is_empty() && !state.is_unflushed;
        state.waiting.push_back(frame);
        if is_first {
            match state.write(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Ok(())) => return Ok(()),
                Poll::Ready(Err(error)) => state.broken = Some(error),
                Poll::Pending => {}
            }
            self.left.notify_one();
        }
        Ok(())
    }

    /// Writes what is left, again and again, until the stream breaks.
    pub(super) async fn write_what_is_left(&self) -> io::Error {
        loop {
            self.left.notified().await;
            if let Err(error) = poll_fn(|context| self.lock().write_what_is_left(context)).await {
                return error;
            }
        }
    }

    /// Writes what is left, as far as that is taken soon, and lets go of the stream.
    pub(super) async fn close(&self) {
        let closing = poll_fn(|context| match &mut self.lock().frames {
            Some(frames) => frames.poll_close_unpin(context),
            None => Poll::Ready(Ok(())),
        });
        // A guest that was to read and does not is not waited for.
        let _ = tokio::time::timeout(CLOSING, closing).await;
        let mut state = self.lock();
        state.frames = None;
        state.waiting.clear();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn write_what_is_left(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.broken.take() {
            Some(error) => Poll::Ready(Err(error)),
            None => self.write(context),
        }
    }

    fn write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(frames) = &mut self.frames else {
            self.waiting.clear();
            return Poll::Ready(Ok(()));
        };
        while !self.waiting.is_empty() {
            ready!(frames.poll_ready_unpin(context))?;
            if let Some(frame) = self.waiting.pop_front() {
                self.is_unflushed = true;
                frames.start_send_unpin(frame)?;
            }
        }
        if self.is_unflushed {
            ready!(frames.poll_flush_unpin(context))?;
            self.is_unflushed = false;
        }
        Poll::Ready(Ok(()))
    }
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox")
            .field("n_waiting", &self.lock().waiting.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::StreamExt;
    use tokio::io::AsyncWriteExt;
    use tokio::io::DuplexStream;
    use tokio_util::codec::FramedRead;
    use tokio_util::codec::FramedWrite;
    use tokio_util::codec::LengthDelimitedCodec;

    use super::*;
    use podbay_wire::frame;

    fn pair(bytes: usize) -> (Outbox, FramedRead<DuplexStream, LengthDelimitedCodec>) {
        let (ours, theirs) = tokio::io::duplex(bytes);
        (
            Outbox::new(FramedWrite::new(ours, frame::codec())),
            FramedRead::new(theirs, frame::codec()),
        )
    }

    #[tokio::test]
    async fn a_frame_is_written_by_whoever_brings_it() {
        let (outbox, mut guest) = pair(1024);
        assert_eq!(outbox.send(Bytes::from_static(b"one")), Ok(()));
        assert_eq!(outbox.send(Bytes::from_static(b"two")), Ok(()));
        assert_eq!(
            guest
                .next()
                .now_or_never()
                .flatten()
                .expect("there")
                .expect("a frame"),
            b"one"[..]
        );
        assert_eq!(
            guest
                .next()
                .now_or_never()
                .flatten()
                .expect("there")
                .expect("a frame"),
            b"two"[..]
        );
        assert!(
            outbox.write_what_is_left().now_or_never().is_none(),
            "nothing is left"
        );
    }

    #[tokio::test]
    async fn what_is_not_taken_at_once_is_written_in_its_order() {
        let (outbox, mut guest) = pair(16);
        let frames: Vec<Bytes> = (0..200_usize)
            .map(|n| Bytes::from(n.to_string().repeat(n)))
            .collect();
        let reading = async {
            let mut read = Vec::new();
            for n in 0..frames.len() {
                read.push(
                    guest
                        .next()
                        .await
                        .expect("a frame")
                        .expect("whole")
                        .freeze(),
                );
                // Others are brought while it is written.
                if let Some(frame) = frames.get(100 + n) {
                    outbox.send(frame.clone()).expect("has room");
                }
            }
            read
        };
        for frame in &frames[..100] {
            outbox.send(frame.clone()).expect("has room");
        }
        tokio::select! {
            read = reading => assert_eq!(read, frames),
            error = outbox.write_what_is_left() => panic!("{error}"),
            () = tokio::time::sleep(Duration::from_secs(60)) => panic!("something is never written"),
        }
    }

    #[tokio::test]
    async fn a_guest_that_does_not_read_gets_no_more_than_so_many_frames() {
        let (outbox, _guest) = pair(1);
        let n_sent = (0..2 * MAX_WAITING)
            .take_while(|_| outbox.send(Bytes::from_static(b"a frame")).is_ok())
            .count();
        assert!((MAX_WAITING..MAX_WAITING + 2).contains(&n_sent), "{n_sent}");
        assert_eq!(outbox.send(Bytes::new()), Err(Full));
    }

    #[tokio::test]
    async fn a_stream_that_is_closed_is_let_go_of_though_nobody_reads() {
        let (outbox, guest) = pair(1);
        assert_eq!(outbox.send(Bytes::from_static(b"not taken")), Ok(()));
        outbox.close().await;
        assert_eq!(outbox.send(Bytes::from_static(b"too late")), Ok(()));
        let (_, mut writer) = tokio::io::split(guest.into_inner());
        assert_eq!(
            writer
                .write_all(b"a flood")
                .await
                .expect_err("nobody is there")
                .kind(),
            io::ErrorKind::BrokenPipe
        );
    }

    #[tokio::test]
    async fn the_task_tells_why_a_stream_broke_under_somebody_else() {
        let (outbox, guest) = pair(1024);
        drop(guest);
        assert_eq!(outbox.send(Bytes::from_static(b"lost")), Ok(()));
        assert_eq!(
            outbox.write_what_is_left().await.kind(),
            io::ErrorKind::BrokenPipe
        );
    }
}
