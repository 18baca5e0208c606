//! The whole path, without an engine and (in `docker/`) with one.
mod config;
mod docker;
mod file_tools;
mod inference;
mod link;
mod llm;
mod session;
mod support;
mod ui;
mod wall;
