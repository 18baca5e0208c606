use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use crate::agent;
use crate::engine;
use crate::inference;
use crate::llm;
use crate::policy;
use crate::sandbox;
use crate::session;
use crate::tools;
use crate::ui;

use super::Error;
use super::Loaded;
use super::Sources;
use super::load;

/// Every setting there is.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Config {
    /// Contact nothing but the model's endpoint and the container engine.
    pub offline: bool,
    pub agent: agent::Options,
    pub llm: llm::Options,
    pub sandbox: sandbox::Options,
    pub engine: engine::Options,
    pub inference: inference::Options,
    pub tools: tools::Options,
    pub policy: policy::Options,
    pub session: session::Options,
    pub ui: ui::Options,
}

impl Config {
    pub fn load(sources: &Sources) -> Result<Loaded<Self>, Error> {
        load(sources)
    }
}
