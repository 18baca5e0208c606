//! What clients and servers can make the gateway hold, and wait for.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

use super::kit::PATIENCE;
use super::kit::TestGateway;
use super::kit::allow;
use super::kit::raw;
use super::kit::read_all;
use super::kit::read_head;
use super::servers::Web;
use super::servers::echo;
use super::servers::serve;
use crate::Limits;

/// More than any socket's buffers hold, and less than a body here.
const HELD: usize = 24 * 1024 * 1024;
const BODY: usize = 64 * 1024 * 1024;

#[tokio::test]
async fn a_head_of_a_mebibyte_or_with_a_thousand_headers_is_refused() {
    let gateway = TestGateway::start(&[allow("a.example")]);
    let request = |headers: &str| {
        format!("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n{headers}\r\n")
    };
    for (headers, problem) in [
        (
            format!("X: {}\r\n", "x".repeat(1024 * 1024)),
            "more than 16384 bytes",
        ),
        ("X: y\r\n".repeat(1000), "more than 100 headers"),
    ] {
        let answer = gateway.send(request(&headers)).await;
        assert!(
            answer.starts_with("HTTP/1.1 431 ") && answer.contains(problem),
            "{answer}"
        );
    }
    let answer = gateway
        .send(format!(
            "GET http://a.example/{} HTTP/1.1\r\n",
            "x".repeat(20_000)
        ))
        .await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
}

