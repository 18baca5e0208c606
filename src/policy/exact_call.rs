//! The scope of a lasting answer: one tool, with exactly the arguments that were asked about.
//! Nothing in it is a pattern. What the model wrote is compared literally, so that a star in it
//! never matches anything else.

use serde::Deserialize;
use serde::Serialize;

use super::Action;
use super::parsed_command::ParsedCommand;
use super::paths::folder;
use super::paths::normalized;
use super::paths::paths;
use super::tool::tool;
use podbay_event::Capability;
use podbay_wire::ApplyPatch;
use podbay_wire::ArchiveAction;
use podbay_wire::Call;
use podbay_wire::Git;
use podbay_wire::GitBranch;
use podbay_wire::GitQuery;
use podbay_wire::GitStash;
use podbay_wire::LineOperation;
use podbay_wire::PatchAction;

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
        let Action::Box(call) = action else {
            return None;
        };
        if let Call::Git(Git {
            query: GitQuery::Commit { files, .. },
            ..
        }) = call
            && files.is_empty()
        {
            // Everything that has changed by then.
            return None;
        }
        let mut with = with(call);
        if let Call::Git(git) = call
            && (git.query.file().is_some() || matches!(git.query, GitQuery::Commit { .. }))
        {
            // The paths are those of the files.
            let repository = normalized(&git.path, false)?;
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

fn with(call: &Call) -> Vec<String> {
    let flags: &[(bool, &str)] = match call {
        Call::Bash(bash) => &[(bash.background, "background")],
        Call::ApplyPatch(patch) => return patch_details(patch),
        Call::Git(git) => return git_details(&git.query),
        Call::Glob(glob) => return vec![glob.pattern.clone()],
        Call::Grep(grep) => return vec![grep.pattern.clone()],
        Call::ListDirectory(list) => &[(list.recursive, "recursive")],
        Call::WriteFile(write) => &[(write.append, "append")],
        Call::EditLines(edit) => match edit.operation {
            LineOperation::Insert => &[(true, "insert")],
            LineOperation::Replace => &[(true, "replace")],
            LineOperation::Delete => &[(true, "delete")],
        },
        Call::DeleteFile(delete) => &[(delete.recursive, "recursive")],
        Call::CopyFile(copy) => &[(copy.recursive, "recursive"), (copy.overwrite, "overwrite")],
        Call::MoveFile(moved) => &[(moved.overwrite, "overwrite")],
        Call::Archive(archive) => match archive.action {
            ArchiveAction::List => &[(true, "list")],
            ArchiveAction::Extract { .. } => &[(true, "extract")],
            ArchiveAction::Create { .. } => &[(true, "create")],
        },
        _ => &[],
    };
    flags
        .iter()
        .filter(|(is_set, _)| *is_set)
        .map(|(_, name)| (*name).to_owned())
        .collect()
}

/// The arguments of a git query, word by word.
fn git_details(query: &GitQuery) -> Vec<String> {
    let flag = |is_set: bool, name: &str| is_set.then(|| name.to_owned());
    let stash = |what: &str, index: &u32| vec![what.to_owned(), index.to_string()];
    match query {
        GitQuery::Status => Vec::new(),
        GitQuery::Diff { staged, base, .. } => flag(*staged, "staged")
            .into_iter()
            .chain(base.iter().map(|base| format!("base {base}")))
            .collect(),
        GitQuery::Log { author, .. } => author
            .iter()
            .map(|author| format!("author {author}"))
            .collect(),
        GitQuery::Commit { message, .. } => vec![message.clone()],
        GitQuery::Branch(GitBranch::List) | GitQuery::Stash(GitStash::List) => {
            vec!["list".to_owned()]
        }
        GitQuery::Branch(GitBranch::Create { name }) => vec!["create".to_owned(), name.clone()],
        GitQuery::Branch(GitBranch::Delete { name }) => vec!["delete".to_owned(), name.clone()],
        GitQuery::Checkout { target, create } => flag(*create, "create")
            .into_iter()
            .chain([target.clone()])
            .collect(),
        GitQuery::Stash(GitStash::Push { message }) => std::iter::once("push".to_owned())
            .chain(message.clone())
            .collect(),
        GitQuery::Stash(GitStash::Pop { index }) => stash("pop", index),
        GitQuery::Stash(GitStash::Apply { index }) => stash("apply", index),
        GitQuery::Stash(GitStash::Drop { index }) => stash("drop", index),
    }
}

/// What a patch does to each of its files, in order: together with the paths, which file is changed
/// how.
fn patch_details(patch: &ApplyPatch) -> Vec<String> {
    let done = patch.files.iter().map(|file| match &file.action {
        PatchAction::Add { .. } => "create",
        PatchAction::Delete { .. } => "delete",
        PatchAction::Update { to: Some(_), .. } => "move",
        PatchAction::Update { to: None, .. } => "update",
    });
    patch
        .dry_run
        .then_some("dry_run")
        .into_iter()
        .chain(done)
        .map(ToOwned::to_owned)
        .collect()
}
