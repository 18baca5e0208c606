//! Requests to one server, as `rmcp` wants them made.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::BoxStream;
use http_body_util::Full;
use hyper::Method;
use hyper::Request;
use hyper::Response;
use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::header::ACCEPT;
use hyper::header::AUTHORIZATION;
use hyper::header::CONTENT_TYPE;
use hyper::header::HeaderMap;
use hyper::header::HeaderName;
use hyper::header::HeaderValue;
use hyper::header::LOCATION;
use hyper::http::request::Builder;
use rmcp::model::ClientJsonRpcMessage;
use rmcp::model::ServerJsonRpcMessage;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::SseError;
use rmcp::transport::streamable_http_client::StreamableHttpClient;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use rmcp::transport::streamable_http_client::StreamableHttpPostResponse;
use sse_stream::Sse;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use super::address::Address;
use super::address::secret_value;
use super::bounds::events;
use super::bounds::is_same;
use super::bounds::start;
use super::bounds::whole;
use super::connect::closed;
use super::connect::connect;
use super::connect::tls;
use crate::Opener;
use crate::ServerEnd;
use crate::ServerOptions;
use crate::lines::LONGEST_LINE;
use crate::lines::answers;
use crate::plain_line;

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const SESSION: &str = "Mcp-Session-Id";
const AGENT: &str = concat!("podbay/", env!("CARGO_PKG_VERSION"));

/// Requests of one server at once. Each has a connection, which is a call of the sandbox.
const MOST_REQUESTS: usize = 4;

/// How long a notification, or an answer to the server, may take.
const CONTROL: Duration = Duration::from_secs(5);

/// Bytes of an answer that is an error, for the user to read.
const ERROR: usize = 4 << 10;

/// The way to one server over HTTP.
#[derive(Clone)]
pub(crate) struct HttpClient(Arc<Server>);

struct Server {
    name: String,
    address: Address,
    /// Headers that hold keys of the user.
    keys: HeaderMap,
    opener: Arc<dyn Opener>,
    /// What went wrong last.
    end: ServerEnd,
    idle: Mutex<Vec<SendRequest<Full<Bytes>>>>,
    n_unasked: Arc<AtomicUsize>,
    cancel: CancellationToken,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// Why a request has no answer.
#[derive(Debug, Error)]
pub(crate) enum HttpError {
    /// The server was not reached, or broke off.
    #[error("{0}")]
    Unreached(String),
    /// The server answered this request with something else than a message.
    #[error("{0}")]
    Answered(String),
}

impl HttpError {
    /// Returns why one request has no answer, where the server gave another one.
    pub(crate) fn refusal<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a str> {
        match error.downcast_ref::<Failure>()? {
            StreamableHttpError::Client(Self::Answered(problem)) => Some(problem),
            _ => None,
        }
    }
}

type Failure = StreamableHttpError<HttpError>;

impl HttpClient {
    /// Reads the settings of a server; the error says what is missing.
    pub(crate) fn new(
        name: &str,
        options: &ServerOptions,
        opener: &Arc<dyn Opener>,
        end: &ServerEnd,
    ) -> Result<Self, String> {
        let address = Address::parse(options.url.as_deref().unwrap_or_default())?;
        let mut keys = HeaderMap::new();
        let mut add = |header: &str, variable: &str, scheme: &str| {
            let value = opener.variable(variable).filter(|value| !value.is_empty());
            let value = value.ok_or_else(|| {
                format!("the variable `{variable}`, which holds its key, is not set")
            })?;
            let value = secret_value(&format!("{scheme}{value}"));
            let header = HeaderName::from_bytes(header.as_bytes()).ok();
            let (header, value) = header.zip(value).ok_or_else(|| {
                format!("the variable `{variable}` holds what cannot be in a header")
            })?;
            keys.insert(header, value);
            Ok::<_, String>(())
        };
        for (header, variable) in &options.headers_env {
            add(header, variable, "")?;
        }
        if let Some(variable) = &options.bearer_token_env {
            add(AUTHORIZATION.as_str(), variable, "Bearer ")?;
        }
        if address.is_plain() && !keys.is_empty() {
            return Err("its address has no TLS, and no key is sent without".to_owned());
        }
        Ok(Self(Arc::new(Server {
            name: name.to_owned(),
            address,
            keys,
            opener: Arc::clone(opener),
            end: end.clone(),
            idle: Mutex::default(),
            n_unasked: Arc::default(),
            cancel: CancellationToken::new(),
        })))
    }

