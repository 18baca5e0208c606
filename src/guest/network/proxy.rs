//! The proxy on the sandbox's loopback: each connection is carried to the gateway's socket as it is,
//! behind a word about which program it is of.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use podbay_wire::BLOCKED;
use podbay_wire::EgressPurpose;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use super::asker;
use super::gateway;

/// Connections at once: each takes two descriptors, of which this process has 4096.
const CONNECTIONS: usize = 1000;

/// For descriptors to become free.
const PAUSE: Duration = Duration::from_millis(50);

/// Of a request to which nobody but this proxy answers.
const HEAD: u64 = 16 * 1024;
const HEAD_TIME: Duration = Duration::from_secs(2);

/// Carries connections to the gateway, so many at once.
#[derive(Clone)]
pub(super) struct Carrier {
    socket: Arc<Path>,
    places: Arc<Semaphore>,
}

impl Carrier {
    pub(super) fn new(socket: PathBuf) -> Self {
        Self {
            socket: socket.into(),
            places: Arc::new(Semaphore::new(CONNECTIONS)),
        }
    }

    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Carries a connection, once there is a place for it. Others wait in the kernel's queue.
    pub(super) async fn carry(&self, client: TcpStream, from: SocketAddr, purpose: EgressPurpose) {
        let Ok(place) = Arc::clone(&self.places).acquire_owned().await else {
            return;
        };
        let socket = Arc::clone(&self.socket);
        tokio::spawn(async move {
            let _place = place;
            // A connection that breaks is its client's to notice.
            drop(carry(client, from, &socket, purpose).await);
        });
    }
}

pub(super) async fn serve(listener: TcpListener, carrier: Carrier) {
    loop {
        match listener.accept().await {
            Ok((client, from)) => carrier.carry(client, from, EgressPurpose::Proxy).await,
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

async fn carry(
    client: TcpStream,
    from: SocketAddr,
    socket: &Path,
    purpose: EgressPurpose,
) -> io::Result<()> {
    client.set_nodelay(true)?;
    let program = asker::of_stream(from, client.local_addr()?);
    let speaks_to_proxy = purpose == EgressPurpose::Proxy;
    match gateway::connect(socket, purpose, program).await {
        Ok(gateway) => podbay_relay::both_ways(&client, &gateway, |_, _| {}).await,
        // What it speaks is unknown, and the end of its connection is the answer.
        Err(error) if !speaks_to_proxy => Err(error),
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
    use std::net::Ipv4Addr;
    use std::os::unix::net::UnixListener as StdUnixListener;

    use podbay_wire::EgressOpening;
    use podbay_wire::MAX_OPENING;
    use podbay_wire::OPENING;
    use tokio::net::UnixListener;
    use tokio::net::UnixStream;

    use super::*;

    const REQUEST: &[u8] = b"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n";

    /// Serves on a free port, and returns what a client is answered.
    async fn ask(socket: PathBuf) -> String {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("a port");
        let address = listener.local_addr().expect("its address");
        let serving = tokio::spawn(serve(listener, Carrier::new(socket)));
        let mut client = TcpStream::connect(address).await.expect("it listens");
        client.write_all(REQUEST).await.expect("sent");
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.expect("an answer");
        serving.abort();
        answer
    }

    /// Returns what is said of a connection before its first byte.
    async fn opening(client: &mut UnixStream) -> EgressOpening {
        assert_eq!(client.read_u8().await.expect("a byte"), OPENING);
        let length = client.read_u16().await.expect("a length");
        assert!(usize::from(length) <= MAX_OPENING);
        let mut json = vec![0; length.into()];
        client.read_exact(&mut json).await.expect("an opening");
        serde_json::from_slice(&json).expect("an opening")
    }

    fn gateway(listener: UnixListener) -> tokio::task::JoinHandle<Vec<u8>> {
        tokio::spawn(async move {
            let (mut client, _) = listener.accept().await.expect("a client");
            assert_eq!(opening(&mut client).await.purpose, EgressPurpose::Proxy);
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
