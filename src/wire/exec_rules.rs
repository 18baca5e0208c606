//! Rules about the programs that a call starts. They go with the call, as data: whoever keeps them
//! reads no text of a shell.

use serde::Deserialize;
use serde::Serialize;

use super::AskedWrite;
use super::BytesPath;
use super::programs::MAX_ARGUMENTS;

/// Most rules that go with a call, and most bytes of all their words together.
pub const MAX_RULES: usize = 256;
const MAX_RULE_BYTES: usize = 32 * 1024;

/// Most denied programs of a call that are told.
pub const MAX_DENIED: usize = 20;

/// A rule about one program with its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecRule {
    pub effect: ExecEffect,
    /// The program's name and its first arguments, each by what it may be. `*` stands for any
    /// characters of a word; an argument that is `*` alone stands for any number of arguments.
    pub words: Vec<Vec<String>>,
    /// Whether more arguments may follow.
    pub more: bool,
    /// Whether options may stand between the words, and `+nightly` and the like.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub options_between: bool,
    /// Arguments with which it is not meant, wherever they stand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unless: Vec<String>,
    #[serde(default)]
    pub scope: ExecScope,
    /// As the person wrote it.
    pub rule: String,
    /// What the model is told besides; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub justification: String,
}

/// What becomes of a program that a rule speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecEffect {
    Deny,
    /// The host is asked, and no answer is a no.
    Ask,
}

/// By whom the program is started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecScope {
    /// By the command itself: all that stand between are shells, or programs that do nothing but
    /// start others.
    #[default]
    Own,
    /// By whatever program: also by `make`, or in a script of Python's.
    Anywhere,
}

/// A program that was not let run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denied {
    pub argv: Vec<BytesPath>,
    /// Whether its arguments go on behind what is told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    pub count: u64,
    pub because: Because,
    /// Whether it was ended when it stood there already, before it began.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub killed: bool,
}

/// Why a program was not let run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "because", rename_all = "snake_case")]
pub enum Because {
    /// A rule denies it, or wants a word that nobody gave.
    Rule {
        rule: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        justification: String,
    },
    /// It lies in no file that has a name, so that no rule can know it.
    Unnamed,
    /// Its arguments were others than those that were allowed.
    Changed,
    /// A rule wants a person's word for it, and that was a no, or nobody could be asked.
    Refused { rule: String },
    /// It was about to write there, and a person said no, or nobody could be asked. It went on
    /// without.
    Write { path: BytesPath },
}

/// Most questions about programs in one call; one is open at a time.
pub const MAX_QUESTIONS: u32 = 64;

/// A program that waits while the host is asked whether it may go on. All of it is the sandbox's
/// word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedProgram {
    pub argv: Vec<BytesPath>,
    /// Whether its arguments go on behind what is told; such a one is not asked about.
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
    /// Returns whether this is more than a guest may ask.
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

/// Returns whether these are more rules than may go with a call.
pub fn are_too_many(rules: &[ExecRule]) -> bool {
    let bytes = |rule: &ExecRule| {
        let words = rule.words.iter().flatten().chain(&rule.unless);
        words.map(|word| word.len() + 4).sum::<usize>() + rule.rule.len() + rule.justification.len()
    };
    rules.len() > MAX_RULES || rules.iter().map(bytes).sum::<usize>() > MAX_RULE_BYTES
}
