//! compose.yaml as people use it: with docker-compose 1.29 or compose v2, whichever is there.

use std::collections::BTreeSet;
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::OnceLock;
use std::sync::PoisonError;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;
use std::time::Duration;

use podbay::event::ProgressSink;
use podbay::inference;
use podbay::sandbox::SECCOMP;
use podbay::sandbox::SECCOMP_OF_COMMANDS;
use serde_json::Value;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::mounts::Mounted;
use super::signal_all;
use super::test_box::TestBox;
use super::test_box::build_image;
use super::test_box::docker;
use crate::support::ScriptedModel;
use crate::support::scripted_model::Running;
use crate::support::test_env::Started;
use crate::support::test_env::is_root;
use crate::support::test_env::owner;
use crate::support::test_env::run;
use crate::support::test_env::start;
use crate::support::test_env::within;

/// A project of compose's with names of its own; gone with all its volumes when it is dropped.
pub(super) struct Compose {
    pub(super) env: TestBox,
    pub(super) name: String,
    /// Where compose.yaml is: what `podbay init` laid beside the project.
    pub(super) folder: PathBuf,
    /// Where models are looked for, and the one that is served.
    models: PathBuf,
    model: String,
    overrides: PathBuf,
    program: &'static [&'static str],
    /// Ends it where nothing drops it.
    ending: Option<Child>,
}

impl Compose {
    /// `None`, and a printed line, where the user left these tests out.
    pub(super) fn new() -> Option<Self> {
        static BUILT: OnceLock<()> = OnceLock::new();
        static NAMES: AtomicU32 = AtomicU32::new(0);
        let env = TestBox::new()?;
        let program = program()?;
        BUILT.get_or_init(|| {
            build_image(&env, "podbay/podbay").expect(0);
        });
        run(&mut env.here(&["init"])).expect(0);
        let name = format!(
            "podbaytest{}x{}",
            std::process::id(),
            NAMES.fetch_add(1, Ordering::Relaxed)
        );
        let (models, overrides) = (env.beside("models"), env.beside("override.json"));
        let folder = env.beside("project-podbay");
        let compose = Self {
            env,
            name,
            folder,
            models,
            model: "absent.gguf".to_owned(),
            overrides,
            program,
            ending: None,
        };
        compose.restore();
        Some(compose)
    }

