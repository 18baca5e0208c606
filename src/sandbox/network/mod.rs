//! What a session's sandboxes may reach: settings, presets, and the gateway that lets them.
//!
//! The sandbox itself has no interface but loopback. In it the guest offers a proxy that leads over
//! a unix socket, in a volume that both have, to the gateway: the role `podbay egress` in a
//! container of its own, which takes rules from here alone. Start with [`Gateway`].

mod attempts;
mod container;
mod gateway;
mod line;
mod options;
mod own_machine;
mod presets;
mod talk;

pub use attempts::DeniedHost;
pub use attempts::Mark;
pub use gateway::Gateway;
pub use options::NetworkMode;
pub use options::NetworkOptions;
pub use options::NetworkPlan;
pub use options::rules_of;
pub use options::written_rule;
pub use presets::Preset;
pub use presets::presets;
pub use presets::presets_for;
