//! Programs that know nothing of proxies, as the guest leads them here.

use std::time::Duration;

use podbay_wire::BLOCKED;
use podbay_wire::EgressAccess;
use podbay_wire::EgressPurpose;
use podbay_wire::OPENING;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio_rustls::rustls::pki_types::ServerName;

use super::kit::TestGateway;
use super::kit::allow;
use super::kit::deny;
use super::kit::raw;
use super::kit::read_all;
use super::servers::Web;
use super::servers::echo;
use super::servers::serve;
use super::servers::tls_echo;
use crate::Limits;
use crate::tls::ACCESS_DENIED;
use crate::tls::tests::hello;

#[tokio::test]
async fn a_name_has_the_ports_that_rules_allow_and_a_denied_one_is_an_attempt() {
    let mut gateway = TestGateway::start(&[
        allow("a.example"),
        raw("a.example:22,80"),
        deny("a.example:80"),
        allow("*.b.example:8443"),
        deny("c.b.example:8443"),
    ]);
    assert_eq!(gateway.ports("A.example.").await, [22, 443]);
    assert_eq!(gateway.ports("x.b.example").await, [8443]);
    for (name, reason) in [
        ("b.example", "no rule allows this host"),
        ("c.b.example", "the rule `c.b.example:8443` denies it"),
        (
            "127.0.0.1",
            "`127.0.0.1` is an address, and rules are about names",
        ),
    ] {
        assert!(gateway.ports(name).await.is_empty(), "{name}");
        let attempt = gateway.attempt().await;
        assert_eq!(
            (
                attempt.host.as_str(),
                attempt.port,
                attempt.access,
                attempt.because.as_str(),
                attempt.program.as_deref(),
            ),
            (name, 0, EgressAccess::Name, reason, Some("a program"))
        );
    }
    assert_eq!(gateway.names.asked(), [""; 0], "no query leaves");
}

#[tokio::test]
async fn tls_for_the_host_goes_through_and_for_another_one_is_refused() {
    let (server, connector) = tls_echo("a.example").await;
    let mut gateway = TestGateway::start(&[allow("a.example"), allow("b.example")]);
    gateway.host("a.example", 443, server);
    let stream = gateway.open_direct("a.example", 443).await;
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
    assert!(
        attempt.allowed && attempt.access == EgressAccess::Tls && attempt.bytes_received > 500,
        "{attempt:?}"
    );
    for (host, named, reason) in [
        ("a.example", "b.example", "names `b.example`"),
        ("c.example", "c.example", "no rule allows this host"),
    ] {
        let mut stream = gateway.open_direct(host, 443).await;
        stream.write_all(&hello(Some(named))).await.expect("sent");
        let mut seen = Vec::new();
        stream.read_to_end(&mut seen).await.expect("an end");
        assert_eq!(seen, ACCESS_DENIED, "{host}");
        let attempt = gateway.attempt().await;
        assert!(
            !attempt.allowed && attempt.because.contains(reason),
            "{attempt:?}"
        );
    }
}

#[tokio::test]
async fn plain_http_is_decided_on_request_by_request() {
    let (web, server) = Web::start(9).await;
    let mut gateway = TestGateway::start(&[allow("a.example:8080")]);
    gateway.host("a.example", 8080, server);
    let ask = async |host: &str, request: &str| {
        let mut stream = gateway.open_direct(host, 8080).await;
        stream.write_all(request.as_bytes()).await.expect("sent");
        read_all(&mut stream).await
    };
    let answer = ask(
        "a.example",
        "GET /x?y HTTP/1.1\r\nHost: a.example:8080\r\nConnection: close\r\n\r\n",
    )
    .await;
    assert!(answer.ends_with("connection 1"), "{answer}");
    assert!(
        web.requests()[0].starts_with("GET /x?y HTTP/1.1\r\nhost: a.example:8080\r\n"),
        "{:?}",
        web.requests()
    );
    for (host, request, problem) in [
        (
            "a.example",
            "GET / HTTP/1.1\r\nHost: b.example:8080\r\n\r\n",
            "names another host",
        ),
        (
            "a.example",
            "GET http://a.example:8080/ HTTP/1.1\r\nHost: a.example:8080\r\n\r\n",
            "as if it were a proxy",
        ),
        (
            "a.example",
            "CONNECT a.example:8080 HTTP/1.1\r\nHost: a.example:8080\r\n\r\n",
            "as if it were a proxy",
        ),
        (
            "a.example",
            "what is this\r\n\r\n",
            "no request of HTTP/1.1",
        ),
        (
            "b.example",
            "GET / HTTP/1.1\r\nHost: b.example:8080\r\nConnection: close\r\n\r\n",
            BLOCKED,
        ),
    ] {
        let answer = ask(host, request).await;
        assert!(answer.contains(problem), "{request}: {answer}");
    }
    assert_eq!(web.requests().len(), 1);
    assert!(gateway.attempt().await.allowed);
    for host in [
        "a.example",
        "a.example",
        "a.example",
        "a.example",
        "b.example",
    ] {
        let attempt = gateway.attempt().await;
        assert!(
            !attempt.allowed && attempt.host == host && attempt.port == 8080,
            "{attempt:?}"
        );
    }
}

