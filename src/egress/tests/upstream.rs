//! The host's own proxy in between: names decide, and it resolves them.

use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::kit::TestGateway;
use super::kit::allow;
use super::kit::raw;
use super::kit::read_all;
use super::kit::read_head;
use super::servers::Web;
use super::servers::echo;
use super::servers::serve;

/// A proxy that leads every tunnel to one server, and tells what it was asked for.
async fn proxy(
    server: std::net::SocketAddr,
) -> (std::net::SocketAddr, tokio::sync::mpsc::Receiver<String>) {
    let (told, asked) = tokio::sync::mpsc::channel(16);
    let address = serve(move |mut stream| {
        let told = told.clone();
        async move {
            told.send(read_head(&mut stream).await)
                .await
                .expect("heard");
            let mut server = TcpStream::connect(server).await.expect("a server");
            // In pieces, the last of which has bytes of the tunnel with it.
            for piece in [
                "HTTP/1.1 200 Connection est",
                "ablished\r\nVia: x\r\n\r",
                "\nfirst ",
            ] {
                stream.write_all(piece.as_bytes()).await.expect("sent");
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
            drop(tokio::io::copy_bidirectional(&mut stream, &mut server).await);
        }
    })
    .await;
    (address, asked)
}

#[tokio::test]
async fn the_proxy_gets_the_name_and_nothing_is_resolved() {
    let (proxy, mut asked) = proxy(echo().await).await;
    let gateway = TestGateway::start(&[]);
    gateway.dial.lead("127.0.0.1:3128", proxy);
    gateway.set_upstream(
        &[raw("a.example:22"), allow("b.example")],
        "127.0.0.1",
        3128,
    );
    let (mut stream, head) = gateway.connect("a.example:22").await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    stream.write_all(b"second").await.expect("sent");
    stream.shutdown().await.expect("half closed");
    assert_eq!(read_all(&mut stream).await, "first second");
    assert_eq!(
        asked.recv().await.as_deref(),
        Some("CONNECT a.example:22 HTTP/1.1\r\nHost: a.example:22\r\n\r\n")
    );
    let denied = gateway.get("http://c.example/").await;
    assert!(denied.starts_with("HTTP/1.1 403 "), "{denied}");
    let (mut stream, _) = gateway.connect("b.example:443").await;
    stream.write_all(b"no TLS").await.expect("sent");
    assert!(
        read_all(&mut stream).await.contains("is no TLS"),
        "what goes through it is looked at all the same"
    );
    assert_eq!(gateway.names.asked(), [""; 0]);
}

#[tokio::test]
async fn a_proxy_that_refuses_or_is_gone_is_named() {
    let refusing = serve(|mut stream| async move {
        read_head(&mut stream).await;
        drop(
            stream
                .write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
                .await,
        );
        drop(stream.read_u8().await);
    })
    .await;
    let gateway = TestGateway::start(&[]);
    gateway.names.answer("proxy.corp.example", &[&["10.0.0.1"]]);
    gateway.dial.lead("10.0.0.1:3128", refusing);
    for (port, problem) in [
        (3128, "the proxy proxy.corp.example:3128: it answered 407"),
        (3129, "10.0.0.1: connection refused"),
    ] {
        gateway.set_upstream(&[allow("a.example")], "proxy.corp.example", port);
        let answer = gateway.get("http://a.example/").await;
        assert!(
            answer.starts_with("HTTP/1.1 502 ") && answer.contains(problem),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn plain_http_goes_through_it_too() {
    let (_, server) = Web::start(1).await;
    let (direct, mut asked) = {
        let (told, asked) = tokio::sync::mpsc::channel(16);
        let address = serve(move |mut stream| {
            let told = told.clone();
            async move {
                told.send(read_head(&mut stream).await)
                    .await
                    .expect("heard");
                let mut server = TcpStream::connect(server).await.expect("a server");
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\n\r\n")
                    .await
                    .expect("sent");
                drop(tokio::io::copy_bidirectional(&mut stream, &mut server).await);
            }
        })
        .await;
        (address, asked)
    };
    let gateway = TestGateway::start(&[]);
    gateway.dial.lead("10.0.0.1:3128", direct);
    gateway.set_upstream(&[allow("a.example")], "10.0.0.1", 3128);
    assert!(
        gateway
            .get("http://a.example/")
            .await
            .ends_with("connection 1")
    );
    assert!(
        asked
            .recv()
            .await
            .is_some_and(|head| head.starts_with("CONNECT a.example:80 "))
    );
}
