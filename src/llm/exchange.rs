//! One HTTP request and its answer, with a token, a deadline and an idle limit on every wait.

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
use super::provider::failure::Failure;
use super::provider::instead;
use super::retry::retry_after;
use super::waiting::Waiting;

/// How long a server may take to say why it refused a request, once its status is there.
const EXPLAINED: Duration = Duration::from_secs(10);

/// The limits of one exchange.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits<'a> {
    pub(super) cancel: &'a CancellationToken,
    /// When all must be over, and how long that was in the beginning.
    pub(super) until: Option<Instant>,
    pub(super) deadline: Duration,
}

impl Limits<'_> {
    /// Waits for `work`; returns [`Error::IdleTimeout`] if it takes longer than `idle`.
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

    /// Returns how long it may still take, where that is bounded.
    pub(super) fn left(&self) -> Option<Duration> {
        self.until
            .map(|until| until.saturating_duration_since(Instant::now()))
    }

    /// Lets time pass.
    pub(super) async fn pause(&self, pause: Duration) -> Result<(), Error> {
        match self.wait(pause, std::future::pending::<()>()).await {
            Err(Error::IdleTimeout { .. }) | Ok(()) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Sends a request; returns the answer's head, whatever its status.
pub(super) async fn send(
    request: reqwest::RequestBuilder,
    endpoint: &str,
    idle: Duration,
    limits: &Limits<'_>,
) -> Result<Response, Error> {
    limits
        .wait(idle, request.send())
        .await?
        .map_err(|error| transport(error, endpoint))
}

/// Returns the next bytes of the answer, `None` at its end.
pub(super) async fn next(
    response: &mut Response,
    endpoint: &str,
    idle: Duration,
    limits: &Limits<'_>,
) -> Result<Option<Bytes>, Error> {
    limits
        .wait(idle, response.chunk())
        .await?
        .map_err(|error| transport(error, endpoint))
}

/// Returns the rest of the answer, which must not be longer than `max`; `so_far` are the bytes
/// already read.
///
/// Bytes that drip bring it on as little as in a stream. Blanks count like comments do there:
/// servers send them while the model writes.
pub(super) async fn rest(
    mut response: Response,
    so_far: Vec<u8>,
    max: usize,
    endpoint: &str,
    idle: Duration,
    limits: &Limits<'_>,
) -> Result<Vec<u8>, Error> {
    let mut body = so_far;
    let (mut waiting, mut n_blanks) = (Waiting::new(idle), 0);
    waiting.came(idle, 0, 0, body.len());
    while let Some(bytes) = next(&mut response, endpoint, waiting.left(), limits)
        .await
        .map_err(|error| waiting.told(error))?
    {
        if body.len() + bytes.len() > max {
            return Err(Error::TooLarge {
                what: "its body",
                limit: max as u64,
            });
        }
        body.extend_from_slice(&bytes);
        n_blanks += u64::from(bytes.trim_ascii().is_empty());
        waiting.came(idle, 0, n_blanks, body.len());
    }
    Ok(body)
}

/// Returns the error behind an answer whose status is no success.
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
    let (is_html, packed) = (is_html(&response), packing(&response));
    let code = response.status().as_u16();
    // A body that is too long, drips or breaks off still leaves the status to tell.
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

/// Returns how an answer is packed, though nobody asked for that.
pub(super) fn packing(response: &Response) -> Option<&'static str> {
    instead::packing(
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

fn transport(error: reqwest::Error, endpoint: &str) -> Error {
    let endpoint = endpoint.to_owned();
    // The address is named already, and once is enough.
    let source = error.without_url();
    if let Some(source) = of_tls(&source) {
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

/// Returns what was wrong with the other side's TLS, where that is what is below an error.
fn of_tls(error: &(dyn std::error::Error + 'static)) -> Option<rustls::Error> {
    if let Some(found) = error.downcast_ref::<rustls::Error>() {
        return Some(found.clone());
    }
    // An error of input or output does not name the one in it as its source, but that one's.
    match error
        .downcast_ref::<std::io::Error>()
        .and_then(std::io::Error::get_ref)
    {
        Some(inner) => of_tls(inner),
        None => of_tls(error.source()?),
    }
}

/// Returns the error of an answer that ended in good order for HTTP, and in the middle for the API:
/// without a length or chunks a connection that broke looks like one that was closed.
pub(super) fn cut_short(endpoint: &str) -> Error {
    let source = std::io::Error::new(
        std::io::ErrorKind::UnexpectedEof,
        "it closed in the middle of the answer",
    );
    Error::Connection {
        endpoint: endpoint.to_owned(),
        source: Box::new(source),
    }
}