#[tokio::test]
async fn a_head_in_drops_is_refused_and_a_silent_client_is_closed() {
    let limits = Limits {
        head_time: Duration::from_millis(200),
        ..Limits::default()
    };
    let gateway = TestGateway::with(limits, &[allow("a.example")]);
    let (mut slow, mut silent) = (gateway.open().await, gateway.open().await);
    let (mut from, mut to) = slow.split();
    let dripping = async {
        for byte in b"GET http://a.example/ HTTP/1.1\r\n".iter().cycle() {
            if to.write_all(&[*byte]).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let answer = tokio::select! {
        answer = read_all(&mut from) => answer,
        () = dripping => panic!("the gateway closed without a word"),
    };
    assert!(
        answer.starts_with("HTTP/1.1 408 ") && answer.contains("did not come within 200ms"),
        "{answer}"
    );
    assert_eq!(read_all(&mut silent).await, "");
}

#[tokio::test]
async fn a_client_that_sends_no_first_message_of_tls_is_told() {
    let limits = Limits {
        hello_time: Duration::from_millis(200),
        ..Limits::default()
    };
    let mut gateway = TestGateway::with(limits, &[allow("a.example")]);
    gateway.host("a.example", 443, echo().await);
    let (mut stream, _) = gateway.connect("a.example:443").await;
    stream
        .write_all(&crate::tls::tests::hello(Some("a.example"))[..50])
        .await
        .expect("sent");
    assert!(read_all(&mut stream).await.contains("sent no TLS within"));
    assert!(!gateway.attempt().await.allowed);
}

#[tokio::test]
async fn a_thousand_connections_leave_others_served_and_the_bound_is_said() {
    let (_, server) = Web::start(9).await;
    let limits = Limits {
        connections: 1001,
        ..Limits::default()
    };
    let gateway = TestGateway::with(limits, &[allow("a.example")]);
    gateway.host("a.example", 80, server);
    let mut open: Vec<UnixStream> = Vec::new();
    for number in 0..1000 {
        let mut stream = gateway.open().await;
        if number % 2 == 0 {
            stream.write_all(b"GET http://a.exa").await.expect("sent");
        }
        open.push(stream);
    }
    assert!(
        gateway
            .get("http://a.example/")
            .await
            .ends_with("connection 1")
    );
    open.push(gateway.open().await);
    let answer = gateway.get("http://a.example/").await;
    assert!(
        answer.starts_with("HTTP/1.1 503 ") && answer.contains("has 1001 connections"),
        "{answer}"
    );
    open.clear();
    // Their ends arrive one by one.
    let served = async {
        while !gateway
            .get("http://a.example/")
            .await
            .starts_with("HTTP/1.1 200 ")
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, served)
        .await
        .expect("places become free");
}

#[tokio::test]
async fn what_is_idle_is_cut_and_what_is_not_stays() {
    let limits = Limits {
        idle: Duration::from_millis(600),
        ..Limits::default()
    };
    let mut gateway = TestGateway::with(limits, &[raw("a.example:1"), allow("a.example")]);
    gateway.host("a.example", 1, echo().await);
    let silent =
        serve(|mut stream| async move { drop(stream.read_to_end(&mut Vec::new()).await) }).await;
    gateway.host("a.example", 80, silent);
    let (mut idle, _) = gateway.connect("a.example:1").await;
    let (mut busy, _) = gateway.connect("a.example:1").await;
    let talking = async {
        for _ in 0..12 {
            busy.write_all(b"x").await.expect("sent");
            busy.read_exact(&mut [0; 1]).await.expect("it stays");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::join!(talking, async {
        assert_eq!(read_all(&mut idle).await, "");
    });
    assert!(
        gateway
            .attempt()
            .await
            .failure
            .is_some_and(|failure| failure.contains("nothing went for 600ms"))
    );
    drop(busy);
    gateway.attempt().await;
    assert_eq!(
        gateway.get("http://a.example/").await,
        "",
        "a server that never answers"
    );
    assert!(
        gateway
            .attempt()
            .await
            .failure
            .is_some_and(|failure| failure.contains("nothing went for 600ms"))
    );
}

/// A server that sends a body as fast as it can, and how much of it went.
async fn flood(head: &'static str) -> (std::net::SocketAddr, Arc<AtomicUsize>) {
    let n_sent = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&n_sent);
    let server = serve(move |mut stream| {
        let counter = Arc::clone(&counter);
        async move {
            if !head.is_empty() {
                read_head(&mut stream).await;
            }
            stream.write_all(head.as_bytes()).await.expect("sent");
            let chunk = vec![7; 64 * 1024];
            while counter.load(Ordering::Relaxed) < BODY && stream.write_all(&chunk).await.is_ok() {
                counter.fetch_add(chunk.len(), Ordering::Relaxed);
            }
        }
    })
    .await;
    (server, n_sent)
}

/// Waits until a count does not change any more.
async fn settled(n_sent: &AtomicUsize) -> usize {
    loop {
        let before = n_sent.load(Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(300)).await;
        if before > 0 && n_sent.load(Ordering::Relaxed) == before {
            return before;
        }
    }
}

/// What waits for a slow client waits at the server: a body of any length needs no more than the
/// sockets' buffers.
#[tokio::test]
async fn a_body_that_the_client_does_not_read_is_not_held() {
    for head in ["", "HTTP/1.1 200 OK\r\nContent-Length: 67108864\r\n\r\n"] {
        let (server, n_sent) = flood(head).await;
        let gateway = TestGateway::start(&[raw("a.example:1"), allow("a.example")]);
        gateway.host("a.example", if head.is_empty() { 1 } else { 80 }, server);
        let mut stream = if head.is_empty() {
            gateway.connect("a.example:1").await.0
        } else {
            let mut stream = gateway.open().await;
            stream
                .write_all(b"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n")
                .await
                .expect("sent");
            read_head(&mut stream).await;
            stream
        };
        let held = settled(&n_sent).await;
        assert!(
            held < HELD,
            "{held} bytes went to a client that reads none: {head:?}"
        );
        let mut buffer = vec![0; 256 * 1024];
        let mut n_read = 0;
        while n_read < BODY {
            let read = stream.read(&mut buffer).await.expect("more");
            assert!(read > 0, "an end after {n_read} bytes: {head:?}");
            n_read += read;
        }
        assert_eq!(n_read, BODY);
    }
}

#[tokio::test]
async fn requests_wait_where_attempts_are_not_read_and_none_is_lost() {
    let mut gateway = TestGateway::with_attempts(Limits::default(), &[], 2);
    let asked = async {
        let each = (0..5).map(|number| {
            let gateway = &gateway;
            async move { gateway.get(&format!("http://a{number}.example/")).await }
        });
        futures::future::join_all(each).await
    };
    assert!(
        tokio::time::timeout(Duration::from_millis(300), asked)
            .await
            .is_err(),
        "three of them wait"
    );
    let mut seen = vec![gateway.attempt().await.host, gateway.attempt().await.host];
    seen.sort();
    assert_eq!(seen, ["a0.example", "a1.example"]);
}
