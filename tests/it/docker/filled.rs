//! Commands that fill a disk, or make a file that is too large: each ends in a result that says
//! which limit it met.

use serde_json::json;

use super::greedy::Small;
use super::greedy::greedy;
use super::greedy::has;
use super::test_box::TestBox;
use super::test_box::docker;
use crate::support::ScriptedModel;
use crate::support::test_env::is_root;
use crate::support::test_env::run;
use crate::support::test_env::start;

#[test]
fn r_08_a_project_that_grows_too_much_is_stopped_and_so_is_a_full_disk() {
    let Some(env) = TestBox::new() else { return };
    if !is_root("a project on a disk of its own") {
        return;
    }
    let _disk = Small::over(&env, "size=256m");
    // In slices, as one file has a limit of its own; the last one waits to be ended.
    let fill = "for n in $(seq 240); do head -c 1M /dev/zero > piece$n; sleep 0.01; done; sleep 60";
    let settings = [
        ("PODBAY_SANDBOX_DISK", "64MiB"),
        ("PODBAY_SANDBOX_DISK_FLOOR", "16MiB"),
    ];
    let text = greedy(&env, &[], &settings, fill);
    has(
        &text,
        &[
            "killed: the project, /tmp and the home folder have grown by more than 64.0 MiB in this session, the limit of `sandbox.disk`",
            "most was written by `",
        ],
    );
    let n_pieces = std::fs::read_dir(env.project()).expect("a folder").count();
    assert!((60..240).contains(&n_pieces), "{n_pieces}");

    // A new session begins with what is there; without that limit the host's part is what stays.
    let settings = [
        ("PODBAY_SANDBOX_DISK", "0"),
        ("PODBAY_SANDBOX_DISK_FLOOR", "32MiB"),
    ];
    let text = greedy(&env, &[], &settings, fill.replace("piece", "more").as_str());
    has(
        &text,
        &[
            "killed: less than 32.0 MiB is free on the disk of the project, which `sandbox.disk_floor` keeps for the host",
            "most was written by `",
        ],
    );

    // One in the background is stopped as well, and the next command tells of it.
    let remove = |prefix: &str| {
        for entry in std::fs::read_dir(env.project())
            .expect("a folder")
            .flatten()
        {
            if entry.file_name().to_string_lossy().starts_with(prefix) {
                std::fs::remove_file(entry.path()).expect("removed");
            }
        }
    };
    remove("more");
    let fill = "for n in $(seq 120); do head -c 1M /dev/zero > back$n; sleep 0.01; done; sleep 60";
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": fill, "background": true}))
        .calls("bash", json!({"command": "sleep 8; ls | grep -c back"}))
        .says("Done.")
        .start_blocking();
    let mut task = env.task(&model, &["be greedy"]);
    run(task
        .env("PODBAY_SANDBOX_DISK", "48MiB")
        .env("PODBAY_SANDBOX_DISK_FLOOR", "0"))
    .expect(0);
    let told = model.requests().last().expect("requests")["messages"].to_string();
    has(
        &told,
        &[
            "a background command was ended: the project, /tmp and the home folder have grown by more than 48.0 MiB in this session, the limit of `sandbox.disk`",
        ],
    );
    remove("back");
    env.write("more1", vec![1; 100 << 20]);

    // What frees something is not stopped, and what is small neither.
    let settings = [("PODBAY_SANDBOX_DISK_FLOOR", "128MiB")];
    let text = greedy(
        &env,
        &[],
        &settings,
        "rm more*; head -c 1M /dev/zero > small; sleep 1; echo freed",
    );
    assert_eq!(text, "freed\n");
    // Without any limit nothing is watched.
    let off = [
        ("PODBAY_SANDBOX_DISK", "0"),
        ("PODBAY_SANDBOX_DISK_FILES", "0"),
        ("PODBAY_SANDBOX_DISK_FLOOR", "0"),
    ];
    let text = greedy(
        &env,
        &[],
        &off,
        "head -c 400M /dev/zero > all; sleep 1; rm all; echo through",
    );
    has(&text, &["No space left on device", "through"]);
}

