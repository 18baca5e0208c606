use std::ffi::OsString;
use std::path::PathBuf;

use toml::Value;

const SYSTEM_FILE: &str = "/etc/podbay/config.toml";
/// Where a project would keep settings of its own.
pub const PROJECT_FILE: &str = ".podbay/config.toml";

/// Where settings are read from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// May be missing, as may `user`.
    pub system: Option<PathBuf>,
    pub user: Option<PathBuf>,
    /// `--config`; must be there.
    pub file: Option<PathBuf>,
    /// Variables of the environment; those that concern no setting are passed over.
    pub variables: Vec<(String, String)>,
    pub flags: Vec<Flag>,
}

/// A setting from the command line.
#[derive(Clone, Debug, PartialEq)]
pub struct Flag {
    /// As it was typed, such as `--memory`.
    pub name: String,
    /// Such as `sandbox.memory`.
    pub key: String,
    /// Text is taken as it is where the key wants text, and read as TOML where it wants something else.
    pub value: Value,
}

impl Flag {
    pub fn new(name: impl Into<String>, key: impl Into<String>, value: impl Into<Value>) -> Self {
        Self { name: name.into(), key: key.into(), value: value.into() }
    }
}

impl Sources {
    /// Finds the files by the environment. Nothing else is looked at: no `.env`, and nothing in the project.
    pub fn from_env(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        // A value that is no text is no setting of ours.
        let variables: Vec<(String, String)> = variables
            .into_iter()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(_, value)| !value.is_empty())
            .collect();
        let folder = |name: &str| {
            variables.iter().find(|(key, _)| key == name).map(|(_, value)| PathBuf::from(value)).filter(|path| path.is_absolute())
        };
        let user = folder("XDG_CONFIG_HOME").or_else(|| folder("HOME").map(|home| home.join(".config")));
        Self {
            system: Some(PathBuf::from(SYSTEM_FILE)),
            user: user.map(|folder| folder.join("podbay/config.toml")),
            file: None,
            variables,
            flags: Vec::new(),
        }
    }
}

/// Returns what to say about the project's own settings, given whether it has some.
pub fn project_note(exists: bool) -> Option<String> {
    exists.then(|| {
        format!(
            "the project's `{PROJECT_FILE}` is not read: settings that come with a project could loosen the sandbox; \
             put yours into `~/.config/podbay/config.toml`, or name the file with `--config`"
        )
    })
}
