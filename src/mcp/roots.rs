//! The folder that a server works on. Newer versions of the protocol have no such request; servers of
//! today make it.

#![expect(
    deprecated,
    reason = "the protocol's next version drops it, and servers in use ask for it"
)]

use rmcp::model::ClientCapabilities;
use rmcp::model::ElicitationCapability;
use rmcp::model::ListRootsResult;
use rmcp::model::Root;
use rmcp::model::RootsCapabilities;

pub(super) type Roots = ListRootsResult;

/// Returns what this client can do: tell the folder, and ask the user where there is one.
pub(super) fn capabilities(can_ask: bool) -> ClientCapabilities {
    let mut capabilities = ClientCapabilities::default();
    capabilities.roots = Some(RootsCapabilities::default());
    capabilities.elicitation = can_ask.then(ElicitationCapability::default);
    capabilities
}

/// Returns the folder; none where it has no name.
pub(super) fn roots(root: &str) -> Roots {
    let named = Some(root).filter(|root| !root.is_empty());
    ListRootsResult::new(named.map(Root::new).into_iter().collect())
}
