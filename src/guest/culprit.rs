//! Which of a command's processes takes the most, by name, as far as can be seen quickly: they are gone when its end is told.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;
use std::time::Instant;

use nix::unistd::SysconfVar;
use nix::unistd::sysconf;

use super::family;
use crate::wire::Culprit;

/// How long is looked. Where hundreds of processes spin, every look takes time that ending them needs.
const PATIENCE: Duration = Duration::from_millis(25);
/// How many are looked at in any case: on a busy machine the time can be over after the first.
const ENOUGH: usize = 8;

/// The name of the process that starts commands, and of each command until it is one.
const SPAWNER: &str = "podbay-spawner";

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Memory,
    Count,
    /// Bytes written to disks.
    Written,
    /// Time on the processor, where nothing else tells who is at work.
    Work,
}

/// Returns the name under which most is taken by what this process has started, all processes of that name together.
pub(super) fn biggest(supervisor: i32, by: By) -> Option<Culprit> {
    let mut by_name: HashMap<String, (u64, u64)> = HashMap::new();
    let end = Instant::now() + PATIENCE;
    let mut waiting = family::children(supervisor);
    let mut n_seen = 0;
    while let Some(pid) = waiting.pop() {
        n_seen += 1;
        if n_seen > ENOUGH && Instant::now() > end {
            break;
        }
        waiting.extend(family::children(pid));
        // It may have ended meanwhile. Between fork and exec a process has our own name, and what it does is ours.
        let Some(name) = name(pid).filter(|name| name != SPAWNER) else { continue };
        let amount = match by {
            By::Memory => memory(pid),
            By::Written => written(pid),
            By::Work => work(pid),
            By::Count => 1,
        };
        let entry = by_name.entry(name).or_default();
        *entry = (entry.0 + 1, entry.1.saturating_add(amount));
    }
    let (name, (count, amount)) = by_name.into_iter().max_by_key(|(_, (_, amount))| *amount)?;
    let bytes = if matches!(by, By::Memory | By::Written) { amount } else { 0 };
    Some(Culprit { name, count, bytes })
}

/// Returns whether a process is no longer one of ours, between fork and exec. It may call itself what it likes.
pub(super) fn is_command(pid: i32) -> bool {
    name(pid).is_some_and(|name| name != SPAWNER)
}

fn name(pid: i32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned())
}

fn memory(pid: i32) -> u64 {
    let pages = fs::read_to_string(format!("/proc/{pid}/statm")).ok();
    let pages = pages.and_then(|text| text.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()).unwrap_or(0);
    pages * sysconf(SysconfVar::PAGE_SIZE).ok().flatten().map_or(4096, i64::cast_unsigned)
}

fn written(pid: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok()).unwrap_or(0);
    // Where the disk is memory nothing is ever written to one.
    field("write_bytes:").max(field("wchar:"))
}

fn work(pid: i32) -> u64 {
    let text = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name may hold anything, so the fields are counted from its end.
    let end = text.iter().rposition(|&byte| byte == b')').unwrap_or(0);
    let fields = String::from_utf8_lossy(&text[end..]);
    fields.split_ascii_whitespace().skip(12).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "what is looked at here are processes")]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn processes_of_one_name_count_together() {
        let mut children: Vec<_> = (0..3).map(|_| Command::new("sleep").arg("30").spawn().expect("starts")).collect();
        let own = std::process::id() as i32;
        // Between fork and exec a child has its parent's name.
        let mut found = None;
        for _ in 0..200 {
            found = biggest(own, By::Count);
            if found.as_ref().is_some_and(|culprit| culprit.name == "sleep" && culprit.count >= 3) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let memory = biggest(own, By::Memory);
        for child in &mut children {
            child.kill().and_then(|()| child.wait()).expect("ends");
        }
        assert!(found.as_ref().is_some_and(|culprit| culprit.name == "sleep" && culprit.count >= 3), "{found:?}");
        assert!(memory.is_some_and(|culprit| culprit.bytes > 0));
    }
}
