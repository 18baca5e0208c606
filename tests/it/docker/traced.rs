//! What a run does on the host, as the kernel sees it: no program but ours, no connection but to
//! the engine and the endpoint.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::git::give_all;
use super::git::try_git;
use super::test_box::TestBox;
use crate::support::ScriptedModel;
use crate::support::engine_proxy::engine_socket;
use crate::support::test_env::run;

/// Returns whether `strace` is here. Without it this is left out, and the run says so; with
/// `PODBAY_TEST_STRACE=1`, as in CI, that is a failure.
fn can_trace() -> bool {
    let works = Command::new("strace")
        .arg("-V")
        .output()
        .is_ok_and(|done| done.status.success());
    if !works {
        let is_wanted = std::env::var("PODBAY_TEST_STRACE").is_ok_and(|value| value == "1");
        assert!(
            !is_wanted,
            "strace is not installed: `apt-get install strace`"
        );
        // Past the test's own capture: a run must not be silent about it.
        drop(std::io::stderr().write_all(
            b"left out, because strace is not installed: what a run does on the host\n",
        ));
    }
    works
}

/// Runs a command under `strace` and returns its programs and its connections, one line each. It
/// must end with code 0.
#[track_caller]
fn traced(command: &Command, report: &Path) -> (Vec<String>, Vec<String>) {
    let mut tracer = Command::new("strace");
    tracer
        .args([
            "-f",
            "-qq",
            "-s",
            "4096",
            "-e",
            "trace=execve,execveat,connect,sendto,sendmsg,sendmmsg",
            "-o",
        ])
        .arg(report);
    tracer.arg(command.get_program()).args(command.get_args());
    tracer.env_clear();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            tracer.env(name, value);
        }
    }
    run(&mut tracer).expect(0);
    let text = std::fs::read_to_string(report).expect("a report");
    // `PID call(arguments) = result`; one that another thread interrupts is cut after its
    // arguments.
    let of = |call: &str| {
        text.lines()
            .filter_map(|line| Some(line.split_once(call)?.1.to_owned()))
            .collect::<Vec<_>>()
    };
    let programs = of(" execve(")
        .into_iter()
        .chain(of(" execveat("))
        .map(|rest| rest.split('"').nth(1).unwrap_or_default().to_owned())
        .collect();
    // Who sends without connecting names its peer each time.
    let unconnected = [" sendto(", " sendmsg(", " sendmmsg("]
        .into_iter()
        .flat_map(of)
        .filter(|rest| rest.contains("sa_family="));
    let connections = of(" connect(")
        .into_iter()
        .chain(unconnected)
        .filter_map(|rest| {
            Some(
                rest.split_once("sa_family=")?
                    .1
                    .split('}')
                    .next()?
                    .to_owned(),
            )
        });
    (programs, connections.collect())
}

#[test]
fn a_run_starts_no_program_and_talks_to_engine_and_endpoint_alone() {
    let Some(env) = TestBox::new() else { return };
    if !can_trace() {
        return;
    }
    // What other tools would run on the host when they come by.
    for folder in ["", "nested"] {
        env.write(format!("{folder}/old.txt").trim_start_matches('/'), "old\n");
        for words in [
            &["init", "-q"][..],
            &["add", "."],
            &["commit", "-q", "-m", "old"],
            &["config", "core.fsmonitor", "touch pwned"],
        ] {
            let (text, is_good) = try_git(&env, folder, words);
            assert!(is_good, "{text}");
        }
        env.write(
            format!("{folder}/.git/hooks/post-index-change").trim_start_matches('/'),
            "#!/bin/sh\ntouch pwned\n",
        );
    }
    give_all(&env.project());
    env.write(".envrc", "touch pwned\n");
    env.write("Makefile", "all:\n\ttouch pwned\n");
    env.write(
        ".podbay/config.toml",
        "[llm]\nendpoint = \"http://127.0.0.1:1/v1\"\n",
    );
    env.write("AGENTS.md", "Be careful.\n");
    let model = ScriptedModel::new()
        .calls("read_file", json!({"path": "AGENTS.md"}))
        .calls("write_file", json!({"path": "made.txt", "content": "one\n"}))
        .calls("grep", json!({"pattern": "one"}))
        .calls("bash", json!({"command": "cat made.txt; ls -a; git add made.txt; git commit -q -m made; git init -q new"}))
        .says("Done.")
        .start_blocking();
    let mut task = env.task(&model, &["look around"]);
    task.env("PODBAY_OFFLINE", "true");
    let (programs, connections) = traced(&task, &env.beside("trace"));
    assert_eq!(programs, [env!("CARGO_BIN_EXE_podbay")]);
    let engine = format!("AF_UNIX, sun_path=\"{}\"", engine_socket().display());
    let endpoint = format!(
        "AF_INET, sin_port=htons({}), sin_addr=inet_addr(\"127.0.0.1\")",
        model.address().port()
    );
    let others: Vec<&String> = connections
        .iter()
        .filter(|&connection| *connection != engine && *connection != endpoint)
        .collect();
    assert!(others.is_empty(), "{others:?}");
    // Both were seen, so that nothing else was seen says something.
    assert!(
        connections.contains(&engine) && connections.contains(&endpoint),
        "{connections:?}"
    );
    assert_eq!(env.read("made.txt"), "one\n");
    assert!(!env.path("pwned").exists() && !env.path("nested/pwned").exists());
    // What git had to do at the end was done in a container.
    assert!(
        try_git(&env, "", &["log", "--format=%s"])
            .0
            .starts_with("made\n")
            && !env.path("new/.git").exists()
    );
    env.assert_no_container();
}

/// The control: what the test above would not let pass is seen.
#[test]
fn a_program_and_a_connection_of_another_kind_are_seen() {
    let Some(env) = TestBox::new() else { return };
    if !can_trace() {
        return;
    }
    let mut command = Command::new("/bin/bash");
    let script = "exec 3<>/dev/udp/127.0.0.1/9; /bin/true";
    command.args(["-c", script]).env("PATH", "/usr/bin:/bin");
    let (programs, connections) = traced(&command, &env.beside("trace"));
    assert_eq!(programs, ["/bin/bash", "/bin/true"]);
    // This shell may also ask the system for names.
    assert!(
        connections.iter().any(|connection| connection
            == "AF_INET, sin_port=htons(9), sin_addr=inet_addr(\"127.0.0.1\")"),
        "{connections:?}"
    );
}
