//! Restricts `PTRACE_O_TRACEEXIT`, with which a tracer can stop another process at its exit.
//!
//! A process that is traced with [`TRACE_EXIT`] stops when it ends, also by KILL, until its tracer
//! resumes it or is gone. Two killed processes that trace each other this way wait for each other
//! forever, and no signal ends them; nor does the end of the sandbox, whose container the engine
//! could not remove. `strace` sets this option, so it cannot simply be refused.
//!
//! So the kernel asks the supervisor, which allows a process to trace only younger ones this way.
//! Among any processes the oldest then has no such tracer, so it ends, and with it the tracees. The
//! kernel passes the option on to a tracee's children, which are younger still.

use std::fs;

use super::gate::Question;
use super::process_tree::stat;

/// `PTRACE_O_TRACEEXIT`, which libc names for some systems only.
pub(super) const TRACE_EXIT: u32 = 0x40;

/// Returns whether a process may trace another one this way.
pub(super) fn may_stop(question: &Question) -> bool {
    is_older(question.thread, question.arguments[1] as i32)
}

/// Returns whether the process of one thread was certainly created before that of another.
///
/// Only whole processes are compared: a thread that executes a program takes the place of its
/// process's first one. A reused pid belongs to a younger process.
fn is_older(one: i32, other: i32) -> bool {
    let (Some(one), Some(other)) = (process_of(one), process_of(other)) else {
        return false;
    };
    let (Some(older), Some(younger)) = (stat(one), stat(other)) else {
        return false;
    };
    // The kernel counts in hundredths of a second, in which a process can start another; a parent
    // is older than its children.
    older.started < younger.started || (older.started == younger.started && younger.parent == one)
}

/// Returns the process that a thread belongs to.
fn process_of(thread: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("Tgid:"))?
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::process::Stdio;

    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test needs a real process")]
    fn a_parent_is_older_than_its_child_from_any_thread() {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("the `cat` command");
        let (own, started) = (std::process::id() as i32, child.id() as i32);
        let thread = nix::unistd::gettid().as_raw();
        assert_ne!(thread, own, "a test has a thread of its own");
        assert!(is_older(own, started) && is_older(thread, started));
        assert!(
            !is_older(started, own)
                && !is_older(started, thread)
                && !is_older(own, own)
                && !is_older(own, thread)
        );
        child.kill().expect("ended");
        child.wait().expect("taken");
        assert!(!is_older(own, started), "a gone process is never older");
    }
}
