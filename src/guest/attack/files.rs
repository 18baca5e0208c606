//! Attacks on the file system: making, opening, writing and reaching files.

use std::collections::BTreeSet;
use std::collections::VecDeque;
use std::fs;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::path::PathBuf;

use nix::sys::stat::Mode;
use nix::sys::stat::SFlag;
use nix::sys::stat::mknod;
use nix::unistd::AccessFlags;
use nix::unistd::access;

use super::Finding;

/// Most folders visited by a walk.
const MOST_FOLDERS: usize = 5000;

/// Where a command may write.
const WRITABLE: [&str; 6] = [
    "/workspace",
    "/tmp",
    "/var/tmp",
    "/home/agent",
    "/dev/shm",
    "/run",
];

/// Terminals, and the devices that every program relies on.
const DEVICES: [(u32, u32); 7] = [(1, 3), (1, 5), (1, 7), (1, 8), (1, 9), (5, 0), (5, 2)];

/// A name for this process, which no other attack uses at the same time.
fn own(folder: &str) -> PathBuf {
    Path::new(folder).join(format!(".podbay-attack-{}", std::process::id()))
}

/// ESC-04: making device files.
pub(super) fn devices_made(_: &[String]) -> Finding {
    let mut worked = Vec::new();
    let mut n_refused = 0;
    for folder in ["/tmp", "/workspace", "/dev/shm"] {
        for (kind, what, device) in [
            (SFlag::S_IFBLK, "a disk", libc::makedev(8, 0)),
            (SFlag::S_IFCHR, "memory", libc::makedev(1, 1)),
            (SFlag::S_IFCHR, "the null device", libc::makedev(1, 3)),
            // The kernel lets every user create this one: to an overlay file system it marks a
            // deleted name.
            (SFlag::S_IFCHR, "a whiteout", libc::makedev(0, 0)),
        ] {
            let path = own(folder);
            if mknod(&path, kind, Mode::S_IRUSR, device).is_ok() {
                let _ = fs::remove_file(&path);
                worked.push(format!("{what} made in {folder}"));
            } else {
                n_refused += 1;
            }
        }
    }
    Finding::of(&worked, format!("{n_refused} refused"))
}

/// ESC-05: sockets of the engine and of the user's session.
pub(super) fn sockets(_: &[String]) -> Finding {
    let mut worked = Vec::new();
    let known = [
        "docker.sock",
        "podman/podman.sock",
        "containerd/containerd.sock",
        "crio/crio.sock",
        "dbus/system_bus_socket",
    ];
    for folder in ["/run", "/var/run"] {
        for name in known {
            let path = Path::new(folder).join(name);
            if path.exists() || UnixStream::connect(&path).is_ok() {
                worked.push(path.display().to_string());
            }
        }
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    for line in mounts.lines() {
        let mut words = line.split(' ').skip(3);
        let (root, target) = (
            words.next().unwrap_or_default(),
            words.next().unwrap_or_default(),
        );
        if Path::new(root)
            .extension()
            .is_some_and(|ending| ending == "sock" || ending == "socket")
        {
            worked.push(format!("{target} mounted from {root}"));
        }
    }
    worked.dedup();
    Finding::of(&worked, "no socket is there")
}

/// ESC-06: kernel files that control it or reveal its state.
pub(super) fn kernel_files(_: &[String]) -> Finding {
    const WRITTEN: [&str; 8] = [
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/hostname",
        "/proc/sys/vm/drop_caches",
        "/proc/sysrq-trigger",
        "/sys/kernel/uevent_helper",
        "/sys/power/state",
        "/dev/kmsg",
        "/dev/mem",
    ];
    const READ: [&str; 6] = [
        "/proc/kcore",
        "/proc/keys",
        "/proc/timer_list",
        "/proc/sched_debug",
        "/dev/mem",
        "/dev/kmsg",
    ];
    let mut worked = Vec::new();
    for path in WRITTEN {
        // Opened and closed again: nothing is written.
        if OpenOptions::new()
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(path)
            .is_ok()
        {
            worked.push(format!("{path} opened for writing"));
        }
    }
    for path in READ {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(path);
        if file.is_ok_and(|mut file| file.read(&mut [0]).is_ok_and(|bytes| bytes > 0)) {
            worked.push(format!("{path} read"));
        }
    }
    // Reading would consume messages of other readers.
    if OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/proc/kmsg")
        .is_ok()
    {
        worked.push("/proc/kmsg opened".to_owned());
    }
    for folder in ["/sys/firmware", "/sys/kernel/debug"] {
        if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
            worked.push(format!("{folder} listed"));
        }
    }
    Finding::of(
        &worked,
        format!("{} refused or empty", WRITTEN.len() + READ.len() + 3),
    )
}

