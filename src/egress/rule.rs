//! Which hosts may be reached: one decision for plain HTTP, for CONNECT and for whatever else asks.
//! Pure: no I/O, no clock.

use std::collections::BTreeSet;
use std::fmt;

use podbay_wire::EgressEffect;
use podbay_wire::EgressRule;
use podbay_wire::HOST_MACHINE;

use super::host_name::HostName;
use super::host_name::NameError;

/// Ports of a rule that names none.
const USUAL: [u16; 2] = [80, 443];

/// Most rules, and most ports, methods and paths of one.
pub const MAX_RULES: usize = 1000;
const MAX_PARTS: usize = 64;

/// Why a rule does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the network rule `{rule}`: {problem}")]
pub struct RuleError {
    pub rule: String,
    pub problem: Problem,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("{0}")]
    Name(#[from] NameError),
    #[error(
        "`{0}` is no port; write a number from 1 to 65535, or several with commas between them"
    )]
    Port(String),
    #[error(
        "`*` stands in front of a name with a dot in it, as in `*.example.com`; for every host there is the network mode `open`"
    )]
    Wildcard,
    #[error(
        "a rule that denies can name no methods and no paths, which cannot be seen inside TLS; deny the host"
    )]
    DeniesParts,
    #[error("`{0}` is no method; methods are words in capitals, such as `GET`")]
    Method(String),
    #[error(
        "`{0}` is no path; write a part of a URL's path from its `/` on, without `..`, `//`, `%` and `?`"
    )]
    Path(String),
    #[error(
        "`raw` lets through what is not HTTP, so that methods and paths say nothing; leave out one or the other"
    )]
    RawParts,
    #[error(
        "each port of your own machine needs a rule that names it, such as `{HOST_MACHINE}:5432`"
    )]
    HostPort,
    #[error("it names more than {MAX_PARTS} ports, methods or paths")]
    TooLong,
    #[error("there are more than {MAX_RULES} rules")]
    TooMany,
}

/// A rule that was understood.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    /// As it was written.
    text: String,
    name: HostName,
    /// Names below it, and not itself.
    is_below: bool,
    ports: BTreeSet<u16>,
    effect: EgressEffect,
    methods: BTreeSet<String>,
    paths: Vec<String>,
    raw: bool,
    /// Reaches private networks too.
    private: bool,
}

/// All rules that hold; without one nothing is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules(Vec<Rule>);

/// What asks to be let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    pub host: &'a HostName,
    pub port: u16,
    pub access: Access<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access<'a> {
    /// A request that can be read. `path` is as it was sent, from its `/` on.
    Http { method: &'a str, path: &'a str },
    /// A stream that must begin with TLS for this very name.
    Tls,
    /// A stream of any other kind.
    Raw,
}

