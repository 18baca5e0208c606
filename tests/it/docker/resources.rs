//! Commands that take all they can get: each ends in a result that says what it ran into, and the next call in the same box works.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use serde_json::json;

use super::test_box::TestBox;
use super::test_box::docker;
use crate::support::ScriptedModel;
use crate::support::test_env::is_root;
use crate::support::test_env::owner;
use crate::support::test_env::run;
use crate::support::test_env::start;

/// Seconds that a greedy command gets.
const TIMEOUT: u64 = 20;

/// Runs a greedy command and then a small one in one box. Returns what the model read of the first.
#[track_caller]
fn greedy(env: &TestBox, flags: &[&str], settings: &[(&str, &str)], command: &str) -> String {
    greedy_for(TIMEOUT, env, flags, settings, command)
}

/// The same for a command that gets `timeout` seconds.
#[track_caller]
fn greedy_for(timeout: u64, env: &TestBox, flags: &[&str], settings: &[(&str, &str)], command: &str) -> String {
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": command, "timeout_seconds": timeout}))
        .calls("bash", json!({"command": "echo $((40+2)); cat /proc/self/status | grep -c ^Threads"}))
        .says("Done.")
        .start_blocking();
    let mut task = env.here(&["run", "--output", "jsonl", "--model", "scripted", "--endpoint"]);
    task.arg(model.endpoint()).args(flags).args(["be greedy"]).envs(settings.iter().copied());
    let done = run(&mut task).expect(0);
    let text = done.text();
    let ended: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"))
        .filter(|event| event["type"] == "call_finished")
        .collect();
    assert_eq!(ended.len(), 2, "{text}");
    let duration = ended[0]["duration_ms"].as_u64().expect("a number");
    assert!(duration <= (timeout + 2) * 1000, "{duration} ms: {}", ended[0]["result"]);
    // Where the disk is full it also reads that it could write nothing.
    let next = ended[1]["result"].as_str().expect("text");
    assert!(next.starts_with("42\n1\n"), "the next call works in the same box: {next}");
    assert!(!text.contains("box_lost"), "{text}");
    env.assert_no_container();
    ended[0]["result"].as_str().expect("text").to_owned()
}

#[track_caller]
fn has(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "`{word}` is missing: {text}");
    }
}

/// The project on a small file system of its own: on the machine's disk others write too.
struct Small(PathBuf);

impl Small {
    fn over(env: &TestBox, options: &str) -> Self {
        let (uid, gid) = owner();
        let options = format!("{options},mode=0755,uid={uid},gid={gid}");
        let done = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "none"]).arg(env.project()).status();
        assert!(done.expect("the `mount` command").success());
        Self(env.project())
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn r_01_a_fork_bomb_ends_at_the_limit_and_is_named() {
    let Some(env) = TestBox::new() else { return };
    // In a file: one that is written out in a command is blocked before it starts.
    env.write("bomb.sh", "bomb() { bomb | bomb & }; bomb; sleep 3\n");
    let text = greedy(&env, &["--pids", "64"], &[], "exec bash bomb.sh");
    has(&text, &["the limit of 64 processes", "most of those that were seen: `bash`"]);
}

#[test]
fn r_01_a_bomb_that_minds_no_refusal_is_told_the_limit_beside_its_time() {
    let Some(env) = TestBox::new() else { return };
    env.write("bomb.py", "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass\n");
    // Over in its time and two seconds, and the next call works in the same box.
    let text = greedy_for(3, &env, &["--pids", "100"], &[], "exec python3 bomb.py");
    has(&text, &["longer than the limit of 3 s", "the limit of 100 processes in the sandbox", "python3"]);
    // Who only runs too long met no other limit.
    let text = greedy_for(1, &env, &["--pids", "100"], &[], "sleep 30");
    assert!(text.contains("longer than the limit of 1 s") && !text.contains("processes"), "{text}");
}

