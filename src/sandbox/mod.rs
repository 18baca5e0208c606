//! The box: a container (later also a native sandbox) in which everything the model asks for happens.
//!
//! This room decides how closed a box is, keeps one alive for a session and talks to the guest in it. It leaves to `engine` how a
//! container is made, and to `policy` what may be asked of it. Start with [`Sandbox`], then [`Spec`]; `docs/security.md` gives
//! the reason of every setting.

mod attach;
mod covering;
mod covers;
mod docker;
mod enforced;
mod entries;
mod environment;
mod error;
pub mod git;
mod guest_volume;
mod image_name;
mod image_paths;
mod keeper;
mod kept;
mod limits;
pub mod link;
mod lock;
mod lost;
mod machine;
mod options;
mod project;
mod review;
mod spec;
mod turns;
mod user;
mod volumes;
mod way;

pub use attach::Socket;
pub use covering::look_through;
pub use covers::Covers;
pub use docker::DEFAULT_IMAGE;
pub use environment::Environment;
pub use environment::EnvironmentState;
pub use environment::NextEnvironment;
pub use error::Error;
pub use guest_volume::guest_volume_name;
pub use image_name::is_image_name;
pub use image_paths::Places;
pub use image_paths::look;
pub use keeper::Abandoned;
pub use keeper::LineError;
pub use keeper::abandoned;
pub use kept::Sandbox;
pub use kept::Started;
pub use lock::Lock;
pub use lost::Ended;
pub use machine::misfit;
pub use options::Backend;
pub use options::Changes;
pub use options::Options;
pub use project::Project;
pub use review::HeldReview;
pub use review::cannot_lay_over;
pub use review::copy_whole;
pub use review::hold_back;
pub use review::remove_review;
pub use review::review;
pub use review::reviews;
pub use spec::MASKED_PATHS;
pub use spec::READONLY_PATHS;
pub use spec::SECCOMP;
pub use spec::Spec;
pub use spec::emptied;
pub use spec::taken_away;
pub use turns::undo;
pub use volumes::Closed;
pub use volumes::Share;
pub use volumes::clean;
pub use volumes::cover;
pub use way::Astray;
pub use way::walk;
