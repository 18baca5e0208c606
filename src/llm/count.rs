//! Counts tokens with the server's tokenizer.

use std::time::Duration;

use async_recursion::async_recursion as boxed;
use tokio_util::sync::CancellationToken;

use super::client::Client;
use super::prompt::Prompt;
use super::server_query::ServerQuery;

/// Counting must not delay anything: an estimate will do.
const WITHIN: Duration = Duration::from_secs(5);

impl Client {
    /// Returns how many tokens the server makes of a text; `None` if it cannot count or takes too
    /// long.
    #[boxed]
    pub async fn count(&self, text: &str, cancel: &CancellationToken) -> Option<u64> {
        self.provider()
            .count(&ServerQuery::new(self, cancel, WITHIN), text)
            .await
    }

    /// Returns how many tokens a whole conversation has: rendered by the server's template, or at
    /// least as JSON. `None` as above.
    #[boxed]
    pub async fn count_prompt(&self, prompt: &Prompt, cancel: &CancellationToken) -> Option<u64> {
        self.provider()
            .count_prompt(&ServerQuery::new(self, cancel, WITHIN), prompt)
            .await
    }
}
