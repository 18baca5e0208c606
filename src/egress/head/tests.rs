use proptest::prelude::*;

use super::*;

const MOST: usize = 1024;

#[track_caller]
fn check(head: &str, expected: Framing) {
    let bytes = format!("{head}\r\n\r\nrest");
    assert_eq!(
        framing_of(bytes.as_bytes(), MOST),
        Ok(Some((head.len() + 4, expected))),
        "{head}"
    );
    for end in 0..head.len() {
        assert_eq!(
            framing_of(&bytes.as_bytes()[..end], MOST),
            Ok(None),
            "{:?}",
            &bytes[..end]
        );
    }
}

#[test]
fn what_follows_a_head_is_told_by_it() {
    check(
        "GET http://a.example/ HTTP/1.1\r\nHost: a.example",
        Framing::Length(0),
    );
    check(
        "POST http://a.example/ HTTP/1.1\r\nCONTENT-length: 17",
        Framing::Length(17),
    );
    check(
        "POST http://a.example/ HTTP/1.1\r\nTransfer-Encoding: Chunked",
        Framing::Rest,
    );
    check(
        "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443",
        Framing::Rest,
    );
    check(
        "CONNECT a.example:443 HTTP/1.0\r\nContent-Length: 0",
        Framing::Rest,
    );
    check(
        "GET http://a.example/ HTTP/1.1\r\nUpgrade: websocket",
        Framing::Rest,
    );
}

#[test]
fn the_preface_of_http_2_is_known_in_pieces() {
    for end in 1..HTTP2_PREFACE.len() {
        assert_eq!(framing_of(&HTTP2_PREFACE[..end], MOST), Ok(None), "{end}");
    }
    let refusal = framing_of(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", MOST).expect_err("refused");
    assert!(refusal.problem.contains("inside a CONNECT"), "{refusal:?}");
}

#[test]
fn a_head_at_its_bound_is_read_and_one_above_it_is_not() {
    let head = |length: usize| {
        let start = "GET http://a.example/ HTTP/1.1\r\nX: ";
        format!("{start}{}\r\n\r\n", "x".repeat(length - start.len() - 4))
    };
    assert!(matches!(
        framing_of(head(MOST).as_bytes(), MOST),
        Ok(Some((MOST, _)))
    ));
    assert_eq!(
        framing_of(head(MOST + 1).as_bytes(), MOST)
            .expect_err("too long")
            .status,
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
    );
}

proptest! {
    #[test]
    fn no_head_is_longer_than_what_was_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(Some((length, _))) = framing_of(&bytes, MOST) {
            prop_assert!(length <= bytes.len());
        }
    }
}