    /// Returns the one that is set up once for all tests that need no fresh one, and work on it in
    /// turns. `None` as with [`Compose::new`].
    fn shared() -> Option<MutexGuard<'static, Self>> {
        static SHARED: OnceLock<Option<Mutex<Compose>>> = OnceLock::new();
        let made = || {
            let mut compose = Self::new()?;
            compose.end_with_this_process();
            Some(Mutex::new(compose))
        };
        let compose = SHARED
            .get_or_init(made)
            .as_ref()?
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        compose.restore();
        Some(compose)
    }

    /// Lets a process of its own take it down when this one is gone, in whatever way: what is
    /// shared is never dropped.
    fn end_with_this_process(&mut self) {
        let down = self.down();
        let mut ending = Command::new("sh");
        ending
            .args(["-c", "cat; \"$@\"; rm -rf \"$SHARED\"", "sh"])
            .arg(down.get_program())
            .args(down.get_args());
        ending.env_clear().envs(
            down.get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        ending
            .env("SHARED", self.env.beside(""))
            .current_dir(&self.folder)
            .process_group(0);
        let ending = ending
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.ending = Some(ending.expect("a shell"));
    }

    /// Makes good what an earlier test changed.
    fn restore(&self) {
        if !self.env.path(".git").exists() {
            std::fs::create_dir(self.env.path(".git")).expect("made");
            crate::support::TestEnv::give(&self.env.path(".git"));
        }
        let _ = std::fs::remove_dir_all(&self.models);
        std::fs::create_dir(&self.models).expect("made");
        // A folder of the user's own, which nobody else may look into.
        std::fs::set_permissions(&self.models, Permissions::from_mode(0o700)).expect("ours");
        crate::support::TestEnv::give(&self.models);
        // The model is brought along: what a test does must not hang on a hub.
        let made = json!({"services": {"models": {"command": ["--version"]}}});
        std::fs::write(&self.overrides, made.to_string()).expect("written");
    }

    /// Lets the controller use a scripted model, which listens on this machine's loopback.
    fn script(&self, model: &Running) {
        let podbay = json!({
            "network_mode": "host",
            "environment": {"PODBAY_LLM_ENDPOINT": model.endpoint(), "PODBAY_LLM_API_KEY_FILE": "", "PODBAY_LLM_MODEL": "scripted"},
        });
        let made = json!({"services": {"models": {"command": ["--version"]}, "podbay": podbay}});
        std::fs::write(&self.overrides, made.to_string()).expect("written");
    }

    /// Runs compose as a user does in its folder, whose `.env` names the project and its owner.
    pub(super) fn plain(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.program[0]);
        self.env.surround(&mut command);
        command.args(&self.program[1..]).args(arguments);
        command
            .current_dir(&self.folder)
            .env("COMPOSE_PROJECT_NAME", &self.name)
            .env("PODBAY_MODELS", &self.models)
            .env("PODBAY_MODEL", &self.model);
        command
    }

    pub(super) fn compose(&self, arguments: &[&str]) -> Command {
        let overrides = self.overrides.to_str().expect("UTF-8");
        self.plain(&[&["-f", "compose.yaml", "-f", overrides], arguments].concat())
    }

    fn down(&self) -> Command {
        self.compose(&[
            "--profile",
            "run",
            "down",
            "--volumes",
            "--remove-orphans",
            "--timeout",
            "1",
        ])
    }

    /// Runs the controller, without whatever else it would start.
    fn podbay(&self, arguments: &[&str]) -> Command {
        self.compose(&[&["run", "--rm", "-T", "--no-deps", "podbay"], arguments].concat())
    }

    fn task(&self, task: &str) -> Command {
        self.podbay(&["run", "--output", "json", task])
    }

    /// Runs one command in the workspace through the controller; returns what a model would read.
    /// The engine starts the controller as compose does, who would take two seconds more for it.
    #[track_caller]
    fn bash(&self, command: &str) -> String {
        let (uid, gid) = owner();
        let (socket, state) = (
            format!("{}_socket:/run/podbay/socket", self.name),
            format!("{}_state:/state", self.name),
        );
        let mut start = Command::new("docker");
        self.env.surround(&mut start);
        start.args([
            "run",
            "--rm",
            "--network",
            "none",
            "--read-only",
            "--user",
            &format!("{uid}:{gid}"),
            "--volume",
            &socket,
        ]);
        start.args([
            "--volume",
            &state,
            "--env",
            "HOME=/state",
            "--env",
            "PODBAY_HOME=/state/podbay",
        ]);
        start.args([
            "--env",
            "PODBAY_SANDBOX_BACKEND=attach",
            "--env",
            "PODBAY_SANDBOX_SOCKET=/run/podbay/socket/guest.sock",
        ]);
        start.args([
            "podbay/podbay",
            "call",
            "bash",
            &json!({"command": command, "timeout_seconds": 10}).to_string(),
        ]);
        let done = run(&mut start);
        assert!(done.code <= 1, "{}\n{}", done.text(), done.stderr);
        done.text()
    }

    /// Returns the id of a service's container.
    #[track_caller]
    pub(super) fn container(&self, service: &str) -> String {
        let project = format!("label=com.docker.compose.project={}", self.name);
        let service = format!("label=com.docker.compose.service={service}");
        docker(&[
            "ps",
            "--all",
            "--quiet",
            "--no-trunc",
            "--filter",
            &project,
            "--filter",
            &service,
        ])
        .trim()
        .to_owned()
    }

    #[track_caller]
    fn inspect(&self, service: &str) -> Value {
        inspect(&self.container(service))
    }

    fn wait_for(&self, name: &str) {
        assert!(
            within(Duration::from_secs(60), || self.env.path(name).exists()),
            "{name} did not appear"
        );
    }

    /// Returns the containers, volumes and networks of this project.
    pub(super) fn left(&self) -> String {
        let filter = format!("label=com.docker.compose.project={}", self.name);
        let kinds: [&[&str]; 3] = [
            &["ps", "--all", "--quiet"],
            &["volume", "ls", "--quiet"],
            &["network", "ls", "--quiet"],
        ];
        kinds
            .map(|kind| docker(&[kind, &["--filter", &filter]].concat()))
            .concat()
    }
}

impl Drop for Compose {
    fn drop(&mut self) {
        let _ = self.down().output();
    }
}

