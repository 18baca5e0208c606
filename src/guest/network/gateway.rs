//! Connections to the gateway's socket, each with what it is for.

use std::io;
use std::path::Path;
use std::time::Duration;

use podbay_wire::EgressName;
use podbay_wire::EgressOpening;
use podbay_wire::EgressPurpose;
use podbay_wire::MAX_NAME_PORTS;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::time::Instant;
use tokio::time::timeout;

/// For a gateway that ended to be there again.
const PATIENCE: Duration = Duration::from_secs(3);

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(50);

/// For the answer about a name, which the gateway has at once. Resolvers wait five seconds.
const ANSWER: Duration = Duration::from_secs(3);

/// Most bytes of that answer: six for each port, and the words around them.
const MAX_ANSWER: u64 = 8 * MAX_NAME_PORTS as u64;

/// Connects for a purpose. A gateway that ended is started anew, and takes the socket over.
pub(super) async fn connect(
    socket: &Path,
    purpose: EgressPurpose,
    program: Option<String>,
) -> io::Result<UnixStream> {
    let end = Instant::now() + PATIENCE;
    let mut stream = loop {
        match UnixStream::connect(socket).await {
            Err(error)
                if error.kind() == io::ErrorKind::ConnectionRefused && Instant::now() < end =>
            {
                tokio::time::sleep(PAUSE).await;
            }
            connected => break connected?,
        }
    };
    let opening = EgressOpening { purpose, program };
    let bytes = opening.to_bytes().ok_or(io::ErrorKind::InvalidInput)?;
    stream.write_all(&bytes).await?;
    Ok(stream)
}

/// Returns the ports of a name that may be reached: none where no rule allows it, or where there is
/// no gateway.
pub(super) async fn ports_of(
    socket: &Path,
    host: &str,
    program: Option<String>,
) -> io::Result<Vec<u16>> {
    timeout(ANSWER, ask(socket, host, program))
        .await
        .unwrap_or(Err(io::ErrorKind::TimedOut.into()))
}

async fn ask(socket: &Path, host: &str, program: Option<String>) -> io::Result<Vec<u16>> {
    let host = host.to_owned();
    let mut stream = match connect(socket, EgressPurpose::Name { host }, program).await {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        connected => connected?.take(MAX_ANSWER),
    };
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(serde_json::from_slice::<EgressName>(&answer)?.ports)
}
