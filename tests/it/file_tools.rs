//! The file tools on a real folder, through the call that the guest makes.

use std::fs;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;
use std::time::SystemTime;

use nix::fcntl::AT_FDCWD;
use nix::fcntl::RenameFlags;
use nix::fcntl::renameat2;
use podbay::guest::tools::Workspace;
use podbay::guest::tools::run;
use podbay::wire::BytesPath;
use podbay::wire::Call;
use podbay::wire::EditFile;
use podbay::wire::Edited;
use podbay::wire::Encoding;
use podbay::wire::Fault;
use podbay::wire::FileText;
use podbay::wire::FoundFiles;
use podbay::wire::Glob;
use podbay::wire::Grep;
use podbay::wire::GrepOutput;
use podbay::wire::ListDirectory;
use podbay::wire::Matches;
use podbay::wire::Output;
use podbay::wire::Read;
use podbay::wire::ReadFile;
use podbay::wire::Replacement;
use podbay::wire::WriteFile;
use podbay::wire::Written;
use podbay::wire::frame;

/// A project in a folder of its own, with a folder beside it that nothing may touch.
struct Project {
    _folder: tempfile::TempDir,
    path: PathBuf,
    outside: PathBuf,
    workspace: Workspace,
}

impl Project {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("project");
        let outside = folder.path().join("outside");
        fs::create_dir(&path).expect("made");
        fs::create_dir(&outside).expect("made");
        fs::write(outside.join("secret"), "secret\n").expect("written");
        let workspace = Workspace::open(&path).expect("opens");
        let project = Self { _folder: folder, path, outside, workspace };
        for (name, text) in files {
            project.put(name, text);
        }
        project
    }

    fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path.join(name);
        fs::create_dir_all(path.parent().expect("has one")).expect("made");
        fs::write(path, bytes).expect("written");
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path.join(name)).expect("is there")
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).expect("is text")
    }

    fn call(&self, call: impl std::borrow::Borrow<Call>) -> Output {
        let output = run(&self.workspace, call.borrow(), &AtomicBool::new(false));
        frame::encode(&output).expect("every output fits its frame");
        output
    }

    #[track_caller]
    fn read_page(&self, path: &str, offset: u64, limit: u64) -> Result<FileText, Fault> {
        match self.call(Call::ReadFile(ReadFile { offset, limit, ..read(path) })) {
            Output::Read(Read { mut files, .. }) => Ok(files.remove(0)),
            Output::Fault(fault) => Err(fault),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn read(&self, path: &str) -> Result<FileText, Fault> {
        self.read_page(path, 1, 2000)
    }

    #[track_caller]
    fn write(&self, path: &str, content: &str) -> Result<Written, Fault> {
        match self.call(Call::WriteFile(WriteFile { path: path.into(), content: content.into(), append: false })) {
            Output::Written(written) => Ok(written),
            Output::Fault(fault) => Err(fault),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn append(&self, path: &str, content: &str) -> Result<Written, Fault> {
        match self.call(Call::WriteFile(WriteFile { path: path.into(), content: content.into(), append: true })) {
            Output::Written(written) => Ok(written),
            Output::Fault(fault) => Err(fault),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn edits(&self, path: &str, edits: &[(&str, &str)], create_if_missing: bool) -> Result<Edited, Fault> {
        let edits = edits.iter().map(|(old, new)| Replacement { old_string: (*old).into(), new_string: (*new).into(), replace_all: false });
        match self.call(Call::EditFile(EditFile { path: path.into(), edits: edits.collect(), create_if_missing })) {
            Output::Edited(edited) => Ok(edited),
            Output::Fault(fault) => Err(fault),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn edit(&self, path: &str, old: &str, new: &str) -> Result<Edited, Fault> {
        self.edits(path, &[(old, new)], false)
    }

    /// One line for each entry, and how many are left out.
    #[track_caller]
    fn list(&self, call: ListDirectory) -> (Vec<String>, u64) {
        match self.call(Call::ListDirectory(call)) {
            Output::Listing(listing) => {
                let entries = listing.entries.iter().map(|entry| {
                    let bytes = entry.bytes.map(|bytes| format!(" {bytes}")).unwrap_or_default();
                    let target = entry.target.as_ref().map(|target| format!(" -> {target}")).unwrap_or_default();
                    format!("{:?} {}{bytes}{target}", entry.kind, entry.path)
                });
                (entries.collect(), listing.omitted.expect("is counted"))
            }
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn found(&self, call: Glob) -> FoundFiles {
        match self.call(Call::Glob(call)) {
            Output::Files(found) => found,
            other => panic!("{other:?}"),
        }
    }

    /// The names found, sorted.
    #[track_caller]
    fn glob(&self, pattern: &str) -> Vec<String> {
        let mut paths: Vec<String> = self.found(glob(pattern)).paths.iter().map(BytesPath::to_text).collect();
        paths.sort();
        paths
    }

    #[track_caller]
    fn matches(&self, call: Grep) -> Matches {
        match self.call(Call::Grep(call)) {
            Output::Matches(matches) => matches,
            other => panic!("{other:?}"),
        }
    }

    /// One line for each line shown, in ripgrep's manner.
    #[track_caller]
    fn grep(&self, call: Grep) -> Vec<String> {
        let files = self.matches(call).files;
        let lines = files.iter().flat_map(|file| {
            file.lines.iter().map(move |line| {
                let mark = if line.matched { ':' } else { '-' };
                format!("{}{mark}{}{mark}{}", file.path, line.number, line.text)
            })
        });
        lines.collect()
    }

    /// Nothing was made, changed or left beside the project, and no temporary file in it.
    #[track_caller]
    fn check_untouched(&self) {
        let names: Vec<_> = fs::read_dir(&self.outside).expect("lists").flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(names, ["secret"]);
        assert_eq!(fs::read(self.outside.join("secret")).expect("is there"), b"secret\n");
        Self::check_tidy(&self.path);
    }

    #[track_caller]
    fn check_tidy(folder: &Path) {
        for entry in fs::read_dir(folder).expect("lists").flatten() {
            assert!(!entry.file_name().to_string_lossy().starts_with(".podbay-"), "{entry:?} was left");
            if entry.file_type().expect("has one").is_dir() {
                Self::check_tidy(&entry.path());
            }
        }
    }
}

fn read(path: &str) -> ReadFile {
    ReadFile { path: Some(path.into()), offset: 1, limit: 2000, max_bytes: 50_000, cursor: None, max_files: 5 }
}

fn list(path: &str) -> ListDirectory {
    ListDirectory { path: path.into(), recursive: false, show_hidden: false, max_entries: 1000 }
}

fn glob(pattern: &str) -> Glob {
    Glob { pattern: pattern.into(), path: "".into(), exclude: None, max_results: 500 }
}

fn grep(pattern: &str) -> Grep {
    Grep {
        pattern: pattern.into(),
        path: "".into(),
        glob: None,
        context: 0,
        case_insensitive: false,
        output: GrepOutput::Content,
        max_results: 500,
        timeout_ms: 60_000,
    }
}

mod paths {
    use super::*;

    type Expected = fn(&Fault) -> bool;

    /// Tries every tool that takes a file on a path and returns what each says.
    fn faults(project: &Project, path: &str) -> Vec<Fault> {
        let faults = vec![
            project.read(path).expect_err("read"),
            project.write(path, "new").expect_err("write"),
            project.append(path, "new").expect_err("append"),
            project.edit(path, "secret", "public").expect_err("edit"),
        ];
        project.check_untouched();
        faults
    }

    #[track_caller]
    fn check_outside(project: &Project, path: &str) {
        for fault in faults(project, path) {
            assert!(matches!(fault, Fault::Outside { .. }), "{path}: {fault:?}");
        }
    }

    #[test]
    fn a_path_that_leads_out_is_refused_by_every_tool() {
        let project = Project::new(&[("a/b", "b")]);
        for path in [
            "../outside/secret",
            "/workspace/../outside/secret",
            "a/../../outside/secret",
            "/etc/shadow",
            "/proc/self/environ",
            "/workspacefoo/x",
        ] {
            check_outside(&project, path);
        }
        for path in ["..", "/", "/workspace/..", "a/../.."] {
            let output = project.call(Call::ListDirectory(list(path)));
            assert!(matches!(output, Output::Fault(Fault::Outside { .. })), "{path}: {output:?}");
            let output = project.call(Call::Grep(Grep { path: path.into(), ..grep("secret") }));
            assert!(matches!(output, Output::Fault(Fault::Outside { .. })), "{path}: {output:?}");
            let output = project.call(Call::Glob(Glob { path: path.into(), ..glob("*") }));
            assert!(matches!(output, Output::Fault(Fault::Outside { .. })), "{path}: {output:?}");
        }
        assert!(matches!(project.call(Call::Glob(glob("../outside/*"))), Output::Fault(Fault::Outside { .. })));
    }

    #[test]
    fn a_link_that_leads_out_is_refused_wherever_it_stands() {
        let project = Project::new(&[("a/b", "b")]);
        let link = |target: &Path, name: &str| symlink(target, project.path.join(name)).expect("linked");
        link(&project.outside, "absolute");
        link(Path::new("../outside"), "relative");
        link(Path::new("../../outside/secret"), "a/file");
        link(Path::new("../outside/new"), "dangling");
        link(Path::new("relative"), "twice");
        link(Path::new("/proc/self/root/etc/passwd"), "magic");
        for path in ["absolute/secret", "relative/secret", "a/file", "twice/secret", "relative/new/deep", "magic"] {
            check_outside(&project, path);
        }
        check_outside(&project, "dangling");
    }

    #[test]
    fn links_inside_the_project_work() {
        let project = Project::new(&[("real/file", "old\n")]);
        symlink("real", project.path.join("folder")).expect("linked");
        symlink("folder/file", project.path.join("file")).expect("linked");
        symlink("../file", project.path.join("real/back")).expect("linked");
        assert_eq!(project.read("real/back").expect("reads").text, "old\n");
        project.edit("file", "old", "new").expect("edits");
        project.append("real/back", "more\n").expect("appends");
        assert_eq!(project.text("real/file"), "new\nmore\n");
        project.write("folder/other", "x").expect("writes");
        assert_eq!(project.text("real/other"), "x");
        assert!(project.path.join("file").is_symlink(), "the link stays a link");
        symlink("real/made", project.path.join("dangling")).expect("linked");
        assert!(project.write("dangling", "y").expect("writes").created);
        assert_eq!(project.text("real/made"), "y");
        project.check_untouched();
    }

    #[test]
    fn links_in_a_circle_end() {
        let project = Project::new(&[]);
        symlink("b", project.path.join("a")).expect("linked");
        symlink("a", project.path.join("b")).expect("linked");
        for fault in faults(&project, "a") {
            assert!(fault.to_string().contains("symbolic links"), "{fault}");
        }
    }

    #[test]
    fn paths_that_can_be_no_file_are_typed_faults() {
        let project = Project::new(&[("file", "x"), ("folder/x", "x")]);
        let long_name = "n".repeat(256);
        let long_path = "d/".repeat(2100);
        let cases: &[(&str, Expected)] = &[
            ("", |fault| matches!(fault, Fault::Invalid { .. })),
            (".", |fault| matches!(fault, Fault::IsDirectory { .. })),
            ("/workspace", |fault| matches!(fault, Fault::IsDirectory { .. })),
            ("folder", |fault| matches!(fault, Fault::IsDirectory { .. })),
            ("folder/", |fault| matches!(fault, Fault::IsDirectory { .. })),
            ("folder/..", |fault| matches!(fault, Fault::IsDirectory { .. })),
            ("file/", |fault| matches!(fault, Fault::NotDirectory { .. })),
            ("file/x", |fault| matches!(fault, Fault::NotDirectory { .. })),
            (&long_name, |fault| matches!(fault, Fault::Invalid { .. })),
            (&long_path, |fault| matches!(fault, Fault::Invalid { .. } | Fault::IsDirectory { .. } | Fault::NotFound { .. })),
            ("a\0b", |fault| matches!(fault, Fault::Invalid { .. })),
        ];
        for (path, expected) in cases {
            for fault in faults(&project, path) {
                assert!(expected(&fault), "{path:?}: {fault:?}");
            }
        }
        assert!(matches!(project.call(Call::ListDirectory(list("file"))), Output::Fault(Fault::NotDirectory { .. })));
    }

    #[test]
    fn a_write_that_cannot_be_made_leaves_no_folders() {
        let project = Project::new(&[]);
        project.write(&format!("made/for/{}", "n".repeat(256)), "x").expect_err("too long");
        assert!(!project.path.join("made").exists());
    }

    #[test]
    fn what_is_no_regular_file_never_hangs() {
        let project = Project::new(&[("x", "needle\n")]);
        nix::unistd::mkfifo(&project.path.join("pipe"), nix::sys::stat::Mode::from_bits_truncate(0o666)).expect("made");
        nix::unistd::mkfifo(&project.path.join(".gitignore"), nix::sys::stat::Mode::from_bits_truncate(0o666)).expect("made");
        let _socket = std::os::unix::net::UnixListener::bind(project.path.join("socket")).expect("bound");
        for path in ["pipe", "socket"] {
            for fault in faults(&project, path) {
                assert!(matches!(fault, Fault::NotRegular { .. }), "{path}: {fault:?}");
            }
            let output = project.call(Call::Grep(Grep { path: path.into(), ..grep("x") }));
            assert!(matches!(output, Output::Fault(Fault::NotRegular { .. })), "{output:?}");
        }
        assert_eq!(project.grep(grep("needle")), ["x:1:needle"]);
        assert_eq!(project.glob("*"), ["x"]);
    }

    #[test]
    fn a_missing_file_names_those_that_may_be_meant() {
        let project = Project::new(&[("src/main.rs", ""), ("src/lib.rs", ""), ("README.md", "")]);
        let similar = |path: &str| match project.read(path) {
            Err(Fault::NotFound { similar, .. }) => similar.iter().map(BytesPath::to_text).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        assert_eq!(similar("src/mian.rs"), ["src/main.rs"]);
        assert_eq!(similar("readme.md"), ["README.md"]);
        assert_eq!(similar("scr/main.rs"), ["src"]);
        assert_eq!(similar("/workspace/src/Lib.rs"), ["src/lib.rs"]);
        assert!(similar("nothing-like-it").is_empty());
    }

    #[test]
    fn swapping_a_folder_for_a_link_never_leads_out() {
        let project = Project::new(&[("swapped/secret", "public\n")]);
        symlink("../outside", project.path.join("link")).expect("linked");
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (one, other) = (project.path.join("swapped"), project.path.join("link"));
                while !stop.load(Ordering::Relaxed) {
                    renameat2(AT_FDCWD, &one, AT_FDCWD, &other, RenameFlags::RENAME_EXCHANGE).expect("swaps");
                }
            });
            let end = Instant::now() + Duration::from_millis(500);
            while Instant::now() < end {
                if let Ok(file) = project.read("swapped/secret") {
                    assert_eq!(file.text, "public\n");
                }
                let _ = project.write("swapped/made", "x");
                let _ = project.write("swapped/deep/made", "x");
                let _ = project.edit("swapped/secret", "secret", "stolen");
                let found = project.grep(grep("secret"));
                assert!(found.is_empty(), "{found:?}");
            }
            stop.store(true, Ordering::Relaxed);
        });
        project.check_untouched();
    }
}

mod reading {
    use super::*;

    #[test]
    fn a_page_says_where_it_stands_in_the_file() {
        let project = Project::new(&[("f", "one\ntwo\r\nthree")]);
        let page = project.read_page("/workspace/f", 2, 1).expect("reads");
        assert_eq!((page.text.as_str(), page.first_line, page.n_lines, page.total_lines, page.more), ("two\r\n", 2, 1, Some(3), true));
        assert_eq!((page.path.to_text().as_str(), page.bytes, page.encoding), ("f", 14, Encoding::Utf8));
        let fault = project.read_page("f", 9, 1).expect_err("behind the end");
        assert!(fault.to_string().contains("has 3 lines"), "{fault}");
    }

    #[track_caller]
    fn check_text(bytes: &[u8], text: &str, encoding: Encoding) {
        let project = Project::new(&[]);
        project.put("f", bytes);
        let page = project.read("f").expect("reads");
        assert_eq!((page.text.as_str(), page.encoding), (text, encoding));
    }

    #[test]
    fn encodings_are_told_apart() {
        check_text(b"", "", Encoding::Utf8);
        check_text("\u{feff}é\n".as_bytes(), "é\n", Encoding::Utf8);
        check_text(b"caf\xe9\n", "caf\u{fffd}\n", Encoding::Lossy);
        check_text(b"\xff\xfea\0\n\0\x3d\xd8\x00\xde", "a\n😀", Encoding::Utf16);
        check_text(b"\xfe\xff\0a\0\n", "a\n", Encoding::Utf16);
    }

    #[test]
    fn binary_files_are_named_and_not_shown() {
        let project = Project::new(&[]);
        project.put("image", b"\x89PNG\r\n\x1a\n\0\0");
        project.put("data", b"abc\0def");
        let image = project.read("image").expect_err("binary").to_string();
        assert!(image.contains("PNG image"), "{image}");
        assert!(matches!(project.read("data"), Err(Fault::Binary { bytes: 7, .. })));
    }

    #[test]
    fn one_huge_line_is_cut_and_what_follows_is_still_found() {
        let project = Project::new(&[]);
        let mut bytes = vec![b'x'; 50 * 1024 * 1024];
        bytes.extend_from_slice(b"\nnext\n");
        project.put("f", &bytes);
        let page = project.read("f").expect("reads");
        assert_eq!((page.n_lines, page.cut_lines, page.total_lines), (2, 1, Some(2)));
        assert!(page.text.len() < 5000 && page.text.ends_with("it has 52428801 bytes]\nnext\n"), "{}", page.text.len());
    }

    #[test]
    fn a_file_of_five_gigabytes_is_paged_and_a_read_of_it_can_be_stopped() {
        let project = Project::new(&[]);
        let file = fs::File::create(project.path.join("f")).expect("made");
        file.write_all_at("line\n".repeat(10_000).as_bytes(), 0).expect("written");
        file.set_len(5 << 30).expect("sparse");
        let page = project.read_page("f", 9_000, 10).expect("reads");
        assert_eq!((page.n_lines, page.total_lines, page.more), (10, None, true));
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                stop.store(true, Ordering::Relaxed);
            });
            let call = Call::ReadFile(ReadFile { offset: 1_000_000, ..read("f") });
            assert_eq!(run(&project.workspace, &call, &stop), Output::Fault(Fault::Cancelled));
        });
    }

    #[test]
    fn a_cursor_reads_on_through_the_files_of_a_search() {
        let project = Project::new(&[("a", "needle 1\n"), ("b", "needle 2\n"), ("c", "needle 3\n"), ("d", "other\n")]);
        let cursor = project.matches(grep("needle")).cursor;
        fs::remove_file(project.path.join("b")).expect("removed");
        let next = |max_files| match project.call(Call::ReadFile(ReadFile { path: None, cursor: cursor.clone(), max_files, ..read("") })) {
            Output::Read(read) => read,
            other => panic!("{other:?}"),
        };
        let first = next(2);
        assert_eq!((first.files[0].text.as_str(), first.remaining), ("needle 1\n", 1));
        assert!(matches!(first.files[1].fault, Some(Fault::NotFound { .. })), "{:?}", first.files[1]);
        assert_eq!(next(5).files[0].text, "needle 3\n");
        assert_eq!(next(5), Read { files: vec![], remaining: 0 });
    }

    #[test]
    fn the_largest_output_fits_its_frame() {
        let project = Project::new(&[]);
        project.put("f", "\x01".repeat(4000).as_bytes().repeat(300).chunks(4000).collect::<Vec<_>>().join(&b'\n'));
        let output = project.call(Call::ReadFile(ReadFile { limit: u64::MAX, max_bytes: u64::MAX, ..read("f") }));
        assert!(matches!(output, Output::Read(_)));
        let output = project.call(Call::Grep(Grep { max_results: u32::MAX, context: 1000, ..grep(".") }));
        assert!(matches!(output, Output::Matches(_)));
    }
}

mod writing {
    use super::*;

    #[test]
    fn files_and_their_folders_are_made() {
        let project = Project::new(&[]);
        let written = project.write("a/b/c.txt", "x\n").expect("writes");
        assert_eq!((written.created, written.appended, written.bytes), (true, false, 2));
        assert_eq!(project.text("a/b/c.txt"), "x\n");
        let appended = project.append("a/b/c.txt", "y\n").expect("appends");
        assert_eq!((appended.created, appended.appended, appended.bytes), (false, true, 4));
        assert!(project.append("new", "z").expect("appends to nothing").created);
        let status = fs::read_to_string("/proc/self/status").expect("is there");
        let umask = status.lines().find_map(|line| line.strip_prefix("Umask:")).expect("is told");
        let umask = u32::from_str_radix(umask.trim(), 8).expect("is octal");
        let mode = |name: &str| fs::metadata(project.path.join(name)).expect("is there").mode() & 0o777;
        assert_eq!((mode("a/b/c.txt"), mode("a")), (0o666 & !umask, 0o777 & !umask));
        project.check_untouched();
    }

    #[test]
    fn the_mode_of_a_file_is_kept() {
        let project = Project::new(&[("script", "old"), ("private", "old")]);
        let set = |name: &str, mode| fs::set_permissions(project.path.join(name), fs::Permissions::from_mode(mode)).expect("set");
        set("script", 0o755);
        set("private", 0o600);
        project.write("script", "new").expect("writes");
        project.edit("private", "old", "new").expect("edits");
        let mode = |name: &str| fs::metadata(project.path.join(name)).expect("is there").mode() & 0o7777;
        assert_eq!((mode("script"), mode("private")), (0o755, 0o600));
    }

    #[test]
    fn a_read_only_file_stays_as_it_is() {
        let project = Project::new(&[("f", "old")]);
        fs::set_permissions(project.path.join("f"), fs::Permissions::from_mode(0o444)).expect("set");
        assert!(matches!(project.write("f", "new"), Err(Fault::ReadOnly { .. } | Fault::PermissionDenied { .. })));
        assert!(matches!(project.edit("f", "old", "new"), Err(Fault::ReadOnly { .. } | Fault::PermissionDenied { .. })));
        assert!(matches!(project.append("f", "new"), Err(Fault::ReadOnly { .. } | Fault::PermissionDenied { .. })));
        assert_eq!(project.text("f"), "old");
        project.check_untouched();
    }

    #[test]
    fn all_names_of_a_hard_linked_file_show_the_new_text() {
        let project = Project::new(&[("a", "old text")]);
        fs::hard_link(project.path.join("a"), project.path.join("b")).expect("linked");
        project.write("a", "new").expect("writes");
        assert_eq!(project.text("b"), "new");
        project.edit("b", "new", "newer").expect("edits");
        assert_eq!(project.text("a"), "newer");
    }

    #[test]
    fn a_reader_sees_the_old_or_the_new_file_and_nothing_between() {
        let project = Project::new(&[]);
        let texts = ["a".repeat(200_000), "b".repeat(100_000)];
        project.put("f", &texts[0]);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 0..100 {
                    project.write("f", &texts[round % 2]).expect("writes");
                }
                done.store(true, Ordering::Relaxed);
            });
            while !done.load(Ordering::Relaxed) {
                let seen = project.text("f");
                assert!(texts.contains(&seen), "{} bytes", seen.len());
            }
        });
    }

    #[test]
    fn what_the_model_gives_is_what_stands_there() {
        let project = Project::new(&[("f", "a\r\nb\r\n")]);
        project.write("f", "c\nd").expect("writes");
        assert_eq!(project.bytes("f"), b"c\nd");
        project.write("f", "").expect("writes nothing");
        assert_eq!(project.bytes("f"), b"");
    }
}

