//! A real guest in this process, over a stream in memory; its spawner is a process of its own, as
//! in a sandbox.

use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::sync::Mutex;
use std::time::Duration;

use podbay::guest::Setup;
use podbay::guest::Spawner;
use podbay::guest::build_id;
use podbay::guest::serve;
use podbay::guest::spawner_pair;
use podbay::sandbox::link::Error;
use podbay::sandbox::link::Link;
use podbay::wire::Bash;
use podbay::wire::Call;
use podbay::wire::CommandEnded;
use podbay::wire::Exec;
use podbay::wire::Output;
use podbay::wire::message::DiskLimits;
use podbay::wire::message::Facts;
use podbay::wire::message::Stream;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// Bytes between the two ends; small, so that a reader that stops is felt at once.
const IN_FLIGHT: usize = 64 * 1024;

/// Long enough for a busy machine; no test waits for it when all is well.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) struct TestGuest {
    pub(crate) link: Link,
    pub(crate) facts: Facts,
    pub(crate) workspace: TempDir,
    pub(crate) spawner: Child,
    _served: AbortOnDropHandle<()>,
}

impl TestGuest {
    pub(crate) async fn start() -> Self {
        Self::with(&[]).await
    }

    /// Starts one whose image says more of the environment.
    pub(crate) async fn with(environment: &[String]) -> Self {
        Self::in_folder(
            TempDir::new().expect("a folder for the project"),
            environment,
        )
        .await
    }

    /// Starts one in a project that is there.
    pub(crate) async fn in_folder(workspace: TempDir, environment: &[String]) -> Self {
        let (spawner, mut setup) = setup(workspace.path());
        setup
            .environment
            .extend(environment.iter().map(|pair| pair.clone().into_bytes()));
        Self::begin(workspace, spawner, setup).await
    }

    /// Starts one for which the kernel has no landlock.
    pub(crate) async fn without_landlock() -> Self {
        let workspace = TempDir::new().expect("a folder for the project");
        // A filter is a thread's own, and passes to what that thread starts. That on commands says
        // that there is none.
        let start = |mut spawner: Command| {
            let filtered = std::thread::spawn(move || {
                podbay::guest::filter_commands().expect("filtered");
                spawner.spawn().expect("the spawner starts")
            });
            filtered.join().expect("no panic")
        };
        let (spawner, setup) = setup_by(workspace.path(), start);
        Self::begin(workspace, spawner, setup).await
    }

    /// Starts one whose commands have no filter that asks, because a process around them has a
    /// listener already.
    pub(crate) async fn below_a_listener() -> Self {
        let workspace = TempDir::new().expect("a folder for the project");
        let (spawner, setup) = setup_by(workspace.path(), below_listener);
        Self::begin(workspace, spawner, setup).await
    }

    async fn begin(workspace: TempDir, spawner: Child, setup: Setup) -> Self {
        let (ours, theirs) = tokio::io::duplex(IN_FLIGHT);
        let (reader, writer) = tokio::io::split(theirs);
        let served = tokio::spawn(async move {
            // How it ends is what the tests look at from the other side.
            let _ = serve(reader, writer, setup).await;
        });
        let (link, facts) = Link::connect(
            ours,
            &build_id(),
            DiskLimits::default(),
            PATIENCE,
            &CancellationToken::new(),
        )
        .await
        .expect("greets");
        Self {
            link,
            facts,
            workspace,
            spawner,
            _served: AbortOnDropHandle::new(served),
        }
    }

    /// Takes the project away, for another guest to work in.
    pub(crate) fn take_workspace(&mut self) -> TempDir {
        std::mem::replace(
            &mut self.workspace,
            TempDir::new().expect("a folder for nothing"),
        )
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.workspace.path().join(name)
    }

    /// Runs a command and returns how it ended and what it printed.
    pub(crate) async fn bash(&self, bash: Bash) -> (CommandEnded, String) {
        let mut printed = Vec::new();
        let output = self
            .call(Call::Bash(bash), &mut printed)
            .await
            .expect("answers");
        let Output::Command(ended) = output else {
            panic!("{output:?}")
        };
        (ended, String::from_utf8_lossy(&printed).into_owned())
    }

