//! One server that runs: the handshake, its lists, its resources and prompts.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use async_recursion::async_recursion as boxed;
use rmcp::ClientHandler;
use rmcp::handler::client::progress::ProgressDispatcher;
use rmcp::model::ClientConfig;
use rmcp::model::ElicitRequestParams;
use rmcp::model::ElicitResult;
use rmcp::model::ErrorData;
use rmcp::model::GetPromptRequestParams;
use rmcp::model::GetPromptResult;
use rmcp::model::Implementation;
use rmcp::model::PaginatedRequestParams;
use rmcp::model::ProgressNotificationParam;
use rmcp::model::Prompt;
use rmcp::model::ReadResourceRequestParams;
use rmcp::model::ReadResourceResult;
use rmcp::model::Resource;
use rmcp::model::Tool;
use rmcp::service::ClientInitializeError;
use rmcp::service::NotificationContext;
use rmcp::service::RequestContext;
use rmcp::service::RoleClient;
use rmcp::service::RunningService;
use rmcp::service::ServiceError;
use rmcp::service::ServiceExt;
use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::Map;
use serde_json::Value;

use super::ByteStream;
use super::Error;
use super::ServerEnd;
use super::asking::UserRequests;
use super::http;
use super::http::HttpClient;
use super::http::HttpError;
use super::lines;
use super::plain_line;
use super::roots::Roots;
use super::roots::capabilities;
use super::roots::roots;

/// Most pages of a list, and most tools in all of them that are looked at.
const MOST_PAGES: usize = 100;
const MOST_LISTED: usize = 20_000;

/// Longest message of a server's error, in characters.
const LONGEST_MESSAGE: usize = 1000;

/// A server that answered the handshake. Dropping it ends the server.
pub(super) struct Connection {
    pub(super) service: RunningService<RoleClient, Client>,
    end: ServerEnd,
    pub(super) told: Told,
    is_over_http: bool,
}

/// What the server says by itself.
#[derive(Clone)]
pub(super) struct Told {
    has_new_list: Arc<AtomicBool>,
    pub(super) progress: ProgressDispatcher,
    pub(super) user_requests: UserRequests,
}

/// What the server may ask of us: which folder it works on, and the user, where there is one.
/// Requests for the model are refused, as the capabilities say.
pub(super) struct Client {
    root: String,
    can_ask: bool,
    told: Told,
}

impl Client {
    fn new(root: String, can_ask: bool) -> Self {
        Self {
            root,
            can_ask,
            told: Told {
                has_new_list: Arc::default(),
                progress: ProgressDispatcher::new(),
                user_requests: UserRequests::default(),
            },
        }
    }
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(
            capabilities(self.can_ask),
            Implementation::new("podbay", env!("CARGO_PKG_VERSION")),
        )
    }

    fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> impl Future<Output = Result<Roots, ErrorData>> + Send + '_ {
        std::future::ready(Ok(roots(&self.root)))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(self.told.user_requests.put(request).await)
    }

    fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) -> impl Future<Output = ()> + Send + '_ {
        self.told.progress.handle_notification(params)
    }

    fn on_tool_list_changed(
        &self,
        _context: NotificationContext<RoleClient>,
    ) -> impl Future<Output = ()> + Send + '_ {
        self.told.has_new_list.store(true, Ordering::Relaxed);
        std::future::ready(())
    }
}

impl Connection {
    /// Greets a server that was just started.
    #[boxed]
    pub(super) async fn open(stream: ByteStream, can_ask: bool) -> Result<Self, Error> {
        let ByteStream {
            reader,
            writer,
            end,
            root,
        } = stream;
        let reader = lines::bounded(reader, end.clone());
        let transport = AsyncRwTransport::<RoleClient, _, _>::new_client(reader, writer);
        let client = Client::new(root, can_ask);
        let told = client.told.clone();
        let greeted = client.serve(transport).await;
        Self::greeted(greeted, end, told, false)
    }

    /// Greets a server over HTTP. It is told no folder: it sees none.
    #[boxed]
    pub(super) async fn over_http(
        client: HttpClient,
        end: ServerEnd,
        can_ask: bool,
    ) -> Result<Self, Error> {
        let transport = http::transport(client);
        let client = Client::new(String::new(), can_ask);
        let told = client.told.clone();
        let greeted = client.serve(transport).await;
        Self::greeted(greeted, end, told, true)
    }

