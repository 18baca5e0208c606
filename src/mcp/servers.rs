//! All servers of a session.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use async_recursion::async_recursion as boxed;
use serde::Serialize;
use serde_json::Map;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Caller;
use super::Error;
use super::Opener;
use super::PromptDefinition;
use super::ServerOptions;
use super::ServerPlace;
use super::ServerState;
use super::Source;
use super::ToolDefinition;
use super::server::Server;

/// The servers of a session, and the tools of them that the model was told.
pub struct Servers {
    servers: Vec<Arc<Server>>,
    opener: Arc<dyn Opener>,
    tools: Mutex<Vec<ToolDefinition>>,
}

/// A server, for the user.
#[derive(Clone, Debug, Serialize)]
pub struct ServerStatus {
    pub name: String,
    pub source: Source,
    pub command: String,
    #[serde(rename = "where")]
    pub place: ServerPlace,
    #[serde(flatten)]
    pub state: ServerState,
    /// The names by which the model calls its tools.
    pub tools: Vec<String>,
    pub notes: Vec<String>,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Called {
    /// The text for the model.
    pub text: String,
    pub is_ok: bool,
}

impl Servers {
    /// Names the servers; none is started.
    pub fn new(
        servers: &[(String, ServerOptions, Source)],
        start_timeout: Duration,
        opener: Arc<dyn Opener>,
    ) -> Self {
        let servers = servers.iter().map(|(name, options, source)| {
            Arc::new(Server::new(name, options, *source, start_timeout))
        });
        Self {
            servers: servers.collect(),
            opener,
            tools: Mutex::default(),
        }
    }

    /// Starts all servers that are on, at the same time, and returns their tools, in the order in
    /// which the servers are named. One that fails has none, and its state says why.
    #[boxed]
    pub async fn begin(&self, cancel: &CancellationToken) -> Vec<ToolDefinition> {
        let starting = self
            .servers
            .iter()
            .map(|server| server.begin(&self.opener, cancel));
        let begun = futures::future::join_all(starting).await;
        begun.into_iter().flatten().flatten().collect()
    }

    /// Returns the prompts of all servers that run, in the order in which the servers are named. Those
    /// of a server that does not answer are left out.
    #[boxed]
    pub async fn prompts(&self, cancel: &CancellationToken) -> Vec<PromptDefinition> {
        let asking = self
            .servers
            .iter()
            .map(|server| server.prompts(&self.opener, cancel));
        let listed = futures::future::join_all(asking).await;
        listed.into_iter().flatten().flatten().collect()
    }

    /// Returns the text of a prompt, whose arguments `words` fill; the error says what is wrong.
    #[boxed]
    pub async fn prompt(
        &self,
        definition: &PromptDefinition,
        words: &str,
        cancel: &CancellationToken,
    ) -> Result<String, String> {
        let arguments = definition.fill(words)?;
        let is_its = |server: &&Arc<Server>| server.name == definition.server;
        let server = self.servers.iter().find(is_its);
        let server = server.ok_or_else(|| Error::Unknown.to_string())?;
        server
            .prompt(definition, arguments, &self.opener, cancel)
            .await
            .map_err(|error| error.to_string())
    }

    /// Sets the tools that can be called: those that the model is told of.
    pub fn offer(&self, tools: Vec<ToolDefinition>) {
        *self.tools.lock().unwrap_or_else(PoisonError::into_inner) = tools;
    }

    /// Turns a server off for the session.
    pub fn turn_off(&self, name: &str, why: &str) {
        for server in self.servers.iter().filter(|server| server.name == name) {
            server.turn_off(why);
        }
    }

    /// Calls a tool by its full name; what a server does wrong is text for the model.
    #[boxed]
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        caller: &mut Caller<'_>,
        cancel: &CancellationToken,
    ) -> Called {
        match self.try_call(name, arguments, caller, cancel).await {
            Ok((text, is_ok)) => Called { text, is_ok },
            Err((server, error)) => Called {
                text: format!("the server `{server}` is of no help here: {error}"),
                is_ok: false,
            },
        }
    }

    async fn try_call(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        caller: &mut Caller<'_>,
        cancel: &CancellationToken,
    ) -> Result<(String, bool), (String, Error)> {
        let definition = {
            let tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
            tools.iter().find(|tool| tool.name == name).cloned()
        };
        let definition = definition.ok_or_else(|| (name.to_owned(), Error::Unknown))?;
        let is_its = |server: &&Arc<Server>| server.name == definition.server;
        let server = self.servers.iter().find(is_its);
        let server = server.ok_or_else(|| (definition.server.clone(), Error::Unknown))?;
        server
            .call(&definition, arguments, caller, &self.opener, cancel)
            .await
            .map_err(|error| (server.name.clone(), error))
    }

    /// Returns what each server is doing.
    pub fn status(&self) -> Vec<ServerStatus> {
        let tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        let status = |server: &Arc<Server>| {
            let (state, notes) = server.state();
            let its = tools.iter().filter(|tool| tool.server == server.name);
            ServerStatus {
                name: server.name.clone(),
                source: server.source,
                command: server.options.command_line(),
                place: server.options.place,
                state,
                tools: its.map(|tool| tool.name.clone()).collect(),
                notes,
            }
        };
        self.servers.iter().map(status).collect()
    }

    /// Returns the settings of a server.
    pub fn options(&self, name: &str) -> Option<&ServerOptions> {
        let server = self.servers.iter().find(|server| server.name == name);
        server.map(|server| &server.options)
    }

    /// Ends all servers; a later call starts its server again.
    #[boxed]
    pub async fn close(&self) {
        for server in &self.servers {
            server.close().await;
        }
        self.opener.close().await;
    }
}
