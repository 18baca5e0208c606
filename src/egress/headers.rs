//! Headers that are about one connection, which a proxy keeps to itself (RFC 9110, section 7.6.1).

use hyper::HeaderMap;
use hyper::header::CONNECTION;
use hyper::header::EXPECT;
use hyper::header::HeaderName;
use hyper::header::HeaderValue;
use hyper::header::PROXY_AUTHENTICATE;
use hyper::header::PROXY_AUTHORIZATION;
use hyper::header::TE;
use hyper::header::TRAILER;
use hyper::header::TRANSFER_ENCODING;
use hyper::header::UPGRADE;

/// hyper frames each body anew, and has answered `Expect` itself.
const OF_A_CONNECTION: [HeaderName; 8] = [
    CONNECTION,
    EXPECT,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];
const OF_OLD_CLIENTS: [&str; 2] = ["keep-alive", "proxy-connection"];

pub(crate) const WEBSOCKET: HeaderValue = HeaderValue::from_static("websocket");

/// Removes them, with those that `Connection` names.
pub(crate) fn keep_end_to_end(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&OF_A_CONNECTION) {
        headers.remove(name);
    }
    for name in OF_OLD_CLIENTS {
        headers.remove(name);
    }
}

/// Says that the connection becomes a WebSocket.
pub(crate) fn become_websocket(headers: &mut HeaderMap) {
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, WEBSOCKET);
}

/// Returns whether that is what is asked for.
pub(crate) fn wants_websocket(headers: &HeaderMap) -> bool {
    let mut upgrades = headers.get_all(UPGRADE).iter();
    let is_websocket = upgrades
        .next()
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(WEBSOCKET.as_bytes()));
    is_websocket && upgrades.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_a_connection_stay_with_it() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Own"),
            ("x-own", "1"),
            ("proxy-authorization", "Basic c2VjcmV0"),
            ("proxy-connection", "keep-alive"),
            ("te", "trailers"),
            ("upgrade", "h2c"),
            ("accept", "*/*"),
            ("authorization", "Bearer of the server"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        assert!(!wants_websocket(&headers), "h2c is not passed on");
        keep_end_to_end(&mut headers);
        let mut left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["accept", "authorization"]);
        become_websocket(&mut headers);
        assert!(wants_websocket(&headers));
    }
}
