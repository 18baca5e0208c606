//! The user's own machine: reached through the controller alone, by a rule that names its port.

use std::time::Duration;

use podbay_wire::EgressHostFrame;
use podbay_wire::EgressHostPart;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;

use super::kit::PATIENCE;
use super::kit::TestGateway;
use super::kit::allow;
use super::kit::deny;
use super::kit::raw;
use super::kit::read_all;
use crate::rule::Problem;
use crate::rule::Rules;

impl TestGateway {
    /// Returns what the controller is told next.
    async fn told(&mut self) -> EgressHostFrame {
        tokio::time::timeout(PATIENCE, self.host.recv())
            .await
            .expect("in time")
            .expect("a frame")
    }

    fn answer(&self, stream: u32, part: EgressHostPart) {
        self.streams.hear(EgressHostFrame { stream, part });
    }
}

#[tokio::test]
async fn a_port_that_a_rule_names_is_asked_of_the_controller_whatever_is_spoken() {
    let mut gateway = TestGateway::start(&[allow("host.docker.internal:5432")]);
    for is_direct in [true, false] {
        let connecting = async |gateway: &TestGateway| {
            if is_direct {
                gateway.open_direct("host.docker.internal", 5432).await
            } else {
                let mut stream = gateway.open().await;
                let request = b"CONNECT host.docker.internal:5432 HTTP/1.1\r\nHost: host.docker.internal:5432\r\n\r\n";
                stream.write_all(request).await.expect("sent");
                stream
            }
        };
        let mut stream = connecting(&gateway).await;
        let opened = gateway.told().await;
        assert_eq!(opened.part, EgressHostPart::Open { port: 5432 });
        gateway.answer(opened.stream, EgressHostPart::Opened);
        if !is_direct {
            let mut head = [0; 19];
            stream.read_exact(&mut head).await.expect("an answer");
            assert_eq!(&head, b"HTTP/1.1 200 OK\r\n\r\n");
        }
        // As a database speaks.
        stream.write_all(&[0, 0, 0, 8]).await.expect("sent");
        let sent = gateway.told().await;
        let EgressHostPart::Data { data } = sent.part else {
            panic!("{sent:?}");
        };
        assert_eq!(data.0, [0, 0, 0, 8]);
        gateway.answer(opened.stream, EgressHostPart::Data { data });
        let mut seen = [0; 4];
        stream.read_exact(&mut seen).await.expect("an echo");
        assert_eq!(seen, [0, 0, 0, 8]);
        assert!(matches!(
            gateway.told().await.part,
            EgressHostPart::Credit { .. }
        ));
        let reason = "it went away".to_owned();
        gateway.answer(opened.stream, EgressHostPart::Closed { reason });
        assert_eq!(read_all(&mut stream).await, "");
        // Which is of no more use, and does no harm.
        assert!(matches!(
            gateway.told().await.part,
            EgressHostPart::Closed { .. }
        ));
        drop(stream);
        let attempt = gateway.attempt().await;
        assert_eq!(
            (
                attempt.allowed,
                attempt.because.as_str(),
                attempt.bytes_sent
            ),
            (true, "host.docker.internal:5432", 4)
        );
    }
    assert!(gateway.names.asked().is_empty() && gateway.dial.dialled().is_empty());
}

#[tokio::test]
async fn nothing_else_of_the_machine_is_asked_of_the_controller() {
    let mut gateway = TestGateway::start(&[
        allow("host.docker.internal:5432"),
        // Below a name is everything else.
        raw("*.docker.internal:22,80"),
        raw("*.internal.example:22"),
        allow("host.docker.internal:6379"),
        deny("host.docker.internal:6379"),
    ]);
    for port in [22, 80, 443, 5433, 6379] {
        let (_, head) = gateway
            .connect(&format!("host.docker.internal:{port}"))
            .await;
        assert!(head.starts_with("HTTP/1.1 403 "), "{port}: {head}");
        assert!(!gateway.attempt().await.allowed);
    }
    assert_eq!(gateway.ports("host.docker.internal").await, [5432]);
    let told = tokio::time::timeout(Duration::from_millis(50), gateway.host.recv());
    assert!(told.await.is_err(), "the controller was asked");
    assert!(gateway.names.asked().is_empty());
}

#[tokio::test]
async fn what_the_controller_refuses_is_told_to_the_client() {
    let mut gateway = TestGateway::start(&[allow("host.docker.internal:5432")]);
    let asking = async {
        let opened = gateway.host.recv().await.expect("a frame");
        let reason = "nothing listens there".to_owned();
        let frame = EgressHostFrame {
            stream: opened.stream,
            part: EgressHostPart::Closed { reason },
        };
        gateway.streams.hear(frame);
    };
    let socket = gateway.socket.clone();
    let client = async {
        let mut stream = tokio::net::UnixStream::connect(socket)
            .await
            .expect("it listens");
        let request = b"CONNECT host.docker.internal:5432 HTTP/1.1\r\nHost: host.docker.internal:5432\r\nConnection: close\r\n\r\n";
        stream.write_all(request).await.expect("sent");
        super::kit::read_head(&mut stream).await
    };
    let (head, ()) = tokio::join!(client, asking);
    assert!(head.starts_with("HTTP/1.1 502 "), "{head}");
    assert!(
        gateway
            .attempt()
            .await
            .failure
            .is_some_and(|failure| failure.contains("nothing listens there"))
    );
}

#[test]
fn a_rule_for_the_machine_names_its_port() {
    let problem = |host: &str| Rules::parse(&[allow(host)]).map_err(|error| error.problem);
    assert_eq!(problem("Host.Docker.Internal."), Err(Problem::HostPort));
    assert!(problem("host.docker.internal:5432").is_ok());
    assert!(problem("*.docker.internal").is_ok());
    assert!(Rules::parse(&[deny("host.docker.internal")]).is_ok());
}
