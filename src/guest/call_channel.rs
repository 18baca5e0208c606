//! One call's channel to the host: chunks out under flow control, messages of the host in.

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::mpsc::UnboundedSender;

use podbay_wire::AskedProgram;
use podbay_wire::CallId;
use podbay_wire::message::Data;
use podbay_wire::message::Stream;
use podbay_wire::message::ToHost;
use podbay_wire::message::WINDOW;
use podbay_wire::message::cost;

/// A message of the host about one call.
#[derive(Debug)]
pub(super) enum HostMessage {
    Credit(u32),
    /// None: the end of the input.
    Input(Vec<u8>),
    Resize {
        rows: u16,
        columns: u16,
    },
    /// Whether the program or write that was asked about may continue.
    Answer {
        question: u32,
        go_on: bool,
    },
    Cancel,
}

/// Both directions of one call. The queues are bounded in fact: sending by credit, receiving by the
/// window that the reader of the stream watches.
#[derive(Debug)]
pub(super) struct CallChannel {
    id: CallId,
    outgoing: UnboundedSender<ToHost>,
    words: UnboundedReceiver<HostMessage>,
    credit: u32,
}

impl CallChannel {
    pub(super) fn new(
        id: CallId,
        outgoing: UnboundedSender<ToHost>,
        words: UnboundedReceiver<HostMessage>,
    ) -> Self {
        Self {
            id,
            outgoing,
            words,
            credit: WINDOW,
        }
    }

    pub(super) fn id(&self) -> CallId {
        self.id
    }

    /// Returns how many bytes the next chunk may have; 0 where even the smallest costs too much.
    pub(super) fn room(&self) -> usize {
        if self.credit < cost(1) {
            0
        } else {
            self.credit as usize
        }
    }

    /// Sends a chunk that fits the room.
    pub(super) fn chunk(&mut self, stream: Stream, data: Vec<u8>) {
        self.credit = self.credit.saturating_sub(cost(data.len()));
        let _ = self.outgoing.send(ToHost::Chunk {
            id: self.id,
            stream,
            data: Data(data),
        });
    }

    /// Asks whether a program may continue.
    pub(super) fn ask(&self, question: u32, program: AskedProgram) {
        let _ = self.outgoing.send(ToHost::Asks {
            id: self.id,
            question,
            program,
        });
    }

    /// Adds the credit of a [`HostMessage::Credit`].
    pub(super) fn add_room(&mut self, bytes: u32) {
        self.credit = self.credit.saturating_add(bytes).min(WINDOW);
    }

    /// Reports that input of this many bytes is consumed. The end of the input took no credit and
    /// returns none.
    pub(super) fn consumed(&self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let _ = self.outgoing.send(ToHost::Credit {
            id: self.id,
            bytes: cost(bytes),
        });
    }

    /// Returns the next message; a host that is gone cancels.
    pub(super) async fn next(&mut self) -> HostMessage {
        self.words.recv().await.unwrap_or(HostMessage::Cancel)
    }
}
