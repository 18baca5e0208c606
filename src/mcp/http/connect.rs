//! Connections to a server: a stream to the gateway, a tunnel through it, TLS.

use std::sync::Arc;
use std::sync::OnceLock;

use bytes::Bytes;
use http_body_util::Empty;
use http_body_util::Full;
use hyper::Method;
use hyper::Request;
use hyper::body::Body;
use hyper::client::conn::http1;
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::RootCertStore;
use rustls::pki_types::ServerName;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio_rustls::TlsConnector;

use super::address::Address;
use super::bounds::start;
use crate::ByteStream;
use crate::ServerEnd;
use crate::plain_line;

/// Most bytes of an answer's head, as of the gateway's.
const HEAD: usize = 64 << 10;

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Connects to a server over a stream to the gateway. `end` is of that stream.
pub(super) async fn connect(
    gateway: ByteStream,
    end: &ServerEnd,
    address: &Address,
    tls: Arc<ClientConfig>,
) -> Result<SendRequest<Full<Bytes>>, String> {
    let stream: Box<dyn Stream> = Box::new(tokio::io::join(gateway.reader, gateway.writer));
    if address.is_plain() {
        return requests(stream, end).await;
    }
    let tunnel = tunnel(stream, address, end).await?;
    let name = ServerName::try_from(address.host.clone())
        .map_err(|_| format!("{} is no name for TLS", address.host))?;
    let encrypted = TlsConnector::from(tls).connect(name, tunnel).await;
    let encrypted = encrypted.map_err(|error| {
        let place = place(address);
        format!("TLS with {place} failed: {error}")
    })?;
    requests(Box::new(encrypted), end).await
}

/// Returns the settings of TLS: the roots of browsers, and those of the user's machine.
pub(super) fn tls() -> Result<Arc<ClientConfig>, String> {
    static CONFIG: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();
    CONFIG
        .get_or_init(|| {
            let mut roots = RootCertStore {
                roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
            };
            let own = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(own.certs);
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let config = ClientConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .map_err(|error| format!("TLS is not available: {error}"))?
                .with_root_certificates(roots)
                .with_no_client_auth();
            Ok(Arc::new(config))
        })
        .clone()
}

async fn tunnel(
    stream: Box<dyn Stream>,
    address: &Address,
    end: &ServerEnd,
) -> Result<Box<dyn Stream>, String> {
    let mut requests = requests::<Empty<Bytes>>(stream, end).await?;
    let place = place(address);
    let request = Request::builder()
        .method(Method::CONNECT)
        .uri(&place)
        .header("Host", &place)
        .body(Empty::new())
        .map_err(|error| format!("{place} cannot be asked for: {error}"))?;
    let answer = requests.send_request(request).await;
    let answer = answer.map_err(|error| closed(&error, end))?;
    if !answer.status().is_success() {
        let words = start(answer.into_body(), HEAD).await;
        return Err(plain_line(&String::from_utf8_lossy(&words), 500));
    }
    let upgraded = hyper::upgrade::on(answer).await;
    let upgraded = upgraded.map_err(|error| closed(&error, end))?;
    Ok(Box::new(TokioIo::new(upgraded)))
}

async fn requests<B>(stream: Box<dyn Stream>, end: &ServerEnd) -> Result<SendRequest<B>, String>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (requests, connection) = http1::Builder::new()
        .max_buf_size(HEAD)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| closed(&error, end))?;
    // It ends with the requests, and what goes wrong they say.
    tokio::spawn(async move { drop(connection.with_upgrades().await) });
    Ok(requests)
}

/// Says why a stream to the gateway has no answer: in the words of the program that carried it,
/// where there are any.
pub(super) fn closed(error: &hyper::Error, end: &ServerEnd) -> String {
    end.last_line()
        .unwrap_or_else(|| format!("the connection through the gateway ended ({error})"))
}

fn place(address: &Address) -> String {
    format!("{}:{}", address.host, address.port)
}
