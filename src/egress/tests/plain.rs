//! Plain HTTP, and requests that are none.

use podbay_wire::EgressAccess;
use podbay_wire::EgressRule;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;

use super::kit::TestGateway;
use super::kit::WEB;
use super::kit::allow;
use super::kit::deny;
use super::kit::read_head;
use super::servers::Web;
use super::servers::serve;
use podbay_wire::BLOCKED;

#[tokio::test]
async fn an_allowed_host_is_asked_in_its_own_words_and_the_attempt_is_told() {
    let (web, server) = Web::start(9).await;
    let mut gateway = TestGateway::start(&[allow("a.example")]);
    gateway.host("a.example", 80, server);
    let request = "POST http://A.example./x?q=1 HTTP/1.1\r\nHost: A.EXAMPLE:80\r\nProxy-Authorization: Basic eA==\r\n\
                   Proxy-Connection: keep-alive\r\nX-Hop: 1\r\nConnection: x-hop, close\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello";
    let answer = gateway.send(request).await;
    assert!(
        answer.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
            && answer.ends_with("connection 1"),
        "{answer}"
    );
    assert!(!answer.contains("keep-alive"), "{answer}");
    assert_eq!(
        web.requests(),
        ["POST /x?q=1 HTTP/1.1\r\nhost: a.example\r\ncontent-length: 5\r\n\r\nhello"]
    );
    let attempt = gateway.attempt().await;
    assert_eq!(
        (
            attempt.host.as_str(),
            attempt.port,
            attempt.access,
            attempt.allowed
        ),
        ("a.example", 80, EgressAccess::Http, true)
    );
    assert_eq!(
        (
            attempt.because.as_str(),
            attempt.failure,
            attempt.bytes_sent,
            attempt.bytes_received
        ),
        ("a.example", None, 5, 12)
    );
}

#[tokio::test]
async fn a_denied_host_is_never_resolved_and_the_answer_says_why() {
    let mut gateway = TestGateway::start(&[
        allow("*.a.example"),
        deny("no.a.example"),
        allow("a.example:8080"),
    ]);
    for (host, reason) in [
        ("b.example", "b.example:80: no rule allows this host"),
        (
            "no.a.example",
            "no.a.example:80: the rule `no.a.example` denies it",
        ),
        (
            "a.example",
            "a.example:80: the rule `a.example:8080` allows other ports",
        ),
        (
            "a.example.evil.example",
            "a.example.evil.example:80: no rule allows this host",
        ),
        (
            "127.0.0.1",
            "127.0.0.1:80: `127.0.0.1` is an address, and rules are about names",
        ),
        (
            "[::1]",
            "[::1]:80: `[::1]` is an address, and rules are about names",
        ),
        (
            "0x7f.1",
            "0x7f.1:80: `0x7f.1` is an address, and rules are about names",
        ),
        ("localhost", "localhost:80: no rule allows this host"),
    ] {
        let answer = gateway.get(&format!("http://{host}/")).await;
        assert!(
            answer.starts_with("HTTP/1.1 403 Blocked by policy\r\n"),
            "{host}: {answer}"
        );
        assert!(
            answer.ends_with(&format!("\r\n\r\n{reason}\n{BLOCKED}\n")),
            "{host}: {answer}"
        );
        let (_, head) = gateway.connect(&format!("{host}:80")).await;
        assert!(
            head.starts_with("HTTP/1.1 403 Blocked by policy\r\n"),
            "{host}: {head}"
        );
        for _ in 0..2 {
            let attempt = gateway.attempt().await;
            assert!(
                !attempt.allowed && reason.ends_with(&attempt.because),
                "{attempt:?}"
            );
        }
    }
    for number in 0..100 {
        gateway
            .get(&format!("http://secret-{number}.evil.example/"))
            .await;
    }
    assert_eq!(gateway.names.asked(), [""; 0], "no query leaves");
}

