use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::Url;

use super::Error;
use super::Settings;
use super::resolve::is_localhost;
use podbay_event::shown_address;

/// The address of a model server.
/// The OpenAI-compatible calls are below an API folder, `/v1` unless the address names another
/// version; llama-server's own (`/props`, `/health`, `/tokenize`) one level above it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Scheme, host, port and the path above the version, without a trailing slash.
    root: String,
    /// The version's folder, such as `v1`.
    version: String,
    host: String,
    https: bool,
    socket: Option<PathBuf>,
}

impl Endpoint {
    /// Parses `http://HOST:PORT`, with or without `/v1`, or `unix:PATH`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let invalid = |problem| Error::InvalidEndpoint {
            text: shown_address(text),
            problem,
        };
        let text = text.trim();
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            if !path.starts_with('/') {
                return Err(invalid("the path of a unix socket starts with `/`"));
            }
            return Ok(Self::unix(path));
        }
        if !text.contains("://") {
            return Err(invalid(
                "it starts with `http://` or `https://`, as in `http://127.0.0.1:7474/v1`",
            ));
        }
        let url = Url::parse(text)
            .map_err(|_| invalid("it is not a URL such as `http://127.0.0.1:7474/v1`"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(invalid("it starts with `http://` or `https://`"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(invalid(
                "a name or password does not belong in it; put the key into a variable and name that with `--api-key-env`",
            ));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(invalid("it ends before any `?` or `#`"));
        }
        let host = url
            .host_str()
            .filter(|host| !host.is_empty())
            .ok_or_else(|| invalid("it names no host"))?
            .to_owned();
        let path = url.path().trim_end_matches('/');
        let path = path.strip_suffix("/chat/completions").unwrap_or(path);
        let (above, version) = match path.rsplit_once('/') {
            Some((above, last)) if is_version(last) => (above, last),
            _ => (path, "v1"),
        };
        let root = format!("{}{above}", url.origin().ascii_serialization());
        Ok(Self {
            root,
            version: version.to_owned(),
            host,
            https: url.scheme() == "https",
            socket: None,
        })
    }

    /// Returns the endpoint of a unix socket.
    pub fn unix(path: impl Into<PathBuf>) -> Self {
        // Only for the `Host` header; it is never resolved.
        Self {
            root: "http://localhost".to_owned(),
            version: "v1".to_owned(),
            host: "localhost".to_owned(),
            https: false,
            socket: Some(path.into()),
        }
    }

    /// Returns the URL of an OpenAI-compatible call, such as `/chat/completions`.
    pub fn api(&self, path: &str) -> String {
        format!("{}/{}{path}", self.root, self.version)
    }

    /// Returns the URL of one of llama-server's own calls, such as `/props`.
    pub fn at_root(&self, path: &str) -> String {
        format!("{}{path}", self.root)
    }

    pub fn socket(&self) -> Option<&Path> {
        self.socket.as_deref()
    }

    /// Returns whether requests stay on this machine.
    pub fn is_local(&self) -> bool {
        self.socket.is_some() || is_loopback(&self.host)
    }

    /// Returns whether the host is this one, or a subdomain of it.
    pub fn is_at(&self, host: &str) -> bool {
        let own = self.host.to_ascii_lowercase();
        self.socket.is_none()
            && own
                .strip_suffix(host)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    }

    /// Returns whether a key may be sent: encrypted, or within this machine.
    pub fn may_carry_key(&self) -> bool {
        self.https || self.is_local()
    }

    /// Returns the settings of an HTTP client for this endpoint.
    pub fn settings(&self, connect_timeout: Duration, proxy: Option<&str>) -> Settings {
        let proxy = proxy.filter(|_| !self.is_local()).map(str::to_owned);
        let tls = self.https
            || proxy
                .as_deref()
                .is_some_and(|proxy| proxy.starts_with("https:"));
        Settings {
            connect_timeout,
            proxy,
            unix_socket: self.socket.clone(),
            tls,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.socket {
            Some(path) => write!(f, "unix:{}", path.display()),
            None => write!(f, "{}/{}", self.root, self.version),
        }
    }
}

fn is_version(segment: &str) -> bool {
    segment
        .strip_prefix('v')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn is_loopback(host: &str) -> bool {
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    bare.parse::<IpAddr>().map_or_else(
        |_| is_localhost(bare),
        |address| address.to_canonical().is_loopback(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, display: &str, chat: &str, props: &str) {
        let endpoint = Endpoint::parse(text).expect("an endpoint");
        assert_eq!(
            (
                endpoint.to_string().as_str(),
                endpoint.api("/chat/completions").as_str(),
                endpoint.at_root("/props").as_str()
            ),
            (display, chat, props)
        );
    }

    #[test]
    fn the_api_version_is_optional() {
        let chat = "http://127.0.0.1:7474/v1/chat/completions";
        for text in [
            "http://127.0.0.1:7474",
            "http://127.0.0.1:7474/",
            "http://127.0.0.1:7474/v1",
            " http://127.0.0.1:7474/v1/ ",
            chat,
        ] {
            check(
                text,
                "http://127.0.0.1:7474/v1",
                chat,
                "http://127.0.0.1:7474/props",
            );
        }
        check(
            "https://openrouter.ai/api/v1",
            "https://openrouter.ai/api/v1",
            "https://openrouter.ai/api/v1/chat/completions",
            "https://openrouter.ai/api/props",
        );
        check(
            "https://h/paas/v4",
            "https://h/paas/v4",
            "https://h/paas/v4/chat/completions",
            "https://h/paas/props",
        );
        check(
            "http://[::1]:80/x",
            "http://[::1]/x/v1",
            "http://[::1]/x/v1/chat/completions",
            "http://[::1]/x/props",
        );
        check(
            "unix:/run/m.sock",
            "unix:/run/m.sock",
            "http://localhost/v1/chat/completions",
            "http://localhost/props",
        );
    }

    #[test]
    fn invalid_endpoints_say_why_and_never_show_a_password() {
        for text in [
            "127.0.0.1:7474",
            "",
            "ftp://h/",
            "http://",
            "http://h/?a=1",
            "http://h/#x",
            "unix:relative",
        ] {
            assert!(Endpoint::parse(text).is_err(), "{text}");
        }
        for text in [
            "http://user:sesame@h/v1",
            "user:sesame@h",
            "http://h/v1?key=sesame",
            "http://h/v1#sesame",
            "h?sesame",
            "http://user:ses?ame@h/sesame",
            "http://u:sesame@h?a=sesame",
        ] {
            let error = Endpoint::parse(text).expect_err("refused").to_string();
            assert!(!error.contains("sesame"), "{error}");
        }
    }

    #[test]
    fn a_key_goes_over_plain_http_only_within_this_machine() {
        for text in [
            "http://localhost:1",
            "http://127.9.9.9:1",
            "http://[::1]:1",
            "http://[::ffff:127.0.0.1]:1",
            "unix:/s",
            "https://example.com",
        ] {
            assert!(
                Endpoint::parse(text).expect("an endpoint").may_carry_key(),
                "{text}"
            );
        }
        for text in [
            "http://example.com",
            "http://10.0.0.1:1",
            "http://localhost.example.com",
            "http://0.0.0.0:1",
            "http://[::]:1",
            "http://127.0.0.1.example.com",
        ] {
            assert!(
                !Endpoint::parse(text).expect("an endpoint").may_carry_key(),
                "{text}"
            );
        }
    }
}
