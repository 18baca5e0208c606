#![expect(clippy::disallowed_methods, reason = "tests run our own program, and others to compare with")]
//! The whole path, without an engine and (in `docker/`) with one.
mod agent;
mod attach;
mod bad_input;
mod completions;
mod config;
mod config_trust;
mod context;
mod debug_parse;
mod demo;
mod dist;
mod docker;
mod docs;
mod doctor;
mod file_tools;
mod help;
mod hostile;
mod inference;
mod init;
mod layers;
mod link;
mod llm;
mod resume;
mod session;
mod support;
mod ui;
mod wall;