    fn request(
        &self,
        method: Method,
        session: Option<&str>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Builder {
        let server = &self.0;
        let mut request = Request::builder()
            .method(method)
            .uri(server.address.target())
            .header("Host", server.address.authority())
            .header("User-Agent", AGENT);
        if let Some(session) = session {
            request = request.header(SESSION, session);
        }
        if let Some(all) = request.headers_mut() {
            for (name, value) in headers {
                all.insert(name, value);
            }
            for (name, value) in &server.keys {
                all.insert(name, value.clone());
            }
        }
        request
    }

    /// Sends a request over an idle connection, or over a new one.
    async fn send(&self, mut request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Failure> {
        let server = &self.0;
        while let Some(mut requests) = self.take_idle() {
            match requests.try_send_request(request).await {
                Ok(answer) => {
                    self.keep(requests);
                    return Ok(answer);
                }
                Err(mut failed) => match failed.take_message() {
                    // The server had closed it, and read nothing of the request.
                    Some(unsent) => request = unsent,
                    None => return Err(self.failed(format!("no answer came: {}", failed.error()))),
                },
            }
        }
        let fresh = async {
            let gateway = server.opener.gateway(&server.name, &server.cancel).await?;
            let end = gateway.end.clone();
            let mut requests = connect(gateway, &end, &server.address, tls()?).await?;
            let answer = requests.send_request(request).await;
            answer
                .map(|answer| (requests, answer))
                .map_err(|error| closed(&error, &end))
        };
        let (requests, answer) = fresh.await.map_err(|problem| self.failed(problem))?;
        self.keep(requests);
        Ok(answer)
    }

    fn take_idle(&self) -> Option<SendRequest<Full<Bytes>>> {
        let mut idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|requests| !requests.is_closed());
        let at = idle.iter().position(SendRequest::is_ready)?;
        Some(idle.swap_remove(at))
    }

    fn keep(&self, requests: SendRequest<Full<Bytes>>) {
        let mut idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MOST_REQUESTS {
            idle.push(requests);
        }
    }

    /// Notes what went wrong, for the user.
    fn failed(&self, problem: String) -> Failure {
        self.0.end.replace(problem.clone());
        StreamableHttpError::Client(HttpError::Unreached(problem))
    }

    /// Notes what the server answered instead of a message.
    fn answered(&self, problem: String) -> Failure {
        self.0.end.replace(problem.clone());
        StreamableHttpError::Client(HttpError::Answered(problem))
    }

    async fn post(
        &self,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let body = serde_json::to_vec(&message)?;
        let request = self
            .request(Method::POST, session.as_deref(), headers)
            .header(CONTENT_TYPE, JSON)
            .header(ACCEPT, format!("{JSON}, {EVENTS}"))
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| self.failed(format!("it cannot be asked: {error}")))?;
        let answer = self.send(request).await?;
        let status = answer.status();
        if status == StatusCode::NOT_FOUND && session.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        let kind = content_type(answer.headers());
        let session = answer
            .headers()
            .get(SESSION)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        if !status.is_success() {
            return self.refusal(answer, session).await;
        }
        let ClientJsonRpcMessage::Request(asked) = message else {
            return Ok(StreamableHttpPostResponse::Accepted);
        };
        if status == StatusCode::ACCEPTED || status == StatusCode::NO_CONTENT {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        match kind.as_str() {
            EVENTS => {
                let unasked = Arc::clone(&self.0.n_unasked);
                let events = events(answer.into_body(), asked.id, unasked);
                Ok(StreamableHttpPostResponse::Sse(events, session))
            }
            JSON => {
                let body = whole(answer.into_body(), LONGEST_LINE).await;
                let body = body.map_err(|problem| self.answered(problem))?;
                let message: ServerJsonRpcMessage = serde_json::from_slice(&body)
                    .map_err(|error| self.answered(format!("its answer is no message: {error}")))?;
                if answers(&body).is_some_and(|id| !is_same(&id, &asked.id)) {
                    return Err(self.answered("its answer is to another request".to_owned()));
                }
                Ok(StreamableHttpPostResponse::Json(message, session))
            }
            other => Err(self.answered(format!(
                "its answer is of the type `{}`, which is neither JSON nor events",
                plain_line(other, 60)
            ))),
        }
    }

    /// Reads an answer that is no success: an error of the protocol, or one of HTTP.
    async fn refusal(
        &self,
        answer: Response<Incoming>,
        session: Option<String>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let status = answer.status();
        let kind = content_type(answer.headers());
        let leads_to = answer
            .headers()
            .get(LOCATION)
            .filter(|_| status.is_redirection())
            .map(|place| String::from_utf8_lossy(place.as_bytes()).into_owned());
        let body = start(answer.into_body(), ERROR).await;
        if kind == JSON
            && let Ok(message @ ServerJsonRpcMessage::Error(_)) = serde_json::from_slice(&body)
        {
            return Ok(StreamableHttpPostResponse::Json(message, session));
        }
        let words = plain_line(&String::from_utf8_lossy(&body), 200);
        let problem = match (leads_to, status) {
            (Some(place), _) => format!(
                "HTTP {status}: it leads to {}, which is not followed",
                plain_line(&place, 200)
            ),
            (None, StatusCode::UNAUTHORIZED) => format!(
                "HTTP {status}: `bearer_token_env` or `headers_env` in your settings names the variable with its key ({words})"
            ),
            (None, _) => format!("HTTP {status}: {words}"),
        };
        Err(self.answered(problem))
    }
}

impl StreamableHttpClient for HttpClient {
    type Error = HttpError;

