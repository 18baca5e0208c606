//! Small queries beside the conversation: the server's properties, the length of a text.

use std::time::Duration;

use reqwest::Method;
use reqwest::RequestBuilder;
use reqwest::header::CONTENT_TYPE;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::client::Client;
use super::error::Error;
use super::exchange;
use super::exchange::Limits;
use super::provider::failure::Failure;

/// Longest body of a GET response, in bytes: chat templates and the model lists of hubs are long.
const MAX_PAGE: usize = 4 * 1024 * 1024;
/// Longest body of a POST response, in bytes: the token ids of a long text, or a long conversation
/// rendered by its template.
const MAX_ANSWER: usize = 64 * 1024 * 1024;

/// Queries one server, all requests within one deadline.
pub(super) struct ServerQuery<'a> {
    client: &'a Client,
    limits: Limits<'a>,
    begun: Instant,
}

impl<'a> ServerQuery<'a> {
    pub(super) fn new(client: &'a Client, cancel: &'a CancellationToken, within: Duration) -> Self {
        let begun = Instant::now();
        Self {
            client,
            limits: Limits {
                cancel,
                until: begun.checked_add(within),
                deadline: within,
            },
            begun,
        }
    }

    /// Returns the time since the first request.
    pub(super) fn waited(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Returns the time until the deadline.
    pub(super) fn left(&self) -> Duration {
        self.limits.deadline.saturating_sub(self.waited())
    }

    /// Returns the error for a passed deadline.
    pub(super) fn timed_out(&self) -> Error {
        Error::Timeout {
            after: self.limits.deadline,
        }
    }

    pub(super) async fn pause(&self, pause: Duration) -> Result<(), Error> {
        self.limits.pause(pause).await
    }

    /// Gets a path of the server's root, such as `/props`.
    pub(super) async fn get(&self, path: &str) -> Result<Value, Error> {
        let url = self.client.inner().endpoint.at_root(path);
        self.value(self.client.request(Method::GET, url), MAX_PAGE)
            .await
    }

    /// Gets a path of the API, such as `/models`.
    pub(super) async fn get_api(&self, path: &str) -> Result<Value, Error> {
        let url = self.client.inner().endpoint.api(path);
        self.value(self.client.request(Method::GET, url), MAX_PAGE)
            .await
    }

    /// Posts JSON to a path of the server's root.
    pub(super) async fn post(&self, path: &str, body: String) -> Result<Value, Error> {
        let url = self.client.inner().endpoint.at_root(path);
        let request = self
            .client
            .request(Method::POST, url)
            .header(CONTENT_TYPE, "application/json")
            .body(body);
        self.value(request, MAX_ANSWER).await
    }

    async fn value(&self, request: RequestBuilder, max: usize) -> Result<Value, Error> {
        let (endpoint, limits) = (self.client.inner().shown_endpoint.as_str(), &self.limits);
        // One limit is enough: a response that exceeds the deadline would also exceed the idle
        // limit.
        let idle = limits.deadline.saturating_add(Duration::from_secs(1));
        let response = exchange::send(request, endpoint, idle, limits).await?;
        if !response.status().is_success() {
            return Err(
                exchange::failed(response, endpoint, self.client.key(), idle, limits).await,
            );
        }
        let (is_html, packed) = (
            exchange::is_html(&response),
            exchange::content_encoding(&response),
        );
        let failure = Failure {
            endpoint,
            key: self.client.key(),
            code: 200,
            is_html,
            packed,
            ..Failure::default()
        };
        if packed.is_some() {
            return Err(failure.not_json(&[]));
        }
        let body = exchange::rest(response, Vec::new(), max, endpoint, idle, limits).await?;
        let value: Value = serde_json::from_slice(&body).map_err(|_| failure.not_json(&body))?;
        match failure.of_value(&value) {
            Some(error) => Err(error),
            None => Ok(value),
        }
    }
}