/// Returns what compose is called here. An engine is all that our tests may ask for, so without
/// compose these are left out, and the run says so; with `PODBAY_TEST_COMPOSE=1`, as in CI, that is
/// a failure.
fn program() -> Option<&'static [&'static str]> {
    static FOUND: OnceLock<Option<&'static [&'static str]>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let works = |words: &[&str]| {
            Command::new(words[0])
                .args(&words[1..])
                .arg("version")
                .output()
                .is_ok_and(|done| done.status.success())
        };
        let ways: [&[&str]; 2] = [&["docker-compose"], &["docker", "compose"]];
        let found = ways.into_iter().find(|words| works(words));
        if found.is_none() {
            let is_wanted = std::env::var("PODBAY_TEST_COMPOSE").is_ok_and(|value| value == "1");
            assert!(
                !is_wanted,
                "compose is not installed: `apt-get install docker-compose`"
            );
            // Past the test's own capture: a run must not be silent about it.
            drop(std::io::stderr().write_all(
                b"left out, because docker compose is not installed: all tests of compose.yaml\n",
            ));
        }
        found
    })
}

#[track_caller]
fn inspect(container: &str) -> Value {
    let text = docker(&["inspect", container]);
    serde_json::from_str::<Value>(&text).expect("JSON")[0].clone()
}

#[test]
fn a_task_is_done_through_compose_and_nothing_is_left() {
    let model = ScriptedModel::new()
        .calls("write_file", json!({"path": "made.txt", "content": "one\n"}))
        .calls("bash", json!({"command": "echo two >> made.txt; id -u; touch .git/config /x; ls /sys/class/net; cat /proc/1/environ"}))
        .says("It is done.")
        .start_blocking();
    let Some(compose) = Compose::new() else {
        return;
    };
    compose.script(&model);
    compose.env.write("README.md", "# Notes\n");
    // Another file system in the project: nothing that is written there is a change of the project.
    compose.env.write("disk/beneath", "of the project\n");
    let mounted =
        is_root("a mount in the project").then(|| Mounted::over(compose.env.path("disk")));
    run(&mut compose.compose(&["up", "-d", "workspace"])).expect(0);

    let result = run(&mut compose.task("write two lines")).expect(0).json();
    let warnings = result["warnings"].to_string();
    let told = model.requests()[0]["messages"].to_string();
    let mount = "disk is mounted in the project from elsewhere";
    for text in [&warnings, &told] {
        assert_eq!(text.contains(mount), mounted.is_some(), "{text}");
    }
    assert_eq!(
        (&result["status"], &result["response"]),
        (&json!("completed"), &json!("It is done."))
    );
    let said = result["warnings"].to_string();
    assert!(
        said.contains("Podbay did not start") && said.contains("not offered"),
        "{said}"
    );
    assert_eq!(compose.env.read("made.txt"), "one\ntwo\n");
    let facts = std::fs::metadata(compose.env.path("made.txt")).expect("made");
    assert_eq!(
        (
            std::os::unix::fs::MetadataExt::uid(&facts),
            std::os::unix::fs::MetadataExt::gid(&facts)
        ),
        owner()
    );
    let seen = model.requests()[2]["messages"].to_string();
    for words in [
        &owner().0.to_string(),
        "'.git/config': Read-only file system",
        "'/x': Read-only file system",
        "environ: Permission denied",
    ] {
        assert!(seen.contains(words), "{words}: {seen}");
    }
    assert!(!seen.contains("eth0"), "{seen}");

    let exec = [
        "exec",
        "-T",
        "workspace",
        "bash",
        "-c",
        "id -u; id -un; pwd; cat made.txt; cat /run/podbay/bin/podbay",
    ];
    let done = run(&mut compose.compose(&exec));
    assert!(
        done.text().ends_with("agent\n/workspace\none\ntwo\n")
            && done.stderr.contains("Permission denied"),
        "{}\n{}",
        done.text(),
        done.stderr
    );
    let done =
        run(&mut compose.podbay(&["sh", "--", "sh", "-c", "echo from sh; exit 7"])).expect(7);
    assert_eq!(done.text(), "from sh\n");
    let status = run(&mut compose.podbay(&["status", "--json"]))
        .expect(0)
        .json();
    assert_eq!(status["socket"], "/run/podbay/socket/guest.sock");
    assert!(
        status["environment"]["detail"]
            .to_string()
            .contains("2.0 GiB, 512 processes"),
        "{status}"
    );

    run(&mut compose.compose(&["--profile", "run", "down", "--volumes"])).expect(0);
    assert_eq!(compose.left(), "");
    drop(mounted);
}

