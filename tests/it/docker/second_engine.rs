//! An engine of the test's own that is restarted while a run works, or whose disk is full. The
//! machine's engine is never touched.

use std::io::Write;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::Signal;
use podbay_soak as soak;
use serde_json::json;

use super::test_box::TestBox;
use super::test_box::docker;
use crate::support::ScriptedModel;
use crate::support::test_env::is_root;
use crate::support::test_env::run;
use crate::support::test_env::start;
use crate::support::test_env::within;

const PATIENCE: Duration = Duration::from_mins(1);

/// Returns whether an engine of one's own is available here; where not, the run says what is left
/// out.
pub(super) fn can_have_engine(what: &str) -> bool {
    let has = |program: &str| {
        Command::new(program)
            .arg("--version")
            .output()
            .is_ok_and(|done| done.status.success())
    };
    if !is_root(what) {
        return false;
    }
    let missing: Vec<&str> = ["dockerd", "containerd", "unshare"]
        .into_iter()
        .filter(|program| !has(program))
        .collect();
    if !missing.is_empty() {
        // Past the test's own capture: a run must not be silent about it.
        drop(writeln!(
            std::io::stderr(),
            "left out, because {} is not here: {what}",
            missing.join(", ")
        ));
    }
    missing.is_empty()
}

/// Starts a program that writes to the log in a folder.
fn logged(command: &mut Command, folder: &Path, input: Stdio) -> Child {
    let log = std::fs::File::options()
        .create(true)
        .append(true)
        .open(folder.join("log"))
        .expect("a log");
    command
        .stdin(input)
        .stdout(log.try_clone().expect("another one"))
        .stderr(log)
        .spawn()
        .expect("a program of the engine's")
}

/// A `dockerd` and a `containerd` with folders of their own; all of it goes with this value.
pub(super) struct SecondEngine {
    folder: PathBuf,
    /// Storage driver.
    driver: String,
    /// Apart, as it is on most machines: it stays when the engine is restarted, and so do the
    /// containers.
    containerd: Child,
    child: Child,
    /// Where it also listens, for those with certificates.
    door: Option<Door>,
}

/// A TCP socket of this machine's network, which the engine's own one does not reach.
pub(super) struct Door {
    pub(super) listener: TcpListener,
    /// Folder with `ca.pem`, `server.pem` and `server-key.pem`.
    pub(super) certificates: PathBuf,
}

impl SecondEngine {
    /// Starts one like the machine's.
    fn start(folder: PathBuf) -> Self {
        let driver = docker(&["info", "--format", "{{.Driver}}"])
            .trim()
            .to_owned();
        std::fs::create_dir(&folder).expect("made");
        Self::start_in(folder, driver, None)
    }

    /// Starts one that also listens on TCP, and answers only those whose certificate it can verify.
    pub(super) fn start_behind(door: Door, folder: PathBuf) -> Self {
        std::fs::create_dir(&folder).expect("made");
        // The one that stands on any file system; what is here is small.
        Self::start_in(folder, "vfs".to_owned(), Some(door))
    }