#[tokio::test]
async fn methods_and_paths_are_held_to_request_by_request_on_one_connection() {
    let (web, server) = Web::start(9).await;
    let gateway = TestGateway::start(&[EgressRule {
        methods: vec!["GET".into()],
        paths: vec!["/pub".into()],
        ..allow("a.example")
    }]);
    gateway.host("a.example", 80, server);
    let mut stream = gateway.open().await;
    for (request, status) in [
        ("GET http://a.example/pub/x", "200"),
        ("GET http://a.example/pub/../x", "403"),
    ] {
        stream
            .write_all(format!("{request} HTTP/1.1\r\nHost: a.example\r\n\r\n").as_bytes())
            .await
            .expect("sent");
        let head = read_head(&mut stream).await;
        assert!(
            head.starts_with(&format!("HTTP/1.1 {status} ")),
            "{request}: {head}"
        );
        if status == "200" {
            stream.read_exact(&mut [0; 12]).await.expect("the body");
        }
    }
    let post = gateway
        .send("POST http://a.example/pub HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0\r\n\r\n")
        .await;
    assert!(post.starts_with("HTTP/1.1 403 "), "{post}");
    let (_, tunnel) = gateway.connect("a.example:80").await;
    assert!(
        tunnel.starts_with("HTTP/1.1 403 "),
        "what is inside a tunnel shows neither: {tunnel}"
    );
    assert_eq!(web.requests().len(), 1);
}

