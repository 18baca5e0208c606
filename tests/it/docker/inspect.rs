//! Every setting of every container of ours, as the engine says it has them.

use std::path::PathBuf;

use nix::sys::signal::Signal;
use podbay::sandbox::MASKED_PATHS;
use podbay::sandbox::READONLY_PATHS;
use podbay::sandbox::SECCOMP;
use podbay::sandbox::SECCOMP_OF_COMMANDS;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use super::second::up;
use super::test_box::TestBox;
use super::test_box::docker;
use crate::support::ScriptedModel;
use crate::support::test_env::owner;
use crate::support::test_env::run;
use crate::support::test_env::start;

const GIB: u64 = 1 << 30;

/// Returns what the engine says of a container.
pub(super) fn inspect(container: &str) -> Value {
    let text = docker(&["inspect", "--type", "container", container]);
    let mut all: Vec<Value> =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    all.remove(0)
}

/// Compares all settings of a container with those that every one of ours has, and `more`. What the
/// engine leaves empty is not there; whatever else it has is a failure.
#[track_caller]
pub(super) fn check_settings(container: &Value, more: Value) {
    let mut expected = json!({
        "CapDrop": ["ALL"],
        "CgroupnsMode": "private",
        "IpcMode": "private",
        "MaskedPaths": MASKED_PATHS,
        "NetworkMode": "none",
        "ReadonlyPaths": READONLY_PATHS,
        "ReadonlyRootfs": true,
        "RestartPolicy": {"Name": "no"},
        "SecurityOpt": ["no-new-privileges:true", format!("seccomp={SECCOMP}")],
    });
    let Value::Object(more) = more else {
        panic!("{more}")
    };
    expected.as_object_mut().expect("an object").extend(more);
    let mut found = without_empty(container["HostConfig"].clone()).expect("settings");
    // Which program runs containers is the engine's own affair; zeros of limits count, though they
    // are empty.
    let map = found.as_object_mut().expect("an object");
    map.remove("Runtime");
    map.insert(
        "Ulimits".to_owned(),
        container["HostConfig"]["Ulimits"].clone(),
    );
    assert_eq!(sorted(&found), sorted(&expected));
}

/// Returns nothing for what says nothing: zero, false, no text, no list.
fn without_empty(value: Value) -> Option<Value> {
    match value {
        Value::Null | Value::Bool(false) => None,
        Value::Number(number) if number.as_f64() == Some(0.0) => None,
        Value::String(text) if text.is_empty() => None,
        Value::Array(list) => {
            let list: Vec<Value> = list.into_iter().filter_map(without_empty).collect();
            (!list.is_empty()).then_some(Value::Array(list))
        }
        Value::Object(map) => {
            let map: Map<String, Value> = map
                .into_iter()
                .filter_map(|(key, value)| Some((key, without_empty(value)?)))
                .collect();
            (!map.is_empty()).then_some(Value::Object(map))
        }
        value => Some(value),
    }
}

/// Objects keep their order here, and that of the engine's is none.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut pairs: Vec<_> = map.iter().collect();
            pairs.sort_by_key(|(key, _)| key.as_str());
            pairs
                .into_iter()
                .map(|(key, value)| (key.clone(), sorted(value)))
                .collect::<Map<_, _>>()
                .into()
        }
        Value::Array(list) => list.iter().map(sorted).collect(),
        value => value.clone(),
    }
}

/// What the user's limits and a sandbox's tasks add; the numbers are those of the page.
pub(super) fn of_a_box(more: Value) -> Value {
    let n_cpus: u64 = docker(&["info", "--format", "{{.NCPU}}"])
        .trim()
        .parse()
        .expect("a number");
    let mut settings = json!({
        "CpuShares": 512,
        "LogConfig": {"Type": "none"},
        "Memory": 2 * GIB,
        "MemorySwap": 2 * GIB,
        "NanoCpus": n_cpus.min(2) * 1_000_000_000,
        "OomScoreAdj": 500,
        "PidsLimit": 512,
        "ShmSize": 64 << 20,
        "Sysctls": {"kernel.shm_rmid_forced": "1", "kernel.msgmni": "32", "kernel.sem": "250 32000 100 128"},
        "Ulimits": [
            {"Name": "core", "Hard": 0, "Soft": 0},
            {"Name": "nofile", "Hard": 4096, "Soft": 4096},
            {"Name": "fsize", "Hard": 4 * GIB, "Soft": 4 * GIB},
            {"Name": "memlock", "Hard": 65536, "Soft": 65536},
            {"Name": "msgqueue", "Hard": 0, "Soft": 0},
            {"Name": "sigpending", "Hard": 4096, "Soft": 4096},
        ],
    });
    let Value::Object(more) = more else {
        panic!("{more}")
    };
    settings.as_object_mut().expect("an object").extend(more);
    settings
}

