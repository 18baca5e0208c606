//! Plan mode: nothing changes the project until a user approves a plan.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use serde_json::json;

use super::chat::Talk;
use super::git::git;
use super::test_box::TestBox;
use super::test_box::docker;
use crate::support::ScriptedModel;
use crate::support::scripted_model::Running;
use crate::support::test_env::is_root;
use crate::support::test_env::run;
use crate::support::test_env::within;

/// Tries each way to change the project that the kernel has, and prints those that worked.
const WRITES: &str = r#"
import ctypes, fcntl, mmap, os, shutil, socket, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
os.chdir("/workspace")
AT, tried = -100, 0
def reset():
    for made in ["made.txt", "made.sock", "other.txt", "moved", "made"]:
        shutil.rmtree(made, ignore_errors=True)
        try:
            os.unlink(made)
        except OSError:
            pass
    for path, text in [("app.txt", "one\n"), ("src/b.txt", "two\n")]:
        try:
            os.makedirs("src", exist_ok=True)
            if not os.path.isfile(path):
                open(path, "w").write(text)
        except OSError:
            pass
def attempt(name, work):
    global tried
    tried += 1
    reset()
    try:
        result = work()
    except (OSError, ValueError, shutil.Error, subprocess.SubprocessError):
        return
    if result not in (-1, False):
        print("changed", name)
def call(function, *arguments):
    return getattr(libc, function)(*[a.encode() if isinstance(a, str) else a for a in arguments])
def shell(line):
    return subprocess.run(["sh", "-c", line], capture_output=True, timeout=20).returncode == 0
def write(path, flags):
    file = os.open(path, flags, 0o644)
    os.write(file, b"x")
    os.close(file)
seen = open("app.txt", "rb")
folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
roots = ["/workspace", "/proc/self/cwd", "/proc/self/root/workspace", "/proc/1/root/workspace", "/proc/1/cwd", f"/proc/self/fd/{folder}"]
for root in roots:
    attempt(f"write {root}", lambda: write(f"{root}/app.txt", os.O_WRONLY | os.O_APPEND))
    attempt(f"create {root}", lambda: write(f"{root}/made.txt", os.O_CREAT | os.O_WRONLY))
