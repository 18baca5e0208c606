use std::borrow::Cow;

use serde::Deserialize;
use serde::Serialize;

use super::CallEffect;
use super::CallFacts;
use super::CallFields;
use super::CallKind;
use super::CallNeed;
use super::CallVerb;
use super::FileMemory;
use super::FileScope;
use super::FileUse;
use super::PathAccess;
use super::PathFact;
use super::PathUse;
use super::RuleSubject;
use super::TimeLimit;
use super::ToolCall;
use super::ToolFacts;
use crate::BytesPath;

/// Queries git, or changes the session's own repository, so that no setting of the repository can
/// start a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Git {
    pub query: GitQuery,
    /// The folder to run git in.
    pub path: BytesPath,
    /// Whether policy allowed protected names; otherwise a diff excludes names that look like
    /// secrets.
    pub protected: bool,
    pub timeout_ms: u64,
    /// Time between TERM and KILL, in milliseconds.
    pub grace_ms: u64,
    /// Like that of [`crate::Bash`].
    pub stream_bytes: u64,
    pub tail_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "query", rename_all = "snake_case")]
pub enum GitQuery {
    Status,
    Diff {
        /// Staged changes instead of unstaged ones.
        staged: bool,
        /// One file or folder of the project; `None`: all without protected names.
        file: Option<BytesPath>,
        /// Changes since the merge base of this commit and the current one.
        base: Option<String>,
    },
    Log {
        count: u32,
        oneline: bool,
        file: Option<BytesPath>,
        author: Option<String>,
    },
    Commit {
        message: String,
        /// Empty: all changes.
        files: Vec<BytesPath>,
    },
    Branch(GitBranch),
    Checkout {
        target: String,
        /// Creates the branch first.
        create: bool,
    },
    Stash(GitStash),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "branch", rename_all = "snake_case")]
pub enum GitBranch {
    List,
    Create { name: String },
    Delete { name: String },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "stash", rename_all = "snake_case")]
pub enum GitStash {
    List,
    Push { message: Option<String> },
    Pop { index: u32 },
    Apply { index: u32 },
    Drop { index: u32 },
}

impl ToolCall for Git {
    const TOOLS: &'static [ToolFacts] = &[
        ToolFacts {
            name: "git_status",
            aliases: &["GitStatus"],
            subject: RuleSubject::Paths,
            file_use: FileUse::Neither,
        },
        ToolFacts {
            name: "git_diff",
            aliases: &["GitDiff"],
            subject: RuleSubject::Paths,
            file_use: FileUse::Neither,
        },
        ToolFacts {
            name: "git_log",
            aliases: &["GitLog"],
            subject: RuleSubject::Paths,
            file_use: FileUse::Neither,
        },
        ToolFacts {
            name: "git_commit",
            aliases: &["GitCommit"],
            subject: RuleSubject::Paths,
            file_use: FileUse::Neither,
        },
        ToolFacts {
            name: "git_branch",
            aliases: &["GitBranch"],
            subject: RuleSubject::Branches,
            file_use: FileUse::Neither,
        },
        ToolFacts {
            name: "git_checkout",
            aliases: &["GitCheckout", "git_switch"],
            subject: RuleSubject::Paths,
            file_use: FileUse::Neither,
        },
        ToolFacts {
            name: "git_stash",
            aliases: &["GitStash"],
            subject: RuleSubject::Paths,
            file_use: FileUse::Neither,
        },
    ];

    fn facts(&self) -> CallFacts<'_> {
        let (tool, verb) = self.query.names();
        CallFacts {
            tool,
            kind: CallKind::Session,
            effect: self.query.effect(),
            needs: self.query.needs(),
            paths: self.named(),
            scope: self.scope(),
            details: self.query.details(),
            weight: 0,
            time: TimeLimit::Git {
                timeout_ms: self.timeout_ms,
                grace_ms: self.grace_ms,
            },
            memory: FileMemory::Nothing,
            verb: CallVerb::Plain(verb),
        }
    }

    fn fields_mut(&mut self) -> CallFields<'_> {
        let files: Vec<&mut BytesPath> = match &mut self.query {
            GitQuery::Diff { file, .. } | GitQuery::Log { file, .. } => file.iter_mut().collect(),
            GitQuery::Commit { files, .. } => files.iter_mut().collect(),
            GitQuery::Status
            | GitQuery::Branch(_)
            | GitQuery::Checkout { .. }
            | GitQuery::Stash(_) => Vec::new(),
        };
        CallFields {
            paths: std::iter::once(&mut self.path).chain(files).collect(),
            protected: Some(&mut self.protected),
            known: None,
        }
    }
}

