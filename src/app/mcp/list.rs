//! All servers that settings and project name, and which of them a session starts.

use std::path::Path;

use serde::Serialize;

use super::ProjectMcp;
use super::decide::known_tools;
use crate::Error;
use crate::bench::open_project;
use podbay_config::Config;
use podbay_mcp as mcp;
use podbay_mcp::ServerOptions;
use podbay_mcp::ServerPlace;
use podbay_mcp::Source;
use podbay_session::State;

/// Why a server on the host is off where the sandbox is one that Podbay did not start.
const NO_HOST: &str = "`where` is `host`, and Podbay itself runs in a container of compose, which is not your machine";

/// Why a server over HTTP is off where nothing is asked for over the network.
const OFFLINE: &str = "`offline` is set, and it is reached over HTTP";

/// A server that is named somewhere.
#[derive(Clone, Debug, Serialize)]
pub struct McpServer {
    pub name: String,
    pub source: Source,
    /// The command line in words.
    pub command: String,
    #[serde(rename = "where")]
    pub place: ServerPlace,
    #[serde(flatten)]
    pub state: McpServerState,
    /// The names of its tools, as it listed them in an earlier session.
    pub tools: Vec<String>,
    /// How many of its tools wait for the user, since it describes them otherwise than before.
    pub n_changed: usize,
    #[serde(skip)]
    pub(super) options: ServerOptions,
}

/// Whether the next session starts it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum McpServerState {
    On,
    Off { why: String },
}

/// Returns all servers that the settings and the project's `.mcp.json` name.
pub fn mcp_servers(config: &Config, folder: &Path, state: &State) -> Result<Vec<McpServer>, Error> {
    let of_project = if crate::is_attached(config) {
        None
    } else {
        ProjectMcp::read(&open_project(folder, state)?, state)?
    };
    named(config, of_project.as_ref(), state)
}

/// Returns the servers of the settings, then those of the project.
pub(super) fn named(
    config: &Config,
    of_project: Option<&ProjectMcp>,
    state: &State,
) -> Result<Vec<McpServer>, Error> {
    let off = |why: &str| McpServerState::Off {
        why: why.to_owned(),
    };
    let mut servers = Vec::new();
    for (name, options) in &config.mcp.servers {
        let is_on = if !options.enabled {
            off("`enabled` is false in the settings")
        } else if options.is_on_host() && crate::is_attached(config) {
            off(NO_HOST)
        } else if options.url.is_some() && config.offline {
            off(OFFLINE)
        } else {
            McpServerState::On
        };
        servers.push(server(name, options, Source::Settings, is_on, state)?);
    }
    let Some(own) = of_project else {
        return Ok(servers);
    };
    let found = own.servers.as_ref();
    for (name, options) in found.into_iter().flat_map(|found| &found.servers) {
        let is_on = if named_alike(config.mcp.servers.keys(), name) {
            off("the settings have a server of this name")
        } else if named_alike(
            servers
                .iter()
                .filter(|server| server.source == Source::Project)
                .map(|server| &server.name),
            name,
        ) {
            off("the project has another server of this name")
        } else if options.url.is_some() && config.offline {
            off(OFFLINE)
        } else if own.is_enabled() {
            McpServerState::On
        } else {
            off("the project names it: `podbay mcp trust` shows and enables it")
        };
        servers.push(server(name, options, Source::Project, is_on, state)?);
    }
    for (name, why) in found.into_iter().flat_map(|found| &found.skipped) {
        servers.push(server(
            name,
            &ServerOptions::default(),
            Source::Project,
            off(&mcp::plain_line(why, 200)),
            state,
        )?);
    }
    Ok(servers)
}

/// Whether one of these has the name: models do not heed case, so that a call would reach the wrong one.
fn named_alike<'a>(mut names: impl Iterator<Item = &'a String>, name: &str) -> bool {
    names.any(|other| other.eq_ignore_ascii_case(name))
}

fn server(
    name: &str,
    options: &ServerOptions,
    source: Source,
    is_on: McpServerState,
    state: &State,
) -> Result<McpServer, Error> {
    let known = known_tools(state);
    let failed = |source| Error::Io {
        doing: "read how MCP servers described their tools".to_owned(),
        source,
    };
    Ok(McpServer {
        name: name.to_owned(),
        source,
        command: options.command_line(),
        place: options.place,
        state: is_on,
        tools: known.accepted(name, options).map_err(failed)?,
        n_changed: known.pending(name, options).map_err(failed)?.len(),
        options: options.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_model_takes_for_one_another_are_alike() {
        let names = ["browser".to_owned(), "files".to_owned()];
        assert!(named_alike(names.iter(), "Browser"));
        assert!(!named_alike(names.iter(), "browsers"));
    }
}
