//! CONNECT: TLS that names the host, raw streams, and both ends of them.

use podbay_wire::EgressAccess;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio_rustls::rustls::pki_types::ServerName;

use super::kit::TestGateway;
use super::kit::allow;
use super::kit::raw;
use super::kit::read_all;
use super::kit::read_head;
use super::servers::echo;
use super::servers::serve;
use super::servers::tls_echo;
use crate::tls::ACCESS_DENIED;
use podbay_wire::BLOCKED;

#[tokio::test]
async fn tls_for_the_host_of_the_tunnel_goes_through() {
    let (server, connector) = tls_echo("a.example").await;
    let mut gateway = TestGateway::start(&[allow("a.example")]);
    gateway.host("a.example", 443, server);
    let (stream, head) = gateway.connect("A.example.:443").await;
    assert_eq!(head, "HTTP/1.1 200 OK\r\n\r\n", "{head}");
    let mut stream = connector
        .connect(ServerName::try_from("a.example").expect("a name"), stream)
        .await
        .expect("TLS");
    stream.write_all(b"hello").await.expect("sent");
    let mut seen = [0; 5];
    stream.read_exact(&mut seen).await.expect("an echo");
    assert_eq!(&seen, b"hello");
    drop(stream);
    let attempt = gateway.attempt().await;
    assert_eq!(
        (
            attempt.host.as_str(),
            attempt.port,
            attempt.access,
            attempt.allowed
        ),
        ("a.example", 443, EgressAccess::Tls, true)
    );
    assert!(
        attempt.bytes_sent > 200 && attempt.bytes_received > 500,
        "{attempt:?}"
    );
}

#[tokio::test]
async fn tls_for_another_host_is_refused_with_an_alert() {
    let (server, connector) = tls_echo("b.example").await;
    let mut gateway = TestGateway::start(&[allow("a.example"), allow("b.example")]);
    gateway.host("a.example", 443, server);
    let (stream, _) = gateway.connect("a.example:443").await;
    let error = connector
        .connect(ServerName::try_from("b.example").expect("a name"), stream)
        .await
        .expect_err("refused");
    assert!(error.to_string().contains("AccessDenied"), "{error}");
    let attempt = gateway.attempt().await;
    assert_eq!(
        (attempt.allowed, attempt.bytes_received),
        (false, 0),
        "the server is told nothing"
    );
    assert_eq!(
        attempt.because,
        "the TLS client names `b.example`, and the tunnel is for another host"
    );
}

#[tokio::test]
async fn what_is_no_tls_needs_a_raw_rule() {
    let mut gateway = TestGateway::start(&[allow("a.example"), raw("b.example:443")]);
    let server = echo().await;
    for name in ["a.example", "b.example"] {
        gateway.host(name, 443, server);
    }
    let (mut stream, head) = gateway.connect("a.example:443").await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        .await
        .expect("sent");
    let told = read_all(&mut stream).await;
    assert!(
        told.starts_with("HTTP/1.1 403 ")
            && told.contains("no rule with `raw`")
            && told.contains(BLOCKED),
        "{told}"
    );
    assert!(!gateway.attempt().await.allowed);
    let (mut stream, _) = gateway.connect("b.example:443").await;
    stream.write_all(b"anything").await.expect("sent");
    stream.shutdown().await.expect("half closed");
    assert_eq!(read_all(&mut stream).await, "anything");
    let attempt = gateway.attempt().await;
    assert_eq!(
        (
            attempt.access,
            attempt.allowed,
            attempt.bytes_sent,
            attempt.bytes_received
        ),
        (EgressAccess::Raw, true, 8, 8)
    );
}

#[tokio::test]
async fn a_raw_server_may_speak_first() {
    let server = serve(|mut stream| async move {
        drop(stream.write_all(b"220 ready\r\n\r\n").await);
        drop(stream.read_u8().await);
    })
    .await;
    let gateway = TestGateway::start(&[raw("a.example:25")]);
    gateway.host("a.example", 25, server);
    let (mut stream, _) = gateway.connect("a.example:25").await;
    assert_eq!(read_head(&mut stream).await, "220 ready\r\n\r\n");
}

#[tokio::test]
async fn each_direction_of_a_tunnel_ends_by_itself() {
    // One that answers once all has come, and one that ends before it listens.
    let late = serve(|mut stream| async move {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await.expect("all");
        drop(
            stream
                .write_all(format!("{} bytes", all.len()).as_bytes())
                .await,
        );
    })
    .await;
    let gateway = TestGateway::start(&[raw("late.example:1"), raw("early.example:2")]);
    gateway.host("late.example", 1, late);
    let (mut stream, _) = gateway.connect("late.example:1").await;
    stream.write_all(&vec![0; 100_000]).await.expect("sent");
    stream.shutdown().await.expect("half closed");
    assert_eq!(read_all(&mut stream).await, "100000 bytes");
    let (told, mut heard) = tokio::sync::mpsc::channel(1);
    let early = serve(move |mut stream| {
        let told = told.clone();
        async move {
            stream.write_all(b"bye").await.expect("sent");
            stream.shutdown().await.expect("half closed");
            let mut all = String::new();
            stream.read_to_string(&mut all).await.expect("all");
            told.send(all).await.expect("heard");
        }
    })
    .await;
    gateway.host("early.example", 2, early);
    let (mut stream, _) = gateway.connect("early.example:2").await;
    assert_eq!(read_all(&mut stream).await, "bye");
    stream.write_all(b"still here").await.expect("sent");
    stream.shutdown().await.expect("closed");
    assert_eq!(heard.recv().await.as_deref(), Some("still here"));
}

#[tokio::test]
async fn a_first_message_that_comes_with_the_connect_is_not_lost() {
    let gateway = TestGateway::start(&[raw("a.example:1")]);
    gateway.host("a.example", 1, echo().await);
    let mut stream = gateway.open().await;
    stream
        .write_all(b"CONNECT a.example:1 HTTP/1.1\r\nHost: a.example\r\n\r\nearly")
        .await
        .expect("sent");
    stream.shutdown().await.expect("half closed");
    assert_eq!(read_all(&mut stream).await, "HTTP/1.1 200 OK\r\n\r\nearly");
}

#[tokio::test]
async fn tls_without_a_name_is_refused() {
    let (server, _) = tls_echo("a.example").await;
    let mut gateway = TestGateway::start(&[allow("a.example")]);
    gateway.host("a.example", 443, server);
    let (mut stream, _) = gateway.connect("a.example:443").await;
    stream
        .write_all(&crate::tls::tests::hello(None))
        .await
        .expect("sent");
    let mut told = Vec::new();
    drop(stream.read_to_end(&mut told).await);
    assert_eq!(told, ACCESS_DENIED);
    assert!(gateway.attempt().await.because.contains("names no host"));
}
