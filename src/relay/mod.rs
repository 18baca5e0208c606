//! Bytes between two sockets, both ways, until both have ended. The guest's proxy and the gateway
//! carry what they do not look at with it.
//!
//! What comes in small pieces is copied, and a connection on which nothing goes holds no buffer.
//! What comes in large ones is spliced: the kernel moves pages from one socket to the other, and
//! not a byte is copied here. Start with [`both_ways`].

mod copy;
mod pipe;
mod socket;
mod splice;
#[cfg(test)]
mod tests;

use std::io;

pub use socket::Socket;

/// Where bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    ToSecond,
    ToFirst,
}

/// Carries bytes until both ends have said that no more come. An end that has said so still gets
/// what the other sends. `count` gets each number of bytes that has gone.
///
/// What was carried so far is cut where the future is dropped.
pub async fn both_ways<A: Socket, B: Socket>(
    first: &A,
    second: &B,
    count: impl Fn(Direction, usize) + Sync,
) -> io::Result<()> {
    tokio::try_join!(
        one_way(first, second, |n_bytes| count(Direction::ToSecond, n_bytes)),
        one_way(second, first, |n_bytes| count(Direction::ToFirst, n_bytes)),
    )?;
    Ok(())
}

async fn one_way<A: Socket, B: Socket>(
    from: &A,
    to: &B,
    count: impl Fn(usize) + Sync,
) -> io::Result<()> {
    let mut may_splice = true;
    loop {
        let n_read = copy::once(from, to, &count).await?;
        if n_read == 0 {
            break;
        }
        if may_splice && n_read == copy::CHUNK {
            match splice::while_it_comes(from, to, &count).await? {
                splice::Outcome::Ended => break,
                splice::Outcome::Quiet | splice::Outcome::NoPipe => {}
                splice::Outcome::Unsupported => may_splice = false,
            }
        }
    }
    socket::end(to)
}
