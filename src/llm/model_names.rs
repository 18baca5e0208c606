//! Which models a server lists.

use std::time::Duration;

use async_recursion::async_recursion as boxed;
use tokio_util::sync::CancellationToken;

use super::client::Client;
use super::error::Error;
use super::refusal::KeySource;
use super::server_query::ServerQuery;

impl Client {
    /// Returns the names of the models that the server lists; empty where it lists none.
    #[boxed]
    pub async fn model_names(
        &self,
        cancel: &CancellationToken,
        timeout: Duration,
    ) -> Result<Vec<String>, Error> {
        let asking = ServerQuery::new(self, cancel, timeout);
        match self.api().model_names(&asking).await {
            Ok(names) => Ok(names),
            // Some gateways have no list.
            Err(
                Error::Status {
                    code: 403 | 404 | 405 | 501,
                    ..
                }
                | Error::NotJson { .. }
                | Error::Reported { .. },
            ) => Ok(Vec::new()),
            Err(error) => Err(error.with_key_source(|| KeySource::of(self.options()))),
        }
    }
}
