//! The scope of a lasting answer: one tool, with exactly the arguments that were asked about.
//! Nothing in it is a pattern. What the model wrote is compared literally, so that a star in it
//! never matches anything else.

use std::borrow::Cow;

use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;

use super::Action;
use super::ForeignCall;
use super::HostCall;
use super::parsed_command::ParsedCommand;
use super::paths::folder;
use super::paths::normalized;
use super::paths::paths;
use super::tool::tool;
use podbay_event::Capability;
use podbay_wire::AskedProgram;
use podbay_wire::BytesPath;
use podbay_wire::Call;
use podbay_wire::PathAccess;

/// A longer command is asked about each time.
const COMMAND_MAX: usize = 4096;
const PATHS_MAX: usize = 100;

/// A call with a lasting answer; calls that are the same to the user compare equal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ExactCall {
    pub tool: String,
    /// The exact command, if the tool is a shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The command's working directory, relative to the project; empty is the project itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub directory: String,
    /// Every path that the call names, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Other arguments that make a difference: `recursive`, `overwrite`, `background` and the like;
    /// for a patch what it does to each file, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<String>,
}

impl ExactCall {
    /// Returns the parts of an action that an answer can cover; `None` if it cannot be
    /// distinguished from others with certainty. `here` is the default working directory of
    /// commands.
    pub(super) fn of(action: &Action, here: &str) -> Option<Self> {
        let tool = tool(action).to_owned();
        let call = match action {
            Action::Box(call) => call,
            Action::Host(HostCall::Foreign(foreign)) => return Self::of_foreign(foreign),
            Action::Host(_) => return None,
        };
        let facts = call.facts();
        let mut with: Vec<String> = facts.details?.into_iter().map(Cow::into_owned).collect();
        if let [start, _, ..] = facts.paths.as_slice()
            && start.access == PathAccess::WorkingDirectory
        {
            // The paths are those of the files.
            let repository = normalized(start.path, false)?;
            with.push(format!(
                "of files in {}",
                if repository.is_empty() {
                    "the project"
                } else {
                    &repository
                }
            ));
        }
        if let Call::Bash(bash) = call {
            let command = trimmed(&bash.command);
            let directory = match &bash.working_directory {
                Some(path) => folder(path)?,
                None => here.to_owned(),
            };
            return (command.len() <= COMMAND_MAX).then(|| Self {
                tool,
                command: Some(command.to_owned()),
                directory,
                paths: Vec::new(),
                with,
            });
        }
        let paths: Option<Vec<String>> = paths(action)
            .into_iter()
            .map(|path| normalized(path, false))
            .collect();
        let paths = paths.filter(|paths| (1..=PATHS_MAX).contains(&paths.len()))?;
        Some(Self {
            tool,
            command: None,
            directory: String::new(),
            paths,
            with,
        })
    }

    /// A call of a server's tool: the tool, its arguments and the server's place are all that it is
    /// known by.
    fn of_foreign(call: &ForeignCall) -> Option<Self> {
        let arguments = Value::Object(call.arguments.clone()).to_string();
        (arguments.len() <= COMMAND_MAX).then(|| Self {
            tool: call.name.clone(),
            command: None,
            directory: String::new(),
            paths: Vec::new(),
            // An answer about a server in the sandbox is none about one that was moved to the host.
            with: std::iter::once(arguments)
                .chain(call.on_host.then(|| "on the host".to_owned()))
                .chain(call.with_key.then(|| "with your key".to_owned()))
                .collect(),
        })
    }

    /// All edits by the tools for edits, as an answer of the user's.
    pub(super) fn all_edits() -> Self {
        Self {
            tool: "edits".to_owned(),
            command: None,
            directory: String::new(),
            paths: Vec::new(),
            with: vec!["all of them, but of protected names".to_owned()],
        }
    }

    /// The same command with only these words at its beginning, and any behind them.
    pub(super) fn beginning(self, words: &str) -> Self {
        let any = std::iter::once("with any words behind it".to_owned());
        Self {
            command: Some(words.to_owned()),
            with: any.chain(self.with).collect(),
            ..self
        }
    }

    /// A program that a command starts, with exactly these arguments.
    pub(super) fn of_program(program: &AskedProgram) -> Self {
        let quoted = |word: &BytesPath| format!("'{}'", word.to_text().replace('\'', r"'\''"));
        let words: Vec<String> = program.argv.iter().map(quoted).collect();
        Self {
            tool: "program".to_owned(),
            command: Some(words.join(" ")),
            directory: program.directory.to_text(),
            paths: Vec::new(),
            with: Vec::new(),
        }
    }

    /// Describes the call in words.
    pub fn words(&self) -> String {
        let with = if self.with.is_empty() {
            String::new()
        } else {
            format!(" ({})", self.with.join(", "))
        };
        match &self.command {
            Some(command) if self.directory.is_empty() => {
                format!("{} `{command}`{with}", self.tool)
            }
            Some(command) => format!("{} `{command}` in {}{with}", self.tool, self.directory),
            None if self.paths.iter().all(String::is_empty) => format!("{}{with}", self.tool),
            None => format!("{} {}{with}", self.tool, self.paths.join(", ")),
        }
    }
}

/// Trims what a shell ignores at both ends: only its own blanks, as other spaces belong to a file's
/// name, and none after a backslash, which makes it part of a word.
pub(super) fn trimmed(text: &str) -> &str {
    const BLANKS: [char; 3] = [' ', '\t', '\n'];
    let begun = text.trim_start_matches(BLANKS);
    let ended = begun.trim_end_matches(BLANKS);
    if ended.ends_with('\\') { begun } else { ended }
}

/// Returns why an approval can only hold once; `None` if it may last.
pub(super) fn reason_for_once(
    reading: Option<&ParsedCommand>,
    capabilities: &[Capability],
    exact: Option<&ExactCall>,
) -> Option<String> {
    let each_time = capabilities.iter().find(|capability| {
        matches!(
            capability,
            Capability::BlockedCommand { .. }
                | Capability::GatedGit { .. }
                | Capability::ChangeOutsideSandbox
        )
    });
    if let Some(capability) = each_time {
        return Some(format!(
            "to {} is asked about each time",
            capability.describe()
        ));
    }
    let script = reading.map(|reading| &reading.script);
    if let Some(script) = script.filter(|script| !script.is_known() || script.commands.is_empty()) {
        let what = script.unknown.unwrap_or("no command");
        return Some(format!(
            "the command cannot be parsed completely (it has {what})"
        ));
    }
    match (exact, reading) {
        (Some(_), _) => None,
        (None, Some(_)) => {
            Some("the command is too long to remember, or its directory is unknown".to_owned())
        }
        (None, None) => Some("it names no file by which it could be recognized later".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    #[test]
    fn an_answer_about_a_server_in_the_sandbox_is_none_about_one_on_the_host() {
        let call = |on_host, with_key| {
            let call = ForeignCall {
                name: "mcp__git__log".to_owned(),
                arguments: Map::new(),
                on_host,
                with_key,
            };
            ExactCall::of(&Action::Host(HostCall::Foreign(call)), "").expect("it is known")
        };
        assert_eq!(call(false, false), call(false, false));
        assert_ne!(call(false, false), call(true, false));
        assert_ne!(call(false, false), call(false, true));
        assert_eq!(call(true, false).words(), "mcp__git__log ({}, on the host)");
    }
}
