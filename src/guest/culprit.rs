//! Finds which of a command's processes uses most of a resource, by name, as far as can be seen
//! quickly: they are gone when the command's end is reported.

use std::collections::HashMap;
use std::collections::HashSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;
use std::time::Instant;

use nix::unistd::SysconfVar;
use nix::unistd::sysconf;

use super::process_tree;
use podbay_wire::Culprit;

/// How long processes are inspected. Among hundreds of busy processes, each inspection takes time
/// that ending them needs.
const PATIENCE: Duration = Duration::from_millis(25);
/// How many are inspected in any case: on a busy machine the time can be over after the first.
const ENOUGH: usize = 8;

/// How many open files of a process are inspected in any case.
const ENOUGH_FILES: usize = 256;

/// Files in memory that only their openers account for.
const IN_MEMORY: [&[u8]; 2] = [b"/memfd:", b"/dev/shm/"];

/// Name of the spawner, and of each command until its exec.
const SPAWNER: &str = "podbay-spawner";

/// The resource that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resource {
    Memory,
    Count,
    /// Bytes written to disks.
    Written,
    /// CPU time, where nothing else tells which process is at work.
    Work,
}

/// Returns the process name with the largest use among the descendants of a supervisor; all
/// processes of one name together.
pub(super) fn largest_user(supervisor: i32, by: Resource) -> Option<Culprit> {
    biggest_until(supervisor, by, Instant::now() + PATIENCE)
}

/// Returns which supervisor has the most descendants of one name, and which name.
pub(super) fn most_processes(supervisors: impl IntoIterator<Item = i32>) -> Option<(i32, Culprit)> {
    let end = Instant::now() + PATIENCE;
    let seen = supervisors.into_iter().filter_map(|supervisor| {
        Some((supervisor, biggest_until(supervisor, Resource::Count, end)?))
    });
    seen.max_by_key(|(_, culprit)| culprit.count)
}

fn biggest_until(supervisor: i32, by: Resource, end: Instant) -> Option<Culprit> {
    let mut by_name: HashMap<String, (u64, u64)> = HashMap::new();
    let mut files = HashSet::new();
    let mut waiting = process_tree::children(supervisor);
    let mut n_seen = 0;
    let mut at_least = false;
    while let Some(pid) = waiting.pop() {
        n_seen += 1;
        if n_seen > ENOUGH && Instant::now() > end {
            at_least = true;
            break;
        }
        waiting.extend(process_tree::children(pid));
        // It may have ended meanwhile. Between fork and exec a process has our own name, and its
        // work is ours.
        let Some(name) = name(pid).filter(|name| name != SPAWNER) else {
            continue;
        };
        let amount = match by {
            Resource::Memory => memory(pid, &mut files, end),
            Resource::Written => written(pid),
            Resource::Work => work(pid),
            Resource::Count => 1,
        };
        let entry = by_name.entry(name).or_default();
        *entry = (entry.0 + 1, entry.1.saturating_add(amount));
    }
    let (name, (count, amount)) = by_name.into_iter().max_by_key(|(_, (_, amount))| *amount)?;
    let bytes = if matches!(by, Resource::Memory | Resource::Written) {
        amount
    } else {
        0
    };
    Some(Culprit {
        name,
        count,
        bytes,
        at_least,
    })
}

/// Returns whether a process is past its exec. It may call itself anything.
pub(super) fn is_command(pid: i32) -> bool {
    name(pid).is_some_and(|name| name != SPAWNER)
}

fn name(pid: i32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(
        String::from_utf8_lossy(&bytes)
            .trim_end_matches('\n')
            .to_owned(),
    )
}

/// Returns the memory of a process: what it uses alone, and the larger of its shared mappings and
/// its open in-memory files, mapped or not.
fn memory(pid: i32, files: &mut HashSet<(u64, u64)>, end: Instant) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let mut fields = text
        .split_ascii_whitespace()
        .skip(1)
        .map(|field| field.parse::<u64>().unwrap_or(0));
    let (resident, shared) = (fields.next().unwrap_or(0), fields.next().unwrap_or(0));
    let page = sysconf(SysconfVar::PAGE_SIZE)
        .ok()
        .flatten()
        .map_or(4096, i64::cast_unsigned);
    resident.saturating_sub(shared) * page + (shared * page).max(open_in_memory(pid, files, end))
}

