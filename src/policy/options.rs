use serde::Deserialize;
use serde::Serialize;

use super::Autonomy;
use podbay_wire::WriteGate;

/// The section `[policy]` of the configuration: what may be done without asking.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Options {
    /// How much the agent decides by itself. Not set: `ask` in a chat, `auto` in a run; `--mode`
    /// overrides it.
    pub autonomy: Option<Autonomy>,
    /// The same for chats alone. Not set: as `autonomy`.
    pub chat_autonomy: Option<Autonomy>,
    /// Rules that allow, such as `write_file(src/**)`, `bash(cargo test)` or `bash(git commit *)`.
    pub allow: Vec<String>,
    /// Rules that ask in mode ask, even where it would allow; they win over rules that allow.
    pub ask: Vec<String>,
    /// Rules that ask each time, in every mode; where no question is possible, they deny.
    pub gate: Vec<String>,
    /// Rules that deny; a denial always wins.
    pub deny: Vec<String>,
    /// Rules with examples, as tables `[[policy.rules]]`: `decision` (allow, ask, gate or deny),
    /// `rule`, and examples that it must match (`speaks_of`) or not (`not_of`), which are checked
    /// when the settings are loaded. For a rule about commands also `scope` (own or anywhere: also
    /// programs that `make` or a script starts) and a `justification` that is shown to the model.
    pub rules: Vec<RuleEntry>,
    /// In mode ask, files that a command may write without a question, as `.gitignore` patterns
    /// such as `target/` and `__pycache__/`. Protected names still need approval.
    pub unasked_writes: Vec<String>,
}

impl Options {
    /// Returns what is wrong with `unasked_writes`: patterns beyond the limit could not be sent
    /// with a command.
    pub fn invalid_unasked_writes(&self) -> Option<&'static str> {
        let gate = WriteGate {
            unasked: self.unasked_writes.clone(),
        };
        gate.is_too_much().then_some(
            "there are too many patterns: at most 256 and 16 KiB are sent with a command",
        )
    }
}

/// Who starts the program that a rule about commands matches.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RuleScope {
    /// The command itself, also through shells and programs that only start others.
    #[default]
    Own,
    /// Any program: also `make`, or a Python script.
    Anywhere,
}

/// A rule with examples of what it matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RuleEntry {
    pub decision: RuleDecision,
    pub rule: String,
    #[serde(default)]
    pub speaks_of: Vec<String>,
    #[serde(default)]
    pub not_of: Vec<String>,
    /// Who starts the program that the rule matches.
    #[serde(default)]
    pub scope: RuleScope,
    /// The reason given to the model when a program is not run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub justification: String,
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
