//! What is said between the controller and a gateway that runs: rules and flushes there, attempts
//! and answers back, and both ways what goes to the user's own machine.

use std::sync::Arc;
use std::time::Duration;

use podbay_egress::HostStreams;
use podbay_event::Kind;
use podbay_wire::EgressCommand;
use podbay_wire::EgressEvent;
use podbay_wire::EgressHostFrame;
use podbay_wire::EgressHostPart;
use tokio::sync::mpsc;

use super::gateway::Ended;
use super::gateway::Inner;
use super::gateway::Wanted;
use super::line::Commands;
use super::line::Events;
use super::line::Line;
use super::own_machine;
use super::own_machine::Ports;

/// For a gateway to tell of the streams that its end cut.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(2);

/// Frames of streams to the user's machine that wait to be told.
const FRAMES: usize = 16;

impl Inner {
    /// Speaks and listens at the same time: a gateway that waits to be read may not read.
    pub(super) async fn talk(&self, line: &mut Line) -> Ended {
        let (outgoing, frames) = mpsc::channel(FRAMES);
        let streams = HostStreams::new(outgoing);
        let stuck = async {
            self.ending.cancelled().await;
            tokio::time::sleep(LAST_WORDS).await;
        };
        let ended = tokio::select! {
            biased;
            ended = self.tell_all(&mut line.commands, frames, &streams) => ended,
            ended = self.hear_all(&mut line.events, &streams) => ended,
            () = stuck => Ended::Told,
        };
        streams.close();
        ended
    }

    async fn tell_all(
        &self,
        commands: &mut Commands,
        mut frames: mpsc::Receiver<EgressHostFrame>,
        streams: &HostStreams,
    ) -> Ended {
        enum Next {
            Ending,
            Changed,
            Frame(EgressHostFrame),
        }
        let mut wanted = self.wanted.subscribe();
        wanted.mark_changed();
        let mut told = Wanted::default();
        loop {
            let next = tokio::select! {
                biased;
                () = self.ending.cancelled() => Next::Ending,
                // The sender is ours.
                _ = wanted.changed() => Next::Changed,
                Some(frame) = frames.recv() => Next::Frame(frame),
            };
            let said = match next {
                Next::Ending => return Ended::Told,
                Next::Changed => {
                    let now = wanted.borrow_and_update().clone();
                    let ports = Ports::of(&now.rules);
                    streams.retain(|port| ports.allows(port));
                    let said = self.tell(commands, &told, &now).await;
                    told = now;
                    said
                }
                Next::Frame(frame) => commands.tell(&EgressCommand::Host { frame }).await,
            };
            if let Err(error) = said {
                return Ended::Lost(error.to_string());
            }
        }
    }

    async fn hear_all(&self, events: &mut Events, streams: &Arc<HostStreams>) -> Ended {
        loop {
            match events.next().await {
                Some(Ok(event)) => self.hear(event, Some(streams)),
                Some(Err(problem)) => return Ended::Lost(problem),
                None => return Ended::Lost("it is gone".to_owned()),
            }
        }
    }

    async fn tell(&self, line: &mut Commands, told: &Wanted, now: &Wanted) -> std::io::Result<()> {
        if told.generation != now.generation {
            let upstream = self.spec.network().upstream.clone();
            line.tell(&EgressCommand::Rules {
                generation: now.generation,
                rules: now.rules.clone(),
                upstream,
            })
            .await?;
        }
        if told.flush != now.flush {
            line.tell(&EgressCommand::Flush { id: now.flush }).await?;
        }
        Ok(())
    }

    /// `streams`: those to the user's machine, as long as there are any.
    pub(super) fn hear(&self, event: EgressEvent, streams: Option<&Arc<HostStreams>>) {
        match event {
            EgressEvent::Host { frame } => {
                if let Some(streams) = streams {
                    self.hear_of_host(frame, streams);
                }
            }
            EgressEvent::Attempt(attempt) => self.attempts.take(attempt, &self.sink),
            EgressEvent::RulesSet { generation } => self
                .reached
                .send_modify(|reached| reached.generation = reached.generation.max(generation)),
            EgressEvent::Flushed { id } => {
                self.attempts.tell_rest(&self.sink);
                self.reached
                    .send_modify(|reached| reached.flush = reached.flush.max(id));
            }
            // We parsed them before they were sent.
            EgressEvent::RulesRefused { problem } => {
                let message = format!("the gateway allows nothing any more: {problem}");
                (self.sink)(Kind::Warning { message }.into());
            }
            EgressEvent::Ready { .. } => {}
        }
    }

    fn hear_of_host(&self, frame: EgressHostFrame, streams: &Arc<HostStreams>) {
        if let EgressHostPart::Open { port } = frame.part {
            let ports = Ports::of(&self.wanted.borrow().rules);
            own_machine::open(streams, frame.stream, port, &ports);
        } else {
            streams.hear(frame);
        }
    }
}