#[test]
fn r_01_who_holds_the_processes_is_named_though_it_runs_in_the_background() {
    let Some(env) = TestBox::new() else { return };
    env.write(
        "hold.py",
        "import os, time\nfor n in range(44):\n    if os.fork() == 0: time.sleep(600)\nopen('begun', 'w').close()\ntime.sleep(600)\n",
    );
    let loops = "until [ -e begun ]; do :; done; for n in $(seq 20); do sleep 3 & done; wait; exit 3";
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "exec python3 hold.py", "background": true}))
        .calls("bash", json!({"command": loops, "timeout_seconds": 30}))
        .says("Done.")
        .start_blocking();
    run(&mut env.task(&model, &["--pids", "60", "be greedy"])).expect(0);
    let told = model.requests().last().expect("requests")["messages"].to_string();
    has(
        &told,
        &[
            "the limit of 60 processes in the sandbox; most of those that were seen: `python3`, ",
            "most processes in the sandbox are of the background command ",
            "(`exec python3 hold.py`): ",
        ],
    );
    env.assert_no_container();

    // Beside one that holds few it is the command itself.
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "sleep 600", "background": true}))
        .calls("bash", json!({"command": "for n in $(seq 80); do sleep 3 & done; wait; exit 3", "timeout_seconds": 30}))
        .says("Done.")
        .start_blocking();
    run(&mut env.task(&model, &["--pids", "60", "be greedy"])).expect(0);
    let told = model.requests().last().expect("requests")["messages"].to_string();
    has(&told, &["the limit of 60 processes in the sandbox; most of those that were seen: `sleep`, "]);
    assert!(!told.contains("most processes in the sandbox are of"), "{told}");
    env.assert_no_container();
}

#[test]
fn r_02_a_memory_hog_is_named_with_what_it_had() {
    let Some(env) = TestBox::new() else { return };
    let hog = "python3 -c 'x = []\nwhile True: x.append(bytearray(4 << 20))'";
    let text = greedy(&env, &["--memory", "256m"], &[], hog);
    has(&text, &["killed: out of memory, the limit of the sandbox is 256.0 MiB", "`python3`, ", " MiB"]);
}

#[test]
fn r_02_who_sleeps_beside_a_file_in_memory_that_took_it_all_is_not_named() {
    let Some(env) = TestBox::new() else { return };
    let hog = "import os, time
f = os.memfd_create('hidden')
while True:
    os.write(f, bytes(4 << 20)); time.sleep(0.005)
";
    env.write("hog.py", hog);
    let sleeper = "python3 -c 'import time; x = bytearray(12 << 20); time.sleep(600)' &";
    let command = format!("ln -s \"$(command -v python3)\" hog; {sleeper} sleep 1; exec ./hog hog.py");
    let text = greedy(&env, &["--memory", "256m"], &[], &command);
    has(&text, &["killed: out of memory, the limit of the sandbox is 256.0 MiB"]);
    assert!(!text.contains("seen with `python3`"), "{text}");
    has(&text, &["most of it was seen with `hog`, "]);
}

#[test]
fn r_03_many_small_hogs_are_named_together() {
    let Some(env) = TestBox::new() else { return };
    let hogs = "for n in $(seq 40); do python3 -c 'import time; x = bytearray(12 << 20); time.sleep(4)' & done; wait; exit 3";
    let text = greedy(&env, &["--memory", "256m"], &[], hogs);
    has(&text, &["out of memory, the limit of the sandbox is 256.0 MiB", "`python3`, ", " processes"]);
}

#[test]
fn r_05_endless_output_and_an_endless_line_are_cut() {
    let Some(env) = TestBox::new() else { return };
    let text = greedy(&env, &[], &[], "yes & sleep 3; kill %1");
    assert!(text.starts_with("y\ny\n") && text.len() < 100_000, "{} bytes", text.len());
    // Nobody ends this one but its time.
    let text = greedy_for(3, &env, &[], &[], "exec yes");
    assert!(text.starts_with("y\ny\n") && text.len() < 100_000, "{} bytes", text.len());
    has(&text, &["longer than the limit of 3 s"]);
    let line = greedy(&env, &[], &[], "head -c 1000000000 /dev/zero | tr '\\0' x; echo; echo end");
    has(&line, &["xxxxxxxx", "end"]);
    assert!(line.len() < 100_000, "{} bytes", line.len());
}

