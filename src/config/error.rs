use std::io;
use std::path::PathBuf;

use super::Origin;
use super::document::is_other_form;

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("read the configuration file `{}`", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("read the configuration file `{}`: line {line}: {what}", path.display())]
    Syntax {
        path: PathBuf,
        line: usize,
        what: String,
    },
    #[error("write the settings file `{}`", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("`{}` is YAML or JSON, and only TOML is edited by key", path.display())]
    OtherForm { path: PathBuf },
    #[error("settings stand in `{}` and in `{}`", first.display(), second.display())]
    TwoForms { first: PathBuf, second: PathBuf },
    #[error("{origin}: `{key}`: {what}")]
    Value {
        origin: Origin,
        key: String,
        what: String,
    },
    #[error("{origin}: there is no setting `{key}`")]
    UnknownKey {
        origin: Origin,
        key: String,
        near: Option<String>,
    },
    #[error("read the project's settings file `{}`: {problem}", path.display())]
    Project { path: PathBuf, problem: String },
    #[error("{doing} the record of what is trusted, `{}`", path.display())]
    Trust {
        doing: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{doing} the record of lasting answers, `{}`", path.display())]
    Answers {
        doing: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the record of lasting answers, `{}`, is damaged", path.display())]
    DamagedAnswers {
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
    #[error("there are {most} lasting answers for this project already")]
    TooManyAnswers { most: usize },
    #[error("{origin}: `{key}` looks like a secret, and a secret does not belong there")]
    Secret { origin: Origin, key: String },
}

impl Error {
    /// Returns whether only a required key is missing, which another layer may have.
    pub(super) fn is_half(&self) -> bool {
        matches!(self, Self::Value { what, .. } if what.ends_with("` is missing"))
    }

    /// Returns the remedy.
    pub fn hint(&self) -> String {
        match self {
            Self::Read { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                "the file does not exist: check the path given to `--config`".to_owned()
            }
            Self::Read { .. } => "check the file's path and permissions, or name another one with `--config`".to_owned(),
            Self::Project { .. } => "a project's settings must be a regular text file: move this one away, or replace it".to_owned(),
            Self::DamagedAnswers { .. } => {
                "correct the file, or move it away, which forgets its answers; it is not overwritten".to_owned()
            }
            Self::TooManyAnswers { .. } => "remove some with `podbay config answers --forget N`, or write a rule: `[policy] allow`".to_owned(),
            Self::Trust { .. } | Self::Answers { .. } => "check the owner, the mode and the free space of the state folder: `podbay doctor`".to_owned(),
            Self::Write { .. } => "check the owner, the mode and the free space of its folder; nothing was changed".to_owned(),
            Self::OtherForm { .. } => "`podbay config edit` opens it in your editor, and checks it before it is written".to_owned(),
            Self::TwoForms { .. } => {
                "keep one of them: which one counts is not guessed".to_owned()
            }
            Self::Syntax { path, .. } if is_other_form(path) => {
                "the file is YAML or JSON: sections, and in them keys with their values".to_owned()
            }
            Self::Syntax { .. } => "the file is TOML: `[section]`, then `key = value`; text stands in double quotes".to_owned(),
            Self::Value { .. } => "docs/configuration.md lists every key with its default and its meaning".to_owned(),
            Self::UnknownKey { near: Some(near), .. } => format!("did you mean `{near}`?"),
            Self::UnknownKey { .. } => "docs/configuration.md lists every key".to_owned(),
            Self::Secret { .. } => "put the key into an environment variable and name it with `--api-key-env VAR` (or `llm.api_key_env`), or put it into a file \
                 of mode 0600 and name that with `llm.api_key_file`"
                    .to_owned(),
        }
    }
}
