mod config;
mod llm;
mod session;
mod support;
mod ui;
