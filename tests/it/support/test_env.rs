//! A user's machine in miniature: a home, a state folder and a project of their own, and the
//! program as they would run it.

use std::io::ErrorKind;
use std::io::Read;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::thread::JoinHandle;
use std::time::Duration;
use std::time::Instant;

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use super::guest::PATIENCE;
use super::scripted_model::Running;

/// Returns whom test projects belong to: an ordinary user, also where root runs the tests. One test
/// covers root.
pub(crate) fn owner() -> (u32, u32) {
    let (uid, gid) = (nix::unistd::geteuid(), nix::unistd::getegid());
    if uid.is_root() {
        (1000, 1000)
    } else {
        (uid.as_raw(), gid.as_raw())
    }
}

/// Returns whether this is root, and says on the screen what is left out if it is not.
pub(crate) fn is_root(without: &str) -> bool {
    let is_root = nix::unistd::geteuid().is_root();
    if !is_root {
        // Not by a macro: the harness keeps to itself what a test that passes prints that way.
        drop(
            std::io::stderr().write_all(
                format!("left out, because only root can do it: {without}\n").as_bytes(),
            ),
        );
    }
    is_root
}

/// Variables of the tests' own surroundings that say where the engine is.
const ENGINE: [&str; 4] = [
    "DOCKER_HOST",
    "DOCKER_TLS_VERIFY",
    "DOCKER_CERT_PATH",
    "XDG_RUNTIME_DIR",
];

pub(crate) struct TestEnv {
    folder: TempDir,
}

/// How one run of the program ended.
#[derive(Debug)]
pub(crate) struct Done {
    /// 128 and the signal's number where a signal ended it.
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

/// The program under way.
pub(crate) struct Started {
    child: Child,
    stdout: JoinHandle<Vec<u8>>,
    stderr: JoinHandle<Vec<u8>>,
}

impl TestEnv {
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("podbay-test-")
            .tempdir()
            .expect("a folder");
        // Another user must get at what is theirs in it.
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))
            .expect("ours");
        let env = Self { folder };
        for path in [env.home(), env.project()] {
            std::fs::create_dir(&path).expect("made");
        }
        TestEnv::give(&env.project());
        env
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// Returns a path beside home, state and project.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.project().join(name)
    }

    /// Puts a file into the project, with its folders.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let mut path = self.project();
        for part in Path::new(name).parent().into_iter().flatten() {
            path.push(part);
            if !path.exists() {
                std::fs::create_dir(&path).expect("made");
                Self::give(&path);
            }
        }
        let path = self.path(name);
        std::fs::write(&path, content).expect("written");
        Self::give(&path);
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Gives a path to the project's owner.
    pub(crate) fn give(path: &Path) {
        let (uid, gid) = owner();
        std::os::unix::fs::lchown(path, Some(uid), Some(gid))
            .expect("root may, and others give what is theirs");
    }

    /// Returns the program with the test's surroundings and nothing else.
    pub(crate) fn podbay(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_podbay"));
        self.surround(&mut command);
        command.args(arguments);
        command
    }

    /// Returns a command of the program as it is to be run by whom the project belongs to, where
    /// this is root, who passes over modes. The program is copied to where that user gets at it.
    pub(crate) fn by_owner(&self, command: &Command) -> Command {
        let program = self.beside("podbay");
        if !program.exists() {
            std::fs::copy(env!("CARGO_BIN_EXE_podbay"), &program).expect("copied");
        }
        let mut own = Command::new(program);
        self.surround(&mut own);
        own.args(command.get_args());
        own.envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        if nix::unistd::geteuid().is_root() {
            own.uid(owner().0).gid(owner().1);
        }
        own
    }

    /// Gives a command the test's surroundings and nothing else.
    pub(crate) fn surround(&self, command: &mut Command) {
        command
            .env_clear()
            .env("HOME", self.home())
            .env("PODBAY_HOME", self.state())
            .env("PATH", "/usr/local/bin:/usr/bin:/bin");
        // Most tests look at what was changed; those about reviews say so.
        command.env("PODBAY_SANDBOX_CHANGES", "live");
        command.envs(
            ENGINE
                .iter()
                .filter_map(|&name| Some((name, std::env::var_os(name)?))),
        );
        command.current_dir(self.folder.path()).stdin(Stdio::null());
    }

    /// Returns the command with `-C PROJECT` behind its first word.
    pub(crate) fn here(&self, arguments: &[&str]) -> Command {
        let mut command = self.podbay(&arguments[..1]);
        command.arg("-C").arg(self.project()).args(&arguments[1..]);
        command
    }

    /// Returns `run` in the project, with a scripted model and a JSON result.
    pub(crate) fn task(&self, model: &Running, arguments: &[&str]) -> Command {
        let mut command = self.here(&[
            "run",
            "--output",
            "json",
            "--model",
            "scripted",
            "--endpoint",
        ]);
        command.arg(model.endpoint()).args(arguments);
        command
    }

    /// Returns what containers of this project carry in their label.
    pub(crate) fn key(&self) -> String {
        let facts = std::fs::metadata(self.project()).expect("the project");
        format!("{}-{}", facts.dev(), facts.ino())
    }
}

