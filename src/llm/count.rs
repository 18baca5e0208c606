//! How many tokens a text is, asked of the server that knows.

use std::time::Duration;

use async_recursion::async_recursion as boxed;
use tokio_util::sync::CancellationToken;

use super::asking::Asking;
use super::client::Client;
use super::prompt::Prompt;

/// Counting must not hold anybody up: an estimate will do.
const WITHIN: Duration = Duration::from_secs(5);

impl Client {
    /// Returns how many tokens the server makes of a text; `None` from servers that do not say, or
    /// not in time.
    #[boxed]
    pub async fn count(&self, text: &str, cancel: &CancellationToken) -> Option<u64> {
        self.provider()
            .count(&Asking::new(self, cancel, WITHIN), text)
            .await
    }

    /// Returns how many tokens the server reads for a whole conversation: those of what its
    /// template makes of it, or at least those of its JSON. `None` as above.
    #[boxed]
    pub async fn count_prompt(&self, prompt: &Prompt, cancel: &CancellationToken) -> Option<u64> {
        self.provider()
            .count_prompt(&Asking::new(self, cancel, WITHIN), prompt)
            .await
    }
}
