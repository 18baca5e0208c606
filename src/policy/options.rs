use serde::Deserialize;
use serde::Serialize;

/// What may be done without asking: the section `[policy]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Options {
    /// Rules that allow, such as `write_file(src/**)` or `bash(cargo test)`.
    pub allow: Vec<String>,
    /// Rules that deny; a denial always wins.
    pub deny: Vec<String>,
}
