use std::io;
use std::path::PathBuf;

/// Why an operation on the state folder or a session failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("find the state folder: none of PODBAY_HOME, XDG_STATE_HOME and HOME is set")]
    NoHome,
    #[error("use the state folder `{}`: it is {what}", path.display())]
    Unsafe { path: PathBuf, what: String },
    #[error("{action} `{}`", path.display())]
    Io {
        /// The action that failed, such as "open".
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "start the session log: its first record must be `session_started` of version {}, not {got}",
        super::VERSION
    )]
    NotAHeader { got: String },
    #[error("read `{}`: it holds no session{}", path.display(), problem.as_ref().map(|problem| format!(" (line {}: {})", problem.line, problem.what)).unwrap_or_default())]
    NoRecords {
        path: PathBuf,
        /// The first unreadable record.
        problem: Option<super::LogProblem>,
    },
    #[error("resume `{}`: its first record is damaged, so its project is unknown", path.display())]
    Headless { path: PathBuf },
    #[error("read `{}`: its format is version {version}, and this Podbay reads version {}", path.display(), super::VERSION)]
    OtherVersion { path: PathBuf, version: u32 },
    #[error("write the session log `{}`; its records are kept in memory until it can be written", path.display())]
    Unwritten {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("write the session log `{}`: memory for its records is full too, {lost} are lost so far", path.display())]
    Lost { path: PathBuf, lost: u64 },
    #[error("open the session log `{}`: another Podbay{} is writing it", path.display(), pid.map(|pid| format!(" (process {pid})")).unwrap_or_default())]
    Busy {
        path: PathBuf,
        /// `None` where the kernel does not say.
        pid: Option<u32>,
    },
    #[error("open the session log `{}`: it belongs to uid {uid}, and you are uid {me}", path.display())]
    Foreign { path: PathBuf, uid: u32, me: u32 },
    #[error("open the session log `{}`: others may write in it (mode {mode:o})", path.display())]
    Writable { path: PathBuf, mode: u32 },
    #[error("open the session log `{}`: it is a symbolic link, which is not followed", path.display())]
    Linked { path: PathBuf },
    #[error("rewind {wanted} messages of the session `{session}`: {} can be rewound", if *there == 0 { "none".to_owned() } else { there.to_string() })]
    TooFarBack {
        session: String,
        wanted: u32,
        there: usize,
    },
    #[error("name a session `{name}`: {problem}")]
    BadName { name: String, problem: String },
    #[error("name a session `{name}`: {how}, {session}")]
    NameTaken {
        name: String,
        how: &'static str,
        /// The session that has the name.
        session: String,
    },
    #[error("save the memory: {problem}")]
    BadMemory { problem: String },
    #[error("find a session: there is none{}", without(passed_over))]
    NoSession {
        /// Logs that may be sessions and could not be read, each with the reason.
        passed_over: Vec<String>,
    },
    #[error("find a session of `{project}`: there is none{}", without(passed_over))]
    NoSessionHere {
        project: String,
        /// Logs that may be sessions and could not be read, each with the reason.
        passed_over: Vec<String>,
    },
    #[error("find the session `{wanted}`")]
    UnknownSession { wanted: String, near: Vec<String> },
    #[error("find the session `{wanted}`: {} sessions match", matches.len())]
    Ambiguous {
        wanted: String,
        matches: Vec<String>,
    },
    #[error("open the artifact `{id}`: an artifact's name is made of letters, digits, `-` and `_`")]
    BadArtifact { id: String },
    #[error("open the artifact `{id}`: this session has none of that name")]
    NoArtifact { id: String, near: Vec<String> },
    #[error("keep an output of {size} bytes: the artifacts of one session may take {max} bytes")]
    ArtifactTooLarge { size: u64, max: u64 },
}

/// Lists the unreadable logs where no session was found.
fn without(passed_over: &[String]) -> String {
    if passed_over.is_empty() {
        " yet".to_owned()
    } else {
        format!(" that can be read; {}", few(passed_over))
    }
}

/// Names the first few logs that were skipped, and how many more there are.
pub fn few(passed_over: &[String]) -> String {
    const MOST: usize = 3;
    let named = passed_over
        .iter()
        .take(MOST)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join("; ");
    match passed_over.len().saturating_sub(MOST) {
        0 => format!("passed over: {named}"),
        more => format!("passed over: {named}; and {more} more"),
    }
}

