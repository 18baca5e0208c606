//! Messages between the controller and the egress role: rules in, attempts out, one JSON value per
//! line.

use serde::Deserialize;
use serde::Serialize;

use super::message::Data;

/// Where a sandbox has the caches of its project's package managers, each in a folder of its name.
pub const CACHE_FOLDER: &str = "/run/podbay/cache";

/// The folder of a cache that the sandbox's user owns; the volume's own is root's.
pub const CACHE_OWNED: &str = "data";

/// Where every sandbox and the gateway have the volume that the gateway's socket is in.
pub const EGRESS_FOLDER: &str = "/run/podbay/egress";

/// The socket's name in it.
pub const EGRESS_SOCKET: &str = "egress.sock";

/// Port on a sandbox's loopback at which the guest offers the gateway as an HTTP proxy.
pub const PROXY_PORT: u16 = 3128;

/// What a denial ends with. A model that reads it is not to try other ways.
pub const BLOCKED: &str = "blocked by policy: ask for it, do not retry";

/// Most bytes in a line to the role, without its end. A thousand rules of usual length take a tenth
/// of it.
pub const MAX_RULES_LINE: usize = 1024 * 1024;

/// Most bytes in a line from the role, without its end. Each text in it has a far smaller bound of
/// its own.
pub const MAX_ATTEMPT_LINE: usize = 16 * 1024;

/// First byte of an [`EgressOpening`] on a connection to the role. No request begins with it.
pub const OPENING: u8 = 0;

/// Most bytes of an opening behind its first three.
pub const MAX_OPENING: usize = 1024;

/// Most ports of one name that the role tells.
pub const MAX_NAME_PORTS: usize = 64;

/// What the guest may say of a connection to the role before anything else: the byte [`OPENING`],
/// the length in two bytes, and this as JSON. Whoever connects without it speaks HTTP to a proxy.
///
/// Commands of the sandbox can say the same, so that nothing in it allows anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EgressOpening {
    pub purpose: EgressPurpose,
    /// Name of the program that connected to the guest, where that was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}

/// What a connection to the role is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum EgressPurpose {
    /// HTTP to a proxy.
    Proxy,
    /// The very bytes of a program that believes it is connected to this host.
    Direct { host: String, port: u16 },
    /// Which ports of a name may be reached: an [`EgressName`] as a line, then the end.
    Name { host: String },
}

/// The answer about a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EgressName {
    /// Empty: no rule allows the name.
    pub ports: Vec<u16>,
}

impl EgressOpening {
    /// Returns it as it is sent; nothing where it is too long.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        let json = serde_json::to_vec(self).expect("plain data always has a JSON form");
        let length = u16::try_from(json.len())
            .ok()
            .filter(|&length| usize::from(length) <= MAX_OPENING)?;
        let mut bytes = vec![OPENING];
        bytes.extend(length.to_be_bytes());
        bytes.extend(json);
        Some(bytes)
    }
}

/// The name by which a sandbox knows the user's own machine. The controller dials its loopback.
pub const HOST_MACHINE: &str = "host.docker.internal";

/// Most bytes of a chunk on the way to the user's machine: as a line it stays below
/// [`MAX_ATTEMPT_LINE`].
pub const HOST_CHUNK: usize = 8 * 1024;

/// Bytes of a stream to the user's machine that one end may send before the other has passed them
/// on, each chunk counted as [`cost`](super::message::cost) does.
pub const HOST_WINDOW: u32 = 128 * 1024;

/// Most streams to the user's machine at once.
pub const HOST_STREAMS: usize = 64;

/// A part of a stream between the role and a port of the user's machine. The role opens streams and
/// chooses their numbers, each once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EgressHostFrame {
    pub stream: u32,
    pub part: EgressHostPart,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum EgressHostPart {
    /// From the role alone. The controller dials where a rule of its own allows the port.
    Open {
        port: u16,
    },
    Opened,
    /// At most [`HOST_CHUNK`] bytes; none: no more come in this direction.
    Data {
        data: Data,
    },
    /// So much was passed on.
    Credit {
        bytes: u32,
    },
    /// It is over in both directions, or never was.
    Closed {
        reason: String,
    },
}

/// What a rule does with a matching connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EgressEffect {
    #[default]
    Allow,
    /// Beats every rule that allows.
    Deny,
}

/// A rule as written: `host` is `NAME` or `*.NAME`, optionally followed by `:PORT` or `:PORT,PORT`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EgressRule {
    pub host: String,
    #[serde(default)]
    pub effect: EgressEffect,
    /// Methods of plain HTTP; empty: all. A rule with methods or paths matches plain HTTP only,
    /// since nothing else shows them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<String>,
    /// Path prefixes of plain HTTP requests, by whole components; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Also allows protocols other than TLS behind a CONNECT, such as SSH or a database.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub raw: bool,
    /// Also reaches private networks, such as a company's registry. Loopback, link-local and
    /// metadata addresses are never reached.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
}

