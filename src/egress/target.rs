//! Which host a request is for. Where it says so in two places, both must say the same.

use hyper::Method;
use hyper::StatusCode;
use hyper::Version;
use hyper::header::HOST;
use hyper::http::request::Parts;
use hyper::http::uri::Authority;

use super::host_name::HostName;
use super::host_name::NameError;
use super::limits::SHOWN;

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub host: HostName,
    pub port: u16,
    pub is_connect: bool,
}

/// A request that is for no host.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoTarget {
    pub status: StatusCode,
    /// What was written in place of a host.
    pub host: String,
    pub port: u16,
    pub problem: String,
}

impl Target {
    pub(crate) fn of(parts: &Parts) -> Result<Self, NoTarget> {
        let is_connect = parts.method == Method::CONNECT;
        let Some(authority) = parts.uri.authority() else {
            return Err(refuse(
                "",
                0,
                "this is a proxy: ask with the whole URL, or with CONNECT",
            ));
        };
        let written = authority.as_str();
        match parts.uri.scheme_str() {
            None if is_connect => {}
            Some("http") if !is_connect => {}
            Some("https") => {
                return Err(refuse(
                    without_user(written),
                    0,
                    "`https` goes through CONNECT, so that it is encrypted up to the server",
                ));
            }
            _ => {
                return Err(refuse(
                    without_user(written),
                    0,
                    "only `http://` and CONNECT are understood",
                ));
            }
        }
        if let Some((_, host)) = written.rsplit_once('@') {
            // What stands before it may be a password, and is not recorded.
            return Err(refuse(
                host,
                0,
                "a user's name stands before the host; send it in a header",
            ));
        }
        let port = match port_of(authority) {
            Ok(Some(port)) => port,
            Ok(None) if !is_connect => 80,
            _ => {
                return Err(refuse(
                    written,
                    0,
                    "a port from 1 to 65535 is missing behind the host",
                ));
            }
        };
        let host = HostName::parse(authority.host()).map_err(|error| NoTarget {
            status: if matches!(error, NameError::Address(_)) {
                StatusCode::FORBIDDEN
            } else {
                StatusCode::BAD_REQUEST
            },
            host: shown(authority.host()),
            port,
            problem: error.to_string(),
        })?;
        let target = Self {
            host,
            port,
            is_connect,
        };
        target
            .check_host_header(parts)
            .map_err(|problem| refuse(written, port, problem))?;
        Ok(target)
    }

    /// Returns the same of a request to a server at which the client believes to be.
    pub(crate) fn of_origin(parts: &Parts, host: &HostName, port: u16) -> Result<Self, NoTarget> {
        let target = Self {
            host: host.clone(),
            port,
            is_connect: false,
        };
        let checked = if parts.method == Method::CONNECT || parts.uri.authority().is_some() {
            Err("it is asked for as if it were a proxy; the proxy is at `HTTP_PROXY`")
        } else {
            target.check_host_header(parts)
        };
        match checked {
            Ok(()) => Ok(target),
            Err(problem) => Err(refuse(host.as_str(), port, problem)),
        }
    }

    fn check_host_header(&self, parts: &Parts) -> Result<(), &'static str> {
        let mut headers = parts.headers.get_all(HOST).iter();
        let header = match (headers.next(), headers.next()) {
            (Some(header), None) => header,
            (None, _) if parts.version < Version::HTTP_11 => return Ok(()),
            (None, _) => return Err("the header `Host` is missing"),
            (Some(_), Some(_)) => return Err("there is more than one header `Host`"),
        };
        let authority = header
            .to_str()
            .ok()
            .and_then(|text| text.parse::<Authority>().ok());
        let is_same = authority.is_some_and(|authority| {
            let port = port_of(&authority);
            // Clients leave the port out of that of a CONNECT.
            let is_same_port = port == Ok(Some(self.port))
                || port == Ok(None) && (self.is_connect || self.port == 80);
            !authority.as_str().contains('@')
                && is_same_port
                && HostName::parse(authority.host()).is_ok_and(|host| host == self.host)
        });
        if is_same {
            Ok(())
        } else {
            Err("the header `Host` names another host than the request does")
        }
    }
}

/// Returns the port of an authority; one that is empty or no number is an error.
fn port_of(authority: &Authority) -> Result<Option<u16>, ()> {
    let behind = authority
        .as_str()
        .rsplit('@')
        .next()
        .and_then(|text| text.strip_prefix(authority.host()))
        .unwrap_or("");
    if behind.is_empty() {
        return Ok(None);
    }
    let digits = behind
        .strip_prefix(':')
        .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    digits
        .and_then(|digits| digits.parse().ok())
        .filter(|&port| port != 0)
        .map(Some)
        .ok_or(())
}

fn refuse(host: &str, port: u16, problem: &str) -> NoTarget {
    NoTarget {
        status: StatusCode::BAD_REQUEST,
        host: shown(host),
        port,
        problem: problem.to_owned(),
    }
}

fn without_user(authority: &str) -> &str {
    authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host)
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}

#[cfg(test)]
mod tests;