mod editing {
    use super::*;

    #[test]
    fn edits_of_one_call_are_made_together_or_not_at_all() {
        let project = Project::new(&[("f", "one\ntwo\nthree\n")]);
        let edited = project.edits("f", &[("one", "1"), ("1\ntwo", "1\n2")], false).expect("edits");
        assert_eq!(project.text("f"), "1\n2\nthree\n");
        assert_eq!(edited.replaced, 2);
        assert_eq!(edited.diff, "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n-one\n-two\n+1\n+2\n three\n");
        let fault = project.edits("f", &[("three", "3"), ("four", "4")], false).expect_err("the second fails");
        assert!(matches!(fault, Fault::NoMatch { edit: 2, .. }), "{fault:?}");
        assert_eq!(project.text("f"), "1\n2\nthree\n");
    }

    #[test]
    fn faults_help_to_do_it_right() {
        let project = Project::new(&[("f", "let a = 1;\nlet b = 1;\n")]);
        let fault = |old: &str, new: &str| project.edit("f", old, new).expect_err("not so").to_string();
        assert!(fault("= 1", "= 2").contains("2 times (edit 1, lines 1, 2)"), "{}", fault("= 1", "= 2"));
        assert!(fault("let bb = 1;", "x").contains("2\tlet b = 1;"), "{}", fault("let bb = 1;", "x"));
        assert!(fault("same", "same").contains("is the same as old_string"));
        assert!(fault("", "x").contains("is empty"));
        assert!(matches!(project.edits("f", &[], false), Err(Fault::Invalid { .. })));
        assert!(matches!(project.edit("g", "a", "b"), Err(Fault::NotFound { .. })));
    }