/// Runs a command to its end.
pub(crate) fn run(command: &mut Command) -> Done {
    start(command).wait()
}

/// Starts a command whose output is read while it runs.
pub(crate) fn start(command: &mut Command) -> Started {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    // What another test forks in the moment in which this one writes a program holds it open for
    // writing until it is itself replaced.
    let begun = Instant::now();
    let mut child = loop {
        match command.spawn() {
            Err(error)
                if error.kind() == ErrorKind::ExecutableFileBusy && begun.elapsed() < PATIENCE =>
            {
                std::thread::sleep(Duration::from_millis(10));
            }
            other => break other.expect("starts"),
        }
    };
    let stdout = drain(child.stdout.take().expect("a pipe"));
    let stderr = drain(child.stderr.take().expect("a pipe"));
    Started {
        child,
        stdout,
        stderr,
    }
}

fn drain(mut from: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).expect("a pipe can be read");
        bytes
    })
}

impl Started {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        nix::sys::signal::kill(Pid::from_raw(self.child.id() as i32), signal)
            .expect("it still runs");
    }

    /// Feeds the input, given `Stdio::piped()`, and ends it.
    pub(crate) fn feed(&mut self, bytes: Vec<u8>) {
        let mut stdin = self.child.stdin.take().expect("a pipe");
        std::thread::spawn(move || {
            // A command that reads only some of it is a case of its own.
            let _ = stdin.write_all(&bytes);
        });
    }

    /// Waits for its end; one that does not come fails the test.
    #[track_caller]
    pub(crate) fn wait(self) -> Done {
        self.wait_within(PATIENCE)
    }

    /// Like [`Started::wait`], for what takes its time on a machine that has other things to do.
    #[track_caller]
    pub(crate) fn wait_within(mut self, time: Duration) -> Done {
        use std::os::unix::process::ExitStatusExt;
        let mut status = None;
        let ended = within(time, || {
            status = self.child.try_wait().expect("our own child");
            status.is_some()
        });
        if !ended {
            let _ = self.child.kill();
        }
        let stdout = self.stdout.join().expect("read");
        let stderr = String::from_utf8_lossy(&self.stderr.join().expect("read")).into_owned();
        let Some(status) = status else {
            panic!(
                "it did not end: {}\n{stderr}",
                String::from_utf8_lossy(&stdout)
            )
        };
        Done {
            code: status
                .code()
                .unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
            stdout,
            stderr,
        }
    }
}

impl Done {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}\n{}", self.text(), self.stderr))
    }

    /// Panics unless it ended with this code.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}\n{}", self.text(), self.stderr);
        self
    }

    /// Panics unless the error stream holds all these words.
    #[track_caller]
    pub(crate) fn says(self, words: &[&str]) -> Self {
        for word in words {
            assert!(
                self.stderr.contains(word),
                "`{word}` is missing: {}",
                self.stderr
            );
        }
        self
    }
}

/// Waits until something is so; returns whether it came to be.
pub(crate) fn until(what: impl FnMut() -> bool) -> bool {
    within(PATIENCE, what)
}

pub(crate) fn within(time: Duration, mut what: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + time;
    loop {
        if what() {
            return true;
        }
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
