//! The backend `attach` without any engine: what it refuses, and how it joins a guest again.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use podbay::app::doctor;
use podbay::app::doctor::Group;
use podbay::app::doctor::Status;
use podbay::app::doctor::Subject;
use podbay::app::doctor::Terminal;
use podbay::config::Sources;
use podbay::event::Kind;
use podbay::event::ProgressSink;
use podbay::event::Seconds;
use podbay::event::Sink;
use podbay::guest::serve;
use podbay::sandbox::Backend;
use podbay::sandbox::Error;
use podbay::sandbox::Lock;
use podbay::sandbox::Options;
use podbay::sandbox::Sandbox;
use podbay::sandbox::Socket;
use podbay::wire::Call;
use podbay::wire::Fault;
use podbay::wire::Output;
use tokio::net::UnixListener;
use tokio_util::sync::CancellationToken;

use crate::support::TestEnv;
use crate::support::guest::PATIENCE;
use crate::support::guest::bash;
use crate::support::guest::setup;
use crate::support::test_env::run;

/// Returns the program with a socket that nobody listens at; an engine that does not exist would be
/// noticed.
fn attached(env: &TestEnv, arguments: &[&str]) -> Command {
    let mut command = env.podbay(arguments);
    command
        .env("PODBAY_SANDBOX_BACKEND", "attach")
        .env("PODBAY_SANDBOX_SOCKET", env.beside("guest.sock"));
    command
        .env("PODBAY_SANDBOX_START_TIMEOUT", "1s")
        .env("DOCKER_HOST", "unix:///nonexistent/docker.sock");
    command
}

#[test]
fn a_server_on_the_host_is_off_where_podbay_itself_is_in_a_container() {
    let env = TestEnv::new();
    let config = env.beside("mcp.toml");
    let servers =
        "[mcp.servers.h]\ncommand = 'x'\nwhere = 'host'\n[mcp.servers.s]\ncommand = 'x'\n";
    std::fs::write(&config, servers).expect("written");
    let config = config.display().to_string();
    let list = run(&mut attached(&env, &["mcp", "list", "--config", &config]))
        .expect(0)
        .text();
    for words in [
        "h  (settings)  off: `where` is `host`",
        "which is not your machine",
        "s  (settings)  on",
    ] {
        assert!(list.contains(words), "{words}: {list}");
    }
}

#[test]
fn what_is_not_offered_with_attach_is_refused() {
    let env = TestEnv::new();
    for (arguments, words) in [
        (&["up"][..], "`podbay up`"),
        (&["down"], "`podbay down`"),
        (&["logs"], "`podbay logs`"),
        (&["quickstart"], "`podbay quickstart`"),
        (&["review", "list"], "`podbay review`"),
        (&["run", "--changes", "review", "x"], "--changes review"),
        (&["run", "--image", "debian:13", "x"], "--image"),
        (&["run", "--runtime", "python", "x"], "--runtime"),
        (&["run", "--memory", "1g", "x"], "--memory"),
        (&["call", "--pids", "100", "list_directory", "{}"], "--pids"),
        (&["chat", "--cpus", "1"], "--cpus"),
        (&["run", "-C", "/tmp", "x"], "-C"),
        (&["run", "--plan", "x"], "plan mode (--plan)"),
        (&["chat", "--plan"], "plan mode (--plan)"),
    ] {
        run(&mut attached(&env, arguments))
            .expect(2)
            .says(&[words, "attach", "docker compose"]);
    }
    run(&mut attached(&env, &["run", "x"]))
        .expect(2)
        .says(&["no model is named", "--endpoint"]);
    run(attached(&env, &["call", "list_directory", "{}"]).env("PODBAY_SANDBOX_SOCKET", ""))
        .expect(2)
        .says(&["sandbox.socket"]);
}

#[test]
fn a_backend_that_does_not_exist_yet_is_refused() {
    let env = TestEnv::new();
    for arguments in [
        &["run", "--backend", "native", "x"][..],
        &["chat", "--backend", "native"],
        &["call", "--backend", "native", "x", "{}"],
    ] {
        run(&mut env.podbay(arguments))
            .expect(2)
            .says(&["native", "yet"]);
    }
}

#[test]
fn a_sandbox_where_nobody_answers_is_said() {
    let env = TestEnv::new();
    let hint = ["no answer", "guest.sock", "docker compose up"];
    run(&mut attached(&env, &["call", "list_directory", "{}"]))
        .expect(5)
        .says(&hint);
    run(&mut attached(&env, &["sh", "--", "true"]))
        .expect(125)
        .says(&hint);
    let done = run(&mut attached(
        &env,
        &[
            "run",
            "--output",
            "json",
            "--endpoint",
            "http://127.0.0.1:9/v1",
            "x",
        ],
    ))
    .expect(5);
    assert!(done.json()["error"].to_string().contains("no answer"));
    let status = run(&mut attached(&env, &["status", "--json"]))
        .expect(0)
        .json();
    assert!(
        status["environment"].is_null()
            && status["socket"]
                .as_str()
                .is_some_and(|path| path.ends_with("guest.sock")),
        "{status}"
    );
    // What stands there need not be a socket.
    std::fs::write(env.beside("guest.sock"), "").expect("written");
    run(&mut attached(&env, &["call", "list_directory", "{}"]))
        .expect(5)
        .says(&["no socket"]);
}