    #[test]
    fn an_empty_old_text_makes_a_file_or_fills_an_empty_one() {
        let project = Project::new(&[("empty", "")]);
        project.edit("empty", "", "filled").expect("fills");
        assert_eq!(project.text("empty"), "filled");
        assert!(matches!(project.edit("new/f", "", "x"), Err(Fault::NotFound { .. })));
        assert!(matches!(project.edits("new/f", &[("a", "x")], true), Err(Fault::NotFound { .. })));
        let edited = project.edits("new/f", &[("", "text"), ("text", "TEXT")], true).expect("makes");
        assert!(edited.created);
        assert_eq!(project.text("new/f"), "TEXT");
    }

    #[test]
    fn bytes_outside_the_edit_are_untouched() {
        let project = Project::new(&[]);
        project.put("f", b"\xef\xbb\xbfkey = 1\r\ncaf\xe9\nlast");
        project.edit("f", "key = 1\n", "key = 2\nother = 3\n").expect("edits");
        assert_eq!(project.bytes("f"), b"\xef\xbb\xbfkey = 2\r\nother = 3\r\ncaf\xe9\nlast");
        project.put("wide", b"\xff\xfea\0");
        assert!(matches!(project.edit("wide", "a", "b"), Err(Fault::NotUtf8 { .. })));
        project.put("binary", b"a\0b");
        assert!(matches!(project.edit("binary", "a", "b"), Err(Fault::Binary { .. })));
    }

