//! The model server of our own: which model, where its file comes from, and llama.cpp's server in a container that serves it.
//!
//! What is said to the server is `llm`'s business, and any other endpoint is none of ours: then nothing here runs. Start with
//! [`resolve`], which turns a setting into a model's file, then [`ModelServer`].
//!
//! Both what is downloaded and what the server says count as hostile: a file is used only if it has the hash we know, and the
//! server has no network, no capability and nothing of the host but its model, its key and the folder of its socket.

mod catalogue;
mod command;
mod download;
mod error;
mod file;
mod gguf;
mod health;
mod mirror;
mod model;
mod options;
mod paths;
mod plan;
mod server;
mod wheel;

pub use catalogue::Entry;
pub use catalogue::Source;
pub use catalogue::catalogue;
pub use command::command;
pub use download::Download;
pub use download::Patience;
pub use error::Error;
pub use health::Health;
pub use model::ListedModel;
pub use model::Model;
pub use model::list;
pub use model::pull;
pub use model::remove;
pub use model::resolve;
pub use options::DEFAULT_IMAGE;
pub use options::Options;
pub use paths::Paths;
pub use plan::measure;
pub use server::ModelServer;
pub use server::ServerState;
pub use server::Serving;
pub use wheel::Member;
