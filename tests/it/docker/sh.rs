//! `podbay sh`: what the sandbox is made of, and that a command in it behaves like one outside.

use std::io::Read;
use std::io::Write;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::Mutex;

use portable_pty::CommandBuilder;
use portable_pty::PtySize;
use portable_pty::native_pty_system;

use super::test_box::TestBox;
use crate::support::guest::is_running;
use crate::support::guest::marker;
use crate::support::test_env::Done;
use crate::support::test_env::owner;
use crate::support::test_env::run;
use crate::support::test_env::start;
use crate::support::test_env::until;

fn sh(env: &TestBox, script: &str) -> Done {
    run(&mut env.here(&["sh", "--", "sh", "-c", script]))
}

#[test]
fn the_box_is_closed_on_all_sides() {
    let Some(env) = TestBox::new() else { return };
    let script = r#"id -u
        grep -E "Cap|NoNewPrivs|Seccomp:" /proc/self/status
        touch /x 2>&1
        ls /sys/class/net
        cat /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null || cat /sys/fs/cgroup/memory.max
        cat /etc/resolv.conf; wc -c < /etc/resolv.conf
        cat /proc/1/environ 2>&1 | wc -c; ls /proc/1/fd 2>&1 | tail -c 20
        env"#;
    let mut command = env.here(&["sh", "--memory", "300MiB", "--", "sh", "-c", script]);
    command
        .env("CANARY", "canary-value")
        .env("PATH", "/canary-path:/usr/bin:/bin");
    let text = run(&mut command).expect(0).text();
    let none = "0000000000000000";
    let expected = format!(
        "{}\nCapInh:\t{none}\nCapPrm:\t{none}\nCapEff:\t{none}\nCapBnd:\t{none}\nCapAmb:\t{none}\nNoNewPrivs:\t1\nSeccomp:\t2\n\
         touch: cannot touch '/x': Read-only file system\nlo\n{}\n0\n",
        owner().0,
        300 << 20
    );
    assert!(text.starts_with(&expected), "{text}\nexpected\n{expected}");
    assert!(
        text.contains("Permission denied"),
        "the guest is masked: {text}"
    );
    assert!(
        !text.contains("canary") && text.contains("HOME=/home/agent"),
        "{text}"
    );
}

#[test]
fn a_command_ends_as_it_would_outside() {
    let Some(env) = TestBox::new() else { return };
    let script = "printf out; printf err >&2; tty; exit 7";
    let done = sh(&env, script).expect(7);
    assert_eq!(done.text(), "outnot a tty\n");
    assert!(done.stderr.contains("err"), "{}", done.stderr);
    sh(&env, "kill -9 $$").expect(137);
    run(&mut env.here(&["sh", "--", "no-such-command"])).expect(127);
    run(&mut env.here(&["sh", "--", "/workspace"])).expect(126);
    // Words reach the command as they are, whatever they hold.
    let done =
        run(&mut env.here(&["sh", "--", "printf", "%s|", "a b", "", "$HOME", "*", "'"])).expect(0);
    assert_eq!(done.text(), "a b||$HOME|*|'|");
}

#[test]
fn bytes_pass_as_they_are_both_ways() {
    let Some(env) = TestBox::new() else { return };
    let bytes: Vec<u8> = (0..1 << 20).map(|n: u32| (n % 256) as u8).collect();
    let mut started = start(env.here(&["sh", "--", "cat"]).stdin(Stdio::piped()));
    started.feed(bytes.clone());
    assert!(
        started.wait().expect(0).stdout == bytes,
        "1 MiB through cat"
    );
    let done = sh(&env, "head -c 20000000 /dev/zero; echo end >&2").expect(0);
    assert_eq!(
        (done.stdout.len(), done.stderr.contains("end")),
        (20_000_000, true)
    );
    // A command that does not read its input ends all the same.
    let mut started = start(env.here(&["sh", "--", "true"]).stdin(Stdio::piped()));
    started.feed(bytes);
    started.wait().expect(0);
    env.assert_no_container();
}

