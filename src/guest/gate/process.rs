//! What is read about a process that waits: the program that it executes or is about to execute,
//! its arguments, its working directory.
//!
//! Before an exec the data lies in the memory of the process, which may change it meanwhile. After
//! the exec it is what the kernel took.

use std::ffi::CString;
use std::fs;
use std::fs::File;
use std::fs::Metadata;
use std::io;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;

use nix::fcntl::AtFlags;
use nix::sys::statfs::FsType;
use nix::sys::statfs::fstatfs;

use super::folder_rename::RenameEnd;
use super::folder_rename::is_folder;
use super::listener::Question;
use super::matching::Invocation;

/// Most bytes of arguments that are read, and most arguments read from a process's memory, one by
/// one.
const MAX_BYTES: u64 = 256 * 1024;
const MAX_WORDS: usize = 4096;

/// Longest path, and how much of an argument is read at once; the kernel's pages are no smaller.
pub(super) const MAX_PATH: usize = 4096;
const PAGE: u64 = 4096;

/// A program that is about to be executed, or was executed and has not run yet.
#[derive(Debug, Default)]
pub(super) struct Program {
    /// The path given to `execve`, where it is known.
    pub(super) called: Vec<u8>,
    /// The file, named by the kernel; `None` where it is unknown.
    pub(super) file: Option<HeldFile>,
    pub(super) argv: Arguments,
}

/// An open `O_PATH` descriptor's file: it stays the same file when its name changes.
#[derive(Debug)]
pub(super) struct HeldFile {
    pub(super) name: Vec<u8>,
    pub(super) metadata: Metadata,
    /// Path under `/proc/self/fd` or `/proc/PID/exe` by which it can be opened.
    pub(super) openable: PathBuf,
    /// Keeps `openable` valid.
    _held: Option<File>,
}

/// The arguments of a program, `argv[0]` first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Arguments {
    pub(super) words: Vec<Vec<u8>>,
    /// Whether there are more of them than were read.
    pub(super) truncated: bool,
}

impl Arguments {
    /// Parses `/proc/PID/cmdline`: each argument ends with a zero byte.
    fn parse(mut bytes: Vec<u8>) -> Self {
        let truncated = bytes.len() as u64 > MAX_BYTES;
        bytes.truncate(MAX_BYTES as usize);
        if bytes.last() == Some(&0) {
            bytes.pop();
        } else if bytes.is_empty() {
            return Self::default();
        }
        Self {
            words: bytes.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect(),
            truncated,
        }
    }
}

/// Reads what a process executes now; `None`: it is gone.
pub(super) fn after_exec(process: i32) -> Option<Program> {
    let mut bytes = Vec::with_capacity(1024);
    File::open(format!("/proc/{process}/cmdline"))
        .ok()?
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .ok()?;
    let openable = PathBuf::from(format!("/proc/{process}/exe"));
    let file = fs::read_link(&openable).and_then(|name| {
        let metadata = fs::metadata(&openable)?;
        Ok(HeldFile {
            name: name.into_os_string().into_vec(),
            metadata,
            openable,
            _held: None,
        })
    });
    Some(Program {
        called: kernel_name(process),
        file: file.ok(),
        argv: Arguments::parse(bytes),
    })
}

/// Returns the name that the kernel gives a program after the path that was called (a script's own
/// included). It keeps 15 bytes; a name of that length may be longer, so it is not returned.
fn kernel_name(process: i32) -> Vec<u8> {
    const KEPT: usize = 15;
    let mut name = fs::read(format!("/proc/{process}/comm")).unwrap_or_default();
    if name.last() == Some(&b'\n') {
        name.pop();
    }
    if name.len() < KEPT { name } else { Vec::new() }
}

/// Reads what a process is about to execute. An error: its memory is not readable, or the path
/// leads nowhere.
pub(super) fn before_exec(question: &Question) -> io::Result<Program> {
    let [first, second, third, _, fifth, _] = question.arguments;
    let (folder, path, argv, flags) = if question.call == libc::SYS_execveat {
        (first as i32, second, third, fifth as i32)
    } else {
        (libc::AT_FDCWD, first, second, 0)
    };
    let memory = File::open(format!("/proc/{}/mem", question.thread))?;
    let called = text(&memory, path, MAX_PATH)?.ok_or(io::ErrorKind::InvalidInput)?;
    let file = hold(question.thread, folder, &called, flags)?;
    Ok(Program {
        argv: words(&memory, argv)?,
        called,
        file: Some(file),
    })
}