    /// Starts one whose images, volumes and containers lie on a small disk.
    fn start_on_disk_of(size: &str, folder: PathBuf) -> Self {
        let data = folder.join("data");
        std::fs::create_dir_all(&data).expect("made");
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "none"])
            .arg(&data)
            .status();
        assert!(done.expect("the `mount` command").success());
        // The one that stands on any file system; what is here is small.
        Self::start_in(folder, "vfs".to_owned(), None)
    }

    fn start_in(folder: PathBuf, driver: String, door: Option<Door>) -> Self {
        // Its defaults would be those of the machine's engine.
        std::fs::write(folder.join("daemon.json"), "{}").expect("written");
        std::fs::write(
            folder.join("containerd.toml"),
            "version = 2\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n",
        )
        .expect("written");
        let path = |name: &str| folder.join(name).to_str().expect("is text").to_owned();
        let mut containerd = Command::new("containerd");
        containerd.args([
            "--config",
            &path("containerd.toml"),
            "--root",
            &path("containerd"),
            "--state",
            &path("state"),
        ]);
        let containerd = logged(
            containerd.args(["--address", &path("containerd.sock")]),
            &folder,
            Stdio::null(),
        );
        let socket = folder.join("containerd.sock");
        assert!(
            within(PATIENCE, || std::os::unix::net::UnixStream::connect(
                &socket
            )
            .is_ok()),
            "containerd does not answer"
        );
        let mut engine = Self {
            child: Self::spawn(&folder, &driver, door.as_ref()),
            containerd,
            folder,
            driver,
            door,
        };
        engine.wait_until_it_answers();
        engine
    }

    fn spawn(folder: &Path, driver: &str, door: Option<&Door>) -> Child {
        let path = |name: &str| folder.join(name).to_str().expect("is text").to_owned();
        // In a network of its own: an engine that is to have no bridge removes the machine's
        // `docker0`, whoever made it.
        let mut dockerd = Command::new("unshare");
        // It takes the socket at its input as one that systemd had made for it.
        let handing = r#"LISTEN_PID=$$ LISTEN_FDS=1 exec "$@" 3<&0 </dev/null"#;
        dockerd.arg("--net");
        if door.is_some() {
            dockerd.args(["sh", "-c", handing, "sh"]);
        }
        dockerd
            .arg("dockerd")
            .args([
                "--config-file",
                &path("daemon.json"),
                "--data-root",
                &path("data"),
                "--exec-root",
                &path("exec"),
            ])
            .args([
                "--pidfile",
                &path("pid"),
                "--host",
                &format!("unix://{}", path("docker.sock")),
                "--storage-driver",
                driver,
            ])
            .args([
                "--bridge",
                "none",
                "--iptables=false",
                "--containerd",
                &path("containerd.sock"),
            ]);
        let Some(door) = door else {
            return logged(&mut dockerd, folder, Stdio::null());
        };
        dockerd.args(["--host", "fd://", "--tlsverify"]);
        for (flag, name) in [
            ("--tlscacert", "ca.pem"),
            ("--tlscert", "server.pem"),
            ("--tlskey", "server-key.pem"),
        ] {
            dockerd.arg(flag).arg(door.certificates.join(name));
        }
        let listener = door.listener.try_clone().expect("another one");
        logged(&mut dockerd, folder, OwnedFd::from(listener).into())
    }

    fn address(&self) -> String {
        format!("unix://{}", self.folder.join("docker.sock").display())
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Gives its small disk another size.
    fn grow_to(&self, size: &str) {
        let done = Command::new("mount")
            .args(["-o", &format!("remount,size={size}")])
            .arg(self.data())
            .status();
        assert!(done.expect("the `mount` command").success());
    }

    pub(super) fn docker(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("docker");
        command.args(["--host", &self.address()]).args(arguments);
        command
    }

    #[track_caller]
    fn wait_until_it_answers(&mut self) {
        let answers = within(PATIENCE, || {
            self.docker(&["version"])
                .output()
                .expect("the `docker` command")
                .status
                .success()
        });
        assert!(
            answers,
            "{}",
            std::fs::read_to_string(self.folder.join("log")).unwrap_or_default()
        );
    }

    /// Copies an image of the machine's engine.
    fn bring(&self, image: &str) {
        let mut saving = Command::new("docker")
            .args(["save", image])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the `docker` command");
        let loaded = self
            .docker(&["load"])
            .stdin(saving.stdout.take().expect("a pipe"))
            .output()
            .expect("the `docker` command");
        assert!(
            saving.wait().expect("our own child").success() && loaded.status.success(),
            "{loaded:?}"
        );
    }

    /// Gives it an image `only` that holds nothing but an empty file.
    pub(super) fn import_bare(&self, folder: &Path) {
        std::fs::write(folder.join("only"), "").expect("written");
        let archive = folder.join("only.tar");
        let packed = Command::new("tar")
            .arg("-C")
            .arg(folder)
            .arg("-cf")
            .arg(&archive)
            .arg("only")
            .status();
        assert!(packed.expect("the `tar` command").success());
        let imported = self
            .docker(&["import"])
            .arg(&archive)
            .arg("only")
            .output()
            .expect("the `docker` command");
        assert!(imported.status.success(), "{imported:?}");
    }

    fn stop(&mut self, signal: Signal) {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.child.id() as i32), signal)
            .expect("our own child");
        self.child.wait().expect("our own child");
    }

    fn restart(&mut self, signal: Signal) {
        self.stop(signal);
        // One that was killed leaves these, and would take them for another one's.
        let _ = std::fs::remove_file(self.folder.join("pid"));
        self.child = Self::spawn(&self.folder, &self.driver, self.door.as_ref());
        self.wait_until_it_answers();
    }

    fn told_of_containers(&self) -> String {
        let format = "{{.ID}} {{.Names}}: {{.Status}}, {{.Labels}}";
        let listed = self
            .docker(&["ps", "--all", "--format", format])
            .output()
            .expect("the `docker` command");
        String::from_utf8_lossy(&listed.stdout).into_owned()
    }

    /// Returns those that are there. An engine that was killed while it removed one may list that
    /// for ever, without its name, and knows nothing of it when it is asked.
    pub(super) fn containers(&self) -> Vec<String> {
        let listed = self
            .docker(&["ps", "--all", "--quiet"])
            .output()
            .expect("the `docker` command");
        let is_there = |id: &String| {
            self.docker(&["container", "inspect", id])
                .output()
                .expect("the `docker` command")
                .status
                .success()
        };
        String::from_utf8_lossy(&listed.stdout)
            .lines()
            .map(str::to_owned)
            .filter(is_there)
            .collect()
    }
}

