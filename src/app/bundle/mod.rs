//! Images and models in one file, for machines without a network.
//!
//! The file is a tar with a fixed order: the manifest, the engine's archive of all images, then
//! each model's file. A bundle counts as hostile: everything in it is checked against the manifest
//! before any of it is used, the archive of images is written anew on its way to the engine, and
//! nothing that is here is replaced unless the user says so. Start with [`save_bundle`] and
//! [`load_bundle`].

mod archive;
mod error;
mod file;
mod load;
mod manifest;
mod packed;
mod save;
mod shape;

pub use error::Error;
pub use load::LoadBundle;
pub use load::load_bundle;
pub use save::SaveBundle;
pub use save::save_bundle;

/// What a bundle holds, once it is saved or loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bundled {
    /// Bytes of the whole file.
    pub size: u64,
    /// Each image's name and id.
    pub images: Vec<(String, String)>,
    /// Each model's name and the path of its file.
    pub models: Vec<(String, std::path::PathBuf)>,
    /// What a user should know.
    pub notes: Vec<String>,
}
