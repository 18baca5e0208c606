//! The sandbox of `podbay up` stays the same one whatever its own commands make: files by the names
//! of secrets, repositories, settings of editors and of Podbay.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use serde_json::json;

use super::test_box::TestBox;
use super::test_box::docker;
use crate::support::ScriptedModel;
use crate::support::test_env::Done;
use crate::support::test_env::run;
use crate::support::test_env::start;
use crate::support::test_env::within;

fn sh(env: &TestBox, flags: &[&str], script: &str) -> Done {
    let arguments = [&["sh"][..], flags, &["--", "bash", "-c", script]].concat();
    run(&mut env.here(&arguments))
}

/// Starts the sandbox alone: there is no model anywhere.
fn up(env: &TestBox) -> Done {
    run(&mut env.here(&["up", "--no-model"])).expect(0)
}

#[test]
fn what_commands_make_in_a_shared_sandbox_stays_theirs() {
    let Some(env) = TestBox::new() else { return };
    env.write("config/.env", "SECRET=users\n");
    env.write(".vscode/tasks.json", "{}");
    up(&env);
    let container = env.container();
    let text = sh(
        &env,
        &[],
        "cat config/.env; echo kept > /tmp/kept; echo x > .vscode/tasks.json",
    )
    .text();
    assert_eq!(text, "", "what the user had is protected");

    let made = [
        "echo TOKEN=1 > .env && echo //r/:_authToken=x > .npmrc",
        "mkdir -p .github/workflows .podbay && touch .github/workflows/ci.yaml .envrc",
        "git init -q repo && cd repo && git config user.email a@b && git config user.name a && echo one > one",
        "cd repo && git add one && git commit -q -m first",
        "git clone -q repo clone && cd clone && echo two >> one && git -c user.email=a@b -c user.name=a commit -q -a -m second",
        "git init -q . && git -c user.email=a@b -c user.name=a commit -q --allow-empty -m top",
    ];
    let mut told = String::new();
    for script in made {
        told.push_str(&sh(&env, &[], script).expect(0).stderr);
    }
    let seen = sh(
        &env,
        &[],
        "cat .env .npmrc /tmp/kept; git -C clone log --format=%s; git log --format=%s; echo more >> .env && cat config/.env",
    )
    .expect(0);
    assert_eq!(
        seen.text(),
        "TOKEN=1\n//r/:_authToken=x\nkept\nsecond\nfirst\ntop\n"
    );
    assert_eq!(env.container(), container, "one sandbox all the while");
    told.push_str(&seen.stderr);
    // The search runs beside a command, and short ones do not wait for it.
    for _ in 0..20 {
        if told.contains(".npmrc") && told.contains("repo/.git") {
            break;
        }
        told.push_str(&sh(&env, &[], "sleep 1").expect(0).stderr);
    }
    assert!(
        told.contains("older than") && told.contains(".npmrc") && told.contains("repo/.git"),
        "{told}"
    );
    assert!(!told.contains("second sandbox"), "{told}");
    let quiet = sh(&env, &[], "true").expect(0);
    assert!(!quiet.stderr.contains("older than"), "{}", quiet.stderr);

    // Neither is it replaced by `up`, which says what it does not protect.
    let again = up(&env);
    assert!(again.stderr.contains("is older than"), "{}", again.stderr);
    assert_eq!(env.container(), container);
    // A sandbox of its own protects all of it.
    run(&mut env.here(&["down"])).expect(0);
    assert_eq!(sh(&env, &[], "cat .env .npmrc").text(), "");
    env.assert_no_container();
}

#[test]
fn a_call_in_a_shared_sandbox_leaves_a_new_repository_to_the_next() {
    let Some(env) = TestBox::new() else { return };
    up(&env);
    let call = |command: &str| {
        let arguments = json!({ "command": command }).to_string();
        run(&mut env.here(&["call", "bash", &arguments])).expect(0)
    };
    call("git init -q .");
    call(
        "git config user.email a@b && git config user.name a && git commit -q --allow-empty -m first",
    );
    assert!(call("git log --format=%s").text().contains("first"));
    assert!(env.path(".git").is_dir());
    run(&mut env.here(&["down"])).expect(0);
    env.assert_no_container();
}

