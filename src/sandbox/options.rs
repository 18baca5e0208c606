use serde::Deserialize;
use serde::Serialize;

use podbay_event::ByteSize;
use podbay_event::Seconds;
use podbay_guest::auto_run_names::READ_ONLY;
use podbay_wire::keep::FindOrder;
use podbay_wire::message::DiskLimits;

/// How sandboxes are made: the section `[sandbox]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Options {
    /// What sandboxes are made of: `docker`, or `attach` to one that Podbay did not start, such as
    /// compose. `native` is to come.
    pub backend: Backend,
    /// Socket of the sandbox to attach to, as an absolute path; only for the backend `attach`.
    pub socket: Option<String>,
    /// Image that sandboxes are made from; any image works. Default: Podbay's own workspace image.
    pub image: Option<String>,
    /// Processor cores a sandbox may use; fractions are allowed.
    pub cpus: f64,
    /// Memory of a sandbox; swap is never more, and its temporary file systems count.
    pub memory: ByteSize,
    /// Processes and threads at once in a sandbox.
    pub pids: u32,
    /// Files one process may have open.
    pub open_files: u32,
    /// Size of `/dev/shm`, which is in memory; half of `memory` at most.
    pub shm: ByteSize,
    /// Largest file a command may write.
    pub file_size: ByteSize,
    /// By how much the project, `/tmp` and the home folder may grow together in a session, on disk:
    /// at least 4MiB; 0 is no limit.
    pub disk: ByteSize,
    /// How many files it may gain: at least 100; 0 is no limit.
    pub disk_files: u64,
    /// What stays free of the disks that the project, `/tmp` and the home folder lie on: a command
    /// that writes beyond it is ended. 0: nothing.
    pub disk_floor: ByteSize,
    /// Secrets that commands may read, as patterns like those of `.gitignore`; all others that are
    /// found are hidden.
    pub reveal: Vec<String>,
    /// Milliseconds that a project is looked through for secrets before the first command, at most
    /// half of `start_timeout`. A session looks through the rest after that, and gets a sandbox
    /// that hides what it finds there.
    pub look_ms: u64,
    /// Files and folders that programs on your machine run by themselves, as such patterns: in a
    /// live session commands cannot change those that are there, and what you add here waits at
    /// `review apply` until you say yes.
    pub auto_run: Vec<String>,
    /// Where changes go: `live`, into the project as they are made; `review`, pending until they
    /// are accepted, and those of `podbay chat`, which knows no review, as with `turn`; `turn`,
    /// into the project at the end of each turn.
    pub changes: Changes,
    /// The same for chats alone: `turn`; `review`, where you see what a turn changed before any of
    /// it is applied; `live`. Not set: `live` where `changes` says so, else `turn`.
    pub chat_changes: Option<Changes>,
    /// How long the sandbox of `podbay up` stays without anybody using it.
    pub lease: Seconds,
    /// How long a sandbox may take to start.
    pub start_timeout: Seconds,
    /// Between asking a command of `podbay sh` to end and killing it.
    pub grace: Seconds,
    /// How often within `restart_window` a sandbox that ended under us is made anew.
    pub restarts: u32,
    /// The time over which they are counted.
    pub restart_window: Seconds,
    /// Refuses what would only be warned about: a project that belongs to root, an engine with a
    /// known hole that lets a container out, a sandbox that does not see which programs run.
    pub strict: bool,
}

#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// Containers of a Docker engine.
    #[default]
    Docker,
    /// A sandbox that runs already, reached by `sandbox.socket`; no engine is contacted.
    Attach,
    /// Namespaces of our own, without an engine; not built yet.
    Native,
}

/// Which part of its time a first look may spend on folders that are ignored: they hold much, and
/// the sandbox is made meanwhile.
const FOR_IGNORED: u64 = 5;

impl Options {
    /// Returns what the keeper is to look for.
    pub(super) fn find(&self) -> FindOrder {
        let budget_ms = self
            .look_ms
            .min(self.start_timeout.get().saturating_mul(500));
        let (reveal, auto_run) = (self.reveal.clone(), self.auto_run.clone());
        FindOrder {
            reveal,
            auto_run,
            budget_ms,
            ignored_ms: budget_ms / FOR_IGNORED,
            ..FindOrder::default()
        }
    }

    /// Returns what the guest is to watch.
    pub(super) fn disk_limits(&self) -> DiskLimits {
        DiskLimits {
            bytes: self.disk.bytes(),
            files: self.disk_files,
            floor: self.disk_floor.bytes(),
            began: None,
        }
    }
}

/// Where changes go.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Changes {
    /// Into the project as they are made.
    Live,
    /// Pending until the user accepts them.
    #[default]
    Review,
    /// Into the project at the end of each turn.
    Turn,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            backend: Backend::Docker,
            socket: None,
            image: None,
            cpus: 2.0,
            memory: ByteSize::gib(2),
            pids: 512,
            open_files: 4096,
            shm: ByteSize::mib(64),
            file_size: ByteSize::gib(4),
            disk: ByteSize::gib(10),
            disk_files: 1_000_000,
            disk_floor: ByteSize::gib(1),
            reveal: Vec::new(),
            look_ms: 300,
            auto_run: READ_ONLY.map(ToOwned::to_owned).to_vec(),
            changes: Changes::Review,
            chat_changes: None,
            lease: Seconds::minutes(30),
            start_timeout: Seconds::new(30),
            grace: Seconds::new(2),
            restarts: 3,
            restart_window: Seconds::minutes(10),
            strict: false,
        }
    }
}
