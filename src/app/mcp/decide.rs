//! Tools that a server describes otherwise than before: the user sees them before a model does.

use std::path::Path;

use super::list::McpServer;
use super::list::mcp_servers;
use crate::Error;
use podbay_config::Config;
use podbay_mcp::Change;
use podbay_mcp::KnownTools;
use podbay_mcp::ServerOptions;
use podbay_session::State;

/// What waits of one server.
#[derive(Clone, Debug)]
pub struct McpServerChanges {
    pub changes: Vec<Change>,
    server: String,
    options: ServerOptions,
}

/// Returns the record of how servers described their tools.
pub(super) fn known_tools(state: &State) -> KnownTools {
    KnownTools::new(state.root().join("mcp-tools.json"))
}

/// Returns the changed tools of a server, for the user to look at.
pub fn changed_tools(
    config: &Config,
    folder: &Path,
    state: &State,
    name: &str,
) -> Result<McpServerChanges, Error> {
    let servers = mcp_servers(config, folder, state)?;
    let Some(server) = servers.iter().find(|server| server.name == name) else {
        let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        let hint = if names.is_empty() {
            "`[mcp.servers.NAME]` in the settings names one".to_owned()
        } else {
            format!("there are: {}", names.join(", "))
        };
        return Err(Error::usage(
            format!("there is no MCP server `{name}`"),
            hint,
        ));
    };
    let McpServer { options, .. } = server;
    let changes = known_tools(state)
        .pending(name, options)
        .map_err(|source| Error::Io {
            doing: "read how MCP servers described their tools".to_owned(),
            source,
        })?;
    Ok(McpServerChanges {
        changes,
        server: name.to_owned(),
        options: options.clone(),
    })
}

/// Accepts the changes as they were shown.
pub fn accept_tools(shown: &McpServerChanges, state: &State) -> Result<(), Error> {
    known_tools(state)
        .accept(&shown.server, &shown.options, &shown.changes)
        .map_err(|source| Error::Io {
            doing: "keep how MCP servers describe their tools".to_owned(),
            source,
        })
}