#[test]
fn output_that_cannot_be_written_is_said_and_a_reader_that_left_is_not() {
    let Some(env) = TestBox::new() else { return };
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("a device that is always full");
    let done = env
        .here(&["sh", "--", "sh", "-c", "echo x; sleep 60"])
        .stdout(full)
        .output()
        .expect("podbay starts");
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(125), "{said}");
    assert!(
        said.contains("error: cannot write the command's output")
            && said.contains("No space left on device"),
        "{said}"
    );

    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let done = env
        .here(&["sh", "--", "yes"])
        .stdout(writer)
        .output()
        .expect("podbay starts");
    assert_eq!(
        (
            done.status.code(),
            String::from_utf8_lossy(&done.stderr).as_ref()
        ),
        (Some(141), "")
    );
    env.assert_no_container();
}

#[test]
fn our_own_failures_have_a_code_of_their_own() {
    let Some(env) = TestBox::new() else { return };
    run(env
        .here(&["sh", "--", "true"])
        .env("DOCKER_HOST", "unix:///nonexistent.sock"))
    .expect(125)
    .says(&["error:", "hint:"]);
    run(&mut env.podbay(&["sh", "-C", "/nonexistent", "--", "true"]))
        .expect(125)
        .says(&["does not exist"]);
}

#[test]
fn a_terminal_has_its_size_and_its_ctrl_c() {
    let Some(env) = TestBox::new() else { return };
    let size = |rows, cols| PtySize {
        rows,
        cols,
        pixel_width: 0,
        pixel_height: 0,
    };
    let pty = native_pty_system().openpty(size(40, 100)).expect("a pty");
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_podbay"));
    command.env_clear();
    for (name, value) in [("HOME", env.home()), ("PODBAY_HOME", env.state())] {
        command.env(name, value);
    }
    command.env("PATH", "/usr/bin:/bin");
    command.env("TERM", "xterm");
    for name in ["DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.args([
        std::ffi::OsStr::new("sh"),
        "-C".as_ref(),
        env.project().as_os_str(),
    ]);
    let mut child = pty.slave.spawn_command(command).expect("starts");
    drop(pty.slave);
    let screen = Arc::new(Mutex::new(String::new()));
    let mut reader = pty.master.try_clone_reader().expect("the terminal's end");
    let reading = std::thread::spawn({
        let screen = Arc::clone(&screen);
        move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = reader.read(&mut buffer) {
                screen
                    .lock()
                    .expect("unshared")
                    .push_str(&String::from_utf8_lossy(&buffer[..n]));
            }
        }
    });
    let mut keyboard = pty.master.take_writer().expect("the terminal's end");
    let mut types = |text: &str| keyboard.write_all(text.as_bytes()).expect("typed");
    let shows = |words: &str| {
        let shown = until(|| screen.lock().expect("unshared").contains(words));
        assert!(
            shown,
            "`{words}` is missing: {}",
            screen.lock().expect("unshared")
        );
    };
    // The shell answers with what it works out, so that the echo of what was typed is no answer.
    types("echo rea$((1))dy; stty size; tty\n");
    shows("rea1dy");
    shows("40 100");
    shows("/dev/pts/");
    pty.master.resize(size(51, 120)).expect("resized");
    assert!(until(|| {
        types("stty size\n");
        std::thread::sleep(std::time::Duration::from_millis(50));
        screen.lock().expect("unshared").contains("51 120")
    }));
    let sleep = marker();
    types(&format!("sleep {sleep}\n"));
    assert!(until(|| is_running(&sleep)));
    types("\x03");
    types("echo code $?\n");
    shows("code 130");
    assert!(!is_running(&sleep));
    types("exit 3\n");
    let status = child.wait().expect("ends");
    assert_eq!(
        status.exit_code(),
        3,
        "{}",
        screen.lock().expect("unshared")
    );
    drop(pty.master);
    reading.join().expect("read");
    env.assert_no_container();
}
