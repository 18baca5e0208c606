//! Connects to an engine on another machine.
//!
//! bollard's own TCP client resolves names through the C library, which a static binary must not
//! do: it would load the host's NSS modules. This one uses hickory.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;
use std::time::Duration;

use bollard::BollardRequest;
use bollard::Docker;
use hickory_resolver::TokioResolver;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use tokio::net::TcpStream;
use tower_service::Service;

/// Opens and closes a connection, to get the cause of a failure.
pub(super) async fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut last = io::Error::new(
        io::ErrorKind::NotFound,
        format!("the name `{host}` has no address"),
    );
    for address in resolve(host).await? {
        match TcpStream::connect(SocketAddr::new(address, port)).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    // `NotFound` would be mistaken for a missing socket.
    Err(if last.kind() == io::ErrorKind::NotFound {
        io::Error::other(last)
    } else {
        last
    })
}

/// Creates a client for a TCP engine, with TLS if there are certificates.
pub(super) fn open(
    host: &str,
    port: u16,
    certificates: Option<&Path>,
    timeout: Duration,
) -> Result<Docker, Box<dyn std::error::Error + Send + Sync>> {
    let mut http = HttpConnector::new_with_resolver(Resolver);
    http.enforce_http(false);
    let authority = if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    };
    let version = bollard::API_DEFAULT_VERSION;
    let docker = if let Some(folder) = certificates {
        let tls = HttpsConnectorBuilder::new()
            .with_tls_config(tls_config(folder)?)
            .https_only()
            .enable_http1()
            .wrap_connector(http);
        let client = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(0)
            .build(tls);
        let send = move |request: BollardRequest| {
            let client = client.clone();
            async move {
                client
                    .request(request)
                    .await
                    .map_err(bollard::errors::Error::from)
            }
        };
        Docker::connect_with_custom_transport(
            send,
            Some(format!("https://{authority}")),
            timeout.as_secs(),
            version,
        )?
    } else {
        let client = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(0)
            .build(http);
        let send = move |request: BollardRequest| {
            let client = client.clone();
            async move {
                client
                    .request(request)
                    .await
                    .map_err(bollard::errors::Error::from)
            }
        };
        Docker::connect_with_custom_transport(
            send,
            Some(format!("http://{authority}")),
            timeout.as_secs(),
            version,
        )?
    };
    Ok(docker)
}

/// Reads `ca.pem`, `cert.pem` and `key.pem`, Docker's own file names.
fn tls_config(
    folder: &Path,
) -> Result<rustls::ClientConfig, Box<dyn std::error::Error + Send + Sync>> {
    let named = |name: &str, error: rustls::pki_types::pem::Error| {
        format!("{}: {error}", folder.join(name).display())
    };
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(folder.join("ca.pem"))
        .map_err(|error| named("ca.pem", error))?
    {
        roots.add(certificate.map_err(|error| named("ca.pem", error))?)?;
    }
    let config = rustls::ClientConfig::builder().with_root_certificates(roots);
    // A context may have no certificate of the user's, where the engine asks for none.
    if !folder.join("cert.pem").exists() && !folder.join("key.pem").exists() {
        return Ok(config.with_no_client_auth());
    }
    let chain = CertificateDer::pem_file_iter(folder.join("cert.pem"))
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| named("cert.pem", error))?;
    let key = PrivateKeyDer::from_pem_file(folder.join("key.pem"))
        .map_err(|error| named("key.pem", error))?;
    Ok(config.with_client_auth_cert(chain, key)?)
}

async fn resolve(host: &str) -> io::Result<Vec<IpAddr>> {
    if let Ok(address) = host.parse() {
        return Ok(vec![address]);
    }
    if host == "localhost" {
        return Ok(vec![
            IpAddr::from([127, 0, 0, 1]),
            IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
        ]);
    }
    let resolver = TokioResolver::builder_tokio()
        .map_err(io::Error::other)?
        .build()
        .map_err(io::Error::other)?;
    let found = resolver.lookup_ip(host).await.map_err(io::Error::other)?;
    Ok(found.iter().collect())
}

#[derive(Clone)]
struct Resolver;

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        Box::pin(async move {
            let addresses: Vec<SocketAddr> = resolve(name.as_str())
                .await?
                .into_iter()
                .map(|ip| SocketAddr::new(ip, 0))
                .collect();
            Ok(addresses.into_iter())
        })
    }
}
