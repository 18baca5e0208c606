//! Servers behind the gateway.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::Mutex;

use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls;

use super::kit::read_head;

/// Serves each connection with a function.
pub(super) async fn serve<F, T>(each: F) -> SocketAddr
where
    F: Fn(TcpStream) -> T + Send + 'static,
    T: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("its address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(each(stream));
        }
    });
    address
}

/// Sends back what comes, and ends when that ends.
pub(super) async fn echo() -> SocketAddr {
    serve(|mut stream| async move {
        let (mut from, mut to) = stream.split();
        drop(tokio::io::copy(&mut from, &mut to).await);
    })
    .await
}

/// An HTTP server that answers each request with its connection's number, and keeps what it was
/// sent.
#[derive(Clone, Default)]
pub(super) struct Web {
    requests: Arc<Mutex<Vec<String>>>,
    n_connections: Arc<Mutex<usize>>,
}

impl Web {
    /// Each connection is closed, without a word, after so many answers.
    pub(super) async fn start(n_answers: usize) -> (Self, SocketAddr) {
        let web = Self::default();
        let served = web.clone();
        let address = serve(move |stream| served.clone().answer(stream, n_answers)).await;
        (web, address)
    }

    pub(super) fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("a lock").clone()
    }

    async fn answer(self, mut stream: TcpStream, n_answers: usize) {
        let number = {
            let mut n_connections = self.n_connections.lock().expect("a lock");
            *n_connections += 1;
            *n_connections
        };
        for _ in 0..n_answers {
            let mut request = read_head(&mut stream).await;
            if request.is_empty() {
                return;
            }
            request.push_str(&read_body(&mut stream, &request).await);
            self.requests.lock().expect("a lock").push(request);
            let body = format!("connection {number}");
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nKeep-Alive: timeout=5\r\n\r\n{body}",
                body.len()
            );
            if stream.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

/// Returns a request's body as it was sent.
async fn read_body(stream: &mut TcpStream, head: &str) -> String {
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |length| length.parse().expect("a number"));
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.expect("a body");
    while head.contains("transfer-encoding: chunked") && !body.ends_with(b"0\r\n\r\n") {
        body.push(stream.read_u8().await.expect("a chunk"));
    }
    String::from_utf8(body).expect("UTF-8")
}

/// A server of TLS for a name, which sends back what comes; and a client that trusts it.
pub(super) async fn tls_echo(name: &str) -> (SocketAddr, TlsConnector) {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate");
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der())
        .expect("a key");
    let server = rustls::ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("a certificate with its key");
    let acceptor = TlsAcceptor::from(Arc::new(server));
    let address = serve(move |stream| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(stream) = acceptor.accept(stream).await else {
                return;
            };
            let (mut from, mut to) = tokio::io::split(stream);
            drop(tokio::io::copy(&mut from, &mut to).await);
        }
    })
    .await;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).expect("a root");
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    (address, TlsConnector::from(Arc::new(client)))
}
