//! The attacks of `podbay doctor --attack`: held off by the sandbox, and not by what is no sandbox.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use podbay::guest::attack::ATTACKS;
use podbay::guest::attack::Finding;
use podbay::sandbox::SECCOMP_OF_COMMANDS;
use serde_json::Value;
use serde_json::json;

use super::test_box::TestBox;
use super::test_box::docker;
use crate::support::TestEnv;
use crate::support::probe::has_domains;
use crate::support::test_env::is_root;
use crate::support::test_env::owner;
use crate::support::test_env::run;
use crate::support::test_env::start;
use crate::support::test_env::within;

/// Returns the ids of the rows that failed, after looking at every row.
#[track_caller]
fn failed(report: &Value) -> Vec<String> {
    let rows = report["attacks"].as_array().expect("rows");
    assert!(rows.len() >= 25, "{}", rows.len());
    for row in rows {
        let keys: Vec<&str> = row
            .as_object()
            .expect("an object")
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(
            keys,
            [
                "id", "group", "tried", "expected", "got", "status", "remedy"
            ]
        );
        assert_eq!(
            row["status"] == "failed",
            row["remedy"].is_string(),
            "{row}"
        );
    }
    rows.iter()
        .filter(|row| row["status"] == "failed")
        .map(|row| row["id"].as_str().expect("text").to_owned())
        .collect()
}

#[test]
fn every_attack_of_the_doctor_is_held_off() {
    let Some(env) = TestBox::new() else { return };
    env.write("mine", "untouched");
    let report = run(env
        .here(&["doctor", "--attack", "--json"])
        .env("PODBAY_TEST_CANARY", "a-value-of-the-person")
        // As on many machines, and as Podbay sets them itself.
        .env("SHELL", "/bin/bash")
        .env("PYTHONDONTWRITEBYTECODE", "1"))
    .expect(0)
    .json();
    assert_eq!(
        (failed(&report), &report["status"]),
        (Vec::new(), &json!("held")),
        "{report:#}"
    );
    let shown = std::fs::read_dir(env.project())
        .expect("the project")
        .count();
    assert_eq!(
        (shown, env.read("mine").as_str()),
        (1, "untouched"),
        "the user's project is none of its business"
    );
    env.assert_no_container();
}

/// A tight limit makes a sandbox smaller and no less closed: the attacks must fit into it.
#[test]
#[ignore = "just soak: three whole lists of attacks, one with a twentieth of a processor"]
fn every_attack_is_held_off_with_tight_limits_too() {
    let tight = [
        &[
            ("PODBAY_SANDBOX_FILE_SIZE", "32MiB"),
            ("PODBAY_SANDBOX_OPEN_FILES", "64"),
        ][..],
        &[
            ("PODBAY_SANDBOX_FILE_SIZE", "64KiB"),
            ("PODBAY_SANDBOX_DISK", "4MiB"),
            ("PODBAY_SANDBOX_MEMORY", "48MiB"),
            ("PODBAY_SANDBOX_PIDS", "24"),
        ],
        &[("PODBAY_SANDBOX_CPUS", "0.05")],
    ];
    for settings in tight {
        let Some(env) = TestBox::new() else { return };
        let mut command = env.here(&["doctor", "--attack", "--json"]);
        let done =
            start(command.envs(settings.iter().copied())).wait_within(Duration::from_mins(8));
        let report = done.json();
        assert_eq!(
            (failed(&report), done.code),
            (Vec::new(), 0),
            "{settings:?}: {report:#}"
        );
        env.assert_no_container();
    }
}

#[test]
fn limits_that_limit_nothing_show_as_rows_that_failed() {
    let Some(env) = TestBox::new() else { return };
    let mut command = env.here(&["doctor", "--attack", "--json"]);
    command
        .env("PODBAY_SANDBOX_MEMORY", "64TiB")
        .env("PODBAY_SANDBOX_PIDS", "4194304")
        .env("PODBAY_SANDBOX_FILE_SIZE", "1000TiB");
    command.env("PODBAY_SANDBOX_DISK", "0");
    let report = run(&mut command).expect(1).json();
    assert_eq!(
        (failed(&report), &report["status"]),
        (
            ["R-01", "R-02", "R-08", "R-18"].map(str::to_owned).to_vec(),
            &json!("failed")
        ),
        "{report:#}"
    );
    assert!(
        report.to_string().contains("set `sandbox.file_size`"),
        "{report:#}"
    );
    env.assert_no_container();
}

