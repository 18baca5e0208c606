//! Bytes between a client and a server, both ways, until both have ended, nothing goes any more, or
//! a rule is withdrawn.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use bytes::BytesMut;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncRead;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWrite;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio_util::either::Either;

use super::attempt::Direction;
use super::attempt::Traffic;
use super::exchange::WITHDRAWN;
use super::gateway::ENDING;
use super::gateway::Shared;
use super::grant::Grant;
use super::head::Heads;
use super::limits::BUFFER;
use super::reach::ServerStream;

/// Carries a tunnel, and ends it once its rule is withdrawn, nothing goes in it any more, or the
/// role ends.
pub(crate) async fn until_cut(
    carrying: impl Future<Output = ()>,
    shared: &Shared,
    grant: &Grant,
    traffic: &Traffic,
) {
    let mut in_force = shared.in_force.clone();
    let idle = shared.limits.idle;
    traffic.activity().touch();
    tokio::select! {
        () = carrying => {}
        () = grant.until_withdrawn(&mut in_force) => traffic.end(WITHDRAWN),
        () = traffic.activity().until_idle(idle) => traffic.end(&idle_for(idle)),
        () = shared.ending.cancelled() => traffic.end(ENDING),
    }
}

/// Why a stream ended in which nothing went any more.
pub(crate) fn idle_for(idle: Duration) -> String {
    format!("cut: nothing went for {idle:?}")
}

/// Returns the client's stream once it is a tunnel, and what was read of it beyond the request;
/// nothing where the client hung up.
pub(crate) async fn client_of(upgrade: OnUpgrade) -> Option<(UnixStream, Bytes)> {
    let parts = upgrade
        .await
        .ok()?
        .downcast::<TokioIo<Heads>>()
        .expect("every client's connection is served over one");
    let (stream, unread) = parts.io.into_inner().into_parts();
    Some((stream, joined(parts.read_buf, &unread)))
}

/// Returns the same of a server that agreed to another protocol.
pub(crate) async fn server_of(upgrade: OnUpgrade) -> Option<(ServerStream, Bytes)> {
    let parts = upgrade
        .await
        .ok()?
        .downcast::<TokioIo<ServerStream>>()
        .expect("every server's connection is made over one");
    Some((parts.io.into_inner(), parts.read_buf))
}

fn joined(first: Bytes, second: &Bytes) -> Bytes {
    let mut both = BytesMut::from(first);
    both.extend_from_slice(second);
    both.freeze()
}

/// The two ends of a tunnel, each with what was read of it already.
pub(crate) struct Tunnel {
    pub client: UnixStream,
    pub from_client: Bytes,
    pub server: ServerStream,
    pub from_server: Bytes,
}

impl Tunnel {
    /// Carries bytes until both ends have said that no more come. An end that has said so still
    /// gets what the other sends.
    pub(crate) async fn carry(self, traffic: &Traffic) -> io::Result<()> {
        let Self {
            mut client,
            from_client,
            server,
            from_server,
        } = self;
        write_first(&mut client, from_server, |n_bytes| {
            traffic.count(Direction::ToClient, n_bytes);
        })
        .await?;
        let count = |n_bytes| traffic.count(Direction::ToServer, n_bytes);
        match server {
            Either::Left(mut server) => {
                write_first(&mut server, from_client, count).await?;
                podbay_relay::both_ways(&client, &server, |direction, n_bytes| {
                    traffic.count(direction_of(direction), n_bytes);
                })
                .await
            }
            Either::Right(mut server) => {
                write_first(&mut server, from_client, count).await?;
                by_frames(client.split(), tokio::io::split(server), traffic).await
            }
        }
    }
}

/// Writes what was read before there was a tunnel.
async fn write_first(
    to: &mut (impl AsyncWrite + Unpin),
    first: Bytes,
    count: impl Fn(usize),
) -> io::Result<()> {
    if !first.is_empty() {
        to.write_all(&first).await?;
        count(first.len());
    }
    Ok(())
}

fn direction_of(direction: podbay_relay::Direction) -> Direction {
    match direction {
        podbay_relay::Direction::ToSecond => Direction::ToServer,
        podbay_relay::Direction::ToFirst => Direction::ToClient,
    }
}

/// Carries bytes of a stream to the user's machine, which is no socket here.
async fn by_frames(
    (from_client, to_client): (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
    (from_server, to_server): (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
    traffic: &Traffic,
) -> io::Result<()> {
    tokio::try_join!(
        carry_one_way(from_client, to_server, |n_bytes| traffic
            .count(Direction::ToServer, n_bytes)),
        carry_one_way(from_server, to_client, |n_bytes| traffic
            .count(Direction::ToClient, n_bytes)),
    )?;
    Ok(())
}

async fn carry_one_way(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    count: impl Fn(usize),
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let n_read = from.read(&mut buffer).await?;
        if n_read == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..n_read]).await?;
        count(n_read);
    }
}
