//! What several tests need.

pub(crate) mod alone;
pub(crate) mod desk;
pub(crate) mod engine_proxy;
pub(crate) mod guest;
pub(crate) mod mcp_http;
pub(crate) mod probe;
pub(crate) mod screen;
pub(crate) mod scripted_model;
pub(crate) mod terminal;
pub(crate) mod test_env;

pub(crate) use desk::Desk;
pub(crate) use engine_proxy::EngineProxy;
pub(crate) use scripted_model::ScriptedModel;
pub(crate) use test_env::TestEnv;
