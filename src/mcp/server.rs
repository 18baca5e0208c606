//! One server of a session: started at its first use, again after it ended, each time later.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use async_recursion::async_recursion as boxed;
use serde::Serialize;
use serde_json::Map;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Caller;
use super::Error;
use super::Later;
use super::Opener;
use super::PromptDefinition;
use super::ServerEnd;
use super::ServerOptions;
use super::ToolDefinition;
use super::connection::Connection;
use super::content;
use super::definition::ToolKind;
use super::definition::definitions;
use super::http::HttpClient;
use super::prompts;
use super::resources;

/// How long a server stays down after its second end in a row; doubled with each further one.
const BACK_OFF: Duration = Duration::from_secs(1);
const LONGEST_BACK_OFF: Duration = Duration::from_secs(60);

/// A server that leaves so many calls in a row without an answer is started again.
const MOST_UNANSWERED: u32 = 2;

/// Where a server is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The user's own settings.
    Settings,
    /// The project's `.mcp.json`.
    Project,
}

/// What a server is doing, for the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ServerState {
    /// It is not started in this session.
    Off {
        why: String,
    },
    /// It is started with the next session, or the next call.
    Idle,
    Running,
    /// It ended or could not be started; the next call tries again.
    Failed {
        why: String,
    },
}

pub(super) struct Server {
    pub(super) name: String,
    pub(super) options: ServerOptions,
    pub(super) source: Source,
    start_timeout: Duration,
    live: tokio::sync::Mutex<Live>,
    shown: Mutex<Shown>,
}

#[derive(Default)]
struct Live {
    connection: Option<Arc<Connection>>,
    /// What the model was told at the session's start.
    told: Option<Vec<ToolDefinition>>,
    /// Tools of these that the server no longer lists in the same words.
    changed: BTreeSet<String>,
    n_ended: u32,
    n_unanswered: u32,
    not_before: Option<Instant>,
}

struct Shown {
    state: ServerState,
    notes: Vec<String>,
}

impl Server {
    pub(super) fn new(
        name: &str,
        options: &ServerOptions,
        source: Source,
        start_timeout: Duration,
    ) -> Self {
        let off = |why: &str| ServerState::Off {
            why: why.to_owned(),
        };
        let state = if options.enabled {
            ServerState::Idle
        } else {
            off("`enabled` is false in its settings")
        };
        Self {
            name: name.to_owned(),
            options: options.clone(),
            source,
            start_timeout,
            live: tokio::sync::Mutex::default(),
            shown: Mutex::new(Shown {
                state,
                notes: Vec::new(),
            }),
        }
    }

    /// Turns the server off for this session.
    pub(super) fn turn_off(&self, why: &str) {
        self.set_state(ServerState::Off {
            why: why.to_owned(),
        });
    }

    pub(super) fn state(&self) -> (ServerState, Vec<String>) {
        let shown = self.shown();
        (shown.state.clone(), shown.notes.clone())
    }

    /// Starts the server and returns its tools, as the session begins.
    #[boxed]
    pub(super) async fn begin(
        &self,
        opener: &Arc<dyn Opener>,
        cancel: &CancellationToken,
    ) -> Result<Vec<ToolDefinition>, Error> {
        self.refuse_off()?;
        self.connection(opener, cancel).await?;
        let live = self.live.lock().await;
        Ok(live.told.clone().unwrap_or_default())
    }

    /// Returns the prompts of the server.
    #[boxed]
    pub(super) async fn prompts(
        &self,
        opener: &Arc<dyn Opener>,
        cancel: &CancellationToken,
    ) -> Result<Vec<PromptDefinition>, Error> {
        self.refuse_off()?;
        let connection = self.connection(opener, cancel).await?;
        let listed = in_time(connection.prompts(), self.start_timeout, cancel).await?;
        Ok(prompts::definitions(&self.name, &listed))
    }