/// Serves one controller at a socket, with a real guest and its spawner.
async fn serve_one(listener: &UnixListener, workspace: &Path) {
    let (stream, _) = listener.accept().await.expect("a controller");
    let (mut spawner, setup) = setup(workspace);
    let (reader, writer) = stream.into_split();
    // How it ends is what the other end tells.
    let _ = serve(reader, writer, setup).await;
    let _ = spawner.kill();
    let _ = spawner.wait();
}

#[tokio::test]
async fn doctor_greets_the_guest_at_the_socket() {
    let folder = tempfile::tempdir().expect("a folder");
    let workspace = folder.path().join("workspace");
    std::fs::create_dir(&workspace).expect("made");
    let path = folder.path().join("guest.sock");
    let listener = UnixListener::bind(&path).expect("bound");
    let serving = tokio::spawn(async move { serve_one(&listener, &workspace).await });
    let variables = [
        ("PODBAY_SANDBOX_BACKEND", "attach"),
        ("PODBAY_SANDBOX_SOCKET", path.to_str().expect("UTF-8")),
    ];
    let subject = Subject {
        sources: Sources {
            variables: variables
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec(),
            ..Sources::default()
        },
        state: Ok(folder.path().join("state")),
        project: None,
        terminal: Terminal::default(),
        key: |_| Ok(None),
        trial: false,
    };
    let progress: ProgressSink = Arc::new(|_| {});
    let found = Box::pin(doctor::diagnose(
        subject,
        &progress,
        &CancellationToken::new(),
    ))
    .await
    .expect("a diagnosis");
    let line = |name: &str| {
        found
            .checks
            .iter()
            .find(|check| check.group == Group::Sandbox && check.name == name)
    };
    let socket = line("socket").expect("a line");
    assert!(
        socket.status == Status::Ok && socket.detail.contains(path.to_str().expect("UTF-8")),
        "{found:#?}"
    );
    // This one has no limits of its own, and that is said with a remedy.
    assert!(
        line("limits").is_none_or(|check| check.status == Status::Warn && check.remedy.is_some()),
        "{found:#?}"
    );
    tokio::time::timeout(Duration::from_secs(30), serving)
        .await
        .expect("it ended")
        .expect("no panic");
}

#[tokio::test]
async fn a_guest_that_went_away_is_joined_again_and_the_model_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let workspace = folder.path().join("workspace");
    std::fs::create_dir(&workspace).expect("made");
    let path = folder.path().join("guest.sock");
    let listener = UnixListener::bind(&path).expect("bound");
    let options = Options {
        backend: Backend::Attach,
        socket: path.to_str().map(str::to_owned),
        start_timeout: Seconds::new(5),
        ..Options::default()
    };
    let serving = {
        let workspace = workspace.clone();
        tokio::spawn(async move {
            serve_one(&listener, &workspace).await;
            serve_one(&listener, &workspace).await;
        })
    };
    let told = Arc::new(Mutex::new(0));
    let sink: Sink = {
        let told = Arc::clone(&told);
        Arc::new(move |event| {
            *told.lock().expect("unpoisoned") +=
                u32::from(matches!(event.kind, Kind::SandboxLost { .. }));
        })
    };
    let cancel = CancellationToken::new();
    let socket = Socket::open(&options).expect("a socket");
    let lock = Lock::take_socket(&folder.path().join("locks"), &socket).expect("free");
    assert!(matches!(
        Lock::take_socket(&folder.path().join("locks"), &socket),
        Err(Error::BusySocket { .. })
    ));
    let (sandbox, started) = Sandbox::attach(&socket, &options, sink, &cancel)
        .await
        .expect("attached");
    assert!(started.joined && started.facts.workspace_writable);
    let call =
        |command: &str| sandbox.call(Call::Bash(bash(command)), |_, _| {}, &cancel, PATIENCE);
    assert!(matches!(
        call("touch one").await.expect("an answer"),
        Output::Command(_)
    ));
    // Others use it, too, and it is not ours to make anew.
    let refused = sandbox.set_read_only(true, &cancel).await;
    assert!(
        matches!(&refused, Err(Error::Setting { problem, .. }) if problem.contains("no plan mode")),
        "{refused:?}"
    );
    sandbox.link(&cancel).await.expect("alive").close();
    // The next call is not executed in silence: what the model counts on may be gone.
    let output = call("touch two").await.expect("an answer");
    assert!(
        matches!(&output, Output::Fault(Fault::BoxEnded { problem }) if problem.contains("joined again")),
        "{output:?}"
    );
    assert!(matches!(
        call("touch three").await.expect("an answer"),
        Output::Command(_)
    ));
    assert_eq!(*told.lock().expect("unpoisoned"), 1);
    sandbox.close().await;
    tokio::time::timeout(Duration::from_secs(30), serving)
        .await
        .expect("both ended")
        .expect("no panic");
    let names = |name: &str| workspace.join(name).exists();
    assert!(names("one") && !names("two") && names("three"));
    lock.release();
}