    #[test]
    fn lenient_matches_are_reported() {
        let project = Project::new(&[("f", "fn a() {\n    b(\"x\");\n}\n")]);
        assert_eq!(project.edit("f", "  b(\"x\");  \n", "  c(\"x\");\n").expect("edits").tolerant, [1]);
        assert_eq!(project.edit("f", r#"c(\"x\");\n}"#, r#"d(\"y\");\n}"#).expect("edits").unescaped, [1]);
        assert_eq!(project.text("f"), "fn a() {\n    d(\"y\");\n}\n");
    }

    #[test]
    fn files_that_are_too_large_are_refused_whole() {
        let project = Project::new(&[]);
        project.put("f", vec![b'a'; 16 * 1024 * 1024 + 1]);
        assert!(matches!(project.edit("f", "aaa", "b"), Err(Fault::TooLarge { .. })));
    }

    #[test]
    fn edits_of_one_file_at_once_are_all_made() {
        let project = Project::new(&[("f", "a0 a1 a2 a3 a4 a5 a6 a7\n")]);
        std::thread::scope(|scope| {
            for number in 0..8 {
                let project = &project;
                scope.spawn(move || project.edit("f", &format!("a{number}"), &format!("b{number}")).expect("edits"));
            }
        });
        assert_eq!(project.text("f"), "b0 b1 b2 b3 b4 b5 b6 b7\n");
    }
}

mod listing {
    use super::*;

    #[test]
    fn one_folder_shows_what_is_ignored_and_not_what_is_hidden() {
        let project = Project::new(&[(".gitignore", "target\n"), ("target/x", "x"), ("src/a.rs", "abc"), (".hidden", "h"), ("b", "bb")]);
        symlink("src", project.path.join("link")).expect("linked");
        assert_eq!(project.list(list(".")).0, ["File b 2", "Link link -> src", "Directory src", "Directory target"]);
        let hidden = project.list(ListDirectory { show_hidden: true, ..list("") }).0;
        assert_eq!(hidden[..2], ["File .gitignore 7", "File .hidden 1"]);
        assert_eq!(project.list(list("link")).0, ["File a.rs 3"]);
    }

    #[test]
    fn in_depth_ignored_files_and_repositories_are_left_out() {
        let project = Project::new(&[
            (".gitignore", "target/\n*.log\n!keep.log\n"),
            ("target/x", ""),
            ("src/a.rs", ""),
            ("src/b.log", ""),
            ("src/keep.log", ""),
            ("src.txt", ""),
            (".git/config", ""),
            (".dot/x", ""),
        ]);
        symlink("src", project.path.join("link")).expect("linked");
        let entries = project.list(ListDirectory { recursive: true, ..list(".") }).0;
        assert_eq!(entries, ["Link link -> src", "Directory src", "File src/a.rs 0", "File src/keep.log 0", "File src.txt 0"]);
        let below = project.list(ListDirectory { recursive: true, show_hidden: true, ..list("/workspace/src/") }).0;
        assert_eq!(below, ["File a.rs 0", "File keep.log 0"]);
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let project = Project::new(&[]);
        for number in 0..500 {
            project.put(&format!("many/{number:03}"), "");
        }
        let (entries, omitted) = project.list(ListDirectory { max_entries: 2, ..list("many") });
        assert_eq!((entries, omitted), (vec!["File 000 0".to_string(), "File 001 0".to_string()], 498));
        let (entries, omitted) = project.list(ListDirectory { max_entries: 3, recursive: true, ..list("") });
        assert_eq!((entries.len(), omitted), (3, 498));
    }
}

mod globbing {
    use super::*;

    fn project() -> Project {
        Project::new(&[
            (".gitignore", "target\nnode_modules/\n"),
            ("main.rs", ""),
            ("src/lib.rs", ""),
            ("src/deep/mod.rs", ""),
            ("src/style.css", ""),
            ("target/debug/out.rs", ""),
            (".github/workflows/ci.yml", ""),
            (".env", ""),
            ("src/.hidden.rs", ""),
        ])
    }

    #[test]
    fn patterns_mean_what_ripgrep_means() {
        let project = project();
        assert_eq!(project.glob("*.rs"), ["main.rs", "src/deep/mod.rs", "src/lib.rs"]);
        assert_eq!(project.glob("**/*.rs"), ["main.rs", "src/deep/mod.rs", "src/lib.rs"]);
        assert_eq!(project.glob("src/*.rs"), ["src/lib.rs"]);
        assert_eq!(project.glob("/*.rs"), ["main.rs"]);
        assert_eq!(project.glob("/workspace/src/**/*.{rs,css}"), ["src/deep/mod.rs", "src/lib.rs", "src/style.css"]);
        assert_eq!(project.glob("nowhere/**/*.rs"), [""; 0]);
        let below = project.found(Glob { path: "/workspace/src".into(), ..glob("*.rs") }).paths;
        assert_eq!(below.len(), 2);
        let excluded = project.found(Glob { exclude: Some("deep, *.css".into()), ..glob("src/**") }).paths;
        assert_eq!(excluded, ["src/lib.rs".into()]);
    }

    #[test]
    fn ignored_and_hidden_files_are_found_only_when_they_are_named() {
        let project = project();
        assert_eq!(project.glob("target/**/*.rs"), ["target/debug/out.rs"]);
        assert_eq!(project.glob("target/debug/out.rs"), ["target/debug/out.rs"]);
        assert_eq!(project.glob("**/out.rs"), [""; 0]);
        assert_eq!(project.glob(".github/**/*.yml"), [".github/workflows/ci.yml"]);
        assert_eq!(project.glob(".env"), [".env"]);
        assert_eq!(project.glob("**/.*.rs"), ["src/.hidden.rs"]);
        assert_eq!(project.glob("**/*.yml"), [""; 0]);
    }

    #[test]
    fn the_newest_come_first_and_the_bound_keeps_them() {
        let project = Project::new(&[]);
        for number in 0..20 {
            project.put(&format!("f{number:02}"), "");
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1000 + (number * 7) % 20);
            fs::File::options()
                .write(true)
                .open(project.path.join(format!("f{number:02}")))
                .and_then(|file| file.set_modified(time))
                .expect("set");
        }
        let found = project.found(Glob { max_results: 3, ..glob("*") });
        assert_eq!(found.paths, ["f17".into(), "f14".into(), "f11".into()]);
        assert!(found.truncated && found.cursor.is_some());
    }

    #[test]
    fn links_to_files_are_found_and_links_to_folders_are_not_entered() {
        let project = Project::new(&[("real/file.md", "")]);
        symlink("real/file.md", project.path.join("CLAUDE.md")).expect("linked");
        symlink("real", project.path.join("folder")).expect("linked");
        symlink("../outside/secret", project.path.join("out.md")).expect("linked");
        symlink(".", project.path.join("self")).expect("linked");
        assert_eq!(project.glob("*.md"), ["CLAUDE.md", "real/file.md"]);
    }
}

mod searching {
    use super::*;