/// ESC-07: a set-id file in the project, which would work outside of the sandbox.
pub(super) fn set_id(_: &[String]) -> Finding {
    let path = own("/workspace");
    let mut worked = Vec::new();
    for mode in [0o4755, 0o2755] {
        let kept = |path: &Path| fs::metadata(path).is_ok_and(|facts| facts.mode() & 0o6000 != 0);
        let made = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&path)
            .is_ok()
            && kept(&path);
        let _ = fs::remove_file(&path);
        if fs::write(&path, "").is_err() {
            return Finding::failed(
                "no file can be made in /workspace at all, so nothing was tried",
            );
        }
        let changed =
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).is_ok() && kept(&path);
        let _ = fs::remove_file(&path);
        if made || changed {
            worked.push(format!("mode {mode:o}"));
        }
    }
    Finding::of(&worked, "refused, and plain files can be made")
}

/// ESC-08: folders in which files can be created. The upper ones come first, because the walk is
/// bounded.
pub(super) fn writable(_: &[String]) -> Finding {
    let mut waiting = VecDeque::from([PathBuf::from("/")]);
    let mut worked = Vec::new();
    let mut n_seen = 0;
    while let Some(folder) = waiting.pop_front() {
        n_seen += 1;
        if n_seen > MOST_FOLDERS {
            break;
        }
        let path = folder.to_string_lossy().into_owned();
        if WRITABLE.contains(&path.as_str()) || path == "/proc" || path == "/sys" {
            continue;
        }
        // `access` succeeds for folders in which nothing can be created, so it is tried.
        let file = own(&path);
        if access(&folder, AccessFlags::W_OK).is_ok()
            && OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&file)
                .is_ok()
        {
            let _ = fs::remove_file(&file);
            worked.push(path);
            continue;
        }
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        waiting.extend(
            entries
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                .map(|entry| entry.path()),
        );
    }
    Finding::of(
        &worked,
        format!("of {n_seen} folders none but those for it"),
    )
}

/// ESC-15: devices of the machine. None is opened: opening alone affects some devices.
pub(super) fn devices(_: &[String]) -> Finding {
    let mut found = Vec::new();
    let mut waiting = vec![PathBuf::from("/dev")];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(facts) = entry.metadata() else {
                continue;
            };
            let kind = facts.file_type();
            if kind.is_dir() {
                // Terminals of the sandbox.
                if !entry.path().ends_with("pts") {
                    waiting.push(entry.path());
                }
            } else if kind.is_block_device() || kind.is_char_device() {
                let number = (libc::major(facts.rdev()), libc::minor(facts.rdev()));
                if !DEVICES.contains(&number) {
                    found.push(entry.path().display().to_string());
                }
            }
        }
    }
    found.sort();
    Finding::of(&found, "none but those that every program counts on")
}

/// ESC-16: the guest's own program.
pub(super) fn guest_program(_: &[String]) -> Finding {
    const FOLDER: &str = "/run/podbay/bin";
    let program = Path::new(FOLDER).join("podbay");
    let mut worked = Vec::new();
    if OpenOptions::new().write(true).open(&program).is_ok() {
        worked.push("opened for writing".to_owned());
    }
    if OpenOptions::new().read(true).open(&program).is_ok() {
        worked.push("read".to_owned());
    }
    let (beside, moved) = (own(FOLDER), Path::new(FOLDER).join("moved"));
    if fs::write(&beside, "").is_ok() {
        let _ = fs::remove_file(&beside);
        worked.push("a file made beside it".to_owned());
    }
    if fs::rename(&program, &moved).is_ok() {
        let _ = fs::rename(&moved, &program);
        worked.push("moved away".to_owned());
    }
    Finding::of(&worked, "4 refused")
}

