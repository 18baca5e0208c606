use hyper::Request;

use super::*;

fn target(method: &str, uri: &str, host: &str) -> Result<Target, NoTarget> {
    let request = Request::builder()
        .method(method)
        .uri(uri)
        .header(HOST, host)
        .body(())
        .expect("a request");
    Target::of(&request.into_parts().0)
}

#[test]
fn a_host_is_the_same_however_it_is_written() {
    for (method, uri, host, port) in [
        ("GET", "http://A.Example/x", "a.example", 80),
        ("GET", "http://a.example.:80/", "A.EXAMPLE", 80),
        ("GET", "http://a.example:8080", "a.example:8080", 8080),
        ("CONNECT", "a.example:443", "a.example:443", 443),
        ("CONNECT", "a.example:443", "a.example", 443),
        ("CONNECT", "A.EXAMPLE.:22", "a.example.:22", 22),
    ] {
        let found = target(method, uri, host).unwrap_or_else(|error| panic!("{uri}: {error:?}"));
        assert_eq!(
            (found.host.as_str(), found.port, found.is_connect),
            ("a.example", port, method == "CONNECT"),
            "{uri}"
        );
    }
    let found = target(
        "GET",
        "http://a_b.xn--bcher-kva.example/",
        "a_b.xn--bcher-kva.example",
    )
    .expect("underscores and IDN");
    assert_eq!(found.host.as_str(), "a_b.xn--bcher-kva.example");
}

#[test]
fn a_name_that_is_too_long_is_refused() {
    let name = format!("{}example", "a.".repeat(124));
    let error = target("CONNECT", &format!("{name}:443"), &name).expect_err("255 bytes");
    assert!(
        error.status == StatusCode::BAD_REQUEST && error.problem.contains("253 bytes"),
        "{error:?}"
    );
    assert_eq!(error.host.len(), SHOWN);
}

#[test]
fn an_address_is_forbidden_in_any_spelling() {
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "017700000001",
        "[::1]",
        "[::ffff:10.0.0.1]",
        "169.254.169.254.",
    ] {
        let error =
            target("CONNECT", &format!("{host}:80"), &format!("{host}:80")).expect_err(host);
        assert_eq!(
            (error.status, error.port),
            (StatusCode::FORBIDDEN, 80),
            "{host}: {error:?}"
        );
    }
}

/// A password may stand there, and attempts are written to logs.
#[test]
fn what_stands_before_the_host_is_refused_and_not_recorded() {
    for (method, written) in [
        ("GET", "http://me:secret@a.example/"),
        ("GET", "https://me:secret@a.example/"),
        ("CONNECT", "me:secret@a.example:443"),
    ] {
        let error = target(method, written, "a.example").expect_err(written);
        assert!(
            error.host.starts_with("a.example") && !format!("{error:?}").contains("secret"),
            "{written}: {error:?}"
        );
    }
}