    /// Returns the text of a prompt.
    #[boxed]
    pub(super) async fn prompt(
        &self,
        definition: &PromptDefinition,
        arguments: Map<String, Value>,
        opener: &Arc<dyn Opener>,
        cancel: &CancellationToken,
    ) -> Result<String, Error> {
        self.refuse_off()?;
        let connection = self.connection(opener, cancel).await?;
        let limit = self.options.timeout.duration();
        let asking = connection.prompt(&definition.prompt, arguments);
        let got = in_time(asking, limit, cancel).await?;
        Ok(prompts::text(&got))
    }

    /// Calls a tool; returns the text of its result, and whether it succeeded.
    #[boxed]
    pub(super) async fn call(
        &self,
        definition: &ToolDefinition,
        arguments: Map<String, Value>,
        caller: &mut Caller<'_>,
        opener: &Arc<dyn Opener>,
        cancel: &CancellationToken,
    ) -> Result<(String, bool), Error> {
        self.refuse_off()?;
        let connection = self.connection(opener, cancel).await?;
        if self.live.lock().await.changed.contains(&definition.name) {
            return Err(Error::Changed {
                server: self.name.clone(),
            });
        }
        let limit = self.options.timeout.duration();
        let called = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(Error::Cancelled),
            called = answer(&connection, definition, arguments, caller, limit) => called,
        };
        let mut live = self.live.lock().await;
        match called {
            Err(error @ Error::TimedOut { .. }) => {
                live.n_unanswered += 1;
                if live.n_unanswered >= MOST_UNANSWERED {
                    self.has_ended(&mut live, &connection, &error);
                }
                Err(error)
            }
            Err(error) if error.ends_server() => {
                self.has_ended(&mut live, &connection, &error);
                Err(error)
            }
            answered => {
                (live.n_ended, live.n_unanswered) = (0, 0);
                answered
            }
        }
    }

    /// Ends the server.
    pub(super) async fn close(&self) {
        let mut live = self.live.lock().await;
        if live.connection.take().is_some() {
            self.set_state(ServerState::Idle);
        }
    }

    fn refuse_off(&self) -> Result<(), Error> {
        match &self.shown().state {
            ServerState::Off { why } => Err(Error::Off { why: why.clone() }),
            _ => Ok(()),
        }
    }

    /// Returns the server that runs; starts it where none does.
    async fn connection(
        &self,
        opener: &Arc<dyn Opener>,
        cancel: &CancellationToken,
    ) -> Result<Arc<Connection>, Error> {
        let mut live = tokio::select! {
            () = cancel.cancelled() => return Err(Error::Cancelled),
            live = self.live.lock() => live,
        };
        if let Some(connection) = live.connection.clone() {
            if !connection.is_over() {
                if connection.has_new_list() {
                    self.list(&mut live, &connection, cancel).await?;
                }
                return Ok(connection);
            }
            let error = connection.ended();
            self.has_ended(&mut live, &connection, &error);
        }
        let wait = live
            .not_before
            .map(|then| then.saturating_duration_since(Instant::now()))
            .filter(|wait| !wait.is_zero());
        if let Some(wait) = wait {
            return Err(Error::BackOff {
                count: live.n_ended,
                wait,
            });
        }
        let started = self.start(&mut live, opener, cancel).await;
        match &started {
            Ok(_) => self.set_state(ServerState::Running),
            Err(Error::Cancelled) => {}
            Err(error) => self.count_end(&mut live, error),
        }
        started
    }

    async fn start(
        &self,
        live: &mut Live,
        opener: &Arc<dyn Opener>,
        cancel: &CancellationToken,
    ) -> Result<Arc<Connection>, Error> {
        let start = async {
            if self.options.url.is_some() {
                let end = ServerEnd::default();
                let client = HttpClient::new(&self.name, &self.options, opener, &end);
                let client = client.map_err(|problem| Error::NoAnswer {
                    how: format!(": {problem}"),
                })?;
                return Connection::over_http(client, end, opener.can_ask()).await;
            }
            let stream = opener
                .open(&self.options, cancel)
                .await
                .map_err(|problem| Error::Open { problem })?;
            Connection::open(stream, opener.can_ask()).await
        };
        let connection = Arc::new(in_time(Box::pin(start), self.start_timeout, cancel).await?);
        self.list(live, &connection, cancel).await?;
        live.n_unanswered = 0;
        live.connection = Some(Arc::clone(&connection));
        Ok(connection)
    }

    /// Asks for the server's tools, and compares them with what the model was told.
    async fn list(
        &self,
        live: &mut Live,
        connection: &Connection,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let listed = in_time(connection.list(), self.start_timeout, cancel).await?;
        let found = definitions(
            &self.name,
            &self.options,
            &listed,
            connection.has_resources(),
        );
        let mut notes = found.notes;
        match &live.told {
            None => live.told = Some(found.tools),
            Some(told) => {
                let gone = told.iter().filter(|tool| !found.tools.contains(tool));
                live.changed = gone.map(|tool| tool.name.clone()).collect();
                let n_new = found
                    .tools
                    .iter()
                    .filter(|tool| told.iter().all(|known| known.name != tool.name))
                    .count();
                if !live.changed.is_empty() {
                    notes.push(format!(
                        "{} of its tools are gone or described in another way since the session began, and are not called",
                        live.changed.len()
                    ));
                }
                if n_new > 0 {
                    notes.push(format!(
                        "{n_new} tools that it has now are offered in the next session"
                    ));
                }
            }
        }
        self.shown().notes = notes;
        Ok(())
    }

    /// Forgets a server that is of no use any more. That its sandbox ended is no fault of it.
    fn has_ended(&self, live: &mut Live, connection: &Arc<Connection>, error: &Error) {
        let is_it = |current: &Arc<Connection>| Arc::ptr_eq(current, connection);
        if !live.connection.as_ref().is_some_and(is_it) {
            // Another call said so before.
            return;
        }
        live.connection = None;
        live.n_unanswered = 0;
        if connection.end().is_with_sandbox() {
            self.set_state(ServerState::Idle);
        } else {
            self.count_end(live, error);
        }
    }

    fn count_end(&self, live: &mut Live, error: &Error) {
        self.set_state(ServerState::Failed {
            why: error.to_string(),
        });
        live.n_ended += 1;
        // The first end may be a mishap: the next call starts it at once.
        live.not_before = live.n_ended.checked_sub(2).map(|n_more| {
            let wait = BACK_OFF.saturating_mul(1 << n_more.min(10));
            Instant::now() + wait.min(LONGEST_BACK_OFF)
        });
    }

    fn set_state(&self, state: ServerState) {
        self.shown().state = state;
    }

    fn shown(&self) -> std::sync::MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks the server for what a call stands for; returns the text, and whether it succeeded.
