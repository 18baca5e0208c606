//! Helpers of several tests.

pub(crate) mod scripted_model;

pub(crate) use scripted_model::ScriptedModel;
