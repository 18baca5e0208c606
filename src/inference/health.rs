use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::time::Duration;

use reqwest::Client;
use reqwest::StatusCode;

use super::Error;
use podbay_event::Secret;
use podbay_llm::http;
use podbay_llm::http::Endpoint;

/// Whether the model server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It answers and accepts our key; it may be asleep.
    Ready,
    Loading,
    /// It does not answer, or is another server.
    NoAnswer(String),
}

/// Checks one server.
pub(super) struct Probe {
    client: Client,
    endpoint: Endpoint,
    key: Secret,
}

impl Probe {
    pub(super) fn new(endpoint: Endpoint, key: Secret) -> Result<Self, Error> {
        let client =
            http::client(&endpoint.settings(Duration::from_secs(2), None)).map_err(Error::Http)?;
        Ok(Self {
            client,
            endpoint,
            key,
        })
    }

    /// Neither request wakes a server that sleeps.
    pub(super) async fn ask(&self, within: Duration) -> Health {
        // The server can write in the folder of its socket: a symlink there must not lead to
        // another program's socket.
        if let Some(path) = self.endpoint.socket()
            && !fs::symlink_metadata(path).is_ok_and(|facts| facts.file_type().is_socket())
        {
            return Health::NoAnswer("there is no socket yet".to_owned());
        }
        let questions = async {
            match self.status("/health").await {
                // Without the key, to learn whether it is up; with it, to learn whether it is ours.
                Ok(StatusCode::OK) => match self.status("/props").await {
                    Ok(StatusCode::OK) => Health::Ready,
                    Ok(status) => Health::NoAnswer(format!("it refuses our key: {status}")),
                    Err(error) => Health::NoAnswer(error),
                },
                Ok(StatusCode::SERVICE_UNAVAILABLE) => Health::Loading,
                Ok(status) => Health::NoAnswer(format!("it answers {status}")),
                Err(error) => Health::NoAnswer(error),
            }
        };
        let outcome = tokio::time::timeout(within, questions).await;
        outcome.unwrap_or_else(|_| {
            Health::NoAnswer(format!("it did not answer within {} s", within.as_secs()))
        })
    }

    async fn status(&self, path: &str) -> Result<StatusCode, String> {
        let mut request = self.client.get(self.endpoint.at_root(path));
        if path != "/health" {
            request = request.bearer_auth(self.key.expose());
        }
        request
            .send()
            .await
            .map(|response| response.status())
            .map_err(|error| super::download::chain(&error))
    }
}
