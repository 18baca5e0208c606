//! A model server behind TLS: asked where its certificate is trusted, and refused in words that say
//! why where it is not.

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls;

use crate::support::ScriptedModel;
use crate::support::TestEnv;
use crate::support::test_env::run;

const KEY: &str = "sk-sesame";

/// Stands before a server and speaks TLS for it; returns where, and the certificate of the
/// authority that vouches for it.
async fn before(server: SocketAddr) -> (SocketAddr, String) {
    let generate = || rcgen::KeyPair::generate().expect("a key");
    let mut authority = rcgen::CertificateParams::new(Vec::new()).expect("no name");
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority_key = generate();
    let root = authority
        .self_signed(&authority_key)
        .expect("a certificate");
    let (issuer, key) = (rcgen::Issuer::new(authority, authority_key), generate());
    let certificate = rcgen::CertificateParams::new(["localhost".to_owned()])
        .expect("a name")
        .signed_by(&key, &issuer)
        .expect("a certificate");
    let der = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], der)
        .expect("a certificate with its key");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("its address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut near) = acceptor.accept(stream).await else {
                    return;
                };
                let mut far = TcpStream::connect(server)
                    .await
                    .expect("the server listens");
                // Either side may hang up as it likes.
                drop(tokio::io::copy_bidirectional(&mut near, &mut far).await);
            });
        }
    });
    (address, root.pem())
}

/// Returns what the doctor says of the model server.
fn looked_at(env: &TestEnv, endpoint: &str, trusted: &str) -> Value {
    let mut command = env.podbay(&[
        "doctor",
        "--json",
        "--endpoint",
        endpoint,
        "--api-key-env",
        "MY_KEY",
    ]);
    command
        .env("MY_KEY", KEY)
        .env("SSL_CERT_FILE", trusted)
        .env("DOCKER_HOST", "unix:///nonexistent/docker.sock");
    let done = run(&mut command);
    let checks = done.json()["checks"].as_array().expect("checks").clone();
    checks
        .into_iter()
        .find(|check| check["group"] == "model" && check["name"] == "endpoint")
        .expect("the model server is looked at")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_behind_tls_is_asked_where_its_certificate_is_trusted() {
    let model = ScriptedModel::new().key(KEY).start().await;
    let (address, certificate) = before(model.address()).await;
    let env = TestEnv::new();
    let (trusted, other) = (env.home().join("trusted.pem"), env.home().join("other.pem"));
    fs::write(&trusted, certificate).expect("written");
    fs::write(&other, "").expect("written");
    let (trusted, other) = (trusted.display().to_string(), other.display().to_string());
    let look = |endpoint: String, trusted: &str| {
        tokio::task::block_in_place(|| looked_at(&env, &endpoint, trusted))
    };

    let found = look(format!("https://localhost:{}/v1", address.port()), &trusted);
    assert_eq!(found["status"], "ok", "{found}");
    let n_asked = model.raw_requests().len();

    let found = look(format!("https://localhost:{}/v1", address.port()), &other);
    assert_eq!(found["status"], "fail", "{found}");
    assert!(
        found
            .to_string()
            .contains("no secure connection to the model server"),
        "{found}"
    );
    assert!(found.to_string().contains("SSL_CERT_FILE"), "{found}");

    // A name that the certificate does not have, though its authority is trusted.
    let found = look(format!("https://127.0.0.1:{}/v1", address.port()), &trusted);
    assert!(
        found["status"] == "fail" && found.to_string().contains("no secure connection"),
        "{found}"
    );

    // A server that does not speak TLS.
    let plain = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = plain.local_addr().expect("its address").port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = plain.accept().await {
            // Who asks for TLS hangs up.
            drop(
                stream
                    .write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
                    .await,
            );
        }
    });
    let found = look(format!("https://localhost:{port}/v1"), &trusted);
    assert!(
        found["status"] == "fail" && found.to_string().contains("speak TLS"),
        "{found}"
    );
    assert_eq!(
        model.raw_requests().len(),
        n_asked,
        "the key went nowhere else"
    );
    assert!(!found.to_string().contains(KEY));
}
