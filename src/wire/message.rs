//! The messages in both directions, one per frame.
//!
//! Both ends send `Hello` at once and wait for the other's. A host that requests a search in its
//! hello gets `FindResult` next, before anything else happens, or, where it said `Beside`, once at any
//! later time. After that it sends calls, each with an id of its own; the guest answers each with chunks and exactly one `Done`. Bytes of a call are
//! under flow control: a sender may have at most [`WINDOW`] unacknowledged bytes per call and
//! direction (each frame counted by [`cost`]), and gets more by `Credit`. Inputs and chunks have at
//! most [`CHUNK`] bytes; an empty input is the end of the input and costs nothing, an empty chunk
//! is an error.
//!
//! The guest can ask the host one thing: whether a program that waits in the sandbox may continue.
//! No message lets it ask the host to do anything else.

use serde::Deserialize;
use serde::Serialize;

use super::AskedProgram;
use super::BytesPath;
use super::Call;
use super::Output;
use super::keep::FindOrder;
use super::keep::FindResult;

/// Bytes that a sender may have in flight per call and direction before it needs credit.
pub const WINDOW: u32 = 256 * 1024;

/// Most bytes in one chunk.
pub const CHUNK: usize = 48 * 1024;

/// Cost of the smallest frame of bytes: without it, one-byte frames would make the receiver hold
/// far more than [`WINDOW`].
pub const MIN_COST: u32 = 64;

/// Most calls in progress on one stream.
pub const MAX_CALLS: usize = 64;

/// Most mounts below the project that a guest reports.
pub const MAX_MOUNTS: usize = 1024;

/// Returns how much credit a chunk or an input of this many bytes takes, and returns once it is
/// consumed.
pub fn cost(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX).max(MIN_COST)
}

/// Identifies one call on one stream; never reused on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub u32);

/// From the host to the guest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToGuest {
    Hello(HostHello),
    Call {
        id: CallId,
        call: Call,
    },
    /// Bytes for the call's standard input; empty means end of file.
    Input {
        id: CallId,
        data: Data,
    },
    Credit {
        id: CallId,
        bytes: u32,
    },
    /// A new size of the call's terminal.
    Resize {
        id: CallId,
        rows: u16,
        columns: u16,
    },
    Cancel {
        id: CallId,
    },
    /// Whether the program or write that was asked about may continue. It grants nothing else, and
    /// holds for this call alone.
    Answer {
        id: CallId,
        question: u32,
        go_on: bool,
    },
}

/// From the guest to the host, which treats every byte of it as hostile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToHost {
    Hello(GuestHello),
    /// The result of the search that the host's hello asked for.
    Found(FindResult),
    Chunk {
        id: CallId,
        stream: Stream,
        data: Data,
    },
    /// The call consumed this many bytes of its input.
    Credit {
        id: CallId,
        bytes: u32,
    },
    Done {
        id: CallId,
        output: Output,
    },
    /// A program of the call waits until the host says whether it may continue: one at a time, and
    /// the call's clock stops meanwhile.
    Asks {
        id: CallId,
        question: u32,
        program: AskedProgram,
    },
    /// The guest ends the sandbox after this, because something in it could not be cleaned up.
    Closing {
        reason: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostHello {
    pub protocol: u32,
    pub build: String,
    pub disk: DiskLimits,
    /// What to search for in the project.
    #[serde(default)]
    pub find: Option<FindOrder>,
    /// When to do that.
    #[serde(default)]
    pub search: SearchTime,
}

/// When a guest searches the project.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchTime {
    /// Before the first call: asked of the first guest of a sandbox. No command has run there yet,
    /// so its answer can be trusted.
    #[default]
    First,
    /// Beside the calls: asked of a guest that joins a sandbox whose masks are settled. Its answer
    /// only tells the user something.
    Beside,
}

/// How much of the project's disk a session's commands may take; 0 is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskLimits {
    /// By how many bytes the project may grow.
    pub bytes: u64,
    /// How many files it may gain.
    pub files: u64,
    /// How many bytes must stay free for the host.
    pub floor: u64,
    /// What the guest of the session's first sandbox reported; `None` in that sandbox.
    pub began: Option<DiskBegan>,
}

/// Returns how much of a floor applies where so much was free at the start: a nearly full disk must
/// still do for small work.
pub fn kept_free(floor: u64, free: u64) -> u64 {
    floor.min(free / 2)
}

/// Free space of the project's disk when a session began. The guest reports it, and a sandbox that
/// replaces another one receives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskBegan {
    /// Seconds since 1970.
    pub at: u64,
    pub bytes: u64,
    /// Files that can still be created; `None` where the file system has no bound.
    pub files: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestHello {
    pub protocol: u32,
    pub build: String,
    pub facts: Facts,
}

/// Facts about the guest's sandbox, so that the host can report what is not enforced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Facts {
    pub uid: u32,
    pub gid: u32,
    /// 1 or 2; 0 where no cgroup files are readable.
    pub cgroup: u8,
    /// Bytes, processes and thousandths of a core; `None` where there is no limit.
    pub memory_bytes: Option<u64>,
    pub n_processes: Option<u64>,
    pub millicores: Option<u64>,
    /// Device and inode of `/workspace`.
    pub workspace: (u64, u64),
    /// Its user and group, and whether the guest's own user may write in it.
    pub workspace_owner: (u32, u32),
    pub workspace_writable: bool,
    /// Whether an interface besides loopback is up.
    pub networked: bool,
    /// Free space of the disk of `/workspace`.
    pub disk: Option<DiskBegan>,
    /// The names in `/workspace`, sorted, at most 256: shows whether the engine sees the same files
    /// as the host.
    pub workspace_names: Vec<BytesPath>,
    /// Mount points below `/workspace`: paths from there, sorted, at most [`MAX_MOUNTS`].
    #[serde(default)]
    pub mounts: Vec<BytesPath>,
    /// Those that show other files than the project's own, and do not mask one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign: Vec<BytesPath>,
    /// Whether the guest sees the programs that a call starts.
    #[serde(default)]
    pub exec_gate: ExecGate,
    /// Why programs that know nothing of proxies reach no host, where there may be a gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_names: Option<String>,
}

/// Whether the kernel asks the guest about each program that a call starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecGate {
    Works,
    /// A supervisor around the sandbox is asked already, and the kernel asks only one.
    Taken,
    /// The kernel does not support it, or it is unknown.
    #[default]
    Absent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    Stdout,
    Stderr,
    /// The end of an output whose middle was dropped.
    Tail,
}

/// Bytes, base64 in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Data(pub Vec<u8>);

impl Serialize for Data {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use base64::Engine;
        serializer.serialize_str(&base64::engine::general_purpose::STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use base64::Engine;
        let text = std::borrow::Cow::<'_, str>::deserialize(deserializer)?;
        base64::engine::general_purpose::STANDARD
            .decode(text.as_bytes())
            .map(Data)
            .map_err(serde::de::Error::custom)
    }
}
