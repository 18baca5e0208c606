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
                    libc::unshare(libc::CLONE_FILES) | libc::close_range(3, libc::c_uint::MAX, 0)
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
    let mut file = fs::File::from(openat(deepest, "hidden", flags, Mode::S_IRWXU).expect("made"));
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
        format!("7f0000000000-7f0000100000 rw-s 00000000 00:2f 1234                       {name}")
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