#[test]
#[ignore = "just soak: a whole list of attacks"]
fn a_project_of_root_is_attacked_as_what_it_is() {
    let Some(env) = TestBox::new() else { return };
    if !is_root("a project of root's") {
        return;
    }
    std::os::unix::fs::chown(env.project(), Some(0), Some(0)).expect("given to root");
    let report = run(&mut env.here(&["doctor", "--attack", "--json"]))
        .expect(1)
        .json();
    assert_eq!(failed(&report), ["ESC-01", "F-12"], "{report:#}");
    env.assert_no_container();
}

/// A container without any protection, with the guest's program in it; it goes with this value.
struct Open {
    id: String,
}

impl Open {
    fn start(env: &TestBox, entrypoint: &[&str], more: &[&str]) -> Self {
        // A copy: some attacks try to change it.
        let folder = env.beside("guest");
        std::fs::create_dir_all(&folder).expect("made");
        std::fs::copy(env!("CARGO_BIN_EXE_podbay"), folder.join("podbay")).expect("copied");
        std::fs::set_permissions(folder.join("podbay"), PermissionsExt::from_mode(0o755))
            .expect("ours");
        let mount = |from: &PathBuf, to: &str| format!("{}:{to}", from.display());
        let (guest, project) = (
            mount(&folder, "/run/podbay/bin"),
            mount(&env.project(), "/workspace"),
        );
        // Not privileged: a machine may lack a right that this would ask for, and these are enough
        // for the attacks.
        let rights = [
            "--user",
            "0:0",
            "--cap-add",
            "SYS_ADMIN",
            "--cap-add",
            "SYS_PTRACE",
            "--cap-add",
            "SYSLOG",
        ];
        let open = [
            "--network",
            "bridge",
            "--security-opt",
            "seccomp=unconfined",
            "--security-opt",
            "systempaths=unconfined",
        ];
        let fixed = [
            &["run", "--detach"][..],
            &rights,
            &open,
            &["--volume", &guest, "--volume", &project],
        ]
        .concat();
        let arguments = [
            &fixed[..],
            more,
            &["--entrypoint", entrypoint[0], "podbay/workspace"],
            &entrypoint[1..],
        ]
        .concat();
        let open = Self {
            id: docker(&arguments).trim().to_owned(),
        };
        docker(&["exec", &open.id, "mknod", "/dev/extra", "c", "10", "999"]);
        open
    }

    /// Starts a guest that listens at a socket, in a container that is as closed as ours but for a
    /// profile of system calls; returns its socket.
    fn listening(env: &TestBox, profile: &str) -> (Self, PathBuf) {
        let (guest, socket, file) = (
            env.beside("guest"),
            env.beside("socket"),
            env.beside("profile.json"),
        );
        for folder in [&guest, &socket] {
            std::fs::create_dir_all(folder).expect("made");
        }
        TestEnv::give(&socket);
        std::fs::copy(env!("CARGO_BIN_EXE_podbay"), guest.join("podbay")).expect("copied");
        std::fs::set_permissions(guest.join("podbay"), PermissionsExt::from_mode(0o711))
            .expect("ours");
        std::fs::write(&file, profile).expect("written");
        let mount = |from: &PathBuf, to: &str| format!("{}:{to}", from.display());
        let mounts = [
            mount(&guest, "/run/podbay/bin:ro"),
            mount(&socket, "/run/podbay/socket"),
            mount(&env.project(), "/workspace"),
        ];
        let (uid, gid) = owner();
        let (user, profile) = (
            format!("{uid}:{gid}"),
            format!("seccomp={}", file.display()),
        );
        let home = format!("/home/agent:uid={uid},gid={gid}");
        let closed = [
            "--user",
            &user,
            "--cap-drop",
            "ALL",
            "--network",
            "none",
            "--read-only",
            "--tmpfs",
            "/tmp",
            "--tmpfs",
            &home,
        ];
        let closed = [
            &["run", "--detach"][..],
            &closed,
            &[
                "--security-opt",
                "no-new-privileges",
                "--security-opt",
                &profile,
            ],
        ]
        .concat();
        let mounts = mounts
            .iter()
            .flat_map(|mount| ["--volume", mount])
            .collect::<Vec<_>>();
        let limits = [
            "--memory",
            "1g",
            "--pids-limit",
            "256",
            "--cpus",
            "1",
            "--env",
            "HOME=/home/agent",
        ];
        let listen = [
            "--entrypoint",
            "/run/podbay/bin/podbay",
            "podbay/workspace",
            "guest",
            "listen",
            "--socket",
            "/run/podbay/socket/guest.sock",
        ];
        let id = docker(&[&closed[..], &mounts, &limits, &listen].concat())
            .trim()
            .to_owned();
        let path = socket.join("guest.sock");
        assert!(within(Duration::from_secs(20), || path.exists()));
        (Self { id }, path)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let _ = Command::new("docker")
            .args(["rm", "--force", "--volumes", &self.id])
            .output();
    }
}

