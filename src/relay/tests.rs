//! Streams of which every byte is known, carried between the sockets that are used.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::AsyncRead;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWrite;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::net::TcpStream;
use tokio::net::UnixStream;
use tokio::task::JoinHandle;

use super::*;
use crate::pipe::PIPES;
use crate::pipe::Pipe;

const LARGE: usize = 12 * 1024 * 1024 + 7;

/// Bytes of which none looks like its neighbours.
fn bytes(length: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    std::iter::repeat_with(next).take(length).collect()
}

async fn tcp() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("its address");
    let (connected, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
    (connected.expect("connected"), accepted.expect("accepted").0)
}

/// A relay between a socket of TCP and one of this machine, its two outer ends, and what it
/// counted.
struct Relay {
    tcp: TcpStream,
    unix: UnixStream,
    counted: &'static [AtomicUsize; 2],
    carrying: JoinHandle<io::Result<()>>,
}

impl Relay {
    async fn new() -> Self {
        let (tcp, first) = tcp().await;
        let (unix, second) = UnixStream::pair().expect("a pair");
        let counted: &'static [AtomicUsize; 2] = Box::leak(Box::default());
        let carrying = tokio::spawn(async move {
            both_ways(&first, &second, |direction, n_bytes| {
                let at = usize::from(direction == Direction::ToFirst);
                counted[at].fetch_add(n_bytes, Ordering::Relaxed);
            })
            .await
        });
        Self {
            tcp,
            unix,
            counted,
            carrying,
        }
    }

    fn counted(&self) -> [usize; 2] {
        [0, 1].map(|at| self.counted[at].load(Ordering::Relaxed))
    }
}

/// Sends all, and reads to the end in pieces with pauses, so that the relay often finds no room.
async fn send_and_read(
    mut from: impl AsyncWrite + Unpin,
    mut to: impl AsyncRead + Unpin,
    sent: &[u8],
) -> Vec<u8> {
    let sending = async {
        from.write_all(sent).await.expect("sent");
        from.shutdown().await.expect("ended");
    };
    let reading = async {
        let mut all = Vec::new();
        let mut piece = vec![0; 300_000];
        loop {
            match to.read(&mut piece).await.expect("more") {
                0 => return all,
                n_read => all.extend_from_slice(&piece[..n_read]),
            }
            if all.len() % 3 == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    };
    tokio::join!(sending, reading).1
}

#[tokio::test]
async fn large_streams_arrive_whole_in_both_directions_and_are_counted() {
    let mut relay = Relay::new().await;
    let (to_unix, to_tcp) = (bytes(LARGE), bytes(LARGE / 2));
    let (from_tcp, tcp_end) = relay.tcp.split();
    let (from_unix, unix_end) = relay.unix.split();
    let (at_unix, at_tcp) = tokio::join!(
        send_and_read(tcp_end, from_unix, &to_unix),
        send_and_read(unix_end, from_tcp, &to_tcp),
    );
    assert!(at_unix == to_unix && at_tcp == to_tcp);
    (&mut relay.carrying)
        .await
        .expect("no panic")
        .expect("carried");
    assert_eq!(relay.counted(), [LARGE, LARGE / 2]);
}

#[tokio::test]
async fn where_there_is_no_pipe_bytes_are_copied() {
    let all: Vec<Pipe> = std::iter::from_fn(Pipe::open).take(PIPES).collect();
    assert!(Pipe::open().is_none(), "there are {PIPES}");
    let mut relay = Relay::new().await;
    let sent = bytes(LARGE);
    assert!(send_and_read(&mut relay.tcp, &mut relay.unix, &sent).await == sent);
    drop(all);
}

#[tokio::test]
async fn an_end_that_sends_no_more_is_still_answered() {
    let mut relay = Relay::new().await;
    relay.tcp.write_all(b"a question").await.expect("sent");
    relay.tcp.shutdown().await.expect("ended");
    let mut asked = String::new();
    relay.unix.read_to_string(&mut asked).await.expect("all");
    assert_eq!(asked, "a question");
    relay.unix.write_all(b"an answer").await.expect("sent");
    drop(relay.unix);
    let mut answer = String::new();
    relay.tcp.read_to_string(&mut answer).await.expect("all");
    assert_eq!(answer, "an answer");
    relay.carrying.await.expect("no panic").expect("carried");
}

#[tokio::test]
async fn an_end_that_is_gone_ends_the_relay() {
    let mut relay = Relay::new().await;
    drop(relay.unix);
    let piece = vec![7; 100_000];
    let sending = async { while relay.tcp.write_all(&piece).await.is_ok() {} };
    tokio::time::timeout(Duration::from_secs(60), sending)
        .await
        .expect("what nobody takes is not sent for ever");
    relay.carrying.await.expect("no panic").expect_err("broken");
}

#[tokio::test]
async fn a_stream_is_spliced_while_bytes_come_and_gives_its_pipe_back_when_none_do() {
    let (mut outer, from) = tcp().await;
    let (to, mut at) = UnixStream::pair().expect("a pair");
    let n_sent = AtomicUsize::new(0);
    let count = |n_bytes| {
        n_sent.fetch_add(n_bytes, Ordering::Relaxed);
    };
    outer.write_all(b"some").await.expect("sent");
    let carried = splice::while_it_comes(&from, &to, &count).await;
    assert_eq!(carried.expect("carried"), splice::Outcome::Quiet);
    let mut seen = [0; 4];
    at.read_exact(&mut seen).await.expect("carried");
    assert_eq!((&seen, n_sent.load(Ordering::Relaxed)), (b"some", 4));
    drop(outer);
    let carried = splice::while_it_comes(&from, &to, &count).await;
    assert_eq!(carried.expect("carried"), splice::Outcome::Ended);
}

/// What waits for a slow reader waits at the sender: the relay holds a pipe at most.
#[tokio::test]
async fn bytes_that_are_not_read_are_not_held() {
    let mut relay = Relay::new().await;
    let mut n_sent = 0;
    let piece = vec![7; 64 * 1024];
    let sending = async {
        loop {
            n_sent += relay.tcp.write(&piece).await.expect("sent");
        }
    };
    tokio::time::timeout(Duration::from_secs(1), sending)
        .await
        .expect_err("it has to wait");
    assert!(
        n_sent < 24 * 1024 * 1024,
        "{n_sent} bytes went to a client that reads none"
    );
    let mut seen = vec![0; n_sent];
    relay.unix.read_exact(&mut seen).await.expect("all of it");
    assert_eq!(relay.counted(), [n_sent, 0]);
}
