//! Whatever a user or a machine gets wrong before a sandbox starts: one error with cause and remedy,
//! the documented code, JSON where JSON was asked for.

use std::ffi::OsStr;
use std::io::Read;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::process::Stdio;

use nix::sys::signal::Signal;

use crate::support::TestEnv;
use crate::support::test_env::run;
use crate::support::test_env::start;
use crate::support::test_env::until;

/// An address where nobody listens.
const NOWHERE: &str = "http://127.0.0.1:9/v1";

/// Runs a task both ways and checks what is said: as JSON on the standard output, as text on the
/// error stream.
#[track_caller]
fn fails(make: &dyn Fn(&str) -> Command, code: i32, words: &str) {
    let done = run(&mut make("json")).expect(code);
    let result = done.json();
    assert_eq!(
        (&result["status"], &result["exit_code"]),
        (&"failed".into(), &code.into())
    );
    let error = &result["error"];
    let all = format!("{} {}", error["message"], error["causes"]);
    assert!(all.contains(words), "`{words}` is missing: {all}");
    assert!(
        !error["hints"].as_array().expect("a list").is_empty(),
        "no remedy: {error}"
    );
    assert_eq!(done.stderr.matches("error:").count(), 1, "{}", done.stderr);

    let done = run(&mut make("text")).expect(code);
    assert_eq!(done.text(), "", "data only on the standard output");
    assert_eq!(done.stderr.matches("error:").count(), 1, "{}", done.stderr);
    assert!(
        done.stderr.contains(words) && done.stderr.contains("hint:"),
        "{}",
        done.stderr
    );

    let last = run(&mut make("jsonl")).expect(code).text();
    let last = last.lines().last().expect("a line");
    assert!(last.starts_with(r#"{"type":"result""#), "{last}");
}

#[track_caller]
fn refuses_folder(env: &TestEnv, folder: &Path, words: &str) {
    let make = |format: &str| {
        let mut command = env.podbay(&["run", "--output", format, "--endpoint", NOWHERE, "-C"]);
        command.arg(folder).arg("look around");
        command
    };
    fails(&make, 2, words);
}

#[test]
fn folders_that_cannot_be_projects_are_refused() {
    let env = TestEnv::new();
    env.write("file", "x");
    let odd = env.beside("odd").join(OsStr::from_bytes(b"caf\xe9"));
    std::fs::create_dir_all(&odd).expect("made");
    refuses_folder(&env, &env.path("absent"), "does not exist");
    refuses_folder(&env, &env.path("file"), "not a folder");
    refuses_folder(&env, Path::new("/"), "root of the file system");
    refuses_folder(&env, &env.home(), "home folder");
    refuses_folder(&env, &odd, "not UTF-8");
    refuses_folder(&env, &env.state(), "its own state");
    refuses_folder(&env, Path::new("/etc"), "belongs to the system");
}

#[test]
fn a_session_that_is_not_there_is_not_the_folder_s_fault() {
    let env = TestEnv::new();
    let done = run(&mut env.podbay(&["sessions", "show", "nosuch"])).expect(2);
    assert!(
        done.stderr.starts_with(
            "error: cannot use the session\ncaused by: find a session: there is none yet"
        ),
        "{}",
        done.stderr
    );
}

#[test]
fn a_result_that_cannot_be_written_is_a_failure_and_a_reader_that_left_is_none() {
    let env = TestEnv::new();
    std::fs::create_dir_all(env.state().join("sessions")).expect("made");
    for at in 0..200 {
        let name = format!("2026-11-21_session{at:05}.jsonl");
        std::fs::copy(
            concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/tests/it/fixtures/sessions/torn.jsonl"
            ),
            env.state().join("sessions").join(name),
        )
        .expect("copied");
    }
    let full = || {
        std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .expect("a device that is always full")
    };
    let gone = || std::io::pipe().expect("a pipe").1;
    for arguments in [
        &["sessions", "list"][..],
        &["sessions", "list", "--json"],
        &["sessions", "show", "last"],
        &["--help"],
        &["run", "-h"],
        &["help", "run"],
        &["--version"],
    ] {
        let done = env.podbay(arguments).stdout(full()).output().expect("runs");
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(
            said.contains("cannot write the result to the standard output"),
            "{said}"
        );
        let done = env.podbay(arguments).stdout(gone()).output().expect("runs");
        assert_eq!(
            (done.status.code(), done.stderr.as_slice()),
            (Some(0), &b""[..]),
            "{arguments:?}"
        );
    }
}

#[test]
fn a_signal_ends_the_wait_for_a_task_on_the_standard_input() {
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let env = TestEnv::new();
        let mut command = env.here(&["run", "--output", "json", "--endpoint", NOWHERE, "-"]);
        let (input, _open) = std::io::pipe().expect("a pipe");
        let started = start(command.stdin(Stdio::from(input)));
        // Before it listens a signal would simply kill it.
        let catches = || {
            let status = std::fs::read_to_string(format!("/proc/{}/status", started.pid()))
                .unwrap_or_default();
            let caught = status
                .lines()
                .find_map(|line| line.strip_prefix("SigCgt:"))
                .map(str::trim)
                .unwrap_or_default();
            u64::from_str_radix(caught, 16).is_ok_and(|mask| mask & (1 << (signal as u64 - 1)) != 0)
        };
        assert!(until(catches), "it never listened");
        started.signal(signal);
        let done = started.wait().expect(code);
        assert_eq!(
            (&done.json()["exit_code"], &done.json()["status"]),
            (&code.into(), &"interrupted".into())
        );
    }
}

