use super::*;

#[test]
fn arguments_may_be_empty_and_unterminated() {
    let words = |bytes: &[u8]| Arguments::parse(bytes.to_vec()).words;
    assert_eq!(words(b"a\0\0b\0"), [&b"a"[..], b"", b"b"]);
    assert_eq!(words(b"a\0"), [b"a"]);
    assert_eq!(words(b"\0"), [b""]);
    assert_eq!(words(b"a b"), [b"a b"]);
    assert_eq!(words(b""), Vec::<Vec<u8>>::new());
    let long = Arguments::parse([b"x\0".repeat(200 * 1024)].concat());
    assert_eq!((long.truncated, long.words.len()), (true, 128 * 1024));
}

#[test]
fn this_process_is_read_with_its_program_and_arguments() {
    let program = after_exec(std::process::id() as i32).expect("it is there");
    let own: Vec<Vec<u8>> = std::env::args_os().map(OsStringExt::into_vec).collect();
    assert_eq!(
        program.argv,
        Arguments {
            words: own,
            truncated: false
        }
    );
    let file = program.file.expect("known");
    assert_eq!(
        file.name,
        std::env::current_exe()
            .expect("named")
            .into_os_string()
            .into_vec()
    );
    assert!(!file.is_unnamed() && super::after_exec(i32::MAX).is_none());
}

/// Lays arguments out as a process has them, and reads them as those of a question.
#[track_caller]
fn read(path: &str, words: &[&[u8]]) -> io::Result<Program> {
    let path = CString::new(path).expect("no zero byte");
    let words: Vec<CString> = words
        .iter()
        .map(|word| CString::new(*word).expect("no zero byte"))
        .collect();
    let pointers: Vec<*const libc::c_char> = words
        .iter()
        .map(|word| word.as_ptr())
        .chain([std::ptr::null()])
        .collect();
    let arguments = [path.as_ptr() as u64, pointers.as_ptr() as u64, 0, 0, 0, 0];
    let found = before_exec(&Question {
        id: 0,
        thread: nix::unistd::gettid().as_raw(),
        call: libc::SYS_execve,
        arguments,
    });
    // The pointers were valid until here.
    drop((path, words));
    found
}

#[test]
fn arguments_before_an_exec_are_read_within_bounds() {
    let found = read("/bin/sh", &[b"sh", b"", &[b'x'; 10_000], b"\xff"]).expect("read");
    assert_eq!(
        found.argv.words.iter().map(Vec::len).collect::<Vec<_>>(),
        [2, 0, 10_000, 1]
    );
    let file = found.file.expect("there");
    assert_eq!(
        Path::new(std::ffi::OsStr::from_bytes(&file.name)),
        fs::canonicalize("/bin/sh").expect("there")
    );
    let many: Vec<&[u8]> = vec![b"x"; 100_000];
    let found = read("/bin/sh", &many).expect("read");
    assert_eq!(
        (found.argv.words.len(), found.argv.truncated),
        (MAX_WORDS, true)
    );
    let long = vec![b'y'; 300 * 1024];
    let found = read("/bin/sh", &[b"sh", &long]).expect("read");
    assert_eq!((found.argv.words.len(), found.argv.truncated), (1, true));
    assert!(read("/nowhere/at/all", &[b"x"]).is_err() && read("", &[b"x"]).is_err());
    let nowhere = Question {
        id: 0,
        thread: nix::unistd::gettid().as_raw(),
        call: libc::SYS_execve,
        arguments: [8, 16, 0, 0, 0, 0],
    };
    assert!(before_exec(&nowhere).is_err());
}

#[test]
fn descriptors_belong_to_the_process_and_unnamed_files_are_recognized() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x");
    fs::write(&path, "x").expect("written");
    let file = File::open(&path).expect("there");
    for openable in ["/proc/self/fd", "/dev/fd"] {
        let found = read(&format!("{openable}/{}", file.as_raw_fd()), &[])
            .expect("read")
            .file
            .expect("there");
        assert!(found.name.ends_with(b"/x") && !found.is_unnamed());
    }
    fs::remove_file(&path).expect("removed");
    let found = read(&format!("/proc/self/fd/{}", file.as_raw_fd()), &[])
        .expect("read")
        .file
        .expect("there");
    assert!(
        found.is_unnamed(),
        "{}",
        String::from_utf8_lossy(&found.name)
    );
}
