//! The proxy on the sandbox's loopback: each connection is carried to the gateway's socket as it is.
//!
//! It has a thread of its own, so that a download takes no time from the calls that the guest
//! serves.

use std::io;
use std::net::Ipv4Addr;
use std::net::TcpListener;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use podbay_wire::BLOCKED;
use podbay_wire::PROXY_PORT;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Connections at once: each takes two descriptors, of which this process has 4096.
const CONNECTIONS: usize = 1000;

/// What the thread calls goes a few frames deep.
const STACK: usize = 256 * 1024;

/// Bytes of a connection's buffer for each direction.
const BUFFER: usize = 32 * 1024;

/// For a gateway that ended to be there again.
const PATIENCE: Duration = Duration::from_secs(3);

/// Between two tries, and for descriptors to become free.
const PAUSE: Duration = Duration::from_millis(50);

/// Of a request to which nobody but this proxy answers.
const HEAD: u64 = 16 * 1024;
const HEAD_TIME: Duration = Duration::from_secs(2);

/// Listens, and serves in a thread of its own for as long as this process lives.
pub(super) fn start(socket: PathBuf) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, PROXY_PORT))?;
    listener.set_nonblocking(true)?;
    std::thread::Builder::new()
        .name("proxy".to_owned())
        .stack_size(STACK)
        .spawn(move || {
            // Without a runtime there is no proxy, and what wants one is told by its connection.
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
            else {
                return;
            };
            runtime.block_on(async {
                if let Ok(listener) = tokio::net::TcpListener::from_std(listener) {
                    serve(listener, socket).await;
                }
            });
        })
        .map(drop)
}

async fn serve(listener: tokio::net::TcpListener, socket: PathBuf) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let socket: Arc<Path> = socket.into();
    loop {
        // Others wait in the kernel's queue.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((client, _)) => {
                let socket = Arc::clone(&socket);
                tokio::spawn(async move {
                    let _place = place;
                    // A connection that breaks is its client's to notice.
                    drop(carry(client, &socket).await);
                });
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

async fn carry(mut client: TcpStream, socket: &Path) -> io::Result<()> {
    client.set_nodelay(true)?;
    match connect(socket).await {
        Ok(mut gateway) => {
            tokio::io::copy_bidirectional_with_sizes(&mut client, &mut gateway, BUFFER, BUFFER)
                .await
                .map(drop)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let text = format!("this sandbox has no network\n{BLOCKED}\n");
            refuse(client, "403 Blocked by policy", &text).await
        }
        Err(error) => {
            let text = format!("the gateway to the network does not answer ({error}); try again\n");
            refuse(client, "503 Service Unavailable", &text).await
        }
    }
}

/// Connects to the gateway. One that ended is started anew, and takes the socket over.
async fn connect(socket: &Path) -> io::Result<UnixStream> {
    let end = Instant::now() + PATIENCE;
    loop {
        match UnixStream::connect(socket).await {
            Err(error)
                if error.kind() == io::ErrorKind::ConnectionRefused && Instant::now() < end =>
            {
                tokio::time::sleep(PAUSE).await;
            }
            connected => return connected,
        }
    }
}

/// Answers a request, which is read first: a connection that is closed before is reset, and the
/// answer lost.
async fn refuse(mut client: TcpStream, status: &str, text: &str) -> io::Result<()> {
    let mut head = Vec::new();
    let (from, mut to) = client.split();
    let mut from = from.take(HEAD);
    let reading = async {
        while !head.ends_with(b"\r\n\r\n") && from.read_buf(&mut head).await? > 0 {}
        io::Result::Ok(())
    };
    // What it has not sent by then is not waited for.
    drop(tokio::time::timeout(HEAD_TIME, reading).await);
    let length = text.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
    );
    to.write_all(answer.as_bytes()).await?;
    to.shutdown().await
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener as StdUnixListener;

    use tokio::net::UnixListener;

    use super::*;

    const REQUEST: &[u8] = b"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n";

    /// Serves on a free port, and returns what a client is answered.
    async fn ask(socket: PathBuf) -> String {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("a port");
        let address = listener.local_addr().expect("its address");
        let serving = tokio::spawn(serve(listener, socket));
        let mut client = TcpStream::connect(address).await.expect("it listens");
        client.write_all(REQUEST).await.expect("sent");
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.expect("an answer");
        serving.abort();
        answer
    }

    fn gateway(listener: UnixListener) -> tokio::task::JoinHandle<Vec<u8>> {
        tokio::spawn(async move {
            let (mut client, _) = listener.accept().await.expect("a client");
            let mut request = vec![0; REQUEST.len()];
            client.read_exact(&mut request).await.expect("a request");
            client.write_all(b"answered").await.expect("sent");
            request
        })
    }

    #[tokio::test]
    async fn a_connection_is_carried_to_the_gateway_and_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("s");
        let gateway = gateway(UnixListener::bind(&socket).expect("a socket"));
        assert_eq!(ask(socket).await, "answered");
        assert_eq!(gateway.await.expect("served"), REQUEST);
    }

    #[tokio::test]
    async fn a_gateway_that_is_started_anew_is_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("s");
        // One that was killed leaves its socket behind.
        drop(StdUnixListener::bind(&socket).expect("a socket"));
        let (asked, served) = tokio::join!(ask(socket.clone()), async {
            tokio::time::sleep(2 * PAUSE).await;
            std::fs::remove_file(&socket).expect("removed");
            gateway(UnixListener::bind(&socket).expect("a socket")).await
        });
        assert_eq!(asked, "answered");
        assert_eq!(served.expect("served"), REQUEST);
    }

    #[tokio::test]
    async fn without_a_gateway_a_client_is_told_so() {
        let folder = tempfile::tempdir().expect("a folder");
        let answer = ask(folder.path().join("none")).await;
        assert!(
            answer.starts_with("HTTP/1.1 403 Blocked by policy\r\n") && answer.contains(BLOCKED),
            "{answer}"
        );
    }
}
