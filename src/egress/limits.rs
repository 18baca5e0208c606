//! Every bound of the gateway. What is behind it is untrusted on both sides, and each bound is what
//! one of them can make it hold or wait for.

use std::time::Duration;

use podbay_wire::HOST_CHUNK;

/// The bounds, as fields so that tests need not wait for them.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a request's head. Larger ones exist for cookies alone, which tools that install
    /// things do not send.
    pub head: usize,
    /// From a head's first byte (of a new connection: from its start) to its last. Clients send a
    /// head at once.
    pub head_time: Duration,
    /// Bytes up to the end of a `ClientHello`: with a post-quantum key and a ticket it has some 2
    /// KiB.
    pub hello: usize,
    /// From the answer to a CONNECT to the end of the `ClientHello`, which clients send at once.
    pub hello_time: Duration,
    /// For the addresses of a name; resolvers give up after five seconds of their own.
    pub resolve_time: Duration,
    /// Addresses of one answer that are looked at. The largest services have eight of each family.
    pub addresses: usize,
    /// For a connection, over all addresses together. A host that is up answers in one second, or
    /// in three after a lost packet.
    pub dial_time: Duration,
    /// Look-ups and dials at once, so that a sandbox cannot use the gateway to flood a network;
    /// others wait within `dial_time`.
    pub dials: usize,
    /// Without a byte in either direction, between two requests too. Servers keep connections for
    /// one to five minutes.
    pub idle: Duration,
    /// Connections of clients. Each costs two descriptors, of which an engine gives a container a
    /// million.
    pub connections: usize,
    /// Bytes of an answer's head. Large cookies are sent by servers that do not matter here; twice
    /// what hyper's clients usually see.
    pub answer_head: usize,
    /// For the tunnels to end once the role ends.
    pub end: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head: 16 * 1024,
            head_time: Duration::from_secs(10),
            hello: 16 * 1024,
            hello_time: Duration::from_secs(10),
            resolve_time: Duration::from_secs(5),
            addresses: 16,
            dial_time: Duration::from_secs(10),
            dials: 128,
            idle: Duration::from_secs(5 * 60),
            connections: 1024,
            answer_head: 64 * 1024,
            end: Duration::from_secs(2),
        }
    }
}

/// Header lines of a head, of either side.
pub(crate) const HEADERS: usize = 100;

/// The buffer for one direction of a stream to the user's machine, which goes in frames of this
/// size. Other tunnels hold none while nothing goes.
pub(crate) const BUFFER: usize = HOST_CHUNK;

/// Attempts that are open or not yet written: one for each connection, and as many that wait. At
/// this bound requests wait; none goes unrecorded.
pub const ATTEMPTS: usize = 2 * 1024;

/// Bytes of what a client wrote that are shown in an answer or an attempt.
pub(crate) const SHOWN: usize = 100;

/// Letters of the name of a program.
pub(crate) const PROGRAM: usize = 64;

/// Letters of a reason in an attempt; a rule with many ports is long, and what a resolver says may
/// be.
pub(crate) const REASON: usize = 500;
