//! Our own model server: choosing a model, downloading its files, and running llama.cpp's server in
//! a container.
//!
//! `llm` talks to the server; with any other endpoint nothing here runs. Start with [`Store`],
//! which turns a setting into a model's file, then [`ModelServer`].
//!
//! Downloads and the server are untrusted: a file is used only if its hash is right, and the server
//! has no network, no capability and nothing of the host but its model, its key and the folder of
//! its socket.

mod again;
mod brought;
mod catalogue;
mod choice;
mod command;
mod download;
mod enforced;
mod error;
mod fetch;
mod file;
mod gguf;
mod health;
mod hold;
mod key;
mod machine;
mod mirror;
mod nvidia;
mod open;
mod options;
mod own;
mod paths;
mod piece;
mod plan;
mod record;
mod reference;
mod server;
mod start;
mod store;
mod stranger;
mod variables;
mod wheel;

pub use again::Again;
pub use catalogue::Catalogue;
pub use catalogue::Entry;
pub use catalogue::Source;
pub use command::command;
pub use download::Download;
pub use download::Expected;
pub use download::Hub;
pub use download::Loaded;
pub use download::Patience;
pub use error::Error;
pub use error::remedy_of_damage;
pub use health::Health;
pub use hold::Hold;
pub use machine::Gpu;
pub use machine::Machine;
pub use open::Model;
pub use open::check_model;
pub use open::parts;
pub use options::DEFAULT_IMAGE;
pub use options::Options;
pub use own::Mistake;
pub use paths::Paths;
pub use plan::measure;
pub use record::Record;
pub use server::ModelServer;
pub use server::ServerState;
pub use server::Serving;
pub use store::Choice;
pub use store::ListedFile;
pub use store::ListedModel;
pub use store::Presence;
pub use store::Store;
pub use wheel::Member;
