//! What is wrong with a way to a host: what the rules say of it, and whether it can be gone.

use super::fetch::parse;
use super::gateway::Gateway;
use super::limits::URL;

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Name,
    Connection,
    Ping,
}

/// A host, with a port where one was written.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    host: String,
    port: Option<u16>,
}

impl Target {
    /// Reads `HOST`, `HOST:PORT` or an address of the web.
    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.len() > URL {
            return Err("the target is too long".to_owned());
        }
        if text.contains("://") {
            let url = parse(text).map_err(|problem| format!("the target: {problem}"))?;
            return Ok(Self {
                host: url.host_str().unwrap_or_default().to_owned(),
                port: url.port_or_known_default(),
            });
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') => {
                let port = port.parse().ok().filter(|&port| port != 0);
                let port = port.ok_or("the port behind the host is none: 1 to 65535")?;
                (host, Some(port))
            }
            _ => (text, None),
        };
        if host.is_empty() || host.contains(['/', '@', ' ']) || host.contains(char::is_control) {
            return Err("the target is no host: write NAME, NAME:PORT or a URL".to_owned());
        }
        Ok(Self {
            host: host.to_ascii_lowercase(),
            port,
        })
    }
}

/// Looks at it; both are text for the model.
pub(crate) async fn diagnose(
    gateway: &Gateway,
    action: Action,
    target: &str,
) -> Result<String, String> {
    let target = Target::parse(target)?;
    let mut lines = Vec::new();
    if action == Action::Ping {
        lines.push(
            "The sandbox has no ICMP, so that nothing can be pinged; a connection is tried instead."
                .to_owned(),
        );
    }
    let found = match action {
        Action::Name => name(gateway, &target, &mut lines).await,
        Action::Connection | Action::Ping => connection(gateway, &target, &mut lines).await,
    };
    if let Err(problem) = &found {
        lines.push(problem.clone());
    }
    let text = lines.join("\n");
    found.map(|()| text.clone()).map_err(|_| text)
}

async fn ports(gateway: &Gateway, host: &str, lines: &mut Vec<String>) -> Result<Vec<u16>, String> {
    let ports = gateway
        .ports(host)
        .await
        .map_err(|error| error.to_string())?;
    if ports.is_empty() {
        return Err(format!(
            "{host}: no rule allows it, and so its name is not looked up"
        ));
    }
    let listed: Vec<String> = ports.iter().map(ToString::to_string).collect();
    lines.push(format!("{host}: a rule allows port {}", listed.join(", ")));
    Ok(ports)
}

async fn name(gateway: &Gateway, target: &Target, lines: &mut Vec<String>) -> Result<(), String> {
    let host = &target.host;
    let ports = ports(gateway, host, lines).await?;
    lines.push(
        "The gateway looks names up when something connects, and tells no address; programs get one of loopback."
            .to_owned(),
    );
    // Whether the name has an address that may be reached shows when it is.
    connect(gateway, host, target.port.unwrap_or(ports[0]), lines).await
}

async fn connection(
    gateway: &Gateway,
    target: &Target,
    lines: &mut Vec<String>,
) -> Result<(), String> {
    let host = &target.host;
    let port = if let Some(port) = target.port {
        port
    } else {
        let ports = ports(gateway, host, lines).await?;
        if ports.contains(&443) { 443 } else { ports[0] }
    };
    connect(gateway, host, port, lines).await
}

async fn connect(
    gateway: &Gateway,
    host: &str,
    port: u16,
    lines: &mut Vec<String>,
) -> Result<(), String> {
    let begun = std::time::Instant::now();
    let tunnel = gateway.tunnel(host, port).await;
    tunnel.map_err(|error| error.to_string())?;
    let elapsed = begun.elapsed().as_millis();
    lines.push(format!("{host}:{port}: connected in {elapsed} ms"));
    if port == 443 {
        let begun = std::time::Instant::now();
        let encrypted = gateway.tls_to(host, port).await;
        encrypted.map_err(|error| error.to_string())?;
        let elapsed = begun.elapsed().as_millis();
        lines.push(format!(
            "{host}:{port}: TLS agreed in {elapsed} ms, and the certificate is valid"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_host_with_or_without_a_port_or_an_address_of_the_web() {
        let read = |text: &str| Target::parse(text).map(|target| (target.host, target.port));
        assert_eq!(read("A.example"), Ok(("a.example".into(), None)));
        assert_eq!(read("a.example:8443"), Ok(("a.example".into(), Some(8443))));
        assert_eq!(
            read("https://a.example/x"),
            Ok(("a.example".into(), Some(443)))
        );
        for bad in [
            "",
            "a.example:0",
            "a.example:x",
            "a b",
            "u@a.example",
            "ftp://a.example",
            "http://127.1/",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