attempt("truncate", lambda: os.truncate("app.txt", 0))
attempt("reopen", lambda: write(f"/proc/self/fd/{seen.fileno()}", os.O_WRONLY))
attempt("map", lambda: mmap.mmap(os.open("app.txt", os.O_RDWR), 0))
attempt("no name", lambda: os.open(".", os.O_TMPFILE | os.O_WRONLY))
attempt("at folder", lambda: os.open("made.txt", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
attempt("copy", lambda: shutil.copy("/etc/passwd", "app.txt"))
attempt("copy range", lambda: os.copy_file_range(os.open("/etc/passwd", os.O_RDONLY), os.open("app.txt", os.O_WRONLY), 10))
attempt("allocate", lambda: os.posix_fallocate(os.open("app.txt", os.O_RDWR), 0, 1 << 16))
attempt("clone", lambda: fcntl.ioctl(os.open("made.txt", os.O_CREAT | os.O_WRONLY), 0x40049409, seen.fileno()))
attempt("unlink", lambda: os.unlink("app.txt"))
attempt("rename", lambda: os.rename("app.txt", "other.txt"))
attempt("rename into", lambda: os.rename("/tmp/plan.py", "app.txt"))
attempt("exchange", lambda: call("renameat2", AT, "app.txt", AT, "src/b.txt", 2))
attempt("remove folder", lambda: shutil.rmtree("src"))
attempt("make folder", lambda: os.mkdir("made"))
attempt("move folder", lambda: os.rename("src", "moved"))
attempt("link", lambda: os.link("app.txt", "made.txt"))
attempt("link out", lambda: os.link("app.txt", "/tmp/made.txt"))
attempt("symlink", lambda: os.symlink("app.txt", "made.txt"))
attempt("pipe", lambda: os.mkfifo("made.txt"))
attempt("device", lambda: os.mknod("made.txt"))
attempt("socket", lambda: socket.socket(socket.AF_UNIX).bind("made.sock"))
attempt("mode", lambda: os.chmod("app.txt", 0o777))
attempt("mode of open", lambda: os.fchmod(seen.fileno(), 0o777))
attempt("owner", lambda: os.chown("app.txt", os.getuid(), os.getgid()))
attempt("times", lambda: os.utime("app.txt", (1, 1)))
attempt("times of open", lambda: os.utime(seen.fileno(), (1, 1)))
attempt("attribute", lambda: os.setxattr("app.txt", "user.x", b"1"))
attempt("flags", lambda: fcntl.ioctl(seen.fileno(), 0x40086602, b"\x00" * 8))
attempt("remount", lambda: call("mount", None, "/workspace", None, 32 | 4096, None))
attempt("remount all", lambda: call("mount", "none", "/workspace", None, 32, None))
attempt("bind", lambda: call("mount", "/workspace", "/tmp", None, 4096, None))
attempt("new mount", lambda: call("syscall", 428, AT, b"/workspace", 1))
attempt("mount attribute", lambda: call("syscall", 442, AT, b"/workspace", 0, b"\x00" * 32, 32))
attempt("unmount", lambda: call("umount2", "/workspace", 2))
attempt("namespace", lambda: call("unshare", 0x10020000))
attempt("by handle", lambda: call("syscall", 304, folder, b"\x00" * 128, 1))
attempt("chroot", lambda: os.chroot("/workspace"))
for line in ["echo x > app.txt", "echo x | tee -a app.txt", "sed -i s/a/b/ app.txt", "dd if=/dev/zero of=app.txt count=1", "touch made.txt", "cp -f /etc/passwd app.txt",
             "mv app.txt made.txt", "rm -f app.txt", "ln -sf /etc/passwd app.txt", "install -m 755 /etc/passwd made.txt", "tar -C / -cf - etc/hostname | tar -xf - -C .",
             "git -c user.name=a -c user.email=a@b commit -qam x", "git branch made", "git stash", "git init -q made", "git config user.name x",
             "perl -e 'open F, q(>app.txt) or die'", "printf x >> src/b.txt", "unshare -r true", "unshare -rm mount -o remount,rw /workspace", "chmod +x app.txt"]:
    attempt(line, lambda: shell(line))
print("tried", tried)
"#;

/// What a tree holds: of each path its kind and mode, time, size and bytes.
fn tree(root: &Path) -> BTreeMap<String, (u32, i64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let facts = std::fs::symlink_metadata(&path).expect("it is there");
            let bytes = if facts.is_file() {
                std::fs::read(&path).expect("readable")
            } else {
                Vec::new()
            };
            if facts.is_dir() {
                open.push(path.clone());
            }
            let name = path.strip_prefix(root).expect("below it");
            let facts = (
                facts.mode(),
                facts.mtime_nsec() + facts.mtime() * 1_000_000_000,
                bytes,
            );
            found.insert(name.display().to_string(), facts);
        }
    }
    found
}

fn repository(env: &TestBox) {
    env.write("app.txt", "one\n");
    env.write("src/b.txt", "two\n");
    env.write(
        "test_app.py",
        "import unittest\nclass Test(unittest.TestCase):\n    def test(self):\n        self.assertEqual(open('app.txt').read(), 'one\\n')\n",
    );
    git(env, &["init", "-q"]);
    git(env, &["add", "."]);
    git(env, &["commit", "-qm", "first"]);
}

/// Returns what the tools answered in the last request.
fn results(model: &Running) -> Vec<String> {
    let requests = model.requests();
    let messages = requests.last().expect("a request")["messages"].clone();
    let all = messages.as_array().expect("messages").iter();
    all.filter(|message| message["role"] == "tool")
        .filter_map(|message| message["content"].as_str().map(str::to_owned))
        .collect()
}