#[test]
fn r_06_what_runs_too_long_is_named_by_what_still_ran() {
    let Some(env) = TestBox::new() else { return };
    let arguments = r#"{"command":"while :; do echo .; sleep 0.1; done & sleep 33.5 & sleep 33.5","timeout_seconds":1}"#;
    let text = run(&mut env.here(&["call", "bash", arguments])).expect(1).text();
    has(&text, &["longer than the limit of 1 s; what took the most memory of what still ran: `"]);
    env.assert_no_container();
}

/// It cannot be kept from that: both are of its own user.
#[test]
fn r_12_a_command_that_stops_its_supervisor_again_and_again_ends_in_time() {
    let Some(env) = TestBox::new() else { return };
    let stop = "import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def parent(pid):
    return int(open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split()[1])
ours = [os.getppid(), parent(os.getppid())]
os.fork()
os.fork()
while True:
    for pid in ours:
        os.kill(pid, signal.SIGSTOP)
";
    env.write("stop.py", stop);
    let text = greedy_for(3, &env, &[], &[], "echo begun; exec python3 stop.py");
    has(&text, &["begun", "longer than the limit of 3 s"]);
}

/// Nobody else runs who would see to it, and what starts commands is of their own user.
#[test]
fn r_12_beside_a_background_command_that_stops_everything_again_and_again_each_call_ends_in_time() {
    let Some(env) = TestBox::new() else { return };
    let stop = "import os
own = os.getpid()
open('begun', 'w').close()
while True:
    for pid in [int(pid) for pid in os.listdir('/proc') if pid.isdigit()]:
        try:
            pid != own and os.kill(pid, 19)
        except OSError:
            pass
";
    env.write("stop.py", stop);
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "exec python3 stop.py", "background": true}))
        // It may stop these as well, which are commands like itself.
        .calls("bash", json!({"command": "while ! test -e begun; do sleep 0.05; done; sleep 0.2; echo first", "timeout_seconds": 3}))
        .calls("bash", json!({"command": "echo second", "timeout_seconds": 3}))
        .calls("stop_process", json!({"process_id": "last"}))
        .calls("bash", json!({"command": "echo third", "timeout_seconds": 3}))
        .says("Done.")
        .start_blocking();
    let mut task = env.here(&["run", "--output", "jsonl", "--tools", "full", "--model", "scripted", "--endpoint"]);
    let text = run(task.arg(model.endpoint()).arg("be greedy")).expect(0).text();
    let events = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"));
    let ended: Vec<Value> = events.filter(|event| event["type"] == "call_finished").collect();
    assert_eq!(ended.len(), 5, "{text}");
    for call in &ended[1..] {
        // Three, and two to end it in.
        assert!(call["duration_ms"].as_u64().is_some_and(|ms| ms <= 5000), "{call}");
    }
    assert!(env.path("begun").exists(), "{text}");
    assert_eq!(ended[4]["result"], "third\n", "{text}");
    assert!(!text.contains("box_lost"), "{text}");
    env.assert_no_container();
}

