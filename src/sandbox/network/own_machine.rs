//! The user's own machine, as far as rules let a sandbox reach it: the gateway asks for a port, and
//! this program dials it on loopback.
//!
//! The gateway is not believed: whether a rule allows the port is looked at here.

use std::io;
use std::net::Ipv4Addr;
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Duration;

use podbay_egress::HostStreams;
use podbay_egress::host_name::HostName;
use podbay_egress::rule::Rules;
use podbay_engine as engine;
use podbay_wire::EgressRule;
use podbay_wire::HOST_MACHINE;
use tokio::net::TcpStream;

/// Loopback answers at once, if it does.
const DIAL: Duration = Duration::from_secs(5);

/// Which ports rules allow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ports(Vec<u16>);

impl Ports {
    pub(super) fn of(rules: &[EgressRule]) -> Self {
        // Rules that do not hold allow nothing.
        let rules = Rules::parse(rules).unwrap_or_default();
        let ports = rules.ports_of(&name()).unwrap_or_default();
        Self(ports.into_iter().collect())
    }

    pub(super) fn allows(&self, port: u16) -> bool {
        self.0.contains(&port)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Opens a stream that the gateway asks for.
pub(super) fn open(streams: &Arc<HostStreams>, id: u32, port: u16, ports: &Ports) {
    let Some(stream) = streams.accept(id, port) else {
        return;
    };
    if !ports.allows(port) {
        return stream.refuse("no rule allows this port of the machine".to_owned());
    }
    tokio::spawn(async move {
        match tokio::time::timeout(DIAL, dial(port)).await {
            Ok(Ok(connected)) => {
                stream.opened().await;
                stream.carry(connected).await;
            }
            Ok(Err(error)) => stream.refuse(format!("127.0.0.1:{port} of this machine: {error}")),
            Err(_) => stream.refuse(format!("127.0.0.1:{port} of this machine did not answer")),
        }
    });
}

/// Connects to loopback. Some servers listen at that of IPv6 alone.
async fn dial(port: u16) -> io::Result<TcpStream> {
    let first = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await;
    let stream = match first {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            let other = TcpStream::connect((Ipv6Addr::LOCALHOST, port)).await;
            other.map_err(|_| error)?
        }
        connected => connected?,
    };
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Says why the user's machine is not offered, where it is not.
pub(super) fn not_offered(engine: &engine::Facts) -> Option<String> {
    (!engine.local).then(|| {
        format!(
            "`{HOST_MACHINE}` is not offered: the engine at {} is not on this machine, so that the name could mean either",
            engine.address
        )
    })
}

/// Takes away what rules allow of the user's machine.
pub(super) fn without(rules: &mut Vec<EgressRule>) {
    rules.retain(|rule| Ports::of(std::slice::from_ref(rule)).is_empty());
}

fn name() -> HostName {
    HostName::parse(HOST_MACHINE).expect("it is a name")
}

#[cfg(test)]
mod tests {
    use podbay_wire::EgressEffect;

    use super::*;

    fn rule(host: &str, effect: EgressEffect) -> EgressRule {
        EgressRule {
            host: host.to_owned(),
            effect,
            ..EgressRule::default()
        }
    }

    #[test]
    fn a_port_needs_a_rule_that_names_the_machine_and_it() {
        use EgressEffect::Allow;
        use EgressEffect::Deny;
        let ports = Ports::of(&[
            rule("host.docker.internal:5432,6379", Allow),
            rule("HOST.docker.internal.:8080", Allow),
            rule("host.docker.internal:6379", Deny),
            rule("*.docker.internal:22", Allow),
            rule("a.example:23", Allow),
        ]);
        assert_eq!(ports, Ports(vec![5432, 8080]));
        assert!(Ports::of(&[rule("host.docker.internal", Allow)]).is_empty());
    }

    #[test]
    fn where_the_engine_is_elsewhere_its_rules_are_taken_away() {
        let mut rules = vec![
            rule("host.docker.internal:5432", EgressEffect::Allow),
            rule("a.example", EgressEffect::Allow),
            rule("b.example", EgressEffect::Deny),
        ];
        without(&mut rules);
        let hosts: Vec<&str> = rules.iter().map(|rule| rule.host.as_str()).collect();
        assert_eq!(hosts, ["a.example", "b.example"]);
        let here = engine::Facts::plain();
        assert_eq!(not_offered(&here), None);
        let elsewhere = engine::Facts {
            local: false,
            ..here
        };
        assert!(not_offered(&elsewhere).is_some());
    }
}
