//! The dependencies of a project: which package managers it uses, what they run in the install
//! phase, which hosts that phase reaches, and the volumes that keep what they got.
//!
//! The install phase is a sandbox of its own, with the volumes writable and a gateway to registries
//! alone. It ends before anything else begins; every other sandbox of the project has the volumes
//! read-only. Start with [`Ecosystem`], a row of `ecosystems.toml`; the use case is `app/install.rs`.

mod cache;
mod ecosystem;
mod hosts;
mod options;
mod registries;

pub use cache::Cache;
pub use cache::CacheMount;
pub use cache::abandoned_caches;
pub use cache::caches;
pub use cache::make_cache;
pub use cache::present_caches;
pub use ecosystem::Ecosystem;
pub use ecosystem::NamedFile;
pub use ecosystem::SETUP;
pub use ecosystem::ecosystem;
pub use ecosystem::ecosystems;
pub use ecosystem::ecosystems_of;
pub use hosts::InstallHosts;
pub use hosts::install_hosts;
pub use options::SetupOptions;
pub use registries::NamedRegistry;
pub use registries::named_registries;