impl Error {
    pub(super) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }

    /// Returns whether the session or artifact does not exist, so that a corrected argument is the
    /// remedy.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::TooFarBack { .. }
                | Self::BadName { .. }
                | Self::NameTaken { .. }
                | Self::BadMemory { .. }
                | Self::NoSession { .. }
                | Self::NoSessionHere { .. }
                | Self::UnknownSession { .. }
                | Self::Ambiguous { .. }
                | Self::BadArtifact { .. }
                | Self::NoArtifact { .. }
        )
    }

    /// Returns whether the error is about one session, not about the state folder.
    pub fn is_about_one(&self) -> bool {
        match self {
            Self::NoHome
            | Self::Unsafe { .. }
            | Self::Io { .. }
            | Self::Unwritten { .. }
            | Self::Lost { .. }
            | Self::BadMemory { .. }
            | Self::NotAHeader { .. } => false,
            Self::NoRecords { .. }
            | Self::OtherVersion { .. }
            | Self::Busy { .. }
            | Self::Foreign { .. }
            | Self::Writable { .. }
            | Self::Linked { .. }
            | Self::TooFarBack { .. }
            | Self::BadName { .. }
            | Self::NameTaken { .. }
            | Self::NoSession { .. }
            | Self::Headless { .. }
            | Self::NoSessionHere { .. }
            | Self::UnknownSession { .. }
            | Self::Ambiguous { .. }
            | Self::BadArtifact { .. }
            | Self::NoArtifact { .. }
            | Self::ArtifactTooLarge { .. } => true,
        }
    }

    /// Returns the remedy.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoHome => Some("set PODBAY_HOME to a folder of your own".to_owned()),
            // PODBAY_HOME may name any file by mistake, such as /etc/passwd: do not suggest to move
            // it.
            Self::Unsafe { what, .. } if what == "no folder" => Some("set PODBAY_HOME to a folder of your own".to_owned()),
            Self::Unsafe { path, what } => {
                let mut hint =
                    format!("the state folder must be a real folder that you own; move `{}` away, or set PODBAY_HOME", path.display());
                if what.starts_with("owned by") {
                    hint.push_str(
                        ". In a volume of compose.yaml it is of an earlier PODBAY_UID: `docker compose down -v` removes all volumes, \
                         docs/guides/compose.md says what is lost",
                    );
                }
                Some(hint)
            }
            Self::Io { source, .. } | Self::Unwritten { source, .. } => hint_io(source),
            Self::NotAHeader { .. } | Self::ArtifactTooLarge { .. } | Self::BadArtifact { .. } => None,
            Self::Headless { .. } => Some("`podbay sessions show` shows what is whole in it; start a new session".to_owned()),
            Self::NoRecords { path, .. } => {
                let name = path.file_stem().and_then(|name| name.to_str()).and_then(|name| name.rsplit_once('_'));
                let gone = name.map(|(_, id)| format!("; `podbay sessions rm {id}` removes this one")).unwrap_or_default();
                Some(format!("`podbay sessions list` shows the sessions that can be read{gone}"))
            }
            Self::OtherVersion { version, .. } if *version > super::VERSION => {
                Some("a newer Podbay wrote it: update Podbay".to_owned())
            }
            Self::OtherVersion { path, .. } => Some(format!(
                "a Podbay from before the first release wrote it; remove it: rm '{}'",
                path.display()
            )),
            Self::Lost { .. } => Some("free some space; the run continues, but its log has a gap".to_owned()),
            Self::Foreign { .. } => Some("another user's session cannot be resumed; run Podbay as that user".to_owned()),
            Self::Writable { path, .. } => Some(format!(
                "whoever wrote in it would speak to the model: look at it with `podbay sessions show`, and if it is as you left it, `chmod \
                 600 {}`",
                path.display()
            )),
            Self::Linked { path } => Some(format!(
                "a link may lead to anything, and what is read there would speak to the model: put the log itself in its place, or remove \
                 `{}`",
                path.display()
            )),
            Self::TooFarBack { .. } => {
                Some("`podbay sessions show` shows what was said; compacted messages cannot be rewound".to_owned())
            }
            Self::Busy { .. } => Some("end the other one first, or start a new session".to_owned()),
            Self::NoSession { passed_over } | Self::NoSessionHere { passed_over, .. } if !passed_over.is_empty() => Some(
                "remove files that are not your logs, or update Podbay if a newer version wrote them; `podbay run \"…\"` starts a new session"
                    .to_owned(),
            ),
            Self::NoSession { .. } | Self::NoSessionHere { .. } => Some("`podbay run \"…\"` or `podbay chat` starts one".to_owned()),
            Self::UnknownSession { near, .. } if near.is_empty() => Some("`podbay sessions list` shows them all".to_owned()),
            Self::UnknownSession { near, .. } => Some(format!("did you mean {}?", either(near))),
            Self::Ambiguous { matches, .. } => Some(format!("write more of it: {}", either(matches))),
            Self::NoArtifact { near, .. } if near.is_empty() => Some("it may have been dropped to make room".to_owned()),
            Self::BadName { .. } => Some("give it a short name of letters, digits and spaces".to_owned()),
            Self::BadMemory { .. } => Some("docs/guides/memory.md says what a memory looks like".to_owned()),
            Self::NameTaken { session, .. } => {
                Some(format!("choose another name, or remove that session's: `podbay sessions rename {session} ''`"))
            }
            Self::NoArtifact { near, .. } => Some(format!("the newest are {}", either(near))),
        }
    }
}

fn hint_io(source: &io::Error) -> Option<String> {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Some("the disk is full: free some space, or set PODBAY_HOME".to_owned())
        }
        io::ErrorKind::ReadOnlyFilesystem => Some(
            "the state folder must be writable: set PODBAY_HOME to a folder that is".to_owned(),
        ),
        io::ErrorKind::PermissionDenied => Some(format!(
            "the state folder must be writable for uid {}: give it that folder, or set PODBAY_HOME to one that is; in compose give the \
             folder of PODBAY_MODELS, or `podbay/` in it, to PODBAY_UID",
            nix::unistd::geteuid()
        )),
        _ => None,
    }
}

fn either(names: &[String]) -> String {
    let quoted: Vec<String> = names
        .iter()
        .take(5)
        .map(|name| format!("`{name}`"))
        .collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((_, rest)) if names.len() > 5 => {
            format!("{}, … ({} in all)", rest.join(", "), names.len())
        }
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}