/// Makes a command of the program for a user who is not root.
fn as_owner(env: &TestEnv) -> Command {
    for path in [env.home(), env.state()] {
        std::fs::create_dir_all(&path).expect("made");
        TestEnv::give(&path);
    }
    env.by_owner(&env.podbay(&[]))
}

#[test]
fn what_this_user_may_not_touch_is_said() {
    let env = TestEnv::new();
    let locked = env.beside("locked");
    std::fs::create_dir(&locked).expect("made");
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o000)).expect("ours");
    let make = |format: &str| {
        let mut command = as_owner(&env);
        command
            .args([
                "run",
                "--output",
                format,
                "--endpoint",
                NOWHERE,
                "look around",
                "-C",
            ])
            .arg(&locked);
        command
    };
    fails(&make, 2, "cannot be read");
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o700)).expect("ours");

    let socket = env.beside("engine.sock");
    let _listener = UnixListener::bind(&socket).expect("a socket");
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o000)).expect("ours");
    let make = |format: &str| {
        let mut command = as_owner(&env);
        command.env("DOCKER_HOST", format!("unix://{}", socket.display()));
        command
            .args([
                "run",
                "--output",
                format,
                "--endpoint",
                NOWHERE,
                "look around",
                "-C",
            ])
            .arg(env.project());
        command
    };
    fails(&make, 5, "may not use the container engine");
}

#[test]
fn an_endpoint_with_a_key_in_it_is_refused_without_the_key() {
    let env = TestEnv::new();
    for endpoint in [
        "http://127.0.0.1:9/v1?key=sesame",
        "http://127.0.0.1:9/v1#sesame",
    ] {
        let done = run(&mut env.here(&[
            "run",
            "--output",
            "json",
            "--endpoint",
            endpoint,
            "look around",
        ]))
        .expect(2);
        assert!(
            done.stderr.contains("it ends before any `?` or `#`"),
            "{}",
            done.stderr
        );
        assert!(
            !done.stderr.contains("sesame") && !done.text().contains("sesame"),
            "{}",
            done.stderr
        );
    }
}

/// The engine is not even asked: nothing would have answered there.
#[test]
fn an_endpoint_that_is_none_is_refused_before_anything_is_started() {
    let env = TestEnv::new();
    for command in [&["run", "look around"][..], &["up"], &["quickstart"]] {
        for (endpoint, words) in [
            ("127.0.0.1:7474", "starts with `http://`"),
            ("http://", "invalid model server address"),
        ] {
            let mut refused = env.podbay(&[command, &["--endpoint", endpoint]].concat());
            if command[0] != "quickstart" {
                refused.arg("-C").arg(env.project());
            }
            let refused =
                run(refused.env("DOCKER_HOST", "unix:///nonexistent/docker.sock")).expect(2);
            assert!(
                refused.stderr.contains(words) && refused.stderr.contains("hint:"),
                "{command:?}: {}",
                refused.stderr
            );
            let sessions =
                std::fs::read_dir(env.state().join("sessions")).map_or(0, Iterator::count);
            assert_eq!(sessions, 0, "{command:?}: nothing was begun");
        }
    }
    // The same place with an endpoint that is one gets as far as the engine.
    run(env
        .here(&["run", "--endpoint", NOWHERE, "look around"])
        .env("DOCKER_HOST", "unix:///nonexistent/docker.sock"))
    .expect(5);
}

