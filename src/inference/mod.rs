//! Our own model server: choosing a model, downloading its files, and running llama.cpp's server in
//! a container.
//!
//! `llm` talks to the server; with any other endpoint nothing here runs. Start with [`Store`],
//! which turns a setting into a model's file, then [`ModelServer`].
//!
//! Downloads and the server are untrusted: a file is used only if its hash is right, and the server
//! has no network, no capability and nothing of the host but its model, its key and the folder of
//! its socket.

mod atomic_file;
mod bundled_files;
mod catalogue;
mod command;
mod download;
mod error;
mod fetch;
mod gguf;
mod health;
mod limit_check;
mod machine;
mod model_choice;
mod model_file;
mod nvidia;
mod opened_model;
mod options;
mod own_folder;
mod paths;
mod pip_mirror;
mod plan;
mod record;
mod reference;
mod restart;
mod server;
mod server_env;
mod server_key;
mod server_use;
mod start;
mod store;
mod unlisted_models;
mod user_catalogue;
mod wheel;

pub use catalogue::Catalogue;
pub use catalogue::Entry;
pub use catalogue::Source;
pub use command::command;
pub use download::CompletedDownload;
pub use download::Download;
pub use download::DownloadLimits;
pub use download::ExpectedFile;
pub use download::Hub;
pub use error::Error;
pub use error::remedy_of_damage;
pub use health::Health;
pub use machine::Gpu;
pub use machine::Machine;
pub use opened_model::Model;
pub use opened_model::check_model;
pub use opened_model::parts;
pub use options::DEFAULT_IMAGE;
pub use options::Options;
pub use paths::Paths;
pub use plan::measure;
pub use record::DownloadRecord;
pub use restart::RestartOutcome;
pub use server::ModelServer;
pub use server::ServerState;
pub use server::Serving;
pub use server_use::ServerUse;
pub use store::ListedFile;
pub use store::ListedModel;
pub use store::ModelChoice;
pub use store::Presence;
pub use store::Store;
pub use user_catalogue::CatalogueMistake;
pub use wheel::Member;
