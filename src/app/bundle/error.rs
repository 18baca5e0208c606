use std::path::PathBuf;

use thiserror::Error;

use podbay_event::ByteSize;

/// What can be wrong with a bundle, or with the place where one is to be.
#[derive(Debug, Error)]
pub enum Error {
    #[error("cannot {doing} `{}`", path.display())]
    File {
        doing: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("`{}` is there already", path.display())]
    Exists { path: PathBuf },
    #[error("another podbay is writing `{}`", path.display())]
    Busy { path: PathBuf },
    #[error("{problem}")]
    Request { problem: String, hint: &'static str },
    #[error("`{}` is no bundle: {problem}", path.display())]
    NotABundle { path: PathBuf, problem: String },
    #[error("`{}` has format {found}, made by podbay {made_by}; this is podbay {}, which reads format {reads}", path.display(), env!("CARGO_PKG_VERSION"))]
    Version {
        path: PathBuf,
        found: u64,
        made_by: String,
        reads: u64,
    },
    #[error("`{}` was made for {found}, and this machine is {here}", path.display())]
    Architecture {
        path: PathBuf,
        found: String,
        here: &'static str,
    },
    #[error("`{}` is truncated: it has {found} of {expected} bytes", path.display())]
    Truncated {
        path: PathBuf,
        expected: u64,
        found: u64,
    },
    #[error("`{}` is damaged: {problem}", path.display())]
    Damaged { path: PathBuf, problem: String },
    #[error("`{}` is refused: {problem}", path.display())]
    Refused { path: PathBuf, problem: String },
    #[error("these are here already, and others: {}", what.join(", "))]
    Taken { what: Vec<String> },
    #[error("`{}` has {} free, and this needs {}: {} too little", folder.display(), free.rounded(), needed.rounded(), needed.beyond(*free).rounded())]
    NoSpace {
        folder: PathBuf,
        needed: ByteSize,
        free: ByteSize,
    },
    #[error("the engine did not load what it was given: {problem}")]
    NotLoaded { problem: String },
}

impl Error {
    /// Says what a user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::File { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
                "make room on this disk"
            }
            Self::File { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                "check the path"
            }
            Self::File { .. } => "check who may read and write there: `ls -l`",
            Self::Exists { .. } => "--force replaces it",
            Self::Busy { .. } => "wait for it, or give another name",
            Self::Request { hint, .. } => hint,
            Self::NotABundle { .. } => {
                "`podbay images bundle save FILE` makes one; an archive of `docker save` goes to `docker load`"
            }
            Self::Version { .. } => {
                "make it anew with the podbay of this version, or use the podbay that made it"
            }
            Self::Architecture { .. } => "make it on a machine of the same kind",
            Self::Truncated { .. } => "copy it again: a copy or a download was cut short",
            Self::Damaged { .. } => "copy it again; compare `sha256sum` on both sides",
            Self::Refused { .. } => "do not use this file: podbay does not make such bundles",
            Self::Taken { .. } => "--force replaces them",
            Self::NoSpace { .. } => "make room there, or choose another place",
            Self::NotLoaded { .. } => {
                "look at the engine's own log, and try `docker load` with another archive"
            }
        }
    }

    /// Returns whether the user asked for something that cannot be, rather than something having
    /// gone wrong.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Exists { .. } | Self::Request { .. } | Self::Taken { .. }
        )
    }
}
