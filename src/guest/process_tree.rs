//! The descendants of this process, and how to end them all.
//!
//! Supervisors and the spawner are subreapers: all descendants of a command stay below them in the
//! tree. Nothing here forks or creates threads, so it works when the sandbox has no free process.

use std::collections::HashMap;
use std::collections::HashSet;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::time::Duration;
use std::time::Instant;

use super::unix::Ended;
use super::unix::Reaped;
use super::unix::kill;
use super::unix::reap;

/// Rounds of STOP before the first KILL; each finds children that the round before missed.
const MAX_STOP_PASSES: usize = 20;
/// How long they may take: the process that does it receives no messages meanwhile.
const STOPPING: Duration = Duration::from_millis(250);
/// How long processes are searched that are only asked to end, or counted.
const ASKING: Duration = Duration::from_millis(250);
/// How often all processes are stopped at once, and the pause between. A fork bomb may wake its
/// processes in the same way; a process in the middle of that escapes one round, but hardly every
/// one.
const HOLDS: usize = 12;
const BETWEEN_HOLDS: Duration = Duration::from_micros(200);

/// Returns the living descendants of this process found within a bounded time: there may be more
/// each time.
pub(super) fn descendants() -> Vec<i32> {
    let begun = Instant::now();
    below_while(own_children(), || begun.elapsed() < ASKING)
}

/// Returns the children of this single-threaded process, zombies included.
pub(super) fn own_children() -> Vec<i32> {
    children(std::process::id() as i32)
}

/// Returns the living among these processes and their descendants.
pub(super) fn below(roots: Vec<i32>) -> Vec<i32> {
    below_while(roots, || true)
}

/// Returns those found while there is time.
fn below_while(roots: Vec<i32>, has_time: impl Fn() -> bool) -> Vec<i32> {
    let mut known: HashSet<i32> = roots.iter().copied().collect();
    let mut waiting = roots;
    let mut found = Vec::new();
    while has_time()
        && let Some(pid) = waiting.pop()
    {
        if is_alive(pid) {
            found.push(pid);
        }
        waiting.extend(
            children(pid)
                .into_iter()
                .filter(|&child| known.insert(child)),
        );
    }
    found
}

/// Returns the children of a process, zombies included.
pub(super) fn children(pid: i32) -> Vec<i32> {
    let mut all = Vec::new();
    // A child belongs to the thread that forked it.
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return all;
    };
    for thread in threads.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(list) => all.extend(
                list.split_ascii_whitespace()
                    .filter_map(|pid| pid.parse::<i32>().ok()),
            ),
            // The thread ended meanwhile, or the kernel was built without these files; then the
            // parent of every process is read.
            Err(_) if !has_children_files() => return children_by_scan(pid),
            Err(_) => {}
        }
    }
    all
}

fn has_children_files() -> bool {
    let id = std::process::id();
    fs::exists(format!("/proc/self/task/{id}/children")).unwrap_or(false)
}

fn children_by_scan(parent: i32) -> Vec<i32> {
    processes()
        .filter(|&pid| stat(pid).is_some_and(|stat| stat.parent == parent))
        .collect()
}

/// Returns the ids of all processes.
pub(super) fn processes() -> impl Iterator<Item = i32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The relevant fields of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) state: u8,
    pub(super) parent: i32,
    /// The process group.
    pub(super) group: i32,
    /// More than one in a zombie: its first thread has ended, the others run on.
    pub(super) n_threads: u32,
    /// Start time, in hundredths of a second since boot.
    pub(super) started: u64,
}

impl Stat {
    pub(super) fn is_alive(self) -> bool {
        !matches!(self.state, b'Z' | b'X') || self.n_threads > 1
    }
}

pub(super) fn stat(pid: i32) -> Option<Stat> {
    stat_in(Path::new(&format!("/proc/{pid}")))
}

