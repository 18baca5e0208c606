//! Which hosts a sandbox may reach: the section `[network]`.

use std::net::IpAddr;
use std::net::SocketAddr;

use serde::Deserialize;
use serde::Serialize;

use podbay_egress::rule::Rules;
use podbay_egress::written;
use podbay_wire::EgressEffect;
use podbay_wire::EgressRule;
use podbay_wire::EgressUpstream;

use super::presets::presets;

/// Where name servers listen.
const DNS_PORT: u16 = 53;

/// Which hosts a sandbox may reach: the section `[network]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct NetworkOptions {
    /// Network of the sandbox: `none`, loopback alone; `allowlist`, the hosts of `allow` through a
    /// gateway; `open`, whatever your machine reaches. Default: `allowlist` where there are rules
    /// in `allow` and in a chat, which asks about each host; else `none`.
    pub mode: Option<NetworkMode>,
    /// Hosts that may be reached: `HOST`, `*.HOST`, either with `:PORT,PORT` behind it (default:
    /// 80 and 443), or `@NAME` for a preset. Words behind it: `raw` lets through what is neither
    /// HTTP nor TLS, `private` reaches private networks, methods (`GET`) and paths (`/debian`)
    /// narrow plain HTTP. `host.docker.internal:PORT` is a port of your own machine's loopback.
    pub allow: Vec<String>,
    /// Hosts that may not be reached, written the same way; they beat `allow`.
    pub deny: Vec<String>,
    /// Name servers that the gateway asks, as `ADDRESS` or `ADDRESS:PORT`; default: those of the
    /// engine.
    pub name_servers: Vec<String>,
    /// `http://HOST:PORT` of a proxy that the gateway goes through; it resolves the names then.
    /// Default: that of `HTTPS_PROXY`, where a container reaches it.
    pub proxy: Option<String>,
}

#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum NetworkMode {
    /// Loopback only.
    #[default]
    None,
    /// Hosts that rules allow, through the gateway.
    Allowlist,
    /// A bridge of the engine: whatever the host reaches.
    Open,
}

impl NetworkMode {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Allowlist => "allowlist",
            Self::Open => "open",
        }
    }
}

/// What a session's network is to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkPlan {
    pub mode: NetworkMode,
    /// Whether the gateway is needed from the first command on.
    pub at_once: bool,
    pub rules: Vec<EgressRule>,
    pub name_servers: Vec<SocketAddr>,
    /// A proxy of the host, which then resolves the names.
    pub upstream: Option<EgressUpstream>,
    /// What a user should know of it.
    pub notes: Vec<String>,
}

impl NetworkOptions {
    /// Returns everything that is wrong with these settings: the key and why.
    pub fn mistakes(&self) -> Vec<(String, String)> {
        let mut mistakes = Vec::new();
        for (key, rules, effect) in self.lists() {
            if let Err(problem) = all_rules(rules, effect) {
                mistakes.push((key.to_owned(), problem));
            }
        }
        if let Some(bad) = self
            .name_servers
            .iter()
            .find(|text| name_server(text).is_none())
        {
            mistakes.push((
                "network.name_servers".to_owned(),
                format!("`{bad}` is no address; write `10.0.0.53` or `10.0.0.53:5353`"),
            ));
        }
        mistakes
    }

    /// Returns the rules, of which [`mistakes`](Self::mistakes) finds nothing to say.
    pub fn rules(&self) -> Vec<EgressRule> {
        self.lists()
            .into_iter()
            .flat_map(|(_, rules, effect)| all_rules(rules, effect).unwrap_or_default())
            .collect()
    }

    /// Returns the mode, which rules that allow imply.
    pub fn mode(&self) -> NetworkMode {
        self.mode.unwrap_or(if self.allow.is_empty() {
            NetworkMode::None
        } else {
            NetworkMode::Allowlist
        })
    }

    /// Returns the plan of a session; `grantable`: somebody is there who can be asked about hosts.
    pub fn plan(&self, grantable: bool) -> NetworkPlan {
        let mode = match self.mode {
            None if grantable => NetworkMode::Allowlist,
            _ => self.mode(),
        };
        NetworkPlan {
            mode,
            at_once: self.mode() == NetworkMode::Allowlist,
            rules: self.rules(),
            name_servers: self
                .name_servers
                .iter()
                .filter_map(|text| name_server(text))
                .collect(),
            upstream: None,
            notes: Vec::new(),
        }
    }

