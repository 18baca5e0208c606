//! One call that its caller drives: output as it comes, input, window size, cancel.

use std::sync::Arc;

use async_recursion::async_recursion as boxed;
use tokio::sync::Semaphore;
use tokio::sync::mpsc;

use super::error::Error;
use super::error::describe;
use super::traffic::Begun;
use super::traffic::NotBegun;
use super::traffic::Traffic;
use podbay_wire::AskedProgram;
use podbay_wire::Call;
use podbay_wire::CallId;
use podbay_wire::Output;
use podbay_wire::frame;
use podbay_wire::message::CHUNK;
use podbay_wire::message::Data;
use podbay_wire::message::Stream;
use podbay_wire::message::ToGuest;
use podbay_wire::message::WINDOW;
use podbay_wire::message::cost;

/// Consumed output is acknowledged in pieces of this size, so that small chunks do not cost a frame
/// each.
const ACKNOWLEDGE: u32 = WINDOW / 4;

/// What comes of a call.
#[derive(Debug)]
pub enum CallUpdate {
    Chunk {
        stream: Stream,
        data: Vec<u8>,
    },
    /// A program of the call waits for an answer. One at a time.
    Asked {
        question: u32,
        program: Box<AskedProgram>,
    },
    /// The end; nothing comes after it.
    Done(Output),
}

/// A call under way. Dropping it cancels it.
#[derive(Debug)]
pub struct OpenCall {
    traffic: Arc<Traffic>,
    id: CallId,
    updates: mpsc::UnboundedReceiver<CallUpdate>,
    input: Arc<Semaphore>,
    doing: String,
    /// Consumed and not yet acknowledged.
    consumed: u32,
}

impl OpenCall {
    pub(super) fn begin(traffic: &Arc<Traffic>, call: Call) -> Result<Self, Error> {
        let doing = describe(&call);
        // Encoded once to be measured: an over-long call is the caller's matter, and must not cost
        // the stream.
        if call.facts().weight > frame::MAX_FRAME / 8
            && let Err(frame::Error::TooLong { bytes }) = frame::encode(&ToGuest::Call {
                id: CallId(u32::MAX),
                call: call.clone(),
            })
        {
            return Err(Error::TooLong { doing, bytes });
        }
        match traffic.begin(call) {
            Ok(Begun { id, updates, input }) => Ok(Self {
                traffic: Arc::clone(traffic),
                id,
                updates,
                input,
                doing,
                consumed: 0,
            }),
            Err(NotBegun::TooMany) => Err(Error::TooManyCalls { doing }),
            Err(NotBegun::Ended(reason)) => Err(Error::Ended { doing, reason }),
        }
    }

    /// Returns what comes next; `None`: the stream has ended, or `Done` was returned before.
    #[boxed]
    pub async fn recv(&mut self) -> Option<CallUpdate> {
        if self.consumed >= ACKNOWLEDGE || (self.consumed > 0 && self.updates.is_empty()) {
            self.traffic
                .consumed(self.id, std::mem::take(&mut self.consumed));
        }
        let update = self.updates.recv().await;
        if let Some(CallUpdate::Chunk { data, .. }) = &update {
            self.consumed = self.consumed.saturating_add(cost(data.len()));
        }
        update
    }

    /// Sends input, waiting where the command does not take it.
    #[boxed]
    pub async fn input(&self, bytes: &[u8]) -> Result<(), Error> {
        self.input_handle().send(bytes).await
    }

    /// Ends the input.
    pub fn close_input(&self) {
        self.input_handle().close();
    }

    /// Returns the input's own end, for one task that feeds while another one reads.
    pub fn input_handle(&self) -> CallInput {
        CallInput {
            traffic: Arc::clone(&self.traffic),
            id: self.id,
            room: Arc::clone(&self.input),
            doing: self.doing.clone(),
        }
    }

    /// Tells the new size of the terminal.
    pub fn resize(&self, rows: u16, columns: u16) {
        self.traffic.send(&ToGuest::Resize {
            id: self.id,
            rows,
            columns,
        });
    }

    /// Says whether what a question was about continues; an answer to none that is open goes nowhere.
    pub fn answer(&self, question: u32, go_on: bool) {
        self.traffic.answer(self.id, question, go_on);
    }

    /// Asks everything of the call to end; a second time, does not let it take its time.
    pub fn cancel(&self) {
        self.traffic.send(&ToGuest::Cancel { id: self.id });
    }
}

/// The input of a call under way.
#[derive(Clone, Debug)]
pub struct CallInput {
    traffic: Arc<Traffic>,
    id: CallId,
    /// What may still be sent; closed at the end of the call.
    room: Arc<Semaphore>,
    doing: String,
}

impl CallInput {
    /// Sends input, waiting where the command does not take it.
    #[boxed]
    pub async fn send(&self, bytes: &[u8]) -> Result<(), Error> {
        for piece in bytes.chunks(CHUNK) {
            let permit = self
                .room
                .acquire_many(cost(piece.len()))
                .await
                .map_err(|_closed| self.over())?;
            // Used up; the guest's credit makes new ones.
            permit.forget();
            self.traffic.send(&ToGuest::Input {
                id: self.id,
                data: Data(piece.to_vec()),
            });
        }
        Ok(())
    }

    /// Returns whether the guest has taken all that was sent.
    pub fn is_taken(&self) -> bool {
        self.room.available_permits() == WINDOW as usize
    }

    /// Ends the input.
    pub fn close(&self) {
        self.traffic.send(&ToGuest::Input {
            id: self.id,
            data: Data::default(),
        });
    }

    fn over(&self) -> Error {
        let doing = format!("send input to {}", self.doing);
        match self.traffic.ended() {
            Some(reason) => Error::Ended { doing, reason },
            None => Error::CallEnded { doing },
        }
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.traffic.abandon(self.id);
    }
}