    fn project() -> Project {
        Project::new(&[
            (".gitignore", "*.log\n"),
            ("b.txt", "one\nneedle two\nthree\n"),
            ("a/c.rs", "Needle\n"),
            ("a.md", "x needle\nneedle x\n"),
            ("out.log", "needle\n"),
            (".hidden", "needle\n"),
            ("bin", "a\0needle\n"),
        ])
    }

    #[test]
    fn matches_come_by_path_with_their_lines() {
        let project = project();
        assert_eq!(project.grep(grep("needle")), ["a.md:1:x needle", "a.md:2:needle x", "b.txt:2:needle two"]);
        let all = project.grep(Grep { case_insensitive: true, path: ".".into(), ..grep("^needle$") });
        assert_eq!(all, ["a/c.rs:1:Needle"]);
        let context = project.grep(Grep { context: 1, ..grep("two") });
        assert_eq!(context, ["b.txt-1-one", "b.txt:2:needle two", "b.txt-3-three"]);
        assert_eq!(project.grep(Grep { glob: Some("*.{rs,txt}".into()), ..grep("(?i)needle") }), ["a/c.rs:1:Needle", "b.txt:2:needle two"]);
        assert_eq!(project.grep(Grep { glob: Some("!*.md".into()), ..grep("needle") }), ["b.txt:2:needle two"]);
        assert_eq!(project.grep(Grep { glob: Some("*.log".into()), ..grep("needle") }), ["out.log:1:needle"]);
        assert_eq!(project.grep(Grep { glob: Some("a/*.rs".into()), path: "a".into(), ..grep("Needle") }), ["a/c.rs:1:Needle"]);
        assert_eq!(project.grep(Grep { path: "/workspace/out.log".into(), ..grep("needle") }), ["out.log:1:needle"]);
    }

