//! Names to addresses, without glibc and without `/etc/hosts`, which is that of a container.

use std::net::IpAddr;
use std::net::SocketAddr;
use std::sync::OnceLock;

use futures::future::BoxFuture;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::LookupIpStrategy;
use hickory_resolver::config::NameServerConfig;
use hickory_resolver::config::ResolveHosts;
use hickory_resolver::config::ResolverConfig;
use hickory_resolver::net::runtime::TokioRuntimeProvider;

use super::host_name::HostName;

/// Answers with the addresses of a name. It is asked for names alone that a rule allows.
pub trait Resolve: Send + Sync {
    /// No address at all: there is no such name, or it has none.
    fn resolve<'a>(
        &'a self,
        name: &'a HostName,
    ) -> BoxFuture<'a, Result<Vec<IpAddr>, ResolveError>>;
}

/// The name servers did not answer.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ResolveError(pub String);

/// The name servers that were named, or those of `/etc/resolv.conf`.
#[derive(Default)]
pub struct NameServers {
    named: Vec<SocketAddr>,
    resolver: OnceLock<TokioResolver>,
}

impl NameServers {
    pub fn named(servers: Vec<SocketAddr>) -> Self {
        Self {
            named: servers,
            resolver: OnceLock::new(),
        }
    }

    fn resolver(&self) -> Result<&TokioResolver, ResolveError> {
        if let Some(resolver) = self.resolver.get() {
            return Ok(resolver);
        }
        let failed =
            |error: &dyn std::fmt::Display| ResolveError(format!("no name servers: {error}"));
        let mut builder = if self.named.is_empty() {
            TokioResolver::builder_tokio().map_err(|error| failed(&error))?
        } else {
            let servers = self.named.iter().map(name_server).collect();
            TokioResolver::builder_with_config(
                ResolverConfig::from_parts(None, Vec::new(), servers),
                TokioRuntimeProvider::default(),
            )
        };
        let options = builder.options_mut();
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        options.use_hosts_file = ResolveHosts::Never;
        let resolver = builder.build().map_err(|error| failed(&error))?;
        Ok(self.resolver.get_or_init(|| resolver))
    }
}

fn name_server(address: &SocketAddr) -> NameServerConfig {
    let mut server = NameServerConfig::udp_and_tcp(address.ip());
    for connection in &mut server.connections {
        connection.port = address.port();
    }
    server
}

impl Resolve for NameServers {
    fn resolve<'a>(
        &'a self,
        name: &'a HostName,
    ) -> BoxFuture<'a, Result<Vec<IpAddr>, ResolveError>> {
        Box::pin(async move {
            // With a dot at its end no search domain is put behind it.
            match self.resolver()?.lookup_ip(format!("{name}.")).await {
                Ok(found) => Ok(found.iter().collect()),
                Err(error) if error.is_no_records_found() => Ok(Vec::new()),
                Err(error) => Err(ResolveError(error.to_string())),
            }
        })
    }
}