/// Runs the attempts of [`WRITES`] in a run, and returns what worked.
fn attempts(env: &TestBox, more: &[&str]) -> Vec<String> {
    let script = format!("cat > /tmp/plan.py <<'END'\n{WRITES}\nEND\npython3 /tmp/plan.py 2>&1");
    let model = ScriptedModel::new()
        .calls("bash", json!({ "command": script }))
        .says("1. Leave it as it is.")
        .start_blocking();
    run(env
        .task(&model, &["try it"])
        .args(["--mode", "auto"])
        .args(more))
    .expect(0);
    let said = results(&model).pop().expect("a result");
    let lines: Vec<&str> = said.lines().collect();
    let tried = lines
        .iter()
        .find_map(|line| line.strip_prefix("tried "))
        .unwrap_or_else(|| panic!("it came to its end: {said}"));
    assert!(tried.parse::<u32>().expect("a number") >= 70, "{said}");
    lines
        .iter()
        .filter_map(|line| line.strip_prefix("changed "))
        .map(str::to_owned)
        .collect()
}

/// Issue 35, PLAN-6. It takes as long as five runs with an engine do.
#[test]
fn no_way_to_write_changes_the_project_in_plan_mode() {
    let Some(env) = TestBox::new() else { return };
    repository(&env);
    let before = tree(&env.project());
    for changes in ["review", "live"] {
        let worked = attempts(&env, &["--plan", "--changes", changes]);
        assert_eq!(worked, Vec::<String>::new(), "{changes}");
        assert_eq!(tree(&env.project()), before, "{changes}");
    }
    if is_root("a project of root's") {
        std::os::unix::fs::chown(env.project(), Some(0), Some(0)).expect("root");
        let before = tree(&env.project());
        let worked = attempts(&env, &["--plan", "--changes", "live"]);
        assert_eq!(worked, Vec::<String>::new(), "as root");
        assert_eq!(tree(&env.project()), before, "as root");
        let (uid, gid) = crate::support::test_env::owner();
        std::os::unix::fs::chown(env.project(), Some(uid), Some(gid)).expect("root");
    }
    // The same attempts change it elsewhere, so that it is plan mode that keeps them from it.
    let worked = attempts(&env, &["--changes", "live"]);
    for name in [
        "write /workspace",
        "truncate",
        "rename",
        "move folder",
        "attribute",
        "link",
        "mode",
        "times",
        "symlink",
        "pipe",
        "sed -i s/a/b/ app.txt",
        "git branch made",
    ] {
        assert!(
            worked.iter().any(|found| found == name),
            "{name}: {worked:?}"
        );
    }
    assert_ne!(tree(&env.project()), before);
    env.assert_no_container();
}