#[test]
fn tasks_and_words_that_mean_nothing_are_refused() {
    let env = TestEnv::new();
    for task in ["", "  \n\t"] {
        let make =
            |format: &str| env.here(&["run", "--output", format, "--endpoint", NOWHERE, task]);
        fails(&make, 2, "the task is empty");
    }
    run(&mut env.podbay(&["fix"])).expect(2).says(&[
        "`fix` is neither a command nor a folder",
        "podbay run \"fix",
    ]);
    run(&mut env.podbay(&["run"])).expect(2).says(&["--help"]);
    run(&mut env.podbay(&["run", "x", "--api-key", "k"]))
        .expect(2)
        .says(&["--api-key-env"]);
    for wrong in [
        ["--memory", "lots"],
        ["--cpus", "many"],
        ["--max-turns", "0"],
        ["--timeout", "soon"],
        ["--image", ""],
        ["--image", "no such"],
        ["--runtime", "foo"],
        ["--no-such-flag", "x"],
        ["--deny", "rm -rf"],
        ["--deny", "bash()"],
        ["--deny", "bash( )"],
        ["--deny", "write_file(\t )"],
    ] {
        for format in ["json", "jsonl"] {
            let done = run(env
                .here(&[
                    "run",
                    "--output",
                    format,
                    "--endpoint",
                    NOWHERE,
                    "look around",
                ])
                .args(wrong))
            .expect(2);
            let text = done.text();
            let last: serde_json::Value =
                serde_json::from_str(text.lines().last().unwrap_or_default()).expect("JSON");
            assert_eq!(
                (&last["exit_code"], &last["status"]),
                (&2.into(), &"failed".into()),
                "{wrong:?}"
            );
        }
    }
}

#[test]
fn all_failures_of_sh_itself_have_one_code() {
    let env = TestEnv::new();
    for arguments in [
        &["sh", "--no-such-flag"][..],
        &["sh", "--config", "/nonexistent.toml"],
        &["sh", "-C", "/nonexistent", "--", "true"],
    ] {
        run(&mut env.podbay(arguments))
            .expect(125)
            .says(&["error:"]);
    }
}

#[test]
fn flags_in_front_of_a_command_are_told_where_they_belong() {
    let env = TestEnv::new();
    run(env.podbay(&["-C"]).arg(env.project()).args(["run", "x"]))
        .expect(2)
        .says(&["belong behind it", "podbay run -C DIR"]);
    run(env.podbay(&["-C"]).arg(env.project()).args(["init"]))
        .expect(2)
        .says(&["podbay init -C DIR"]);
    for command in [
        &["models", "list"][..],
        &["sessions", "list"],
        &["completions"],
        &["images", "build"],
        &["gc"],
    ] {
        let words = format!("`podbay {}` takes no -C", command.join(" "));
        run(env.podbay(&["-C"]).arg(env.project()).args(command))
            .expect(2)
            .says(&["belong behind it", &words, "--help` lists the flags"]);
    }
}

#[test]
fn a_hook_in_which_the_model_could_run_something_on_this_machine_is_refused() {
    let env = TestEnv::new();
    let path = env.beside("with-hook.toml");
    std::fs::write(
        &path,
        "[[hooks.post_tool_use]]\nrun = 'echo \"{{tool_name}} {{tool_input}}\"'\nwhere = 'host'\n",
    )
    .expect("written");
    run(env.here(&["config", "--config"]).arg(&path))
        .expect(2)
        .says(&[
            "with-hook.toml:1: `hooks.post_tool_use`",
            "$PODBAY_TOOL_NAME",
        ]);
}

#[test]
fn a_pipe_in_the_place_of_the_settings_holds_up_nobody() {
    let env = TestEnv::new();
    let folder = env.home().join(".config/podbay");
    std::fs::create_dir_all(&folder).expect("made");
    nix::unistd::mkfifo(&folder.join("config.toml"), nix::sys::stat::Mode::S_IRWXU).expect("made");
    run(&mut env.podbay(&["models", "list"]))
        .expect(2)
        .says(&["config.toml", "not a regular file"]);
}

