//! What a person's answer speaks of when it holds for more than one call: one tool, with exactly
//! what was asked about.
//!
//! Nothing in it is a pattern. What the model wrote is compared letter by letter, so that no star
//! in it ever stands for anything else.

use serde::Deserialize;
use serde::Serialize;

use super::Action;
use super::paths::folder;
use super::paths::paths;
use super::paths::plain;
use super::reading::Reading;
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

/// A command that is longer is read and answered each time.
const COMMAND_MAX: usize = 4096;
const PATHS_MAX: usize = 100;

/// A call that a person gave a lasting answer to; equal for calls that are the same to them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Exact {
    pub tool: String,
    /// The whole command, to the letter, where the tool is a shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The folder that the command runs in, from the project's; empty is the project's own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub directory: String,
    /// Every path that the call names, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// What else makes a difference: `recursive`, `overwrite`, `background` and the like; of a
    /// patch what it does to each file, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<String>,
}

impl Exact {
    /// Returns what of an action an answer can be about; `None`: it cannot be told apart from
    /// others for certain. Commands run in `here` where they name no folder.
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
            // Whatever has changed by then.
            return None;
        }
        let mut with = with(call);
        if let Call::Git(git) = call
            && (git.query.file().is_some() || matches!(git.query, GitQuery::Commit { .. }))
        {
            // The paths are those of the files.
            let repository = plain(&git.path, false)?;
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
            .map(|path| plain(path, false))
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

    /// Says what it speaks of.
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

/// Takes off what is nothing to a shell at both ends: its own blanks alone, as other spaces belong
/// to a file's name, and none behind a backslash, which makes it part of a word.
pub(super) fn trimmed(text: &str) -> &str {
    const BLANKS: [char; 3] = [' ', '\t', '\n'];
    let begun = text.trim_start_matches(BLANKS);
    let ended = begun.trim_end_matches(BLANKS);
    if ended.ends_with('\\') { begun } else { ended }
}

/// Returns why a yes to this can only hold once; `None` where it may hold longer.
pub(super) fn only_once(
    reading: Option<&Reading>,
    capabilities: &[Capability],
    exact: Option<&Exact>,
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
            "what the command does cannot be read for certain (it has {what})"
        ));
    }
    match (exact, reading) {
        (Some(_), _) => None,
        (None, Some(_)) => Some(
            "the command is too long to be remembered, or its folder is not certain".to_owned(),
        ),
        (None, None) => Some("it names no file by which it could be known again".to_owned()),
    }
}

fn with(call: &Call) -> Vec<String> {
    let flags: &[(bool, &str)] = match call {
        Call::Bash(bash) => &[(bash.background, "background")],
        Call::ApplyPatch(patch) => return patched(patch),
        Call::Git(git) => return asked_of_git(&git.query),
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

/// What git is asked to do, word by word.
fn asked_of_git(query: &GitQuery) -> Vec<String> {
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

/// What a patch does to each of its files, in their order: together with the paths, what happens to
/// which.
fn patched(patch: &ApplyPatch) -> Vec<String> {
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
