//! What names resolve to: lies, changes, too much, nothing, never.

use std::time::Duration;

use podbay_wire::EgressRule;

use super::kit::TestGateway;
use super::kit::WEB;
use super::kit::allow;
use super::kit::deny;
use super::servers::Web;
use crate::Limits;

#[tokio::test]
async fn an_address_that_is_not_of_the_internet_is_never_dialled() {
    let private = EgressRule {
        private: true,
        ..allow("private.example")
    };
    let mut gateway = TestGateway::start(&[allow("a.example"), private]);
    let refused = "is never reached";
    for (address, of_private) in [
        ("127.0.0.1", refused),
        ("0.0.0.0", refused),
        ("169.254.169.254", refused),
        ("100.100.100.200", refused),
        ("224.0.0.1", refused),
        ("::1", refused),
        ("fe80::1", refused),
        ("fd00:ec2::254", refused),
        ("::ffff:10.0.0.1", refused),
        ("::ffff:8.8.8.8", refused),
        ("64:ff9b::a00:1", refused),
        ("10.0.0.1", ""),
        ("172.16.0.1", ""),
        ("192.168.0.1", ""),
        ("100.64.0.1", ""),
        ("fd12:3456::1", ""),
    ] {
        for name in ["a.example", "private.example"] {
            gateway.names.answer(name, &[&[address]]);
        }
        let answer = gateway.get("http://a.example/").await;
        assert!(
            answer.starts_with("HTTP/1.1 403 ") && answer.contains(address),
            "{address}: {answer}"
        );
        let (_, head) = gateway.connect("a.example:443").await;
        assert!(head.starts_with("HTTP/1.1 403 "), "{address}: {head}");
        for _ in 0..2 {
            let attempt = gateway.attempt().await;
            assert!(
                !attempt.allowed && attempt.because.contains(address),
                "{attempt:?}"
            );
        }
        let n_dialled = gateway.dial.dialled().len();
        let answer = gateway.get("http://private.example/").await;
        gateway.attempt().await;
        if of_private.is_empty() {
            assert!(
                answer.starts_with("HTTP/1.1 502 "),
                "nothing is there, and it was dialled: {answer}"
            );
            assert_eq!(gateway.dial.dialled().len(), n_dialled + 1);
        } else {
            assert!(
                answer.starts_with("HTTP/1.1 403 ") && answer.contains(of_private),
                "{address}: {answer}"
            );
            assert_eq!(gateway.dial.dialled().len(), n_dialled, "{address}");
        }
    }
    assert!(
        gateway
            .dial
            .dialled()
            .iter()
            .all(|address| !address.starts_with("127.") && !address.starts_with("169."))
    );
}

#[tokio::test]
async fn an_answer_that_changes_is_looked_at_each_time_and_the_one_looked_at_is_dialled() {
    let (_, server) = Web::start(9).await;
    let gateway = TestGateway::start(&[allow("a.example")]);
    gateway
        .names
        .answer("a.example", &[&[WEB], &["127.0.0.1"], &["127.0.0.1", WEB]]);
    gateway.dial.lead(&format!("{WEB}:80"), server);
    for (status, why) in [
        ("200", "public"),
        ("403", "loopback"),
        ("200", "both: only the public one is dialled"),
    ] {
        let answer = gateway.get("http://a.example/").await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{why}: {answer}"
        );
    }
    assert_eq!(
        gateway.names.asked().len(),
        3,
        "one look-up for each connection"
    );
    assert_eq!(
        gateway.dial.dialled(),
        [format!("{WEB}:80"), format!("{WEB}:80")]
    );
}

#[tokio::test]
async fn a_denial_beats_an_address_that_is_allowed() {
    let gateway = TestGateway::start(&[allow("*.example.com"), deny("no.example.com")]);
    gateway.names.answer("no.example.com", &[&[WEB]]);
    assert!(
        gateway
            .get("http://no.example.com/")
            .await
            .starts_with("HTTP/1.1 403 ")
    );
    assert_eq!(gateway.names.asked(), [""; 0]);
}

#[tokio::test]
async fn three_hundred_addresses_none_and_no_answer_end_in_time() {
    let limits = Limits {
        resolve_time: Duration::from_millis(100),
        ..Limits::default()
    };
    let mut gateway = TestGateway::with(limits, &[allow("*.a.example")]);
    let many: Vec<String> = (0..300)
        .map(|number| format!("93.184.{}.{}", number / 256, number % 256))
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    gateway.names.answer("many.a.example", &[&many]);
    gateway.names.answer("none.a.example", &[&[]]);
    for (host, status, problem) in [
        ("many.a.example", "502", "93.184.0.15: connection refused"),
        (
            "none.a.example",
            "502",
            "no such name, or it has no address",
        ),
        ("never.a.example", "504", "not resolved within 100ms"),
    ] {
        let answer = gateway.get(&format!("http://{host}/")).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains(problem),
            "{host}: {answer}"
        );
        let attempt = gateway.attempt().await;
        assert!(
            attempt.allowed
                && attempt
                    .failure
                    .is_some_and(|failure| failure.contains(problem)),
            "{host}"
        );
    }
    assert_eq!(gateway.dial.dialled().len(), Limits::default().addresses);
}

#[tokio::test]
async fn the_next_address_is_dialled_where_the_first_is_not_there() {
    let (_, server) = Web::start(9).await;
    let gateway = TestGateway::start(&[allow("a.example")]);
    gateway
        .names
        .answer("a.example", &[&["2606:4700::1", "1.1.1.1", WEB]]);
    gateway.dial.lead(&format!("{WEB}:80"), server);
    assert!(
        gateway
            .get("http://a.example/")
            .await
            .ends_with("connection 1")
    );
    assert_eq!(
        gateway.dial.dialled(),
        ["1.1.1.1:80", "93.184.216.34:80"],
        "those of IPv4 first"
    );
}