/// Returns the same for a folder of a process or thread in `/proc`.
pub(super) fn stat_in(folder: &Path) -> Option<Stat> {
    let mut text = Vec::with_capacity(512);
    fs::File::open(folder.join("stat"))
        .ok()?
        .read_to_end(&mut text)
        .ok()?;
    parse_stat(&text)
}

/// The name in parentheses may contain anything, parentheses too; the fields follow the last one.
fn parse_stat(text: &[u8]) -> Option<Stat> {
    let end = text.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(text.get(end + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let n_threads = fields.nth(14)?.parse().ok()?;
    let started = fields.nth(1)?.parse().ok()?;
    Some(Stat {
        state,
        parent,
        group,
        n_threads,
        started,
    })
}

/// Wakes a supervisor, the process that forked it, and the supervisors beside it, where commands
/// have stopped them: all have the same user.
pub(super) fn wake(supervisor: i32) {
    let Some(Stat { state, parent, .. }) = stat(supervisor) else {
        return;
    };
    if parent <= 1 || (state != b'T' && !is_stopped(parent)) {
        return;
    }
    kill(parent, libc::SIGCONT);
    for pid in children(parent).into_iter().filter(|&pid| is_stopped(pid)) {
        kill(pid, libc::SIGCONT);
    }
}

/// Kills a supervisor's processes in its place, where the supervisor is stopped. To be called
/// repeatedly.
pub(super) fn kill_in_place_of(supervisor: i32) {
    if !is_stopped(supervisor) {
        return;
    }
    if is_in_own_sandbox() {
        // No process in the sandbox can stop the guest, which does it here.
        kill_held(|| children(supervisor));
    } else {
        kill_trees(|| children(supervisor));
    }
    wake(supervisor);
}

/// Returns whether a process was stopped by a signal.
pub(super) fn is_stopped(pid: i32) -> bool {
    stat(pid).is_some_and(|stat| stat.state == b'T')
}

fn is_alive(pid: i32) -> bool {
    stat(pid).is_some_and(Stat::is_alive)
}

/// Sends TERM to all descendants of this process, and CONT, so that stopped ones can act on it.
///
/// A fork bomb creates processes as fast as they are found, and the order to kill it waits behind
/// this.
pub(super) fn ask_to_end() {
    for pid in descendants() {
        kill(pid, libc::SIGTERM);
        kill(pid, libc::SIGCONT);
    }
}

/// Sends KILL, once, to the processes that `roots` returns and to all their descendants; returns
/// their number.
///
/// All are stopped first: a KILL frees a process at once, and a fork bomb would refill it faster
/// than we kill. A stopped process frees none, and a process with a pending signal cannot complete
/// a fork.
pub(super) fn kill_trees(roots: impl Fn() -> Vec<i32>) -> usize {
    let mut stopped = HashSet::new();
    let begun = Instant::now();
    for _ in 0..MAX_STOP_PASSES {
        if !stop_trees(roots(), &mut stopped) || begun.elapsed() > STOPPING {
            break;
        }
    }
    for &pid in &stopped {
        kill(pid, libc::SIGKILL);
    }
    stopped.len()
}

/// Stops these processes and their descendants, each before its children are read: every stopped
/// process leaves more CPU time to the search. Returns whether any was not stopped before.
fn stop_trees(roots: Vec<i32>, stopped: &mut HashSet<i32>) -> bool {
    let mut known: HashSet<i32> = roots.iter().copied().collect();
    let mut waiting = roots;
    let mut grew = false;
    while let Some(pid) = waiting.pop() {
        if !stopped.contains(&pid) {
            kill(pid, libc::SIGSTOP);
            if is_alive(pid) {
                stopped.insert(pid);
                grew = true;
            }
        }
        waiting.extend(
            children(pid)
                .into_iter()
                .filter(|&child| known.insert(child)),
        );
    }
    grew
}

/// Kills all descendants while nothing else in the pid namespace runs, except PID 1.
///
/// Hundreds of busy processes leave this one so little CPU time that it finds them more slowly than
/// they fork. One call stops all that may be signalled from here; the others are resumed. Never on
/// a host: see [`is_in_sandbox`].
pub(super) fn kill_at_once() {
    kill_held(own_children);
}

/// Does so with the processes that `roots` returns and their descendants.
fn kill_held(roots: impl Fn() -> Vec<i32>) {
    for _ in 0..HOLDS {
        kill(-1, libc::SIGSTOP);
        std::thread::sleep(BETWEEN_HOLDS);
    }
    let doomed: HashSet<i32> = below(roots()).into_iter().collect();
    for &pid in &doomed {
        kill(pid, libc::SIGKILL);
    }
    let own = std::process::id() as i32;
    let others = processes().filter(|pid| *pid > 1 && *pid != own && !doomed.contains(pid));
    for pid in children_first(
        &others
            .filter_map(|pid| Some((pid, stat(pid)?.parent)))
            .collect(),
    ) {
        kill(pid, libc::SIGCONT);
    }
}

/// Returns the processes of a parent map in the order in which they may be resumed: a shell resumed
/// before its child would see the child stopped, and take the terminal back.
fn children_first(parents: &HashMap<i32, i32>) -> Vec<i32> {
    let depth = |pid: i32| {
        let above = std::iter::successors(Some(pid), |pid| parents.get(pid).copied());
        // Reads during process ends may form a cycle.
        above.take(parents.len() + 1).count()
    };
    let mut pids: Vec<(usize, i32)> = parents.keys().map(|&pid| (depth(pid), pid)).collect();
    pids.sort_unstable_by(|one, other| other.cmp(one));
    pids.into_iter().map(|(_, pid)| pid).collect()
}

/// Returns whether this serving process is PID 1 of its namespace, so that it is the only one that
/// serves there.
pub(super) fn is_in_own_sandbox() -> bool {
    std::process::id() == 1
}

/// Returns whether this serving process is in a sandbox's pid namespace: as PID 1, or put there
/// from outside. On a host, where all processes are others', neither is true.
pub(super) fn is_in_sandbox() -> bool {
    is_in_own_sandbox() || std::os::unix::process::parent_id() == 0
}

/// Ends all descendants; returns whether none was left when the time was over.
pub(super) fn end_all(within: Duration, mut on_ended: impl FnMut(Ended)) -> bool {
    let end = Instant::now() + within;
    loop {
        kill_trees(own_children);
        loop {
            match reap() {
                Reaped::Ended(ended) => on_ended(ended),
                Reaped::NoChildren => return true,
                Reaped::Running => break,
            }
        }
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_cannot_forge_its_state_or_parent() {
        let stat =
            parse_stat(b"42 (a) Z 1 (b) R 7 40 42 0 -1 4194304 1 0 0 0 5 1 0 0 20 0 3 0 17 0 0")
                .expect("parses");
        assert_eq!(
            stat,
            Stat {
                state: b'R',
                parent: 7,
                group: 40,
                n_threads: 3,
                started: 17
            }
        );
        assert!(
            stat.is_alive()
                && Stat {
                    state: b'Z',
                    ..stat
                }
                .is_alive()
                && !Stat {
                    state: b'Z',
                    n_threads: 1,
                    ..stat
                }
                .is_alive()
        );
        assert_eq!(parse_stat(b"42 (a"), None);
    }

    #[test]
    fn a_parent_is_resumed_after_its_children() {
        // A shell with a higher pid than its child, whose child has another; and two that seem to
        // be each other's parents.
        let parents = HashMap::from([(70, 0), (20, 70), (50, 20), (8, 9), (9, 8)]);
        let order = children_first(&parents);
        let at = |pid| {
            order
                .iter()
                .position(|&other| other == pid)
                .expect("is there")
        };
        assert!(at(50) < at(20) && at(20) < at(70), "{order:?}");
        assert_eq!(order.len(), 5);
    }

    #[test]
    fn this_process_has_a_parent_and_is_alive() {
        let own = stat(std::process::id() as i32).expect("own stat");
        assert_eq!(own.parent, std::os::unix::process::parent_id() as i32);
    }
}
