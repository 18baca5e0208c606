use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use podbay_agent as agent;
use podbay_engine as engine;
use podbay_inference as inference;
use podbay_llm as llm;
use podbay_mcp as mcp;
use podbay_policy as policy;
use podbay_sandbox as sandbox;
use podbay_search as search;
use podbay_session as session;
use podbay_tools as tools;
use podbay_ui as ui;

use super::Error;
use super::Loaded;
use super::Sources;
use super::autonomy;
use super::bounds;
use super::load;
use super::provider;

/// Every setting there is.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Config {
    /// Contact nothing but the model's endpoint and the container engine.
    pub offline: bool,
    pub agent: agent::Options,
    pub llm: llm::Options,
    /// Model servers by name: `[providers.NAME]` with `base_url` and, as wanted, `api`, `api_key_env`
    /// or `api_key_file`, `model`, `context`, `images`, `tool_mode`, `price` and `sampling`;
    /// `llm.provider` or `--provider` chooses one.
    pub providers: BTreeMap<String, llm::ProviderOptions>,
    pub sandbox: sandbox::Options,
    pub network: sandbox::NetworkOptions,
    pub setup: sandbox::SetupOptions,
    pub search: search::Options,
    pub engine: engine::Options,
    pub inference: inference::Options,
    pub tools: tools::Options,
    pub policy: policy::Options,
    pub hooks: tools::HookOptions,
    pub agents: tools::AgentOptions,
    pub skills: tools::SkillOptions,
    pub mcp: mcp::Options,
    pub memory: session::MemoryOptions,
    pub session: session::Options,
    pub ui: ui::Options,
}

impl Config {
    pub fn load(sources: &Sources) -> Result<Loaded<Self>, Error> {
        let mut loaded = load(sources)?;
        provider::choose(&mut loaded)?;
        provider::ask_for_model(&mut loaded);
        provider::check_price(&loaded)?;
        autonomy::suit(&mut loaded);
        bounds::check(&loaded)?;
        Ok(loaded)
    }
}