/// G-01: files that the user's next git command would execute.
pub(super) fn git(_: &[String]) -> Finding {
    let folder = Path::new("/workspace/.git");
    if !folder.exists() {
        return Finding::failed("there is no .git in this project, so nothing was tried");
    }
    let mut worked = Vec::new();
    for name in ["", "hooks", "objects"] {
        let path = own(&folder.join(name).to_string_lossy());
        if fs::write(&path, "").is_ok() {
            let _ = fs::remove_file(&path);
            worked.push(format!("a file made in .git/{name}"));
        }
    }
    if OpenOptions::new()
        .append(true)
        .open(folder.join("config"))
        .is_ok()
    {
        worked.push(".git/config opened for writing".to_owned());
    }
    let moved = own("/workspace");
    if fs::rename(folder, &moved).is_ok() {
        let _ = fs::rename(&moved, folder);
        worked.push(".git moved away".to_owned());
    }
    Finding::of(&worked, "5 refused")
}

/// C-04: files that would configure the next run. Where there are none, a file created by a command
/// is not trusted.
pub(super) fn settings(_: &[String]) -> Finding {
    let folder = Path::new("/workspace/.podbay");
    if !folder.exists() {
        return Finding::held(
            "there is no .podbay in this project; one that a command makes is not trusted",
        );
    }
    let mut worked = Vec::new();
    let path = own(&folder.to_string_lossy());
    if fs::write(&path, "").is_ok() {
        let _ = fs::remove_file(&path);
        worked.push("a file made in .podbay".to_owned());
    }
    if OpenOptions::new()
        .append(true)
        .open(folder.join("config.toml"))
        .is_ok()
    {
        worked.push(".podbay/config.toml opened for writing".to_owned());
    }
    let moved = own("/workspace");
    if fs::rename(folder, &moved).is_ok() {
        let _ = fs::rename(&moved, folder);
        worked.push(".podbay moved away".to_owned());
    }
    Finding::of(&worked, "3 refused")
}

/// S-01: the environment of commands and of other processes. The host judges it.
pub(super) fn environment(_: &[String]) -> Finding {
    let mut pairs: BTreeSet<String> = std::env::vars_os()
        .map(|(name, value)| format!("{}={}", name.display(), value.display()))
        .collect();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let bytes = fs::read(entry.path().join("environ")).unwrap_or_default();
        pairs.extend(
            bytes
                .split(|&byte| byte == 0)
                .map(|pair| String::from_utf8_lossy(pair).into_owned()),
        );
    }
    Finding::held(
        pairs
            .into_iter()
            .filter(|pair| !pair.is_empty())
            .collect::<Vec<_>>()
            .join("\0"),
    )
}

/// Creates the folder that the host's own attacks by tools use: links in every form that could lead
/// out.
pub(super) fn make_links(arguments: &[String]) -> Finding {
    let Some(folder) = folder(arguments) else {
        return Finding::failed("no folder is named");
    };
    let made = || -> std::io::Result<()> {
        // An earlier run was killed before it cleaned up.
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir(&folder)?;
        fs::create_dir(folder.join("inside"))?;
        fs::write(folder.join("inside/file"), "inside\n")?;
        for (name, target) in [
            ("home", "/home/agent"),
            ("above", "../../etc"),
            ("dangling", "/tmp/podbay-attack-outside"),
            ("circle", "circle"),
            ("good", "inside"),
        ] {
            std::os::unix::fs::symlink(target, folder.join(name))?;
        }
        nix::unistd::mkfifo(&folder.join("fifo"), Mode::S_IRUSR | Mode::S_IWUSR)?;
        Ok(())
    };
    match made() {
        Ok(()) => Finding::held("made"),
        Err(error) => Finding::failed(format!(
            "the folder {} cannot be made: {error}",
            folder.display()
        )),
    }
}

/// Removes what [`make_links`] created; reports what an attack left outside.
pub(super) fn tidy(arguments: &[String]) -> Finding {
    let Some(folder) = folder(arguments) else {
        return Finding::failed("no folder is named");
    };
    let left = Path::new("/tmp/podbay-attack-outside").exists()
        || Path::new("/home/agent/podbay-attack").exists();
    match fs::remove_dir_all(&folder) {
        Ok(()) if left => Finding::failed("a file outside of /workspace was made"),
        Ok(()) => Finding::held("removed"),
        Err(error) => Finding::failed(format!("{} cannot be removed: {error}", folder.display())),
    }
}

fn folder(arguments: &[String]) -> Option<PathBuf> {
    let name = arguments
        .first()
        .filter(|name| !name.is_empty() && !name.contains('/'))?;
    Some(Path::new("/workspace").join(name))
}
