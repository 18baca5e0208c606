use serde::Deserialize;
use serde::Serialize;

use podbay_event::Usage;

/// What tokens cost, in US dollars for a million of them. It counts where the server does not say
/// itself what an answer cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Price {
    /// Tokens that the model reads.
    pub prompt: Option<f64>,
    /// Tokens that the server has in its cache. Not set: as much as those that are read.
    pub cached: Option<f64>,
    /// Tokens that the model writes.
    pub completion: Option<f64>,
}

impl Price {
    /// What one's own server costs.
    pub const FREE: Self = Self {
        prompt: Some(0.0),
        cached: Some(0.0),
        completion: Some(0.0),
    };

    /// Returns whether a price is named at all.
    pub fn is_known(&self) -> bool {
        self.prompt.is_some() || self.completion.is_some()
    }

    /// Returns the first part of it that is no price: below zero, or no number.
    pub fn mistake(&self) -> Option<(&'static str, f64)> {
        let parts = [
            ("prompt", self.prompt),
            ("cached", self.cached),
            ("completion", self.completion),
        ];
        parts
            .into_iter()
            .filter_map(|(name, price)| Some((name, price?)))
            .find(|(_, price)| !price.is_finite() || *price < 0.0)
    }

    /// Returns what these tokens cost, in US dollars; `None` where no price is named. A price of
    /// which only a part is named is nothing for the rest.
    pub fn cost(&self, usage: &Usage) -> Option<f64> {
        if !self.is_known() {
            return None;
        }
        let sane = Option::<f64>::unwrap_or_default;
        let cached = usage.cached.min(usage.prompt);
        let (prompt, cached_price) = (sane(self.prompt), sane(self.cached.or(self.prompt)));
        let micro = (usage.prompt - cached) as f64 * prompt
            + cached as f64 * cached_price
            + usage.completion as f64 * sane(self.completion);
        Some(micro / 1e6)
    }

    /// Returns the usage with its cost: what the server said, else what the price makes it.
    #[must_use]
    pub fn priced(&self, usage: Usage) -> Usage {
        Usage {
            cost_usd: usage.cost_usd.or_else(|| self.cost(&usage)),
            ..usage
        }
    }

    /// Returns this price, or the other where this one names nothing.
    #[must_use]
    pub(super) fn over(self, other: Self) -> Self {
        if self.is_known() { self } else { other }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_cost_what_is_named_and_nothing_is_known_where_nothing_is() {
        let usage = Usage {
            prompt: 3_000_000,
            cached: 1_000_000,
            completion: 500_000,
            cost_usd: None,
        };
        let price = |prompt, cached, completion| {
            Price {
                prompt,
                cached,
                completion,
            }
            .cost(&usage)
        };
        assert_eq!(price(None, None, None), None);
        assert_eq!(price(Some(2.0), None, Some(8.0)), Some(10.0));
        assert_eq!(price(Some(2.0), Some(0.5), Some(8.0)), Some(8.5));
        assert_eq!(price(None, None, Some(8.0)), Some(4.0));
        for bad in [f64::NAN, f64::INFINITY, -8.0] {
            let price = Price {
                completion: Some(bad),
                ..Price::FREE
            };
            assert_eq!(price.mistake().map(|(part, _)| part), Some("completion"));
        }
        assert_eq!(Price::FREE.mistake(), None);
        assert_eq!(Price::FREE.cost(&usage), Some(0.0));
        let said = Usage {
            cost_usd: Some(1.0),
            ..usage
        };
        assert_eq!(
            Price::FREE.priced(said).cost_usd,
            Some(1.0),
            "the server knows best"
        );
    }
}