/// Commands see the sockets at which controllers wait for PID 1 of their sandbox, and can connect: the
/// kernel tells them apart.
#[test]
fn a_command_that_connects_to_a_controller_is_not_taken_for_the_guest() {
    const CONNECT: &str = r#"
import glob, socket
for path in glob.glob("/run/podbay/controllers/*.sock"):
    stream = socket.socket(socket.AF_UNIX)
    stream.connect(path)
    stream.send(b"\0\0\0\2{}")
"#;
    let Some(env) = TestBox::new() else { return };
    up(&env);
    let container = env.container();
    let pid = docker(&["inspect", "--format", "{{.State.Pid}}", &container]);
    let folders = std::fs::read_dir(env.state().join("joins")).expect("listed");
    let folder = folders.map(|entry| entry.expect("listed").path()).next();
    let folder = folder.expect("one for the sandbox");
    // As a controller waits, but for longer.
    let listener = UnixListener::bind(folder.join("a.new")).expect("bound");
    let open = Permissions::from_mode(0o666);
    std::fs::set_permissions(folder.join("a.new"), open).expect("set");
    std::fs::rename(folder.join("a.new"), folder.join("a.sock")).expect("named");
    let peer = || {
        let (stream, _) = listener.accept().expect("accepted");
        getsockopt(&stream, PeerCredentials).expect("told").pid()
    };
    assert_eq!(peer().to_string(), pid.trim());
    let attack = ["sh", "--", "python3", "-c", CONNECT];
    run(&mut env.here(&attack)).expect(0);
    assert_ne!(peer().to_string(), pid.trim());
    // Nothing can be left in the folder, which is on the user's machine.
    let write = sh(&env, &[], "touch /run/podbay/controllers/x").expect(1);
    assert!(write.stderr.contains("Read-only"), "{}", write.stderr);
    assert_eq!(env.container(), container, "one sandbox all the while");
    run(&mut env.here(&["down"])).expect(0);
    env.assert_no_container();
}

#[test]
fn a_detached_command_stays_until_it_is_stopped() {
    let Some(env) = TestBox::new() else { return };
    let detach = |env: &TestBox, script: &str| {
        run(&mut env.here(&["sh", "--detach", "--", "bash", "-c", script]))
    };
    // It would need a sandbox of its own.
    detach(&env, "true")
        .expect(125)
        .says(&["none is up", "podbay up"]);
    env.assert_no_container();
    up(&env);
    let begun = detach(&env, "echo hello; echo $$ > /tmp/server; exec sleep 1000").expect(0);
    let id = begun.text().trim().to_owned();
    let jobs = || {
        run(&mut env.podbay(&["jobs", "list", "--json"]))
            .expect(0)
            .json()
    };
    assert_eq!(jobs()["jobs"][0]["state"], "running");
    // It is there for others, and does not keep a session from the project.
    let alive = "kill -0 $(cat /tmp/server) && echo alive";
    assert_eq!(sh(&env, &[], alive).expect(0).text(), "alive\n");
    let logs = || {
        run(&mut env.podbay(&["jobs", "logs", &id[..6]]))
            .expect(0)
            .text()
    };
    assert_eq!(logs(), "hello\n");
    let model = ScriptedModel::new().says("Done.").start_blocking();
    run(&mut env.task(&model, &["look around"])).expect(0);
    let stopped = run(&mut env.podbay(&["jobs", "stop", &id]))
        .expect(0)
        .text();
    assert!(
        stopped.contains("exit code") && stopped.contains("sleep 1000"),
        "{stopped}"
    );
    sh(&env, &[], alive).expect(1);

    let done = detach(&env, "echo out; echo err >&2; exit 3").expect(0);
    let id = done.text().trim().to_owned();
    let output = run(&mut env.podbay(&["jobs", "logs", "--follow", &id])).expect(0);
    assert_eq!(output.text(), "out\nerr\n");
    assert_eq!(jobs()["jobs"][0]["exit_code"], 3);
    run(&mut env.podbay(&["jobs", "logs", "nope"]))
        .expect(2)
        .says(&["there is no job `nope`", "podbay jobs list"]);
    // The sandbox ends with what stays in it.
    detach(&env, "sleep 1000").expect(0);
    run(&mut env.here(&["down"])).expect(0);
    let is_over = || jobs()["jobs"][0]["state"] != "running";
    assert!(within(Duration::from_secs(30), is_over), "{}", jobs());
    env.assert_no_container();
}

/// Another way to join, where the engine is on another machine.
#[test]
fn a_shared_sandbox_without_sockets_is_joined_by_the_engine() {
    let Some(env) = TestBox::new() else { return };
    up(&env);
    env.join_by_engine();
    let container = env.container();
    for _ in 0..2 {
        assert_eq!(sh(&env, &[], "echo $((40+2))").expect(0).text(), "42\n");
    }
    assert_eq!(env.container(), container);
    run(&mut env.here(&["down"])).expect(0);
    env.assert_no_container();
}

