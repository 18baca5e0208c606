use std::ops::AddAssign;

use serde::Deserialize;
use serde::Serialize;

/// Tokens, as the server counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Prompt tokens, cached ones included.
    pub prompt: u64,
    /// Prompt tokens the server had in its cache.
    pub cached: u64,
    pub completion: u64,
    /// In US dollars; `None` where no price is known.
    pub cost_usd: Option<f64>,
}

impl Usage {
    /// Returns all tokens that count against a limit.
    pub fn total(&self) -> u64 {
        self.prompt.saturating_add(self.completion)
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.prompt = self.prompt.saturating_add(other.prompt);
        self.cached = self.cached.saturating_add(other.cached);
        self.completion = self.completion.saturating_add(other.completion);
        self.cost_usd = match (self.cost_usd, other.cost_usd) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
    }
}
