//! All settings, where each came from, and what is wrong with them.
//!
//! The keys themselves belong to the rooms: each has its own `Options`, with its defaults and its docs. Here they are put together, read
//! in layers, and explained. Layers, the weakest first: defaults, the system's file, the user's file, `--config`, the environment, flags.
//! The project's own `.podbay/config.toml` is not among them: it comes with the code, and the agent may have written it.
//!
//! Start with [`Config`], then [`load`].

mod error;
mod key;
mod layer;
mod load;
mod origin;
mod reference;
mod schema;
mod secret;
mod sources;
mod template;
mod variable;

pub use error::Error;
pub use load::Loaded;
pub use load::load;
pub use origin::Origin;
pub use origin::Origins;
pub use reference::Setting;
pub use reference::markdown;
pub use reference::render;
pub use reference::settings;
pub use schema::Config;
pub use sources::Flag;
pub use sources::PROJECT_FILE;
pub use sources::Sources;
pub use sources::project_note;
pub use template::template;