/// The negative control: without protection each attack that a command can make works, so that a
/// row which holds says something.
#[test]
fn without_a_sandbox_the_attacks_work() {
    let Some(env) = TestBox::new() else { return };
    if !is_root("a container without protection") {
        return;
    }
    std::fs::create_dir_all(env.path(".git/hooks")).expect("made");
    std::fs::create_dir_all(env.path(".git/objects")).expect("made");
    env.write(".git/config", "[core]\n");
    env.write(".podbay/config.toml", "");
    let socket = env.beside("engine.sock");
    let _engine = UnixListener::bind(&socket).expect("bound");
    let open = Open::start(
        &env,
        &["sleep", "600"],
        &[
            "--volume",
            &format!("{}:/run/docker.sock", socket.display()),
        ],
    );
    let port = TcpListener::bind("0.0.0.0:0").expect("a port");
    let gateway = docker(&[
        "inspect",
        "--format",
        "{{.NetworkSettings.Gateway}}",
        &open.id,
    ]);
    let address = format!(
        "{}:{}",
        gateway.trim(),
        port.local_addr().expect("bound").port()
    );
    let attack = |id: &str, argument: &str| -> Finding {
        let program = "/run/podbay/bin/podbay";
        let text = docker(&["exec", &open.id, program, "guest", "attack", id, argument]);
        serde_json::from_str(text.lines().last().unwrap_or_default())
            .unwrap_or_else(|error| panic!("{id}: {error}: {text}"))
    };
    // These are judged by what the host sees of them.
    let of_the_host = ["R-05", "R-06", "R-12", "S-01"];
    docker(&[
        "exec",
        "--detach",
        &open.id,
        "/run/podbay/bin/podbay",
        "guest",
        "attack",
        "neighbour",
    ]);
    let mut held = Vec::new();
    for (id, _) in ATTACKS.iter().filter(|(id, _)| !of_the_host.contains(id)) {
        let argument = match *id {
            "N-04" => address.as_str(),
            "R-01" | "R-10" => "100",
            "R-02" | "R-08" => "1000000",
            _ => "",
        };
        let found = attack(id, argument);
        if found.held {
            held.push(format!("{id}: {}", found.got));
        }
    }
    assert!(
        held.is_empty(),
        "held off where nothing protects: {held:#?}"
    );
    assert!(attack("R-12", "").held);
    let stays = within(Duration::from_secs(5), || !attack("count", "").held);
    assert!(stays, "nobody ends what a command leaves behind");
    let told = docker(&[
        "exec",
        "--env",
        "PODBAY_TEST_CANARY=told",
        &open.id,
        "/run/podbay/bin/podbay",
        "guest",
        "attack",
        "S-01",
    ]);
    assert!(told.contains("PODBAY_TEST_CANARY=told"), "{told}");
}