    fn greeted(
        greeted: Result<RunningService<RoleClient, Client>, ClientInitializeError>,
        end: ServerEnd,
        told: Told,
        is_over_http: bool,
    ) -> Result<Self, Error> {
        match greeted {
            Ok(service) => Ok(Self {
                service,
                end,
                told,
                is_over_http,
            }),
            Err(
                ClientInitializeError::ConnectionClosed(_)
                | ClientInitializeError::TransportError { .. },
            ) => Err(ended(&end, is_over_http)),
            Err(ClientInitializeError::JsonRpcError(error)) => Err(refused(&error)),
            Err(error) => Err(Error::Protocol {
                problem: plain_line(&error.to_string(), 200),
            }),
        }
    }

    /// Returns all tools that the server lists, of all pages, bounded.
    #[boxed]
    pub(super) async fn list(&self) -> Result<Vec<Tool>, Error> {
        self.told.has_new_list.store(false, Ordering::Relaxed);
        let mut tools = Vec::new();
        let mut cursor = None;
        for _ in 0..MOST_PAGES {
            let params =
                cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
            let page = self.service.peer().list_tools(params).await;
            let page = page.map_err(|error| self.error(error))?;
            tools.extend(page.tools);
            cursor = page.next_cursor;
            if cursor.is_none() || tools.len() >= MOST_LISTED {
                break;
            }
        }
        Ok(tools)
    }

    /// Returns whether the server has resources.
    pub(super) fn has_resources(&self) -> bool {
        let info = self.service.peer().peer_info();
        info.is_some_and(|info| info.capabilities.resources.is_some())
    }

    /// Returns all resources that the server lists, bounded.
    #[boxed]
    pub(super) async fn resources(&self) -> Result<Vec<Resource>, Error> {
        let mut resources = Vec::new();
        let mut cursor = None;
        for _ in 0..MOST_PAGES {
            let params =
                cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
            let page = self.service.peer().list_resources(params).await;
            let page = page.map_err(|error| self.error(error))?;
            resources.extend(page.resources);
            cursor = page.next_cursor;
            if cursor.is_none() || resources.len() >= MOST_LISTED {
                break;
            }
        }
        Ok(resources)
    }

    /// Reads a resource.
    #[boxed]
    pub(super) async fn read_resource(&self, uri: &str) -> Result<ReadResourceResult, Error> {
        let params = ReadResourceRequestParams::new(uri);
        let read = self.service.peer().read_resource(params).await;
        read.map_err(|error| self.error(error))
    }

    /// Returns the prompts of the server; none where it has none.
    #[boxed]
    pub(super) async fn prompts(&self) -> Result<Vec<Prompt>, Error> {
        let info = self.service.peer().peer_info();
        if info.is_none_or(|info| info.capabilities.prompts.is_none()) {
            return Ok(Vec::new());
        }
        // More than the first page are more than a user chooses from.
        let page = self.service.peer().list_prompts(None).await;
        Ok(page.map_err(|error| self.error(error))?.prompts)
    }

    /// Asks for the text of a prompt.
    #[boxed]
    pub(super) async fn prompt(
        &self,
        prompt: &str,
        arguments: Map<String, Value>,
    ) -> Result<GetPromptResult, Error> {
        let params = GetPromptRequestParams::new(prompt).with_arguments(arguments);
        let got = self.service.peer().get_prompt(params).await;
        got.map_err(|error| self.error(error))
    }

    /// Returns whether the server has ended or broke a bound.
    pub(super) fn is_over(&self) -> bool {
        self.service.peer().is_transport_closed()
    }

    /// Returns whether the server said that its list of tools is another one now.
    pub(super) fn has_new_list(&self) -> bool {
        self.told.has_new_list.load(Ordering::Relaxed)
    }

    /// Returns how it ended.
    pub(super) fn ended(&self) -> Error {
        ended(&self.end, self.is_over_http)
    }

    pub(super) fn end(&self) -> &ServerEnd {
        &self.end
    }

    pub(super) fn error(&self, error: ServiceError) -> Error {
        match error {
            ServiceError::McpError(error) => refused(&error),
            ServiceError::TransportSend(error) => HttpError::refusal(&*error.error).map_or_else(
                || ended(&self.end, self.is_over_http),
                |problem| Error::NoMessage {
                    problem: plain_line(problem, 500),
                },
            ),
            ServiceError::TransportClosed => ended(&self.end, self.is_over_http),
            ServiceError::UnexpectedResponse => Error::Refused {
                message: "its answer is none to what it was asked".to_owned(),
            },
            other => Error::Protocol {
                problem: plain_line(&other.to_string(), 200),
            },
        }
    }
}

fn ended(end: &ServerEnd, is_over_http: bool) -> Error {
    let how = end.words();
    if is_over_http {
        Error::NoAnswer { how }
    } else {
        Error::Ended { how }
    }
}

fn refused(error: &ErrorData) -> Error {
    Error::Refused {
        message: plain_line(&error.message, LONGEST_MESSAGE),
    }
}
