//! The gateway's own answers, in plain text, for the program that asked and for the model that
//! reads what it prints.

use bytes::Bytes;
use http_body_util::Either;
use http_body_util::Full;
use hyper::Response;
use hyper::StatusCode;
use hyper::ext::ReasonPhrase;
use hyper::header::CONNECTION;
use hyper::header::CONTENT_TYPE;
use hyper::header::HeaderValue;
use podbay_wire::BLOCKED;

use super::body::CountedBody;

pub(crate) type Answer = Response<Either<Full<Bytes>, CountedBody>>;

/// Clients print this of a CONNECT that was denied, and often nothing else.
const DENIED: &[u8] = b"Blocked by policy";

pub(crate) fn denied(host: &str, port: u16, reason: &str) -> Answer {
    let mut answer = refused(
        StatusCode::FORBIDDEN,
        &format!("{host}:{port}: {reason}\n{BLOCKED}"),
    );
    answer
        .extensions_mut()
        .insert(ReasonPhrase::from_static(DENIED));
    answer
}

/// An answer after which the client's connection is closed.
pub(crate) fn refused(status: StatusCode, text: &str) -> Answer {
    let mut answer = told(status, text);
    answer
        .headers_mut()
        .insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}

pub(crate) fn told(status: StatusCode, text: &str) -> Answer {
    let mut answer = empty(status);
    answer.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    *answer.body_mut() = Either::Left(Full::new(Bytes::from(format!("{text}\n"))));
    answer
}

pub(crate) fn empty(status: StatusCode) -> Answer {
    let mut answer = Response::new(Either::Left(Full::default()));
    *answer.status_mut() = status;
    answer
}

/// The same as a whole message, for a client that sent something else than TLS through its tunnel.
pub(crate) fn in_tunnel(host: &str, port: u16, reason: &str) -> Vec<u8> {
    let text = format!("{host}:{port}: {reason}\n{BLOCKED}\n");
    let length = text.len();
    format!("HTTP/1.1 403 Blocked by policy\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}")
        .into_bytes()
}
