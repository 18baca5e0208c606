use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

use super::LineError;
use super::link;
use podbay_engine as engine;
use podbay_event::Seconds;
use podbay_wire::BytesPath;

/// What can keep a session from having its sandbox.
#[derive(Debug, Error)]
pub enum Error {
    #[error("the project folder `{}` cannot be used: {problem}", path.display())]
    Project {
        path: PathBuf,
        problem: String,
        hint: Option<String>,
    },
    #[error("another Podbay is at work in `{}`: {}, since {since}", path.display(), Holder(*.pid))]
    Busy {
        path: PathBuf,
        pid: u32,
        since: String,
    },
    #[error("{} is at work on the review `{name}`, since {since}", Holder(*.pid))]
    BusyReview {
        name: String,
        pid: u32,
        since: String,
    },
    #[error("another Podbay is at work in the sandbox at `{}`, since {since}", socket.display())]
    BusySocket { socket: PathBuf, since: String },
    #[error("no answer at the sandbox's socket `{}`: {problem}", socket.display())]
    NotAttached { socket: PathBuf, problem: String },
    #[error("cannot work in the sandbox at `{}`", socket.display())]
    Attach {
        socket: PathBuf,
        #[source]
        source: link::Error,
    },
    #[error("the lock file `{}` cannot be used", path.display())]
    Lock {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("the setting `{key}` cannot be used: {problem}")]
    Setting { key: &'static str, problem: String },
    #[error("the image `{image}` cannot be used: {problem}")]
    Image { image: String, problem: String },
    #[error("the image `{image}` does not exist here")]
    NoImage { image: String },
    #[error("the guest program cannot be brought into the sandbox: {problem}")]
    Guest { problem: String },
    #[error(
        "no sandbox is started, because `--strict` refuses what would only be warned about: {problem}"
    )]
    Strict { problem: String },
    #[error("the sandbox did not start: {problem}")]
    NotStarted { problem: String },
    #[error("cannot start the gateway to the network: {problem}")]
    Gateway { problem: String },
    #[error("the container `{name}` cannot be ended")]
    Left {
        name: String,
        #[source]
        source: engine::Error,
    },
    #[error("the volume `{name}` of a review is still in use")]
    VolumeInUse { name: String },
    #[error("cannot {doing}")]
    Engine {
        doing: String,
        #[source]
        source: engine::Error,
    },
    #[error("cannot talk to the guest in the sandbox")]
    Link(#[source] link::Error),
    /// In the middle of what changes the project.
    #[error("{what} was interrupted, and part of it may be done")]
    Cut {
        what: String,
        /// The command that continues it.
        again: String,
        #[source]
        source: LineError,
    },
    #[error("the keeper, the container that looks after the project, does not work")]
    Keeper {
        #[source]
        source: LineError,
    },
    #[error(
        "`{path}` of the project is not covered in the sandbox: it came, went or was replaced while that started"
    )]
    Uncovered { path: String },
    #[error(
        "{paths} of the project cannot be hidden in the sandbox again: the session moved it away with its folder, and not all places in its copy \
         can be looked at or covered"
    )]
    NotHidden { paths: String },
    #[error("this engine does not see your files: `{}` looks different from inside", path.display())]
    OtherFiles { path: PathBuf },
    #[error("the path of the project, `{}`, does not lead to it any more: at `{}`: {problem}", path.display(), at.display())]
    Moved {
        path: PathBuf,
        at: PathBuf,
        problem: String,
    },
    #[error("how the project is could not be kept before something is changed, so nothing was")]
    NoBase {
        #[source]
        source: Arc<Error>,
    },
    #[error("{reason}. Nothing was started: repeat the call if it is still what you want")]
    Replaced { reason: String },
    #[error("the sandbox ended {count} times within {within}; last because {reason}")]
    KeepsEnding {
        count: u32,
        within: Seconds,
        reason: String,
    },
    #[error("cancelled while the sandbox started")]
    Cancelled,
}

/// Who holds a lock; 0 is one who has not said so yet.
struct Holder(u32);

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("a process that has only just begun"),
            pid => write!(f, "process {pid}"),
        }
    }
}

impl Error {
    pub(super) fn engine(doing: &str) -> impl FnOnce(engine::Error) -> Self + use<> {
        let doing = doing.to_owned();
        move |source| match source {
            engine::Error::Cancelled { .. } => Self::Cancelled,
            source => Self::Engine { doing, source },
        }
    }

    pub(super) fn lost_from_view(paths: &[BytesPath]) -> Self {
        Self::NotHidden {
            paths: paths
                .iter()
                .map(|path| format!("`{path}`"))
                .collect::<Vec<_>>()
                .join(", "),
        }
    }

    pub(super) fn left(name: &str) -> impl FnOnce(engine::Error) -> Self + use<> {
        let name = name.to_owned();
        move |source| Self::Left { name, source }
    }