/// Returns the size of a process's open in-memory files, except those counted for another process.
fn open_in_memory(pid: i32, files: &mut HashSet<(u64, u64)>, end: Instant) -> u64 {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .flatten();
    let mut bytes = 0_u64;
    for (n, entry) in entries.enumerate() {
        if n > ENOUGH_FILES && Instant::now() > end {
            break;
        }
        let lies_there = |name: &Path| {
            IN_MEMORY
                .iter()
                .any(|place| name.as_os_str().as_bytes().starts_with(place))
        };
        if fs::read_link(entry.path()).is_ok_and(|name| lies_there(&name))
            && let Ok(facts) = fs::metadata(entry.path())
            && files.insert((facts.dev(), facts.ino()))
        {
            bytes = bytes.saturating_add(facts.blocks().saturating_mul(512));
        }
    }
    bytes
}

fn written(pid: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let field = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok())
            .unwrap_or(0)
    };
    // Where the disk is memory nothing counts as written to a disk.
    field("write_bytes:").max(field("wchar:"))
}

fn work(pid: i32) -> u64 {
    let text = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name may contain anything, so the fields are counted from its end.
    let end = text.iter().rposition(|&byte| byte == b')').unwrap_or(0);
    let fields = String::from_utf8_lossy(&text[end..]);
    fields
        .split_ascii_whitespace()
        .skip(12)
        .take(2)
        .filter_map(|ticks| ticks.parse::<u64>().ok())
        .sum()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test needs real processes")]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn processes_of_one_name_count_together() {
        let mut children: Vec<_> = (0..3)
            .map(|_| Command::new("sleep").arg("30").spawn().expect("starts"))
            .collect();
        let own = std::process::id() as i32;
        // Between fork and exec a child has its parent's name.
        let mut found = None;
        for _ in 0..200 {
            found = largest_user(own, Resource::Count);
            if found
                .as_ref()
                .is_some_and(|culprit| culprit.name == "sleep" && culprit.count >= 3)
            {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let memory = largest_user(own, Resource::Memory);
        for child in &mut children {
            child.kill().and_then(|()| child.wait()).expect("ends");
        }
        assert!(
            found
                .as_ref()
                .is_some_and(|culprit| culprit.name == "sleep" && culprit.count >= 3),
            "{found:?}"
        );
        assert!(memory.is_some_and(|culprit| culprit.bytes > 0));
    }

    #[test]
    fn an_in_memory_file_counts_once_for_a_process_that_has_it_open() {
        let file = nix::sys::memfd::memfd_create(c"hidden", nix::sys::memfd::MFdFlags::empty())
            .expect("made");
        let mut file = std::fs::File::from(file);
        // Without the close-on-exec flag, a child has it too.
        let mut child = Command::new("sleep").arg("30").spawn().expect("starts");
        let look = |files: &mut HashSet<(u64, u64)>| {
            open_in_memory(child.id() as i32, files, Instant::now() + PATIENCE)
        };
        let before = look(&mut HashSet::new());
        std::io::Write::write_all(&mut file, &vec![1; 3 << 20]).expect("written");
        let mut files = HashSet::new();
        let (after, again) = (look(&mut files), look(&mut files));
        child.kill().and_then(|()| child.wait()).expect("ends");
        assert_eq!((after.saturating_sub(before), again), (3 << 20, 0));
    }

    #[test]
    fn the_supervisor_with_the_most_processes_is_found() {
        let mut child = Command::new("sleep").arg("30").spawn().expect("starts");
        let own = std::process::id() as i32;
        let found = most_processes([child.id() as i32, own]);
        child.kill().and_then(|()| child.wait()).expect("ends");
        assert!(found.is_some_and(|(supervisor, culprit)| supervisor == own && culprit.count >= 1));
        assert_eq!(most_processes([]), None);
    }
}
