use std::path::PathBuf;

use super::Error;
use super::Options;

/// The address of the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    Socket(PathBuf),
    Tcp {
        host: String,
        port: u16,
        certificates: Option<PathBuf>,
    },
}

impl Address {
    /// Finds the address: the setting, `DOCKER_HOST`, the usual sockets.
    pub(super) fn find(
        options: &Options,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Error> {
        let certificates = options.cert_path.clone().map(PathBuf::from).or_else(|| {
            let wanted =
                env("DOCKER_TLS_VERIFY").is_some_and(|value| !value.is_empty() && value != "0");
            wanted.then(|| {
                env("DOCKER_CERT_PATH").map_or_else(
                    || PathBuf::from(env("HOME").unwrap_or_default()).join(".docker"),
                    PathBuf::from,
                )
            })
        });
        let given = options
            .host
            .clone()
            .or_else(|| env("DOCKER_HOST"))
            .filter(|host| !host.trim().is_empty());
        if let Some(host) = given {
            return Self::parse(host.trim(), certificates);
        }
        let rootless =
            env("XDG_RUNTIME_DIR").map(|folder| PathBuf::from(folder).join("docker.sock"));
        let system = PathBuf::from("/var/run/docker.sock");
        Ok(Self::Socket(match rootless {
            Some(socket) if !system.exists() && socket.exists() => socket,
            _ => system,
        }))
    }

    fn parse(text: &str, certificates: Option<PathBuf>) -> Result<Self, Error> {
        let bad = |problem: &str| Error::BadAddress {
            address: text.to_owned(),
            problem: problem.to_owned(),
        };
        let (scheme, rest) = text
            .split_once("://")
            .ok_or_else(|| bad("it has no scheme such as unix:// or tcp://"))?;
        match scheme {
            "unix" if rest.starts_with('/') => Ok(Self::Socket(PathBuf::from(rest))),
            "unix" => Err(bad("the socket's path must start with /")),
            "tcp" | "http" | "https" => {
                let rest = rest.trim_end_matches('/');
                let (host, port) = match rest.rsplit_once(':') {
                    Some((host, port)) if !port.contains(']') => (
                        host,
                        port.parse()
                            .map_err(|_| bad("the port is no number between 1 and 65535"))?,
                    ),
                    _ => (
                        rest,
                        if certificates.is_some() || scheme == "https" {
                            2376
                        } else {
                            2375
                        },
                    ),
                };
                let host = host.trim_start_matches('[').trim_end_matches(']');
                if host.is_empty() || host.contains('/') {
                    return Err(bad("it names no host"));
                }
                if scheme == "https" && certificates.is_none() {
                    return Err(bad(
                        "https needs certificates: set DOCKER_TLS_VERIFY=1 and DOCKER_CERT_PATH",
                    ));
                }
                Ok(Self::Tcp {
                    host: host.to_owned(),
                    port,
                    certificates,
                })
            }
            "ssh" => Err(bad(
                "ssh is not supported; forward the socket (`ssh -L /tmp/docker.sock:/var/run/docker.sock HOST`) and name that",
            )),
            _ => Err(bad("the scheme must be unix or tcp")),
        }
    }

    /// Returns whether the engine shares our kernel's files, as far as the address tells.
    pub(super) fn is_local(&self) -> bool {
        matches!(self, Self::Socket(_))
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Socket(path) => write!(f, "unix://{}", path.display()),
            Self::Tcp { host, port, .. } if host.contains(':') => {
                write!(f, "tcp://[{host}]:{port}")
            }
            Self::Tcp { host, port, .. } => write!(f, "tcp://{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(given: &str, expected: Result<&str, &str>) {
        let found = Address::parse(given, None).map(|address| address.to_string());
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{error}"),
            (found, expected) => panic!("{given}: {found:?}, not {expected:?}"),
        }
    }

    #[test]
    fn engine_addresses_are_parsed_as_docker_does() {
        check("unix:///run/docker.sock", Ok("unix:///run/docker.sock"));
        check("tcp://10.0.0.1:2375", Ok("tcp://10.0.0.1:2375"));
        check("tcp://10.0.0.1", Ok("tcp://10.0.0.1:2375"));
        check("tcp://[::1]:2375", Ok("tcp://[::1]:2375"));
        check("/run/docker.sock", Err("no scheme"));
        check("unix://docker.sock", Err("must start with /"));
        check("tcp://h:0x1", Err("port"));
        check("tcp://:2375", Err("no host"));
        check("ssh://me@host", Err("ssh is not supported"));
        check("https://host:2376", Err("certificates"));
    }

    #[test]
    fn the_environment_is_used_if_the_options_name_no_engine() {
        let env = |name: &str| match name {
            "DOCKER_HOST" => Some("tcp://10.1.1.1:2376".to_owned()),
            "DOCKER_TLS_VERIFY" => Some("1".to_owned()),
            "DOCKER_CERT_PATH" => Some("/certs".to_owned()),
            _ => None,
        };
        let found = Address::find(&Options::default(), env).expect("a good address");
        let expected = Address::Tcp {
            host: "10.1.1.1".into(),
            port: 2376,
            certificates: Some("/certs".into()),
        };
        assert_eq!(found, expected);
    }
}
