//! One HTTP request and its response, with a token, a deadline and an idle limit on every wait.

use std::time::Duration;

use bytes::Bytes;
use reqwest::Response;
use reqwest::header::CONTENT_ENCODING;
use reqwest::header::CONTENT_TYPE;
use reqwest::header::LOCATION;
use reqwest::header::RETRY_AFTER;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::error::Error;
use super::idle_timer::IdleTimer;
use super::provider::failure::Failure;
use super::provider::instead;
use super::retry::retry_after;

/// How long to wait for the body of an error response after its status.
const EXPLAINED: Duration = Duration::from_secs(10);

/// The limits of one exchange.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits<'a> {
    pub(super) cancel: &'a CancellationToken,
    /// The deadline, and how long it was in the beginning.
    pub(super) until: Option<Instant>,
    pub(super) deadline: Duration,
}

impl Limits<'_> {
    /// Waits for `work`; returns [`Error::IdleTimeout`] after `idle`.
    pub(super) async fn wait<T>(
        &self,
        idle: Duration,
        work: impl Future<Output = T>,
    ) -> Result<T, Error> {
        let over = async {
            match self.until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(Error::Cancelled),
            done = work => Ok(done),
            () = over => Err(Error::Timeout { after: self.deadline }),
            () = tokio::time::sleep(idle) => Err(Error::IdleTimeout { after: idle, has_bytes: false }),
        }
    }

    /// Returns the time left, where it is bounded.
    pub(super) fn left(&self) -> Option<Duration> {
        self.until
            .map(|until| until.saturating_duration_since(Instant::now()))
    }

    /// Sleeps, within the limits.
    pub(super) async fn pause(&self, pause: Duration) -> Result<(), Error> {
        match self.wait(pause, std::future::pending::<()>()).await {
            Err(Error::IdleTimeout { .. }) | Ok(()) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Sends a request; returns the head of the response, whatever its status.
pub(super) async fn send(
    request: reqwest::RequestBuilder,
    endpoint: &str,
    idle: Duration,
    limits: &Limits<'_>,
) -> Result<Response, Error> {
    limits
        .wait(idle, request.send())
        .await?
        .map_err(|error| transport_error(error, endpoint))
}

/// Returns the next bytes of the body, `None` at its end.
pub(super) async fn next(
    response: &mut Response,
    endpoint: &str,
    idle: Duration,
    limits: &Limits<'_>,
) -> Result<Option<Bytes>, Error> {
    limits
        .wait(idle, response.chunk())
        .await?
        .map_err(|error| transport_error(error, endpoint))
}

/// Returns the rest of the body, at most `max` bytes; `so_far` are the bytes already read.
/// As in a stream, dripping bytes are not progress. Whitespace counts like comments do there:
/// servers send it while the model generates.
pub(super) async fn rest(
    mut response: Response,
    so_far: Vec<u8>,
    max: usize,
    endpoint: &str,
    idle: Duration,
    limits: &Limits<'_>,
) -> Result<Vec<u8>, Error> {
    let mut body = so_far;
    let (mut timer, mut n_blanks) = (IdleTimer::new(idle), 0);
    timer.record(idle, 0, 0, body.len());
    while let Some(bytes) = next(&mut response, endpoint, timer.left(), limits)
        .await
        .map_err(|error| timer.with_elapsed(error))?
    {
        if body.len() + bytes.len() > max {
            return Err(Error::TooLarge {
                what: "its body",
                limit: max as u64,
            });
        }
        body.extend_from_slice(&bytes);
        n_blanks += u64::from(bytes.trim_ascii().is_empty());
        timer.record(idle, 0, n_blanks, body.len());
    }
    Ok(body)
}

/// Returns the error for a response with an error status.
pub(super) async fn failed(
    response: Response,
    endpoint: &str,
    key: Option<&str>,
    idle: Duration,
    limits: &Limits<'_>,
) -> Error {
    const MAX_BODY: usize = 64 * 1024;
    let header = |name| {
        response
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned)
    };
    let location = header(LOCATION);
    let pause = header(RETRY_AFTER).and_then(|value| retry_after(&value, jiff::Timestamp::now()));
    let (is_html, packed) = (is_html(&response), content_encoding(&response));
    let code = response.status().as_u16();
    // With a body that is too long, drips or ends early, the status alone is reported.
    let body = match tokio::time::timeout(
        idle.min(EXPLAINED),
        rest(response, Vec::new(), MAX_BODY, endpoint, idle, limits),
    )
    .await
    {
        Ok(Ok(body)) => body,
        Ok(Err(Error::Cancelled)) => return Error::Cancelled,
        Ok(Err(_)) | Err(_) => Vec::new(),
    };
    Failure {
        endpoint,
        key,
        code,
        location: location.as_deref(),
        retry_after: pause,
        is_html,
        packed,
    }
    .of_body(&body)
}

pub(super) fn is_html(response: &Response) -> bool {
    content_type(response).starts_with("text/html")
}

/// Returns the content encoding of a response, although none was requested.
pub(super) fn content_encoding(response: &Response) -> Option<&'static str> {
    instead::content_encoding(
        response
            .headers()
            .get(CONTENT_ENCODING)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default(),
    )
}

pub(super) fn content_type(response: &Response) -> String {
    response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase()
}

fn transport_error(error: reqwest::Error, endpoint: &str) -> Error {
    let endpoint = endpoint.to_owned();
    // The address is in our own message already.
    let source = error.without_url();
    if let Some(source) = tls_error(&source) {
        return Error::Tls { endpoint, source };
    }
    if source.is_connect() || source.is_dns() {
        Error::Unreachable { endpoint, source }
    } else {
        Error::Connection {
            endpoint,
            source: Box::new(source),
        }
    }
}

/// Returns the TLS error that caused an error, if any.
fn tls_error(error: &(dyn std::error::Error + 'static)) -> Option<rustls::Error> {
    if let Some(found) = error.downcast_ref::<rustls::Error>() {
        return Some(found.clone());
    }
    // An I/O error's source is not the error it wraps, but that error's source.
    match error
        .downcast_ref::<std::io::Error>()
        .and_then(std::io::Error::get_ref)
    {
        Some(inner) => tls_error(inner),
        None => tls_error(error.source()?),
    }
}

/// Returns the error for a response that HTTP considers complete and the API does not: without a
/// length or chunks a broken connection looks like a closed one.
pub(super) fn ended_early(endpoint: &str) -> Error {
    let source = std::io::Error::new(
        std::io::ErrorKind::UnexpectedEof,
        "the connection closed in the middle of the answer",
    );
    Error::Connection {
        endpoint: endpoint.to_owned(),
        source: Box::new(source),
    }
}