#[test]
fn r_08_a_file_that_has_lost_its_name_counts_while_it_is_open_or_mapped() {
    let Some(env) = TestBox::new() else { return };
    if !is_root("a project on a disk of its own") {
        return;
    }
    let _disk = Small::over(&env, "size=256m");
    let settings = [
        ("PODBAY_SANDBOX_DISK", "64MiB"),
        ("PODBAY_SANDBOX_DISK_FLOOR", "16MiB"),
    ];
    let grown = "killed: the project, /tmp and the home folder have grown by more than 64.0 MiB in this session, the limit of `sandbox.disk`";
    let open = "import os, time\nf = open('hidden', 'wb')\nos.unlink('hidden')\n";
    let write = "for n in range(200):\n    f.write(bytes(1 << 20)); f.flush(); time.sleep(0.01)\ntime.sleep(60)";
    let text = greedy(
        &env,
        &[],
        &settings,
        &format!("exec python3 -c \"{open}{write}\""),
    );
    has(&text, &[grown, "most was written by `python3`"]);
    let map = "import mmap\nf.truncate(200 << 20)\nf = open(f'/proc/self/fd/{f.fileno()}', 'r+b')\nm = mmap.mmap(f.fileno(), 200 << 20)\nf.close()\n";
    let touch = "for n in range(200):\n    m[n << 20:(n + 1) << 20] = bytes(range(1, 129)) * 8192; time.sleep(0.01)\ntime.sleep(60)";
    let text = greedy(
        &env,
        &[],
        &settings,
        &format!("exec python3 -c \"{open}{map}{touch}\""),
    );
    has(&text, &[grown]);
    // Of a process whose first thread has ended nothing is seen but by way of another thread.
    let script = "import ctypes, os, threading, time
def fill():
    time.sleep(0.3)
    f = open('hidden', 'wb')
    os.unlink('hidden')
    for n in range(200):
        f.write(bytes(1 << 20)); f.flush(); time.sleep(0.01)
    time.sleep(60)
threading.Thread(target=fill).start()
ctypes.CDLL(None).syscall(60, 0)";
    let text = greedy(
        &env,
        &[],
        &settings,
        &format!("exec python3 -c \"{script}\""),
    );
    has(&text, &[grown]);
    // Where its path is too long to be told.
    let script = "import os, time
os.mkdir('deep'); os.chdir('deep')
for n in range(20):
    os.mkdir('x' * 250); os.chdir('x' * 250)
f = open('hidden', 'wb')
os.unlink('hidden')
for n in range(20):
    os.chdir('..'); os.rmdir('x' * 250)
for n in range(200):
    f.write(bytes(1 << 20)); f.flush(); time.sleep(0.01)
time.sleep(60)";
    let text = greedy(
        &env,
        &[],
        &settings,
        &format!("exec python3 -c \"{script}\""),
    );
    has(&text, &[grown, "most was written by `python3`"]);
    // One that stays small, or is closed again, is nobody's trouble.
    let text = greedy(
        &env,
        &[],
        &settings,
        &format!(
            "python3 -c \"{open}f.write(bytes(40 << 20)); f.flush(); time.sleep(1)\"; echo through"
        ),
    );
    assert_eq!(text, "through\n");
}

/// The receiving end sees none of them: they are nobody's until they are received.
#[test]
fn r_18_what_is_held_by_descriptors_in_flight_ends_its_command() {
    let Some(env) = TestBox::new() else { return };
    if !is_root("a project on a disk of its own") {
        return;
    }
    let _disk = Small::over(&env, "size=400m");
    let settings = [
        ("PODBAY_SANDBOX_DISK", "64MiB"),
        ("PODBAY_SANDBOX_DISK_FLOOR", "16MiB"),
    ];
    let sends = "import os, socket, time
one, other = socket.socketpair()
for n in range(24):
    f = open('hidden', 'wb'); os.unlink('hidden')
    f.write(bytes(8 << 20)); f.flush()
    socket.send_fds(one, [b'x'], [f.fileno()]); f.close(); time.sleep(0.05)
time.sleep(60)";
    let grown = "killed: the project, /tmp and the home folder have grown by more than 64.0 MiB in this session, the limit of `sandbox.disk`";
    let text = greedy(
        &env,
        &[],
        &settings,
        &format!("exec python3 -c \"{sends}\""),
    );
    has(&text, &[grown, "most was written by `python3`"]);

    // Who uses sockets, and sends descriptors that arrive, is not ended for what others take of the
    // disk meanwhile.
    let waits = "import os, socket, time
one, other = socket.socketpair()
f = open('kept', 'wb'); f.write(bytes(1 << 20)); f.flush()
socket.send_fds(one, [b'x'], [f.fileno()])
kept = socket.recv_fds(other, 1, 1)[1]
open('begun', 'w').close()
while not os.path.exists('go'): time.sleep(0.05)
time.sleep(1)
print('through', flush=True)";
    let path = env.path("theirs");
    let mut theirs = std::fs::File::create(&path).expect("made");
    std::fs::remove_file(&path).expect("removed");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            env.wait_for("begun");
            std::io::Write::write_all(&mut theirs, &vec![1; 100 << 20]).expect("written");
            env.write("go", "");
        });
        let text = greedy(
            &env,
            &[],
            &settings,
            &format!("exec python3 -c \"{waits}\""),
        );
        assert_eq!(text, "through\n");
    });
}

