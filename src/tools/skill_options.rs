use serde::Deserialize;
use serde::Serialize;

/// Skills that the model may read with `use_skill`: the section `[skills]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct SkillOptions {
    /// Whether the model is offered skills.
    pub enabled: bool,
    /// Whether those of the project are among them (`.podbay/skills`, `.claude/skills`).
    pub project: bool,
}

impl Default for SkillOptions {
    fn default() -> Self {
        Self {
            enabled: true,
            project: true,
        }
    }
}
