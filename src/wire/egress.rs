//! What the controller and the egress role tell each other: rules in, attempts out, one JSON value
//! a line.

use serde::Deserialize;
use serde::Serialize;

/// Where every sandbox and the gateway have the volume that the gateway's socket is in.
pub const EGRESS_FOLDER: &str = "/run/podbay/egress";

/// The socket's name in it.
pub const EGRESS_SOCKET: &str = "egress.sock";

/// Port on a sandbox's loopback at which the guest offers the gateway as an HTTP proxy.
pub const PROXY_PORT: u16 = 3128;

/// What a denial ends with. A model that reads it is not to try other ways.
pub const BLOCKED: &str = "blocked by policy: ask for it, do not retry";

/// Most bytes in a line to the role, without its end. A thousand rules of a usual length take a
/// tenth of it.
pub const MAX_RULES_LINE: usize = 1024 * 1024;

/// Most bytes in a line from the role, without its end. Each text in it has a bound of its own, far
/// below it.
pub const MAX_ATTEMPT_LINE: usize = 16 * 1024;

/// What is done with a connection that a rule is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EgressEffect {
    #[default]
    Allow,
    /// Beats every rule that allows.
    Deny,
}

/// One rule as it is written: `host` is `NAME`, `*.NAME`, and either with `:PORT` or `:PORT,PORT`
/// behind it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EgressRule {
    pub host: String,
    #[serde(default)]
    pub effect: EgressEffect,
    /// Methods of plain HTTP; none: all of them. With methods or paths a rule is about plain HTTP
    /// alone, since nothing else shows them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<String>,
    /// What the path of a plain HTTP request begins with, by whole parts; none: all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Also allows what is not TLS behind a CONNECT, such as SSH or a database.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub raw: bool,
    /// Also reaches private networks, such as that of a company's registry. Loopback, link-local
    /// and metadata addresses are never reached.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
}

/// A proxy of the host, through which the role reaches everything. It resolves the names, so that
/// names alone decide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EgressUpstream {
    /// A name or an address.
    pub host: String,
    pub port: u16,
}

/// What the role is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum EgressCommand {
    /// These rules instead of all earlier ones. Streams that they do not allow are cut.
    Rules {
        /// Comes back with the answer.
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
}

/// What the role tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EgressEvent {
    /// It listens. Until rules come it denies everything.
    Ready {
        protocol: u32,
    },
    /// The rules of this generation are in force.
    RulesSet {
        generation: u64,
    },
    Flushed {
        id: u64,
    },
    /// A line was not understood. Everything is denied until the next rules.
    RulesRefused {
        problem: String,
    },
    Attempt(EgressAttempt),
}

/// One attempt to reach a host, told when it is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EgressAttempt {
    /// The name in its one form, or what was written where it is none, truncated.
    pub host: String,
    /// 0 where none was understood.
    pub port: u16,
    pub access: EgressAccess,
    pub allowed: bool,
    /// The rule that allowed it, or why it was denied.
    pub because: String,
    /// Why it came to nothing although it was allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub milliseconds: u64,
}

/// How a host was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EgressAccess {
    /// A plain HTTP request, or a WebSocket that began as one.
    Http,
    /// A CONNECT for TLS.
    Tls,
    /// A CONNECT that a rule lets carry anything.
    Raw,
    /// A request that was not understood.
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_form_that_the_other_end_reads() {
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
        };
        let line = serde_json::to_string(&EgressEvent::Attempt(attempt)).expect("a line");
        assert_eq!(
            line,
            r#"{"type":"attempt","host":"a.example","port":443,"access":"tls","allowed":false,"because":"no rule allows this host","bytes_sent":0,"bytes_received":0,"milliseconds":3}"#
        );
    }

    #[test]
    fn a_rule_with_an_unknown_word_is_not_understood_as_a_wider_one() {
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
