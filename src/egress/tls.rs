//! The first message of a TLS client: is it one, and for which name?

use std::io;

use rustls::server::Acceptor;
use tokio::io::AsyncRead;
use tokio::io::AsyncReadExt;

use super::host_name::HostName;
use super::limits::Limits;

/// The kind of record and of message that TLS begins with, and the extension with which a client
/// hides the name (RFC 9849).
pub(crate) const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;

/// Lengths of a record's header, and of what stands in a `ClientHello` before its first part of
/// variable length: version and random.
const RECORD_HEADER: usize = 5;
const BEFORE_SESSION: usize = 2 + 32;

/// A fatal alert `access_denied` (RFC 8446, section 6.2), which clients show by its name.
pub(crate) const ACCESS_DENIED: [u8; 7] = [21, 3, 3, 0, 2, 2, 49];

/// Why a stream is not carried.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotCarried {
    #[error("what came through the tunnel is no TLS, and no rule with `raw` allows anything else")]
    NotTls,
    #[error("the TLS client names no host, so that nothing shows where it goes")]
    NoName,
    #[error("the TLS client names `{0}`, and the tunnel is for another host")]
    OtherName(String),
    #[error(
        "the TLS client hides the name of the host (Encrypted ClientHello); turn that off in the client"
    )]
    Encrypted,
    #[error("the TLS client's first message is too long")]
    TooLong,
    #[error("the client sent no TLS within {0} s")]
    TooSlow(u64),
    #[error("the client closed the tunnel before its first message")]
    Closed,
}

impl NotCarried {
    /// Returns whether the client speaks TLS, so that it understands an alert.
    pub(crate) fn is_of_tls(&self) -> bool {
        matches!(
            self,
            Self::NoName | Self::OtherName(_) | Self::Encrypted | Self::TooLong
        )
    }
}

/// Reads up to the end of a `ClientHello` for this name, and returns what was read, to be sent on
/// as it is.
pub(crate) async fn read_hello(
    from: &mut (impl AsyncRead + Unpin),
    mut read: Vec<u8>,
    name: &HostName,
    limits: &Limits,
) -> Result<Vec<u8>, NotCarried> {
    let reading = async {
        let mut acceptor = Acceptor::default();
        let mut n_seen = 0;
        loop {
            while let Some(unseen) = read.get(n_seen..).filter(|unseen| !unseen.is_empty()) {
                n_seen += acceptor
                    .read_tls(&mut io::Cursor::new(unseen))
                    .map_err(|_| NotCarried::TooLong)?;
                match acceptor.accept() {
                    Ok(Some(accepted)) => {
                        check(accepted.client_hello().server_name(), &read, name)?;
                        return Ok(());
                    }
                    Ok(None) => {}
                    Err(_) => return Err(NotCarried::NotTls),
                }
            }
            if read.first().is_some_and(|&kind| kind != HANDSHAKE) {
                return Err(NotCarried::NotTls);
            }
            if read.len() >= limits.hello {
                return Err(NotCarried::TooLong);
            }
            let room = limits.hello - read.len();
            match (&mut *from).take(room as u64).read_buf(&mut read).await {
                Ok(0) | Err(_) => return Err(NotCarried::Closed),
                Ok(_) => {}
            }
        }
    };
    let in_time = tokio::time::timeout(limits.hello_time, reading).await;
    in_time.unwrap_or(Err(NotCarried::TooSlow(limits.hello_time.as_secs())))?;
    Ok(read)
}

/// rustls has read the message; what it does not tell is whether the name in it is the one that
/// counts.
fn check(named: Option<&str>, read: &[u8], name: &HostName) -> Result<(), NotCarried> {
    let extensions = extensions_of(&handshake_of(read)).ok_or(NotCarried::NotTls)?;
    if extensions.contains(&ENCRYPTED_CLIENT_HELLO) {
        return Err(NotCarried::Encrypted);
    }
    let named = named.ok_or(NotCarried::NoName)?;
    match HostName::parse(named) {
        Ok(found) if found == *name => Ok(()),
        _ => Err(NotCarried::OtherName(
            named.chars().take(super::limits::SHOWN).collect(),
        )),
    }
}

/// Returns the handshake's bytes out of the records that they came in.
fn handshake_of(mut records: &[u8]) -> Vec<u8> {
    let mut handshake = Vec::new();
    while let [HANDSHAKE, _, _, high, low, rest @ ..] = records {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        handshake.extend_from_slice(&rest[..length.min(rest.len())]);
        records = records.get(RECORD_HEADER + length..).unwrap_or_default();
    }
    handshake
}

/// Returns the kinds of the extensions of a `ClientHello` (RFC 8446, section 4.1.2), or nothing
/// where it ends too early.
fn extensions_of(handshake: &[u8]) -> Option<Vec<u16>> {
    let mut hello = Reader(handshake);
    if hello.bytes(1)? != [CLIENT_HELLO] {
        return None;
    }
    let mut hello = Reader(hello.vector(3)?);
    hello.bytes(BEFORE_SESSION)?;
    let (_session, _suites, _compressions) = (hello.vector(1)?, hello.vector(2)?, hello.vector(1)?);
    let mut kinds = Vec::new();
    if hello.0.is_empty() {
        return Some(kinds);
    }
    let mut extensions = Reader(hello.vector(2)?);
    while !extensions.0.is_empty() {
        kinds.push(u16::from_be_bytes(extensions.bytes(2)?.try_into().ok()?));
        extensions.vector(2)?;
    }
    Some(kinds)
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, n_bytes: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(n_bytes)?;
        self.0 = rest;
        Some(bytes)
    }

    /// Returns what has its length before it, in so many bytes.
    fn vector(&mut self, n_bytes: usize) -> Option<&'a [u8]> {
        let length = self
            .bytes(n_bytes)?
            .iter()
            .fold(0, |length, &byte| length << 8 | usize::from(byte));
        self.bytes(length)
    }
}

#[cfg(test)]
pub(crate) mod tests;