/// Checks a container that has the project.
#[track_caller]
fn check_box(env: &TestBox, container: &Value, entrypoint: &[&str], is_attached: bool) {
    let (uid, gid) = owner();
    let guest = container["Mounts"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|mount| mount["Destination"] == "/run/podbay/bin")
        .expect("the guest's volume");
    let volume = guest["Name"].as_str().expect("a name");
    let hosts = format!("{}/hosts", guest["Source"].as_str().expect("a path"));
    assert!(volume.starts_with("podbay-guest-"), "{volume}");
    let readonly = [&READONLY_PATHS[..], &["/workspace/.git"]].concat();
    // Temporary files and the home folder: removed with the container, on the engine's disk.
    let mut labels = container["Config"]["Labels"].clone();
    // A container inherits those of its image: what that was made from.
    let is_of_image = |spec: &Value| spec.as_str().is_some_and(|spec| spec.contains(' '));
    if is_of_image(&labels["dev.podbay.spec"]) {
        labels
            .as_object_mut()
            .expect("an object")
            .remove("dev.podbay.spec");
    }
    let scratch = |target: &str| json!({"Type": "volume", "Target": target, "VolumeOptions": {"Labels": labels}});
    // The lists of users are named by their content.
    let users = container["HostConfig"]["Mounts"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|mount| mount["Target"] == "/etc/passwd")
        .and_then(|mount| mount["Source"].as_str()?.strip_suffix("/passwd"))
        .expect("a list of users");
    assert!(
        users.starts_with(&hosts.replace("/hosts", "/users/")),
        "{users}"
    );
    let list = |name: &str| {
        json!({
            "Type": "bind", "Source": format!("{users}/{name}"), "Target": format!("/etc/{name}"), "ReadOnly": true,
            "BindOptions": {"Propagation": "rslave", "NonRecursive": true},
        })
    };
    let mut all = json!([
                {
                    "Type": "bind", "Source": env.project(), "Target": "/workspace",
                    "BindOptions": {"Propagation": "rprivate", "NonRecursive": true},
                },
                {"Type": "volume", "Source": volume, "Target": "/run/podbay/bin", "ReadOnly": true, "VolumeOptions": {"NoCopy": true}},
                {
                    "Type": "bind", "Source": hosts, "Target": "/etc/hosts", "ReadOnly": true,
                    "BindOptions": {"Propagation": "rslave", "NonRecursive": true},
                },
                scratch("/tmp"),
                scratch("/home/agent"),
                list("passwd"),
                list("group"),
    ]);
    // Where controllers of the sandbox of `podbay up` wait.
    let sockets = (!is_attached).then(|| sockets(env));
    if let Some(source) = &sockets {
        all.as_array_mut().expect("a list").push(json!({
            "Type": "bind", "Source": source, "Target": "/run/podbay/controllers", "ReadOnly": true,
            "BindOptions": {"Propagation": "rprivate", "NonRecursive": true},
        }));
    }
    check_settings(
        container,
        of_a_box(json!({
            "AutoRemove": true,
            "Mounts": all,
            "ReadonlyPaths": readonly,
            "SecurityOpt": ["no-new-privileges:true", format!("seccomp={SECCOMP_OF_COMMANDS}")],
            "Tmpfs": {
                "/run": "rw,noexec,nosuid,nodev,size=1m,nr_inodes=1k,mode=0755",
                "/dev/shm": format!("rw,noexec,nosuid,nodev,size={},nr_inodes=32768,mode=1777", 64 << 20),
            },
        })),
    );
    // What came of it: mounts, of which the project and two of the sandbox's own are to write on, and
    // no way in by a port or a name.
    let mounted = |mount: &Value| {
        (
            mount["Destination"].as_str().expect("text").to_owned(),
            mount["RW"].as_bool().expect("yes or no"),
        )
    };
    let mut mounts: Vec<_> = container["Mounts"]
        .as_array()
        .expect("a list")
        .iter()
        .map(mounted)
        .collect();
    mounts.sort();
    let expected = [
        ("/etc/group", false),
        ("/etc/hosts", false),
        ("/etc/passwd", false),
        ("/home/agent", true),
        ("/run/podbay/bin", false),
        ("/tmp", true),
        ("/workspace", true),
    ];
    let more = sockets.map(|_| ("/run/podbay/controllers", false));
    let mut expected: Vec<_> = expected.into_iter().chain(more).collect();
    expected.sort_unstable();
    let expected: Vec<_> = expected
        .into_iter()
        .map(|(path, writable)| (path.to_owned(), writable))
        .collect();
    assert_eq!(mounts, expected);
    // The engine sets nothing up in its network, not even what it calls `none`.
    assert_eq!(without_empty(container["NetworkSettings"].clone()), None);
    assert_eq!(container["Config"]["NetworkDisabled"], true);

    let config = &container["Config"];
    assert_eq!(config["User"], format!("{uid}:{gid}"));
    assert_eq!(config["WorkingDir"], "/");
    assert_eq!(config["Entrypoint"], json!(entrypoint));
    assert_eq!(config["Healthcheck"], json!({"Test": ["NONE"]}));
    assert_eq!(
        (&config["Hostname"], &config["StopSignal"]),
        (&json!("workspace"), &json!("SIGTERM"))
    );
    for key in [
        "AttachStdin",
        "AttachStdout",
        "AttachStderr",
        "OpenStdin",
        "StdinOnce",
    ] {
        assert_eq!(config[key], is_attached, "{key}");
    }
    for key in ["Tty", "Cmd", "Volumes", "ExposedPorts", "OnBuild"] {
        assert_eq!(without_empty(config[key].clone()), None, "{key}");
    }
    let environment = [
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG=C.UTF-8",
        "TERM=dumb",
        "CARGO_NET_RETRY=0",
        "PIP_DISABLE_PIP_VERSION_CHECK=1",
        "PIP_RETRIES=0",
        "UV_HTTP_RETRIES=0",
        "npm_config_fetch_retries=0",
        "LD_PRELOAD=",
        "LD_LIBRARY_PATH=",
        "LD_AUDIT=",
        "BASH_ENV=",
        "ENV=",
        "PROMPT_COMMAND=",
        "GLIBC_TUNABLES=",
        "HOME=/home/agent",
        "USER=agent",
        "LOGNAME=agent",
        "SHELL=/bin/bash",
    ];
    assert_eq!(config["Env"], json!(environment));
}

