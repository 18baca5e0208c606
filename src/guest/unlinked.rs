//! Unlinked files of the project that still take space, because a command has them open, mapped,
//! executing, or in transit through a socket.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::hash::BuildHasher;
use std::hash::RandomState;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use super::process_tree;

/// The space of such files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unlinked {
    pub(super) bytes: u64,
    pub(super) files: u64,
    /// Whether every process could be read in time, and every file could be measured.
    pub(super) whole: bool,
}

/// The kernel's suffix to the name of an unlinked file.
const DELETED: &[u8] = b" (deleted)";

/// How often is counted, and at most how many microseconds after each: a file handed between
/// processes, or through a socket, can escape one count.
const LOOKS: u32 = 4;
const MOST_BETWEEN: u64 = 8000;

/// Counts what the commands below this process hold, until `end`.
///
/// A process that is not readable may hold anything, and so may a socket with descriptors in
/// transit.
pub(super) fn unlinked(workspace: &Path, end: Instant) -> Unlinked {
    let serving = std::process::id() as i32;
    // The spawner and the supervisors are ours and not readable: commands begin below them.
    let commands = || {
        let supervisors = process_tree::children(serving)
            .into_iter()
            .flat_map(process_tree::children);
        process_tree::below(supervisors.flat_map(process_tree::children).collect())
    };
    let mut seen = Unlinked {
        bytes: 0,
        files: 0,
        whole: true,
    };
    for n in 0..LOOKS {
        if n > 0 {
            // A random time, so that it cannot be predicted.
            std::thread::sleep(Duration::from_micros(
                RandomState::new().hash_one(n) % MOST_BETWEEN,
            ));
        }
        let pids = commands();
        if pids.is_empty() {
            break;
        }
        let now = count(pids, workspace, end);
        seen = Unlinked {
            bytes: seen.bytes.max(now.bytes),
            files: seen.files.max(now.files),
            whole: seen.whole && now.whole,
        };
        if !seen.whole {
            break;
        }
    }
    seen
}

/// The project's folder, and its device.
struct ProjectFolder<'path> {
    path: &'path Path,
    device: Option<u64>,
}

fn count(pids: Vec<i32>, workspace: &Path, end: Instant) -> Unlinked {
    let place = ProjectFolder {
        path: workspace,
        device: fs::metadata(workspace).ok().map(|facts| facts.dev()),
    };
    // By inode: many processes may hold one file.
    let mut open: HashMap<u64, u64> = HashMap::new();
    let mut mapped: HashMap<u64, u64> = HashMap::new();
    let mut whole = true;
    for pid in pids {
        if Instant::now() > end {
            whole = false;
            break;
        }
        // A thread can have a descriptor table of its own, and the first thread can have ended:
        // then nothing of it is readable.
        for thread in threads(pid) {
            if Instant::now() > end {
                whole = false;
                break;
            }
            whole &= look_at_descriptors(&thread, &place, &mut open);
        }
        whole &= look_at_maps(pid, workspace, &mut mapped);
    }
    // For a file that is only mapped the kernel tells the length of the mapping; the file may take
    // more.
    mapped.retain(|inode, _| !open.contains_key(inode));
    whole &= mapped.is_empty();
    let files = (open.len() + mapped.len()) as u64;
    Unlinked {
        bytes: open
            .values()
            .chain(mapped.values())
            .fold(0, |sum, &bytes| sum.saturating_add(bytes)),
        files,
        whole,
    }
}

/// Returns the threads of a process: their folders in `/proc`, which look like that of a process.
fn threads(pid: i32) -> Vec<PathBuf> {
    fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect()
}

/// Returns whether the thread was readable, or is gone.
fn look_at_descriptors(
    thread: &Path,
    place: &ProjectFolder<'_>,
    found: &mut HashMap<u64, u64>,
) -> bool {
    let entries = match fs::read_dir(thread.join("fd")) {
        Ok(entries) => entries,
        Err(error) => return is_gone(thread, error.kind()),
    };
    for entry in entries {
        let Ok(entry) = entry else {
            return is_gone(thread, ErrorKind::Other);
        };
        if !look_at_link(&entry.path(), thread, place, found) {
            return false;
        }
    }
    // The executing file is held even where none of it is mapped any more.
    look_at_link(&thread.join("exe"), thread, place, found)
}

