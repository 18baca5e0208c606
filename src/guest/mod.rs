//! The guest: Podbay's program in the sandbox. It runs what the host asks for, owns every process
//! it starts, and ends them all.
//!
//! From the first command that the model runs, this side counts as hostile; nothing here protects
//! the host. It does protect order in the sandbox: a call that ends leaves nothing behind, a full
//! process table or a memory hog does not kill the guest, and commands of the same user cannot read
//! or forge its pipes. The messages (calls, outputs, frames) are defined by `wire`.
//! Start with [`role`] (which process does what and in which order it starts), then [`serve`], then
//! [`command`].
//!
//! ```text
//! serve (PID 1, tokio, 4 workers) ── orders, fds ──> spawner (one thread, stricter filter) ── forks ──> supervisor (domain of its own) ── forks ──> command
//!        <───────────── one control socket per call: TERM, KILL down; started, ended up ─────────────────────┘
//! ```

pub mod attack;
pub mod auto_run_names;
mod beneath;
mod build;
mod call_channel;
mod call_filter;
mod cgroup;
mod child;
mod command;
mod compose_overlap;
mod controller_sockets;
mod culprit;
mod directory;
mod disk;
mod domain;
mod exit_stop;
mod facts;
mod filter;
mod gate;
mod home;
mod init;
mod jobs;
pub mod keep;
mod line_diff;
mod listen;
mod lookalike;
pub mod memory;
mod mounts;
mod network;
mod order;
mod pool;
mod prepare;
mod proc;
mod process_tree;
mod project_growth;
mod project_mode;
mod pty;
mod rescue;
mod ring;
mod role;
pub mod root;
mod serve;
mod session;
mod shell;
mod spawner;
mod spawner_client;
mod stdio;
mod supervisor;
pub mod tools;
mod unix;
mod unlinked;
mod variables;
mod work_queue;
mod write_filter;

pub use build::build_id;
pub use build::is_static;
pub use filter::apply as filter_commands;
pub use gate::probe_exec_gate;
pub use line_diff::LineDiff;
pub use mounts::foreign_below;
pub use network::serve_proxy;
pub use role::main;
pub use serve::Error;
pub use serve::serve;
pub use session::Setup;
pub use spawner::pair as spawner_pair;
pub use spawner_client::Spawner;
pub use unix::NO_WATCHES;
pub use unix::not_watched;
pub use variables::DEFAULTS as DEFAULT_VARIABLES;
pub use variables::not_passed_on;
