//! What a session was denied, and by what, read from its log.

use std::collections::BTreeMap;

use super::Error;
use super::check_network_rule;
use jiff::Timestamp;
use podbay_event::Decision;
use podbay_event::Event;
use podbay_event::HookOutcome;
use podbay_event::Kind;
use podbay_event::NetworkAttempt;
use podbay_session as session;
use podbay_session::State;

/// How long the words of a call may be.
const MOST_WORDS: usize = 200;

/// What denied something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Rules, the mode, or an answer.
    Permissions,
    /// A command of the settings.
    Hook,
    /// The gateway.
    Network,
}

/// One denial, with what would have allowed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    pub at: Timestamp,
    /// The call's id.
    pub call: Option<String>,
    /// What was denied.
    pub what: String,
    pub layer: Layer,
    pub reason: String,
    pub remedy: String,
}

/// Returns the events of a session: of the one that is named, else of the last one in a project.
fn events(state: &State, wanted: Option<&str>, project: &str) -> Result<Vec<Event>, Error> {
    let path = if let Some(wanted) = wanted {
        session::find(state, wanted).map_err(Error::Session)?.path
    } else {
        let last = session::last(state, |summary| summary.project == project);
        last.map_err(Error::Session)?.found().path
    };
    Ok(session::read(&path).map_err(Error::Session)?.events)
}

/// Returns what a session tried of the network, in its order.
pub fn network_log(
    state: &State,
    wanted: Option<&str>,
    project: &str,
) -> Result<Vec<(Timestamp, NetworkAttempt)>, Error> {
    let attempt = |event: Event| match event.kind {
        Kind::NetworkAttempted(attempt) => Some((event.at, attempt)),
        _ => None,
    };
    Ok(events(state, wanted, project)?
        .into_iter()
        .filter_map(attempt)
        .collect())
}

/// Returns what a session was denied, the newest first; `call`: of this call alone.
pub fn denials(
    state: &State,
    wanted: Option<&str>,
    project: &str,
    call: Option<&str>,
) -> Result<Vec<Denial>, Error> {
    let mut found = denials_of(&events(state, wanted, project)?);
    if let Some(call) = call {
        found.retain(|denial| denial.call.as_deref() == Some(call));
    }
    found.reverse();
    Ok(found)
}

fn denials_of(events: &[Event]) -> Vec<Denial> {
    let mut words: BTreeMap<&str, String> = BTreeMap::new();
    let mut running: Option<&str> = None;
    let mut found = Vec::new();
    for event in events {
        let denial = match &event.kind {
            Kind::AssistantMessage { calls, .. } => {
                for call in calls {
                    words.insert(&call.id, short(&format!("{} {}", call.name, call.arguments)));
                }
                None
            }
            Kind::CallStarted { call, .. } => {
                running = Some(call);
                None
            }
            Kind::CallDecided {
                call,
                name,
                decision: Decision::Deny,
                reason,
            } => Some((
                Some(call.as_str()),
                words.get(call.as_str()).unwrap_or(name).clone(),
                Layer::Permissions,
                reason.clone(),
                "a rule that allows it (`--allow RULE`, `policy.allow`) or another `--mode`: docs/guides/permissions.md"
                    .to_owned(),
            )),
            Kind::HookEnded {
                call,
                run,
                outcome: HookOutcome::Blocked,
                said,
                ..
            } => Some((
                call.as_deref(),
                call.as_deref()
                    .and_then(|call| words.get(call).cloned())
                    .unwrap_or_else(|| "a moment of the session".to_owned()),
                Layer::Hook,
                format!("`{run}` said: {said}"),
                "the hook's own condition, or taking it out of `[hooks]`".to_owned(),
            )),
            Kind::NetworkAttempted(attempt) if !attempt.allowed => Some((
                running,
                format!("a connection to {}", attempt.place()),
                Layer::Network,
                attempt.because.clone(),
                network_remedy(&attempt.place(), &attempt.because),
            )),
            _ => None,
        };
        if let Some((call, what, layer, reason, remedy)) = denial {
            found.push(Denial {
                at: event.at,
                call: call.map(str::to_owned),
                what,
                layer,
                reason,
                remedy,
            });
        }
    }
    found
}

