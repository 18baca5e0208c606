//! What several tests need.

pub(crate) mod guest;
pub(crate) mod scripted_model;

pub(crate) use scripted_model::ScriptedModel;
