//! What a session's network is to be, from the settings and what the controller's own machine says.

use podbay_config::Answers;
use podbay_config::Config;
use podbay_sandbox::NetworkMode;
use podbay_sandbox::NetworkPlan;
use podbay_sandbox::Preset;
use podbay_tools::host_allowed_by;
use podbay_wire::EgressEffect;
use podbay_wire::EgressUpstream;

/// Variables that name a proxy for what the gateway reaches, in the order in which they are looked
/// at.
const PROXIES: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/// Port of a proxy whose address has none.
const PROXY_PORT: u16 = 80;

/// Returns the plan; `grantable`: somebody is there who may allow hosts later. What they allowed
/// for good in this project holds as well, where there is a gateway.
pub(super) fn plan(config: &Config, grantable: bool, answers: Option<&Answers>) -> NetworkPlan {
    let of_machine = || {
        PROXIES
            .iter()
            .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    };
    let proxy = config.network.proxy.clone().or_else(of_machine);
    let mut plan = plan_behind(config, grantable, proxy.as_deref());
    // What cannot be read is said where the answers about calls are.
    let allowed = answers
        .and_then(|answers| answers.list().ok())
        .unwrap_or_default();
    plan.rules.extend(
        allowed.iter().filter_map(host_allowed_by).flat_map(|host| {
            podbay_sandbox::rules_of(host, EgressEffect::Allow).unwrap_or_default()
        }),
    );
    plan
}

fn plan_behind(config: &Config, grantable: bool, proxy: Option<&str>) -> NetworkPlan {
    let mut plan = config.network.plan(grantable && !config.offline);
    if config.offline && plan.mode != NetworkMode::None {
        let mode = plan.mode.as_str();
        plan.mode = NetworkMode::None;
        plan.notes.push(format!(
            "`offline` is set: the sandbox has no network, although `network.mode` is {mode}"
        ));
    }
    if plan.mode == NetworkMode::Open && !config.network.deny.is_empty() {
        plan.notes.push(
            "the rules of `network.deny` mean nothing in an open network; `allowlist` keeps them"
                .to_owned(),
        );
    }
    let has_gateway = plan.mode == NetworkMode::Allowlist;
    match proxy.filter(|_| has_gateway).map(upstream) {
        Some(Ok(proxy)) => {
            // In a chat that allows nothing yet it would be a riddle.
            if plan.at_once {
                plan.notes.push(format!(
                    "the gateway goes through the proxy {}:{}, which resolves names: rules decide by name alone, and not by the address behind it",
                    proxy.host, proxy.port
                ));
            }
            plan.upstream = Some(proxy);
        }
        Some(Err(problem)) if plan.at_once => plan.notes.push(format!(
            "the proxy of this machine is not used by the gateway: {problem}"
        )),
        None | Some(Err(_)) => {}
    }
    plan
}

/// Rules that would allow what was denied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkProposal {
    /// As they are written in settings.
    pub rules: Vec<String>,
    /// What no rule can allow, such as addresses.
    pub left: Vec<String>,
}

/// Proposes rules for hosts and ports: a preset where they are of one, else each by itself. Port 0
/// is that of a name of which no more is known.
pub fn propose_network_rules(denied: &[(String, u16)]) -> NetworkProposal {
    let mut proposal = NetworkProposal::default();
    for (host, port) in denied {
        let is_usual = [0, 80, 443].contains(port);
        let is_of = |preset: &&Preset| is_usual && preset.hosts.contains(host);
        let rule = match podbay_sandbox::presets().iter().find(is_of) {
            Some(preset) => format!("@{}", preset.name),
            None if is_usual => host.clone(),
            None => format!("{host}:{port}"),
        };
        let (list, words) = match port {
            _ if check_network_rule(&rule).is_ok() => (&mut proposal.rules, rule),
            0 => (&mut proposal.left, host.clone()),
            _ => (&mut proposal.left, format!("{host}:{port}")),
        };
        if !list.contains(&words) {
            list.push(words);
        }
    }
    proposal
}

/// Proposes presets for a project, by the names in its top folder: a sentence, where one fits.
pub(super) fn presets_note(names: &[&str]) -> Option<String> {
    let fitting = podbay_sandbox::presets_for(names);
    let list: Vec<String> = fitting
        .iter()
        .map(|preset| format!("@{} ({})", preset.name, preset.why))
        .collect();
    let rules: Vec<String> = fitting
        .iter()
        .map(|preset| format!("\"@{}\"", preset.name))
        .collect();
    (!list.is_empty()).then(|| {
        format!(
            "commands reach no host; this project may need {}: `podbay install` gets its dependencies once, `--allow-host` lets a preset through, or below `[network]` in \
             ~/.config/podbay/config.toml `allow = [{}]`",
            list.join(", "),
            rules.join(", ")
        )
    })
}

