use serde::Deserialize;
use serde::Serialize;

use super::Options;
use super::options::ToolModeChoice;
use super::price::Price;
use super::provider::Api;
use super::sampling::Sampling;

/// One entry of `[providers]`: a named server, its key and how it is used.
/// Unset keys are as in `[llm]`, except the API and its key: a key that is meant for another server
/// never goes to this one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ProviderOptions {
    /// Address of its API, such as `https://openrouter.ai/api/v1`.
    pub base_url: String,
    /// Its API, as in `llm.api`.
    #[serde(default)]
    pub api: Option<Api>,
    /// Name of the environment variable that holds its key.
    #[serde(default)]
    pub api_key_env: Option<String>,
    /// File that holds its key, with mode 0600.
    #[serde(default)]
    pub api_key_file: Option<String>,
    /// Model to request.
    #[serde(default)]
    pub model: Option<String>,
    /// Tokens of its context window, as in `llm.context`.
    #[serde(default)]
    pub context: Option<u64>,
    /// Whether its model accepts images.
    #[serde(default)]
    pub images: Option<bool>,
    /// How tools are offered to its model.
    #[serde(default)]
    pub tool_mode: Option<ToolModeChoice>,
    /// Price of its tokens.
    #[serde(default)]
    pub price: Price,
    /// Sampling of its answers, by purpose.
    #[serde(default)]
    pub sampling: Sampling,
}

impl ProviderOptions {
    /// Overrides the options of `[llm]` with these.
    pub fn apply(&self, options: &mut Options) {
        options.endpoint = Some(self.base_url.clone());
        options.api = self.api.unwrap_or_default();
        options.api_key_env.clone_from(&self.api_key_env);
        options.api_key_file.clone_from(&self.api_key_file);
        if self.model.is_some() {
            options.model.clone_from(&self.model);
        }
        if let Some(context) = self.context {
            options.context = context;
        }
        options.images = self.images.or(options.images);
        if let Some(mode) = self.tool_mode {
            options.tool_mode = mode;
        }
        options.price = self.price.over(options.price);
        options.sampling = self.sampling.over(options.sampling);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_providers_context_and_images_override_the_server() {
        let applied = |section: &str| {
            let provider: ProviderOptions =
                toml::from_str(&format!("base_url = \"http://127.0.0.1:1\"\n{section}"))
                    .expect("an entry");
            let mut options = Options {
                context: 8192,
                images: Some(true),
                ..Options::default()
            };
            provider.apply(&mut options);
            (options.context, options.images)
        };
        assert_eq!(applied(""), (8192, Some(true)));
        assert_eq!(
            applied("context = 4096\nimages = false"),
            (4096, Some(false))
        );
        assert_eq!(
            applied("context = 0"),
            (0, Some(true)),
            "the server's own again"
        );
    }
}
