use std::ffi::OsString;
use std::path::Path;
use std::path::PathBuf;

use toml::Value;

use super::Origin;
use super::ProjectFile;
use super::user_folder;

const SYSTEM_FILE: &str = "/etc/podbay/config.toml";

/// Where settings are read from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Optional, like `user`.
    pub system: Option<PathBuf>,
    pub user: Option<PathBuf>,
    /// What the user's file is to hold: read in place of the file.
    pub user_text: Option<String>,
    pub project: Option<ProjectLayer>,
    /// `--config`; must exist.
    pub file: Option<PathBuf>,
    /// Environment variables; those that are no settings are ignored.
    pub variables: Vec<(String, String)>,
    pub flags: Vec<Flag>,
}

/// The settings file of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectLayer {
    pub file: ProjectFile,
    /// Whether the user trusts it; otherwise it can only restrict.
    pub trusted: bool,
}

/// A setting from the command line.
#[derive(Clone, Debug, PartialEq)]
pub struct Flag {
    /// As typed, such as `--memory`.
    pub name: String,
    /// Such as `sandbox.memory`.
    pub key: String,
    /// Text is used as it is if the key is a string, and parsed as TOML otherwise.
    pub value: Value,
}

impl Flag {
    pub fn new(name: impl Into<String>, key: impl Into<String>, value: impl Into<Value>) -> Self {
        Self {
            name: name.into(),
            key: key.into(),
            value: value.into(),
        }
    }
}

impl Sources {
    /// Returns the files alone: what holds whatever the environment and the command line say.
    #[must_use]
    pub fn of_user(&self) -> Self {
        Self {
            system: self.system.clone(),
            user: self.user.clone(),
            user_text: self.user_text.clone(),
            ..Self::default()
        }
    }

    /// Returns the name of the layer that a value came from.
    pub fn layer_of(&self, origin: &Origin) -> &'static str {
        let Origin::File { path, .. } = origin else {
            return match origin {
                Origin::Default => "default",
                Origin::Environment { .. } => "environment",
                Origin::File { .. } | Origin::Flag { .. } => "flag",
            };
        };
        // A file of another form stands beside the place of the TOML file.
        let is = |known: Option<&Path>| {
            known.is_some_and(|known| known.with_extension("") == path.with_extension(""))
        };
        let project = self.project.as_ref().map(|layer| layer.file.path());
        if project == Some(path) {
            "project"
        } else if self.file.as_deref() == Some(path) {
            "file"
        } else if is(self.user.as_deref()) {
            "user"
        } else if is(self.system.as_deref()) {
            "system"
        } else {
            "file"
        }
    }

    /// Finds the files by environment variables. No `.env` and nothing in a project is read.
    pub fn from_env(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        // A value that is not UTF-8 is no setting of ours.
        let variables: Vec<(String, String)> = variables
            .into_iter()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(_, value)| !value.is_empty())
            .collect();
        let user = user_folder::folder_of(|name| {
            let (_, value) = variables.iter().find(|(key, _)| key == name)?;
            Some(PathBuf::from(value))
        });
        Self {
            system: Some(PathBuf::from(SYSTEM_FILE)),
            user: user.map(|folder| folder.join("config.toml")),
            user_text: None,
            project: None,
            file: None,
            variables,
            flags: Vec::new(),
        }
    }
}
