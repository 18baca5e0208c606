//! Every tool that takes a file, with every file that is none as it should be: a table.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

use podbay_soak as soak;

use super::*;

/// What stands in the project, by its name.
const FILES: [&str; 10] = [
    "binary",
    "wide",
    "huge",
    "empty",
    "fixed",
    "gone",
    "folder",
    "pipe",
    "socket",
    "odd\nname",
];

/// A tool, its arguments with the file in the place of `NAME`, and for each file what the model
/// reads: words of a fault, or nothing where the call is good.
type Row = (&'static str, &'static str, [&'static str; FILES.len()]);

const NO_TEXT: &str = "is not text but";
const GONE: &str = "no such file or directory; ";
const FOLDER: &str = "is a directory; use list_directory";
const PIPE: &str = "is not a regular file but a named pipe";
const SOCKET: &str = "is not a regular file but a socket";
const FIXED: &str = "is read-only here";
const LARGE: &str = "more than the";
const NO_FOLDER: &str = "is not a directory, or one of its parents";
const A_FILE: &str = "is a file, not a folder; use read_file";

#[rustfmt::skip]
const TABLE: [Row; 35] = [
    //                                                                                  binary   wide     huge     empty    fixed    gone     folder   pipe     socket   odd name
    ("read_file", r#"{"path": "NAME", "limit": 3}"#,                                      [NO_TEXT, "",      "",      "",      "",      GONE,    FOLDER,  PIPE,    SOCKET,  ""]),
    ("edit_file", r#"{"path": "NAME", "old_string": "one", "new_string": "1"}"#,          [NO_TEXT, "",      LARGE,   "was not found", FIXED, GONE, FOLDER, PIPE,  SOCKET,  ""]),
    ("multi_edit", r#"{"edits": [{"path": "NAME", "old_string": "one", "new_string": "1"}]}"#, [NO_TEXT, "",    LARGE, "was not found", FIXED, GONE, FOLDER, PIPE, SOCKET, ""]),
    ("edit_lines", r#"{"path": "NAME", "operation": "replace", "start_line": 1, "new_content": "1"}"#, [NO_TEXT, "",    LARGE, "start_line", FIXED, GONE, FOLDER, PIPE, SOCKET, ""]),
    ("apply_patch", r#"{"patch": "--- a/NAME\n+++ b/NAME\n@@ -1 +1 @@\n-one\n+1\n"}"#,       [NO_TEXT, "",      LARGE,   "does not fit", FIXED, GONE, FOLDER, PIPE,   SOCKET,  "patch"]),
    ("write_file", r#"{"path": "NAME", "content": "new"}"#,                               ["",      "",      "",      "",      FIXED,   "",      FOLDER,  PIPE,    SOCKET,  ""]),
    ("write_file", r#"{"path": "NAME", "content": "new", "append": true}"#,               ["",      "",      "",      "",      FIXED,   "",      FOLDER,  PIPE,    SOCKET,  ""]),
    ("delete_file", r#"{"path": "NAME"}"#,                                                ["",      "",      "",      "",      FIXED,   GONE,    "set recursive", "", "",   ""]),
    ("copy_file", r#"{"source": "NAME", "destination": "to"}"#,                           ["",      "",      LARGE,   "",      "",      GONE,    "set recursive", PIPE, SOCKET, ""]),
    ("copy_file", r#"{"source": "text", "destination": "NAME", "overwrite": true}"#,      ["",      "",      "",      "",      FIXED,   "",      "it is a folder", PIPE, SOCKET, ""]),
    ("copy_file", r#"{"source": "text", "destination": "NAME"}"#,                         ["set overwrite", "set overwrite", "set overwrite", "set overwrite", "set overwrite", "", "it is a folder", "set overwrite", "set overwrite", "set overwrite"]),
    ("move_file", r#"{"source": "NAME", "destination": "to"}"#,                           ["",      "",      "",      "",      "",      GONE,    "",      "",      "",      ""]),
    ("move_file", r#"{"source": "text", "destination": "NAME", "overwrite": true}"#,      ["",      "",      "",      "",      FIXED,   "",      "it is a folder", PIPE, SOCKET, ""]),
    ("mkdir", r#"{"path": "NAME"}"#,                                                      ["is not a folder", "is not a folder", "is not a folder", "is not a folder", "is not a folder", "", "", "is not a folder", "is not a folder", "is not a folder"]),
    ("mkdir", r#"{"path": "NAME/in"}"#,                                                   [NO_FOLDER, NO_FOLDER, NO_FOLDER, NO_FOLDER, NO_FOLDER, "", "", NO_FOLDER, NO_FOLDER, NO_FOLDER]),
    ("list_directory", r#"{"path": "NAME"}"#,                                             [A_FILE, A_FILE, A_FILE, A_FILE, A_FILE, GONE, "", NO_FOLDER, NO_FOLDER, A_FILE]),
    ("tree", r#"{"path": "NAME"}"#,                                                       [A_FILE, A_FILE, A_FILE, A_FILE, A_FILE, GONE, "", NO_FOLDER, NO_FOLDER, A_FILE]),
    ("glob", r#"{"pattern": "*", "path": "NAME"}"#,                                       [NO_FOLDER, NO_FOLDER, NO_FOLDER, NO_FOLDER, NO_FOLDER, GONE, "", NO_FOLDER, NO_FOLDER, NO_FOLDER]),
    ("grep", r#"{"pattern": "one", "path": "NAME"}"#,                                     ["",      "",      "",      "",      "",      GONE,    "",      PIPE,    SOCKET,  ""]),
    ("bash", r#"{"command": "pwd", "working_directory": "NAME"}"#,                        [NO_FOLDER, NO_FOLDER, NO_FOLDER, NO_FOLDER, NO_FOLDER, GONE, "", NO_FOLDER, NO_FOLDER, NO_FOLDER]),
    ("start_background_process", r#"{"command": "true", "working_directory": "NAME"}"#,   [NO_FOLDER, NO_FOLDER, NO_FOLDER, NO_FOLDER, NO_FOLDER, GONE, "", NO_FOLDER, NO_FOLDER, NO_FOLDER]),
    ("git_status", r#"{"path": "NAME"}"#,                                                 [NO_FOLDER, NO_FOLDER, NO_FOLDER, NO_FOLDER, NO_FOLDER, GONE, "", NO_FOLDER, NO_FOLDER, NO_FOLDER]),
    ("archive", r#"{"action": "create", "archive_path": "to.tar", "source_path": "NAME"}"#, ["",    "",      "would hold more than 256 MiB", "", "", GONE, "", PIPE,    SOCKET,  ""]),
    ("git_diff", r#"{"path": "NAME"}"#,                                                   [NO_FOLDER, NO_FOLDER, NO_FOLDER, NO_FOLDER, NO_FOLDER, GONE, "", NO_FOLDER, NO_FOLDER, NO_FOLDER]),
    ("git_log", r#"{"path": "NAME"}"#,                                                    [NO_FOLDER, NO_FOLDER, NO_FOLDER, NO_FOLDER, NO_FOLDER, GONE, "", NO_FOLDER, NO_FOLDER, NO_FOLDER]),
    ("git_branch", r#"{"path": "NAME"}"#,                                                 [NO_FOLDER, NO_FOLDER, NO_FOLDER, NO_FOLDER, NO_FOLDER, GONE, "", NO_FOLDER, NO_FOLDER, NO_FOLDER]),
    ("git_checkout", r#"{"target": "other", "create": true, "path": "NAME"}"#,            [NO_FOLDER, NO_FOLDER, NO_FOLDER, NO_FOLDER, NO_FOLDER, GONE, "", NO_FOLDER, NO_FOLDER, NO_FOLDER]),
    ("git_stash", r#"{"action": "list", "path": "NAME"}"#,                                [NO_FOLDER, NO_FOLDER, NO_FOLDER, NO_FOLDER, NO_FOLDER, GONE, "", NO_FOLDER, NO_FOLDER, NO_FOLDER]),
    ("git_commit", r#"{"message": "x", "files": ["folder/in it"], "path": "NAME"}"#,      [NO_FOLDER, NO_FOLDER, NO_FOLDER, NO_FOLDER, NO_FOLDER, GONE, "", NO_FOLDER, NO_FOLDER, NO_FOLDER]),
    ("git_diff", r#"{"file": "NAME"}"#,                                                   ["",      "",      "",      "",      "",      GONE,    "",      "",      "",      ""]),
    ("git_log", r#"{"file": "NAME"}"#,                                                    ["",      "",      "",      "",      "",      GONE,    "",      "",      "",      ""]),
    ("archive", r#"{"action": "create", "archive_path": "NAME/to.tar", "source_path": "text"}"#,[NO_FOLDER, NO_FOLDER, NO_FOLDER, NO_FOLDER, NO_FOLDER, "", "", NO_FOLDER, NO_FOLDER, NO_FOLDER]),
    ("archive", r#"{"action": "list", "archive_path": "NAME/to.tar"}"#,                   [NO_FOLDER, NO_FOLDER, NO_FOLDER, NO_FOLDER, NO_FOLDER, GONE, GONE, NO_FOLDER, NO_FOLDER, NO_FOLDER]),
    ("archive", r#"{"action": "extract", "archive_path": "good.tar", "output_path": "NAME"}"#,[NO_FOLDER, NO_FOLDER, NO_FOLDER, NO_FOLDER, NO_FOLDER, "", "", NO_FOLDER, NO_FOLDER, NO_FOLDER]),
    ("cd", r#"{"path": "NAME"}"#,                                                         [NO_FOLDER, NO_FOLDER, NO_FOLDER, NO_FOLDER, NO_FOLDER, GONE, "", NO_FOLDER, NO_FOLDER, NO_FOLDER]),
];

/// Makes all of them anew. The socket lives as long as what is returned.
fn furnish(hand: &Hand) -> UnixListener {
    for entry in std::fs::read_dir(hand.guest.workspace.path())
        .expect("a folder")
        .flatten()
    {
        let path = entry.path();
        if entry.file_name() == ".git" {
            continue;
        }
        if entry.file_type().expect("has one").is_dir() {
            std::fs::remove_dir_all(path)
        } else {
            std::fs::remove_file(path)
        }
        .expect("removed");
    }
    hand.put("text", "text\n");
    hand.run("tar", &["-cf", "good.tar", "text"]);
    hand.put("binary", b"\x89PNG\r\n\x1a\n\0\0one\n");
    hand.put("wide", b"\xff\xfeo\0n\0e\0\n\0");
    let huge = File::create(hand.guest.path("huge")).expect("made");
    huge.write_all_at("one\n".repeat(50_000).as_bytes(), 0)
        .expect("written");
    huge.set_len(1 << 30).expect("sparse");
    hand.put("empty", "");
    hand.put("fixed", "one\n");
    std::fs::set_permissions(
        hand.guest.path("fixed"),
        std::fs::Permissions::from_mode(0o444),
    )
    .expect("changed");
    hand.put("folder/in it", "one\n");
    nix::unistd::mkfifo(&hand.guest.path("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("made");
    hand.put("odd\nname", "one\n");
    UnixListener::bind(hand.guest.path("socket")).expect("bound")
}

/// What is there: names, modes, sizes, times of change, and which file it is.
fn look(hand: &Hand) -> Vec<(String, u32, u64, u64)> {
    let mut all = Vec::new();
    let mut folders = vec![hand.guest.workspace.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let stat = entry.path().symlink_metadata().expect("is there");
            if stat.is_dir() && entry.file_name() != ".git" {
                folders.push(entry.path());
            }
            let size = if stat.is_file() { stat.len() } else { 0 };
            assert!(
                !entry.file_name().to_string_lossy().starts_with(".podbay-"),
                "{entry:?} was left"
            );
            all.push((
                entry.path().display().to_string(),
                stat.mode(),
                size,
                stat.ino(),
            ));
        }
    }
    all.sort();
    all
}

#[tokio::test]
async fn each_tool_does_with_each_odd_file_what_the_table_says() {
    let mut wrong = Vec::new();
    for (tool, arguments, expected) in soak::sample(TABLE, 4) {
        // A session of its own: to one that has read them, files that are made anew have been
        // changed by somebody else.
        let hand = Hand::new().await;
        hand.run("git", &["init", "-q"]);
        hand.run("git", &["commit", "-q", "--allow-empty", "-m", "Begin"]);
        hand.run("git", &["config", "user.name", "ann"]);
        hand.run("git", &["config", "user.email", "ann@example.org"]);
        for (file, words) in FILES.into_iter().zip(expected) {
            let _socket = furnish(&hand);
            let before = look(&hand);
            let name = serde_json::to_string(file).expect("a text");
            let arguments: Value =
                serde_json::from_str(&arguments.replace("NAME", name.trim_matches('"')))
                    .expect("JSON");
            let finished = hand.call(tool, arguments.clone()).await;
            let is_good = finished.status == CallStatus::Ok;
            if is_good != words.is_empty() || !finished.text.contains(words) {
                wrong.push(format!(
                    "{arguments}: {:?} {}",
                    finished.status,
                    &finished.text[..finished.text.floor_char_boundary(300)]
                ));
            }
            if !is_good && look(&hand) != before {
                wrong.push(format!("{arguments}: changed something all the same"));
            }
            // The model's way back to the project.
            hand.ok("cd", json!({"path": "."})).await;
        }
    }
    assert!(
        wrong.is_empty(),
        "{} cells:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    let hand = Hand::new().await;
    let _socket = furnish(&hand);
    let kind = |name: &str| {
        hand.guest
            .path(name)
            .symlink_metadata()
            .expect("is there")
            .file_type()
    };
    assert!(
        kind("pipe").is_fifo() && kind("socket").is_socket(),
        "the table was about these"
    );
}

/// Arguments that name a path, by what they are called; a list and a text that hold some stand in
/// the table under their tools.
const PATHS: [&str; 8] = [
    "path",
    "source",
    "destination",
    "archive_path",
    "source_path",
    "output_path",
    "file",
    "working_directory",
];

#[test]
fn each_argument_that_names_a_path_is_in_the_table() {
    let catalogue = Catalogue::new(&tools::Options {
        set: ToolSet::Full,
        ..tools::Options::default()
    });
    let mut missing = Vec::new();
    for tool in catalogue.tools() {
        let properties = tool.parameters["properties"]
            .as_object()
            .expect("properties");
        for argument in PATHS
            .into_iter()
            .filter(|path| properties.contains_key(*path))
        {
            let names = |(name, arguments, _): &Row| {
                let arguments: Value = serde_json::from_str(arguments).expect("JSON");
                *name == tool.name
                    && arguments[argument]
                        .as_str()
                        .is_some_and(|value| value.contains("NAME"))
            };
            if !TABLE.iter().any(names) {
                missing.push(format!("{} {argument}", tool.name));
            }
        }
    }
    assert!(
        missing.is_empty(),
        "no row says what becomes of {}",
        missing.join(", ")
    );
    for tool in ["multi_edit", "apply_patch"] {
        assert!(TABLE.iter().any(|(name, ..)| *name == tool), "{tool}");
    }
}

/// The one tool that names no file: its file is each of them in turn.
#[tokio::test]
async fn the_instructions_are_left_alone_where_they_are_no_file_as_they_should_be() {
    let expected = [NO_TEXT, "", LARGE, "", FIXED, "", FOLDER, PIPE, SOCKET, ""];
    for (file, words) in FILES.into_iter().zip(expected) {
        let hand = Hand::new().await;
        let _socket = furnish(&hand);
        if file != "gone" {
            std::fs::rename(hand.guest.path(file), hand.guest.path("PODBAY.md")).expect("renamed");
        }
        let before = look(&hand);
        let finished = hand
            .call(
                "update_config",
                json!({"section": "Notes", "content": "None."}),
            )
            .await;
        assert_eq!(
            finished.status == CallStatus::Ok,
            words.is_empty(),
            "{file:?}: {}",
            finished.text
        );
        assert!(finished.text.contains(words), "{file:?}: {}", finished.text);
        if words.is_empty() {
            let (mark, kept) = match file {
                "wide" => ("\u{feff}", "one\n\n"),
                "odd\nname" => ("", "one\n\n"),
                _ => ("", ""),
            };
            let text = format!("{mark}{kept}## Notes\n\nNone.\n");
            let bytes = if file == "wide" {
                text.encode_utf16().flat_map(u16::to_le_bytes).collect()
            } else {
                text.into_bytes()
            };
            assert_eq!(
                std::fs::read(hand.guest.path("PODBAY.md")).expect("reads"),
                bytes,
                "{file:?}"
            );
        } else {
            assert_eq!(look(&hand), before, "{file:?}");
        }
    }
    // Line ends and the mark of some editors stay what they are.
    let hand = Hand::new().await;
    hand.put(
        "PODBAY.md",
        "\u{feff}# A\r\n\r\nx\r\n\r\n## Notes\r\n\r\nold\r\n",
    );
    hand.ok(
        "update_config",
        json!({"section": "Notes", "content": "new\nlines"}),
    )
    .await;
    assert_eq!(
        hand.text("PODBAY.md"),
        "\u{feff}# A\r\n\r\nx\r\n\r\n## Notes\r\n\r\nnew\r\nlines\r\n"
    );
    hand.put("PODBAY.md", "\u{feff}## Notes\r\n\r\nold\r\n");
    hand.ok(
        "update_config",
        json!({"section": "Notes", "content": "new"}),
    )
    .await;
    assert_eq!(hand.text("PODBAY.md"), "\u{feff}## Notes\r\n\r\nnew\r\n");
}

/// A device is neither read from nor written to, whatever it is: reading some of them never ends.
#[tokio::test]
async fn no_tool_touches_a_device() {
    if !crate::support::test_env::is_root("a device in the project") {
        return;
    }
    let hand = Hand::new().await;
    let _socket = furnish(&hand);
    for (name, minor) in [("null", 3), ("zero", 5)] {
        let device = nix::sys::stat::makedev(1, minor);
        let mode = nix::sys::stat::Mode::from_bits_truncate(0o666);
        nix::sys::stat::mknod(
            &hand.guest.path(name),
            nix::sys::stat::SFlag::S_IFCHR,
            mode,
            device,
        )
        .expect("root makes devices");
    }
    for (tool, arguments, expected) in soak::sample(TABLE, 4) {
        // What a pipe is refused for, a device is.
        let words = match expected[FILES
            .iter()
            .position(|file| *file == "pipe")
            .expect("it is in the table")]
        {
            "" => continue,
            PIPE => "is not a regular file but a ",
            words => words,
        };
        for name in ["null", "zero"] {
            let arguments: Value =
                serde_json::from_str(&arguments.replace("NAME", name)).expect("JSON");
            let text = hand
                .fails(tool, arguments.clone(), CallStatus::Failed)
                .await;
            // The null device is what a hidden file is covered with.
            let is_hidden = name == "null" && text.contains("null: is hidden from this sandbox");
            assert!(
                text.contains(words) || is_hidden,
                "{tool} {arguments}: {text}"
            );
            assert!(
                words != "is not a regular file but a " || is_hidden || text.contains("device"),
                "{tool} {arguments}: {text}"
            );
        }
    }
    let text = hand
        .ok(
            "archive",
            json!({"action": "create", "archive_path": "to.tar", "source_path": "folder"}),
        )
        .await;
    assert!(text.contains("2 files and folders"), "{text}");
    hand.ok(
        "move_file",
        json!({"source": "zero", "destination": "folder/zero"}),
    )
    .await;
    let text = hand
        .ok(
            "archive",
            json!({"action": "create", "archive_path": "too.tar", "source_path": "folder"}),
        )
        .await;
    assert!(
        text.contains("they are named pipes, sockets or devices: 1"),
        "{text}"
    );
}

/// Issue 6: what cannot be seen in a name, or turns what stands around it, is shown, to the model
/// as to the user.
#[tokio::test]
async fn names_are_shown_as_what_they_are_and_can_be_named_so() {
    let hand = Hand::new().await;
    let (turned, blank) = ("invoice\u{202e}fdp.txt", "no\u{200b}te.txt");
    let (turned_shown, blank_shown) = (r"invoice\xe2\x80\xaefdp.txt", r"no\xe2\x80\x8bte.txt");
    hand.put(&format!("d/{turned}"), "needle 1\n");
    hand.put(&format!("d/{blank}"), "needle 2\n");
    let looks = [
        ("list_directory", json!({"path": "d"})),
        ("tree", json!({"path": "d"})),
        ("glob", json!({"pattern": "d/*"})),
        ("grep", json!({"pattern": "needle"})),
    ];
    for (tool, arguments) in looks {
        let text = hand.ok(tool, arguments).await;
        assert!(
            text.contains(turned_shown)
                && text.contains(blank_shown)
                && !text.contains(['\u{202e}', '\u{200b}']),
            "{tool}: {text:?}"
        );
    }
    let text = hand
        .ok("read_file", json!({"path": format!("d/{turned_shown}")}))
        .await;
    assert!(text.contains("needle 1"), "{text}");
    let edit = json!({"path": format!("d/{turned_shown}"), "old_string": "1", "new_string": "3"});
    let text = hand.ok("edit_file", edit).await;
    assert!(
        text.matches(turned_shown).count() > 1 && !text.contains('\u{202e}'),
        "{text:?}"
    );
    let text = hand
        .ok("delete_file", json!({"path": format!("d/{blank_shown}")}))
        .await;
    assert!(
        text.contains(blank_shown) && !hand.has(&format!("d/{blank}")),
        "{text:?}"
    );
    let text = hand
        .fails(
            "read_file",
            json!({"path": "d/invoice"}),
            CallStatus::Failed,
        )
        .await;
    assert!(
        text.contains(turned_shown) && !text.contains('\u{202e}'),
        "{text:?}"
    );
}

#[tokio::test]
async fn a_search_that_finds_nothing_says_which_files_it_left() {
    let hand = Hand::new().await;
    hand.put("a.bin", b"\0\0 needle\n");
    hand.put("b.txt", "text\n");
    let text = hand.ok("grep", json!({"pattern": "needle"})).await;
    assert_eq!(
        text,
        "nothing matches\n[binary, and not searched to the end: 1 file(s); one that is named in path is]"
    );
    assert!(
        hand.ok("grep", json!({"pattern": "needle", "path": "a.bin"}))
            .await
            .contains("a.bin: binary file matches")
    );
    let text = hand.ok("grep", json!({"pattern": "text"})).await;
    assert!(!text.contains("binary"), "{text}");
}

/// What was meant is not what stands there, or not here at all: the model reads what to do instead.
#[tokio::test]
async fn a_name_of_the_wrong_kind_is_told_what_to_do() {
    let hand = Hand::new().await;
    hand.put("a.txt", "a\n");
    hand.put("src/b.txt", "b\n");
    let write = |path: &str| json!({"path": path, "content": "x"});
    let edit = |path: &str| json!({"path": path, "old_string": "a", "new_string": "b"});
    for (tool, arguments, words) in [
        (
            "write_file",
            write("kk/"),
            "kk/: ends with a slash, as a folder does: name the file to write",
        ),
        ("write_file", write("kk/deep/"), "name the file to write"),
        ("write_file", write("src/"), "is a directory"),
        (
            "write_file",
            write("a.txt/"),
            "a.txt/: ends with a slash, as a folder does, and is a file: leave out the slash",
        ),
        (
            "write_file",
            write("a.txt/x/"),
            "is not a directory, or one of its parents",
        ),
        ("edit_file", edit("a.txt/"), "leave out the slash"),
        ("edit_file", edit("kk/"), "no such file"),
        (
            "list_directory",
            json!({"path": "a.txt"}),
            "a.txt: is a file, not a folder; use read_file",
        ),
        (
            "list_directory",
            json!({"path": "a.txt/"}),
            "is a file, not a folder; use read_file",
        ),
        (
            "list_directory",
            json!({"path": "a.txt/x"}),
            "is not a directory, or one of its parents",
        ),
        (
            "tree",
            json!({"path": "src/b.txt"}),
            "src/b.txt: is a file, not a folder; use read_file",
        ),
        (
            "glob",
            json!({"pattern": "["}),
            "`pattern`: unclosed character class; missing ']'; write `*`",
        ),
        (
            "glob",
            json!({"pattern": "*", "exclude": "{a"}),
            "a backslash before a sign",
        ),
        (
            "glob",
            json!({"pattern": "/etc/*"}),
            "only /workspace is searched, and there is no folder `etc` in it",
        ),
        (
            "glob",
            json!({"pattern": "/usr/lib/**/*.so"}),
            "no folder `usr/lib` in it",
        ),
    ] {
        let text = hand
            .fails(tool, arguments.clone(), CallStatus::Failed)
            .await;
        assert!(text.contains(words), "{tool} {arguments}: {text}");
    }
    assert!(!hand.has("kk"));
    // A slash at the beginning means the project's folder, where that has what is named.
    assert_eq!(
        hand.ok("glob", json!({"pattern": "/src/*"}))
            .await
            .lines()
            .next(),
        Some("src/b.txt")
    );
    for pattern in ["/workspace/none/*", "none/*", "/*.rs"] {
        assert!(
            hand.ok("glob", json!({"pattern": pattern}))
                .await
                .contains("no file matches"),
            "{pattern}"
        );
    }
}

#[tokio::test]
async fn names_are_taken_as_git_writes_them_unless_something_is_called_so() {
    let hand = Hand::new().await;
    for (name, quoted) in [
        ("caf\u{e9}.txt", r#""caf\303\251.txt""#),
        ("a\tb", r#""a\tb""#),
        ("two words.txt", r#""two words.txt""#),
        ("\u{65e5}/x \"y\".md", r#""\346\227\245/x \"y\".md""#),
        (r"a\b", r#""a\\b""#),
    ] {
        hand.put(name, b"needle\n");
        let text = hand.ok("read_file", json!({"path": quoted})).await;
        assert!(
            text.contains("1\tneedle") && text.contains("was read as git writes names"),
            "{quoted}: {text}"
        );
        assert!(
            hand.ok("grep", json!({"pattern": "needle", "path": quoted}))
                .await
                .contains("1:needle"),
            "{quoted}"
        );
    }
    // A new name has its backslashes taken off once.
    for (name, quoted) in [
        (r"new\tab", r#""new\\tab""#),
        (r"q\\w", r#""q\\\\w""#),
        ("tab\tnew", r#""tab\tnew""#),
        ("caf\u{e9}2", r#""caf\303\2512""#),
    ] {
        let made = hand
            .call("write_file", json!({"path": quoted, "content": "new\n"}))
            .await;
        if name.contains('\\') {
            // Such a name is made by a command alone; it was read as it is.
            let slashed = name.replace('\\', "/");
            assert!(
                made.text.contains(&format!("write {slashed}")),
                "{quoted}: {}",
                made.text
            );
            continue;
        }
        assert!(
            made.status == CallStatus::Ok && hand.has(name),
            "{quoted}: {}",
            made.text
        );
    }
    let edit = json!({"path": r#""caf\303\251.txt""#, "old_string": "needle", "new_string": "pin"});
    hand.ok("edit_file", edit).await;
    assert!(
        hand.ok("read_file", json!({"path": "caf\u{e9}.txt"}))
            .await
            .contains("1\tpin")
    );
    hand.put("\"own\"", b"with quotes\n");
    hand.put("own", b"without\n");
    let text = hand.ok("read_file", json!({"path": "\"own\""})).await;
    assert_eq!(text, "1\twith quotes\n");
}
