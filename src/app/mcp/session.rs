//! The servers of one session: named before its sandbox is there, started in it, and their tools
//! as the model is shown them.

use std::path::Path;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::McpServerState;
use super::ProjectMcp;
use super::decide::known_tools;
use super::host_server::HostServers;
use super::list::McpServer;
use super::list::named;
use super::opener::SandboxServers;
use super::opener::SessionOpener;
use crate::host_process::hidden_variables;
use crate::record::with_causes;
use podbay_config::Config;
use podbay_mcp as mcp;
use podbay_mcp::ServerOptions;
use podbay_mcp::ServerState;
use podbay_mcp::Servers;
use podbay_mcp::Source;
use podbay_mcp::ToolDefinition;
use podbay_policy::Mode;
use podbay_policy::Policy;
use podbay_sandbox::Project;
use podbay_sandbox::Sandbox;
use podbay_session::State;
use podbay_tools::ForeignTool;

/// The servers that a session will start.
#[derive(Default)]
pub(crate) struct NamedServers {
    servers: Vec<McpServer>,
    /// Whether a user can answer what servers ask.
    can_ask: bool,
}

/// The servers of a session, and their tools.
#[derive(Default)]
pub(crate) struct BegunServers {
    /// `None`: the session has none.
    pub(crate) servers: Option<Arc<Servers>>,
    pub(crate) tools: Vec<ForeignTool>,
    /// What the user should know, a sentence each.
    pub(crate) warnings: Vec<String>,
}

/// Returns the servers that the settings and the project name, and what is to be said of them.
pub(crate) fn name(
    config: &Config,
    project: Option<&Project>,
    mode: Mode,
    state: &State,
) -> (NamedServers, Vec<String>) {
    let mut warnings = Vec::new();
    let of_project = project.and_then(|project| {
        ProjectMcp::read(project, state).unwrap_or_else(|error| {
            let why = with_causes(&error);
            warnings.push(format!("no MCP server of the project is started: {why}"));
            None
        })
    });
    let mut servers = named(config, of_project.as_ref(), state).unwrap_or_else(|error| {
        let why = with_causes(&error);
        warnings.push(format!("no MCP server is started: {why}"));
        Vec::new()
    });
    if let Some(own) = of_project.filter(|own| !own.is_enabled()) {
        let names: Vec<&str> = servers
            .iter()
            .filter(|server| server.source == Source::Project)
            .map(|server| server.name.as_str())
            .collect();
        let what = if own.servers.is_ok() {
            format!("names MCP servers ({})", names.join(", "))
        } else {
            "cannot be read".to_owned()
        };
        warnings.push(format!(
            "`{}` of the project {what}: none of it is started; `podbay mcp trust` shows and enables it",
            mcp::PROJECT_FILE
        ));
    }
    if mode == Mode::Deny && servers.iter().any(is_on) {
        warnings.push(
            "mode deny only allows reading, and an MCP server may do more: none is started"
                .to_owned(),
        );
        servers.clear();
    }
    for server in servers.iter().filter(|server| is_on(server)) {
        if server.options.is_on_host() {
            warnings.push(format!(
                "the MCP server `{}` runs on your machine, outside of the sandbox, as your settings say: {}",
                server.name, server.command
            ));
        }
    }
    let named = NamedServers {
        servers,
        can_ask: false,
    };
    (named, warnings)
}

fn is_on(server: &McpServer) -> bool {
    server.state == McpServerState::On
}

impl NamedServers {
    /// Lets servers ask a user, where there is one.
    #[must_use]
    pub(crate) fn asking(self, can_ask: bool) -> Self {
        Self { can_ask, ..self }
    }

    /// Returns whether none is to be started.
    pub(crate) fn are_none(&self) -> bool {
        !self.servers.iter().any(is_on)
    }