/// Nobody could end it otherwise: `kill` is a process too, and who is to end it was stopped.
#[test]
fn r_12_a_background_command_that_holds_all_processes_and_stopped_its_supervisor_is_ended_for_the_next() {
    let Some(env) = TestBox::new() else { return };
    let hold = "import os, sys, time
ours = os.getppid()
while True:
    try:
        if os.fork() == 0:
            time.sleep(600)
    except OSError:
        if not os.path.exists('begun'):
            if sys.argv[1] == 'stop':
                os.kill(ours, 19)
            open('begun', 'w').close()
        time.sleep(0.001)
";
    env.write("hold.py", hold);
    for does in ["stop", "let"] {
        let model = ScriptedModel::new()
            .calls("bash", json!({"command": format!("exec python3 hold.py {does}"), "background": true}))
            // Without a process of its own.
            .calls("bash", json!({"command": "until [ -e begun ]; do :; done; echo first", "timeout_seconds": 20}))
            .calls("bash", json!({"command": "echo second"}))
            .calls("bash", json!({"command": "echo third"}))
            .calls("bash", json!({"command": "echo fourth; sleep 0; echo fifth"}))
            .says("Done.")
            .start_blocking();
        let mut task = env.here(&["run", "--output", "jsonl", "--pids", "60", "--model", "scripted", "--endpoint"]);
        let text = run(task.arg(model.endpoint()).arg("be greedy")).expect(0).text();
        let told = model.requests().last().expect("requests")["messages"].to_string();
        has(&told, &["second", "third", "the sandbox had no free process left; 1 background command(s) were ended", "fourth\\nfifth\\n"]);
        assert!(!told.contains("cannot be started"), "{told}");
        assert!(!text.contains("box_lost"), "{text}");
        std::fs::remove_file(env.path("begun")).expect("it was full");
        env.assert_no_container();
    }
}

