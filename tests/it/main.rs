mod config;
mod session;
mod ui;