    #[test]
    fn files_and_counts_can_be_asked_for_alone() {
        let project = project();
        let files = project.matches(Grep { output: GrepOutput::FilesOnly, ..grep("needle") });
        let names: Vec<String> = files.files.iter().map(|file| file.path.to_text()).collect();
        assert_eq!((names, files.n_matches), (vec!["a.md".to_string(), "b.txt".to_string()], 2));
        let counts = project.matches(Grep { output: GrepOutput::Count, ..grep("needle") });
        assert_eq!((counts.files[0].count, counts.files[1].count, counts.n_matches), (2, 1, 3));
        assert!(counts.files[0].lines.is_empty());
    }

    #[test]
    fn binary_files_are_passed_over_unless_they_are_named() {
        let project = project();
        let named = project.matches(Grep { path: "bin".into(), ..grep("needle") });
        assert!(named.files[0].binary && named.files[0].lines.is_empty(), "{named:?}");
        let late = format!("needle\n{}\0", "x\n".repeat(100_000));
        project.put("late", late);
        let found = project.matches(Grep { path: ".".into(), ..grep("^needle$") });
        let file = found.files.iter().find(|file| file.path == "late".into()).expect("found");
        assert!(file.binary && file.lines.is_empty() && file.count == 1, "{file:?}");
    }