    /// Names what is cut off where a keeper was interrupted that changes the project; `again`: the
    /// command that continues it.
    pub(super) fn cut(what: &str, again: &str) -> impl FnOnce(Self) -> Self + use<> {
        let (what, again) = (what.to_owned(), again.to_owned());
        move |error| match error {
            Self::Cancelled => Self::Cut {
                what,
                again,
                source: LineError::Cancelled,
            },
            Self::Keeper {
                source:
                    source @ (LineError::Ended { .. } | LineError::Broken(_) | LineError::Late { .. }),
            } => Self::Cut {
                what,
                again,
                source,
            },
            error => error,
        }
    }

    /// Returns whether it is about a change of the project that has begun.
    pub fn is_cut(&self) -> bool {
        matches!(self, Self::Cut { .. })
    }

    /// Returns whether somebody wanted it to end.
    pub fn is_cancelled(&self) -> bool {
        matches!(
            self,
            Self::Cancelled
                | Self::Cut {
                    source: LineError::Cancelled,
                    ..
                }
                | Self::Link(link::Error::Cancelled { .. })
        )
    }

    /// Says what a user can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Project { hint, .. } => hint.clone(),
            Self::Busy { pid: 0, .. } | Self::BusyReview { pid: 0, .. } => Some("wait for it: it has only just begun".to_owned()),
            Self::Busy { pid, .. } => Some(format!("wait for it or end it (`kill {pid}`); `podbay sh` and `podbay call` can join the sandbox of `podbay up`")),
            Self::BusySocket { .. } => {
                Some("wait for it or end it (`docker ps` shows it); `podbay sh` and `podbay call` work beside it".to_owned())
            }
            Self::BusyReview { pid, .. } => Some(format!("wait for it or end it (`kill {pid}`)")),
            Self::NotAttached { .. } => {
                Some("start it: `docker compose up -d`; `docker compose ps` shows whether the workspace is up".to_owned())
            }
            Self::Attach { source: link::Error::Build { .. } | link::Error::Protocol { .. }, .. } => {
                Some("it was started by another version of Podbay: `docker compose up -d --force-recreate workspace`".to_owned())
            }
            Self::Lock { .. } => Some("check that the state folder is yours and on a local disk; PODBAY_HOME names another".to_owned()),
            Self::Image { .. } => Some("choose another image with --image or `sandbox.image`".to_owned()),
            Self::NoImage { .. } => Some("check the name with `docker images`, or run `podbay images build` for Podbay's own".to_owned()),
            Self::Guest { .. } => Some("build Podbay as a static program: `cargo build --release` in its own folder does".to_owned()),
            Self::Strict { .. } => Some("`podbay doctor` says more; without --strict (`sandbox.strict`) it is a warning".to_owned()),
            Self::NotStarted { .. } => Some("`podbay sh -- true` shows whether a sandbox starts at all; `docker events` shows what the engine did".to_owned()),
            Self::Cut { again, .. } => Some(format!(
                "`{again}` finishes it; until then each file is the old or the new one, but that what turns from a file into a folder, or back, may be \
                 neither where the file system cannot let the two change places"
            )),
            Self::Keeper { .. } => Some("no command runs before it has looked for secrets; `podbay doctor` tries what a sandbox needs".to_owned()),
            Self::Uncovered { .. } => Some("try again when nothing else changes that file".to_owned()),
            Self::NotHidden { .. } => {
                Some("`podbay review diff` shows what the session changed; apply what you like of it, or discard it, and begin anew".to_owned())
            }
            Self::OtherFiles { .. } => {
                Some("the engine runs on another machine or in a virtual machine that does not share this folder; share it there or use a local engine".to_owned())
            }
            Self::Moved { .. } => Some("find out who moved or replaced that folder; then name the project by the path that it has now: -C DIR".to_owned()),
            Self::KeepsEnding { .. } => Some("a command may be ending it; more memory (`--memory`) or processes (`--pids`) may help".to_owned()),
            Self::Left { name, .. } => Some(engine::how_to_remove(name)),
            Self::VolumeInUse { name } => Some(format!("`docker ps --all --filter volume={name}` shows who uses it; try again then")),
            Self::Engine { source, .. } => source.hint(),
            Self::NoBase { source } => source.hint(),
            Self::Setting { key: "sandbox.socket", .. } => {
                Some("name the workspace's socket: docs/guides/compose.md says which; `podbay config` says where the value comes from".to_owned())
            }
            Self::Setting { .. } => {
                Some("give it another value, or none, for the default: docs/configuration.md lists them; `podbay config` says where it comes from".to_owned())
            }
            Self::Gateway { .. } => Some("`--network none` does without it; `docker events` shows what the engine did".to_owned()),
            Self::Attach { .. } | Self::Link(_) | Self::Replaced { .. } | Self::Cancelled => None,
        }
    }

    /// Returns whether the user asked for something that cannot be, rather than something having
    /// gone wrong.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Project { .. } | Self::Setting { .. })
    }
}
