//! The lines between the controller and a gateway that runs.

use std::io;

use futures::StreamExt;
use podbay_engine::Attached;
use podbay_wire::EgressCommand;
use podbay_wire::EgressEvent;
use podbay_wire::MAX_ATTEMPT_LINE;
use tokio::io::AsyncWriteExt;
use tokio::io::ReadHalf;
use tokio::io::WriteHalf;
use tokio_util::codec::FramedRead;
use tokio_util::codec::LinesCodec;

/// Both directions, which are used at the same time: either end may wait for the other to read.
pub(super) struct Line {
    pub(super) events: Events,
    pub(super) commands: Commands,
}

pub(super) struct Events(FramedRead<ReadHalf<Attached>, LinesCodec>);

pub(super) struct Commands(WriteHalf<Attached>);

impl Line {
    pub(super) fn new(stream: Attached) -> Self {
        let (read, commands) = tokio::io::split(stream);
        let events = FramedRead::new(read, LinesCodec::new_with_max_length(MAX_ATTEMPT_LINE));
        Self {
            events: Events(events),
            commands: Commands(commands),
        }
    }
}

impl Events {
    /// Returns what comes next; nothing once it has ended. Nothing is lost when this is dropped.
    pub(super) async fn next(&mut self) -> Option<Result<EgressEvent, String>> {
        let line = self.0.next().await?;
        Some(
            line.map_err(|error| error.to_string())
                .and_then(|line| serde_json::from_str(&line).map_err(|error| error.to_string())),
        )
    }
}

impl Commands {
    pub(super) async fn tell(&mut self, command: &EgressCommand) -> io::Result<()> {
        let mut line = serde_json::to_vec(command).map_err(io::Error::other)?;
        line.push(b'\n');
        self.0.write_all(&line).await?;
        self.0.flush().await
    }

    /// Says that no more comes, upon which the gateway ends.
    pub(super) async fn end(&mut self) {
        // One that is gone has ended.
        drop(self.0.shutdown().await);
    }
}
