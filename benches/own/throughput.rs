//! What one large stream has of a direct one: through the gateway, through the guest's proxy and the
//! gateway, as programs in a sandbox go, and through two relays that do nothing else.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener as StdUnixListener;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use nix::fcntl::SpliceFFlags;
use nix::fcntl::splice;
use tokio::io::AsyncRead;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWrite;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::net::TcpStream;
use tokio::net::UnixStream;

use super::Outcome;
use super::egress::FLOOD;
use super::egress::tunnel;
use super::table::Table;
use super::table::Times;

const BODY: usize = 1024 * 1024 * 1024;
const BODIES: usize = 5;

/// Bytes of one call of a bare relay.
const PIECE: usize = 256 * 1024;

pub(super) async fn rows(table: &mut Table, socket: &Path, server: SocketAddr) -> Outcome<()> {
    let guest = serve_guest(socket.to_owned())?;
    let bare = relay_barely(server)?;
    let (mut direct, mut gateway) = (Times::default(), Times::default());
    let (mut both, mut least) = (Times::default(), Times::default());
    // In turns, so that what else runs here is in all of them.
    for _ in 0..BODIES {
        direct
            .0
            .push(body(TcpStream::connect(server).await?).await?);
        let near = tunnel(UnixStream::connect(socket).await?, FLOOD).await?;
        gateway.0.push(body(near).await?);
        let far = tunnel(TcpStream::connect(guest).await?, FLOOD).await?;
        both.0.push(body(far).await?);
        least.0.push(body(TcpStream::connect(bare).await?).await?);
    }
    let rate = |times: &Times| BODY as f64 / times.at(50).as_secs_f64() / 1e9;
    let share = |times: &Times| rate(times) / rate(&direct) * 100.0;
    for (way, times) in [
        ("the egress gateway", &gateway),
        ("the guest's proxy and the gateway", &both),
    ] {
        let what = format!(
            "1 GiB through {way} at {:.1} GB/s, of what it is direct, {:.1} GB/s",
            rate(times),
            rate(&direct)
        );
        let share = share(times);
        table.figure(&what, &format!("{share:.0} %"), "≥ 80 %", share >= 80.0);
    }
    let what = format!(
        "the same through two relays that only splice, in a row, at {:.1} GB/s",
        rate(&least)
    );
    table.note(&what, "", &format!("{:.0} %", share(&least)));
    Ok(())
}

/// Serves the guest's proxy as in a sandbox: by a thread of its own.
fn serve_guest(socket: PathBuf) -> Outcome<SocketAddr> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    std::thread::spawn(move || {
        runtime.block_on(async {
            let listener = TcpListener::from_std(listener).expect("a listener");
            podbay::guest::serve_proxy(listener, socket).await;
        });
    });
    Ok(address)
}

async fn body(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<Duration> {
    let mut buffer = vec![0; PIECE];
    let begun = Instant::now();
    stream.write_all(b"x").await?;
    let mut n_read = 0;
    while n_read < BODY {
        match stream.read(&mut buffer).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            more => n_read += more,
        }
    }
    Ok(begun.elapsed())
}

/// Two relays in a row, by way of a socket of this machine, like guest and gateway: a thread for each
/// direction of each, which splices and does nothing else.
fn relay_barely(server: SocketAddr) -> Outcome<SocketAddr> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("between");
    let near = std::net::TcpListener::bind("127.0.0.1:0")?;
    let between = StdUnixListener::bind(&path)?;
    let address = near.local_addr()?;
    std::thread::spawn(move || {
        let _folder = folder;
        while let (Ok((client, _)), Ok(ours), Ok((theirs, _)), Ok(far)) = (
            near.accept(),
            StdUnixStream::connect(&path),
            between.accept(),
            std::net::TcpStream::connect(server),
        ) {
            spliced(client, ours);
            spliced(theirs, far);
        }
    });
    Ok(address)
}

fn spliced<A, B>(first: A, second: B)
where
    A: AsFd + Send + Sync + 'static,
    B: AsFd + Send + Sync + 'static,
{
    let ends = std::sync::Arc::new((first, second));
    let other = std::sync::Arc::clone(&ends);
    std::thread::spawn(move || splice_one_way(&ends.0, &ends.1));
    std::thread::spawn(move || splice_one_way(&other.1, &other.0));
}

fn splice_one_way(from: &impl AsFd, to: &impl AsFd) -> nix::Result<()> {
    let (out, into) = nix::unistd::pipe()?;
    let size = i32::try_from(PIECE).expect("it is small");
    nix::fcntl::fcntl(&into, nix::fcntl::FcntlArg::F_SETPIPE_SZ(size))?;
    let flags = SpliceFFlags::SPLICE_F_MOVE;
    loop {
        let mut left = splice(from, None, &into, None, PIECE, flags)?;
        if left == 0 {
            return Ok(());
        }
        while left > 0 {
            left -= splice(&out, None, to, None, left, flags)?;
        }
    }
}