/// The answer, with the rule that it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision<'a> {
    Allow {
        rule: &'a str,
        /// Whether the name may lie in a private network.
        private: bool,
    },
    Deny(Reason<'a>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason<'a> {
    /// No rule speaks of the host.
    NoRule,
    /// This rule denies it.
    Rule(&'a str),
    /// A rule allows the host on other ports.
    Port(&'a str),
    /// A rule allows other methods or paths of the host.
    Part(&'a str),
    /// A rule allows the host, and this is neither HTTP nor TLS.
    NotTls(&'a str),
}

impl Rules {
    pub fn parse(written: &[EgressRule]) -> Result<Self, RuleError> {
        if let Some(beyond) = written.get(MAX_RULES) {
            return Err(RuleError {
                rule: shown(&beyond.host),
                problem: Problem::TooMany,
            });
        }
        let parse = |written: &EgressRule| {
            Rule::parse(written).map_err(|problem| RuleError {
                rule: shown(&written.host),
                problem,
            })
        };
        written
            .iter()
            .map(parse)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Decides on one request.
    pub fn decide(&self, request: &Request<'_>) -> Decision<'_> {
        let of_host = || self.0.iter().filter(|rule| rule.is_of_host(request.host));
        let of_port = || of_host().filter(|rule| rule.ports.contains(&request.port));
        if let Some(rule) = of_port().find(|rule| rule.effect == EgressEffect::Deny) {
            return Decision::Deny(Reason::Rule(&rule.text));
        }
        let allows = |rule: &&Rule| rule.effect == EgressEffect::Allow;
        let of_access = || {
            of_port()
                .filter(allows)
                .filter(|rule| rule.is_of_access(request.access))
        };
        // One that reaches further comes first.
        if let Some(rule) = of_access()
            .find(|rule| rule.private)
            .or_else(|| of_access().next())
        {
            return Decision::Allow {
                rule: &rule.text,
                private: rule.private,
            };
        }
        Decision::Deny(match (of_port().find(allows), of_host().find(allows)) {
            (Some(rule), _) if request.access == Access::Raw => Reason::NotTls(&rule.text),
            (Some(rule), _) => Reason::Part(&rule.text),
            (None, Some(rule)) => Reason::Port(&rule.text),
            (None, None) => Reason::NoRule,
        })
    }

    /// Returns the ports of a host of which some access is allowed, or why there is none.
    pub fn ports_of(&self, host: &HostName) -> Result<BTreeSet<u16>, Reason<'_>> {
        let of = |effect| {
            let is_of = move |rule: &&Rule| rule.effect == effect && rule.is_of_host(host);
            self.0.iter().filter(is_of)
        };
        let ports = |effect| -> BTreeSet<u16> {
            of(effect)
                .flat_map(|rule| rule.ports.iter().copied())
                .collect()
        };
        let allowed = &ports(EgressEffect::Allow) - &ports(EgressEffect::Deny);
        if !allowed.is_empty() {
            return Ok(allowed);
        }
        Err(match of(EgressEffect::Deny).next() {
            Some(rule) => Reason::Rule(&rule.text),
            None => Reason::NoRule,
        })
    }

    /// Returns whether any request to a host could be allowed: only such a name is resolved.
    pub fn may_allow(&self, host: &HostName) -> bool {
        self.0
            .iter()
            .any(|rule| rule.effect == EgressEffect::Allow && rule.is_of_host(host))
    }
}

impl Rule {
    fn parse(written: &EgressRule) -> Result<Self, Problem> {
        let (host, ports) = match written.host.rsplit_once(':') {
            Some((host, ports)) if !host.contains(':') => (host, Some(ports_of(ports)?)),
            _ => (written.host.as_str(), None),
        };
        let (host, is_below) = match host.strip_prefix("*.") {
            Some(above) => (above, true),
            None if host.contains('*') => return Err(Problem::Wildcard),
            None => (host, false),
        };
        let name = HostName::parse(host)?;
        // Below `com` lies half of the Internet.
        if is_below && name.n_labels() < 2 {
            return Err(Problem::Wildcard);
        }
        // What listens on the user's loopback counts on strangers not reaching it.
        let is_own_machine = !is_below && name.as_str() == HOST_MACHINE;
        if is_own_machine && ports.is_none() && written.effect == EgressEffect::Allow {
            return Err(Problem::HostPort);
        }
        let ports = ports.unwrap_or_else(|| USUAL.into());
        let has_parts = !(written.methods.is_empty() && written.paths.is_empty());
        match (written.effect, written.raw) {
            (EgressEffect::Deny, _) if has_parts => return Err(Problem::DeniesParts),
            (_, true) if has_parts => return Err(Problem::RawParts),
            _ => {}
        }
        if ports
            .len()
            .max(written.methods.len())
            .max(written.paths.len())
            > MAX_PARTS
        {
            return Err(Problem::TooLong);
        }
        let bad = |method: &&String| {
            method.is_empty()
                || !method
                    .bytes()
                    .all(|byte| byte.is_ascii_uppercase() || byte == b'-')
        };
        if let Some(method) = written.methods.iter().find(bad) {
            return Err(Problem::Method(shown(method)));
        }
        if let Some(path) = written.paths.iter().find(|path| !is_plain(path)) {
            return Err(Problem::Path(shown(path)));
        }
        Ok(Self {
            text: written.host.clone(),
            name,
            is_below,
            ports,
            effect: written.effect,
            methods: written.methods.iter().cloned().collect(),
            paths: written.paths.clone(),
            // It is one program that the user named, whatever it speaks.
            raw: written.raw || is_own_machine && !has_parts,
            private: written.private,
        })
    }

    fn is_of_host(&self, host: &HostName) -> bool {
        if self.is_below {
            // The user's own machine is allowed by its name alone.
            let is_own_machine = host.as_str() == HOST_MACHINE;
            host.is_below(&self.name) && !(is_own_machine && self.effect == EgressEffect::Allow)
        } else {
            *host == self.name
        }
    }

    fn is_of_access(&self, access: Access<'_>) -> bool {
        let is_whole = self.methods.is_empty() && self.paths.is_empty();
        match access {
            Access::Http { method, path } => {
                (self.methods.is_empty() || self.methods.contains(method))
                    && (self.paths.is_empty()
                        || self.paths.iter().any(|prefix| begins_with(path, prefix)))
            }
            Access::Tls => is_whole,
            Access::Raw => self.raw,
        }
    }
}

fn ports_of(text: &str) -> Result<BTreeSet<u16>, Problem> {
    let port = |text: &str| {
        text.parse()
            .ok()
            .filter(|&port| port != 0)
            .ok_or_else(|| Problem::Port(shown(text)))
    };
    text.split(',').map(|text| port(text.trim())).collect()
}

/// Returns whether a path means the same to everybody: nothing in it is decoded, left out or walked
/// back.
fn is_plain(path: &str) -> bool {
    let is_odd = |byte: u8| !byte.is_ascii_graphic() || b"%?#\\".contains(&byte);
    path.starts_with('/')
        && !path.contains("//")
        && !path.bytes().any(is_odd)
        && !path.split('/').any(|part| matches!(part, "." | ".."))
}

/// Returns whether a request's path lies below a prefix, by whole parts. What servers may read in
/// several ways lies nowhere.
fn begins_with(path: &str, prefix: &str) -> bool {
    let path = path.split(['?', '#']).next().unwrap_or(path);
    let Some(rest) = path.strip_prefix(prefix) else {
        return false;
    };
    is_plain_behind(path) && (rest.is_empty() || prefix.ends_with('/') || rest.starts_with('/'))
}

/// Returns the same of a request, in which what is encoded is no dot, no slash and no backslash.
fn is_plain_behind(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let hides = ["%2e", "%2f", "%5c", "%25", "%00", ";"]
        .iter()
        .any(|encoded| lower.contains(encoded));
    !hides && is_plain(&path.replace('%', "_"))
}

fn shown(text: &str) -> String {
    text.chars().take(100).collect()
}

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRule => f.write_str("no rule allows this host"),
            Self::Rule(rule) => write!(f, "the rule `{rule}` denies it"),
            Self::Port(rule) => write!(f, "the rule `{rule}` allows other ports"),
            Self::Part(rule) => write!(f, "the rule `{rule}` allows other methods or paths"),
            Self::NotTls(rule) => write!(
                f,
                "the rule `{rule}` allows HTTP and TLS, and this is neither"
            ),
        }
    }
}

#[cfg(test)]
mod tests;