/// Inspects the target of a link in a thread's folder; returns whether that was possible.
fn look_at_link(
    link: &Path,
    thread: &Path,
    place: &ProjectFolder<'_>,
    found: &mut HashMap<u64, u64>,
) -> bool {
    // The name tells the file system, whatever that calls itself; the metadata is the open file's
    // own.
    let name = match fs::read_link(link) {
        Ok(name) => name.into_os_string(),
        // It was closed meanwhile.
        Err(error) if error.kind() == ErrorKind::NotFound => return true,
        // A path longer than a page is not returned; a deep folder has one.
        Err(_) => return look_without_name(link, thread, place, found),
    };
    if is_full_socket(
        name.as_bytes(),
        thread,
        link.file_name().unwrap_or_default(),
    ) {
        return false;
    }
    if is_deleted(name.as_bytes(), place.path)
        && let Ok(facts) = fs::metadata(link)
        && facts.nlink() == 0
    {
        found.insert(facts.ino(), facts.blocks().saturating_mul(512));
    }
    true
}

/// Judges a file by its metadata alone: an unlinked one on the project's device is the project's,
/// and one on another device may be, because some file systems report different devices for folders
/// and files.
fn look_without_name(
    link: &Path,
    thread: &Path,
    place: &ProjectFolder<'_>,
    found: &mut HashMap<u64, u64>,
) -> bool {
    let facts = match fs::metadata(link) {
        Ok(facts) => facts,
        Err(error) => return is_gone(thread, error.kind()),
    };
    if facts.nlink() > 0 {
        return true;
    }
    let is_ours = place.device == Some(facts.dev());
    if is_ours {
        found.insert(facts.ino(), facts.blocks().saturating_mul(512));
    }
    is_ours
}

/// Returns whether an open file is a socket with descriptors in transit, also those sent before a
/// connection was accepted. They are not visible. A kernel before 5.6 does not tell.
fn is_full_socket(name: &[u8], thread: &Path, number: &OsStr) -> bool {
    name.starts_with(b"socket:")
        && fs::read(thread.join("fdinfo").join(number)).is_ok_and(|text| {
            text.split(|&byte| byte == b'\n')
                .filter_map(|line| line.strip_prefix(b"scm_fds:"))
                .any(|count| count.trim_ascii() != b"0")
        })
}

fn look_at_maps(pid: i32, workspace: &Path, found: &mut HashMap<u64, u64>) -> bool {
    // Threads share their memory; one that has ended shows nothing of it.
    let mut text = Vec::new();
    for thread in threads(pid) {
        match fs::read(thread.join("maps")) {
            Ok(maps) if maps.is_empty() => {}
            Ok(maps) => {
                text = maps;
                break;
            }
            Err(error) if is_gone(&thread, error.kind()) => {}
            Err(_) => return false,
        }
    }
    let mut own: HashMap<u64, u64> = HashMap::new();
    for (inode, bytes) in text
        .split(|&byte| byte == b'\n')
        .filter_map(|line| mapping(line, workspace))
    {
        let sum = own.entry(inode).or_default();
        *sum = sum.saturating_add(bytes);
    }
    for (inode, bytes) in own {
        let most = found.entry(inode).or_default();
        *most = bytes.max(*most);
    }
    true
}

/// Returns inode and length of a line of `/proc/PID/maps`, if it is an unlinked file of the
/// project.
fn mapping(line: &[u8], workspace: &Path) -> Option<(u64, u64)> {
    let at = line.iter().position(|&byte| byte == b'/')?;
    if !is_deleted(&line[at..], workspace) {
        return None;
    }
    let mut fields = std::str::from_utf8(&line[..at])
        .ok()?
        .split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let bytes = u64::from_str_radix(end, 16)
        .ok()?
        .checked_sub(u64::from_str_radix(start, 16).ok()?)?;
    Some((fields.nth(3)?.parse().ok()?, bytes))
}

fn is_deleted(name: &[u8], workspace: &Path) -> bool {
    let below = name
        .strip_prefix(workspace.as_os_str().as_bytes())
        .is_some_and(|rest| rest.starts_with(b"/"));
    below && name.ends_with(DELETED)
}

/// Returns whether a failed read was that of a thread that has ended meanwhile.
fn is_gone(thread: &Path, kind: ErrorKind) -> bool {
    kind == ErrorKind::NotFound
        || process_tree::stat_in(thread).is_none_or(|stat| matches!(stat.state, b'Z' | b'X'))
}

#[cfg(test)]
mod tests;
