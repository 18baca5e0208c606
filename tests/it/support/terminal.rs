//! A command at a terminal, for tests without an engine.

use std::io::Read;
use std::io::Write;
use std::path::Path;

use portable_pty::CommandBuilder;
use portable_pty::PtySize;
use portable_pty::native_pty_system;

use super::TestEnv;
use super::test_env::until;

/// Runs a command at a terminal, where no engine is, answers once when it has asked, and returns
/// what it showed until its end, and its exit code.
pub(crate) fn in_terminal(
    env: &TestEnv,
    arguments: &[&str],
    question: &str,
    answer: &str,
) -> (String, u32) {
    in_terminal_with(env, arguments, &[], question, answer)
}

/// The same with variables of its own.
pub(crate) fn in_terminal_with(
    env: &TestEnv,
    arguments: &[&str],
    variables: &[(&str, &str)],
    question: &str,
    answer: &str,
) -> (String, u32) {
    let pty = native_pty_system()
        .openpty(PtySize {
            rows: 40,
            cols: 200,
            pixel_width: 0,
            pixel_height: 0,
        })
        .expect("a pty");
    let mut command = CommandBuilder::new(Path::new(env!("CARGO_BIN_EXE_podbay")));
    command.env_clear();
    command.args(arguments);
    command.cwd(env.project());
    let of = |path: std::path::PathBuf| path.into_os_string();
    for (name, value) in [
        ("HOME", of(env.home())),
        ("PODBAY_HOME", of(env.state())),
        ("DOCKER_HOST", "unix:///nonexistent/docker.sock".into()),
        ("TERM", "dumb".into()),
    ] {
        command.env(name, value);
    }
    for (name, value) in variables {
        command.env(name, value);
    }
    let mut child = pty.slave.spawn_command(command).expect("starts");
    drop(pty.slave);
    let mut reader = pty.master.try_clone_reader().expect("a reader");
    let mut writer = pty.master.take_writer().expect("a writer");
    let shown = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let keep = std::sync::Arc::clone(&shown);
    let reading = std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(n) = reader.read(&mut buffer) {
            if n == 0 {
                break;
            }
            keep.lock()
                .expect("not poisoned")
                .push_str(&String::from_utf8_lossy(&buffer[..n]));
        }
    });
    let text = || shown.lock().expect("not poisoned").clone();
    assert!(
        until(|| text().contains(question)),
        "it did not ask: {}",
        text()
    );
    // Keys that come before the question can be read are thrown away.
    std::thread::sleep(std::time::Duration::from_millis(600));
    writer.write_all(answer.as_bytes()).expect("typed");
    let code = child.wait().expect("ends").exit_code();
    drop(writer);
    reading.join().expect("read");
    (text(), code)
}
