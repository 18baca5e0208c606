use std::time::Duration;

use futures::SinkExt;
use futures::StreamExt;
use thiserror::Error;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::ReadHalf;
use tokio::io::WriteHalf;
use tokio_util::codec::FramedRead;
use tokio_util::codec::FramedWrite;
use tokio_util::codec::LengthDelimitedCodec;
use tokio_util::sync::CancellationToken;

use podbay_wire::PROTOCOL;
use podbay_wire::frame;
use podbay_wire::keep::FromKeeper;
use podbay_wire::keep::KeeperHello;
use podbay_wire::keep::Kept;
use podbay_wire::keep::Order;
use podbay_wire::keep::ToKeeper;

/// Why a keeper did not do what it was told.
#[derive(Debug, Error)]
pub enum Error {
    #[error("the line to it is broken")]
    Broken(#[source] std::io::Error),
    #[error("it ended: {reason}")]
    Ended { reason: String },
    #[error("it says what no keeper says: {problem}")]
    Protocol { problem: String },
    #[error("it has not answered for {} s", after.as_secs())]
    Late { after: Duration },
    #[error("cancelled")]
    Cancelled,
    #[error("it cannot {doing}: {problem}")]
    Failed { doing: String, problem: String },
}

/// The line to one keeper. One order at a time: an order that is given up takes the line with it,
/// because its answer may still come.
pub(super) struct Line<S> {
    reader: FramedRead<ReadHalf<S>, LengthDelimitedCodec>,
    writer: FramedWrite<WriteHalf<S>, LengthDelimitedCodec>,
    next: u32,
}

impl<S: AsyncRead + AsyncWrite> Line<S> {
    /// Greets the keeper at the other end of a stream just attached.
    pub(super) async fn connect(
        stream: S,
        build: &str,
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<(Self, KeeperHello), Error> {
        let (reader, writer) = tokio::io::split(stream);
        let mut line = Self {
            reader: FramedRead::new(reader, frame::codec()),
            writer: FramedWrite::new(writer, frame::codec()),
            next: 0,
        };
        let greeting = async {
            line.send(&ToKeeper::Hello {
                protocol: PROTOCOL,
                build: build.to_owned(),
            })
            .await?;
            match line.receive().await? {
                FromKeeper::Hello(hello) if hello.protocol == PROTOCOL && hello.build == build => {
                    Ok(hello)
                }
                FromKeeper::Hello(_) => Err(Error::Protocol {
                    problem: "it is of another build".to_owned(),
                }),
                FromKeeper::Closing { reason } => Err(Error::Ended { reason }),
                FromKeeper::Done { .. } => Err(Error::Protocol {
                    problem: "an answer comes before its hello".to_owned(),
                }),
            }
        };
        let hello = bounded(greeting, within, cancel).await?;
        Ok((line, hello))
    }

    /// Gives one order and waits for what comes of it.
    pub(super) async fn ask(
        &mut self,
        order: Order,
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<Kept, Error> {
        self.next = self.next.wrapping_add(1);
        let id = self.next;
        let asked = async {
            self.send(&ToKeeper::Order { id, order }).await?;
            match self.receive().await? {
                FromKeeper::Done { id: answered, kept } if answered == id => Ok(kept),
                FromKeeper::Closing { reason } => Err(Error::Ended { reason }),
                _ => Err(Error::Protocol {
                    problem: "it answers what was not asked".to_owned(),
                }),
            }
        };
        match bounded(asked, within, cancel).await? {
            Kept::Failed { doing, problem } => Err(Error::Failed { doing, problem }),
            kept @ (Kept::Found(_)
            | Kept::Turn { .. }
            | Kept::Undo { .. }
            | Kept::Review { .. }
            | Kept::Git { .. }) => Ok(kept),
        }
    }

    async fn send(&mut self, message: &ToKeeper) -> Result<(), Error> {
        let bytes = frame::encode(message).map_err(|error| Error::Protocol {
            problem: error.to_string(),
        })?;
        self.writer.send(bytes).await.map_err(Error::Broken)
    }

    async fn receive(&mut self) -> Result<FromKeeper, Error> {
        match self.reader.next().await {
            Some(Ok(bytes)) => frame::decode(&bytes).map_err(|error| Error::Protocol {
                problem: error.to_string(),
            }),
            Some(Err(error)) => Err(Error::Broken(error)),
            None => Err(Error::Ended {
                reason: "its container is gone".to_owned(),
            }),
        }
    }
}

async fn bounded<T>(
    asked: impl Future<Output = Result<T, Error>>,
    within: Duration,
    cancel: &CancellationToken,
) -> Result<T, Error> {
    tokio::select! {
        outcome = tokio::time::timeout(within, asked) => outcome.unwrap_or(Err(Error::Late { after: within })),
        () = cancel.cancelled() => Err(Error::Cancelled),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;
    use tokio::io::DuplexStream;

    use super::*;
    use podbay_wire::keep::FindOrder;
    use podbay_wire::keep::FindResult;

    const SOON: Duration = Duration::from_secs(20);

    fn find() -> Order {
        Order::Find(FindOrder {
            budget_ms: 1,
            ..FindOrder::default()
        })
    }

    fn hello() -> FromKeeper {
        FromKeeper::Hello(KeeperHello {
            protocol: PROTOCOL,
            build: "b".to_owned(),
            workspace: (1, 2),
            keeps: None,
            copy: None,
        })
    }

    /// Talks to a keeper that says these words, whatever it hears.
    async fn told(words: Vec<FromKeeper>) -> Result<Kept, Error> {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let cancel = CancellationToken::new();
        let mut keeper = FramedWrite::new(theirs, frame::codec());
        for word in words {
            keeper
                .send(frame::encode(&word).expect("short"))
                .await
                .expect("there is room");
        }
        // It says no more, and hears on.
        keeper.get_mut().shutdown().await.expect("shut");
        let (mut line, _): (Line<DuplexStream>, _) =
            Line::connect(ours, "b", SOON, &cancel).await?;
        line.ask(find(), SOON, &cancel).await
    }

    #[tokio::test]
    async fn an_answer_is_that_of_the_order() {
        let done = |id| FromKeeper::Done {
            id,
            kept: Kept::Found(FindResult::default()),
        };
        assert_eq!(
            told(vec![hello(), done(1)]).await.expect("found"),
            Kept::Found(FindResult::default())
        );
        let failed = Kept::Failed {
            doing: "look".to_owned(),
            problem: "full".to_owned(),
        };
        for (words, expected) in [
            (vec![], "its container is gone"),
            (vec![hello()], "its container is gone"),
            (vec![hello(), done(2)], "what was not asked"),
            (vec![hello(), hello()], "what was not asked"),
            (vec![done(1)], "before its hello"),
            (
                vec![FromKeeper::Closing {
                    reason: "old".to_owned(),
                }],
                "it ended: old",
            ),
            (
                vec![
                    hello(),
                    FromKeeper::Done {
                        id: 1,
                        kept: failed,
                    },
                ],
                "it cannot look: full",
            ),
            (
                vec![FromKeeper::Hello(KeeperHello {
                    protocol: PROTOCOL,
                    build: "c".to_owned(),
                    workspace: (1, 2),
                    keeps: None,
                    copy: None,
                })],
                "another build",
            ),
        ] {
            let error = told(words).await.expect_err(expected).to_string();
            assert!(error.contains(expected), "{expected}: {error}");
        }
    }

    #[tokio::test]
    async fn a_keeper_that_says_nothing_is_not_waited_for() {
        let (ours, _theirs) = tokio::io::duplex(1 << 16);
        let at_once = Duration::ZERO;
        let error = Line::connect(ours, "b", at_once, &CancellationToken::new())
            .await
            .map(drop)
            .expect_err("nobody answers");
        assert!(
            matches!(error, Error::Late { after } if after == at_once),
            "{error:?}"
        );
    }
}