    /// Starts the servers in the sandbox, or on the host for the project in this folder, and asks
    /// for their tools. What rules deny, and what a server describes otherwise than before, is not
    /// offered.
    pub(crate) async fn begin(
        &self,
        config: &Config,
        project: &Path,
        sandbox: &Sandbox,
        policy: &Policy,
        state: &State,
        cancel: &CancellationToken,
    ) -> BegunServers {
        let grace = config.sandbox.grace;
        let opener = SessionOpener {
            sandbox: SandboxServers {
                sandbox: sandbox.clone(),
                grace_ms: grace.get() * 1000,
            },
            host: HostServers::new(project, hidden_variables(config), grace.duration()),
            can_ask: self.can_ask,
        };
        let all: Vec<_> = self
            .servers
            .iter()
            .map(|server| (server.name.clone(), server.options.clone(), server.source))
            // A server of the project whose name another has is not even named.
            .fold(Vec::new(), |mut all: Vec<_>, next| {
                if all.iter().all(|(name, _, _)| *name != next.0) {
                    all.push(next);
                }
                all
            });
        let servers = Servers::new(&all, config.mcp.start_timeout.duration(), Arc::new(opener));
        for server in &self.servers {
            if let McpServerState::Off { why } = &server.state
                && !self
                    .servers
                    .iter()
                    .any(|other| is_on(other) && other.name == server.name)
            {
                servers.turn_off(&server.name, why);
            }
        }
        let listed = servers.begin(cancel).await;
        let mut warnings = Vec::new();
        let offered = self.known(listed, policy, state, &mut warnings);
        let tools = offered.iter().map(|tool| ForeignTool {
            name: tool.name.clone(),
            short_name: tool.tool.clone(),
            description: tool.description.clone(),
            parameters: tool.parameters.clone(),
            on_host: servers
                .options(&tool.server)
                .is_some_and(ServerOptions::is_on_host),
            with_key: servers
                .options(&tool.server)
                .is_some_and(ServerOptions::has_keys),
        });
        let tools = tools.collect();
        servers.offer(offered);
        for status in servers.status() {
            if let ServerState::Failed { why } = &status.state {
                warnings.push(format!(
                    "the MCP server `{}` has no tools: {why}",
                    status.name
                ));
            }
            for note in &status.notes {
                warnings.push(format!("the MCP server `{}`: {note}", status.name));
            }
        }
        BegunServers {
            servers: Some(Arc::new(servers)),
            tools,
            warnings,
        }
    }

    /// Keeps the tools that are described as the user knows them.
    fn known(
        &self,
        mut listed: Vec<ToolDefinition>,
        policy: &Policy,
        state: &State,
        warnings: &mut Vec<String>,
    ) -> Vec<ToolDefinition> {
        let known = known_tools(state);
        for server in self.servers.iter().filter(|server| is_on(server)) {
            let its: Vec<ToolDefinition> = listed
                .iter()
                .filter(|tool| tool.server == server.name)
                .cloned()
                .collect();
            if its.is_empty() {
                continue;
            }
            match known.check(&server.name, &server.options, &its) {
                Ok(changes) if changes.is_empty() => {}
                Ok(changes) => {
                    listed.retain(|tool| changes.iter().all(|change| change.name != tool.name));
                    let names: Vec<&str> =
                        changes.iter().map(|change| change.name.as_str()).collect();
                    warnings.push(format!(
                        "the MCP server `{0}` describes tools otherwise than before, which are not offered until you have seen it: {1}; \
                         `podbay mcp accept {0}`",
                        server.name,
                        shortened(&names)
                    ));
                }
                Err(error) => {
                    listed.retain(|tool| tool.server != server.name);
                    warnings.push(format!(
                        "the tools of the MCP server `{}` are not offered, since how it described them before is not known: {error}",
                        server.name
                    ));
                }
            }
        }
        listed.retain(|tool| !policy.denies_tool(&tool.name));
        listed
    }
}

/// Returns the first names, and how many more there are.
fn shortened(names: &[&str]) -> String {
    let shown = names.iter().take(5).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(5) {
        0 => shown,
        n_more => format!("{shown} and {n_more} more"),
    }
}
