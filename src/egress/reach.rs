//! A connection to a host that the rules allow: its addresses are looked at, and one of those that
//! were looked at is dialled.

use std::io;
use std::net::IpAddr;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use podbay_wire::EgressUpstream;
use podbay_wire::HOST_MACHINE;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::io::DuplexStream;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio::time::timeout_at;
use tokio_util::either::Either;

use super::address::Zone;
use super::address::zone;
use super::host_name::HostName;
use super::host_streams::HostStreams;
use super::limits::Limits;
use super::resolve::Resolve;

/// Opens connections. Tests have one that leads public addresses to servers of their own, so that
/// no address is ever looked at less strictly.
pub trait Dial: Send + Sync {
    fn dial(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>>;
}

/// Dials the address itself.
pub struct Tcp;

impl Dial for Tcp {
    fn dial(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>> {
        Box::pin(async move {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            Ok(stream)
        })
    }
}

/// A connection to a server, or to the user's own machine.
pub(crate) type ServerStream = Either<TcpStream, DuplexStream>;

/// Looks names up and dials.
pub(crate) struct Reach {
    resolve: Arc<dyn Resolve>,
    dial: Arc<dyn Dial>,
    host: Arc<HostStreams>,
    limits: Limits,
    at_once: Semaphore,
}

/// What is asked for; a rule allows it by its name.
pub(crate) struct Wanted<'a> {
    pub host: &'a HostName,
    pub port: u16,
    /// Whether it may lie in a private network.
    pub private: bool,
    pub upstream: Option<&'a EgressUpstream>,
}

pub(crate) struct Reached {
    pub stream: ServerStream,
    /// Whether its address is that of a private network.
    pub is_private: bool,
}

/// Why there is no connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unreached {
    /// Its addresses may not be reached.
    Denied(String),
    /// It could not be reached.
    Failed(String),
    TimedOut(String),
}

impl Reach {
    pub(crate) fn new(
        resolve: Arc<dyn Resolve>,
        dial: Arc<dyn Dial>,
        host: Arc<HostStreams>,
        limits: Limits,
    ) -> Self {
        Self {
            resolve,
            dial,
            host,
            limits,
            at_once: Semaphore::new(limits.dials),
        }
    }

    pub(crate) async fn reach(&self, wanted: &Wanted<'_>) -> Result<Reached, Unreached> {
        let until = Instant::now() + self.limits.dial_time;
        let Ok(turn) = timeout_at(until, self.at_once.acquire()).await else {
            return Err(Unreached::TimedOut(format!(
                "{} other hosts are being looked up or dialled",
                self.limits.dials
            )));
        };
        let _turn = turn.expect("it is never closed");
        if wanted.host.as_str() == HOST_MACHINE {
            return self.own_machine(wanted.port, until).await;
        }
        if let Some(upstream) = wanted.upstream {
            return self.through(upstream, wanted, until).await;
        }
        let (addresses, is_private) = self.addresses(wanted).await?;
        let stream = self.dial_one(&addresses, wanted.port, until).await?;
        Ok(Reached {
            stream: Either::Left(stream),
            is_private,
        })
    }

    /// Reaches a port of the user's machine, whose name is never resolved.
    async fn own_machine(&self, port: u16, until: Instant) -> Result<Reached, Unreached> {
        match timeout_at(until, self.host.open(port)).await {
            Ok(Ok(stream)) => Ok(Reached {
                stream: Either::Right(stream),
                is_private: false,
            }),
            Ok(Err(reason)) => Err(Unreached::Failed(reason)),
            Err(_) => Err(Unreached::TimedOut("it did not answer".to_owned())),
        }
    }

    /// Returns the addresses of a name that may be dialled. Public ones come alone where there are
    /// any, since a name that has both shows the Internet something else than those inside.
    async fn addresses(&self, wanted: &Wanted<'_>) -> Result<(Vec<IpAddr>, bool), Unreached> {
        let found = self.resolve(wanted.host).await?;
        let of = |wanted: Zone| {
            found
                .iter()
                .copied()
                .filter(|&address| zone(address) == wanted)
                .collect::<Vec<_>>()
        };
        let (public, private) = (of(Zone::Public), of(Zone::Private));
        match (public.is_empty(), private.is_empty(), wanted.private) {
            (false, _, _) => Ok((public, false)),
            (true, false, true) => Ok((private, true)),
            (true, false, false) => Err(Unreached::Denied(format!(
                "its address {} is one of a private network, which only a rule with `private` reaches",
                private[0]
            ))),
            (true, true, _) => Err(Unreached::Denied(format!(
                "its address {} is never reached",
                found[0]
            ))),
        }
    }

