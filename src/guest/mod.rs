//! Our program in the box: it runs what the host asks for, owns every process it starts, and ends
//! them all.
//!
//! From the first command the model runs, this side counts as hostile; nothing here protects the
//! host. What it does protect is the order in the box: a call that ends leaves nothing behind, a
//! full process table or a memory hog does not take the guest along, and commands of the same user
//! cannot read or forge its pipes. What the words mean (calls, outputs, frames) belongs to `wire`.
//!
//! Start with [`role`] (which process does what and in which order it starts), then [`serve`], then
//! [`command`].
//!
//! ```text
//! serve (PID 1, tokio, 4 workers) ── orders, fds ──> spawner (one thread, stricter filter) ── forks ──> supervisor (domain of its own) ── forks ──> command
//!        <───────────── one control socket per call: TERM, KILL down; started, ended up ─────────────────────┘
//! ```

mod alike;
pub mod attack;
mod beneath;
mod build;
mod call_filter;
mod cgroup;
mod child;
mod command;
mod culprit;
mod directory;
mod disk;
mod domain;
mod exit_stop;
mod facts;
mod family;
mod filter;
mod gate;
mod grown;
mod home;
mod host;
mod init;
mod jobs;
pub mod keep;
mod line_diff;
mod listen;
mod memory;
mod mounts;
pub mod names_that_run;
mod order;
mod overlap;
mod own_folder;
mod pool;
mod prepare;
mod proc;
mod process;
mod pty;
mod queue;
mod rescue;
mod ring;
mod role;
pub mod root;
mod serve;
mod session;
mod shell;
mod spawner;
mod stdio;
mod supervisor;
pub mod tools;
mod unix;
mod unlinked;
mod variables;
mod write_filter;

pub use build::build_id;
pub use build::is_static;
pub use filter::apply as filter_commands;
pub use gate::probe_exec_gate;
pub use line_diff::LineDiff;
pub use mounts::foreign_below;
pub use process::Spawner;
pub use role::main;
pub use serve::Error;
pub use serve::serve;
pub use session::Setup;
pub use spawner::pair as spawner_pair;
pub use unix::NO_WATCHES;
pub use unix::not_watched;
pub use variables::not_passed_on;
