mod session;
mod ui;