/// A proxy of the host, through which the role reaches everything. It resolves the names, so only
/// names decide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EgressUpstream {
    /// A name or an address.
    pub host: String,
    pub port: u16,
}

/// A message to the role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum EgressCommand {
    /// Replaces all earlier rules. Streams that they do not allow are closed.
    Rules {
        /// Returned with the answer.
        generation: u64,
        rules: Vec<EgressRule>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        upstream: Option<EgressUpstream>,
    },
    /// Every attempt of which a client knows the end by now is told before the answer to this.
    Flush {
        /// Comes back with the answer.
        id: u64,
    },
    Host {
        frame: EgressHostFrame,
    },
}

/// A message from the role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EgressEvent {
    /// It listens. Until rules come it denies everything.
    Ready {
        protocol: u32,
    },
    /// The rules of this generation are in effect.
    RulesSet {
        generation: u64,
    },
    Flushed {
        id: u64,
    },
    /// A line could not be parsed. Everything is denied until the next rules.
    RulesRefused {
        problem: String,
    },
    Attempt(EgressAttempt),
    Host {
        frame: EgressHostFrame,
    },
}

/// One attempt to reach a host, sent when it is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EgressAttempt {
    /// The normalized name, or what was written where it is invalid, truncated.
    pub host: String,
    /// 0 where it could not be parsed.
    pub port: u16,
    pub access: EgressAccess,
    pub allowed: bool,
    /// The rule that allowed it, or why it was denied.
    pub because: String,
    /// Why it failed although it was allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub milliseconds: u64,
    /// The program that asked, as the sandbox says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}

/// How a host was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EgressAccess {
    /// A plain HTTP request, or a WebSocket that began as one.
    Http,
    /// A CONNECT for TLS.
    Tls,
    /// A CONNECT that a rule permits to carry any protocol.
    Raw,
    /// A question for the address of a name.
    Name,
    /// A request that could not be parsed.
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_form_that_the_other_end_parses() {
        let command: EgressCommand = serde_json::from_str(
            r#"{"type":"rules","generation":7,"rules":[{"host":"*.example.com:443"},{"host":"a.example.com","effect":"deny"}]}"#,
        )
        .expect("rules");
        let EgressCommand::Rules {
            generation,
            rules,
            upstream,
        } = command
        else {
            panic!("{command:?}");
        };
        assert_eq!((generation, rules.len(), upstream), (7, 2, None));
        assert_eq!(
            (rules[0].effect, rules[1].effect),
            (EgressEffect::Allow, EgressEffect::Deny)
        );
        let attempt = EgressAttempt {
            host: "a.example".into(),
            port: 443,
            access: EgressAccess::Tls,
            allowed: false,
            because: "no rule allows this host".into(),
            failure: None,
            bytes_sent: 0,
            bytes_received: 0,
            milliseconds: 3,
            program: None,
        };
        let line = serde_json::to_string(&EgressEvent::Attempt(attempt)).expect("a line");
        assert_eq!(
            line,
            r#"{"type":"attempt","host":"a.example","port":443,"access":"tls","allowed":false,"because":"no rule allows this host","bytes_sent":0,"bytes_received":0,"milliseconds":3}"#
        );
    }

    #[test]
    fn a_chunk_of_a_stream_fits_its_line() {
        let frame = EgressHostFrame {
            stream: u32::MAX,
            part: EgressHostPart::Data {
                data: Data(vec![255; HOST_CHUNK]),
            },
        };
        let line = serde_json::to_string(&EgressEvent::Host {
            frame: frame.clone(),
        })
        .expect("a line");
        assert!(line.len() <= MAX_ATTEMPT_LINE, "{}", line.len());
        let back: EgressCommand = serde_json::from_str(&line).expect("the same form");
        assert_eq!(back, EgressCommand::Host { frame });
    }

    #[test]
    fn an_opening_has_a_length_and_a_bound() {
        let opening = |host: &str| EgressOpening {
            purpose: EgressPurpose::Name {
                host: host.to_owned(),
            },
            program: Some("curl".to_owned()),
        };
        let bytes = opening("a.example").to_bytes().expect("it is short");
        let json = br#"{"purpose":{"type":"name","host":"a.example"},"program":"curl"}"#;
        assert_eq!(bytes[..3], [OPENING, 0, json.len() as u8]);
        assert_eq!(&bytes[3..], json);
        assert_eq!(opening(&"a".repeat(MAX_OPENING)).to_bytes(), None);
    }

    #[test]
    fn a_rule_with_an_unknown_field_is_rejected_and_not_widened() {
        for line in [
            r#"{"type":"rules","generation":1,"rules":[{"host":"a.example","method":["GET"]}]}"#,
            r#"{"type":"rules","generation":1,"rules":[],"up":null}"#,
            r#"{"type":"open"}"#,
        ] {
            assert!(
                serde_json::from_str::<EgressCommand>(line).is_err(),
                "{line}"
            );
        }
    }
}