    #[test]
    fn the_bound_over_all_files_gives_the_same_answer_each_time() {
        let project = Project::new(&[]);
        for number in 0..300 {
            project.put(&format!("d{}/f{number}", number % 17), "needle\nneedle\n");
        }
        let all = project.matches(grep("needle"));
        let few = || project.matches(Grep { max_results: 7, ..grep("needle") });
        let first = few();
        assert!(first.truncated);
        assert_eq!(first.files.iter().map(|file| file.lines.len()).sum::<usize>(), 7);
        let expected: Vec<_> = all.files.iter().take(4).map(|file| file.path.clone()).collect();
        for _ in 0..20 {
            let paths: Vec<_> = few().files.iter().map(|file| file.path.clone()).collect();
            assert_eq!(paths, expected);
        }
    }

    #[test]
    fn an_expression_that_is_none_says_why_and_what_to_do() {
        let project = project();
        let output = project.call(Call::Grep(grep("fn main(")));
        let Output::Fault(fault) = output else { panic!("{output:?}") };
        let text = fault.to_string();
        assert!(text.contains("unclosed group") && text.contains(r"fn main\("), "{text}");
        let bomb = project.call(Call::Grep(grep("((a{1000}){1000}){1000}")));
        assert!(matches!(bomb, Output::Fault(Fault::Invalid { .. })), "{bomb:?}");
    }