#[test]
fn reading_builds_and_tests_work_in_plan_mode_and_tools_for_changes_say_why_not() {
    let Some(env) = TestBox::new() else { return };
    repository(&env);
    let model = ScriptedModel::new()
        .calls("read_file", json!({"path": "app.txt"}))
        .calls("grep", json!({"pattern": "two"}))
        .calls("git_status", json!({}))
        .calls("bash", json!({"command": "git log --oneline | wc -l; python3 -m unittest 2>&1 | tail -1; echo $CARGO_TARGET_DIR"}))
        .calls("bash", json!({"command": "cp -r /workspace /tmp/work && cd /tmp/work && echo more >> app.txt && git commit -qam second && git log --oneline | wc -l && echo x > ~/y && cat app.txt"}))
        .calls("write_file", json!({"path": "app.txt", "content": "x"}))
        .calls("git_commit", json!({"message": "x"}))
        .calls(
            "more_tools",
            json!({"tool": "create_plan", "arguments": {"plan": "1. Change `app.txt`."}}),
        )
        .start_blocking();
    let before = tree(&env.project());
    let done = run(env
        .task(&model, &["plan it"])
        .args(["--plan", "--mode", "auto"]))
    .expect(0);
    let result = done.json();
    assert_eq!(
        result["plan"],
        json!({"version": 1, "text": "1. Change `app.txt`."})
    );
    assert_eq!(
        (&result["response"], &result["status"], &result["turns"]),
        (
            &json!("1. Change `app.txt`."),
            &json!("completed"),
            &json!(8)
        )
    );
    assert_eq!(tree(&env.project()), before);
    let told = results(&model);
    for (at, words) in [
        (0, "one"),
        (1, "two"),
        (3, "1\nOK\n/tmp/.plan/target"),
        (4, "2\none\nmore"),
        (5, "Denied: plan mode is on"),
        (6, "Denied: plan mode is on"),
    ] {
        assert!(told[at].contains(words), "{words}: {}", told[at]);
    }
    assert!(!told[2].contains("Denied"), "{}", told[2]);
    model.assert_append_only();
    let first = &model.requests()[0]["messages"];
    assert!(first.to_string().contains("Plan mode is on."), "{first}");
    let session = result["session"].as_str().expect("an id");
    assert!(
        done.stderr
            .contains(&format!("podbay run --resume {session} --implement")),
        "{}",
        done.stderr
    );
    let shown = run(&mut env.podbay(&["sessions", "show", session]))
        .expect(0)
        .text();
    assert!(
        shown.contains("plan 1:\n1. Change `app.txt`.")
            && shown.contains("(plan mode is on: the project is read-only)"),
        "{shown}"
    );

    for version in ["--plan", "--plan=1"] {
        let plan = run(&mut env.podbay(&["sessions", "show", session, version])).expect(0);
        assert_eq!(plan.text(), "1. Change `app.txt`.\n");
    }
    run(&mut env.podbay(&["sessions", "show", session, "--plan=2"]))
        .expect(2)
        .says(&["has no plan 2", "shows all of them"]);

    // The same tools are listed with and without plan mode, and the plan is the task.
    let tools = model.requests()[0]["tools"].clone();
    let sent = model.heads().pop().expect("a request");
    let model = ScriptedModel::new()
        .calls(
            "write_file",
            json!({"path": "app.txt", "content": "changed\n"}),
        )
        .says("Done.")
        .start_blocking();
    let done = run(env
        .task(&model, &["--resume", session, "--implement"])
        .args(["--mode", "auto", "--changes", "live"]))
    .expect(0);
    assert_eq!(env.read("app.txt"), "changed\n");
    assert!(done.json()["plan"].is_null());
    assert_eq!(model.requests()[0]["tools"], tools);
    assert!(
        model.heads()[0].starts_with(&sent),
        "the prompt only grows:\n{}",
        String::from_utf8_lossy(&model.heads()[0])
    );
    let messages = model.requests()[0]["messages"].clone();
    let last = messages.as_array().expect("messages").last().cloned();
    let last = last.expect("a message")["content"].to_string();
    assert!(
        last.contains("The user approved this plan") && last.contains("1. Change `app.txt`."),
        "{last}"
    );
    // What has no plan has none to carry out.
    let model = ScriptedModel::new().says("Hello.").start_blocking();
    let session = run(&mut env.task(&model, &["say hello"])).expect(0).json()["session"].clone();
    let session = session.as_str().expect("an id");
    run(&mut env.task(&model, &["--resume", session, "--implement"]))
        .expect(2)
        .says(&["has no plan", "--plan"]);
    env.assert_no_container();
}

#[test]
fn a_model_that_calls_no_tool_has_its_answer_taken_as_the_plan() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new()
        .calls("enter_plan_mode", json!({}))
        .says("1. Write it.")
        .start_blocking();
    let done = run(&mut env.task(&model, &["plan it", "--plan"])).expect(0);
    assert_eq!(
        done.json()["plan"],
        json!({"version": 1, "text": "1. Write it."})
    );
    // Where nobody asked for a plan and nobody can approve one, plan mode does not begin.
    let model = ScriptedModel::new()
        .calls("enter_plan_mode", json!({}))
        .calls("write_file", json!({"path": "a", "content": "1"}))
        .says("Done.")
        .start_blocking();
    let done = run(env
        .task(&model, &["work"])
        .args(["--mode", "auto", "--changes", "live"]))
    .expect(0);
    assert!(done.json()["plan"].is_null());
    assert_eq!(env.read("a"), "1");
    env.assert_no_container();
}