/// Returns the only folder for sockets of controllers.
fn sockets(env: &TestBox) -> PathBuf {
    let folders = std::fs::read_dir(env.state().join("joins")).expect("listed");
    let mut paths = folders.map(|entry| entry.expect("listed").path());
    let path = paths.next().expect("one for the sandbox");
    assert_eq!(paths.next(), None);
    path
}

/// Checks the container that the guest's volume is filled through, which is seen on its way only.
#[track_caller]
pub(super) fn check_filler(container: &Value, volume: &str) {
    assert_eq!(container["State"]["Status"], "created");
    assert!(
        container["State"]["StartedAt"]
            .as_str()
            .is_some_and(|at| at.starts_with("0001-01-01")),
        "{}",
        container["State"]
    );
    assert_eq!(container["Config"]["Labels"]["dev.podbay.role"], "filler");
    assert_eq!(container["Config"]["Entrypoint"], json!(["/never-started"]));
    let mounts = json!([{"Type": "volume", "Source": volume, "Target": "/fill", "VolumeOptions": {"NoCopy": true}}]);
    check_settings(container, of_a_box(json!({ "Mounts": mounts })));
}

#[test]
fn inspect_shows_every_setting_of_the_box() {
    let Some(env) = TestBox::new() else { return };
    env.write(".git/HEAD", "ref: refs/heads/main\n");
    let begun = start(&mut env.here(&["sh", "--", "sleep", "60"]));
    let container = inspect(&env.container());
    check_box(
        &env,
        &container,
        &["/run/podbay/bin/podbay", "guest", "serve"],
        true,
    );
    assert_eq!(
        container["Config"]["Labels"]["dev.podbay.role"],
        "workspace"
    );
    begun.signal(Signal::SIGTERM);
    begun.wait().expect(143);
    env.assert_no_container();

    up(&env, &ScriptedModel::new().start_blocking(), &[]);
    let container = inspect(&env.container());
    check_box(
        &env,
        &container,
        &[
            "/run/podbay/bin/podbay",
            "guest",
            "init",
            "--lease",
            "1800",
            "--sockets",
            "/run/podbay/controllers",
        ],
        false,
    );
    assert_eq!(
        container["Config"]["Labels"]["dev.podbay.role"],
        "environment"
    );
    run(&mut env.here(&["down"])).expect(0);
    env.assert_no_container();
}

/// The control: a container with everything as the engine has it by itself, or with one thing more
/// than ours have, does not pass.
#[test]
fn a_container_of_another_making_does_not_pass_for_one_of_ours() {
    let Some(env) = TestBox::new() else { return };
    let ours = [
        "--cap-drop",
        "ALL",
        "--network",
        "none",
        "--read-only",
        "--security-opt",
        "no-new-privileges",
    ];
    for more in [
        &[][..],
        &ours,
        &["--privileged"],
        &["--volume", "/var/run:/host"],
        &["--pid", "host"],
        &["--device", "/dev/null"],
    ] {
        let label = format!("dev.podbay.project={}", env.key());
        let container = docker(
            &[
                &["create", "--label", &label][..],
                more,
                &["podbay/workspace"],
            ]
            .concat(),
        );
        let found = inspect(container.trim());
        let passes =
            std::panic::catch_unwind(|| check_settings(&found, of_a_box(json!({})))).is_ok();
        assert!(!passes, "{more:?}");
    }
}