#[test]
fn r_08_who_only_printed_a_line_is_not_named_for_a_disk_that_was_filled() {
    let Some(env) = TestBox::new() else { return };
    if !is_root("a project on a disk of its own") {
        return;
    }
    let _disk = Small::over(&env, "size=256m");
    let settings = [
        ("PODBAY_SANDBOX_DISK", "32MiB"),
        ("PODBAY_SANDBOX_DISK_FLOOR", "0"),
    ];
    // Room that is taken without a write is in no process's count.
    let text = greedy(
        &env,
        &[],
        &settings,
        "echo begun; fallocate -l 80M made; echo end; sleep 60",
    );
    has(
        &text,
        &[
            "killed: the project, /tmp and the home folder have grown by more than 32.0 MiB in this session, the limit of `sandbox.disk`",
        ],
    );
    assert!(!text.contains("most was written by"), "{text}");
}

#[test]
fn r_08_commands_that_are_over_before_a_look_are_told_what_they_took() {
    let Some(env) = TestBox::new() else { return };
    if !is_root("a project on a disk of its own") {
        return;
    }
    let _disk = Small::over(&env, "size=256m");
    let settings = [
        ("PODBAY_SANDBOX_DISK", "32MiB"),
        ("PODBAY_SANDBOX_DISK_FLOOR", "0"),
    ];
    let text = greedy(&env, &[], &settings, "fallocate -l 40M made");
    has(
        &text,
        &[
            "the project, /tmp and the home folder have grown by more than 32.0 MiB in this session, the limit of `sandbox.disk`",
        ],
    );
}

#[test]
fn r_08_short_commands_in_a_row_do_not_pass_the_limit_together() {
    let Some(env) = TestBox::new() else { return };
    if !is_root("a project on a disk of its own") {
        return;
    }
    let _disk = Small::over(&env, "size=256m");
    // Each of these is over before a look could stop it.
    let mut model = ScriptedModel::new();
    for n in 0..10 {
        model = model.calls("bash", json!({"command": format!("mkdir -p made && fallocate -l 20M made/{n}; test {n} != 0 || truncate -s 8M made/holes; echo ended {n}")}));
    }
    // Nor without a change of a file's size.
    let sizeless = "fallocate -n -l 7M made/5; fallocate -z -n -l 7M made/5; fallocate -l 7M made/holes; echo tried; stat -c %b made/5 made/holes";
    model = model.calls("bash", json!({ "command": sizeless }));
    let model = model
        .calls("write_file", json!({"path": "written", "content": "x"}))
        .calls("copy_file", json!({"source": "made/0", "destination": "written"}))
        .calls("bash", json!({"command": "sleep 30", "background": true}))
        .calls("bash", json!({"command": "ulimit -f unlimited; echo x > /tmp/x; cat made/0 | wc -c; rm made/0 made/1 && echo freed"}))
        .calls("bash", json!({"command": "echo x > after; cat after"}))
        .says("Done.")
        .start_blocking();
    let mut task = env.task(&model, &["be greedy"]);
    run(task
        .env("PODBAY_SANDBOX_DISK", "32MiB")
        .env("PODBAY_SANDBOX_DISK_FLOOR", "0"))
    .expect(0);
    let last = model.requests().last().expect("requests")["messages"].clone();
    let told: Vec<String> = last
        .as_array()
        .expect("a list")
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].to_string())
        .collect();
    let limit = "the project, /tmp and the home folder have grown by more than 32.0 MiB in this session, the limit of `sandbox.disk`";
    assert_eq!(told.len(), 16, "{told:#?}");
    assert_eq!(told[0], "\"ended 0\\n\"", "{told:#?}");
    // A look may come in time to end it, before its last word on a busy machine.
    has(&told[1], &[limit]);
    for told in &told[2..10] {
        has(
            told,
            &[
                "File too large",
                "ended ",
                limit,
                "this command could remove files and write to none",
                "most of that is `made` with 40.0 MiB",
                "remove what is not needed",
            ],
        );
    }
    has(&told[10], &["File too large", "tried\\n0\\n0\\n"]);
    has(
        &told[11],
        &[
            "write the file",
            limit,
            "`made` with 40.0 MiB",
            "nothing was changed",
        ],
    );
    has(&told[12], &["write the file", limit, "nothing was changed"]);
    has(&told[13], &["cannot be started", limit, "needs free space"]);
    has(&told[14], &["20971520", "freed", "there is space again"]);
    assert_eq!(told[15], "\"x\\n\"");
    assert!(!env.path("written").exists());
    let left: u64 = std::fs::read_dir(env.path("made"))
        .expect("a folder")
        .flatten()
        .map(|entry| entry.metadata().expect("a file").len())
        .sum();
    assert_eq!(left, 8 << 20, "what was refused took nothing");
    env.assert_no_container();
}