    /// Returns at least one address, those of IPv4 first: many containers have no route for the
    /// others.
    async fn resolve(&self, host: &HostName) -> Result<Vec<IpAddr>, Unreached> {
        let looked_up = tokio::time::timeout(self.limits.resolve_time, self.resolve.resolve(host));
        let mut found = match looked_up.await {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => {
                return Err(Unreached::Failed(format!(
                    "its name was not resolved: {error}"
                )));
            }
            Err(_) => {
                return Err(Unreached::TimedOut(format!(
                    "its name was not resolved within {:?}",
                    self.limits.resolve_time
                )));
            }
        };
        found.truncate(self.limits.addresses);
        found.sort_by_key(IpAddr::is_ipv6);
        if found.is_empty() {
            Err(Unreached::Failed(
                "there is no such name, or it has no address".to_owned(),
            ))
        } else {
            Ok(found)
        }
    }

    /// Dials one address after the other; each has its part of the time that is left.
    async fn dial_one(
        &self,
        addresses: &[IpAddr],
        port: u16,
        until: Instant,
    ) -> Result<TcpStream, Unreached> {
        let mut problem = Unreached::TimedOut("it did not answer".to_owned());
        for (at, &address) in addresses.iter().enumerate() {
            let left = until.saturating_duration_since(Instant::now());
            let share = left
                / u32::try_from(addresses.len() - at)
                    .unwrap_or(u32::MAX)
                    .min(4);
            match tokio::time::timeout(share, self.dial.dial(SocketAddr::new(address, port))).await
            {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => problem = Unreached::Failed(format!("{address}: {error}")),
                Err(_) => {
                    problem = Unreached::TimedOut(format!(
                        "{address} did not answer within {}",
                        seconds(share)
                    ));
                }
            }
        }
        Err(problem)
    }

    /// Asks the host's own proxy for a tunnel. It is the user's, so that its address may be any.
    async fn through(
        &self,
        upstream: &EgressUpstream,
        wanted: &Wanted<'_>,
        until: Instant,
    ) -> Result<Reached, Unreached> {
        let failed = |problem: String| {
            Unreached::Failed(format!(
                "the proxy {}:{}: {problem}",
                upstream.host, upstream.port
            ))
        };
        let addresses = if let Ok(address) = IpAddr::from_str(&upstream.host) {
            vec![address]
        } else {
            self.resolve(
                &HostName::parse(&upstream.host).map_err(|error| failed(error.to_string()))?,
            )
            .await?
        };
        let mut stream = self.dial_one(&addresses, upstream.port, until).await?;
        let asked = timeout_at(until, ask(&mut stream, wanted, self.limits.answer_head)).await;
        match asked {
            Ok(Ok(200..300)) => Ok(Reached {
                stream: Either::Left(stream),
                is_private: false,
            }),
            Ok(Ok(status)) => Err(failed(format!("it answered {status}"))),
            Ok(Err(error)) => Err(failed(error.to_string())),
            Err(_) => Err(Unreached::TimedOut(format!(
                "the proxy {}:{} did not answer",
                upstream.host, upstream.port
            ))),
        }
    }
}

/// Asks a proxy for a tunnel and returns the status of its answer. No byte of what comes behind the
/// answer is read.
async fn ask(stream: &mut TcpStream, wanted: &Wanted<'_>, most: usize) -> io::Result<u16> {
    let (host, port) = (wanted.host, wanted.port);
    stream
        .write_all(
            format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n").as_bytes(),
        )
        .await?;
    let mut head = Vec::new();
    let mut seen = [0; 1024];
    loop {
        let n_seen = stream.peek(&mut seen).await?;
        if n_seen == 0 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "it closed the connection",
            ));
        }
        let before = head.len();
        head.extend_from_slice(&seen[..n_seen]);
        let end = head
            .windows(4)
            .position(|window| window == b"\r\n\r\n")
            .map(|at| at + 4);
        head.truncate(end.unwrap_or(head.len()));
        stream.read_exact(&mut seen[..head.len() - before]).await?;
        if end.is_some() {
            return status_of(&head);
        }
        if head.len() > most {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the head of its answer is too long",
            ));
        }
    }
}

fn status_of(head: &[u8]) -> io::Result<u16> {
    let mut headers = [httparse::EMPTY_HEADER; super::limits::HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let bad = || io::Error::new(io::ErrorKind::InvalidData, "its answer is no HTTP");
    response.parse(head).map_err(|_| bad())?;
    response.code.ok_or_else(bad)
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
