use serde::Deserialize;
use serde::Serialize;

use super::Autonomy;
use podbay_wire::WriteGate;

/// What may be done without asking: the section `[policy]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Options {
    /// How much the agent decides by itself. Not set: `ask` in a chat, `auto` in a run; `--mode`
    /// wins.
    pub autonomy: Option<Autonomy>,
    /// Rules that allow, such as `write_file(src/**)`, `bash(cargo test)` or `bash(git commit *)`.
    pub allow: Vec<String>,
    /// Rules that ask in mode ask, also where it would allow; they win over rules that allow.
    pub ask: Vec<String>,
    /// Rules that want a person's word each time, in every mode; where nobody is asked, they deny.
    pub gate: Vec<String>,
    /// Rules that deny; a denial always wins.
    pub deny: Vec<String>,
    /// Rules with examples, as tables `[[policy.rules]]`: `decision` (allow, ask, gate or deny),
    /// `rule`, and examples that it must speak of (`speaks_of`) or not (`not_of`), which are tried
    /// when the settings are read. For a rule about commands also `scope` (own or anywhere: also
    /// what `make` or a script starts) and a `justification` that the model is told.
    pub rules: Vec<Example>,
    /// In mode ask, files that a command writes without a question, as patterns of a `.gitignore`
    /// such as `target/` and `__pycache__/`. They open no protected name.
    pub unasked_writes: Vec<String>,
}

impl Options {
    /// Returns what is wrong with `unasked_writes`: what does not go with a command would not hold.
    pub fn too_many_unasked(&self) -> Option<&'static str> {
        let gate = WriteGate {
            unasked: self.unasked_writes.clone(),
        };
        gate.is_too_much().then_some(
            "these are more patterns than go with a command: 256 is the most, and 16 KiB of them",
        )
    }
}

/// By whom a program is started that a rule about commands speaks of.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RuleScope {
    /// By the command itself, through shells and programs that do nothing but start others.
    #[default]
    Own,
    /// By whatever program: also by `make`, or by a script in Python.
    Anywhere,
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
    /// By whom a program is started that the rule speaks of.
    #[serde(default)]
    pub scope: RuleScope,
    /// What the model is told where a program is not let run.
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