#[test]
fn r_08_a_project_that_grows_too_much_is_stopped_and_so_is_a_full_disk() {
    let Some(env) = TestBox::new() else { return };
    if !is_root("a project on a disk of its own") {
        return;
    }
    let _disk = Small::over(&env, "size=256m");
    // In slices, as one file has a limit of its own; the last one waits to be ended.
    let fill = "for n in $(seq 240); do head -c 1M /dev/zero > piece$n; sleep 0.01; done; sleep 60";
    let settings = [("PODBAY_SANDBOX_DISK", "64MiB"), ("PODBAY_SANDBOX_DISK_FLOOR", "16MiB")];
    let text = greedy(&env, &[], &settings, fill);
    has(
        &text,
        &["killed: the project has grown by more than 64.0 MiB in this session, the limit of `sandbox.disk`", "most was written by `"],
    );
    let n_pieces = std::fs::read_dir(env.project()).expect("a folder").count();
    assert!((60..240).contains(&n_pieces), "{n_pieces}");

    // A new session begins with what is there; without that limit the host's part is what stays.
    let settings = [("PODBAY_SANDBOX_DISK", "0"), ("PODBAY_SANDBOX_DISK_FLOOR", "32MiB")];
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
        for entry in std::fs::read_dir(env.project()).expect("a folder").flatten() {
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
    run(task.env("PODBAY_SANDBOX_DISK", "48MiB").env("PODBAY_SANDBOX_DISK_FLOOR", "0")).expect(0);
    let told = model.requests().last().expect("requests")["messages"].to_string();
    has(
        &told,
        &["a background command was ended: the project has grown by more than 48.0 MiB in this session, the limit of `sandbox.disk`"],
    );
    remove("back");
    env.write("more1", vec![1; 100 << 20]);

    // What frees something is not stopped, and what is small neither.
    let settings = [("PODBAY_SANDBOX_DISK_FLOOR", "128MiB")];
    let text = greedy(&env, &[], &settings, "rm more*; head -c 1M /dev/zero > small; sleep 1; echo freed");
    assert_eq!(text, "freed\n");
    // Without any limit nothing is watched.
    let off = [("PODBAY_SANDBOX_DISK", "0"), ("PODBAY_SANDBOX_DISK_FILES", "0"), ("PODBAY_SANDBOX_DISK_FLOOR", "0")];
    let text = greedy(&env, &[], &off, "head -c 400M /dev/zero > all; sleep 1; rm all; echo through");
    has(&text, &["No space left on device", "through"]);
}

#[test]
fn r_08_a_file_that_has_lost_its_name_counts_while_it_is_open_or_mapped() {
    let Some(env) = TestBox::new() else { return };
    if !is_root("a project on a disk of its own") {
        return;
    }
    let _disk = Small::over(&env, "size=256m");
    let settings = [("PODBAY_SANDBOX_DISK", "64MiB"), ("PODBAY_SANDBOX_DISK_FLOOR", "16MiB")];
    let grown = "killed: the project has grown by more than 64.0 MiB in this session, the limit of `sandbox.disk`";
    let open = "import os, time\nf = open('hidden', 'wb')\nos.unlink('hidden')\n";
    let write = "for n in range(200):\n    f.write(bytes(1 << 20)); f.flush(); time.sleep(0.01)\ntime.sleep(60)";
    let text = greedy(&env, &[], &settings, &format!("exec python3 -c \"{open}{write}\""));
    has(&text, &[grown, "most was written by `python3`"]);
    let map = "import mmap\nf.truncate(200 << 20)\nf = open(f'/proc/self/fd/{f.fileno()}', 'r+b')\nm = mmap.mmap(f.fileno(), 200 << 20)\nf.close()\n";
    let touch = "for n in range(200):\n    m[n << 20:(n + 1) << 20] = bytes(range(1, 129)) * 8192; time.sleep(0.01)\ntime.sleep(60)";
    let text = greedy(&env, &[], &settings, &format!("exec python3 -c \"{open}{map}{touch}\""));
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
    let text = greedy(&env, &[], &settings, &format!("exec python3 -c \"{script}\""));
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
    let text = greedy(&env, &[], &settings, &format!("exec python3 -c \"{script}\""));
    has(&text, &[grown, "most was written by `python3`"]);
    // One that stays small, or is closed again, is nobody's trouble.
    let text =
        greedy(&env, &[], &settings, &format!("python3 -c \"{open}f.write(bytes(40 << 20)); f.flush(); time.sleep(1)\"; echo through"));
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
    let settings = [("PODBAY_SANDBOX_DISK", "64MiB"), ("PODBAY_SANDBOX_DISK_FLOOR", "16MiB")];
    let sends = "import os, socket, time
one, other = socket.socketpair()
for n in range(24):
    f = open('hidden', 'wb'); os.unlink('hidden')
    f.write(bytes(8 << 20)); f.flush()
    socket.send_fds(one, [b'x'], [f.fileno()]); f.close(); time.sleep(0.05)
time.sleep(60)";
    let grown = "killed: the project has grown by more than 64.0 MiB in this session, the limit of `sandbox.disk`";
    let text = greedy(&env, &[], &settings, &format!("exec python3 -c \"{sends}\""));
    has(&text, &[grown, "most was written by `python3`"]);

    // Who uses sockets, and sends descriptors that arrive, is not ended for what others take of the disk meanwhile.
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
        let text = greedy(&env, &[], &settings, &format!("exec python3 -c \"{waits}\""));
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
    let settings = [("PODBAY_SANDBOX_DISK", "32MiB"), ("PODBAY_SANDBOX_DISK_FLOOR", "0")];
    // Room that is taken without a write is in no process's count.
    let text = greedy(&env, &[], &settings, "echo begun; fallocate -l 80M made; echo end; sleep 60");
    has(&text, &["killed: the project has grown by more than 32.0 MiB in this session, the limit of `sandbox.disk`"]);
    assert!(!text.contains("most was written by"), "{text}");
}

#[test]
fn r_08_commands_that_are_over_before_a_look_are_told_what_they_took() {
    let Some(env) = TestBox::new() else { return };
    if !is_root("a project on a disk of its own") {
        return;
    }
    let _disk = Small::over(&env, "size=256m");
    let settings = [("PODBAY_SANDBOX_DISK", "32MiB"), ("PODBAY_SANDBOX_DISK_FLOOR", "0")];
    let text = greedy(&env, &[], &settings, "fallocate -l 40M made");
    has(&text, &["the project has grown by more than 32.0 MiB in this session, the limit of `sandbox.disk`"]);
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
    let sizeless =
        "fallocate -n -l 7M made/5; fallocate -z -n -l 7M made/5; fallocate -l 7M made/holes; echo tried; stat -c %b made/5 made/holes";
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
    run(task.env("PODBAY_SANDBOX_DISK", "32MiB").env("PODBAY_SANDBOX_DISK_FLOOR", "0")).expect(0);
    let last = model.requests().last().expect("requests")["messages"].clone();
    let told: Vec<String> = last
        .as_array()
        .expect("a list")
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].to_string())
        .collect();
    let limit = "the project has grown by more than 32.0 MiB in this session, the limit of `sandbox.disk`";
    assert_eq!(told.len(), 16, "{told:#?}");
    assert_eq!(told[0], "\"ended 0\\n\"", "{told:#?}");
    // A look may come just in time to end it.
    has(&told[1], &["ended 1", limit]);
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
    has(&told[11], &["write the file", limit, "`made` with 40.0 MiB", "nothing was changed"]);
    has(&told[12], &["write the file", limit, "nothing was changed"]);
    has(&told[13], &["cannot be started", limit, "before there is room"]);
    has(&told[14], &["20971520", "freed", "there is room again"]);
    assert_eq!(told[15], "\"x\\n\"");
    assert!(!env.path("written").exists());
    let left: u64 =
        std::fs::read_dir(env.path("made")).expect("a folder").flatten().map(|entry| entry.metadata().expect("a file").len()).sum();
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
        model = model.calls("bash", json!({"command": format!("fallocate -l 100M made{n}; echo ended")}));
    }
    let model = model.calls("bash", json!({"command": "rm made*"})).says("Done.").start_blocking();
    let mut task = env.task(&model, &["be greedy"]);
    run(task.env("PODBAY_SANDBOX_DISK", "0").env("PODBAY_SANDBOX_DISK_FLOOR", "64MiB")).expect(0);
    let told = model.requests().last().expect("requests")["messages"].to_string();
    has(
        &told,
        &[
            "File too large",
            "less than 64.0 MiB is free on the disk of the project",
            "most of what this session wrote is `made",
            "there is room again",
        ],
    );
    assert_eq!(std::fs::read_dir(env.project()).expect("a folder").count(), 0);
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
        .calls("bash", json!({"command": "head -c 40M /dev/zero > first && touch begun && sleep 60"}))
        .calls("bash", json!({"command": "head -c 40M /dev/zero > second; sleep 60"}))
        .says("Done.")
        .start_blocking();
    let mut task = env.task(&model, &["be greedy"]);
    let task = start(task.env("PODBAY_SANDBOX_DISK", "64MiB").env("PODBAY_SANDBOX_DISK_FLOOR", "0"));
    env.wait_for("begun");
    docker(&["rm", "--force", &env.container()]);
    task.wait().expect(0);
    let told = model.requests().last().expect("requests")["messages"].to_string();
    has(&told, &["A new one takes its place", "the project has grown by more than 64.0 MiB in this session"]);
    env.assert_no_container();
}

