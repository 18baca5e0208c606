//! MCP servers: which a session has, how they are started in its sandbox or on the host, and what
//! the user decides about them.
//!
//! The user's settings name servers, and so may the project's `.mcp.json`, which counts only once
//! the user has enabled these very bytes. Start with [`session::begin`].

mod decide;
mod host_server;
mod list;
mod opener;
mod project;
pub(super) mod session;
mod user;

pub use decide::McpServerChanges;
pub use decide::accept_tools;
pub use decide::changed_tools;
pub use list::McpServer;
pub use list::McpServerState;
pub use list::mcp_servers;
pub use project::ProjectMcp;
pub use project::project_mcp;
pub use project::revoke_project_mcp;
pub use project::trust_project_mcp;
pub(super) use user::SessionUser;