/// The names that a profile without landlock does not have.
const LANDLOCK: &str =
    r#""landlock_add_rule", "landlock_create_ruleset", "landlock_restrict_self", "#;

/// The row about calls that are apart, by itself: in a sandbox as it is, and in one to which the
/// kernel refuses landlock.
#[test]
fn without_landlock_the_row_about_other_calls_fails() {
    let Some(env) = TestBox::new() else { return };
    if !is_root("a container of another making") || !has_domains() {
        return;
    }
    let without = SECCOMP_OF_COMMANDS.replace(LANDLOCK, "");
    assert!(!without.contains("landlock"));
    for (profile, held) in [(SECCOMP_OF_COMMANDS, true), (&without, false)] {
        let (_open, path) = Open::listening(&env, profile);
        let attack = |id: &str| {
            let mut command =
                env.podbay(&["sh", "--", "/run/podbay/bin/podbay", "guest", "attack", id]);
            command
                .env("PODBAY_SANDBOX_BACKEND", "attach")
                .env("PODBAY_SANDBOX_SOCKET", &path);
            command
        };
        let waits = start(&mut attack("neighbour"));
        let found: Finding =
            serde_json::from_str(&run(&mut attack("ESC-20")).expect(0).text()).expect("a finding");
        assert_eq!(found.held, held, "{}", found.got);
        waits.signal(Signal::SIGTERM);
        waits.wait();
    }
}

#[test]
#[ignore = "just soak: a whole list of attacks"]
fn a_sandbox_without_landlock_shows_that_its_calls_are_not_apart() {
    let Some(env) = TestBox::new() else { return };
    if !is_root("a container of another making") {
        return;
    }
    let (_open, path) = Open::listening(&env, &SECCOMP_OF_COMMANDS.replace(LANDLOCK, ""));
    let mut command = env.podbay(&["doctor", "--attack", "--json"]);
    command
        .env("PODBAY_SANDBOX_BACKEND", "attach")
        .env("PODBAY_SANDBOX_SOCKET", &path);
    let report = run(&mut command).expect(1).json();
    assert!(
        failed(&report).iter().any(|id| id == "ESC-20"),
        "{report:#}"
    );
}

#[test]
#[ignore = "just soak: a whole list of attacks"]
fn a_sandbox_of_somebody_else_s_that_is_open_shows_its_rows() {
    let Some(env) = TestBox::new() else { return };
    if !is_root("a container without protection") {
        return;
    }
    let socket = env.beside("socket");
    std::fs::create_dir(&socket).expect("made");
    let mount = format!("{}:/run/podbay/socket", socket.display());
    let listen = [
        "/run/podbay/bin/podbay",
        "guest",
        "listen",
        "--socket",
        "/run/podbay/socket/guest.sock",
    ];
    let _open = Open::start(&env, &listen, &["--volume", &mount]);
    let path = socket.join("guest.sock");
    assert!(within(Duration::from_secs(20), || path.exists()));
    let mut command = env.podbay(&["doctor", "--attack", "--json"]);
    command
        .env("PODBAY_SANDBOX_BACKEND", "attach")
        .env("PODBAY_SANDBOX_SOCKET", &path);
    let report = run(&mut command).expect(1).json();
    let failed = failed(&report);
    let expected = [
        "ESC-01", "ESC-08", "ESC-15", "ESC-16", "G-01", "N-01", "N-02", "N-04", "R-01", "R-02",
        "R-04", "R-15",
    ];
    for id in expected {
        assert!(
            failed.iter().any(|found| found == id),
            "{id} held in {report:#}"
        );
    }
    // What the guest does by itself holds there too.
    for id in [
        "ESC-02", "ESC-03", "ESC-04", "ESC-07", "ESC-12", "P-01", "P-03", "F-05", "R-06", "R-12",
    ] {
        assert!(
            !failed.iter().any(|found| found == id),
            "{id} failed in {report:#}"
        );
    }
    let tidy = std::fs::read_dir(env.project())
        .expect("the project")
        .flatten()
        .map(|entry| entry.file_name())
        .collect::<Vec<_>>();
    assert!(tidy.is_empty(), "{tidy:?}");
}