/// Asks for the guest's first word as a command may try it: directly, and over a connection of a
/// process that has ended.
const FORGED: &str = r"python3 - <<'END'
import os, socket
PATH = '/run/podbay/socket/guest.sock'
def connect():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(5)
    s.connect(PATH)
    return s
print('direct', connect().recv(4))
a, b = socket.socketpair()
if os.fork() == 0:
    theirs = connect()
    socket.send_fds(a, [b'x'], [theirs.fileno()])
    os._exit(0)
os.wait()
_, fds, _, _ = socket.recv_fds(b, 1, 1)
s = socket.socket(fileno=fds[0])
s.settimeout(5)
print('ended', s.recv(4))
END";

#[test]
fn a_command_cannot_pass_for_a_controller_or_end_the_workspace() {
    let model = ScriptedModel::new().start_blocking();
    let Some(compose) = Compose::shared() else {
        return;
    };
    compose.script(&model);
    run(&mut compose.compose(&["up", "-d", "workspace"])).expect(0);
    let text = compose.bash(FORGED);
    assert!(
        text.contains("direct b''") && text.contains("ended b''"),
        "{text}"
    );
    // The control: from another container the same socket answers, which every call here shows.
    let first = compose.inspect("workspace")["State"]["Pid"].clone();
    let text = compose.bash(&format!("{}; sleep 30", signal_all(9)));
    assert!(text.contains("joined again"), "{text}");
    let text = compose.bash(&format!("{}; sleep 30", signal_all(19)));
    assert!(
        text.contains("limit of 10 s") || text.contains("joined again"),
        "{text}"
    );
    compose
        .bash("rm /run/podbay/socket/guest.sock; ln -s /elsewhere /run/podbay/socket/guest.sock");
    assert_eq!(compose.bash("ls -l /run/podbay/socket | grep -c ^s"), "1\n");
    assert_eq!(
        compose.inspect("workspace")["State"]["Pid"],
        first,
        "it was never ended"
    );
    // What a command left behind does not stay.
    compose.bash("setsid sleep 4711 & disown");
    assert_eq!(
        compose.bash("pgrep -c -f 'sleep 471[1]'"),
        "0\n[exit code 1]"
    );
    // Nobody kept it: it is given up by its guest, and compose starts it anew.
    let text = compose.bash("kill -9 $(grep PPid /proc/$PPID/status | tr -dc 0-9); sleep 30");
    assert!(text.contains("killed from inside"), "{text}");
    assert_eq!(compose.bash("echo well"), "well\n");
    assert_ne!(compose.inspect("workspace")["State"]["Pid"], first);
    // Told to stop, it does so by itself.
    run(&mut compose.compose(&["stop", "workspace"])).expect(0);
    assert_eq!(compose.inspect("workspace")["State"]["ExitCode"], 0);
}

#[test]
fn a_workspace_that_goes_away_is_joined_again_and_else_given_up() {
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "touch begun; sleep 60"}))
        .calls("bash", json!({"command": "touch again; sleep 60"}))
        .calls("bash", json!({"command": "touch more"}))
        .start_blocking();
    let Some(compose) = Compose::shared() else {
        return;
    };
    compose.script(&model);
    run(&mut compose.compose(&["up", "-d", "workspace"])).expect(0);
    let mut task = compose.compose(&[
        "run",
        "--rm",
        "-T",
        "--no-deps",
        "-e",
        "PODBAY_SANDBOX_START_TIMEOUT=10s",
        "podbay",
    ]);
    let task: Started = start(task.args(["run", "--output", "json", "wait"]));
    compose.wait_for("begun");
    // One controller at a time, whatever container it is in; a single call may join beside it.
    run(&mut compose.task("me too"))
        .expect(5)
        .says(&["another Podbay is at work"]);
    assert_eq!(compose.bash("echo beside"), "beside\n");
    run(&mut compose.compose(&["restart", "--timeout", "3", "workspace"])).expect(0);
    compose.wait_for("again");
    assert!(
        model.requests()[1]["messages"]
            .to_string()
            .contains("joined again"),
        "{}",
        model.requests()[1]["messages"]
    );
    run(&mut compose.compose(&["kill", "workspace"])).expect(0);
    // The model hears of that too; its next call finds nobody.
    let result = task.wait().expect(5).json();
    assert!(
        result["error"]
            .to_string()
            .contains("no answer at the sandbox"),
        "{result}"
    );
    assert!(
        model.requests()[2]["messages"]
            .to_string()
            .contains("ended the stream"),
        "{}",
        model.requests()[2]["messages"]
    );
    assert!(!compose.env.path("more").exists());
}