    async fn post_message(
        &self,
        _uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.post(message, session_id, custom_headers).await
    }

    /// Ends the session at the server, where a connection to it is open: none is made for that.
    async fn delete_session(
        &self,
        _uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        let request = self
            .request(Method::DELETE, Some(&session_id), custom_headers)
            .body(Full::default())
            .map_err(|error| self.failed(format!("it cannot be asked: {error}")))?;
        if let Some(mut requests) = self.take_idle() {
            let ended = requests.send_request(request).await;
            ended.map_err(|error| self.failed(format!("no answer came: {error}")))?;
        }
        Ok(())
    }

    /// Does not listen between calls: a stream that is always open would keep a call of the sandbox
    /// open, and the sandbox from being renewed.
    async fn get_stream(
        &self,
        _uri: Arc<str>,
        _session_id: Option<Arc<str>>,
        _last_event_id: Option<String>,
        _auth_header: Option<String>,
        _custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        Err(StreamableHttpError::ServerDoesNotSupportSse)
    }
}

/// Returns the transport of the SDK over this client.
pub(crate) fn transport(client: HttpClient) -> StreamableHttpClientTransport<HttpClient> {
    let config = StreamableHttpClientTransportConfig::with_uri(client.0.address.uri())
        .max_concurrent_requests(MOST_REQUESTS)
        .control_request_timeout(CONTROL)
        .max_sse_event_size(LONGEST_LINE)
        .max_json_response_size(LONGEST_LINE)
        .max_error_response_size(ERROR);
    StreamableHttpClientTransport::with_client(client, config)
}

/// Returns the type of a body, without its parameters.
fn content_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE);
    let value = value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}