impl Git {
    /// Returns the folder and the files. Rules match the files where there are some, else the
    /// folder.
    fn named(&self) -> Vec<PathFact<'_>> {
        let files = self.query.files();
        let access = if !files.is_empty() {
            PathAccess::WorkingDirectory
        } else if self.query.is_read_only() {
            PathAccess::Reads
        } else {
            PathAccess::Names
        };
        std::iter::once(PathFact::new(&self.path, access, PathUse::Finds))
            .chain(files.iter().map(PathFact::read))
            .collect()
    }

    fn scope(&self) -> FileScope<'_> {
        match &self.query {
            GitQuery::Log {
                file: Some(file), ..
            }
            | GitQuery::Diff {
                file: Some(file), ..
            } => FileScope::Whole(vec![file]),
            // Everything that changed in the folder's repository, wherever in it the folder lies;
            // the others change files that are not named, or revert their changes.
            GitQuery::Diff { file: None, .. }
            | GitQuery::Status
            | GitQuery::Checkout { .. }
            | GitQuery::Stash(
                GitStash::Push { .. }
                | GitStash::Pop { .. }
                | GitStash::Apply { .. }
                | GitStash::Drop { .. },
            ) => FileScope::Unnamed,
            // Everything in the named folders, or everything.
            GitQuery::Commit { files, .. } => FileScope::Whole(files.iter().collect()),
            GitQuery::Log { file: None, .. }
            | GitQuery::Branch(_)
            | GitQuery::Stash(GitStash::List) => FileScope::Named,
        }
    }
}

impl GitQuery {
    /// Returns whether it leaves the repository unchanged.
    pub fn is_read_only(&self) -> bool {
        match self {
            Self::Status
            | Self::Diff { .. }
            | Self::Log { .. }
            | Self::Branch(GitBranch::List)
            | Self::Stash(GitStash::List) => true,
            Self::Commit { .. } | Self::Branch(_) | Self::Checkout { .. } | Self::Stash(_) => false,
        }
    }

    /// Returns whether it changes files of the project.
    pub fn writes_files(&self) -> bool {
        match self {
            Self::Checkout { .. } => true,
            Self::Stash(stash) => !matches!(stash, GitStash::List | GitStash::Drop { .. }),
            Self::Status
            | Self::Diff { .. }
            | Self::Log { .. }
            | Self::Commit { .. }
            | Self::Branch(_) => false,
        }
    }

    pub fn file(&self) -> Option<&BytesPath> {
        match self {
            Self::Status
            | Self::Commit { .. }
            | Self::Branch(_)
            | Self::Checkout { .. }
            | Self::Stash(_) => None,
            Self::Diff { file, .. } | Self::Log { file, .. } => file.as_ref(),
        }
    }

    /// Returns the files that it names.
    fn files(&self) -> &[BytesPath] {
        match self {
            Self::Commit { files, .. } => files,
            Self::Diff { file, .. } | Self::Log { file, .. } => file.as_slice(),
            Self::Status | Self::Branch(_) | Self::Checkout { .. } | Self::Stash(_) => &[],
        }
    }

    /// Returns its tool, and what it does in an error.
    fn names(&self) -> (&'static str, &'static str) {
        match self {
            Self::Status => ("git_status", "run git status"),
            Self::Diff { .. } => ("git_diff", "run git diff"),
            Self::Log { .. } => ("git_log", "run git log"),
            Self::Commit { .. } => ("git_commit", "run git commit"),
            Self::Branch(_) => ("git_branch", "run git branch"),
            Self::Checkout { .. } => ("git_checkout", "run git checkout"),
            Self::Stash(_) => ("git_stash", "run git stash"),
        }
    }

    fn effect(&self) -> CallEffect {
        if self.is_read_only() {
            CallEffect::Nothing
        } else if self.writes_files() {
            CallEffect::Files
        } else {
            CallEffect::SessionGit
        }
    }

    fn needs(&self) -> &'static [CallNeed] {
        if self.is_read_only() {
            &[CallNeed::ReadFiles]
        } else if self.writes_files() {
            &[CallNeed::SessionGit, CallNeed::WriteFiles]
        } else {
            &[CallNeed::SessionGit]
        }
    }

    /// Returns its arguments word by word.
    fn details(&self) -> Option<Vec<Cow<'_, str>>> {
        let flag = |is_set: bool, name: &'static str| is_set.then_some(Cow::Borrowed(name));
        let two = |first: &'static str, second: String| vec![first.into(), second.into()];
        Some(match self {
            Self::Status => Vec::new(),
            Self::Diff { staged, base, .. } => flag(*staged, "staged")
                .into_iter()
                .chain(base.iter().map(|base| format!("base {base}").into()))
                .collect(),
            Self::Log { author, .. } => author
                .iter()
                .map(|author| format!("author {author}").into())
                .collect(),
            // Everything that has changed by then.
            Self::Commit { files, .. } if files.is_empty() => return None,
            Self::Commit { message, .. } => vec![message.into()],
            Self::Branch(GitBranch::List) | Self::Stash(GitStash::List) => vec!["list".into()],
            Self::Branch(GitBranch::Create { name }) => vec!["create".into(), name.into()],
            Self::Branch(GitBranch::Delete { name }) => vec!["delete".into(), name.into()],
            Self::Checkout { target, create } => flag(*create, "create")
                .into_iter()
                .chain([target.into()])
                .collect(),
            Self::Stash(GitStash::Push { message }) => std::iter::once("push".into())
                .chain(message.iter().map(Into::into))
                .collect(),
            Self::Stash(GitStash::Pop { index }) => two("pop", index.to_string()),
            Self::Stash(GitStash::Apply { index }) => two("apply", index.to_string()),
            Self::Stash(GitStash::Drop { index }) => two("drop", index.to_string()),
        })
    }
}
