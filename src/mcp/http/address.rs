//! The address of a server over HTTP, and the headers that carry keys of the user.

use std::sync::Arc;

use hyper::header::HeaderName;
use hyper::header::HeaderValue;
use url::Position;
use url::Url;

/// Headers that belong to the protocol or to HTTP itself.
const RESERVED: [&str; 11] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
    "proxy-authorization",
    "transfer-encoding",
];

/// The address of a server.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    url: Url,
    pub(super) host: String,
    pub(super) port: u16,
}

impl Address {
    /// Reads an address as settings have it; the error says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let address = podbay_web::address(text)?;
        let url = Url::parse(&address.url).map_err(|error| error.to_string())?;
        let port = url.port_or_known_default().ok_or("it names no port")?;
        Ok(Self {
            host: address.host,
            port,
            url,
        })
    }

    /// Returns whether it is reached without TLS.
    pub(crate) fn is_plain(&self) -> bool {
        self.url.scheme() == "http"
    }

    /// Returns the address as text.
    pub(super) fn uri(&self) -> Arc<str> {
        self.url.as_str().into()
    }

    /// Returns what stands in the first line of a request.
    pub(super) fn target(&self) -> &str {
        if self.is_plain() {
            // As a proxy is asked.
            self.url.as_str()
        } else {
            &self.url[Position::BeforePath..]
        }
    }

    /// Returns the host, and the port where it is not the usual one.
    pub(super) fn authority(&self) -> String {
        match self.url.port() {
            Some(port) => format!("{}:{port}", self.host),
            None => self.host.clone(),
        }
    }
}

/// Returns why a header cannot be set by the user.
pub(crate) fn invalid_header(name: &str) -> Option<String> {
    match HeaderName::from_bytes(name.as_bytes()) {
        Err(_) => Some(format!("`{}` is no header", crate::plain_line(name, 60))),
        Ok(header) => RESERVED
            .contains(&header.as_str())
            .then(|| format!("`{header}` is set by the protocol")),
    }
}

/// Returns a header's value that is not shown in any debug output.
pub(super) fn secret_value(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}
