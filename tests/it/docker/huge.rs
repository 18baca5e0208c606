//! REL-20: projects of a size and a shape that nobody makes by hand.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

use nix::fcntl::OFlag;
use nix::fcntl::openat;
use nix::sys::stat::Mode;
use nix::sys::stat::mkdirat;
use podbay_soak as soak;
use serde_json::Value;

use super::test_box::TestBox;
use crate::support::TestEnv;
use crate::support::test_env::run;

/// Most bytes that a result may have, whatever the project.
const RESULT: usize = 100_000;

/// Makes one call, whose result must be bounded. Returns its text.
#[track_caller]
fn call(env: &TestBox, tool: &str, arguments: &Value) -> String {
    let text = run(&mut env.here(&["call", tool, &arguments.to_string()]))
        .expect(0)
        .text();
    assert!(text.len() < RESULT, "{tool}: {} bytes", text.len());
    text
}

#[test]
fn rel_20_a_project_of_a_hundred_thousand_files_is_worked_on() {
    let Some(env) = TestBox::new() else { return };
    let n_in_folder = soak::whole_or(1000, 100);
    for folder in 0..98 {
        let path = env.path(&format!("part{folder}"));
        fs::create_dir(&path).expect("made");
        for file in 0..n_in_folder {
            fs::File::create(path.join(format!("file{file}.txt"))).expect("made");
        }
    }
    // One wide folder, whose list alone would be a hundred pages.
    fs::create_dir(env.path("wide")).expect("made");
    for file in 0..2000 {
        fs::write(
            env.path(&format!("wide/entry{file}")),
            format!("needle{file}\n"),
        )
        .expect("written");
    }
    TestEnv::give(&env.path("part7/file1.txt"));

    let listed = call(&env, "list_directory", &serde_json::json!({"path": "."}));
    assert!(
        listed.contains("part97/") && listed.contains("wide/"),
        "{listed}"
    );
    let wide = call(&env, "list_directory", &serde_json::json!({"path": "wide"}));
    assert!(wide.contains("entry0"), "{wide}");
    let found = call(
        &env,
        "glob",
        &serde_json::json!({"pattern": "**/file77.txt"}),
    );
    assert_eq!(found.matches("/file77.txt").count(), 98, "{found}");
    let found = call(&env, "grep", &serde_json::json!({"pattern": "needle1999"}));
    assert!(found.contains("wide/entry1999"), "{found}");
    call(&env, "grep", &serde_json::json!({"pattern": "needle"}));
    call(&env, "glob", &serde_json::json!({"pattern": "**/*.txt"}));
    let text = call(
        &env,
        "bash",
        &serde_json::json!({"command": "find . -type f | wc -l; echo changed > part7/file1.txt"}),
    );
    assert_eq!(text.trim(), (98 * n_in_folder + 2000).to_string());
    assert_eq!(env.read("part7/file1.txt"), "changed\n");
    env.assert_no_container();
}

#[test]
#[ignore = "just soak: a hundred thousand entries"]
fn rel_20_a_folder_of_a_hundred_thousand_entries_is_listed_and_starts() {
    let Some(env) = TestBox::new() else { return };
    // At the top, which is the one folder that the host lists.
    for file in 0..100_000 {
        fs::File::create(env.path(&format!("entry{file}"))).expect("made");
    }
    fs::write(env.path("entry77777"), "needle\n").expect("written");
    let text = call(&env, "bash", &serde_json::json!({"command": "ls | wc -l"}));
    assert_eq!(text.trim(), "100000");
    let listed = call(&env, "list_directory", &serde_json::json!({"path": "."}));
    assert!(listed.contains("entry0"), "{listed}");
    let found = call(&env, "glob", &serde_json::json!({"pattern": "entry7777?"}));
    assert_eq!(found.matches("entry7777").count(), 10, "{found}");
    let found = call(&env, "grep", &serde_json::json!({"pattern": "needle"}));
    assert!(found.contains("entry77777"), "{found}");
    run(&mut env.here(&["call", "read_file", r#"{"path":"entry77777"}"#])).expect(0);
    env.assert_no_container();
}

/// Makes folders in each other, step by step: their whole path is longer than the kernel takes.
fn dig(project: &Path, depth: usize) {
    let mut here: OwnedFd = fs::File::open(project).expect("opened").into();
    for _ in 0..depth {
        mkdirat(&here, "down", Mode::from_bits_truncate(0o755)).expect("made");
        here = openat(
            &here,
            "down",
            OFlag::O_DIRECTORY | OFlag::O_CLOEXEC,
            Mode::empty(),
        )
        .expect("opened");
    }
    drop(
        openat(
            &here,
            "needle.txt",
            OFlag::O_CREAT | OFlag::O_CLOEXEC,
            Mode::from_bits_truncate(0o644),
        )
        .expect("made"),
    );
}

#[test]
fn rel_20_a_deep_tree_odd_names_and_what_is_no_file_hold_nothing_up() {
    let Some(env) = TestBox::new() else { return };
    dig(&env.project(), 3000);
    env.write("plain.txt", "needle\n");
    let odd = [
        &b"new\nline"[..],
        b"esc\x1b]0;title\x07",
        b"caf\xe9",
        b" ",
        b"-rf",
        b"a\\b",
    ];
    for name in odd {
        fs::write(
            env.project().join(std::ffi::OsStr::from_bytes(name)),
            "needle\n",
        )
        .expect("written");
    }
    let socket = UnixListener::bind(env.path("socket")).expect("bound");
    nix::unistd::mkfifo(&env.path("fifo"), Mode::from_bits_truncate(0o666)).expect("made");
    std::os::unix::fs::symlink(".", env.path("loop")).expect("linked");
    std::os::unix::fs::symlink("circle", env.path("circle")).expect("linked");

    let listed = call(&env, "list_directory", &serde_json::json!({"path": "."}));
    for name in ["down/", "fifo", "loop", "plain.txt", "socket", "circle"] {
        assert!(listed.contains(name), "{name}: {listed}");
    }
    let globbed = call(&env, "glob", &serde_json::json!({"pattern": "**/*.txt"}));
    assert!(globbed.contains("plain.txt"), "{globbed}");
    let found = call(&env, "grep", &serde_json::json!({"pattern": "needle"}));
    assert!(found.contains("plain.txt"), "{found}");
    for text in [listed, globbed, found] {
        assert!(!text.contains('\x1b') && !text.contains('\x07'), "{text:?}");
    }
    drop(socket);
    // The folder must go with the test, and not every way of removing one takes a tree of this
    // depth.
    call(
        &env,
        "bash",
        &serde_json::json!({"command": "rm -rf down 2>&1 || true"}),
    );
    let _ = std::process::Command::new("rm")
        .arg("-rf")
        .arg(env.path("down"))
        .status();
    assert!(!env.path("down").exists());
    env.assert_no_container();
}
