//! What the guest says of a connection before its first byte, where it says anything.

use std::io;

use bytes::Buf;
use bytes::BytesMut;
use podbay_wire::EgressOpening;
use podbay_wire::EgressPurpose;
use podbay_wire::MAX_OPENING;
use podbay_wire::OPENING;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;

use super::limits::PROGRAM;

/// The byte [`OPENING`], and two of a length.
const PREFIX: usize = 3;

/// Reads the opening of a connection, and returns what was read behind it. A connection without
/// one is for the proxy; one that ends before its first byte is an error.
pub(crate) async fn read(stream: &mut UnixStream) -> io::Result<(EgressOpening, BytesMut)> {
    let mut read = BytesMut::with_capacity(4096);
    more(stream, &mut read).await?;
    if read[0] != OPENING {
        let opening = EgressOpening {
            purpose: EgressPurpose::Proxy,
            program: None,
        };
        return Ok((opening, read));
    }
    while read.len() < PREFIX {
        more(stream, &mut read).await?;
    }
    let length = usize::from(u16::from_be_bytes([read[1], read[2]]));
    if length > MAX_OPENING {
        return Err(io::ErrorKind::InvalidData.into());
    }
    while read.len() < PREFIX + length {
        more(stream, &mut read).await?;
    }
    read.advance(PREFIX);
    let mut opening: EgressOpening = serde_json::from_slice(&read.split_to(length))?;
    opening.program = opening.program.map(|program| shown(&program));
    Ok((opening, read))
}

async fn more(stream: &mut UnixStream, read: &mut BytesMut) -> io::Result<()> {
    match stream.read_buf(read).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

/// The sandbox chooses the name.
fn shown(program: &str) -> String {
    program
        .chars()
        .take(PROGRAM)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}