/// Says what lets a connection through, if anything does.
fn network_remedy(place: &str, because: &str) -> String {
    let page = "docs/guides/network.md";
    let words = |more: &str| {
        format!("--allow-host \"{place}{more}\", or the same in `network.allow`: {page}")
    };
    if check_network_rule(place).is_err() {
        return format!(
            "no rule does: rules name hosts, and this is none; a command reaches it by the name of a host that a rule allows: {page}"
        );
    }
    match because {
        _ if because.contains("`private`") => words(" private"),
        _ if because.contains("`raw`") => words(" raw"),
        _ if because.ends_with("denies it") => {
            "taking that rule out of `network.deny`, where you set it".to_owned()
        }
        _ if because.starts_with("no rule allows") || because.contains("` allows other ") => {
            words("")
        }
        _ => format!("no rule does: the reason says what else is wrong ({page})"),
    }
}

fn short(text: &str) -> String {
    if text.chars().count() <= MOST_WORDS {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(MOST_WORDS).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use podbay_event::ToolCall;
    use podbay_event::Usage;
    use podbay_wire::EgressAccess;

    use super::*;

    #[test]
    fn each_layer_says_what_it_denied_and_what_would_allow_it() {
        let started = |call: &str| Kind::CallStarted {
            call: call.to_owned(),
            name: "bash".to_owned(),
            arguments: "{}".to_owned(),
        };
        let attempt = |allowed| {
            Kind::NetworkAttempted(NetworkAttempt {
                host: "a.example".to_owned(),
                port: 443,
                access: EgressAccess::Tls,
                allowed,
                because: "no rule allows this host".to_owned(),
                failure: None,
                bytes_sent: 0,
                bytes_received: 0,
                duration_ms: 1,
                times: 1,
                program: None,
            })
        };
        let kinds = [
            Kind::AssistantMessage {
                text: String::new(),
                thinking: String::new(),
                calls: vec![ToolCall {
                    id: "c1".to_owned(),
                    name: "bash".to_owned(),
                    arguments: r#"{"command":"npm publish"}"#.to_owned(),
                }],
                raw: None,
                usage: Usage::default(),
                interrupted: false,
                cut: false,
                duration_ms: 1,
            },
            Kind::CallDecided {
                call: "c1".to_owned(),
                name: "bash".to_owned(),
                decision: Decision::Deny,
                reason: "mode auto does not reach others".to_owned(),
            },
            started("c2"),
            attempt(true),
            attempt(false),
        ];
        let events: Vec<Event> = kinds.into_iter().map(Event::now).collect();
        let found = denials_of(&events);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].layer == Layer::Permissions && found[0].what.contains("npm publish"),
            "{:?}",
            found[0]
        );
        assert_eq!(
            (
                found[1].call.as_deref(),
                found[1].layer,
                found[1].what.as_str()
            ),
            (Some("c2"), Layer::Network, "a connection to a.example:443")
        );
        assert!(found[1].remedy.contains("--allow-host \"a.example:443\""));
    }

    #[test]
    fn a_remedy_is_named_where_there_is_one() {
        for (place, because, remedy) in [
            (
                "a.example:443",
                "no rule allows this host",
                "\"a.example:443\"",
            ),
            ("a.example", "no rule allows this host", "\"a.example\""),
            (
                "a.example:80",
                "its address 10.0.0.7 is one of a private network, which only a rule with `private` reaches",
                "\"a.example:80 private\"",
            ),
            (
                "a.example:443",
                "the rule `a.example` denies it",
                "`network.deny`",
            ),
            (
                "127.0.0.1:80",
                "`127.0.0.1` is an address, and rules are about names",
                "no rule does",
            ),
            (
                "a.example:443",
                "its address 127.0.0.1 is never reached",
                "no rule does",
            ),
            (
                "a.example:22",
                "the rule `a.example` allows other ports",
                "\"a.example:22\"",
            ),
        ] {
            let said = network_remedy(place, because);
            assert!(said.contains(remedy), "{place} {because}: {said}");
            assert_eq!(
                said.contains("--allow-host"),
                remedy.starts_with('"'),
                "{said}"
            );
        }
    }
}
