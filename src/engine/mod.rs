//! The container engine: the only room that knows how to talk to Docker.
//!
//! It makes, starts and removes what it is told to, in plain types of its own, and labels
//! everything. What a box must look like is `sandbox`'s business; what runs in it is nobody's here.
//! Images of ours are built here too, from the files of `images/`. Start with
//! [`Engine::connect`], then [`ContainerSpec`], then [`Provision`].
//!
//! Every call takes a token that cancels it and the longest time it may take: an engine that
//! accepts a request and never answers it must not hang a run.

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
