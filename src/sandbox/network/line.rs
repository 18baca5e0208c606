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

pub(super) struct Line {
    events: FramedRead<ReadHalf<Attached>, LinesCodec>,
    commands: WriteHalf<Attached>,
}

impl Line {
    pub(super) fn new(stream: Attached) -> Self {
        let (read, commands) = tokio::io::split(stream);
        Self {
            events: FramedRead::new(read, LinesCodec::new_with_max_length(MAX_ATTEMPT_LINE)),
            commands,
        }
    }

    pub(super) async fn tell(&mut self, command: &EgressCommand) -> io::Result<()> {
        let mut line = serde_json::to_vec(command).map_err(io::Error::other)?;
        line.push(b'\n');
        self.commands.write_all(&line).await?;
        self.commands.flush().await
    }

    /// Returns what comes next; nothing once it has ended. Nothing is lost when this is dropped.
    pub(super) async fn next(&mut self) -> Option<Result<EgressEvent, String>> {
        let line = self.events.next().await?;
        Some(
            line.map_err(|error| error.to_string())
                .and_then(|line| serde_json::from_str(&line).map_err(|error| error.to_string())),
        )
    }

    /// Says that no more comes, upon which the gateway ends.
    pub(super) async fn end(&mut self) {
        // One that is gone has ended.
        drop(self.commands.shutdown().await);
    }
}
