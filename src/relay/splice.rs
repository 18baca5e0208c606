//! Bytes that are spliced, for as long as they come.

use std::io;
use std::time::Duration;

use tokio::io::Interest;
use tokio::time::timeout;

use crate::Socket;
use crate::pipe::Pipe;

/// Without a byte for so long, a connection gives its pipe to others.
const QUIET: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// No more bytes come.
    Ended,
    /// None comes at the moment.
    Quiet,
    NoPipe,
    /// The kernel cannot do it with these sockets. No byte is lost by that.
    Unsupported,
}

pub(crate) async fn while_it_comes<A: Socket, B: Socket>(
    from: &A,
    to: &B,
    count: &(impl Fn(usize) + Sync),
) -> io::Result<Outcome> {
    let Some(pipe) = Pipe::open() else {
        return Ok(Outcome::NoPipe);
    };
    loop {
        let filling = from.when(Interest::READABLE, || pipe.fill(from));
        let mut n_held = match timeout(QUIET, filling).await {
            Err(_) => return Ok(Outcome::Quiet),
            Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidInput => {
                return Ok(Outcome::Unsupported);
            }
            Ok(filled) => filled?,
        };
        if n_held == 0 {
            return Ok(Outcome::Ended);
        }
        while n_held > 0 {
            let n_sent = to
                .when(Interest::WRITABLE, || pipe.empty(to, n_held))
                .await?;
            count(n_sent);
            n_held -= n_sent;
        }
    }
}
