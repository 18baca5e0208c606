//! Attacks on commands of other calls, which run as the same user.

use std::fs;
use std::fs::OpenOptions;
use std::thread::sleep;
use std::time::Duration;
use std::time::Instant;

use super::Finding;
use super::system_call::call;
use crate::process_tree::processes;
use crate::unix::Fork;
use crate::unix::exit_now;
use crate::unix::fork_single_threaded;
use crate::unix::kill;

/// Process name of the waiting victim; it takes the name once it is dumpable.
const WAITS: &std::ffi::CStr = c"podbay-waits";

/// How long it waits to be attacked, and how long it is searched for.
const WAITING: Duration = Duration::from_mins(1);
const LOOKING: Duration = Duration::from_secs(20);

/// Waits, so that another call can attack it.
pub(super) fn wait(_: &[String]) -> Finding {
    if nix::sys::prctl::set_name(WAITS).is_err() {
        return Finding::failed("it cannot be given a name");
    }
    sleep(WAITING);
    Finding::held("nobody came")
}

/// ESC-20: the memory, the environment and the files of a process of another call.
pub(super) fn look(_: &[String]) -> Finding {
    let Some(pid) = waiting() else {
        return Finding::failed("no other call was seen to run, so nothing was tried");
    };
    let worked = reached(pid);
    // A process that is never readable would prove nothing about calls.
    match fork_single_threaded() {
        Ok(Fork::Child) => {
            sleep(WAITING);
            exit_now(0)
        }
        Ok(Fork::Parent(child)) => {
            let is_reached =
                fs::read(format!("/proc/{child}/environ")).is_ok() && opens_memory(child, false);
            kill(child, libc::SIGKILL);
            if !is_reached {
                return Finding::failed(
                    "its own child cannot be looked into either, so nothing was shown",
                );
            }
        }
        Err(error) => return Finding::failed(format!("no child can be made: {error}")),
    }
    Finding::of(&worked, "8 refused, and its own child can be looked into")
}

fn waiting() -> Option<i32> {
    let name = WAITS.to_bytes();
    let end = Instant::now() + LOOKING;
    while Instant::now() < end {
        let is_it = |pid: &i32| {
            fs::read(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim_ascii_end() == name)
        };
        if let Some(pid) = processes().find(is_it) {
            return Some(pid);
        }
        sleep(Duration::from_millis(20));
    }
    None
}

/// Lists the successful accesses to a process.
fn reached(pid: i32) -> Vec<String> {
    let mut worked = Vec::new();
    let mut tried = |what: &str, is_done: bool| worked.extend(is_done.then(|| what.to_owned()));
    tried("its memory opened for reading", opens_memory(pid, false));
    tried("its memory opened for writing", opens_memory(pid, true));
    tried(
        "its environment read",
        fs::read(format!("/proc/{pid}/environ")).is_ok(),
    );
    tried(
        "its map of memory read",
        fs::read(format!("/proc/{pid}/maps")).is_ok(),
    );
    for name in ["cwd", "exe", "fd/0"] {
        tried(
            &format!("its {name} followed"),
            fs::read_link(format!("/proc/{pid}/{name}")).is_ok(),
        );
    }
    // The kernel detaches it when this process ends.
    tried(
        "it was traced",
        call(
            libc::SYS_ptrace,
            [i64::from(libc::PTRACE_SEIZE), i64::from(pid), 0, 0, 0, 0],
        )
        .is_ok(),
    );
    worked
}

fn opens_memory(pid: i32, write: bool) -> bool {
    OpenOptions::new()
        .read(!write)
        .write(write)
        .open(format!("/proc/{pid}/mem"))
        .is_ok()
}
