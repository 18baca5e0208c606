//! How many tokens a text is, asked of the server that knows.

use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use serde_json::Value;
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::client::Client;
use super::exchange;
use super::exchange::Limits;
use super::probe::Server;

/// Counting must not hold anybody up: an estimate will do.
const WITHIN: Duration = Duration::from_secs(5);
/// A list of so many numbers, and more, is no answer.
const MAX_BODY: usize = 64 * 1024 * 1024;

impl Client {
    /// Returns how many tokens llama-server makes of a text; `None` from servers that do not say, or not in time.
    pub async fn count(&self, text: &str, cancel: &CancellationToken) -> Option<u64> {
        if self.probed()?.server != Server::LlamaCpp {
            return None;
        }
        let limits = Limits { cancel, until: Instant::now().checked_add(WITHIN), deadline: WITHIN };
        let endpoint = self.inner().shown_endpoint.as_str();
        let body = json!({"content": text, "add_special": false}).to_string();
        let request =
            self.request(reqwest::Method::POST, self.inner().endpoint.at_root("/tokenize")).header(CONTENT_TYPE, "application/json");
        let response = exchange::send(request.body(body), endpoint, WITHIN, &limits).await.ok()?;
        if !response.status().is_success() {
            return None;
        }
        let body = exchange::rest(response, Vec::new(), MAX_BODY, endpoint, WITHIN, &limits).await.ok()?;
        let value: Value = serde_json::from_slice(&body).ok()?;
        value.get("tokens")?.as_array().map(|tokens| tokens.len() as u64)
    }
}
