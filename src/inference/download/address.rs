//! URLs: which ones are requested at all, and how they are shown.

use std::net::IpAddr;

use reqwest::Url;

/// Returns a URL for display: the URL of a private mirror may hold a password.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    if !url.username().is_empty() || url.password().is_some() {
        // Both fail only for URLs that can hold neither.
        let _ = url.set_username("***");
        let _ = url.set_password(None);
    }
    url.to_string()
}

/// Returns whether a URL leads to this machine.
fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let number = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<IpAddr>();
    number.map_or_else(
        |_| host.eq_ignore_ascii_case("localhost"),
        |address| address.is_loopback(),
    )
}

/// Returns whether a response from this URL cannot be changed in transit.
pub(crate) fn is_safe(url: &Url) -> bool {
    url.scheme() == "https" || (url.scheme() == "http" && is_loopback(url))
}

/// Returns whether one URL may redirect to another: only to an encrypted one, or within the origin
/// of an unencrypted URL that the user gave.
pub(super) fn may_lead(from: &Url, to: &Url) -> bool {
    match to.scheme() {
        "https" => true,
        "http" => {
            from.scheme() == "http"
                && (same_origin(from, to) || (is_loopback(from) && is_loopback(to)))
        }
        _ => false,
    }
}

pub(super) fn same_origin(a: &Url, b: &Url) -> bool {
    a.scheme() == b.scheme()
        && a.host_str() == b.host_str()
        && a.port_or_known_default() == b.port_or_known_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).expect("an address")
    }

    #[test]
    fn no_password_is_shown() {
        assert_eq!(
            shown(&url(
                "https://me:sesame@mirror.example/a?token=sesame#sesame"
            )),
            "https://***@mirror.example/a"
        );
    }

    #[test]
    fn only_encrypted_addresses_and_this_machine_are_safe() {
        for good in [
            "https://a.example/x",
            "http://127.0.0.1:1/x",
            "http://[::1]/x",
            "http://localhost/x",
            "http://127.9.9.9/",
        ] {
            assert!(is_safe(&url(good)), "{good}");
        }
        for bad in [
            "http://a.example/x",
            "http://localhost.example/x",
            "ftp://127.0.0.1/x",
            "file:///etc/passwd",
            "http://10.0.0.1/",
        ] {
            assert!(!is_safe(&url(bad)), "{bad}");
        }
    }

    #[track_caller]
    fn check(from: &str, to: &str, may: bool) {
        assert_eq!(may_lead(&url(from), &url(to)), may, "{from} -> {to}");
    }

    #[test]
    fn a_redirect_never_leaves_encryption() {
        check("https://hub.example/a", "https://cdn.example/b", true);
        check("https://hub.example/a", "http://cdn.example/b", false);
        check("https://hub.example/a", "http://127.0.0.1/b", false);
        check("https://hub.example/a", "file:///etc/passwd", false);
        check("http://127.0.0.1:1/a", "http://127.0.0.1:2/b", true);
        check("http://127.0.0.1:1/a", "http://other.example/b", false);
        check("http://mirror.example/a", "http://mirror.example/b", true);
        check(
            "http://mirror.example/a",
            "http://mirror.example:81/b",
            false,
        );
    }
}
