//! What a request was allowed by, and whether it still is once the rules have changed.

use podbay_wire::EgressUpstream;
use tokio::sync::watch;

use super::host_name::HostName;
use super::rule::Access;
use super::rule::Decision;
use super::rule::Request;
use super::rule::Rules;

/// The rules in force, and what everything is reached through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleSet {
    pub rules: Rules,
    pub upstream: Option<EgressUpstream>,
}

/// What the rules say to a request that they allow.
pub(crate) struct Allowed {
    pub rule: String,
    pub private: bool,
    pub upstream: Option<EgressUpstream>,
}

impl RuleSet {
    /// Decides on a request; where it is denied, says why.
    pub(crate) fn decide(
        &self,
        host: &HostName,
        port: u16,
        access: Access<'_>,
    ) -> Result<Allowed, String> {
        match self.rules.decide(&Request { host, port, access }) {
            Decision::Allow { rule, private } => Ok(Allowed {
                rule: rule.to_owned(),
                private,
                upstream: self.upstream.clone(),
            }),
            Decision::Deny(reason) => Err(reason.to_string()),
        }
    }
}

/// A request that was allowed.
#[derive(Clone, Debug)]
pub(crate) struct Grant {
    pub host: HostName,
    pub port: u16,
    pub access: GrantedAccess,
    /// Whether the address it reached is that of a private network.
    pub is_private: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum GrantedAccess {
    Http { method: String, path: String },
    Tls,
    Raw,
}

impl GrantedAccess {
    pub(crate) fn access(&self) -> Access<'_> {
        match self {
            Self::Http { method, path } => Access::Http { method, path },
            Self::Tls => Access::Tls,
            Self::Raw => Access::Raw,
        }
    }
}

impl Grant {
    /// Returns whether the rules allow it.
    pub(crate) fn holds(&self, rules: &Rules) -> bool {
        match rules.decide(&Request {
            host: &self.host,
            port: self.port,
            access: self.access.access(),
        }) {
            Decision::Allow { private, .. } => private || !self.is_private,
            Decision::Deny(_) => false,
        }
    }

    /// Waits until the rules do not allow it any more, or until there are none because the role
    /// ends.
    pub(crate) async fn until_withdrawn(&self, in_force: &mut watch::Receiver<RuleSet>) {
        while self.holds(&in_force.borrow_and_update().rules) {
            if in_force.changed().await.is_err() {
                return;
            }
        }
    }
}
