//! Connections to hosts, through the gateway's socket and by no other way.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::BodyExt;
use http_body_util::Collected;
use http_body_util::Empty;
use http_body_util::Limited;
use hyper::Method;
use hyper::Request;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use podbay_wire::EgressName;
use podbay_wire::EgressOpening;
use podbay_wire::EgressPurpose;
use podbay_wire::MAX_NAME_PORTS;
use rustls::ClientConfig;
use rustls::RootCertStore;
use rustls::pki_types::ServerName;
use tokio::io::AsyncRead;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWrite;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio_rustls::TlsConnector;

use super::limits::HEAD;

/// The way to hosts.
#[derive(Clone)]
pub(crate) struct Gateway {
    pub(crate) socket: PathBuf,
    /// What attempts are recorded for.
    pub(crate) program: &'static str,
    pub(crate) tls: Arc<ClientConfig>,
}

/// Why a host was not reached, in the gateway's words or those of TLS.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotReached(pub(crate) String);

impl fmt::Display for NotReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A stream to a host.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Returns the settings of TLS: the roots of browsers, and those of the image.
pub(crate) fn tls() -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    // An image without any has those of browsers all the same.
    let own = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(own.certs);
    tls_with(roots)
}

pub(crate) fn tls_with(roots: RootCertStore) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS is not available: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

impl Gateway {
    async fn open(&self, purpose: EgressPurpose) -> Result<UnixStream, NotReached> {
        let failed = |error: std::io::Error| {
            NotReached(format!(
                "the gateway of this session does not answer ({error})"
            ))
        };
        let mut stream = UnixStream::connect(&self.socket).await.map_err(failed)?;
        let opening = EgressOpening {
            purpose,
            program: Some(self.program.to_owned()),
        };
        let bytes = opening
            .to_bytes()
            .ok_or_else(|| NotReached("the name of the host is too long".to_owned()))?;
        stream.write_all(&bytes).await.map_err(failed)?;
        Ok(stream)
    }

    /// Returns a connection for requests of plain HTTP, which name their host themselves.
    pub(crate) async fn plain(&self) -> Result<SendRequest<Empty<Bytes>>, NotReached> {
        let stream = self.open(EgressPurpose::Proxy).await?;
        requests(Box::new(stream)).await
    }

    /// Returns a connection for requests of HTTPS.
    pub(crate) async fn encrypted(
        &self,
        host: &str,
        port: u16,
    ) -> Result<SendRequest<Empty<Bytes>>, NotReached> {
        requests(self.tls_to(host, port).await?).await
    }

    /// Connects to a port with TLS.
    pub(crate) async fn tls_to(
        &self,
        host: &str,
        port: u16,
    ) -> Result<Box<dyn Stream>, NotReached> {
        let tunnel = self.tunnel(host, port).await?;
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| NotReached(format!("{host} is no name for TLS")))?;
        let connector = TlsConnector::from(Arc::clone(&self.tls));
        let stream = connector
            .connect(name, tunnel)
            .await
            .map_err(|error| NotReached(format!("TLS with {host}:{port} failed: {error}")))?;
        Ok(Box::new(stream))
    }

    /// Asks for a tunnel to a port.
    pub(crate) async fn tunnel(
        &self,
        host: &str,
        port: u16,
    ) -> Result<Box<dyn Stream>, NotReached> {
        let stream = self.open(EgressPurpose::Proxy).await?;
        let mut requests = requests(Box::new(stream)).await?;
        let place = format!("{host}:{port}");
        let request = Request::builder()
            .method(Method::CONNECT)
            .uri(&place)
            .header("Host", &place)
            .body(Empty::new())
            .map_err(|error| NotReached(format!("{place} cannot be asked for: {error}")))?;
        let answer = requests
            .send_request(request)
            .await
            .map_err(|error| NotReached(format!("the gateway closed the connection: {error}")))?;
        if !answer.status().is_success() {
            return Err(NotReached(words(answer.into_body()).await));
        }
        let upgraded = hyper::upgrade::on(answer)
            .await
            .map_err(|error| NotReached(format!("the gateway closed the connection: {error}")))?;
        Ok(Box::new(TokioIo::new(upgraded)))
    }

    /// Returns the ports of a name that rules allow.
    pub(crate) async fn ports(&self, host: &str) -> Result<Vec<u16>, NotReached> {
        let host = host.to_owned();
        let stream = self.open(EgressPurpose::Name { host }).await?;
        let mut answer = Vec::new();
        stream
            .take(8 * MAX_NAME_PORTS as u64)
            .read_to_end(&mut answer)
            .await
            .map_err(|error| NotReached(format!("the gateway closed the connection: {error}")))?;
        let name: EgressName = serde_json::from_slice(&answer)
            .map_err(|_| NotReached("the gateway does not say which ports".to_owned()))?;
        Ok(name.ports)
    }
}

/// Returns what the gateway says of a refusal.
pub(crate) async fn words(body: Incoming) -> String {
    let read = Limited::new(body, HEAD).collect().await;
    let bytes = read.map_or_else(|_| Bytes::new(), Collected::to_bytes);
    let text = String::from_utf8_lossy(&bytes);
    text.trim().replace('\n', "; ")
}

async fn requests(stream: Box<dyn Stream>) -> Result<SendRequest<Empty<Bytes>>, NotReached> {
    let (requests, connection) = http1::Builder::new()
        .max_buf_size(HEAD)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| NotReached(format!("no HTTP with it: {error}")))?;
    // It ends with the requests, and what goes wrong they say.
    tokio::spawn(async move { drop(connection.with_upgrades().await) });
    Ok(requests)
}
