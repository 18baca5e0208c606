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
mod base_image;
mod bounded;
mod clean_up;
mod connect;
mod container;
mod debian_archive;
mod details;
mod docker_context;
mod empty_image;
mod error;
mod events;
mod file_lock;
mod folders;
mod host_program;
mod image;
mod image_archive;
mod image_links;
mod image_lookup;
mod kept_facts;
mod label;
mod machine_id;
mod options;
mod provision;
mod recipes;
mod stream;
mod sweep;
mod tcp;
mod usual_sockets;
mod volume;

pub use clean_up::LeftContainer;
pub use clean_up::how_to_remove;
pub use connect::Engine;
pub use connect::Facts;
pub use container::ContainerId;
pub use container::ContainerSpec;
pub use container::ContainerState;
pub use container::Log;
pub use container::Mount;
pub use container::Network;
pub use container::ReportedLimits;
pub use container::Ulimit;
pub use details::Component;
pub use details::Details;
pub use details::Limits;
pub use empty_image::EMPTY_IMAGE;
pub use error::Error;
pub use events::Moment;
pub use file_lock::FileLock;
pub use image::BuildImage;
pub use image::ImageFacts;
pub use image_archive::SavedImages;
pub use image_archive::with_tag;
pub use image_links::EntryKind;
pub use image_links::ImageEntry;
pub use image_links::ImageLook;
pub use label::Labels;
pub use label::Owner;
pub use label::Role;
pub use machine_id::keep_machine_id;
pub use options::Options;
pub use provision::ImageState;
pub use provision::ListedImage;
pub use provision::Provision;
pub use stream::Attached;
pub use sweep::Leftover;
pub use sweep::NEXT;
pub use sweep::OLD;
pub use sweep::SweepReport;
pub use volume::Content;
pub use volume::VolumeFile;
