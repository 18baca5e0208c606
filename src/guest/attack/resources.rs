//! Attacks that take more resources than the sandbox allows. Each stops by itself a little above
//! the limit that the host passes.

use std::collections::BTreeSet;
use std::fs;
use std::fs::File;
use std::fs::OpenOptions;
use std::io;
use std::io::Seek;
use std::io::SeekFrom;
use std::io::Write;
use std::path::Path;
use std::time::Duration;
use std::time::Instant;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use nix::errno::Errno;
use nix::fcntl::FallocateFlags;
use nix::fcntl::fallocate;
use nix::sys::signal::SigHandler;
use nix::sys::signal::Signal;
use nix::sys::statfs::TMPFS_MAGIC;
use nix::sys::statfs::statfs;
use nix::unistd::setsid;

use super::Finding;
use super::number;
use crate::unix::Fork;
use crate::unix::Reaped;
use crate::unix::exit_now;
use crate::unix::fork_single_threaded;
use crate::unix::kill;
use crate::unix::reap;

/// How many files are kept open at once: fewer than any limit of a sandbox.
const NAMELESS: usize = 32;

/// Process name by which leftovers of an attack are found.
const NAME: &str = "podbay-attack";

/// as many processes as possible, a little beyond the limit.
pub(super) fn processes(arguments: &[String]) -> Finding {
    let limit = number(arguments, 0, 512);
    let mut children = Vec::new();
    let mut refused = false;
    for _ in 0..limit + 32 {
        match fork_single_threaded() {
            Ok(Fork::Child) => loop {
                std::thread::sleep(Duration::from_secs(60));
            },
            Ok(Fork::Parent(pid)) => children.push(pid),
            Err(_) => {
                refused = true;
                break;
            }
        }
    }
    for pid in &children {
        kill(*pid, libc::SIGKILL);
    }
    while !matches!(reap(), Reaped::NoChildren) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let n = children.len();
    if refused {
        Finding::held(format!("the one after {n} was refused"))
    } else {
        Finding::failed(format!("{n} were started"))
    }
}

/// as much memory as possible, a little beyond the limit. Where the sandbox holds, this
/// process is killed and reports nothing.
pub(super) fn memory(arguments: &[String]) -> Finding {
    const PIECE: u64 = 1 << 20;
    let limit = number(arguments, 0, 256 << 20);
    let mut taken = Vec::new();
    while (taken.len() as u64) * PIECE < limit + (64 << 20) {
        // Written to, because untouched memory is not allocated.
        taken.push(vec![1_u8; PIECE as usize]);
    }
    Finding::failed(format!("{} MiB were taken", taken.len()))
}

/// a large amount of output.
pub(super) fn output(arguments: &[String]) -> Finding {
    let mut left = number(arguments, 0, 64 << 20);
    let piece = vec![b'y'; 64 << 10];
    let mut out = io::stdout().lock();
    while left > 0 {
        let take = left.min(piece.len() as u64);
        if out.write_all(&piece[..take as usize]).is_err() {
            break;
        }
        left -= take;
    }
    let _ = out.write_all(b"\n");
    Finding::held("written")
}

/// never silent, never done, and ignores TERM.
pub(super) fn drip(_: &[String]) -> Finding {
    ignore(Signal::SIGTERM);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(60) {
        let _ = io::stdout()
            .write_all(b".")
            .and_then(|()| io::stdout().flush());
        std::thread::sleep(Duration::from_millis(50));
    }
    Finding::failed("it continued for a minute")
}

/// a file above the file size limit, by writing, or by reserving space beyond its end. It is
/// sparse, and the reservation is small: no disk is filled.
pub(super) fn file_size(arguments: &[String]) -> Finding {
    let limit = number(arguments, 0, 4 << 30);
    let path = Path::new("/workspace").join(format!(".{NAME}-{}", std::process::id()));
    // The signal would kill this process before it could report.
    ignore(Signal::SIGXFSZ);
    let file = OpenOptions::new().write(true).create_new(true).open(&path);
    let written = file.and_then(|mut file| {
        file.seek(SeekFrom::Start(limit))?;
        file.write_all(b"x")
    });
    let reserved = reserve(&path);
    let _ = fs::remove_file(&path);
    match written {
        Ok(()) => Finding::failed(format!("a file of {limit} bytes and one was written")),
        Err(_) if reserved => Finding::failed(
            "room was reserved beyond the end of a file, which no limit of the kernel counts",
        ),
        Err(error) => Finding::held(format!("refused: {error}")),
    }
}

/// Reserves space beyond the end of a new file; returns whether that worked.
fn reserve(path: &Path) -> bool {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(path);
    file.is_ok_and(|file| fallocate(file, FallocateFlags::FALLOC_FL_KEEP_SIZE, 0, 1 << 20).is_ok())
}

