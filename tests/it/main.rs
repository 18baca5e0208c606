mod config;
mod file_tools;
mod link;
mod llm;
mod session;
mod support;
mod ui;
mod wall;
