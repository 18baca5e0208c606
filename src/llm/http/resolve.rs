//! Resolves names without glibc.
//! A static glibc would load the host's libnss to resolve a name, which may crash. `localhost` is
//! answered here; the rest goes to the name servers of `/etc/resolv.conf`, after `/etc/hosts`.
//! Unlike reqwest's own resolver it has no fallback where that file is missing: no query ever goes
//! to a server that the user did not choose.

use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::net::Ipv6Addr;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::OnceLock;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::LookupIpStrategy;
use reqwest::dns::Addrs;
use reqwest::dns::Name;
use reqwest::dns::Resolve;
use reqwest::dns::Resolving;

/// Created on first use, because it needs a running tokio and because most endpoints need no
/// resolution.
#[derive(Clone, Default)]
pub(super) struct Resolver {
    hickory: Arc<OnceLock<TokioResolver>>,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        if is_localhost(name.as_str()) {
            let addresses: Addrs = Box::new(
                [
                    IpAddr::V4(Ipv4Addr::LOCALHOST),
                    IpAddr::V6(Ipv6Addr::LOCALHOST),
                ]
                .into_iter()
                .map(without_port),
            );
            return Box::pin(std::future::ready(Ok(addresses)));
        }
        let cell = Arc::clone(&self.hickory);
        Box::pin(async move {
            let resolver = if let Some(resolver) = cell.get() {
                resolver
            } else {
                let mut builder = TokioResolver::builder_tokio()?;
                builder.options_mut().ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
                let made = builder.build()?;
                cell.get_or_init(|| made)
            };
            let found: Vec<IpAddr> = resolver.lookup_ip(name.as_str()).await?.iter().collect();
            let addresses: Addrs = Box::new(found.into_iter().map(without_port));
            Ok(addresses)
        })
    }
}

/// Port 0 means the address's own or the scheme's.
fn without_port(address: IpAddr) -> SocketAddr {
    SocketAddr::new(address, 0)
}

/// Returns whether a name means this machine, by RFC 6761.
pub(super) fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn localhost_is_this_machine_and_nothing_else_is() {
        for name in ["localhost", "LocalHost", "localhost.", "a.localhost"] {
            assert!(is_localhost(name), "{name}");
        }
        for name in ["localhost.example.com", "notlocalhost", "local", ""] {
            assert!(!is_localhost(name), "{name}");
        }
    }

    #[tokio::test]
    async fn localhost_is_resolved_without_a_query() {
        let resolver = Resolver::default();
        let found: Vec<SocketAddr> = resolver
            .resolve("localhost".parse().expect("a name"))
            .await
            .expect("addresses")
            .collect();
        assert_eq!(
            found,
            vec![
                "127.0.0.1:0".parse().expect("v4"),
                "[::1]:0".parse().expect("v6")
            ]
        );
        assert!(resolver.hickory.get().is_none());
    }
}