#[test]
fn a_pipe_that_was_named_as_settings_is_refused_and_one_of_the_shell_s_is_read() {
    let env = TestEnv::new();
    let pipe = env.beside("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("made");
    run(env.here(&["config", "--config"]).arg(&pipe))
        .expect(2)
        .says(&["not a regular file", "hint:"]);
    let (input, mut output) = std::io::pipe().expect("a pipe");
    output.write_all(b"offline = true\n").expect("written");
    drop(output);
    let done = run(env
        .here(&["config", "--config", "/dev/stdin"])
        .stdin(Stdio::from(input)))
    .expect(0)
    .text();
    assert!(
        done.lines()
            .any(|line| line.starts_with("offline = true") && line.contains("/dev/stdin")),
        "{done}"
    );
}

#[test]
fn a_key_that_cannot_be_read_is_a_matter_of_the_settings_where_an_endpoint_takes_it() {
    let env = TestEnv::new();
    let (pipe, torn) = (env.beside("pipe"), env.beside("torn"));
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("made");
    std::fs::write(&torn, b"\xff").expect("written");
    std::fs::set_permissions(&torn, std::fs::Permissions::from_mode(0o600)).expect("changed");
    let absent = env.beside("absent");
    for (file, words) in [
        (&pipe, "not a regular file"),
        (&torn, "not text"),
        (&absent, "does not exist"),
        (&env.project(), "it is a folder"),
    ] {
        let with_key = |arguments: &[&str]| {
            let mut command = env.here(arguments);
            command
                .env("PODBAY_LLM_API_KEY_FILE", file)
                .env("PODBAY_LLM_ENDPOINT", NOWHERE);
            command.env("DOCKER_HOST", "unix:///nonexistent.sock");
            command
        };
        fails(
            &|format| with_key(&["run", "--output", format, "look around"]),
            2,
            words,
        );
        for (arguments, code) in [
            (&["status"][..], 5),
            (&["logs"], 5),
            (&["call", "bash", "{}"], 5),
            (&["sh", "--", "true"], 125),
        ] {
            let done = run(&mut with_key(arguments)).expect(code);
            assert!(
                !done.stderr.contains("API key") && done.stderr.contains("engine"),
                "{arguments:?}: {}",
                done.stderr
            );
        }
        // Our own server has a key of its own.
        let done = run(with_key(&["up"]).env_remove("PODBAY_LLM_ENDPOINT")).expect(5);
        assert!(!done.stderr.contains("API key"), "{}", done.stderr);
    }
}

#[test]
fn an_empty_flag_is_not_taken_for_none() {
    let env = TestEnv::new();
    for (flag, value) in [
        ("--model", ""),
        ("--model", " "),
        ("--provider", ""),
        ("--endpoint", ""),
        ("--api-key-env", ""),
    ] {
        let make =
            |format: &str| env.here(&["run", "--output", format, flag, value, "look around"]);
        fails(&make, 2, &format!("{flag} is empty"));
    }
}

#[test]
fn settings_are_shown_without_passwords() {
    let env = TestEnv::new();
    let mut command = env.here(&["config"]);
    command
        .env("PODBAY_LLM_ENDPOINT", "http://bob:hunter2@h/v1")
        .env("PODBAY_LLM_PROXY", "http://u:hunter2@p:1");
    let shown = run(&mut command).expect(0).text();
    assert!(
        shown.contains("http://***@h/v1")
            && shown.contains("http://***@p:1")
            && !shown.contains("hunter2"),
        "{shown}"
    );
}

#[test]
fn a_negative_number_is_taken_for_a_number_and_named() {
    let env = TestEnv::new();
    for (flag, number) in [
        ("--max-turns", "-1"),
        ("--max-turns", "4294967296"),
        ("--timeout", "-5"),
        ("--max-tokens", "-1"),
        ("--cpus", "-1"),
        ("--memory", "-1g"),
        ("--pids", "-3"),
    ] {
        let done = run(env
            .here(&["run", "--endpoint", NOWHERE, "look around"])
            .args([flag, number]))
        .expect(2)
        .says(&[number]);
        assert!(
            !done.stderr.contains("unexpected argument"),
            "{}",
            done.stderr
        );
    }
}

/// Answers every request of every connection with the same bytes; `None` never answers.
fn server(answer: Option<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        let mut silent = Vec::new();
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            match &answer {
                None => silent.push(stream),
                Some(answer) => {
                    let mut request = [0; 16 * 1024];
                    let _ = stream.read(&mut request);
                    let _ = stream.write_all(answer.as_bytes());
                }
            }
        }
    });
    address.to_string()
}

