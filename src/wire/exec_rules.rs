//! Rules about the programs that a call starts. They are sent with the call, as data: the guest
//! parses no shell script.

use serde::Deserialize;
use serde::Serialize;

use super::AskedWrite;
use super::BytesPath;
use super::programs::MAX_ARGUMENTS;

/// Most rules of a call, and most bytes of all their words together.
pub const MAX_RULES: usize = 256;
const MAX_RULE_BYTES: usize = 32 * 1024;

/// Most denied programs that a call reports.
pub const MAX_DENIED: usize = 20;

/// A rule about one program with its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecRule {
    pub effect: ExecEffect,
    /// The program's name and its first arguments, each as alternatives. `*` stands for any
    /// characters of a word; an argument that is only `*` stands for any number of arguments.
    pub words: Vec<Vec<String>>,
    /// Whether more arguments may follow.
    pub more: bool,
    /// Whether options, and arguments such as `+nightly`, may stand between the words.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub options_between: bool,
    /// Arguments that exempt the program, at any position.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unless: Vec<String>,
    #[serde(default)]
    pub scope: ExecScope,
    /// As the user wrote it.
    pub rule: String,
    /// Additional text for the model; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub justification: String,
}

/// What a matching rule does with a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecEffect {
    Deny,
    /// The host is asked, and no answer is a no.
    Ask,
}

/// Which process starts the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecScope {
    /// The command itself: all processes between are shells, or programs that only start others.
    #[default]
    Own,
    /// Any program: also `make`, or a Python script.
    Anywhere,
}

/// A program that was denied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denied {
    pub argv: Vec<BytesPath>,
    /// Whether it has more arguments than are reported.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    pub count: u64,
    pub because: Because,
    /// Whether it was killed after its exec, before it ran.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub killed: bool,
}

/// Why a program was denied.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "because", rename_all = "snake_case")]
pub enum Because {
    /// A rule denies it, or requires an approval that could not be asked for.
    Rule {
        rule: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        justification: String,
    },
    /// It is a file without a name, which no rule can match.
    Unnamed,
    /// Its arguments differed from those that were approved.
    Changed,
    /// A rule requires an approval, which was refused or could not be asked for.
    Refused { rule: String },
    /// It was about to write there, and the approval was refused or could not be asked for. It
    /// continued without the write.
    Write { path: BytesPath },
}

/// Most questions about programs in one call; one is open at a time.
pub const MAX_QUESTIONS: u32 = 64;

/// A program that waits while the host is asked whether it may continue. All of it is the sandbox's
/// claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedProgram {
    pub argv: Vec<BytesPath>,
    /// Whether it has more arguments than are reported; such a program is not asked about.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    pub directory: BytesPath,
    /// The file that would be executed.
    pub file: BytesPath,
    /// The rule that asks; empty where a write does.
    pub rule: String,
    /// The write that it waits for, where it runs already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<AskedWrite>,
}

impl AskedProgram {
    /// Returns whether this exceeds what a guest may ask.
    pub fn is_too_much(&self) -> bool {
        let paths = [
            Some(&self.directory),
            Some(&self.file),
            self.write.as_ref().map(|write| &write.path),
        ];
        let bytes = self
            .argv
            .iter()
            .chain(paths.into_iter().flatten())
            .map(|word| word.as_bytes().len() + 1)
            .sum::<usize>()
            + self.rule.len();
        bytes > 8 * MAX_ARGUMENTS + MAX_RULE_BYTES
    }
}

/// Returns whether these are more rules than a call may have.
pub fn are_too_many(rules: &[ExecRule]) -> bool {
    let bytes = |rule: &ExecRule| {
        let words = rule.words.iter().flatten().chain(&rule.unless);
        words.map(|word| word.len() + 4).sum::<usize>() + rule.rule.len() + rule.justification.len()
    };
    rules.len() > MAX_RULES || rules.iter().map(bytes).sum::<usize>() > MAX_RULE_BYTES
}