async fn answer(
    connection: &Connection,
    definition: &ToolDefinition,
    arguments: Map<String, Value>,
    caller: &mut Caller<'_>,
    limit: Duration,
) -> Result<(String, bool), Error> {
    if definition.kind == ToolKind::Tool {
        let (result, notes) = connection
            .call(definition, arguments, caller, limit)
            .await?;
        let mut text = content::text(&result);
        for note in notes {
            text.push_str(&format!("\n[{note}]"));
        }
        return Ok((text, !result.is_error.unwrap_or(false)));
    }
    let read = async {
        if definition.kind == ToolKind::ListResources {
            return Ok(resources::list_text(&connection.resources().await?));
        }
        let uri = arguments.get("uri").and_then(Value::as_str);
        let read = connection.read_resource(uri.unwrap_or_default()).await?;
        Ok(resources::text(&read))
    };
    let read = tokio::time::timeout(limit, read).await;
    let read = read.unwrap_or(Err(Error::TimedOut { after: limit }));
    Ok((read?, true))
}

async fn in_time<T>(
    work: Later<'_, Result<T, Error>>,
    limit: Duration,
    cancel: &CancellationToken,
) -> Result<T, Error> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(Error::Cancelled),
        done = tokio::time::timeout(limit, work) => {
            done.unwrap_or(Err(Error::TimedOut { after: limit }))
        }
    }
}
