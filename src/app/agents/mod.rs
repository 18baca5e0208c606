//! Agents that the model starts with `spawn_agent`: each is a conversation of its own, with a
//! session on disk, under the policy of the one that started it, in its sandbox or in a read-only
//! one beside that.
//!
//! Start with [`Spawner::spawn`]. What a type of agent may use is `tools::AgentType`; that budgets
//! count together is `agent::Ledger`.

mod answer;
mod asker;
mod child;
mod definition;
mod list;
mod shared_sibling;
mod spawner;

pub use definition::AgentSource;
pub use list::AgentLine;
pub use list::AgentList;
pub use list::agents;
pub(super) use list::list_agents;
pub(super) use list::user_folder;
pub(super) use shared_sibling::SharedSibling;
pub use spawner::AgentReport;
pub(super) use spawner::Spawner;
pub(super) use spawner::SpawnerParts;
