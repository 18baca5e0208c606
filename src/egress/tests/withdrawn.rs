//! Rules that change while streams run.

use podbay_wire::EgressRule;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

use super::kit::TestGateway;
use super::kit::allow;
use super::kit::deny;
use super::kit::raw;
use super::kit::read_all;
use super::kit::read_head;
use super::servers::echo;
use super::servers::serve;
use crate::exchange::WITHDRAWN;

async fn echoes(stream: &mut UnixStream) -> bool {
    let mut seen = [0; 1];
    stream.write_all(b"x").await.is_ok() && stream.read_exact(&mut seen).await.is_ok()
}

#[tokio::test]
async fn a_rule_that_is_withdrawn_cuts_its_streams_and_no_others() {
    let server = echo().await;
    let mut gateway = TestGateway::start(&[raw("a.example:1"), raw("b.example:1")]);
    for name in ["a.example", "b.example"] {
        gateway.host(name, 1, server);
    }
    let (mut first, _) = gateway.connect("a.example:1").await;
    let (mut second, _) = gateway.connect("b.example:1").await;
    assert!(echoes(&mut first).await && echoes(&mut second).await);
    gateway.set_rules(&[raw("a.example:1"), raw("b.example:1"), allow("c.example")]);
    assert!(echoes(&mut first).await, "a rule more cuts nothing");
    gateway.set_rules(&[raw("b.example:1")]);
    assert_eq!(read_all(&mut first).await, "");
    let attempt = gateway.attempt().await;
    assert_eq!(
        (
            attempt.host.as_str(),
            attempt.allowed,
            attempt.failure.as_deref()
        ),
        ("a.example", true, Some(WITHDRAWN))
    );
    assert!(echoes(&mut second).await);
    gateway.set_rules(&[raw("b.example:1"), deny("b.example:1")]);
    assert_eq!(read_all(&mut second).await, "");
}

#[tokio::test]
async fn an_answer_is_cut_in_its_middle() {
    let server = serve(|mut stream| async move {
        read_head(&mut stream).await;
        drop(
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbegun")
                .await,
        );
        drop(stream.read_u8().await);
    })
    .await;
    let gets = |method: &str| EgressRule {
        methods: vec![method.into()],
        ..allow("a.example")
    };
    let mut gateway = TestGateway::start(&[gets("GET")]);
    gateway.host("a.example", 80, server);
    let mut stream = gateway.open().await;
    stream
        .write_all(b"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n")
        .await
        .expect("sent");
    read_head(&mut stream).await;
    stream.read_exact(&mut [0; 5]).await.expect("the beginning");
    gateway.set_rules(&[gets("POST")]);
    assert_eq!(read_all(&mut stream).await, "");
    let attempt = gateway.attempt().await;
    assert_eq!(
        (attempt.bytes_received, attempt.failure.as_deref()),
        (5, Some(WITHDRAWN))
    );
}

#[tokio::test]
async fn a_private_network_is_left_when_the_rule_says_so_no_more() {
    let private = |private: bool| {
        [EgressRule {
            private,
            ..raw("a.example:1")
        }]
    };
    let gateway = TestGateway::start(&private(true));
    gateway.names.answer("a.example", &[&["10.0.0.7"]]);
    gateway.dial.lead("10.0.0.7:1", echo().await);
    let (mut stream, _) = gateway.connect("a.example:1").await;
    assert!(echoes(&mut stream).await);
    gateway.set_rules(&private(false));
    assert_eq!(read_all(&mut stream).await, "");
}

#[tokio::test]
async fn a_kept_connection_is_closed_by_a_change_that_comes_between_two_requests() {
    let (told, mut ended) = tokio::sync::mpsc::channel(1);
    let server = serve(move |mut stream| {
        let told = told.clone();
        async move {
            read_head(&mut stream).await;
            stream
                .write_all(b"HTTP/1.1 204 No Content\r\n\r\n")
                .await
                .expect("sent");
            drop(stream.read_to_end(&mut Vec::new()).await);
            told.send(()).await.expect("heard");
        }
    })
    .await;
    let mut gateway = TestGateway::start(&[allow("a.example")]);
    gateway.host("a.example", 80, server);
    let mut stream = gateway.open().await;
    stream
        .write_all(b"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n")
        .await
        .expect("sent");
    read_head(&mut stream).await;
    gateway.attempt().await;
    gateway.set_rules(&[]);
    assert_eq!(ended.recv().await, Some(()));
}