/// Settings that the engine reports in the same words for both.
const SAME: [&str; 20] = [
    "CapAdd",
    "CapDrop",
    "CpuShares",
    "DeviceRequests",
    "Devices",
    "GroupAdd",
    "Init",
    "IpcMode",
    "Memory",
    "MemorySwap",
    "NanoCpus",
    "NetworkMode",
    "OomScoreAdj",
    "PidMode",
    "PidsLimit",
    "PortBindings",
    "Privileged",
    "ReadonlyRootfs",
    "ShmSize",
    "Sysctls",
];

/// What is not set is reported in several ways.
fn plain(value: &Value) -> Value {
    let is_empty = match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    };
    if is_empty { Value::Null } else { value.clone() }
}

fn ulimits(host: &Value) -> BTreeSet<String> {
    host["Ulimits"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|limit| format!("{} {} {}", limit["Name"], limit["Soft"], limit["Hard"]))
        .collect()
}

/// Returns where something is mounted and whether it can be written, without the namesake of a
/// test.
fn mounts(container: &Value) -> BTreeSet<String> {
    let describe = |mount: &Value| {
        let text = |key: &str| mount[key].as_str().unwrap_or_default().to_owned();
        format!(
            "{} {} {}",
            text("Type"),
            text("Destination"),
            if mount["RW"] == true { "rw" } else { "ro" }
        )
    };
    container["Mounts"]
        .as_array()
        .into_iter()
        .flatten()
        .map(describe)
        .collect()
}