#[test]
fn r_03_hogs_that_were_killed_are_told_beside_the_limit_that_ended_the_command() {
    let Some(env) = TestBox::new() else { return };
    let hogs = "for n in $(seq 40); do python3 -c 'import time; x = bytearray(16 << 20); time.sleep(60)' & done; sleep 60";
    let arguments = json!({"command": hogs, "timeout_seconds": 6}).to_string();
    let text = run(&mut env.here(&["call", "--memory", "256m", "bash", &arguments])).expect(1).text();
    has(
        &text,
        &[
            "longer than the limit of 6 s",
            "`python3`",
            " processes in the sandbox were killed meanwhile: out of memory, its limit is 256.0 MiB",
        ],
    );
    assert!(!text.contains("podbay-spawner"), "{text}");
}

#[test]
fn r_09_a_project_that_gains_too_many_files_is_stopped() {
    let Some(env) = TestBox::new() else { return };
    if !is_root("a project on a disk of its own") {
        return;
    }
    let _disk = Small::over(&env, "size=64m,nr_inodes=60000");
    let fill = "python3 -c '\nimport time\nfor n in range(50000):\n    open(f\"f{n}\", \"w\").close()\n    if n % 100 == 0: time.sleep(0.01)\ntime.sleep(60)'";
    let settings = [("PODBAY_SANDBOX_DISK_FILES", "5000"), ("PODBAY_SANDBOX_DISK", "0"), ("PODBAY_SANDBOX_DISK_FLOOR", "0")];
    let text = greedy(&env, &[], &settings, fill);
    has(&text, &["killed: the project has gained more than 5000 files in this session, the limit of `sandbox.disk_files`", "`python3`"]);
    let settings = [("PODBAY_SANDBOX_DISK_FILES", "0"), ("PODBAY_SANDBOX_DISK_FLOOR", "1MiB")];
    let text = greedy(&env, &[], &settings, &fill.replace("f\"f", "f\"g").replace("50000", "59000"));
    has(&text, &["killed: fewer than 3000 more files fit on the disk of the project"]);
}