/// the project grown beyond its limit, by unlinked files of the largest allowed size. Where
/// the sandbox holds, this process is killed and reports nothing. Space reserved beyond a file's
/// end would remain after the unlink, and is tried first.
pub(super) fn growth(arguments: &[String]) -> Finding {
    let limit = number(arguments, 0, 64 << 20);
    let largest = number(arguments, 1, u64::MAX).max(1);
    // More than what other users of the disk take and free meanwhile.
    let most = limit + (limit / 2).max(64 << 20);
    let mut written = 0;
    let mut kept = Vec::new();
    let path = Path::new("/workspace").join(format!(".{NAME}-reserved-{}", std::process::id()));
    let reserved = reserve(&path);
    let _ = fs::remove_file(&path);
    if reserved {
        return Finding::failed("room was reserved beyond the end of a file");
    }
    let filled = (|| {
        for n in 0.. {
            if written >= most {
                break;
            }
            let file = fill(n, largest.min(most - written), &mut written)?;
            if kept.len() < NAMELESS {
                kept.push(file);
            }
        }
        std::thread::sleep(Duration::from_secs(5));
        Ok::<_, io::Error>(())
    })();
    match filled {
        Ok(()) => Finding::failed(format!("{written} bytes were written and kept for 5 s")),
        Err(error) => Finding::failed(format!("after {written} bytes: {error}")),
    }
}

/// Fills one file. The first ones are unlinked and disappear with this process, however it ends;
/// there may be more than it can have open.
fn fill(n: usize, n_bytes: u64, written: &mut u64) -> io::Result<File> {
    const PIECE: u64 = 1 << 20;
    // Another attempt, in another sandbox, may have the same pid.
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos());
    let path = Path::new("/workspace").join(format!(".{NAME}-{now}-{n}"));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)?;
    if n < NAMELESS {
        fs::remove_file(&path)?;
    }
    let mut left = n_bytes;
    while left > 0 {
        let piece = left.min(PIECE);
        file.write_all(&vec![b'x'; piece as usize])?;
        left -= piece;
        *written += piece;
    }
    // Some file systems allocate late. For many small files a sync would take minutes.
    if n_bytes >= PIECE {
        file.sync_data()?;
    }
    Ok(file)
}

/// as many open files as possible, a little beyond the limit.
pub(super) fn open_files(arguments: &[String]) -> Finding {
    let limit = number(arguments, 0, 4096);
    let mut open = Vec::new();
    for _ in 0..limit + 32 {
        match File::open("/dev/null") {
            Ok(file) => open.push(file),
            Err(error) if error.raw_os_error() == Some(Errno::EMFILE as i32) => {
                return Finding::held(format!("the one after {} was refused", open.len()));
            }
            Err(error) => return Finding::failed(format!("after {}: {error}", open.len())),
        }
    }
    Finding::failed(format!("{} were opened", open.len()))
}

/// a process that leaves its session and its parent, and ignores TERM.
pub(super) fn daemon(_: &[String]) -> Finding {
    for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT] {
        ignore(signal);
    }
    match fork_single_threaded() {
        Ok(Fork::Parent(_)) => Finding::held("started"),
        Ok(Fork::Child) => {
            let _ = setsid();
            if let Ok(Fork::Parent(_)) = fork_single_threaded() {
                exit_now(0);
            }
            let _ = fs::write("/proc/self/comm", NAME);
            std::thread::sleep(Duration::from_secs(120));
            exit_now(0)
        }
        Err(error) => Finding::failed(format!("it could not be started: {error}")),
    }
}

/// Looks for leftovers of [`daemon`].
pub(super) fn count(_: &[String]) -> Finding {
    let mut left = BTreeSet::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        if fs::read_to_string(entry.path().join("comm")).is_ok_and(|name| name.trim() == NAME) {
            left.insert(entry.file_name());
        }
    }
    if left.is_empty() {
        Finding::held("nothing of it is left")
    } else {
        Finding::failed(format!("{} processes are left", left.len()))
    }
}

/// as many empty files as possible in a folder that is in memory, a little beyond the limit:
/// those on a disk are counted like the project's.
pub(super) fn inodes(_: &[String]) -> Finding {
    const MOST: u64 = 2_000_000;
    let in_memory =
        |place: &&str| statfs(*place).is_ok_and(|facts| facts.filesystem_type() == TMPFS_MAGIC);
    let Some(place) = ["/tmp", "/dev/shm"].into_iter().find(in_memory) else {
        return Finding::held("no folder in memory can be written");
    };
    let files = statfs(place).map_or(u64::MAX, |facts| facts.files());
    if files > MOST {
        return Finding::failed(format!(
            "{place} has no bound of its own; nothing was tried"
        ));
    }
    let most = files + 32;
    let folder = Path::new(place).join(format!(".{NAME}-{}", std::process::id()));
    if let Err(error) = fs::create_dir(&folder) {
        return Finding::failed(format!("no folder can be made in {place}: {error}"));
    }
    let mut found = Finding::failed(format!("{most} files were made"));
    for n in 0..most {
        if let Err(error) = File::create(folder.join(n.to_string())) {
            found = Finding::held(format!("the one after {n} was refused: {error}"));
            break;
        }
    }
    let _ = fs::remove_dir_all(&folder);
    found
}

fn ignore(signal: Signal) {
    #[expect(unsafe_code, reason = "a handler may be unsafe; ignoring is none")]
    // SAFETY: no handler runs.
    let _ = unsafe { nix::sys::signal::signal(signal, SigHandler::SigIgn) };
}
