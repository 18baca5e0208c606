use serde::Deserialize;
use serde::Serialize;

use podbay_event::ByteSize;
use podbay_event::Seconds;

/// The image that the model server runs in when none is named.
pub const DEFAULT_IMAGE: &str = "podbay/llama-server";

/// The hub when none is named.
pub(super) const HUB: &str = "https://huggingface.co";

/// The model server that Podbay runs: the section `[inference]`. Not used if `llm.endpoint` is set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Options {
    /// Name of a model (`podbay models list`), `hf:OWNER/REPOSITORY/FILE.gguf`, or path or URL of a
    /// GGUF file. Not set: the largest known model that is downloaded and fits the memory, else the
    /// small one that proves the set-up.
    pub model: Option<String>,
    /// Context length in tokens. Not set: the model's own, at most 32,768, and less if memory is
    /// short.
    pub context: Option<u32>,
    /// Compute threads. Not set: one for each core of the engine's machine.
    pub threads: Option<u32>,
    /// Memory of the server. Not set: the model, its context and 768 MiB.
    pub memory: Option<ByteSize>,
    /// Image with llama.cpp's server. Not set: Podbay's own, for the processor.
    pub image: Option<String>,
    /// The server's program in that image; in llama.cpp's own images it is `/app/llama-server`.
    pub program: String,
    /// Reaches the server by a port of this machine's loopback instead of a unix socket; always so
    /// where the engine runs in a virtual machine. Its container then has a network, with a way
    /// out.
    pub publish: bool,
    /// That port; another free one is taken where it is in use.
    pub port: u16,
    /// After this long without a request the server frees the model's memory; the next request
    /// waits until it is loaded again. 0: never.
    pub sleep_idle: Seconds,
    /// Time limit for loading a model.
    pub start_timeout: Seconds,
    /// Time limit for the server to report its model, once it answers.
    pub probe_timeout: Seconds,
    /// How long the model may process the fixed start of the conversation before the first task; 0:
    /// not at all.
    pub warm_up: Seconds,
    /// Hub that models come from.
    pub hub: String,
    /// Environment variable with the hub's token, which goes to the hub itself and nowhere else.
    /// Not set: `HF_TOKEN`, and only for `https://huggingface.co`.
    pub hub_token_env: Option<String>,
    /// File with models of your own. Not set: `models.toml` beside your `config.toml`.
    pub catalogue: Option<String>,
    /// Connections at once for one large file.
    pub download_connections: u32,
    /// How long a download may stall before it is retried.
    pub download_timeout: Seconds,
    /// Lowest rate of a download in bytes per second, over `download_timeout`; a slower one counts
    /// as stalled. 0: any rate.
    pub download_slowest: ByteSize,
    /// How often a stalled download is retried.
    pub download_retries: u32,
    /// `http://` or `https://` address of a proxy for downloads. Not set: what `HTTPS_PROXY` says.
    pub proxy: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            model: None,
            context: None,
            threads: None,
            memory: None,
            image: None,
            program: "llama-server".to_owned(),
            publish: false,
            port: 7474,
            sleep_idle: Seconds::minutes(15),
            start_timeout: Seconds::minutes(5),
            probe_timeout: Seconds::new(30),
            warm_up: Seconds::minutes(2),
            hub: HUB.to_owned(),
            hub_token_env: None,
            catalogue: None,
            download_connections: 4,
            download_timeout: Seconds::new(60),
            download_slowest: ByteSize::kib(1),
            download_retries: 5,
            proxy: None,
        }
    }
}

impl Options {
    /// Returns the image that the server needs.
    pub fn image_name(&self) -> &str {
        self.image.as_deref().unwrap_or(DEFAULT_IMAGE)
    }
}
