//! The container engine: the only module that talks to Docker.
//!
//! It creates, starts and removes containers, volumes and images as told, in plain types of its
//! own, and labels all of them. `sandbox` decides what a sandbox looks like. Our images are built
//! here too, from the files of `images/`. Start with [`Engine::connect`], then [`ContainerSpec`],
//! then [`Provision`].
//!
//! Every call takes a cancellation token and a time limit: an engine that accepts a request and
//! never answers must not hang a run.

mod address;
mod archive;
mod base;
mod bounded;
mod clean_up;
mod connect;
mod container;
mod details;
mod error;
mod events;
mod image;
mod label;
mod links;
mod lock;
mod machine;
mod options;
mod program;
mod provision;
mod recipes;
mod stream;
mod sweep;
mod tcp;
mod transfer;
mod volume;

pub use clean_up::Left;
pub use clean_up::how_to_remove;
pub use connect::Engine;
pub use connect::Facts;
pub use container::ContainerId;
pub use container::ContainerSpec;
pub use container::ContainerState;
pub use container::Held;
pub use container::Log;
pub use container::Mount;
pub use container::Network;
pub use container::Ulimit;
pub use details::Component;
pub use details::Details;
pub use details::Limits;
pub use error::Error;
pub use events::Moment;
pub use image::BuildImage;
pub use image::ImageFacts;
pub use label::Labels;
pub use label::Owner;
pub use label::Role;
pub use links::EntryKind;
pub use links::ImageEntry;
pub use lock::FileLock;
pub use machine::keep_machine_id;
pub use options::Options;
pub use provision::ImageState;
pub use provision::ListedImage;
pub use provision::Provision;
pub use stream::Attached;
pub use sweep::Leftover;
pub use sweep::NEXT;
pub use sweep::OLD;
pub use sweep::Swept;
pub use transfer::SavedImages;
pub use transfer::with_tag;
pub use volume::Content;
pub use volume::VolumeFile;