/// Returns both ends of a rename that a process asks for, and its flags, where a folder of an
/// overlay is to be renamed.
pub(super) fn folder_to_rename(
    question: &Question,
) -> io::Result<Option<(RenameEnd, RenameEnd, u32)>> {
    const OVERLAY: FsType = FsType(0x794c_7630);
    let [first, second, third, fourth, fifth, _] = question.arguments;
    let (from, to, flags) = match question.call {
        libc::SYS_renameat2 => ((first as i32, second), (third as i32, fourth), fifth as u32),
        libc::SYS_renameat => ((first as i32, second), (third as i32, fourth), 0),
        _ => ((libc::AT_FDCWD, first), (libc::AT_FDCWD, second), 0),
    };
    if flags & !libc::RENAME_NOREPLACE != 0 {
        return Ok(None);
    }
    let memory = File::open(format!("/proc/{}/mem", question.thread))?;
    let Some(from) = place(
        question.thread,
        from.0,
        &text(&memory, from.1, MAX_PATH)?.unwrap_or_default(),
    )?
    else {
        return Ok(None);
    };
    let found = nix::sys::stat::fstatat(
        &from.folder,
        from.name.as_c_str(),
        AtFlags::AT_SYMLINK_NOFOLLOW,
    )?;
    if !is_folder(&found) || fstatfs(&from.folder)?.filesystem_type() != OVERLAY {
        return Ok(None);
    }
    let to = place(
        question.thread,
        to.0,
        &text(&memory, to.1, MAX_PATH)?.unwrap_or_default(),
    )?;
    Ok(to.map(|to| (from, to, flags)))
}

/// Opens the parent folder of a path; `None`: the path does not end with a name.
fn place(process: i32, folder: i32, path: &[u8]) -> io::Result<Option<RenameEnd>> {
    let end = path
        .iter()
        .rposition(|&byte| byte != b'/')
        .map_or(0, |end| end + 1);
    let path = &path[..end];
    let start = path
        .iter()
        .rposition(|&byte| byte == b'/')
        .map_or(0, |slash| slash + 1);
    let (above, name) = path.split_at(start);
    if matches!(name, b"" | b"." | b"..") {
        return Ok(None);
    }
    let openable = openable(process, folder, if above.is_empty() { b"." } else { above });
    let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
    let folder = File::options()
        .read(true)
        .custom_flags(flags)
        .open(Path::new(std::ffi::OsStr::from_bytes(&openable)))?;
    let name = CString::new(name).map_err(|_| io::ErrorKind::InvalidInput)?;
    Ok(Some(RenameEnd {
        folder: folder.into(),
        name,
    }))
}

/// Returns a path by which the path of another process can be opened from here.
fn openable(process: i32, folder: i32, path: &[u8]) -> Vec<u8> {
    let own = |rest: &[u8]| [format!("/proc/{process}").as_bytes(), rest].concat();
    match path {
        // These links mean the reading process to the kernel.
        [
            b'/',
            b'p',
            b'r',
            b'o',
            b'c',
            b'/',
            b's',
            b'e',
            b'l',
            b'f',
            rest @ ..,
        ] => own(rest),
        [b'/', b'd', b'e', b'v', b'/', b'f', b'd', rest @ ..] => own(&[b"/fd", rest].concat()),
        [b'/', ..] => path.to_vec(),
        _ if folder == libc::AT_FDCWD => own(&[b"/cwd/", path].concat()),
        _ => own(&[format!("/fd/{folder}/").as_bytes(), path].concat()),
    }
}

/// Opens the file that a path means to a process.
fn hold(process: i32, folder: i32, path: &[u8], flags: i32) -> io::Result<HeldFile> {
    let openable = match path {
        [] if flags & libc::AT_EMPTY_PATH == 0 => return Err(io::ErrorKind::NotFound.into()),
        [] if folder == libc::AT_FDCWD => format!("/proc/{process}/cwd").into_bytes(),
        [] => format!("/proc/{process}/fd/{folder}").into_bytes(),
        path => openable(process, folder, path),
    };
    let held = File::options()
        .read(true)
        .custom_flags(libc::O_PATH | libc::O_CLOEXEC)
        .open(Path::new(std::ffi::OsStr::from_bytes(&openable)))?;
    let openable = PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()));
    let name = fs::read_link(&openable)?.into_os_string().into_vec();
    Ok(HeldFile {
        name,
        metadata: held.metadata()?,
        openable,
        _held: Some(held),
    })
}

