//! `podbay doctor` where no engine is needed: each broken thing is one line with its remedy, and
//! the exit code is 1.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::os::unix::net::UnixStream;
use std::process::Command;

use nix::sys::socket;
use nix::sys::socket::AddressFamily;
use nix::sys::socket::Backlog;
use nix::sys::socket::SockFlag;
use nix::sys::socket::SockType;
use nix::sys::socket::UnixAddr;
use nix::sys::stat::Mode;
use serde_json::Value;
use serde_json::json;

use crate::support::ScriptedModel;
use crate::support::TestEnv;
use crate::support::test_env::is_root;
use crate::support::test_env::run;

/// An engine that is not there, so that every test of this file knows how that line looks.
const NO_ENGINE: &str = "unix:///nonexistent/docker.sock";

fn doctor(env: &TestEnv, arguments: &[&str]) -> Command {
    let mut command = env.podbay(&["doctor", "--json"]);
    command.args(arguments).env("DOCKER_HOST", NO_ENGINE);
    command
}

/// Runs it and checks the shape of what it prints.
#[track_caller]
pub(crate) fn diagnosis(command: &mut Command, code: i32) -> Value {
    let done = run(command).expect(code);
    assert_eq!(
        done.text().lines().count(),
        1,
        "one object: {}",
        done.text()
    );
    let found = done.json();
    let keys = |value: &Value| {
        value
            .as_object()
            .expect("an object")
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(keys(&found), ["status", "checks"]);
    let mut worst = "ok";
    for check in found["checks"].as_array().expect("a list") {
        assert_eq!(
            keys(check),
            ["group", "name", "status", "detail", "remedy"],
            "{check}"
        );
        let status = check["status"].as_str().expect("a word");
        let is_fine = status == "ok";
        assert_eq!(check["remedy"].is_null(), is_fine, "{check}");
        assert!(
            ["ok", "warn", "fail"].contains(&status)
                && !check["detail"].as_str().expect("text").is_empty(),
            "{check}"
        );
        worst = if status == "fail" || worst == "fail" {
            "fail"
        } else if is_fine {
            worst
        } else {
            status
        };
    }
    assert_eq!(found["status"], worst);
    assert_eq!(code == 1, worst == "fail");
    found
}

/// Checks that there is a line of this status with these words in its detail or remedy.
#[track_caller]
pub(crate) fn line(found: &Value, group: &str, name: &str, status: &str, words: &[&str]) {
    let checks = found["checks"].as_array().expect("a list");
    let lines: Vec<&Value> = checks
        .iter()
        .filter(|check| check["group"] == group && check["name"] == name)
        .collect();
    let says = |check: &&&Value| {
        let all = format!(
            "{} {}",
            check["detail"].as_str().expect("text"),
            check["remedy"].as_str().unwrap_or_default()
        );
        check["status"] == status && words.iter().all(|word| all.contains(word))
    };
    assert!(
        lines.iter().any(|check| says(&check)),
        "no line {group}/{name} is `{status}` and says {words:?}: {lines:#?}"
    );
}

#[test]
fn without_an_engine_everything_else_is_still_looked_at() {
    let env = TestEnv::new();
    let found = diagnosis(&mut doctor(&env, &[]), 1);
    line(
        &found,
        "engine",
        "connection",
        "fail",
        &["no such socket", "is Docker installed"],
    );
    // What no engine is needed for.
    line(
        &found,
        "isolation",
        "seccomp",
        "ok",
        &["the kernel can filter"],
    );
    let names = |group: &str| {
        let checks = found["checks"].as_array().expect("a list");
        checks
            .iter()
            .filter(|check| check["group"] == group)
            .map(|check| check["name"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names("isolation"),
        ["seccomp", "security module", "landlock"]
    );
    line(
        &found,
        "images",
        "images",
        "ok",
        &["not looked at: no engine answers"],
    );
    line(&found, "settings", "files", "ok", &["none"]);
    line(&found, "state", "folder", "ok", &["not there yet"]);
    line(
        &found,
        "model",
        "file",
        "warn",
        &["smollm2-135m", "podbay quickstart"],
    );
    line(
        &found,
        "host",
        "terminal",
        "ok",
        &["standard input is none"],
    );
    line(&found, "host", "clock", "ok", &["UTC"]);
    // Looking changes nothing.
    assert!(!env.state().exists());
    assert_eq!(fs::read_dir(env.home()).expect("a folder").count(), 0);

    let text = run(env.podbay(&["doctor"]).env("DOCKER_HOST", NO_ENGINE))
        .expect(1)
        .text();
    assert!(
        text.starts_with("engine\n  FAIL  connection ")
            && text.contains(" no container engine answers"),
        "{text}"
    );
    assert!(
        text.contains("-> is Docker installed") && text.contains("\none check failed; "),
        "{text}"
    );
    assert!(
        !text.contains('\u{1b}'),
        "no colours where there is no terminal"
    );
}

#[test]
fn an_engine_that_says_nothing_is_given_up() {
    let env = TestEnv::new();
    let path = env.beside("silent.sock");
    // Its queue takes connections, and nobody reads them.
    let listener = UnixListener::bind(&path).expect("a socket");
    let mut command = doctor(&env, &[]);
    command
        .env("DOCKER_HOST", format!("unix://{}", path.display()))
        .env("PODBAY_ENGINE_TIMEOUT_S", "1");
    let found = diagnosis(&mut command, 1);
    line(
        &found,
        "engine",
        "connection",
        "fail",
        &["did not answer within 1 s", "hangs or is overloaded"],
    );
    drop(listener);
}

#[test]
fn an_engine_that_takes_no_connection_any_more_is_given_up() {
    let env = TestEnv::new();
    let path = env.beside("full.sock");
    // Stopped, its queue fills: the next plain connect would wait for ever.
    let listener = socket::socket(
        AddressFamily::Unix,
        SockType::Stream,
        SockFlag::empty(),
        None,
    )
    .expect("a socket");
    socket::bind(
        std::os::fd::AsRawFd::as_raw_fd(&listener),
        &UnixAddr::new(&path).expect("an address"),
    )
    .expect("bound");
    socket::listen(&listener, Backlog::new(0).expect("a length")).expect("listening");
    let queued = UnixStream::connect(&path).expect("one fits");
    let mut command = doctor(&env, &[]);
    command
        .env("DOCKER_HOST", format!("unix://{}", path.display()))
        .env("PODBAY_ENGINE_TIMEOUT_S", "1");
    let found = diagnosis(&mut command, 1);
    line(
        &found,
        "engine",
        "connection",
        "fail",
        &["no container engine answers at"],
    );
    drop((queued, listener));
}

#[test]
fn an_engine_that_lets_nobody_in_names_the_group() {
    let env = TestEnv::new();
    let path = env.beside("closed.sock");
    let listener = UnixListener::bind(&path).expect("a socket");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).expect("ours");
    let mut command = doctor(&env, &[]);
    command.env("DOCKER_HOST", format!("unix://{}", path.display()));
    let found = diagnosis(&mut env.by_owner(&command), 1);
    line(
        &found,
        "engine",
        "connection",
        "fail",
        &["may not use the container engine", "group `docker`"],
    );
    drop(listener);
}

#[test]
fn a_state_folder_that_is_no_good_fails_with_its_reason() {
    let env = TestEnv::new();
    fs::write(env.state(), "a file").expect("written");
    line(
        &diagnosis(&mut doctor(&env, &[]), 1),
        "state",
        "folder",
        "fail",
        &["is not a folder", "PODBAY_HOME"],
    );
    fs::remove_file(env.state()).expect("removed");

    fs::create_dir(env.state()).expect("made");
    TestEnv::give(&env.state());
    fs::set_permissions(env.state(), fs::Permissions::from_mode(0o500)).expect("ours");
    line(
        &diagnosis(&mut env.by_owner(&doctor(&env, &[])), 1),
        "state",
        "writing",
        "fail",
        &["cannot make a file", "ermission denied", "PODBAY_HOME"],
    );

    let mut command = doctor(&env, &[]);
    command.env_remove("PODBAY_HOME").env_remove("HOME");
    line(
        &diagnosis(&mut command, 1),
        "state",
        "folder",
        "fail",
        &["none of PODBAY_HOME", "set PODBAY_HOME"],
    );

    // A run could not make these; modes would let root do anything.
    for nowhere in ["/proc/nope/x", "/proc/version/x/y"] {
        let found = diagnosis(doctor(&env, &[]).env("PODBAY_HOME", nowhere), 1);
        line(&found, "state", "folder", "fail", &[nowhere, "PODBAY_HOME"]);
    }

    if is_root("a state folder of another user") {
        line(
            &diagnosis(&mut doctor(&env, &[]), 1),
            "state",
            "folder",
            "fail",
            &["belongs to uid", "and you are uid 0", "chown"],
        );
    }
}

#[test]
fn settings_are_judged_by_their_lines() {
    let env = TestEnv::new();
    let folder = env.home().join(".config/podbay");
    fs::create_dir_all(&folder).expect("made");
    let file = folder.join("config.toml");
    fs::write(
        &file,
        "[sandbox]\nmemroy = \"1GiB\"\n\"\\u001b[31mx\" = 1\n",
    )
    .expect("written");
    let found = diagnosis(&mut doctor(&env, &[]), 1);
    line(&found, "settings", "files", "ok", &["config.toml"]);
    line(
        &found,
        "settings",
        "unknown key",
        "warn",
        &["config.toml:2", "did you mean `sandbox.memory`?"],
    );
    let text = run(env.podbay(&["doctor"]).env("DOCKER_HOST", NO_ENGINE))
        .expect(1)
        .text();
    assert!(
        text.contains("config.toml:3") && !text.contains('\u{1b}'),
        "{text}"
    );

    fs::write(&file, "[sandbox]\nmemory = \n").expect("written");
    let found = diagnosis(&mut doctor(&env, &[]), 1);
    line(
        &found,
        "settings",
        "files",
        "fail",
        &["config.toml`: line 2", "no run starts like this"],
    );
    fs::write(&file, "[sandbox]\nmemory = \"lots\"\n").expect("written");
    let found = diagnosis(&mut doctor(&env, &[]), 1);
    line(
        &found,
        "settings",
        "files",
        "fail",
        &["config.toml:2", "`lots` is no size"],
    );
    fs::remove_file(&file).expect("removed");

    line(
        &diagnosis(&mut doctor(&env, &["--config", "absent.toml"]), 1),
        "settings",
        "files",
        "fail",
        &["absent.toml", "does not exist"],
    );
    let pipe = env.beside("pipe.toml");
    nix::unistd::mkfifo(&pipe, Mode::S_IRWXU).expect("a pipe");
    let found = diagnosis(
        &mut doctor(&env, &["--config", pipe.to_str().expect("UTF-8")]),
        1,
    );
    line(&found, "settings", "files", "fail", &["not a regular file"]);
    // Nobody writes into it: reading it would wait for ever.
    let (input, _open) = std::io::pipe().expect("a pipe");
    let found = diagnosis(doctor(&env, &["--config", "/dev/stdin"]).stdin(input), 1);
    line(
        &found,
        "settings",
        "files",
        "fail",
        &["no answer within", "a pipe"],
    );
}

#[test]
fn the_project_and_its_own_settings_are_looked_at() {
    let env = TestEnv::new();
    env.write(".podbay/config.toml", "[sandbox]\nmemory = \"64GiB\"\n");
    let project = env.project();
    let project = project.to_str().expect("UTF-8");
    let found = diagnosis(&mut doctor(&env, &["-C", project]), 1);
    line(&found, "settings", "project", "ok", &[project]);
    line(
        &found,
        "settings",
        "project's own",
        "warn",
        &["1 of the settings", "passed over", "podbay config trust"],
    );
    env.write(".podbay/config.toml", "[sandbox]\nmemory = \"64MiB\"\n");
    let found = diagnosis(&mut doctor(&env, &["-C", project]), 1);
    line(
        &found,
        "settings",
        "project's own",
        "ok",
        &["only makes things tighter"],
    );
    env.write(".podbay/config.toml", "[network]\nmode = \"wide\"\n");
    let found = diagnosis(&mut doctor(&env, &["-C", project]), 1);
    line(
        &found,
        "settings",
        "project's own",
        "fail",
        &["config.toml:2", "network.mode"],
    );
    let home = env.home();
    let found = diagnosis(&mut doctor(&env, &["-C", home.to_str().expect("UTF-8")]), 1);
    line(
        &found,
        "settings",
        "project",
        "fail",
        &["it is your home folder", "name a project folder"],
    );
    // Where none was named, a home folder is a good place to ask from.
    let found = diagnosis(doctor(&env, &[]).current_dir(home), 1);
    line(&found, "settings", "project", "ok", &["none: "]);
}

#[test]
fn an_endpoint_is_asked_and_its_key_never_shown() {
    let env = TestEnv::new();
    let nowhere = "http://127.0.0.1:9/v1";
    line(
        &diagnosis(&mut doctor(&env, &["--endpoint", nowhere]), 1),
        "model",
        "endpoint",
        "fail",
        &["127.0.0.1:9", "is the model server running?"],
    );
    line(
        &diagnosis(&mut doctor(&env, &["--endpoint", "nonsense"]), 1),
        "model",
        "endpoint",
        "fail",
        &["nonsense"],
    );

    let model = ScriptedModel::new().key("sk-right-sesame").start_blocking();
    let address = model.endpoint();
    let asked = ["--endpoint", &address, "--api-key-env", "MY_KEY"];
    let found = diagnosis(doctor(&env, &asked).env("MY_KEY", "sk-right-sesame"), 1);
    line(
        &found,
        "model",
        "endpoint",
        "ok",
        &["scripted", "32768 tokens", "tools native"],
    );
    line(
        &found,
        "settings",
        "key",
        "ok",
        &["environment variable MY_KEY"],
    );
    assert!(!found.to_string().contains("sesame"), "{found}");

    let found = diagnosis(doctor(&env, &asked).env("MY_KEY", "sk-wrong-sesame"), 1);
    line(&found, "model", "endpoint", "fail", &["refused the key"]);
    assert!(!found.to_string().contains("sesame"), "{found}");
    line(
        &diagnosis(&mut doctor(&env, &asked), 1),
        "settings",
        "key",
        "fail",
        &["MY_KEY", "is not set"],
    );

    // Reserved for documents: nobody is there, and nobody is asked, because the key may not travel.
    let found = diagnosis(
        doctor(
            &env,
            &[
                "--endpoint",
                "http://192.0.2.7/v1",
                "--api-key-env",
                "MY_KEY",
            ],
        )
        .env("MY_KEY", "sk-sesame"),
        1,
    );
    line(&found, "model", "endpoint", "fail", &["plain HTTP"]);
    line(
        &found,
        "model",
        "encryption",
        "warn",
        &["192.0.2.7", "https"],
    );
}

#[test]
fn a_model_s_file_that_is_cut_short_fails() {
    let env = TestEnv::new();
    let file = env.beside("short.gguf");
    fs::write(&file, b"GGUF\x03\0\0\0\x01\0\0\0\0\0\0\0").expect("written");
    let found = diagnosis(doctor(&env, &[]).env("PODBAY_INFERENCE_MODEL", &file), 1);
    line(
        &found,
        "model",
        "file",
        "fail",
        &["truncated", "load it again"],
    );
    let found = diagnosis(
        doctor(&env, &[]).env("PODBAY_INFERENCE_MODEL", env.beside("absent.gguf")),
        1,
    );
    line(&found, "model", "file", "fail", &["no such file"]);
    let found = diagnosis(doctor(&env, &[]).env("PODBAY_INFERENCE_MODEL", "gpt-9"), 1);
    line(&found, "model", "file", "fail", &["gpt-9", "smollm2-135m"]);
}

/// A script in which the model does all that it is asked.
fn able() -> ScriptedModel {
    let call = json!({"path": "README.md"});
    ScriptedModel::new()
        .says("Ready.")
        .says("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20")
        .calls("read_file", call.clone())
        .says(&json!({"tool": "read_file", "arguments": call}).to_string())
        .says(&format!(
            "<tool>{}</tool>",
            json!({"tool": "read_file", "arguments": call})
        ))
        .calls("list_directory", json!({}))
        .calls(
            "write_file",
            json!({"path": "hello.py", "content": "print('hello')\n"}),
        )
}

#[test]
fn a_model_is_tried_one_thing_after_the_other() {
    let env = TestEnv::new();
    let model = able().start_blocking();
    let found = diagnosis(
        &mut doctor(&env, &["--model", "--endpoint", &model.endpoint()]),
        1,
    );
    line(&found, "trial", "connectivity", "ok", &["scripted"]);
    line(&found, "trial", "chat", "ok", &["\"Ready.\"", "ms)"]);
    line(
        &found,
        "trial",
        "streaming",
        "ok",
        &["3 pieces, the first after"],
    );
    line(
        &found,
        "trial",
        "native tools",
        "ok",
        &["it called read_file"],
    );
    line(
        &found,
        "trial",
        "constrained tools",
        "ok",
        &["it called read_file"],
    );
    line(
        &found,
        "trial",
        "text tools",
        "ok",
        &["it called read_file"],
    );
    line(&found, "trial", "mode of a run", "ok", &["native"]);
    line(
        &found,
        "trial",
        "full prompt",
        "ok",
        &["tools it called list_directory"],
    );
    line(
        &found,
        "trial",
        "code as a call",
        "ok",
        &["it called write_file at once"],
    );
    let requests = model.requests();
    assert_eq!(requests.len(), 7);
    let last = requests[5].to_string();
    assert!(
        last.contains("You are a coding agent") && last.contains("write_file"),
        "as a run asks: {last}"
    );
    assert!(
        requests[2]["tools"].is_array() && requests[3]["response_format"].is_object(),
        "{requests:#?}"
    );

    // Without tools in its template the other way is the one that counts.
    let model = able().without_tools().start_blocking();
    let found = diagnosis(
        &mut doctor(&env, &["--model", "--endpoint", &model.endpoint()]),
        1,
    );
    line(
        &found,
        "trial",
        "native tools",
        "ok",
        &["not this way: it answered without a call"],
    );
    line(
        &found,
        "trial",
        "mode of a run",
        "ok",
        &["constrained: the model's chat template has no tools"],
    );
}

#[test]
fn a_model_that_shows_code_in_place_of_a_call_is_asked_once_more() {
    let env = TestEnv::new();
    let shown = "I create hello.py:\n```python\nprint('hello')\n```";
    let write = json!({"path": "hello.py", "content": "print('hello')\n"});
    let six = |model: ScriptedModel| (0..6).fold(model, |model, _| model.says("Ready."));
    for (model, status, words, n_requests) in [
        (
            six(ScriptedModel::new())
                .says(shown)
                .calls("write_file", write),
            "ok",
            "called write_file when it was asked",
            8,
        ),
        (
            six(ScriptedModel::new()).says(shown).says(shown),
            "warn",
            "twice, and called nothing",
            8,
        ),
        (
            six(ScriptedModel::new()).says("I can do that."),
            "ok",
            "not seen: it answered with neither code nor a call",
            7,
        ),
    ] {
        let model = model.start_blocking();
        let found = diagnosis(
            &mut doctor(&env, &["--model", "--endpoint", &model.endpoint()]),
            1,
        );
        line(&found, "trial", "code as a call", status, &[words]);
        assert_eq!(model.requests().len(), n_requests);
        drop(model.take_faults());
    }
}

#[test]
fn who_else_has_the_servers_slots_is_said() {
    let env = TestEnv::new();
    for (n_slots, n_busy, status, words) in [
        (
            1,
            Some(0),
            "ok",
            "1 conversation at a time, and nobody else asks",
        ),
        (
            4,
            Some(1),
            "ok",
            "4 conversations at a time, 1 of them for others",
        ),
        (
            2,
            None,
            "ok",
            "2 conversations at a time; whether others wait for it, it does not say",
        ),
        (
            1,
            Some(1),
            "warn",
            "1 conversation at a time, and other requests have them all",
        ),
    ] {
        let model = ScriptedModel::new()
            .slots(n_slots, n_busy)
            .status(500, "{}")
            .start_blocking();
        let found = diagnosis(
            &mut doctor(&env, &["--model", "--endpoint", &model.endpoint()]),
            1,
        );
        line(&found, "trial", "slots", status, &[words]);
    }
}

/// What of the prompt is too much for a model is found by leaving out one part after the other.
#[test]
fn a_model_that_the_whole_prompt_is_too_much_for_is_asked_with_less() {
    let env = TestEnv::new();
    let call = json!({"path": "README.md"});
    let begun = || {
        let model = ScriptedModel::new()
            .says("Ready.")
            .says("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20");
        model
            .calls("read_file", call.clone())
            .says("{}")
            .says("no")
            .says("I am a coding agent.")
    };
    let tried = |model: ScriptedModel| {
        let model = model.start_blocking();
        let found = diagnosis(
            &mut doctor(&env, &["--model", "--endpoint", &model.endpoint()]),
            1,
        );
        (found, model.requests())
    };
    let (found, requests) = tried(
        begun()
            .calls("read_file", call.clone())
            .says("no")
            .says("no")
            .says("no"),
    );
    let words = [
        "without a call",
        "it does call with the set of tools `small`",
        "--tools small",
    ];
    line(&found, "trial", "full prompt", "warn", &words);
    let n_tools: Vec<usize> = requests[5..]
        .iter()
        .map(|request| request["tools"].as_array().map_or(0, Vec::len))
        .collect();
    assert!(
        n_tools[0] > n_tools[1] && n_tools[1] > 1 && n_tools[2] == 1 && n_tools[3] == n_tools[0],
        "{n_tools:?}"
    );
    assert!(
        !requests[8].to_string().contains("You are a coding agent")
            && requests[9]["response_format"].is_object()
    );
    let (found, _) = tried(
        begun()
            .says("no")
            .says("no")
            .says("no")
            .says(&json!({"tool": "read_file", "arguments": call}).to_string()),
    );
    line(
        &found,
        "trial",
        "full prompt",
        "warn",
        &[
            "the other way (constrained)",
            "llm.tool_mode = \"constrained\"",
        ],
    );
    let (found, _) = tried(begun().says("no").says("no").says("no").says("no"));
    line(
        &found,
        "trial",
        "full prompt",
        "warn",
        &["no part of it is the cause", "larger model"],
    );
}

#[test]
fn a_model_that_cannot_do_it_is_told_of() {
    let env = TestEnv::new();
    let tried = |model: ScriptedModel, code| {
        let model = model.start_blocking();
        let found = diagnosis(
            &mut doctor(&env, &["--model", "--endpoint", &model.endpoint()]),
            code,
        );
        drop(model.take_faults());
        found
    };
    let talker = ScriptedModel::new()
        .says("Ready.")
        .says("One piece.")
        .says("I cannot.")
        .says("{\"answer\": \"no\"}");
    let found = tried(talker, 1);
    line(
        &found,
        "trial",
        "streaming",
        "warn",
        &["in one piece", "proxy"],
    );
    line(
        &found,
        "trial",
        "native tools",
        "warn",
        &["without a call", "llm.tool_mode = \"constrained\""],
    );
    line(
        &found,
        "trial",
        "constrained tools",
        "ok",
        &["not this way"],
    );
    line(
        &found,
        "trial",
        "full prompt",
        "warn",
        &["without a call", "the lines above"],
    );

    let found = tried(
        ScriptedModel::new().status(500, "{\"error\":{\"message\":\"out of memory\"}}"),
        1,
    );
    line(&found, "trial", "chat", "fail", &["out of memory"]);
    let trials = found["checks"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|check| check["group"] == "trial")
        .count();
    assert_eq!(
        trials, 3,
        "the rest would only fail the same way: {found:#}"
    );
    line(
        &tried(ScriptedModel::new().html(), 1),
        "trial",
        "chat",
        "fail",
        &["web page"],
    );

    let found = diagnosis(
        &mut doctor(&env, &["--model", "--endpoint", "http://127.0.0.1:9/v1"]),
        1,
    );
    line(&found, "trial", "connectivity", "fail", &["127.0.0.1:9"]);
    let found = diagnosis(&mut doctor(&env, &["--model"]), 1);
    line(
        &found,
        "trial",
        "connectivity",
        "fail",
        &["needs a container engine"],
    );
    assert!(!env.state().exists());
}

/// Returns the command with a sandbox that somebody else is said to keep.
fn attached(env: &TestEnv, arguments: &[&str]) -> Command {
    let mut command = doctor(env, arguments);
    command
        .env("PODBAY_SANDBOX_BACKEND", "attach")
        .env("PODBAY_SANDBOX_SOCKET", env.beside("guest.sock"));
    command
}

#[test]
fn with_attach_the_socket_is_looked_at_and_no_engine() {
    let env = TestEnv::new();
    let model = ScriptedModel::new().start_blocking();
    let address = model.endpoint();
    let asked = ["--endpoint", address.as_str()];
    let found = diagnosis(&mut attached(&env, &asked), 1);
    line(&found, "engine", "connection", "ok", &["no engine is used"]);
    line(&found, "images", "images", "ok", &["no engine is used"]);
    line(&found, "isolation", "landlock", "ok", &[]);
    line(&found, "settings", "project", "ok", &["/workspace"]);
    line(&found, "model", "endpoint", "ok", &["scripted"]);
    line(
        &found,
        "sandbox",
        "socket",
        "fail",
        &["no answer", "guest.sock", "docker compose up"],
    );
    assert!(
        !found.to_string().contains("/nonexistent/docker.sock"),
        "{found}"
    );

    // Somebody answers who is no guest.
    let listener = UnixListener::bind(env.beside("guest.sock")).expect("a socket");
    let rude = std::thread::spawn(move || {
        use std::io::Write;
        let (mut stream, _) = listener.accept().expect("a controller");
        drop(stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n"));
        listener
    });
    let found = diagnosis(&mut attached(&env, &asked), 1);
    line(
        &found,
        "sandbox",
        "socket",
        "fail",
        &["cannot work in the sandbox at"],
    );
    drop(rude.join().expect("no panic"));

    let found = diagnosis(
        &mut attached(&env, &["-C", env.project().to_str().expect("UTF-8")]),
        1,
    );
    line(&found, "settings", "project", "fail", &["-C", "attach"]);
    line(
        &found,
        "model",
        "endpoint",
        "fail",
        &["no model is named", "--endpoint"],
    );
    let found = diagnosis(
        attached(&env, &["--model"]).env("PODBAY_SANDBOX_SOCKET", "guest.sock"),
        1,
    );
    line(
        &found,
        "sandbox",
        "socket",
        "fail",
        &[
            "sandbox.socket",
            "not an absolute path",
            "docs/guides/compose.md",
        ],
    );
    line(
        &found,
        "trial",
        "connectivity",
        "fail",
        &["no model is named"],
    );
}

#[test]
fn a_backend_that_is_not_built_yet_fails() {
    let env = TestEnv::new();
    let found = diagnosis(doctor(&env, &[]).env("PODBAY_SANDBOX_BACKEND", "native"), 1);
    line(
        &found,
        "settings",
        "sandbox",
        "fail",
        &["not built yet", "docker"],
    );
}

/// What `run` would refuse fails here too, with the same words.
#[test]
fn limits_that_no_sandbox_can_be_made_with_fail() {
    let env = TestEnv::new();
    for (name, value, words) in [
        ("MEMORY", "1m", "1MiB is less than the 32MiB"),
        ("MEMORY", "0", "less than the 32MiB"),
        ("MEMORY", "16777215TiB", "more than the 64TiB"),
        ("CPUS", "0", "not between 0.01 and 1024"),
        ("CPUS", "-2", "not between 0.01 and 1024"),
        ("CPUS", "1e300", "not between 0.01 and 1024"),
        ("PIDS", "0", "less than the 16 processes"),
        ("PIDS", "4294967295", "more than the 4194304 processes"),
        ("OPEN_FILES", "3", "less than the 64 files"),
        ("FILE_SIZE", "1k", "less than the 4KiB"),
        ("DISK", "9000000TiB", "more than the"),
        ("START_TIMEOUT", "0", "not between 1 s and a year"),
        ("LEASE", "18446744073709551615", "longer than a year"),
        ("IMAGE", "No Image", "not the name of an image"),
    ] {
        let variable = format!("PODBAY_SANDBOX_{name}");
        let found = diagnosis(doctor(&env, &[]).env(&variable, value), 1);
        let key = format!("sandbox.{}", name.to_ascii_lowercase());
        line(
            &found,
            "settings",
            "sandbox",
            "fail",
            &[&key, words, "docs/configuration.md"],
        );
        let refused = run(env
            .here(&["run", "--endpoint", "http://127.0.0.1:9", "look around"])
            .env(&variable, value))
        .expect(2);
        assert!(
            refused.stderr.contains(words) && refused.stderr.contains("`podbay config` says where"),
            "{variable}={value}: {}",
            refused.stderr
        );
    }
    // What is no value at all does not even load.
    for (name, value) in [
        ("MEMORY", "lots"),
        ("MEMORY", "-1"),
        ("MEMORY", "99999999TiB"),
        ("PIDS", "-1"),
        ("PIDS", "lots"),
        ("LEASE", "soon"),
    ] {
        let found = diagnosis(
            doctor(&env, &[]).env(format!("PODBAY_SANDBOX_{name}"), value),
            1,
        );
        line(
            &found,
            "settings",
            "files",
            "fail",
            &[
                &format!("sandbox.{}", name.to_ascii_lowercase()),
                "no run starts like this",
            ],
        );
    }
    // All of them are named at once.
    let found = diagnosis(
        doctor(&env, &[])
            .env("PODBAY_SANDBOX_MEMORY", "1m")
            .env("PODBAY_SANDBOX_PIDS", "1"),
        1,
    );
    line(&found, "settings", "sandbox", "fail", &["sandbox.memory"]);
    line(&found, "settings", "sandbox", "fail", &["sandbox.pids"]);
}

#[test]
fn a_key_on_the_command_line_and_a_name_behind_model_are_wrong_usage() {
    let env = TestEnv::new();
    run(&mut env.podbay(&["doctor", "--model", "qwen"])).expect(2);
    run(&mut env.podbay(&["doctor", "--api-key", "sk-sesame"])).expect(2);
}

#[test]
fn a_provider_of_the_settings_can_be_checked_by_its_name() {
    let env = TestEnv::new();
    let model = ScriptedModel::new().start_blocking();
    let address = model.endpoint();
    let folder = env.home().join(".config/podbay");
    fs::create_dir_all(&folder).expect("made");
    fs::write(
        folder.join("config.toml"),
        format!("[providers.near]\nbase_url = \"{address}\"\n"),
    )
    .expect("written");
    let found = diagnosis(&mut doctor(&env, &["--provider", "near"]), 1);
    line(&found, "model", "endpoint", "ok", &["scripted"]);
    let found = diagnosis(&mut doctor(&env, &["--provider", "far"]), 1);
    line(
        &found,
        "settings",
        "files",
        "fail",
        &["there is no provider `far`; there are: near"],
    );
    run(&mut env.podbay(&["doctor", "--provider", "near", "--endpoint", &address]))
        .expect(2)
        .says(&["cannot be used with"]);
}

/// What is named for one server goes to no other.
#[test]
fn a_provider_is_asked_with_its_own_key_model_and_sampling() {
    let env = TestEnv::new();
    let (near, own) = (
        able().key("sk-near").start_blocking(),
        able().key("sk-own").start_blocking(),
    );
    let folder = env.home().join(".config/podbay");
    fs::create_dir_all(&folder).expect("made");
    let settings = format!(
        "[llm]\nmodel = \"mine\"\napi_key_env = \"OWN_KEY\"\n\n[providers.near]\nbase_url = \"{}\"\napi_key_env = \"NEAR_KEY\"\nmodel = \"theirs\"\n\n\
         [providers.own]\nbase_url = \"{}\"\n",
        near.endpoint(),
        own.endpoint()
    );
    fs::write(folder.join("config.toml"), settings).expect("written");
    let ask = |provider: &str, code| {
        let mut command = doctor(&env, &["--model", "--provider", provider]);
        diagnosis(
            command.env("OWN_KEY", "sk-own").env("NEAR_KEY", "sk-near"),
            code,
        )
    };
    line(&ask("near", 1), "trial", "chat", "ok", &["Ready."]);
    let requests = near.requests();
    assert!(
        !requests.is_empty() && requests.iter().all(|request| request["model"] == "theirs"),
        "{requests:#?}"
    );
    assert!(own.raw_requests().is_empty());
    // The key of `[llm]` is none of a provider's, though the server would have taken it.
    line(
        &ask("own", 1),
        "model",
        "endpoint",
        "fail",
        &["refused the key"],
    );
    let seen: Vec<u8> = near
        .raw_requests()
        .concat()
        .into_iter()
        .chain(own.raw_requests().concat())
        .collect();
    assert!(!String::from_utf8_lossy(&seen).contains("sk-own"));
}

#[test]
fn a_script_gets_its_object_also_where_nothing_could_be_attacked() {
    let env = TestEnv::new();
    for (arguments, code, words) in [
        (&["-C", "/nonexistent"][..], 2, "it does not exist"),
        (
            &["--config", "/nonexistent"],
            2,
            "read the configuration file",
        ),
        (&[], 5, "container engine"),
    ] {
        let mut command = env.podbay(&["doctor", "--json", "--attack"]);
        command.args(arguments).env("DOCKER_HOST", NO_ENGINE);
        let done = run(&mut command).expect(code).says(&[words, "hint:"]);
        assert_eq!(
            done.text().lines().count(),
            1,
            "one object: {}",
            done.text()
        );
        let found = done.json();
        assert_eq!(found["status"], "error");
        assert!(found["error"].to_string().contains(words), "{found}");
        assert_eq!(done.stderr.matches("error:").count(), 1, "{}", done.stderr);
    }
}
