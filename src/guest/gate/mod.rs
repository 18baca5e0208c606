//! The gate through which all programs of a call go: its supervisor sees each of them, with its
//! real arguments.
//!
//! The kernel asks the supervisor when a program is to be executed, and once more when it stands
//! there and has not begun yet: at the system call by which every C library, and Go, sets up a
//! thread's own memory, before `main`. At that second time `/proc` says what the program is and
//! what it was given; no other thread and no process that shares memory with the first one can
//! change that any more.
//!
//! What this sees is what is executed. Code that maps a program and jumps into it, or writes into
//! another process of its call while that is looked at, is not seen: the sandbox is what holds
//! those.
//!
//! Rules say which programs may run. They speak of names and words: a program has several names
//! ([`forms`]), some of which it cannot choose ([`identity`], [`known_programs`]), and by default only what the command
//! itself starts is meant ([`ancestry`]).
//!
//! In mode ask a call is held at its first write as well ([`writes`]): the kernel asks about what
//! may change a file ([`write_calls`]), which leads somewhere ([`write_path`]), where the host is
//! to be asked or not ([`write_zone`]). Opens without a question are carried out here
//! ([`handed_open`]), so that they lead where they were seen to lead.
//!
//! Start with [`Gate`], then [`listener`] (the kernel's questions) and [`process`] (what is read of
//! who asks); [`verdict`] and [`matching`] are plain functions.

mod ancestry;
mod asking;
mod denied;
mod exit_code;
mod forms;
mod handed_open;
mod identity;
mod known_programs;
mod listener;
mod matching;
mod probe;
mod process;
mod questions;
mod ran;
mod rename_folder;
mod supervise;
mod ticket;
mod verdict;
mod write_calls;
mod write_path;
mod write_zone;
mod writes;

pub(super) use known_programs::KnownProgram;
pub(super) use known_programs::KnownPrograms;
pub(super) use listener::Listener;
pub(super) use listener::Question;
pub use probe::find;
pub(super) use supervise::Gate;