#[test]
fn r_15_which_of_its_own_folders_is_full_is_told() {
    let Some(env) = TestBox::new() else { return };
    let flags = ["--memory", "256m"];
    let text = greedy(&env, &flags, &[], "head -c 1G /dev/zero > /tmp/large");
    has(
        &text,
        &["No space left on device", "/tmp is full: it holds 64 MiB in 16384 files at most; if that is why it failed, remove some there"],
    );
    let text = greedy(&env, &flags, &[], "cd \"$HOME\" && python3 -c '\nfor n in range(10**6): open(f\"f{n}\", \"w\").close()'");
    has(&text, &["No space left on device", "/home/agent is full: it holds 48 MiB in 16384 files at most"]);
    let text = greedy(&env, &flags, &[], "cd /tmp && python3 -c '\nfor n in range(10**6): open(f\"f{n}\", \"w\").close()'");
    has(&text, &["/tmp is full"]);
    let text = greedy(&env, &flags, &[], "head -c 1G /dev/zero > /dev/shm/large");
    has(&text, &["/dev/shm is full"]);
    // A command in the background has nowhere to print to.
    let fill = "cd /tmp && python3 -c '\nfor n in range(10**6): open(f\"f{n}\", \"w\").close()'";
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "sleep 30", "background": true}))
        .calls("bash", json!({ "command": fill }))
        .calls("bash", json!({"command": "sleep 30", "background": true}))
        .says("Done.")
        .start_blocking();
    run(&mut env.task(&model, &["--memory", "256m", "be greedy"])).expect(0);
    let told = model.requests().last().expect("requests")["messages"].clone();
    let told: Vec<String> =
        told.as_array().expect("a list").iter().filter(|message| message["role"] == "tool").map(|m| m["content"].to_string()).collect();
    assert!(told[0].contains("it runs in the background") && !told[0].contains("full"), "{told:#?}");
    has(&told[2], &["for the output", "No space left on device", "/tmp is full: it holds 64 MiB in 16384 files at most"]);
    // Of what failed for another reason nothing of the kind is said.
    let text = greedy(&env, &flags, &[], "false");
    assert!(!text.contains("full"), "{text}");
}

#[test]
fn a_file_that_is_too_large_names_the_limit() {
    let Some(env) = TestBox::new() else { return };
    let small = [("PODBAY_SANDBOX_FILE_SIZE", "64KiB")];
    let killed = "killed: a file came to be as large as the sandbox allows, 64.0 KiB";
    // Who was too quick to be seen may have had a limit of its own. On a busy machine nobody is too quick.
    let unsure = "a file comes to be too large: the sandbox allows 64.0 KiB, unless the command has set less";
    let text = greedy(&env, &[], &small, "head -c 65537 /dev/zero > large");
    assert!(text.contains(unsure) || text.contains(killed), "{text}");
    // These have written too little to be taken for the one, seen or not.
    for quick in ["ulimit -f 1; head -c 60000 /dev/zero > less", "kill -XFSZ $$"] {
        let text = greedy(&env, &[], &small, quick);
        has(&text, &[unsure]);
        assert!(!text.contains("as large as the sandbox allows"), "{quick}: {text}");
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
    has(&text, &[killed, "; most was written by `python3`, ", " KiB"]);
    let text = greedy(&env, &[], &small, "rm slow; exec python3 slow.py");
    has(&text, &[killed, "; most was written by `python3`, "]);
    // The number alone says nothing of a file.
    let text = greedy(&env, &[], &small, "echo small > file; exit 153");
    assert!(text.contains("exit code 153") && !text.contains("killed"), "{text}");
}