#[test]
fn r_08_what_is_kept_for_the_host_is_kept_from_short_commands_too() {
    let Some(env) = TestBox::new() else { return };
    if !is_root("a project on a disk of its own") {
        return;
    }
    let _disk = Small::over(&env, "size=256m");
    let mut model = ScriptedModel::new();
    for n in 0..4 {
        model = model.calls(
            "bash",
            json!({"command": format!("fallocate -l 100M made{n}; echo ended")}),
        );
    }
    let model = model
        .calls("bash", json!({"command": "rm made*"}))
        .says("Done.")
        .start_blocking();
    let mut task = env.task(&model, &["be greedy"]);
    run(task
        .env("PODBAY_SANDBOX_DISK", "0")
        .env("PODBAY_SANDBOX_DISK_FLOOR", "64MiB"))
    .expect(0);
    let told = model.requests().last().expect("requests")["messages"].to_string();
    has(
        &told,
        &[
            "File too large",
            "less than 64.0 MiB is free on the disk of the project",
            "most of what this session wrote is `made",
            "there is space again",
        ],
    );
    assert_eq!(
        std::fs::read_dir(env.project()).expect("a folder").count(),
        0
    );
    env.assert_no_container();
}

#[test]
fn r_08_a_box_in_the_place_of_another_goes_on_counting() {
    let Some(env) = TestBox::new() else { return };
    if !is_root("a project on a disk of its own") {
        return;
    }
    let _disk = Small::over(&env, "size=256m");
    let model = ScriptedModel::new()
        .calls(
            "bash",
            json!({"command": "head -c 40M /dev/zero > first && touch begun && sleep 60"}),
        )
        .calls(
            "bash",
            json!({"command": "head -c 40M /dev/zero > second; sleep 60"}),
        )
        .says("Done.")
        .start_blocking();
    let mut task = env.task(&model, &["be greedy"]);
    let task = start(
        task.env("PODBAY_SANDBOX_DISK", "64MiB")
            .env("PODBAY_SANDBOX_DISK_FLOOR", "0"),
    );
    env.wait_for("begun");
    docker(&["rm", "--force", &env.container()]);
    task.wait().expect(0);
    let told = model.requests().last().expect("requests")["messages"].to_string();
    has(
        &told,
        &[
            "A new one takes its place",
            "the project, /tmp and the home folder have grown by more than 64.0 MiB in this session",
        ],
    );
    env.assert_no_container();
}

#[test]
fn r_09_a_project_that_gains_too_many_files_is_stopped() {
    let Some(env) = TestBox::new() else { return };
    if !is_root("a project on a disk of its own") {
        return;
    }
    let _disk = Small::over(&env, "size=64m,nr_inodes=60000");
    // Where it is faster than who looks, it waits to be ended.
    let fill = "python3 -c '\nimport time\nfor n in range(50000):\n    try: open(f\"f{n}\", \"w\").close()\n    except OSError: break\n    if n % 100 == 0: time.sleep(0.01)\ntime.sleep(60)'";
    let settings = [
        ("PODBAY_SANDBOX_DISK_FILES", "5000"),
        ("PODBAY_SANDBOX_DISK", "0"),
        ("PODBAY_SANDBOX_DISK_FLOOR", "0"),
    ];
    let text = greedy(&env, &[], &settings, fill);
    has(
        &text,
        &[
            "killed: the project, /tmp and the home folder have gained more than 5000 files in this session, the limit of `sandbox.disk_files`",
            "`python3`",
        ],
    );
    let settings = [
        ("PODBAY_SANDBOX_DISK_FILES", "0"),
        ("PODBAY_SANDBOX_DISK_FLOOR", "1MiB"),
    ];
    let text = greedy(
        &env,
        &[],
        &settings,
        &fill.replace("f\"f", "f\"g").replace("50000", "59000"),
    );
    has(
        &text,
        &["killed: fewer than 3000 more files fit on the disk of the project"],
    );
}