impl Drop for SecondEngine {
    fn drop(&mut self) {
        for id in self.containers() {
            let _ = self.docker(&["rm", "--force", "--volumes", &id]).output();
        }
        self.stop(Signal::SIGTERM);
        let _ = self.containerd.kill();
        let _ = self.containerd.wait();
        // Where it could not be asked any more, what it had started is known by the folder among
        // its words.
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let pid = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse::<i32>().ok());
            if String::from_utf8_lossy(&words).contains(&*self.folder.to_string_lossy())
                && let Some(pid) = pid
            {
                let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), Signal::SIGKILL);
            }
        }
        // What it had mounted below its folder.
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let below = mounts
            .lines()
            .filter_map(|line| line.split(' ').nth(1))
            .filter(|path| path.starts_with(&*self.folder.to_string_lossy()));
        for path in below.collect::<Vec<_>>().into_iter().rev() {
            let _ = Command::new("umount").args(["--lazy", path]).status();
        }
    }
}

#[test]
fn an_engine_that_is_restarted_during_a_run_costs_it_a_sandbox_or_the_run() {
    let Some(env) = TestBox::new() else { return };
    if !can_have_engine("an engine that is restarted during a run") {
        return;
    }
    let both = [Signal::SIGTERM, Signal::SIGKILL];
    let one = soak::Random::seeded().below(2) as usize;
    let signals = soak::whole_or(both.repeat(8), vec![both[one]]);
    let has_bridge = || Path::new("/sys/class/net/docker0").exists();
    let had_bridge = has_bridge();
    let mut engine = SecondEngine::start(env.beside("engine"));
    engine.bring("podbay/workspace");
    let mut n_went_on = 0;
    for &signal in &signals {
        let _ = std::fs::remove_file(env.path("begun"));
        let model = ScriptedModel::new()
            .calls("bash", json!({"command": "touch begun; sleep 60"}))
            .calls("bash", json!({"command": "echo $((40+2))"}))
            .says("It continued.")
            .start_blocking();
        let started = start(
            env.task(&model, &["wait"])
                .env("DOCKER_HOST", engine.address()),
        );
        env.wait_for("begun");
        engine.restart(signal);
        let done = started.wait_within(PATIENCE);
        let ended = format!("{done:?}");
        // It depends on who is faster: the engine that comes back, or the controller that makes a
        // new sandbox.
        if done.code == 0 {
            n_went_on += 1;
            assert!(
                model.requests()[1]["messages"]
                    .to_string()
                    .contains("A new one takes its place"),
                "{signal}"
            );
            assert!(
                model.requests()[2]["messages"].to_string().contains("42"),
                "{signal}"
            );
        } else {
            done.expect(5);
        }
        let swept = run(env.podbay(&["gc"]).env("DOCKER_HOST", engine.address())).expect(0);
        let gone = within(Duration::from_secs(20), || engine.containers().is_empty());
        assert!(
            gone,
            "{signal}: {}; it ended so: {ended}; and `gc` so: {swept:?}",
            engine.told_of_containers()
        );
        // And it is of use again, with the project free.
        let text = run(env
            .here(&["call", "bash", r#"{"command":"echo $((40+2))"}"#])
            .env("DOCKER_HOST", engine.address()))
        .expect(0)
        .text();
        assert_eq!(text, "42\n", "{signal}");
    }
    drop(engine);
    assert_eq!(
        has_bridge(),
        had_bridge,
        "the network of the machine's engine is not this test's business"
    );
    // Past the test's own capture: it is a count that somebody wants to read.
    drop(writeln!(
        std::io::stderr(),
        "{n_went_on} of {} runs continued after their engine was restarted",
        signals.len()
    ));
}

#[test]
fn rel_22_a_full_disk_of_the_engine_is_said_and_nothing_half_made_stays() {
    let Some(env) = TestBox::new() else { return };
    if !can_have_engine("an engine whose disk is full") {
        return;
    }
    let engine = SecondEngine::start_on_disk_of("64m", env.beside("engine"));
    engine.import_bare(&env.beside(""));
    env.write("file.txt", "content\n");
    let read = || {
        let mut call = env.here(&[
            "call",
            "--image",
            "only",
            "read_file",
            r#"{"path":"file.txt"}"#,
        ]);
        run(call.env("DOCKER_HOST", engine.address()))
    };
    // What is left: containers, and volumes but that of the guest, which the next start fills.
    let left = || {
        let volumes = engine
            .docker(&["volume", "ls", "--quiet"])
            .output()
            .expect("the `docker` command");
        let volumes = String::from_utf8_lossy(&volumes.stdout)
            .lines()
            .filter(|name| !name.starts_with("podbay-guest-"))
            .count();
        (engine.containers().len(), volumes)
    };
    let fill = |name: &str| {
        let mut dd = Command::new("dd");
        dd.args(["if=/dev/zero", "bs=64k", "status=none"])
            .arg(format!("of={}", engine.data().join(name).display()));
        assert!(
            !dd.output().expect("the `dd` command").status.success(),
            "it ends when the disk is full"
        );
    };
    // Our own program does not fit.
    fill("full");
    for _ in 0..2 {
        read()
            .expect(5)
            .says(&["no space left on the engine's disk", "hint:", "free space"]);
        assert_eq!(left(), (0, 0));
    }
    // With room it works, though one was killed by the disk while it filled the guest's volume.
    std::fs::remove_file(engine.data().join("full")).expect("it was there");
    engine.grow_to("600m");
    assert!(read().expect(0).text().contains("content"));
    // Full again: either a sandbox needs no room, or it is said.
    fill("full");
    let done = read();
    if done.code != 0 {
        done.expect(5)
            .says(&["no space left on the engine's disk", "free space"]);
    }
    std::fs::remove_file(engine.data().join("full")).expect("it was there");
    assert!(read().expect(0).text().contains("content"));
    let gone = within(Duration::from_secs(30), || left() == (0, 0));
    assert!(gone, "{:?}", left());
}
