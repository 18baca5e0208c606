use serde::Deserialize;
use serde::Serialize;

/// How many tools are listed in the model's requests.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ToolSet {
    /// For small models and small windows.
    Small,
    Standard,
    Full,
}