/// Says what is wrong with a rule that lets a host through.
pub fn check_network_rule(text: &str) -> Result<(), String> {
    podbay_sandbox::rules_of(text, EgressEffect::Allow).map(drop)
}

/// Reads the address of a proxy.
fn upstream(text: &str) -> Result<EgressUpstream, String> {
    let rest = match text.split_once("://") {
        Some(("http", rest)) => rest,
        Some((scheme, _)) => {
            return Err(format!(
                "it speaks `{scheme}`, and only `http` is understood"
            ));
        }
        None => text,
    };
    let authority = rest.split('/').next().unwrap_or_default();
    if authority.contains('@') {
        return Err("it needs a password, and the gateway is given none".to_owned());
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !host.ends_with(':') && !port.ends_with(']') => {
            let port = port.parse().ok().filter(|&port| port != 0);
            (host, port.ok_or("its port is none".to_owned())?)
        }
        _ => (authority, PROXY_PORT),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() {
        return Err("its address is empty".to_owned());
    }
    let is_loopback = host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback());
    if is_loopback {
        return Err(
            "it listens on this machine's loopback, which a container does not reach".to_owned(),
        );
    }
    Ok(EgressUpstream {
        host: host.to_owned(),
        port,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(mode: NetworkMode, offline: bool) -> Config {
        let mut config = Config {
            offline,
            ..Config::default()
        };
        config.network.mode = Some(mode);
        config
    }

    #[test]
    fn offline_takes_every_network_away_and_says_so() {
        for mode in [NetworkMode::Allowlist, NetworkMode::Open] {
            let plan = plan_behind(&config(mode, true), true, None);
            assert_eq!(plan.mode, NetworkMode::None);
            assert!(plan.notes[0].contains("offline"), "{:?}", plan.notes);
        }
        let plan = plan_behind(&config(NetworkMode::None, true), true, None);
        assert!(plan.notes.is_empty());
    }

    #[test]
    fn a_chat_asks_about_hosts_unless_it_was_told_to_have_no_network() {
        let unsaid = plan_behind(&Config::default(), true, None);
        assert!(unsaid.mode == NetworkMode::Allowlist && !unsaid.at_once);
        let run = plan_behind(&Config::default(), false, None);
        assert_eq!(run.mode, NetworkMode::None);
        let told = plan_behind(&config(NetworkMode::None, false), true, None);
        assert_eq!(told.mode, NetworkMode::None);
    }

    #[test]
    fn a_project_is_told_of_the_presets_that_its_manifests_call_for() {
        let note = presets_note(&["package.json", "Cargo.toml"]).expect("both");
        assert!(
            note.contains("@npm (packages") && note.contains("allow = [\"@npm\", \"@crates\"]"),
            "{note}"
        );
        assert_eq!(presets_note(&["README.md"]), None);
    }

    #[test]
    fn a_proxy_of_the_machine_is_used_where_a_container_reaches_it() {
        let read =
            |text: &str| upstream(text).map(|proxy| format!("{} {}", proxy.host, proxy.port));
        assert_eq!(
            read("http://proxy.example:3128/"),
            Ok("proxy.example 3128".into())
        );
        assert_eq!(read("proxy.example"), Ok("proxy.example 80".into()));
        assert_eq!(read("http://[fd00::1]:8080"), Ok("fd00::1 8080".into()));
        for (text, problem) in [
            ("socks5://proxy.example:1080", "socks5"),
            ("http://me:secret@proxy.example:3128", "password"),
            ("http://127.0.0.1:3128", "loopback"),
            ("http://localhost:3128", "loopback"),
            ("http://proxy.example:0", "port"),
            ("http://", "empty"),
        ] {
            let error = read(text).expect_err(text);
            assert!(
                error.contains(problem) && !error.contains("secret"),
                "{error}"
            );
        }
        let plan = plan_behind(
            &config(NetworkMode::Allowlist, false),
            false,
            Some("http://proxy.example:3128"),
        );
        assert!(plan.upstream.is_some() && plan.notes[0].contains("by name alone"));
        let plan = plan_behind(
            &config(NetworkMode::None, false),
            false,
            Some("socks5://x:1"),
        );
        assert!(plan.upstream.is_none() && plan.notes.is_empty());
    }
}
