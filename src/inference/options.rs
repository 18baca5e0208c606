use serde::Deserialize;
use serde::Serialize;

use podbay_event::ByteSize;
use podbay_event::Seconds;

/// The image that the model server runs in when none is named.
pub const DEFAULT_IMAGE: &str = "podbay/llama-server";

/// The hub when none is named.
pub(super) const HUB: &str = "https://huggingface.co";

/// The model server of our own: the section `[inference]`. With `llm.endpoint` set, none of it is
/// used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Options {
    /// Name of a model (`podbay models list`), `hf:OWNER/REPOSITORY/FILE.gguf`, or path or address
    /// of a GGUF file. Not set: the largest of the known models that is here and fits the memory,
    /// else the small one that proves the set-up.
    pub model: Option<String>,
    /// Tokens the model sees at once. Not set: what the model was made for, at most 32,768, and
    /// less where memory is short.
    pub context: Option<u32>,
    /// Processor threads that compute. Not set: one for each core of the engine's machine.
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
    /// After so long without a request the server gives the model's memory back; the next request
    /// waits until it is loaded again. 0: never.
    pub sleep_idle: Seconds,
    /// How long loading a model may take.
    pub start_timeout: Seconds,
    /// How long the server may take to say what it serves, once it answers at all.
    pub probe_timeout: Seconds,
    /// How long the model may read the fixed beginning of the conversation ahead of the first task;
    /// 0: not at all.
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
    /// How long a download may stand still before it is tried again.
    pub download_timeout: Seconds,
    /// Bytes a second that a file has to come with, over `download_timeout`: what drips counts as
    /// standing still. 0: any rate will do.
    pub download_slowest: ByteSize,
    /// How often a download is tried again that does not get on.
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
