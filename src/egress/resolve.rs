//! Names to addresses, without glibc and without `/etc/hosts`, which is that of a container.

use std::net::IpAddr;
use std::sync::OnceLock;

use futures::future::BoxFuture;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::LookupIpStrategy;
use hickory_resolver::config::ResolveHosts;

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

/// The name servers of `/etc/resolv.conf`.
#[derive(Default)]
pub struct NameServers(OnceLock<TokioResolver>);

impl NameServers {
    fn resolver(&self) -> Result<&TokioResolver, ResolveError> {
        if let Some(resolver) = self.0.get() {
            return Ok(resolver);
        }
        let failed =
            |error: &dyn std::fmt::Display| ResolveError(format!("no name servers: {error}"));
        let mut builder = TokioResolver::builder_tokio().map_err(|error| failed(&error))?;
        let options = builder.options_mut();
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        options.use_hosts_file = ResolveHosts::Never;
        let resolver = builder.build().map_err(|error| failed(&error))?;
        Ok(self.0.get_or_init(|| resolver))
    }
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