fn profile(host: &Value) -> (bool, Value) {
    let options: Vec<&str> = host["SecurityOpt"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let profile = options
        .iter()
        .find_map(|option| option.strip_prefix("seccomp="))
        .expect("a profile");
    (
        options.contains(&"no-new-privileges:true"),
        serde_json::from_str(profile).expect("JSON"),
    )
}

/// Returns the model's file, loaded once for all tests.
fn smoke_model() -> PathBuf {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let paths = inference::Paths::new(Path::new(env!("CARGO_TARGET_TMPDIR")).join("inference"));
    let progress: ProgressSink = std::sync::Arc::new(|_| {});
    let store =
        inference::Store::new(&inference::Options::default(), &paths, false).expect("a store");
    let model = runtime.block_on(store.resolve(&progress, &CancellationToken::new()));
    model.expect("the smoke model").files[0].clone()
}

#[test]
fn every_service_is_as_closed_as_it_says_and_the_real_model_answers() {
    let Some(mut compose) = Compose::new() else {
        return;
    };
    podbay::app::install_crypto();
    let file = smoke_model();
    compose.model = "smollm2-135m".to_owned();
    // It is where `models` itself would have put it, so that service has only to look.
    std::fs::write(
        &compose.overrides,
        json!({"services": {"models": {"network_mode": "none"}}}).to_string(),
    )
    .expect("written");
    let mut folder = compose.models.clone();
    for part in ["podbay", "models"] {
        folder.push(part);
        std::fs::create_dir(&folder).expect("made");
        crate::support::TestEnv::give(&folder);
    }
    let model = folder.join(file.file_name().expect("a name"));
    std::fs::copy(&file, &model).expect("copied");
    crate::support::TestEnv::give(&model);
    build_image(&compose.env, "podbay/llama-server").expect(0);
    run(&mut compose.compose(&["up", "-d"])).expect(0);

    // The sandbox of the command line, to compare with.
    let mut shell = start(
        compose
            .env
            .here(&["sh", "--", "sh", "-c", "cat"])
            .stdin(std::process::Stdio::piped()),
    );
    let made = inspect(&compose.env.container());
    let workspace = compose.inspect("workspace");
    for key in SAME {
        assert_eq!(
            plain(&workspace["HostConfig"][key]),
            plain(&made["HostConfig"][key]),
            "{key}"
        );
    }
    assert_eq!(
        ulimits(&workspace["HostConfig"]),
        ulimits(&made["HostConfig"])
    );
    assert_eq!(
        workspace["HostConfig"]["LogConfig"]["Type"],
        made["HostConfig"]["LogConfig"]["Type"]
    );
    for key in ["User", "Hostname", "StopSignal"] {
        assert_eq!(workspace["Config"][key], made["Config"][key], "{key}");
    }
    // A shell of the user's own starts in the project.
    assert_eq!(workspace["Config"]["WorkingDir"], "/workspace");
    let paths = |container: &Value| {
        container["HostConfig"]["Tmpfs"]
            .as_object()
            .expect("some")
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    // Those of the command line's `/tmp` and home folder are on disk.
    let mut in_memory = paths(&workspace);
    in_memory.retain(|path| path != "/tmp" && path != "/home/agent");
    assert_eq!(in_memory, paths(&made));
    shell.feed(Vec::new());
    shell.wait().expect(0);

    let expected: [(&str, &[&str]); 5] = [
        (
            "setup",
            &[
                "bind /setup/compose ro",
                "bind /setup/models rw",
                "bind /setup/project ro",
                "volume /setup/guest rw",
                "volume /setup/key rw",
                "volume /setup/state rw",
            ],
        ),
        ("key", &["volume /run/key rw"]),
        ("models", &["bind /models rw"]),
        (
            "llama-server",
            &[
                "bind /models ro",
                "volume /run/key ro",
                "volume /run/llama rw",
                "volume /run/podbay/bin ro",
            ],
        ),
        (
            "workspace",
            &[
                "bind /etc/passwd ro",
                "bind /workspace rw",
                "bind /workspace/.git ro",
                "volume /run/podbay/bin ro",
                "volume /run/podbay/socket rw",
            ],
        ),
    ];
    for (service, mounted) in expected {
        check(service, &compose.inspect(service), mounted, "none");
    }
    // The controller, as compose runs it.
    let chat = start(&mut compose.compose(&[
        "run",
        "--rm",
        "-T",
        "--name",
        &format!("{}-look", compose.name),
        "podbay",
        "sh",
        "--",
        "sleep",
        "5",
    ]));
    assert!(within(Duration::from_secs(60), || !docker(&[
        "ps",
        "-q",
        "--filter",
        &format!("name={}-look", compose.name)
    ])
    .trim()
    .is_empty()));
    let controller = inspect(&format!("{}-look", compose.name));
    chat.wait().expect(0);
    let mounted = [
        "volume /run/key ro",
        "volume /run/llama rw",
        "volume /run/podbay/socket rw",
        "volume /state rw",
    ];
    check("podbay", &controller, &mounted, "none");

    // One turn of the real model, whatever it makes of it.
    let mut task = compose.compose(&[
        "run",
        "--rm",
        "-T",
        "--no-deps",
        "-e",
        "PODBAY_LLM_MAX_OUTPUT_TOKENS=16",
        "podbay",
    ]);
    task.args([
        "run",
        "--output",
        "json",
        "--tools",
        "small",
        "--max-turns",
        "1",
        "--timeout",
        "10m",
        "Say hello.",
    ]);
    // A busy machine reads the prompt for minutes; the run has a bound of its own.
    let done = task.output().expect("compose runs");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(
        [Some(0), Some(3)].contains(&done.status.code()),
        "{:?} {said}",
        done.status
    );
    let result: Value =
        serde_json::from_slice(&done.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert!(
        result["usage"]["completion"]
            .as_u64()
            .is_some_and(|tokens| tokens > 0),
        "{result}"
    );
    // The key is in nobody's arguments or environment.
    let key = docker(&[
        "exec",
        &compose.container("llama-server"),
        "cat",
        "/run/key/key",
    ]);
    assert_eq!(key.trim().len(), 64);
    for service in ["key", "llama-server", "workspace"] {
        assert!(
            !compose.inspect(service).to_string().contains(key.trim()),
            "{service}"
        );
    }
}

#[track_caller]
fn check(service: &str, container: &Value, mounted: &[&str], network: &str) {
    let host = &container["HostConfig"];
    assert_eq!(
        mounts(container),
        mounted.iter().map(|&mount| mount.to_owned()).collect(),
        "{service}"
    );
    assert!(!container.to_string().contains("docker.sock"), "{service}");
    let (no_new_privileges, seccomp) = profile(host);
    let expected = if service == "workspace" {
        SECCOMP_OF_COMMANDS
    } else {
        SECCOMP
    };
    assert!(
        no_new_privileges && seccomp == serde_json::from_str::<Value>(expected).expect("JSON"),
        "{service}"
    );
    assert_eq!(host["CapDrop"], json!(["ALL"]), "{service}");
    assert!(
        host["CapAdd"].is_null() && host["Privileged"] == false && host["ReadonlyRootfs"] == true,
        "{service}"
    );
    assert_eq!(
        (host["NetworkMode"].as_str(), host["IpcMode"].as_str()),
        (Some(network), Some("private")),
        "{service}"
    );
    assert_eq!(
        (
            plain(&host["PortBindings"]),
            plain(&host["Devices"]),
            plain(&host["PidMode"])
        ),
        (Value::Null, Value::Null, json!(null))
    );
    assert!(
        host["Memory"].as_u64() > Some(0)
            && host["MemorySwap"] == host["Memory"]
            && host["PidsLimit"].as_u64() > Some(0),
        "{service}"
    );
    let (uid, gid) = owner();
    let user = if service == "setup" {
        "0:0".to_owned()
    } else {
        format!("{uid}:{gid}")
    };
    assert_eq!(container["Config"]["User"], user, "{service}");
}

#[test]
fn a_fresh_volume_can_be_written_by_whoever_loads_models_into_it() {
    let Some(compose) = Compose::new() else {
        return;
    };
    // The volume that compose makes itself, as on a machine where nothing is set.
    run(compose
        .compose(&["run", "--rm", "-T", "models", "--version"])
        .env_remove("PODBAY_MODELS"))
    .expect(0);
    let (uid, gid) = owner();
    let (user, volume) = (
        format!("{uid}:{gid}"),
        format!("{}_models:/models", compose.name),
    );
    let look = [
        "run",
        "--rm",
        "--network",
        "none",
        "--user",
        &user,
        "-v",
        &volume,
        "--entrypoint",
        "sh",
        "podbay/workspace",
        "-c",
    ];
    assert_eq!(
        docker(
            &[
                &look[..],
                &["stat -c %a /models && mkdir /models/podbay && echo made"]
            ]
            .concat()
        ),
        "1777\nmade\n"
    );
}

#[test]
fn a_folder_of_ones_own_in_place_of_the_volume_keeps_its_mode_and_one_that_cannot_be_written_is_said()
 {
    let Some(compose) = Compose::shared() else {
        return;
    };
    if !is_root("a folder of root's in place of the volume of models") {
        return;
    }
    let (uid, gid) = owner();
    // Root's, as a folder for all users of a machine is; and a third one's.
    for folder_of in [0, uid + 1] {
        std::os::unix::fs::chown(&compose.models, Some(folder_of), Some(folder_of)).expect("root");
        std::fs::set_permissions(&compose.models, Permissions::from_mode(0o755)).expect("root");
        let done = run(&mut compose.compose(&["run", "--rm", "-T", "models", "models", "list"]));
        let words = [
            "make the folder `/models/podbay`",
            "Permission denied",
            "PODBAY_MODELS, or `podbay/` in it, to PODBAY_UID",
        ];
        done.expect(1).says(&words);
        let facts = std::fs::metadata(&compose.models).expect("there");
        assert_eq!(
            (facts.permissions().mode() & 0o7777, facts.uid()),
            (0o755, folder_of)
        );
        assert_eq!(
            std::fs::read_dir(&compose.models)
                .expect("readable")
                .count(),
            0,
            "nothing was put there"
        );
    }
    // What is said to help does.
    let own = compose.models.join("podbay");
    std::fs::create_dir(&own).expect("made");
    std::os::unix::fs::chown(&own, Some(uid), Some(gid)).expect("root");
    run(&mut compose.compose(&["run", "--rm", "-T", "models", "models", "list"])).expect(0);
}

#[test]
fn a_model_that_is_not_there_and_a_git_that_is_not_protected_are_said() {
    let model = ScriptedModel::new().start_blocking();
    let Some(compose) = Compose::shared() else {
        return;
    };
    compose.script(&model);
    compose.env.write("README.md", "# Notes\n");
    build_image(&compose.env, "podbay/llama-server").expect(0);
    // The model server is not available; that is said in its log, and the workspace is there all the
    // same.
    run(compose
        .compose(&["up", "-d"])
        .env("PODBAY_MODEL", "smollm2-135m"))
    .expect(0);
    let mut log = String::new();
    let said = within(Duration::from_secs(60), || {
        log = docker(&["logs", &compose.container("llama-server")])
            + &logged(&compose.container("llama-server"));
        log.contains("hint:")
    });
    assert!(
        said && log.contains("smollm2-135m is not here")
            && log.contains("docker compose run --rm models"),
        "{log}"
    );

    // Files of another user cannot be written, and that is said at the start.
    let mut up = compose.compose(&["up", "-d", "--force-recreate", "workspace"]);
    let (uid, gid) = owner();
    std::os::unix::fs::chown(compose.env.project(), Some(uid + 1), Some(gid + 1)).expect("root");
    run(&mut up).expect(0);
    run(&mut compose.podbay(&["call", "list_directory", "{}"]))
        .expect(0)
        .says(&["may not write", &format!("PODBAY_UID={}", uid + 1)]);
    std::os::unix::fs::chown(compose.env.project(), Some(uid), Some(gid)).expect("root");

    // Another file stands in for `.git`, which is there and open to commands.
    run(compose
        .compose(&["up", "-d", "--force-recreate", "workspace"])
        .env("PODBAY_GIT", "README.md"))
    .expect(0);
    run(&mut compose.podbay(&["call", "list_directory", "{}"]))
        .expect(5)
        .says(&[".git could be written", "PODBAY_GIT"]);
    std::fs::remove_dir(compose.env.path(".git")).expect("empty");
    run(&mut compose.podbay(&["call", "list_directory", "{}"])).expect(0);
}

#[test]
fn another_uid_than_that_of_the_volumes_is_said_by_the_first_service() {
    let Some(compose) = Compose::new() else {
        return;
    };
    let (uid, _) = owner();
    run(&mut compose.compose(&["up", "key"])).expect(0);
    let other = (uid + 1).to_string();
    let up = || {
        run(compose
            .compose(&["up", "-d", "workspace"])
            .env("PODBAY_UID", &other))
    };
    // The volumes of the sockets are made for one user: docker-compose 1.29 says that itself, and
    // names the first of them.
    let refused = up();
    if refused.stderr.contains("Configuration for volume") {
        assert_ne!(refused.code, 0);
        docker(&[
            "volume",
            "rm",
            &format!("{}_socket", compose.name),
            &format!("{}_llama", compose.name),
        ]);
        assert_ne!(up().code, 0, "nothing starts behind a step that failed");
    }
    let log = logged(&compose.container("setup"));
    for words in [
        &format!("/setup/key/key belongs to uid {uid}, and PODBAY_UID is {other} now"),
        "docker compose down -v",
        "docs/guides/compose.md",
    ] {
        assert!(log.contains(words), "`{words}` is missing: {log}");
    }
    let running = docker(&[
        "ps",
        "--quiet",
        "--filter",
        &format!("label=com.docker.compose.project={}", compose.name),
    ]);
    assert_eq!(running.trim(), "", "nothing runs");
    // What is said to help does.
    run(&mut compose.compose(&["--profile", "run", "down", "--volumes"])).expect(0);
    up().expect(0);
}

#[test]
fn without_a_gpu_the_second_file_is_refused_by_its_driver_and_the_first_works_alone() {
    let Some(compose) = Compose::shared() else {
        return;
    };
    if docker(&["info", "--format", "{{json .Runtimes}}"]).contains("nvidia") {
        drop(
            std::io::stderr()
                .write_all(b"left out, because this engine has a GPU: compose without one\n"),
        );
        return;
    }
    // Made anew each time: of one that is replaced and cannot start, compose 1.29 keeps both.
    let without =
        || run(&mut compose.compose(&["rm", "--stop", "--force", "llama-server"])).expect(0);
    without();
    // Any image will do: the engine refuses before it looks into it.
    let gpu = ["-f", "docker/compose.gpu.yaml", "up", "-d", "llama-server"];
    let done = run(compose
        .compose(&gpu)
        .env("PODBAY_LLAMA_IMAGE", "podbay/workspace"));
    assert!(
        done.code != 0
            && done
                .stderr
                .contains("could not select device driver \"nvidia\""),
        "{} {}",
        done.code,
        done.stderr
    );
    assert_eq!(compose.inspect("llama-server")["State"]["Running"], false);
    without();
    run(&mut compose.compose(&["up", "-d", "workspace"])).expect(0);
}

/// Returns what a container said on its standard error.
pub(super) fn logged(container: &str) -> String {
    let done = Command::new("docker")
        .args(["logs", container])
        .output()
        .expect("the `docker` command");
    String::from_utf8_lossy(&done.stderr).into_owned()
}
