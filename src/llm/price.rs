use serde::Deserialize;
use serde::Serialize;

use podbay_event::Usage;

/// Price in US dollars per million tokens. It is used if the server does not report an answer's
/// cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Price {
    /// Tokens that the model reads.
    pub prompt: Option<f64>,
    /// Tokens that the server has in its cache. Not set: the price of `prompt`.
    pub cached: Option<f64>,
    /// Tokens that the model writes.
    pub completion: Option<f64>,
}

impl Price {
    /// The price of a local server.
    pub const FREE: Self = Self {
        prompt: Some(0.0),
        cached: Some(0.0),
        completion: Some(0.0),
    };

    /// Returns whether any price is set.
    pub fn is_known(&self) -> bool {
        self.prompt.is_some() || self.completion.is_some()
    }

    /// Returns the first invalid part: negative, or not a number.
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

    /// Returns the cost of these tokens in US dollars; `None` if no price is set. Unset parts of a
    /// price count as zero.
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

    /// Returns the usage with its cost: as reported by the server, else computed from the price.
    #[must_use]
    pub fn priced(&self, usage: Usage) -> Usage {
        Usage {
            cost_usd: usage.cost_usd.or_else(|| self.cost(&usage)),
            ..usage
        }
    }

    /// Returns this price, or `other` if nothing is set.
    #[must_use]
    pub(super) fn over(self, other: Self) -> Self {
        if self.is_known() { self } else { other }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_follows_the_price_and_is_unknown_without_one() {
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