    pub(crate) async fn call(&self, call: Call, printed: &mut Vec<u8>) -> Result<Output, Error> {
        self.link
            .call(
                call,
                |_stream: Stream, data: &[u8]| printed.extend(data),
                &CancellationToken::new(),
                PATIENCE,
            )
            .await
    }
}

impl Drop for TestGuest {
    fn drop(&mut self) {
        self.link.close();
        // It ends by itself when its socket closes; a test must leave nothing behind either way.
        let _ = self.spawner.kill();
        let _ = self.spawner.wait();
    }
}

/// Starts a spawner and returns what a guest is given.
pub(crate) fn setup(workspace: &Path) -> (Child, Setup) {
    setup_by(workspace, |mut spawner| {
        spawner.spawn().expect("the spawner starts")
    })
}

fn setup_by(workspace: &Path, start: impl FnOnce(Command) -> Child) -> (Child, Setup) {
    let (ours, theirs) = spawner_pair().expect("sockets");
    let mut spawner = Command::new(env!("CARGO_BIN_EXE_podbay"));
    spawner
        .args(["guest", "spawner"])
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::null());
    let spawner = start(spawner);
    let environment = [
        "PATH=/usr/local/bin:/usr/bin:/bin",
        "HOME=/tmp",
        "LANG=C.UTF-8",
    ]
    .map(|variable| variable.as_bytes().to_vec());
    let setup = Setup {
        workspace: workspace.to_owned(),
        scratch: workspace.to_owned(),
        environment: environment.to_vec(),
        spawner: Spawner::new(ours).expect("inside a runtime"),
        build: build_id(),
    };
    (spawner, setup)
}

/// Starts a spawner below a filter with a listener, which is asked about a call that no test makes.
#[expect(unsafe_code, reason = "neither libc nor nix has this call")]
fn below_listener(mut spawner: Command) -> Child {
    let step = |code: u32, jf: u8, k: u32| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf,
        k,
    };
    let steps = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        step(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            1,
            libc::SYS_acct as u32,
        ),
        step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_USER_NOTIF),
        step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
    ];
    // A filter is a thread's own, and passes to what that thread starts.
    let filtered = std::thread::spawn(move || {
        nix::sys::prctl::set_no_new_privs().expect("set");
        let filter = libc::sock_fprog {
            len: steps.len() as u16,
            filter: steps.as_ptr().cast_mut(),
        };
        let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
        // SAFETY: the kernel reads the filter and its steps, which outlive the call.
        let listener = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                flags,
                &raw const filter,
            )
        };
        assert!(
            listener >= 0,
            "filtered: {}",
            std::io::Error::last_os_error()
        );
        // The listener stays open for as long as the tests run.
        spawner.spawn().expect("the spawner starts")
    });
    filtered.join().expect("no panic")
}

/// A command with generous limits.
pub(crate) fn bash(command: &str) -> Bash {
    Bash {
        command: command.to_owned(),
        working_directory: None,
        timeout_ms: PATIENCE.as_millis() as u64,
        grace_ms: 200,
        stream_bytes: 1 << 20,
        tail_bytes: 10_000,
        background: false,
        rules: Vec::new(),
        write_gate: None,
    }
}

pub(crate) fn exec(argv: &[&str]) -> Exec {
    Exec {
        argv: argv.iter().map(|&word| word.into()).collect(),
        working_directory: None,
        environment: Vec::new(),
        terminal: None,
        timeout_ms: None,
        grace_ms: 200,
    }
}

/// Waits until no process of the machine has `marker` among its arguments; returns whether that
/// came to be.
pub(crate) async fn vanishes(marker: &str) -> bool {
    for _ in 0..400 {
        if !is_running(marker) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

pub(crate) fn is_running(marker: &str) -> bool {
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    processes
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .any(|line| contains(&line, marker.as_bytes()))
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack
        .windows(needle.len())
        .any(|window| window == needle)
}

/// A number of seconds that no other test and no other run sleeps for: finds a process again by its
/// arguments.
pub(crate) fn marker() -> String {
    static USED: Mutex<u32> = Mutex::new(0);
    let mut used = USED.lock().expect("no test panics while it holds this");
    *used += 1;
    format!("{}{:03}", 1_000_000 + std::process::id(), *used)
}