#[test]
fn r_15_which_of_its_own_folders_is_full_is_told() {
    let Some(env) = TestBox::new() else { return };
    let flags = ["--memory", "256m"];
    let text = greedy(&env, &flags, &[], "head -c 1G /dev/zero > /dev/shm/large");
    has(
        &text,
        &[
            "No space left on device",
            "/dev/shm is full: it holds 64 MiB in 4096 files at most (`sandbox.shm` gives it more); if that is why it failed, remove files there",
        ],
    );
    let more = [("PODBAY_SANDBOX_SHM", "96MiB")];
    let script = "head -c 80M /dev/zero > /dev/shm/large && echo written";
    has(&greedy(&env, &flags, &more, script), &["written"]);
    let text = greedy(
        &env,
        &flags,
        &[],
        "cd /dev/shm && python3 -c '\nfor n in range(10**6): open(f\"f{n}\", \"w\").close()'",
    );
    has(&text, &["/dev/shm is full"]);
    // Of what failed for another reason nothing of the kind is said.
    let text = greedy(&env, &flags, &[], "false");
    assert!(!text.contains("full"), "{text}");
}

/// A command that writes more than `sandbox.disk` outside of the project is ended as well: these
/// folders are on the engine's disk.
#[test]
fn temporary_files_and_the_home_folder_count_within_the_disk_limit() {
    let Some(env) = TestBox::new() else { return };
    // What others free on the engine's disk just then hides what was taken: a machine that runs
    // other tests tries again.
    let is_told = |settings: &[(&str, &str)], script: &str, limit: &str| {
        (0..3).any(|_| greedy(&env, &[], settings, script).contains(limit))
    };
    let small = [("PODBAY_SANDBOX_DISK", "64MiB")];
    let limit = "the project, /tmp and the home folder have grown by more than 64.0 MiB in this session, the limit of `sandbox.disk`";
    for place in ["/tmp", "\"$HOME\""] {
        let script = format!("head -c 300M /dev/zero > {place}/large; sync; sleep 10");
        assert!(is_told(&small, &script, limit), "{place}");
    }
    let few = [("PODBAY_SANDBOX_DISK_FILES", "5000")];
    let script = "cd /tmp && python3 -c '\nfor n in range(10**6): open(f\"f{n}\", \"w\").close()'";
    let limit =
        "have gained more than 5000 files in this session, the limit of `sandbox.disk_files`";
    assert!(is_told(&few, script, limit), "files");
    env.assert_no_container();
}

#[test]
fn a_file_that_is_too_large_names_the_limit() {
    let Some(env) = TestBox::new() else { return };
    let small = [("PODBAY_SANDBOX_FILE_SIZE", "64KiB")];
    let killed = "killed: a file reached 64.0 KiB, the limit of `sandbox.file_size`";
    // Who was too quick to be seen may have had a limit of its own. On a busy machine nobody is too
    // quick.
    let unsure = "it ended as if a file became too large: the sandbox allows 64.0 KiB, unless the command has set a lower limit";
    let text = greedy(&env, &[], &small, "head -c 65537 /dev/zero > large");
    assert!(text.contains(unsure) || text.contains(killed), "{text}");
    // These have written too little to be taken for the one, seen or not.
    for quick in [
        "ulimit -f 1; head -c 60000 /dev/zero > less",
        "kill -XFSZ $$",
    ] {
        let text = greedy(&env, &[], &small, quick);
        has(&text, &[unsure]);
        assert!(
            !text.contains("as large as the sandbox allows"),
            "{quick}: {text}"
        );
    }
    // Who takes its time over it is seen.
    let slow = "import signal, time
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
with open('slow', 'wb', 0) as f:
    while True:
        f.write(bytes(4096)); time.sleep(0.3)
";
    env.write("slow.py", slow);
    let text = greedy(&env, &[], &small, "python3 slow.py");
    has(
        &text,
        &[killed, "; most was written by `python3`, ", " KiB"],
    );
    let text = greedy(&env, &[], &small, "rm slow; exec python3 slow.py");
    has(&text, &[killed, "; most was written by `python3`, "]);
    // The number alone says nothing of a file.
    let text = greedy(&env, &[], &small, "echo small > file; exit 153");
    assert!(
        text.contains("exit code 153") && !text.contains("killed"),
        "{text}"
    );
}