impl HeldFile {
    /// Opens another file that a process names, such as the program behind a loader.
    pub(super) fn of(process: i32, path: &[u8]) -> Option<Self> {
        hold(process, libc::AT_FDCWD, path, 0).ok()
    }

    /// Returns whether the file has no name any more.
    pub(super) fn is_unnamed(&self) -> bool {
        self.name.ends_with(b" (deleted)")
            || self.name.starts_with(b"/memfd:")
            || !self.name.starts_with(b"/")
    }
}

/// Reads the strings of an array of pointers.
fn words(memory: &File, array: u64) -> io::Result<Arguments> {
    const SIZE: u64 = size_of::<u64>() as u64;
    let mut all = Arguments::default();
    let mut n_bytes = 0;
    let mut pointers = Vec::new();
    if array == 0 {
        return Ok(all);
    }
    for n in 0.. {
        if all.words.len() >= MAX_WORDS || n_bytes >= MAX_BYTES as usize {
            all.truncated = true;
            break;
        }
        if pointers.is_empty() {
            let at = array
                .checked_add(n * SIZE)
                .ok_or(io::ErrorKind::InvalidInput)?;
            // To the end of its page: the next one may not be mapped.
            let mut bytes =
                vec![0; ((PAGE - at % PAGE).clamp(SIZE, 64 * SIZE) / SIZE * SIZE) as usize];
            memory.read_exact_at(&mut bytes, at)?;
            pointers = bytes
                .chunks_exact(SIZE as usize)
                .rev()
                .map(|bytes| u64::from_ne_bytes(bytes.try_into().expect("eight")))
                .collect();
        }
        let Some(pointer) = pointers.pop().filter(|&pointer| pointer != 0) else {
            break;
        };
        if let Some(word) = text(memory, pointer, MAX_BYTES as usize - n_bytes)? {
            n_bytes += word.len() + 1;
            all.words.push(word);
        } else {
            all.truncated = true;
            break;
        }
    }
    Ok(all)
}

/// Reads a string that ends with a zero byte; `None`: it is longer than `most`.
pub(super) fn text(memory: &File, mut at: u64, most: usize) -> io::Result<Option<Vec<u8>>> {
    let mut text = Vec::new();
    let mut page = [0; PAGE as usize];
    // Most arguments are short.
    let mut room = 256;
    while text.len() <= most {
        let length = (PAGE - at % PAGE).min(room) as usize;
        memory.read_exact_at(&mut page[..length], at)?;
        if let Some(end) = memchr::memchr(0, &page[..length]) {
            text.extend_from_slice(&page[..end]);
            return Ok((text.len() <= most).then_some(text));
        }
        text.extend_from_slice(&page[..length]);
        at = at
            .checked_add(length as u64)
            .ok_or(io::ErrorKind::InvalidInput)?;
        room = PAGE;
    }
    Ok(None)
}

/// Returns the working directory of a process.
pub(super) fn directory(process: i32) -> Vec<u8> {
    fs::read_link(format!("/proc/{process}/cwd"))
        .map(|path| path.into_os_string().into_vec())
        .unwrap_or_default()
}

/// Returns what a process executes now, by its name alone.
pub(super) fn executed_by(thread: i32) -> Option<Invocation> {
    let name = fs::read_link(format!("/proc/{thread}/exe")).ok()?;
    Some(Invocation::default().named(name.as_os_str().as_bytes()))
}

/// Returns the process that a thread belongs to.
pub(super) fn process_of(thread: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("Tgid:"))?
        .trim()
        .parse()
        .ok()
}

/// Returns the umask of a process.
pub(super) fn umask(process: i32) -> u32 {
    const USUAL: u32 = 0o022;
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let umask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    umask
        .and_then(|umask| u32::from_str_radix(umask.trim(), 8).ok())
        .unwrap_or(USUAL)
}

/// Returns whether a process has a controlling terminal; one that is gone has none.
pub(super) fn has_terminal(process: i32) -> bool {
    let stat = fs::read(format!("/proc/{process}/stat")).unwrap_or_default();
    // The command name may hold any bytes, and ends with the last parenthesis.
    let fields = stat.rsplit(|&byte| byte == b')').next().unwrap_or_default();
    fields
        .split(|&byte| byte == b' ')
        .nth(5)
        .is_some_and(|number| number != b"0")
}

#[cfg(test)]
mod tests;
