mod config;
mod file_tools;
mod llm;
mod session;
mod support;
mod ui;