#[tokio::test]
async fn where_a_rule_says_raw_a_server_may_speak_first() {
    let speaks = serve(|mut stream| async move {
        drop(stream.write_all(b"SSH-2.0-x").await);
    })
    .await;
    let limits = Limits {
        hello_time: Duration::from_millis(200),
        ..Limits::default()
    };
    let mut gateway = TestGateway::with(limits, &[raw("a.example:22"), allow("b.example:22")]);
    gateway.host("a.example", 22, speaks);
    let mut stream = gateway.open_direct("a.example", 22).await;
    assert_eq!(read_all(&mut stream).await, "SSH-2.0-x");
    drop(stream);
    assert!(gateway.attempt().await.allowed);
    // Without that word the client waits for a server that is never reached.
    let mut stream = gateway.open_direct("b.example", 22).await;
    assert_eq!(read_all(&mut stream).await, "");
    let attempt = gateway.attempt().await;
    assert!(
        !attempt.allowed && attempt.because.contains("this is neither"),
        "{attempt:?}"
    );
    assert_eq!(gateway.names.asked(), ["a.example"]);
}

#[tokio::test]
async fn an_address_is_looked_at_whatever_leads_to_it() {
    let mut gateway = TestGateway::start(&[raw("a.example:22")]);
    gateway.names.answer("a.example", &[&["169.254.169.254"]]);
    gateway.dial.lead("169.254.169.254:22", echo().await);
    let mut stream = gateway.open_direct("a.example", 22).await;
    assert_eq!(read_all(&mut stream).await, "");
    assert!(gateway.attempt().await.because.contains("never reached"));
    assert!(gateway.dial.dialled().is_empty());
}

#[tokio::test]
async fn the_program_that_asked_is_told_without_what_could_be_a_terminals() {
    let (_, server) = Web::start(9).await;
    let mut gateway = TestGateway::start(&[allow("a.example")]);
    gateway.host("a.example", 80, server);
    let name = format!("curl\u{1b}[2J\n{}", "x".repeat(200));
    let mut stream = gateway.open_for(EgressPurpose::Proxy, &name).await;
    stream
        .write_all(
            b"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n",
        )
        .await
        .expect("sent");
    assert!(read_all(&mut stream).await.ends_with("connection 1"));
    let program = gateway.attempt().await.program.expect("a program");
    assert!(
        program.starts_with("curl [2J x") && program.chars().count() == 64,
        "{program:?}"
    );
}

#[tokio::test]
async fn an_opening_that_no_guest_sends_ends_the_connection() {
    let gateway = TestGateway::start(&[allow("a.example")]);
    for opening in [
        &[OPENING, 0xff, 0xff][..],
        &[OPENING, 0, 2, b'{', b'}'],
        &[OPENING, 0, 1, b'x', b'y'],
    ] {
        assert_eq!(gateway.send(opening).await, "", "{opening:?}");
    }
    // Nor is an address a host.
    let mut stream = gateway.open_direct("127.0.0.1", 80).await;
    assert_eq!(read_all(&mut stream).await, "");
}
