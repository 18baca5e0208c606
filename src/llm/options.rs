use std::time::Duration;

use serde::Deserialize;
use serde::Serialize;

use super::price::Price;
use super::sampling::Sampling;

/// The section `[llm]` of the configuration: which model answers, and how it is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Options {
    /// Name of the entry of `[providers]` that answers: it brings address, key, model and price.
    pub provider: Option<String>,
    /// Address of an OpenAI-compatible server, such as `http://127.0.0.1:7474/v1` or `unix:/path`.
    /// Not set: Podbay's own server.
    pub endpoint: Option<String>,
    /// Model to ask for. Not set: what the server serves.
    pub model: Option<String>,
    /// Name of the environment variable that holds the API key.
    pub api_key_env: Option<String>,
    /// File that holds the API key; nobody else may be able to read it (mode 0600).
    pub api_key_file: Option<String>,
    /// `http://` or `https://` address of a proxy for servers elsewhere. The environment's
    /// `*_PROXY` variables are not used.
    pub proxy: Option<String>,
    /// Randomness, 0 to 2. Not set: the server's own, here and in the five below.
    pub temperature: Option<f64>,
    /// Share of the probability that is sampled from, 0 to 1.
    pub top_p: Option<f64>,
    /// How many of the likeliest tokens are sampled from. `OpenAI`'s own API does not have it.
    pub top_k: Option<u32>,
    /// Least probability as a share of the likeliest token's, 0 to 1. `OpenAI`'s own API does not
    /// have it.
    pub min_p: Option<f64>,
    /// How much what was said already is held against saying it again, -2 to 2; 0 is not at all.
    pub presence_penalty: Option<f64>,
    /// How much tokens that were just written are made less likely, 0 to 2; 1 is not at all.
    /// `OpenAI`'s own API does not have it.
    pub repeat_penalty: Option<f64>,
    /// Words at which an answer ends, four at most. They end a call too where they stand in one.
    pub stop: Vec<String>,
    /// Tokens that the server reads at once, for servers that do not tell it (Ollama, LM Studio,
    /// `OpenAI`); where one does, the smaller of both counts. 0: what the server tells.
    pub context: u64,
    /// Whether the model can be shown images. Not set: what the server says.
    pub images: Option<bool>,
    /// Most tokens in one answer. Not set: a quarter of the window, at most 16,384. -1: no limit.
    pub max_output_tokens: Option<i64>,
    /// Seconds in which nothing brings an answer on until it is given up: words, a piece of a call,
    /// progress in reading the prompt, or sums. Comments count too, but no longer than ten times
    /// that.
    pub idle_timeout_s: f64,
    /// Seconds until connecting is given up.
    pub connect_timeout_s: f64,
    /// Seconds until the first questions to the server (which model, which window) are given up.
    pub probe_timeout_s: f64,
    /// Seconds one answer may take, retries included.
    pub request_timeout_s: f64,
    /// How often a request is tried again that failed by overload, a stall or a broken connection
    /// before anything was shown. 0 also waits for no server that is away, and asks for no answer
    /// again whose rest was lost.
    pub retries: u32,
    /// How the model is told about tools.
    pub tool_mode: ToolModeChoice,
    /// What tokens cost, in US dollars for a million of them, where the server does not say itself.
    pub price: Price,
    /// How answers are sampled, by what they are for.
    pub sampling: Sampling,
}

/// How the model is told about tools, as people choose it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ToolModeChoice {
    /// By what the server says of the model's chat template.
    #[default]
    Auto,
    /// By the server's own tool calls.
    Native,
    /// By a JSON schema that the answer must fit; works with any template.
    Constrained,
    /// By words alone, for servers that have neither.
    Text,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            provider: None,
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

/// Nonsense (not a number, nothing, more than a year) becomes the nearest sensible span.
fn seconds(value: f64) -> Duration {
    const YEAR: f64 = 365.0 * 24.0 * 3600.0;
    let value = if value.is_nan() { YEAR } else { value };
    Duration::from_secs_f64(value.clamp(0.001, YEAR))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_may_name_any_of_the_keys() {
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
    fn nonsense_makes_no_panic() {
        assert_eq!(
            [-1.0, 0.0, 1.5].map(seconds),
            [1, 1, 1500].map(Duration::from_millis)
        );
        assert_eq!(seconds(f64::INFINITY), seconds(f64::NAN));
    }
}