    #[test]
    fn an_expression_over_several_lines_works() {
        let project = Project::new(&[("f", "fn a() {\n    b();\n}\n")]);
        assert_eq!(project.grep(grep(r"\{\n\s+b")), ["f:1:fn a() {", "f:2:    b();"]);
    }

    #[test]
    fn a_search_gives_up_when_its_time_is_over_and_stops_when_told() {
        let project = Project::new(&[("f", "needle\n")]);
        let late = project.matches(Grep { timeout_ms: 0, ..grep("needle") });
        assert!(late.timed_out && late.truncated);
        let file = fs::File::create(project.path.join("huge")).expect("made");
        file.set_len(200 << 30).expect("sparse");
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                stop.store(true, Ordering::Relaxed);
            });
            let call = Call::Grep(Grep { path: "huge".into(), ..grep("needle") });
            assert_eq!(run(&project.workspace, &call, &stop), Output::Fault(Fault::Cancelled));
        });
    }

    #[test]
    fn repositories_within_the_project_have_rules_of_their_own() {
        let project = Project::new(&[
            (".gitignore", "*.gen\n"),
            ("a.gen", "needle\n"),
            ("inner/.git/info/exclude", "private\n"),
            ("inner/a.gen", "needle\n"),
            ("inner/private", "needle\n"),
            ("plain/.ignore", "!b.gen\nskipped\n"),
            ("plain/b.gen", "needle\n"),
            ("plain/skipped", "needle\n"),
        ]);
        assert_eq!(project.grep(grep("needle")), ["inner/a.gen:1:needle", "plain/b.gen:1:needle"]);
        assert_eq!(project.grep(Grep { path: "plain".into(), ..grep("needle") }), ["plain/b.gen:1:needle"]);
    }
}