/// The search for what came later runs beside the command, and is over before one of some length is:
/// four seconds, so that it is on a busy machine as well.
#[test]
fn a_new_secret_of_the_user_is_named_by_a_command_that_lasts() {
    let Some(env) = TestBox::new() else { return };
    up(&env);
    env.write("later/.env", "TOKEN=1");
    // On a busy machine the search takes its time, too.
    let done = sh(&env, &[], "sleep 4; cat later/.env").expect(0);
    assert_eq!(done.text(), "TOKEN=1");
    assert!(
        done.stderr.contains("older than later/.env"),
        "{}",
        done.stderr
    );
    let again = sh(&env, &[], "sleep 1").expect(0);
    assert!(!again.stderr.contains("older than"), "{}", again.stderr);
    run(&mut env.here(&["down"])).expect(0);
    env.assert_no_container();
}

/// Most editors save so: the mask goes with the file that it was on.
#[test]
fn a_secret_that_the_user_replaces_is_not_shown_to_a_shared_sandbox_in_silence() {
    let Some(env) = TestBox::new() else { return };
    env.write(".env", "SECRET=old\n");
    up(&env);
    let container = env.container();
    env.write("new", "SECRET=new\n");
    std::fs::rename(env.path("new"), env.path(".env")).expect("renamed");
    let done = sh(&env, &[], "cat .env").expect(0);
    assert_eq!(done.text(), "");
    assert!(
        done.stderr.contains("no longer protects `.env`")
            && done.stderr.contains("second sandbox beside it"),
        "{}",
        done.stderr
    );
    // One that the user has removed needs no mask.
    std::fs::remove_file(env.path(".env")).expect("removed");
    let done = sh(&env, &[], "ls").expect(0);
    assert!(!done.stderr.contains("second sandbox"), "{}", done.stderr);
    assert_eq!(env.container(), container);
    // Who made the next one cannot be told.
    sh(&env, &[], "echo ours >.env").expect(0);
    let done = sh(&env, &[], "ls").expect(0);
    assert!(
        done.stderr.contains("removed or replaced on your machine")
            && done.stderr.contains("may be yours or made by a command"),
        "{}",
        done.stderr
    );
    run(&mut env.here(&["down"])).expect(0);
    env.assert_no_container();
}

#[test]
fn other_settings_replace_a_shared_sandbox_and_that_is_said() {
    let Some(env) = TestBox::new() else { return };
    up(&env);
    let first = env.container();
    let done = run(&mut env.here(&["up", "--no-model", "--memory", "300m"])).expect(0);
    assert!(
        done.stderr
            .contains("made with other settings: it was made anew"),
        "{}",
        done.stderr
    );
    assert_ne!(env.container(), first);
    run(&mut env.here(&["down"])).expect(0);
    env.assert_no_container();
}

#[test]
fn sh_has_a_folder_variables_and_a_time_limit() {
    let Some(env) = TestBox::new() else { return };
    env.write("sub/file", "x\n");
    let print = "pwd; echo $A; echo $LANG; ls";
    for folder in ["sub", "/workspace/sub"] {
        let flags = ["--cwd", folder, "--env", "A=x=y z", "--env", "LANG=de_DE"];
        let text = sh(&env, &flags, print).expect(0).text();
        assert_eq!(text, "/workspace/sub\nx=y z\nde_DE\nfile\n");
    }
    let late = sh(&env, &["--timeout", "1s"], "echo begun; sleep 60").expect(124);
    assert!(
        late.text() == "begun\n" && late.stderr.contains("longer than the limit of 1 s"),
        "{}",
        late.stderr
    );
    let wrong = sh(&env, &["--cwd", "../.."], "pwd");
    assert!(wrong.code == 125, "{} {}", wrong.code, wrong.stderr);
    // A wrong flag is a failure of ours, too.
    run(&mut env.here(&["sh", "--env", "=x", "--", "true"])).expect(125);
}

#[test]
fn arguments_may_be_long_and_those_of_a_call_may_be_piped() {
    let Some(env) = TestBox::new() else { return };
    // Sixteen words of 120 KiB: one may have 128 KiB.
    let word = "x".repeat(120 << 10);
    let words: Vec<&str> = std::iter::repeat_n(word.as_str(), 15).collect();
    let script = "echo $# ${#15}";
    let arguments = [&["sh", "--", "bash", "-c", script, "name"][..], &words].concat();
    let done = run(&mut env.here(&arguments)).expect(0);
    assert_eq!(done.text(), format!("15 {}\n", 120 << 10));

    let content = "line\n".repeat(100_000);
    let mut command = env.here(&["call", "write_file", "-"]);
    let mut writing = start(command.stdin(Stdio::piped()));
    writing.feed(
        json!({"path": "large.txt", "content": content})
            .to_string()
            .into_bytes(),
    );
    writing.wait().expect(0);
    assert_eq!(env.read("large.txt"), content);
}