fn http(status: &str, kind: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[track_caller]
fn engine_fails(host: &str, words: &str) {
    let env = TestEnv::new();
    let make = |format: &str| {
        let mut command = env.here(&[
            "run",
            "--output",
            format,
            "--endpoint",
            NOWHERE,
            "look around",
        ]);
        command
            .env("DOCKER_HOST", host)
            .env("PODBAY_ENGINE_TIMEOUT_S", "1");
        command
    };
    fails(&make, 5, words);
    // What happened before is on disk, and ends properly.
    let listed = run(&mut env.podbay(&["sessions", "list"])).expect(0).text();
    assert!(
        listed.lines().count() == 3 && listed.lines().all(|line| line.contains("failed")),
        "{listed}"
    );
}

#[test]
fn each_way_not_to_reach_an_engine_has_its_own_words() {
    engine_fails("unix:///nonexistent/docker.sock", "no such socket");
    engine_fails("tcp://127.0.0.1:9", "connection was refused");
    engine_fails("ssh://me@host", "ssh is not supported");
    engine_fails("docker.sock", "no scheme");
    let folder = tempfile::tempdir().expect("a folder");
    let dead = folder.path().join("dead.sock");
    drop(UnixListener::bind(&dead).expect("a socket"));
    engine_fails(
        &format!("unix://{}", dead.display()),
        "connection was refused",
    );
}

#[test]
fn what_is_no_engine_or_too_old_a_one_is_said() {
    let page = http("200 OK", "text/html", "<!DOCTYPE html><h1>It works!</h1>");
    engine_fails(
        &format!("tcp://{}", server(Some(page))),
        "is not a container engine",
    );
    let none = http("404 Not Found", "text/plain", "404 page not found\n");
    engine_fails(
        &format!("tcp://{}", server(Some(none))),
        "is not a container engine",
    );
    engine_fails(
        &format!(
            "tcp://{}",
            server(Some("SSH-2.0-OpenSSH_9.2\r\n".to_owned()))
        ),
        "is not a container engine",
    );
    let old = http(
        "200 OK",
        "application/json",
        r#"{"Version":"17.03.2-ce","ApiVersion":"1.27","MinAPIVersion":"1.12"}"#,
    );
    engine_fails(&format!("tcp://{}", server(Some(old))), "speaks API 1.27");
    let newest_only =
        r#"{"message":"client version 1.41 is too new. Maximum supported API version is 1.24"}"#;
    engine_fails(
        &format!(
            "tcp://{}",
            server(Some(http(
                "400 Bad Request",
                "application/json",
                newest_only
            )))
        ),
        "1.24",
    );
    engine_fails(
        &format!("tcp://{}", server(None)),
        "did not answer within 1 s",
    );
}

#[test]
fn the_time_of_a_task_runs_from_the_start() {
    let env = TestEnv::new();
    // An engine that takes the connection and never says a word.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = format!("tcp://{}", silent.local_addr().expect("bound"));
    let make = || {
        let mut command = env.here(&[
            "run",
            "--output",
            "json",
            "--endpoint",
            NOWHERE,
            "--timeout",
            "1s",
            "look around",
        ]);
        command.env("DOCKER_HOST", &address);
        command
    };
    let done = run(&mut make()).expect(3);
    let result = done.json();
    assert_eq!(
        (&result["status"], &result["limit"], &result["exit_code"]),
        (&"limit".into(), &"time".into(), &3.into())
    );
    assert_eq!(result["error"]["kind"], "limit");
    assert!(
        done.stderr
            .contains("was over before the model could begin")
            && done.stderr.contains("hint: "),
        "{}",
        done.stderr
    );
    let shown = run(&mut env.podbay(&["sessions", "show", "last"]))
        .expect(0)
        .text();
    assert!(shown.contains("time"), "the log says why: {shown}");
    // The project is free again.
    run(&mut make()).expect(3);
}

#[test]
fn a_script_that_asked_for_json_gets_its_object_on_every_way_out() {
    let env = TestEnv::new();
    let lines = [
        &["plan", "--output", "json", "x"][..],
        &["exec", "--output=json"],
        &["sessions", "export", "--output", "json"],
        &["chat", "--output", "json"],
        &["chat", "--output", "jsonl", "--record", "file"],
        &["chat", "--output", "json", "--config", "/nonexistent"],
        &["quickstart", "--output", "json", "--config", "/nonexistent"],
        &["run", "--output", "json"],
    ];
    for line in lines {
        let result = run(&mut env.podbay(line)).expect(2).json();
        assert_eq!(
            (&result["status"], &result["exit_code"]),
            (&"failed".into(), &2.into()),
            "{line:?}"
        );
    }
    let said = run(&mut env.podbay(&["run", "--output", "json"]))
        .expect(2)
        .json();
    assert!(
        said["error"]["message"]
            .as_str()
            .is_some_and(|text| text.contains("TASK")),
        "{said}"
    );
    // What a command in the sandbox is told is none of ours.
    assert_eq!(
        run(env
            .podbay(&["sh", "-C", "/nonexistent", "--", "x", "--output", "json"])
            .env("HOME", "/"))
        .text(),
        ""
    );
}

#[test]
fn a_rule_of_the_network_that_does_not_hold_is_refused_with_what_to_write() {
    let env = TestEnv::new();
    for (words, said) in [
        (
            &["--network", "none", "--allow-host", "example.org"][..],
            "--network none does not",
        ),
        (
            &["--network=open", "--allow-host", "example.org"],
            "--network open does not",
        ),
        (&["--allow-host", "*"], "network mode `open`"),
        (
            &["--allow-host", "@nmp"],
            "`@nmp` is no preset; there are @npm",
        ),
        (&["--allow-host", "10.0.0.1"], "is an address"),
        (&["--allow-host", ""], "it is empty"),
        (&["--allow-host", "https://example.org/"], "is no"),
    ] {
        for command in ["run", "sh", "call"] {
            let rest: &[&str] = match command {
                "run" => &["look around"],
                "sh" => &["--", "true"],
                _ => &["read_file", "{}"],
            };
            let done = run(env.here(&[command]).args(words).args(rest));
            assert!(
                [2, 125].contains(&done.code) && done.stderr.contains(said),
                "{command} {words:?}: {}",
                done.stderr
            );
        }
    }
    env.write("settings.toml", "[network]\nallow = [\"*.com\"]\n");
    let settings = env.path("settings.toml");
    let mut command = env.here(&["run", "--config"]);
    let done = run(command.arg(settings).arg("look around")).expect(2);
    assert!(
        done.stderr.contains("settings.toml:2") && done.stderr.contains("`*.com`"),
        "{}",
        done.stderr
    );
}

#[test]
fn words_of_features_to_come_are_known_and_refused_with_what_to_do() {
    let env = TestEnv::new();
    let flags: [&[&str]; 3] = [
        &["--backend", "native"],
        &["--record", "file"],
        &["--replay", "file"],
    ];
    for words in flags {
        let make = |format: &str| {
            let mut command = env.here(&[
                "run",
                "--output",
                format,
                "--endpoint",
                NOWHERE,
                "look around",
            ]);
            command.args(words);
            command
        };
        fails(&make, 2, "this build does not have");
        let done = run(env.here(&["chat"]).args(words)).expect(2);
        assert!(
            done.stderr
                .contains(words[0].split('=').next().expect("a flag")),
            "{}",
            done.stderr
        );
    }
    for words in ["plan --json", "batch file", "acp", "exec -- make", "test"] {
        let words: Vec<&str> = words.split(' ').collect();
        run(&mut env.podbay(&words))
            .expect(2)
            .says(&["this build does not have `podbay ", "hint: "]);
    }
    run(&mut env.podbay(&["sessions", "nosuch"]))
        .expect(2)
        .says(&["`podbay sessions nosuch` is no command"]);
}

#[test]
fn what_a_flag_of_the_future_means_today_is_taken() {
    let env = TestEnv::new();
    let words = [
        "--backend",
        "docker",
        "--network",
        "none",
        "--changes",
        "live",
    ];
    let done = run(env
        .here(&["run", "--endpoint", NOWHERE, "look around"])
        .args(words)
        .env("DOCKER_HOST", "unix:///nonexistent"))
    .expect(5);
    assert!(done.stderr.contains("engine"), "{}", done.stderr);
}

#[test]
fn a_signal_during_the_start_has_its_own_code_whatever_the_command() {
    let commands: [&[&str]; 6] = [
        &["up"],
        &["call", "list_directory", "{}"],
        &["chat", "--endpoint", NOWHERE],
        &["sh", "--", "true"],
        &["images", "list"],
        &["quickstart", "--endpoint", NOWHERE, "--output", "json"],
    ];
    for arguments in commands {
        for (signal, code) in [
            (Signal::SIGINT, 130),
            (Signal::SIGTERM, 143),
            (Signal::SIGHUP, 129),
        ] {
            let env = TestEnv::new();
            // An engine that takes the connection and says nothing.
            let path = env.beside("engine.sock");
            let listener = UnixListener::bind(&path).expect("binds");
            listener.set_nonblocking(true).expect("set");
            let mut command = env.podbay(arguments);
            command
                .current_dir(env.project())
                .env("DOCKER_HOST", format!("unix://{}", path.display()));
            let started = start(&mut command);
            let mut came = None;
            assert!(until(|| {
                came = listener.accept().ok();
                came.is_some()
            }));
            started.signal(signal);
            let done = started.wait().expect(code);
            if arguments.contains(&"json") {
                assert_eq!(
                    (&done.json()["exit_code"], &done.json()["status"]),
                    (&code.into(), &"interrupted".into())
                );
            }
        }
    }
}

#[test]
fn what_was_warned_about_before_a_run_is_in_its_result_too() {
    let env = TestEnv::new();
    env.write(
        ".podbay/config.toml",
        "[policy]\ndenny = [\"bash\"]\n[sandbox]\nmemory = \"64GiB\"\n",
    );
    let words = [
        "there is no setting `policy.denny`",
        "`sandbox.memory` is ignored",
    ];
    let make = |format: &str| {
        let mut command = env.here(&[
            "run",
            "--output",
            format,
            "--endpoint",
            NOWHERE,
            "look around",
        ]);
        run(command.env("DOCKER_HOST", "unix:///nonexistent/docker.sock")).expect(5)
    };
    let result = make("json").json();
    let warnings: Vec<&str> = result["warnings"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|warning| warning.as_str())
        .collect();
    let done = make("jsonl");
    let lines = done.text();
    for words in words {
        assert_eq!(
            warnings
                .iter()
                .filter(|warning| warning.contains(words))
                .count(),
            1,
            "`{words}` in {warnings:?}"
        );
        let events = lines
            .lines()
            .filter(|line| line.contains(r#""type":"warning""#) && line.contains(words))
            .count();
        assert_eq!(
            (events, done.stderr.matches(words).count()),
            (1, 1),
            "`{words}` in {lines} {}",
            done.stderr
        );
    }
}

#[test]
fn an_image_that_is_none_of_ours_is_a_wrong_word() {
    let env = TestEnv::new();
    let mut command = env.podbay(&["images", "build", "bogus"]);
    run(command.env("DOCKER_HOST", "unix:///nonexistent/docker.sock"))
        .expect(2)
        .says(&["`bogus`", "podbay/workspace", "podbay/python"]);
}

#[test]
fn numbers_that_do_not_fit_are_refused_in_plain_words() {
    let env = TestEnv::new();
    for (arguments, words) in [
        (
            &["run", "--max-turns", "-1", "x"][..],
            "write a whole number",
        ),
        (
            &["run", "--max-tokens", "many", "x"],
            "write a whole number",
        ),
        (&["run", "--pids", "99999999999", "x"], "that is too many"),
        (
            &["run", "--cpus", "two", "x"],
            "write a number, such as 2 or 0.5",
        ),
        (&["run", "--max-cost", "x", "x"], "write a number"),
        (&["logs", "-n", "-1"], "write a whole number"),
    ] {
        let done = run(&mut env.podbay(arguments)).expect(2).says(&[words]);
        assert!(
            ["digit", "literal", "4294967295", "0..="]
                .iter()
                .all(|word| !done.stderr.contains(word)),
            "{}",
            done.stderr
        );
    }
}

#[test]
fn settings_of_a_folder_that_is_not_there_are_not_shown() {
    let env = TestEnv::new();
    let file = env.beside("file");
    std::fs::write(&file, "").expect("written");
    for folder in [Path::new("/nonexistent"), &file] {
        for words in [
            &["config"][..],
            &["config", "trust", "--yes"],
            &["config", "trust", "--revoke"],
        ] {
            let done = run(env.podbay(words).arg("-C").arg(folder))
                .expect(2)
                .says(&["cannot be used", "hint:"]);
            assert_eq!(done.text(), "");
        }
    }
    // Without a name it is whatever folder this is.
    assert!(
        run(&mut env.podbay(&["config"]))
            .expect(0)
            .text()
            .contains("agent.max_turns")
    );
}