#[tokio::test]
async fn requests_of_one_connection_share_one_to_the_server_and_not_with_others() {
    let (_, server) = Web::start(9).await;
    let gateway = TestGateway::start(&[allow("*.a.example")]);
    for host in ["x.a.example", "y.a.example"] {
        gateway.host(host, 80, server);
    }
    let mut stream = gateway.open().await;
    let mut bodies = Vec::new();
    for host in ["x", "x", "y", "y", "x"] {
        let request =
            format!("GET http://{host}.a.example/ HTTP/1.1\r\nHost: {host}.a.example\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        read_head(&mut stream).await;
        let mut body = [0; 12];
        stream.read_exact(&mut body).await.expect("a body");
        bodies.push(String::from_utf8_lossy(&body).into_owned());
    }
    assert_eq!(
        bodies,
        [
            "connection 1",
            "connection 1",
            "connection 2",
            "connection 2",
            "connection 3"
        ]
    );
    assert!(
        gateway
            .get("http://x.a.example/")
            .await
            .ends_with("connection 4")
    );
}

#[tokio::test]
async fn a_kept_connection_that_the_server_closed_is_made_again() {
    let (web, server) = Web::start(1).await;
    let gateway = TestGateway::start(&[allow("a.example")]);
    gateway.host("a.example", 80, server);
    let mut stream = gateway.open().await;
    for number in 1..=5 {
        stream.write_all(b"POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 2\r\n\r\nhi").await.expect("sent");
        let head = read_head(&mut stream).await;
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{number}: {head}");
        stream.read_exact(&mut [0; 12]).await.expect("a body");
        // The server's end of the connection arrives before the next request.
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(web.requests().len(), 5);
}

#[tokio::test]
async fn a_body_in_chunks_goes_through_and_ends_the_connection() {
    let (web, server) = Web::start(9).await;
    let gateway = TestGateway::start(&[allow("a.example")]);
    gateway.host("a.example", 80, server);
    let head =
        "PUT http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n";
    let smuggled = "GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n";
    let answer = gateway
        .send(format!("{head}5\r\nhello\r\n0\r\n\r\n{smuggled}"))
        .await;
    assert!(
        answer.contains("connection: close\r\n") && answer.ends_with("connection 1"),
        "{answer}"
    );
    let requests = web.requests();
    assert!(
        requests.len() == 1
            && requests[0].ends_with("transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
        "{requests:?}"
    );
}

#[tokio::test]
async fn what_is_written_in_two_ways_is_refused() {
    let mut gateway = TestGateway::start(&[allow("a.example:80,443"), allow("allowed.example")]);
    gateway.names.answer("a.example", &[&[WEB]]);
    let get = |target: &str, headers: &str| format!("GET {target} HTTP/1.1\r\n{headers}\r\n");
    let host = "Host: a.example\r\n";
    let url = "http://a.example/";
    let post = |headers: &str| format!("POST {url} HTTP/1.1\r\n{host}{headers}\r\n0\r\n\r\n");
    let twice = "is written more than once";
    for (request, status, problem) in [
        (get("/", host), 400, "ask with the whole URL"),
        (get("*", host), 400, "ask with the whole URL"),
        (
            get("https://a.example/", host),
            400,
            "`https` goes through CONNECT",
        ),
        (
            get("ftp://a.example/", host),
            400,
            "only `http://` and CONNECT",
        ),
        (
            get("http://allowed.example@a.example/", host),
            400,
            "a user's name stands before the host",
        ),
        (
            get("http://a:b@a.example/", host),
            400,
            "a user's name stands before the host",
        ),
        (
            get("http://a.example:0/", "Host: a.example:0\r\n"),
            400,
            "a port from 1 to 65535",
        ),
        (
            get("http://a.example:/", host),
            400,
            "a port from 1 to 65535",
        ),
        (
            get(url, "Host: allowed.example\r\n"),
            400,
            "names another host",
        ),
        (
            get(url, "Host: a.example:443\r\n"),
            400,
            "names another host",
        ),
        (
            get(url, "Host: allowed.example@a.example\r\n"),
            400,
            "names another host",
        ),
        (
            get(url, &format!("{host}{host}")),
            400,
            "more than one header `Host`",
        ),
        (
            get(url, &format!("{host}Host: allowed.example\r\n")),
            400,
            "more than one header `Host`",
        ),
        (get(url, ""), 400, "the header `Host` is missing"),
        (
            post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
            400,
            twice,
        ),
        (
            post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"),
            400,
            twice,
        ),
        (
            post("Content-Length: 5\r\nContent-Length: 5\r\n"),
            400,
            twice,
        ),
        (
            post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
            400,
            twice,
        ),
        (
            post("Transfer-Encoding: gzip, chunked\r\n"),
            400,
            "encoded as `chunked`",
        ),
        (post("Content-Length: +5\r\n"), 400, "is no number"),
        (post("Content-Length: 5, 5\r\n"), 400, "is no number"),
        (
            post("Content-Length : 5\r\n"),
            400,
            "no request of HTTP/1.1",
        ),
        (
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into(),
            400,
            "HTTP/2 inside a CONNECT",
        ),
        (
            "CONNECT a.example HTTP/1.1\r\nHost: a.example\r\n\r\n".into(),
            400,
            "a port from 1 to 65535",
        ),
        (
            format!("CONNECT a.example:443 HTTP/1.1\r\n{host}Content-Length: 5\r\n\r\nhello"),
            400,
            "a CONNECT has no body",
        ),
        (
            "CONNECT a.example:443 HTTP/1.1\r\nHost: allowed.example:443\r\n\r\n".into(),
            400,
            "names another host",
        ),
        (
            "CONNECT x@a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n".into(),
            400,
            "a user's name",
        ),
        ("\x16\x03\x01\x02\x00".into(), 400, "no request of HTTP/1.1"),
        (
            "GET http://b\u{fc}cher.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n".into(),
            400,
            "",
        ),
    ] {
        let answer = gateway.send(&request).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains(problem),
            "{request:?}: {answer}"
        );
        if !problem.is_empty() {
            let attempt = gateway.attempt().await;
            assert!(
                !attempt.allowed && attempt.because.contains(problem),
                "{request:?}: {attempt:?}"
            );
        }
    }
    assert_eq!(gateway.names.asked(), [""; 0]);
}

#[tokio::test]
async fn a_refusal_is_the_answer_to_its_own_request() {
    let (_, server) = Web::start(9).await;
    let gateway = TestGateway::start(&[allow("a.example")]);
    gateway.host("a.example", 80, server);
    let request = "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n";
    let answers = gateway
        .send(format!(
            "{request}\r\n{request}Host: a.example\r\nContent-Length: x\r\n\r\n"
        ))
        .await;
    let statuses: Vec<&str> = answers
        .matches("HTTP/1.1 200 OK")
        .chain(answers.matches("HTTP/1.1 400 Bad Request"))
        .collect();
    assert_eq!(statuses.len(), 2, "{answers}");
    assert!(
        answers.starts_with("HTTP/1.1 200 OK") && answers.contains("is no number"),
        "{answers}"
    );
    let asked_for = gateway.get("http://refused.invalid/").await;
    assert!(
        asked_for.starts_with("HTTP/1.1 403 "),
        "a host like any other: {asked_for}"
    );
}

#[tokio::test]
async fn a_fragment_does_not_make_a_host_another_one() {
    let gateway = TestGateway::start(&[allow("allowed.example")]);
    let answer = gateway
        .send("GET http://evil.example#allowed.example HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        .await;
    assert!(
        answer.starts_with("HTTP/1.1 403 ") && answer.contains("evil.example:80: no rule"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_websocket_goes_through_under_the_rule_of_its_request() {
    let server = serve(|mut stream| async move {
        let head = read_head(&mut stream).await;
        assert!(head.contains("upgrade: websocket\r\n") && head.contains("connection: upgrade\r\n"), "{head}");
        stream
            .write_all(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nfirst")
            .await
            .expect("sent");
        let (mut from, mut to) = stream.split();
        drop(tokio::io::copy(&mut from, &mut to).await);
    })
    .await;
    let mut gateway = TestGateway::start(&[EgressRule {
        paths: vec!["/ws".into()],
        ..allow("a.example")
    }]);
    gateway.host("a.example", 80, server);
    let ask = |path: &str| {
        format!(
            "GET http://a.example{path} HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n\r\nearly"
        )
    };
    let denied = gateway.send(ask("/other")).await;
    assert!(denied.starts_with("HTTP/1.1 403 "), "{denied}");
    gateway.attempt().await;
    let mut stream = gateway.open().await;
    stream.write_all(ask("/ws").as_bytes()).await.expect("sent");
    let head = read_head(&mut stream).await;
    assert!(
        head.starts_with("HTTP/1.1 101 ") && head.contains("upgrade: websocket\r\n"),
        "{head}"
    );
    let mut seen = [0; 10];
    stream.read_exact(&mut seen).await.expect("both");
    assert_eq!(&seen, b"firstearly");
    drop(stream);
    let attempt = gateway.attempt().await;
    assert_eq!(
        (
            attempt.access,
            attempt.allowed,
            attempt.bytes_sent,
            attempt.bytes_received
        ),
        (EgressAccess::Http, true, 5, 10)
    );
}

#[tokio::test]
async fn a_server_that_changes_the_protocol_unasked_is_cut_off() {
    let server = serve(|mut stream| async move {
        read_head(&mut stream).await;
        drop(stream.write_all(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: own\r\nConnection: Upgrade\r\n\r\nsecret").await);
    })
    .await;
    let gateway = TestGateway::start(&[allow("a.example")]);
    gateway.host("a.example", 80, server);
    for headers in [
        "Connection: close\r\n",
        "Connection: Upgrade\r\nUpgrade: h2c\r\n",
    ] {
        let answer = gateway
            .send(format!(
                "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n{headers}\r\n"
            ))
            .await;
        assert!(
            answer.starts_with("HTTP/1.1 502 ") && !answer.contains("secret"),
            "{answer}"
        );
    }
}