/// Kills a chat in plan mode: the next one continues in plan mode with the plan, which its user
/// changes, approves, and sees carried out.
#[test]
fn killed_in_plan_mode_a_chat_resumes_in_it_with_its_plan() {
    let Some(env) = TestBox::new() else { return };
    env.write("app.txt", "one\n");
    let plan = "# The plan\n1. Change app.txt.";
    let model = ScriptedModel::new()
        .calls("create_plan", json!({ "plan": plan }))
        .start_blocking();
    let mut talk = Talk::begin(&env, &env.project(), &model, &["--plan", "--mode", "auto"]);
    talk.sees("plan mode is on");
    talk.sees("> ");
    talk.types("plan it\n");
    talk.sees("1. Change app.txt.");
    talk.sees("[a]pprove, [e]dit, [d]iscard");
    talk.kill();
    assert!(
        within(Duration::from_secs(10), || env.containers().is_empty()),
        "what the killed one left ends by itself: {:?}",
        env.containers()
    );

    let model = ScriptedModel::new()
        .calls(
            "bash",
            json!({"command": "echo x >> app.txt; touch y; echo tried"}),
        )
        .calls(
            "create_plan",
            json!({"plan": format!("{plan}\n2. Test it.")}),
        )
        .says("I revise it.")
        .calls("implement_plan", json!({}))
        .calls("bash", json!({"command": "echo two >> app.txt"}))
        .says("Carried out.")
        .start_blocking();
    let mut talk = Talk::begin(
        &env,
        &env.project(),
        &model,
        &["--resume", "last", "--mode", "auto"],
    );
    talk.sees("> ");
    talk.types("/plan\n");
    talk.sees("plan mode on; plan 1 (not decided)");
    talk.types("/plan show\n");
    talk.sees("1. Change app.txt.");
    talk.types("go on\n");
    talk.sees("2. Test it.");
    talk.sees("decide later): ");
    // What is typed before the question can be read is no answer.
    std::thread::sleep(Duration::from_millis(600));
    talk.types("test it twice\n");
    talk.sees("I revise it.");
    talk.sees("> ");
    assert_eq!(env.read("app.txt"), "one\n");
    assert!(!env.path("y").exists());
    let told = results(&model);
    assert!(
        told.iter()
            .any(|result| result.contains("Read-only file system")),
        "{told:?}"
    );
    assert!(
        told.last()
            .expect("results")
            .contains("They say: test it twice"),
        "{told:?}"
    );
    talk.types("and now\n");
    talk.sees("decide later): ");
    std::thread::sleep(Duration::from_millis(600));
    talk.types("a\n");
    talk.sees("plan 2 is approved");
    talk.sees("plan mode is off");
    talk.sees("Carried out.");
    talk.sees("file, +");
    assert_eq!(env.read("app.txt"), "one\ntwo\n");
    talk.leaves();
    model.assert_append_only();
    env.assert_no_container();
}

