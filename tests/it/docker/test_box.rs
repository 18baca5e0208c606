//! A project whose sandboxes a test looks at, and the engine's own command line to look with.

use std::ops::Deref;
use std::process::Command;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::OnceLock;
use std::sync::PoisonError;
use std::time::Duration;

use crate::support::TestEnv;
use crate::support::test_env::Done;
use crate::support::test_env::run;
use crate::support::test_env::start;
use crate::support::test_env::within;

pub(super) struct TestBox(TestEnv);

impl Deref for TestBox {
    type Target = TestEnv;

    fn deref(&self) -> &TestEnv {
        &self.0
    }
}

impl TestBox {
    /// Makes a project; `None`, and a printed line, where the user left these tests out.
    pub(super) fn new() -> Option<Self> {
        static READY: OnceLock<()> = OnceLock::new();
        if super::left_out() {
            return None;
        }
        // One test builds what is missing, the others wait for it: image, guest volume.
        READY.get_or_init(|| {
            let env = TestBox(TestEnv::new());
            let built = build_image(&env, "podbay/workspace");
            assert_eq!(
                built.code, 0,
                "a container engine is needed, or PODBAY_TEST_DOCKER=0: {}",
                built.stderr
            );
            let begun = run(&mut env.here(&["sh", "--", "true"]));
            assert_eq!(begun.code, 0, "{}", begun.stderr);
        });
        Some(Self(TestEnv::new()))
    }

    /// Returns the ids of this project's containers, running or not.
    pub(super) fn containers(&self) -> Vec<String> {
        let filter = format!("label=dev.podbay.project={}", self.key());
        let listed = docker(&["ps", "--all", "--quiet", "--no-trunc", "--filter", &filter]);
        listed.lines().map(str::to_owned).collect()
    }

    /// Returns the ids of those in which commands run, or ran.
    pub(super) fn boxes(&self) -> Vec<String> {
        self.listed(true, runs_commands)
    }

    /// Returns the ids of those in which commands run now.
    pub(super) fn running_boxes(&self) -> Vec<String> {
        self.listed(false, runs_commands)
    }

    /// Has controllers join the sandboxes of `podbay up` by the engine from now on: there is no folder
    /// for their sockets.
    pub(super) fn join_by_engine(&self) {
        let folder = self.state().join("joins");
        for entry in std::fs::read_dir(folder).expect("listed") {
            std::fs::remove_dir_all(entry.expect("listed").path()).expect("removed");
        }
    }

    /// Returns the id of the only container in which its commands run, once that does.
    #[track_caller]
    pub(super) fn container(&self) -> String {
        let mut found = Vec::new();
        let ran = within(Duration::from_secs(30), || {
            found = self.listed(false, runs_commands);
            !found.is_empty()
        });
        assert!(ran && found.len() == 1, "{found:?}");
        found.remove(0)
    }

    /// Returns the id of the only keeper, once it runs.
    #[track_caller]
    pub(super) fn keeper(&self) -> String {
        let mut found = Vec::new();
        let ran = within(Duration::from_secs(30), || {
            // One that looks after git comes and goes.
            found = self.listed(false, |name| {
                name.starts_with("podbay-keeper-") && !name.starts_with("podbay-keeper-git-")
            });
            !found.is_empty()
        });
        assert!(ran && found.len() == 1, "{found:?}");
        found.remove(0)
    }

    fn listed(&self, also_ended: bool, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
        let filter = format!("label=dev.podbay.project={}", self.key());
        let all = format!("--all={also_ended}");
        let listed = docker(&[
            "ps",
            &all,
            "--no-trunc",
            "--filter",
            &filter,
            "--format",
            "{{.ID}} {{.Names}}",
        ]);
        listed
            .lines()
            .filter_map(|line| line.split_once(' '))
            .filter(|(_, name)| is_wanted(name))
            .map(|(id, _)| id.to_owned())
            .collect()
    }

    /// Panics if a container of this project stays.
    #[track_caller]
    pub(super) fn assert_no_container(&self) {
        let gone = within(Duration::from_secs(20), || self.containers().is_empty());
        assert!(gone, "left over: {:?}", self.containers());
        let gone = within(Duration::from_secs(20), || self.scratch().is_empty());
        assert!(gone, "left over: {:?}", self.scratch());
    }

    /// Returns the volumes with temporary files of its sandboxes.
    pub(super) fn scratch(&self) -> Vec<String> {
        let project = format!("label=dev.podbay.project={}", self.key());
        let of_role = |role: &str| {
            let role = format!("label=dev.podbay.role={role}");
            docker(&[
                "volume", "ls", "--quiet", "--filter", &project, "--filter", &role,
            ])
        };
        let listed = ["workspace", "environment"].map(of_role).concat();
        listed.lines().map(str::to_owned).collect()
    }

    /// Waits until the project holds this file: what a command makes to say that it has begun.
    #[track_caller]
    pub(super) fn wait_for(&self, name: &str) {
        assert!(
            within(Duration::from_secs(30), || self.path(name).exists()),
            "{name} did not appear"
        );
    }
}

/// Returns whether the container of this name is one in which commands run.
fn runs_commands(name: &str) -> bool {
    !["podbay-keeper-", "podbay-gateway-", "podbay-sibling-"]
        .iter()
        .any(|beside| name.starts_with(beside))
}

impl Drop for TestBox {
    fn drop(&mut self) {
        for id in self.containers() {
            let _ = Command::new("docker")
                .args(["rm", "--force", "--volumes", &id])
                .output();
        }
        let filter = format!("label=dev.podbay.project={}", self.key());
        let volumes = Command::new("docker")
            .args(["volume", "ls", "--quiet", "--filter", &filter])
            .output();
        for volume in volumes
            .map(|found| String::from_utf8_lossy(&found.stdout).into_owned())
            .unwrap_or_default()
            .lines()
        {
            let _ = Command::new("docker")
                .args(["volume", "rm", volume])
                .output();
        }
    }
}

/// Builds one of our images, and its base, unless they are there. On a new machine that takes
/// minutes, so it has a patience of its own.
#[track_caller]
pub(super) fn build_image(env: &TestEnv, name: &str) -> Done {
    start(&mut env.podbay(&["images", "build", "--install", name]))
        .wait_within(Duration::from_mins(15))
}

/// Returns the command lines of what runs in a container; nothing once that is gone.
pub(super) fn processes(container: &str) -> String {
    let mut command = Command::new("docker");
    let listed = command.args(["top", container, "-eo", "pid,args"]).output();
    listed.map_or_else(
        |_| String::new(),
        |listed| String::from_utf8_lossy(&listed.stdout).into_owned(),
    )
}

/// Runs the engine's own command line and returns what it prints.
#[track_caller]
pub(super) fn docker(arguments: &[&str]) -> String {
    let done = Command::new("docker")
        .args(arguments)
        .output()
        .expect("the `docker` command");
    assert!(
        done.status.success(),
        "docker {arguments:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// `podbay gc` looks at the whole engine: tests that run it, or count on its not running, take
/// turns.
pub(super) fn alone_with_gc() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
