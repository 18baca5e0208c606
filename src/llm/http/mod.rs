//! The only builder of HTTP clients: everything on the host gets its client here, so that what is
//! switched off is off everywhere.
//! Off: redirects (a key or a prompt must not follow one), decompression (decompression bombs),
//! cookies, `Referer`, proxies from the environment, reqwest's own retries. Names are resolved by
//! [`resolve`], never by glibc.

mod endpoint;
mod resolve;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use podbay_event::shown_address;

pub use endpoint::Endpoint;

/// Why a client cannot be built, or an address cannot be used.
#[derive(Debug, Error)]
pub enum Error {
    #[error("invalid model server address `{text}`: {problem}")]
    InvalidEndpoint { text: String, problem: &'static str },
    #[error("set up TLS")]
    Tls { source: rustls::Error },
    #[error("`{proxy}` cannot be used as proxy")]
    Proxy {
        proxy: String,
        source: reqwest::Error,
    },
    #[error("set up the HTTP client")]
    Build { source: reqwest::Error },
}

/// The settings that may differ between clients.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Connect timeout, including name resolution and TLS.
    pub connect_timeout: Duration,
    /// `http://` or `https://` address of a proxy for everything but loopback; `None` means no
    /// proxy, whatever the environment says.
    pub proxy: Option<String>,
    /// Connects to this socket instead of the address.
    pub unix_socket: Option<PathBuf>,
    /// Loads the trusted root certificates. Without them every `https` address is refused as
    /// untrusted, and building the client is faster.
    pub tls: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            proxy: None,
            unix_socket: None,
            tls: true,
        }
    }
}

/// Makes ring the process's TLS provider; `main` calls it first. A second call has no effect.
pub fn install_crypto() {
    // The only error is that a provider is already installed.
    drop(rustls::crypto::ring::default_provider().install_default());
}

/// Returns a client with everything optional switched off.
pub fn client(settings: &Settings) -> Result<reqwest::Client, Error> {
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("podbay/", env!("CARGO_PKG_VERSION")))
        .tls_backend_preconfigured(tls(settings.tls)?)
        .http1_only()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        .no_proxy()
        .dns_resolver(resolve::Resolver::default())
        .connect_timeout(settings.connect_timeout)
        // llama-server closes connections after five idle seconds; a request sent just then would
        // be lost.
        .pool_idle_timeout(Duration::from_secs(4))
        // It also closes them after each streamed answer without announcing it, and the next
        // request would be lost. Without TLS a new connection for each request costs nothing.
        .pool_max_idle_per_host(if settings.tls { 2 } else { 0 })
        .http1_max_headers(100);
    if let Some(proxy) = &settings.proxy {
        let failed = |source: reqwest::Error| Error::Proxy {
            proxy: shown_address(proxy),
            source: source.without_url(),
        };
        let past = reqwest::NoProxy::from_string("localhost,127.0.0.0/8,::1");
        builder = builder.proxy(reqwest::Proxy::all(proxy).map_err(failed)?.no_proxy(past));
    }
    if let Some(path) = &settings.unix_socket {
        builder = builder.unix_socket(path.as_path());
    }
    builder.build().map_err(|source| Error::Build { source })
}

/// Returns a TLS configuration that trusts the system's roots and Mozilla's.
/// reqwest's default, the platform's verifier, refuses to start where no certificates are
/// installed, as in most small images.
fn tls(wanted: bool) -> Result<rustls::ClientConfig, Error> {
    let mut roots = rustls::RootCertStore::empty();
    if wanted {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        // An unreadable certificate is not trusted; the others still count.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|source| Error::Tls { source })?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;
    use tokio::io::AsyncWriteExt;

    use super::*;

    #[test]
    fn a_client_is_built_with_and_without_roots() {
        for tls in [true, false] {
            client(&Settings {
                tls,
                ..Settings::default()
            })
            .expect("a client");
        }
    }

    #[tokio::test]
    async fn a_server_that_hangs_up_after_each_answer_loses_no_request() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a free port");
        let address = format!("http://{}/", listener.local_addr().expect("bound"));
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.expect("a connection");
                tokio::spawn(async move {
                    let mut request = [0; 4096];
                    assert_ne!(stream.read(&mut request).await.expect("a request"), 0);
                    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nKeep-Alive: timeout=5, max=100\r\n\r\nok";
                    stream.write_all(answer).await.expect("written");
                    // As if the connection closed just when the next request is sent.
                    drop(stream.read(&mut request).await);
                });
            }
        });
        let client = client(&Settings {
            tls: false,
            ..Settings::default()
        })
        .expect("a client");
        for _ in 0..3 {
            let answer = client.get(&address).send().await.expect("an answer");
            assert_eq!(answer.text().await.expect("its text"), "ok");
        }
    }

    #[test]
    fn roots_exist_without_a_system_store() {
        assert!(webpki_roots::TLS_SERVER_ROOTS.len() > 50);
        assert!(tls(true).is_ok());
    }

    #[test]
    fn an_invalid_proxy_address_is_named() {
        let error = client(&Settings {
            proxy: Some("::".to_owned()),
            tls: false,
            ..Settings::default()
        })
        .expect_err("no proxy");
        assert_eq!(error.to_string(), "`::` cannot be used as proxy");
    }
}