/// What runs in the background is named, ends with the sandbox, and cannot write any more; the
/// switch is an event that says how long it took.
#[test]
fn the_sandbox_that_can_write_ends_with_all_that_runs_in_it_when_plan_mode_begins() {
    let Some(env) = TestBox::new() else { return };
    env.write("app.txt", "one\n");
    let model = ScriptedModel::new()
        .calls(
            "bash",
            json!({"command": "while true; do echo x >> app.txt; sleep 0.05; done", "background": true}),
        )
        .says("Started.")
        .calls("bash", json!({"command": "cd /tmp && pgrep -fc 'echo x' ; cat /workspace/app.txt | wc -l; sleep 0.3; cat /workspace/app.txt | wc -l; pwd"}))
        .says("Looked.")
        .calls("bash", json!({"command": "echo y >> app.txt"}))
        .calls("bash", json!({"command": "echo y >> app.txt"}))
        .says("Tried.")
        .start_blocking();
    let mut talk = Talk::begin(
        &env,
        &env.project(),
        &model,
        &["--mode", "auto", "--changes", "live"],
    );
    talk.sees("> ");
    talk.types("begin\n");
    talk.sees("Started.");
    talk.sees("> ");
    let writer = env.boxes();
    talk.types("/plan on\n");
    talk.sees("what ran in the background has ended: while true; do");
    let reader = env.boxes();
    assert_eq!(
        (writer.len(), reader.len()),
        (1, 1),
        "{writer:?} {reader:?}"
    );
    assert_ne!(writer, reader);
    talk.types("look\n");
    talk.sees("Looked.");
    talk.sees("> ");
    let text = env.read("app.txt");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(env.read("app.txt"), text, "nothing writes to it");
    let told = results(&model).pop().expect("a result");
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[1], lines[2], "{told}");
    // One that is made anew is read-only as well.
    docker(&["kill", &reader[0]]);
    talk.types("try\n");
    talk.sees("Tried.");
    talk.sees("> ");
    assert_eq!(env.read("app.txt"), text);
    let told = results(&model);
    assert!(
        told[told.len() - 2].contains("not executed")
            && told[told.len() - 1].contains("Read-only file system"),
        "{told:?}"
    );
    talk.types("/plan off\n");
    talk.sees("plan mode is off");
    talk.types("!echo by hand >> app.txt\n");
    talk.sees("> ");
    assert!(
        within(Duration::from_secs(10), || env
            .read("app.txt")
            .ends_with("by hand\n")),
        "{}",
        env.read("app.txt")
    );
    talk.leaves();
    let id = run(&mut env.podbay(&["sessions", "list", "--json"]))
        .expect(0)
        .json()["sessions"][0]["session"]
        .clone();
    let log = run(&mut env.podbay(&["sessions", "show", "--json", id.as_str().expect("an id")]))
        .expect(0)
        .text();
    let switches: Vec<Value> = log
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(|event: &Value| event["type"] == "plan_mode_changed")
        .collect();
    let on: Vec<_> = switches.iter().map(|event| &event["on"]).collect();
    assert_eq!(on, [&json!(true), &json!(false)], "{switches:?}");
    let has_taken = |event: &Value| event["duration_ms"].as_u64().is_some_and(|ms| ms > 0);
    assert!(switches.iter().all(has_taken), "{switches:?}");
    env.assert_no_container();
}

/// An agent begins plan mode by itself in the middle of a turn: what the turn changed before is there,
/// also in `/tmp`, nothing is added to it meanwhile, and all of it comes at the turn's end.
#[test]
fn a_turn_with_plan_mode_in_its_middle_loses_nothing() {
    let Some(env) = TestBox::new() else { return };
    env.write("app.txt", "one\n");
    let model = ScriptedModel::new()
        .calls(
            "bash",
            json!({"command": "echo two >> app.txt; echo kept > /tmp/note; mkdir sub; cd sub"}),
        )
        .calls("cd", json!({"path": "sub"}))
        .calls("enter_plan_mode", json!({"reason": "It is large."}))
        .calls(
            "bash",
            json!({"command": "pwd; cat ../app.txt /tmp/note; touch held; echo more > /tmp/more"}),
        )
        .calls("create_plan", json!({"plan": "1. Add three."}))
        .calls(
            "bash",
            json!({"command": "pwd; cat /tmp/note /tmp/more; echo three >> ../app.txt"}),
        )
        .says("Implemented.")
        .start_blocking();
    let mut talk = Talk::begin(&env, &env.project(), &model, &["--mode", "auto"]);
    talk.sees("> ");
    talk.types("work\n");
    talk.sees("plan mode is on");
    talk.sees("1. Add three.");
    talk.sees("decide later): ");
    assert_eq!(
        env.read("app.txt"),
        "one\n",
        "nothing of a turn comes early"
    );
    std::thread::sleep(Duration::from_millis(600));
    talk.types("a\n");
    talk.sees("Implemented.");
    talk.sees("2 paths, +2");
    assert_eq!(env.read("app.txt"), "one\ntwo\nthree\n");
    assert!(!env.path("sub/held").exists());
    let told = results(&model);
    assert!(
        told[3].starts_with("/workspace/sub\none\ntwo\nkept\n")
            && told[3].contains("Read-only file system"),
        "{}",
        told[3]
    );
    assert!(
        told[5].starts_with("/workspace/sub\nkept\nmore\n"),
        "{}",
        told[5]
    );
    talk.leaves();
    model.assert_append_only();
    env.assert_no_container();
}