    fn lists(&self) -> [(&'static str, &[String], EgressEffect); 2] {
        [
            ("network.allow", &self.allow, EgressEffect::Allow),
            ("network.deny", &self.deny, EgressEffect::Deny),
        ]
    }
}

/// Reads written rules, presets among them; the error names the one that is none.
fn all_rules(texts: &[String], effect: EgressEffect) -> Result<Vec<EgressRule>, String> {
    let mut rules = Vec::new();
    for text in texts {
        rules.extend(rules_of(text, effect)?);
    }
    // Each may hold, and all be too many.
    Rules::parse(&rules).map_err(|error| error.to_string())?;
    Ok(rules)
}

/// Reads one written rule, or the name of a preset.
pub fn rules_of(text: &str, effect: EgressEffect) -> Result<Vec<EgressRule>, String> {
    let parse = |text: &str| {
        written::parse(text, effect).map_err(|error| match error {
            written::WrittenError::Rule(error) => error.to_string(),
            other => format!("the network rule `{}`: {other}", text.trim()),
        })
    };
    let Some(name) = text.trim().strip_prefix('@') else {
        return parse(text).map(|rule| vec![rule]);
    };
    let Some(preset) = presets().iter().find(|preset| preset.name == name) else {
        let known: Vec<String> = presets()
            .iter()
            .map(|preset| format!("@{}", preset.name))
            .collect();
        return Err(format!(
            "`@{name}` is no preset; there are {}",
            known.join(", ")
        ));
    };
    preset.hosts.iter().map(|host| parse(host)).collect()
}

/// Writes a rule the way settings have it.
pub fn written_rule(rule: &EgressRule) -> String {
    written::write(rule)
}

fn name_server(text: &str) -> Option<SocketAddr> {
    text.parse()
        .ok()
        .or_else(|| Some(SocketAddr::new(text.parse::<IpAddr>().ok()?, DNS_PORT)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(allow: &[&str], deny: &[&str]) -> NetworkOptions {
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        NetworkOptions {
            allow: owned(allow),
            deny: owned(deny),
            ..NetworkOptions::default()
        }
    }

    #[test]
    fn a_preset_stands_for_its_hosts() {
        let rules = options(&["@pypi", "a.example:8443"], &["*.evil.example"]).rules();
        let hosts: Vec<&str> = rules.iter().map(|rule| rule.host.as_str()).collect();
        assert_eq!(
            hosts,
            [
                "pypi.org",
                "files.pythonhosted.org",
                "a.example:8443",
                "*.evil.example"
            ]
        );
        assert_eq!(rules[3].effect, EgressEffect::Deny);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_key() {
        for (options, key, words) in [
            (options(&["*"], &[]), "network.allow", "network mode `open`"),
            (options(&["@nmp"], &[]), "network.allow", "@npm, @pypi"),
            (
                options(&["a.example", ""], &[]),
                "network.allow",
                "it is empty",
            ),
            (options(&[], &["10.1.2.3"]), "network.deny", "is an address"),
            (
                options(&[], &["a.example GET"]),
                "network.deny",
                "inside TLS",
            ),
            (
                NetworkOptions {
                    name_servers: vec!["dns.example".to_owned()],
                    ..NetworkOptions::default()
                },
                "network.name_servers",
                "is no address",
            ),
        ] {
            let mistakes = options.mistakes();
            assert!(
                mistakes.len() == 1 && mistakes[0].0 == key && mistakes[0].1.contains(words),
                "{mistakes:?}"
            );
        }
        assert!(options(&["@npm"], &["b.example"]).mistakes().is_empty());
    }

    #[test]
    fn a_name_server_is_an_address_with_or_without_a_port() {
        assert_eq!(name_server("10.0.0.1"), "10.0.0.1:53".parse().ok());
        assert_eq!(name_server("10.0.0.1:5353"), "10.0.0.1:5353".parse().ok());
        assert_eq!(name_server("fd00::1"), "[fd00::1]:53".parse().ok());
        assert_eq!(name_server("a"), None);
    }
}
