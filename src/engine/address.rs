use std::fmt;
use std::path::PathBuf;

use super::Error;
use super::Options;
use super::docker_context::DockerContext;
use super::usual_sockets;
use super::usual_sockets::UsualSocket;

/// Docker's own socket.
const SYSTEM: &str = "/var/run/docker.sock";

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

/// The address that is used, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChosenAddress {
    pub(super) address: Address,
    /// What names it.
    pub(super) named_by: String,
    /// The Docker context that it is the address of.
    context: Option<String>,
    /// Usual sockets of other engines that are there as well.
    pub(super) others: Vec<String>,
}

impl ChosenAddress {
    /// Finds the address as Docker's command line does, after the setting: `DOCKER_HOST`, the
    /// context, the usual sockets.
    pub(super) fn find(
        options: &Options,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Error> {
        let named = |address: Address, named_by: String| Self {
            address,
            named_by,
            context: None,
            others: Vec::new(),
        };
        let given = options.host.clone().map(|host| (host, "`engine.host`"));
        let given = given.or_else(|| Some((env("DOCKER_HOST")?, "DOCKER_HOST")));
        if let Some((host, named_by)) = given.filter(|(host, _)| !host.trim().is_empty()) {
            let address = Address::parse(host.trim(), certificates(options, &env))?;
            return Ok(named(address, named_by.to_owned()));
        }
        if let Some(context) = DockerContext::chosen(&env)? {
            let endpoint = context.endpoint()?;
            let certificates = endpoint
                .certificates
                .or_else(|| options.cert_path.clone().map(PathBuf::from));
            let address =
                Address::parse(&endpoint.host, certificates).map_err(|error| match error {
                    Error::BadAddress { address, problem } => {
                        context.error(format!("its address is `{address}`: {problem}"))
                    }
                    other => other,
                })?;
            let named_by = format!(
                "the Docker context `{}` ({})",
                context.name, context.named_by
            );
            return Ok(Self {
                context: Some(context.name),
                ..named(address, named_by)
            });
        }
        Ok(Self::usual(usual_sockets::all(&env)))
    }

    /// Chooses the first of these sockets that is there; the first of all, if none is.
    fn usual(sockets: Vec<UsualSocket>) -> Self {
        let first = sockets.first().cloned();
        let mut there = sockets.into_iter().filter(|socket| socket.path.exists());
        let chosen = there.next();
        let named_by = match &chosen {
            Some(socket) => format!("the usual socket of {}", socket.engine),
            None => "no usual socket of an engine is there".to_owned(),
        };
        let path = chosen.or(first).map(|socket| socket.path);
        Self {
            address: Address::Socket(path.unwrap_or_else(|| PathBuf::from(SYSTEM))),
            named_by,
            context: None,
            others: there
                .map(|other| format!("{} at {}", other.engine, other.path.display()))
                .collect(),
        }
    }
}

/// The address as errors name it: the user may not know that a context is in use.
impl fmt::Display for ChosenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.address)?;
        match &self.context {
            Some(name) => write!(f, " (the Docker context `{name}`)"),
            None => Ok(()),
        }
    }
}

/// Returns the folder with certificates for an address that the setting or `DOCKER_HOST` names.
fn certificates(options: &Options, env: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    options.cert_path.clone().map(PathBuf::from).or_else(|| {
        let wanted =
            env("DOCKER_TLS_VERIFY").is_some_and(|value| !value.is_empty() && value != "0");
        wanted.then(|| {
            env("DOCKER_CERT_PATH").map_or_else(
                || PathBuf::from(env("HOME").unwrap_or_default()).join(".docker"),
                PathBuf::from,
            )
        })
    })
}

impl Address {
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

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
        let found = ChosenAddress::find(&Options::default(), env).expect("a good address");
        let expected = Address::Tcp {
            host: "10.1.1.1".into(),
            port: 2376,
            certificates: Some("/certs".into()),
        };
        assert_eq!(
            (found.address, found.named_by.as_str()),
            (expected, "DOCKER_HOST")
        );
    }

    #[test]
    fn a_context_is_followed_or_refused_and_never_another_engine() {
        let home = tempfile::tempdir().expect("a folder");
        let find = |name: &str, host: Option<&str>| {
            ChosenAddress::find(&Options::default(), |variable| match variable {
                "HOME" => Some(home.path().display().to_string()),
                "DOCKER_CONTEXT" => Some(name.to_owned()),
                "DOCKER_HOST" => host.map(ToOwned::to_owned),
                _ => None,
            })
        };
        let error = find("unknown", None).expect_err("there is none");
        assert!(error.to_string().contains("`unknown`"), "{error}");
        let found = find("unknown", Some("unix:///run/x.sock")).expect("as Docker does");
        assert_eq!(found.named_by, "DOCKER_HOST");
    }

    #[test]
    fn the_first_usual_socket_that_is_there_is_used_and_others_are_named() {
        let home = tempfile::tempdir().expect("a folder");
        let socket = |engine: &str, path: &str| UsualSocket {
            engine: engine.to_owned(),
            path: home.path().join(path),
        };
        let all = || {
            vec![
                socket("Docker", "a.sock"),
                socket("Colima", "b.sock"),
                socket("Podman", "c.sock"),
            ]
        };
        let none = ChosenAddress::usual(all());
        assert_eq!(none.address, Address::Socket(home.path().join("a.sock")));
        assert!(none.named_by.contains("no usual socket"));
        for name in ["b.sock", "c.sock"] {
            std::fs::write(home.path().join(name), "").expect("written");
        }
        let found = ChosenAddress::usual(all());
        assert_eq!(found.address, Address::Socket(home.path().join("b.sock")));
        assert_eq!(found.named_by, "the usual socket of Colima");
        assert!(found.others[0].starts_with("Podman at "), "{found:?}");
    }
}
