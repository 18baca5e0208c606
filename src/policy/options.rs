use serde::Deserialize;
use serde::Serialize;

use super::Autonomy;

/// What may be done without asking: the section `[policy]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Options {
    /// How much the agent decides by itself. Not set: `ask` in a chat, `auto` in a run; `--mode` wins.
    pub autonomy: Option<Autonomy>,
    /// Rules that allow, such as `write_file(src/**)`, `bash(cargo test)` or `bash(git commit *)`.
    pub allow: Vec<String>,
    /// Rules that ask in mode ask, also where it would allow; they win over rules that allow.
    pub ask: Vec<String>,
    /// Rules that want a person's word each time, in every mode; where nobody is asked, they deny.
    pub gate: Vec<String>,
    /// Rules that deny; a denial always wins.
    pub deny: Vec<String>,
    /// Rules with examples, as tables `[[policy.rules]]`: `decision` (allow, ask, gate or deny), `rule`, and examples that it must speak of
    /// (`speaks_of`) or not (`not_of`), which are tried when the settings are read.
    pub rules: Vec<Example>,
}

/// A rule that says what it is meant for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Example {
    pub decision: RuleDecision,
    pub rule: String,
    #[serde(default)]
    pub speaks_of: Vec<String>,
    #[serde(default)]
    pub not_of: Vec<String>,
}

/// What a rule decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RuleDecision {
    Allow,
    Ask,
    Gate,
    Deny,
}
