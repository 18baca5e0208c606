use std::time::Duration;

use serde::Deserialize;
use serde::Serialize;

use super::price::Price;
use super::provider::Api;
use super::sampling::Sampling;

/// The section `[llm]` of the configuration: which model answers, and how it is requested.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Options {
    /// Name of the entry of `[providers]` to use: it sets address, key, model and price.
    pub provider: Option<String>,
    /// API of that server: `openai`, or `ollama` for Ollama's own, which lets `context` set the
    /// window of its model.
    pub api: Api,
    /// Address of an OpenAI-compatible server, such as `http://127.0.0.1:7474/v1` or `unix:/path`.
    /// Not set: Podbay's own server.
    pub endpoint: Option<String>,
    /// Model to request. Not set: the one that the server offers.
    pub model: Option<String>,
    /// Name of the environment variable that holds the API key.
    pub api_key_env: Option<String>,
    /// File that holds the API key; only its owner may be able to read it (mode 0600).
    pub api_key_file: Option<String>,
    /// `http://` or `https://` address of a proxy for remote servers. The environment's `*_PROXY`
    /// variables are not used.
    pub proxy: Option<String>,
    /// Randomness, 0 to 2. Not set: the server's default, here and in the five below.
    pub temperature: Option<f64>,
    /// Nucleus sampling: share of the probability mass to sample from, 0 to 1.
    pub top_p: Option<f64>,
    /// How many of the most likely tokens to sample from. `OpenAI`'s own API does not support it.
    pub top_k: Option<u32>,
    /// Minimum probability relative to the most likely token, 0 to 1. `OpenAI`'s own API does not
    /// support it.
    pub min_p: Option<f64>,
    /// Penalty for tokens that occurred before, -2 to 2; 0 is none.
    pub presence_penalty: Option<f64>,
    /// Penalty for recently generated tokens, 0 to 2; 1 is none. `OpenAI`'s own API does not
    /// support it.
    pub repeat_penalty: Option<f64>,
    /// Stop sequences that end an answer, at most four. They also end a call that contains them.
    pub stop: Vec<String>,
    /// Tokens of the context window, for servers that do not report it (Ollama, LM Studio,
    /// `OpenAI`); if one does, the smaller value applies. 0: as reported by the server.
    pub context: u64,
    /// Whether the model accepts images. Not set: as reported by the server.
    pub images: Option<bool>,
    /// Maximum number of tokens in one answer. Not set: a quarter of the window, at most 16,384.
    /// -1: no limit.
    pub max_output_tokens: Option<i64>,
    /// Seconds without progress (text, a piece of a call, prompt reading or usage) until an answer
    /// is abandoned. Comments count as progress too, but for at most ten times as long.
    pub idle_timeout_s: f64,
    /// Connect timeout in seconds.
    pub connect_timeout_s: f64,
    /// Timeout in seconds of the first queries to the server (which model, which window).
    pub probe_timeout_s: f64,
    /// Timeout in seconds of one answer, including retries.
    pub request_timeout_s: f64,
    /// How often to retry a request that failed by overload, a stall or a lost connection before
    /// anything was shown. 0 also disables waiting for an unreachable server, and requesting the
    /// lost rest of an answer.
    pub retries: u32,
    /// How tools are offered to the model.
    pub tool_mode: ToolModeChoice,
    /// Price in US dollars per million tokens, if the server does not report the cost.
    pub price: Price,
    /// Sampling by purpose of the answer.
    pub sampling: Sampling,
}

/// How tools are offered to the model, as configured.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ToolModeChoice {
    /// Depends on what the server reports about the model's chat template.
    #[default]
    Auto,
    /// By the server's own tool calls.
    Native,
    /// By a JSON schema that constrains the answer; works with any template.
    Constrained,
    /// By the prompt alone, for servers that support neither.
    Text,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            provider: None,
            api: Api::default(),
            endpoint: None,
            model: None,
            api_key_env: None,
            api_key_file: None,
            proxy: None,
            temperature: None,
            top_p: None,
            top_k: None,
            min_p: None,
            presence_penalty: None,
            repeat_penalty: None,
            stop: Vec::new(),
            context: 0,
            images: None,
            max_output_tokens: None,
            idle_timeout_s: 120.0,
            connect_timeout_s: 10.0,
            probe_timeout_s: 5.0,
            request_timeout_s: 1800.0,
            retries: 3,
            tool_mode: ToolModeChoice::Auto,
            price: Price::default(),
            sampling: Sampling::default(),
        }
    }
}

impl Options {
    pub fn idle_timeout(&self) -> Duration {
        seconds(self.idle_timeout_s)
    }

    pub fn connect_timeout(&self) -> Duration {
        seconds(self.connect_timeout_s)
    }

    pub fn probe_timeout(&self) -> Duration {
        seconds(self.probe_timeout_s)
    }

    pub fn request_timeout(&self) -> Duration {
        seconds(self.request_timeout_s)
    }
}

/// Invalid values (NaN, zero, more than a year) are clamped to a sensible range.
fn seconds(value: f64) -> Duration {
    const YEAR: f64 = 365.0 * 24.0 * 3600.0;
    let value = if value.is_nan() { YEAR } else { value };
    Duration::from_secs_f64(value.clamp(0.001, YEAR))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_the_section_is_accepted() {
        let options: Options =
            toml::from_str("temperature = 0.2\nidle_timeout_s = 60\ntool_mode = \"constrained\"")
                .expect("a section");
        let expected = Options {
            temperature: Some(0.2),
            idle_timeout_s: 60.0,
            tool_mode: ToolModeChoice::Constrained,
            ..Options::default()
        };
        assert_eq!(options, expected);
    }

    #[test]
    fn invalid_durations_do_not_panic() {
        assert_eq!(
            [-1.0, 0.0, 1.5].map(seconds),
            [1, 1, 1500].map(Duration::from_millis)
        );
        assert_eq!(seconds(f64::INFINITY), seconds(f64::NAN));
    }
}
