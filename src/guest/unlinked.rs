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
mod tests {
    use std::io::Write;
    use std::os::fd::AsRawFd;

    use super::*;

    /// Each of these tests sees the other's open files.
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

    /// Counts until the expected number is reached: other tests of this process have such files for
    /// a while.
    fn settled(folder: &Path, files: u64) -> Unlinked {
        let count_now = || {
            count(
                vec![std::process::id() as i32],
                folder,
                Instant::now() + Duration::from_secs(10),
            )
        };
        let mut seen = count_now();
        for _ in 0..500 {
            if seen.files == files {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
            seen = count_now();
        }
        seen
    }

    #[test]
    fn an_unlinked_file_is_seen_while_it_is_open() {
        let _alone = ALONE.lock();
        let folder = std::env::temp_dir().join(format!("podbay-unlinked-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("made");
        let look = |files: u64| settled(&folder, files);
        let none = look(0);
        assert_eq!((none.bytes, none.files, none.whole), (0, 0, true));
        let mut file = fs::File::create(folder.join("hidden")).expect("made");
        file.write_all(&vec![1; 1 << 20]).expect("written");
        // Some file systems allocate only when the file is written back.
        file.sync_all().expect("synced");
        assert_eq!(look(0).files, 0, "it has a name");
        fs::remove_file(folder.join("hidden")).expect("removed");
        let twice = file.try_clone().expect("another descriptor");
        let seen = look(1);
        drop((file, twice));
        let gone = look(0);
        let over = Instant::now();
        std::thread::sleep(Duration::from_millis(1));
        let late = count(vec![std::process::id() as i32], &folder, over);
        fs::remove_dir_all(&folder).expect("removed");
        assert!(
            seen.bytes >= 1 << 20 && seen.bytes < 2 << 20 && seen.files == 1 && seen.whole,
            "{seen:?}"
        );
        assert_eq!((gone.bytes, gone.files), (0, 0));
        assert!(!late.whole, "who had no time may have missed something");
    }

    #[test]
    #[expect(unsafe_code, reason = "a thread gets descriptors of its own")]
    fn a_file_that_only_one_thread_has_open_is_seen() {
        let _alone = ALONE.lock();
        let folder = std::env::temp_dir().join(format!("podbay-thread-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("made");
        let seen = std::thread::scope(|scope| {
            let own = scope.spawn(|| {
                // SAFETY: this thread uses no descriptor of the others', and after the unshare has
                // none of them: other tests' open files stay theirs.
                assert_eq!(
                    unsafe {
                        libc::unshare(libc::CLONE_FILES)
                            | libc::close_range(3, libc::c_uint::MAX, 0)
                    },
                    0
                );
                let file = fs::File::create(folder.join("hidden")).expect("made");
                fs::remove_file(folder.join("hidden")).expect("removed");
                let seen = settled(&folder, 1);
                drop(file);
                seen
            });
            own.join().expect("looks")
        });
        let gone = settled(&folder, 0);
        fs::remove_dir_all(&folder).expect("removed");
        assert_eq!((seen.files, seen.whole, gone.files), (1, true, 0));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test needs a real process")]
    fn descriptors_in_transit_make_the_count_unsure() {
        let folder = std::env::temp_dir().join(format!("podbay-socket-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("made");
        // Each step waits for a line: sockets alone, a descriptor sent, received again, sent before
        // an accept, and gone.
        let script = "import os, socket
def step():
    print('.', flush=True); input()
one, other = socket.socketpair()
f = open('hidden', 'wb'); os.unlink('hidden')
step()
socket.send_fds(one, [b'x'], [f.fileno()]); f.close()
step()
held = socket.recv_fds(other, 1, 1)[1][0]
step()
door = socket.socket(socket.AF_UNIX); door.bind('door'); door.listen()
guest = socket.socket(socket.AF_UNIX); guest.connect('door')
socket.send_fds(guest, [b'x'], [held]); os.close(held)
step()
door.close(); guest.close()
step()";
        let mut child = std::process::Command::new("python3")
            .args(["-c", script])
            .current_dir(&folder)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("starts");
        let mut steps = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
        let mut go_on = child.stdin.take().expect("a pipe");
        let mut look = || {
            std::io::BufRead::read_line(&mut steps, &mut String::new()).expect("a line");
            let seen = count(
                vec![child.id() as i32],
                &folder,
                Instant::now() + Duration::from_secs(10),
            );
            go_on.write_all(b"\n").expect("it waits");
            (seen.files, seen.whole)
        };
        let seen: Vec<_> = (0..5).map(|_| look()).collect();
        child.wait().expect("ends");
        fs::remove_dir_all(&folder).expect("removed");
        assert_eq!(
            seen[0],
            (1, true),
            "who has sockets and sends nothing is seen whole"
        );
        assert!(!seen[1].1, "sent: {seen:?}");
        assert_eq!(seen[2], (1, true), "received");
        assert!(!seen[3].1, "sent to one who has not accepted: {seen:?}");
        assert_eq!(seen[4], (0, true), "gone");
    }

    #[test]
    fn a_file_with_an_overlong_path_is_seen() {
        use nix::fcntl::OFlag;
        use nix::fcntl::openat;
        use nix::sys::stat::Mode;
        use nix::unistd::UnlinkatFlags;
        use nix::unistd::unlinkat;
        let folder = std::env::temp_dir().join(format!("podbay-far-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("made");
        let look = || {
            count(
                vec![std::process::id() as i32],
                &folder,
                Instant::now() + Duration::from_secs(10),
            )
        };
        let name = "x".repeat(250);
        let mut here = vec![fs::File::open(&folder).expect("opened")];
        for _ in 0..20 {
            let above = here.last().expect("the first");
            nix::sys::stat::mkdirat(above, name.as_str(), Mode::S_IRWXU).expect("made");
            let flags = OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
            here.push(
                openat(above, name.as_str(), flags, Mode::empty())
                    .expect("opened")
                    .into(),
            );
        }
        let deepest = here.last().expect("the last");
        let flags = OFlag::O_CREAT | OFlag::O_RDWR | OFlag::O_CLOEXEC;
        let mut file =
            fs::File::from(openat(deepest, "hidden", flags, Mode::S_IRWXU).expect("made"));
        file.write_all(&vec![1; 1 << 20]).expect("written");
        file.sync_all().expect("synced");
        let told = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let named = look();
        unlinkat(deepest, "hidden", UnlinkatFlags::NoRemoveDir).expect("removed");
        while here.pop().is_some() && !here.is_empty() {
            unlinkat(
                here.last().expect("the one above"),
                name.as_str(),
                UnlinkatFlags::RemoveDir,
            )
            .expect("removed");
        }
        let seen = look();
        drop(file);
        let gone = look();
        fs::remove_dir_all(&folder).expect("removed");
        assert!(told.is_err(), "the kernel tells it all the same: {told:?}");
        assert_eq!((named.files, named.whole), (0, true), "it has a name");
        // Where the file system reports another device for files, the count is unsure.
        assert!(
            (seen.files == 1 && seen.bytes >= 1 << 20) || !seen.whole,
            "{seen:?}"
        );
        assert_eq!((gone.files, gone.whole), (0, true));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test needs a real process")]
    fn an_unlinked_program_is_seen_while_it_runs() {
        let folder = std::env::temp_dir().join(format!("podbay-runs-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("made");
        let path = folder.join("program");
        fs::copy("/bin/sleep", &path).expect("copied");
        // The file's tail behind the program is never mapped.
        let mut file = fs::File::options()
            .append(true)
            .open(&path)
            .expect("opened");
        file.write_all(&vec![1; 1 << 20]).expect("written");
        file.sync_all().expect("synced");
        drop(file);
        let start = || loop {
            match std::process::Command::new(&path).arg("30").spawn() {
                Ok(child) => return child,
                // Another test's child has it open for a moment, between fork and exec.
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(error) => panic!("{error}"),
            }
        };
        let mut child = start();
        let look = || {
            count(
                vec![child.id() as i32],
                &folder,
                Instant::now() + Duration::from_secs(10),
            )
        };
        let named = look();
        fs::remove_file(&path).expect("removed");
        let seen = look();
        child.kill().and_then(|()| child.wait()).expect("ends");
        fs::remove_dir_all(&folder).expect("removed");
        assert_eq!((named.files, named.whole), (0, true), "it has a name");
        assert!(
            seen.files == 1 && seen.bytes >= 1 << 20 && seen.whole,
            "{seen:?}"
        );
    }

    #[test]
    #[expect(unsafe_code, reason = "a file is mapped")]
    fn an_unlinked_file_that_is_only_mapped_makes_the_count_unsure() {
        let folder = std::env::temp_dir().join(format!("podbay-mapped-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("made");
        let look = || {
            count(
                vec![std::process::id() as i32],
                &folder,
                Instant::now() + Duration::from_secs(10),
            )
        };
        let path = folder.join("hidden");
        let file = fs::File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .expect("made");
        file.set_len(3 << 20).expect("sized");
        // SAFETY: a new mapping of a private file; nothing reads or writes through it.
        let place = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                2 << 20,
                libc::PROT_READ,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        assert_ne!(place, libc::MAP_FAILED);
        fs::remove_file(&path).expect("removed");
        let both = look();
        drop(file);
        let mapped = look();
        // SAFETY: it is ours, and no pointer leads into it.
        assert_eq!(unsafe { libc::munmap(place, 2 << 20) }, 0);
        let gone = look();
        fs::remove_dir_all(&folder).expect("removed");
        assert!(
            both.whole && both.files == 1,
            "open as well, it counts once, by its blocks: {both:?}"
        );
        assert_eq!(
            (mapped.bytes, mapped.files, mapped.whole),
            (2 << 20, 1, false),
            "by the length of the mapping, and it may take more"
        );
        assert_eq!((gone.bytes, gone.files, gone.whole), (0, 0, true));
    }

    #[test]
    fn a_mapping_counts_with_its_length() {
        let workspace = Path::new("/workspace");
        let line = |name: &str| {
            format!(
                "7f0000000000-7f0000100000 rw-s 00000000 00:2f 1234                       {name}"
            )
        };
        assert_eq!(
            mapping(line("/workspace/a b (deleted)").as_bytes(), workspace),
            Some((1234, 1 << 20))
        );
        for name in [
            "/workspace/a",
            "/workspaces/a (deleted)",
            "/tmp/a (deleted)",
            "[heap]",
            "",
        ] {
            assert_eq!(mapping(line(name).as_bytes(), workspace), None, "{name}");
        }
    }
}
