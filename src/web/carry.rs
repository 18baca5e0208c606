//! `podbay web gateway SERVER`: carries its standard streams to the gateway's socket and back, for a
//! client outside of the sandbox. What they say is not looked at.

use std::fs::File;
use std::io;
use std::io::Read;
use std::io::Write;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;
use std::time::Instant;

use podbay_wire::EgressOpening;
use podbay_wire::EgressPurpose;

/// For a gateway that a chat starts behind its sandbox.
const GATEWAY: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(50);

const NO_GATEWAY: &str = "this session has no gateway to the network: allow the host with `--allow-host HOST` or `network.allow` (where `network.mode` is `open`, there is none)";

/// Bytes that are carried at once.
const BUFFER: usize = 64 << 10;

/// Carries until the gateway closes the connection; the error says why there is none.
pub(crate) fn carry(socket: &Path, server: &str) -> Result<(), String> {
    wait_for(socket)?;
    let failed =
        |error: io::Error| format!("the gateway of this session does not answer ({error})");
    let mut gateway = UnixStream::connect(socket).map_err(failed)?;
    let opening = EgressOpening {
        purpose: EgressPurpose::Proxy,
        program: Some(format!("mcp {server}")),
    };
    let opening = opening.to_bytes().ok_or("the server's name is too long")?;
    gateway.write_all(&opening).map_err(failed)?;
    let input = file(io::stdin().as_fd()).map_err(failed)?;
    let output = file(io::stdout().as_fd()).map_err(failed)?;
    let to = gateway.try_clone().map_err(failed)?;
    // It ends with the process.
    std::thread::spawn(move || {
        copy(input, &to);
        let _closed = to.shutdown(Shutdown::Write);
    });
    copy(gateway, output);
    Ok(())
}

fn wait_for(socket: &Path) -> Result<(), String> {
    let end = Instant::now() + GATEWAY;
    while !socket.exists() {
        let is_to_come = socket.parent().is_some_and(Path::is_dir);
        if !is_to_come || Instant::now() > end {
            return Err(NO_GATEWAY.to_owned());
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// Returns a stream without the buffer that waits for lines.
fn file(stream: std::os::fd::BorrowedFd<'_>) -> io::Result<File> {
    stream.try_clone_to_owned().map(File::from)
}

/// Copies until one of both has ended.
fn copy(mut from: impl Read, mut to: impl Write) {
    let mut buffer = vec![0; BUFFER];
    loop {
        match from.read(&mut buffer) {
            Ok(n_read @ 1..) if to.write_all(&buffer[..n_read]).is_ok() => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_gateway_it_says_what_gives_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("none").join("egress.sock");
        let problem = carry(&socket, "x").expect_err("there is none");
        assert!(problem.contains("`--allow-host HOST`"), "{problem}");
    }
}
