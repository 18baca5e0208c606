//! The exec gate: a call's supervisor sees each program of the call, with its real arguments,
//! before it runs.
//!
//! The kernel (seccomp user notification) asks the supervisor twice: at `execve`, and again after
//! the exec at the system call by which every C library, and Go, sets up thread-local memory before
//! `main`. At the second time `/proc` shows the program and its arguments, and no other thread or
//! process that shares memory with it can change them any more.
//!
//! The gate sees executions. It does not see code that maps a program and jumps into it, or that
//! writes into another process of its call while that is inspected: the sandbox is the boundary for
//! those.
//!
//! Rules decide which programs may run, by name and arguments. A program has several names
//! ([`invocations`]), some of which it cannot choose ([`identity`], [`known_programs`]). By default
//! a rule applies only to what the command itself starts ([`ancestry`]).
//!
//! In mode `ask` a call is also held at its first write ([`writes`]): the kernel asks about system
//! calls that may change a file ([`write_calls`]), their path is resolved ([`resolved_path`]), and
//! [`write_zone`] says whether the host must be asked. Opens that need no question are executed
//! here ([`emulated_open`]), so that they open the file that was inspected.
//!
//! Start with [`Gate`], then [`listener`] (the kernel's questions) and [`process`] (what is read
//! about the asking process); [`verdict`] and [`matching`] are plain functions.

mod ancestry;
mod call_gate;
mod denied;
mod emulated_open;
mod exit_code;
mod folder_rename;
mod host_answers;
mod identity;
mod invocations;
mod known_programs;
mod listener;
mod matching;
mod probe;
mod process;
mod program_log;
mod questions;
mod resolved_path;
mod ticket;
mod verdict;
mod write_calls;
mod write_zone;
mod writes;

pub(super) use call_gate::Gate;
pub(super) use known_programs::KnownProgram;
pub(super) use known_programs::KnownPrograms;
pub(super) use listener::Listener;
pub(super) use listener::Question;
pub use probe::probe_exec_gate;
