use std::borrow::Cow;

use crate::BytesPath;
use crate::Known;

/// What is known of a tool by its name alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolFacts {
    pub name: &'static str,
    /// Names that models trained on other agents use for it.
    pub aliases: &'static [&'static str],
    pub subject: RuleSubject,
    pub file_use: FileUse,
}

/// What the pattern of a rule for a tool is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleSubject {
    Paths,
    Commands,
    Branches,
    /// Its calls name nothing that a pattern could match.
    Nothing,
}

/// What a tool does with the contents of the files that its arguments name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileUse {
    Shows,
    Changes,
    Neither,
}

/// What is known of one call, beside how it is executed. It is written as a whole in the call's own
/// file, so that a new tool which forgets something does not compile.
#[derive(Clone, Debug, PartialEq)]
pub struct CallFacts<'a> {
    /// The tool that makes it, by which rules and answers refer to it.
    pub tool: &'static str,
    pub kind: CallKind,
    pub effect: CallEffect,
    /// What it needs in addition to what its paths say.
    pub needs: &'static [CallNeed],
    /// Every path in it, in the order of [`CallFields::paths`].
    pub paths: Vec<PathFact<'a>>,
    pub scope: FileScope<'a>,
    /// The other arguments that make a difference to the user, in order; `None`: the call cannot be
    /// distinguished from others.
    pub details: Option<Vec<Cow<'a, str>>>,
    /// About how many bytes it has where it can have many.
    pub weight: usize,
    pub time: TimeLimit,
    pub memory: FileMemory<'a>,
    pub verb: CallVerb<'a>,
}

/// The parts of a call that the host fills in or corrects before the call is sent.
#[derive(Debug)]
pub struct CallFields<'a> {
    pub paths: Vec<&'a mut BytesPath>,
    /// Whether policy allowed protected names; `None`: it refers to no file's contents.
    pub protected: Option<&'a mut bool>,
    /// What is known of the files that it changes.
    pub known: Option<&'a mut Option<Known>>,
}

/// Which part of the guest serves a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// A file tool.
    File,
    /// A file tool that processes whole trees or archives; a file in them may be endless.
    LongFile,
    /// The session of the guest; where only the named paths are approved, it checks them.
    Session,
    /// A program that is executed as written; its paths are its own concern.
    Command,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallEffect {
    /// Several such calls may run concurrently, and a denial blocks nothing.
    Nothing,
    /// Only the session's working directory, which changes in order.
    Directory,
    /// Nothing here; what a request does to its host is the host's. One after the other, and none
    /// before the model has written it to its end.
    Requests,
    /// The session's own git repository, and no file.
    SessionGit,
    /// Files of the project, or whatever a command changes.
    Files,
    /// The same, and it needs free space on the disk.
    AddsFiles,
}

/// What policy must allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallNeed {
    ReadFiles,
    WriteFiles,
    SessionGit,
    UpdateInstructions,
    AddInstructions,
    SaveMemory,
    SpawnAgent,
    InstallDependencies,
    RunInSandbox,
    /// What its command line needs.
    Command,
}

/// A path in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathFact<'a> {
    pub path: &'a BytesPath,
    pub access: PathAccess,
    pub usage: PathUse,
}

/// What a path says about what the call needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathAccess {
    /// The call only starts there; rules about paths do not match it.
    WorkingDirectory,
    /// It is named or listed; no contents are revealed.
    Names,
    Reads,
    /// It is read for a change that is only tried.
    Tries,
    Writes,
}

/// What a call does with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathUse {
    /// It must exist.
    Finds,
    /// It may exist, and is created otherwise.
    Writes,
    /// It is a new name, whatever it looks like; its parent folders may exist.
    Makes,
}

/// Which files a call reaches beyond the paths that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileScope<'a> {
    /// None.
    Named,
    /// The direct entries of this folder.
    Listed(&'a BytesPath),
    /// Everything in these folders.
    Whole(Vec<&'a BytesPath>),
    /// Any file.
    Unnamed,
}

/// How long a call may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeLimit {
    /// As long as a file tool may.
    Files,
    Search {
        timeout_ms: u64,
    },
    Git {
        timeout_ms: u64,
        grace_ms: u64,
    },
    /// As long as a file tool, and the time between TERM and KILL.
    Stop {
        grace_ms: u64,
    },
    Command {
        timeout_ms: u64,
        grace_ms: u64,
    },
    /// A command of the user's own, which may run until they end it.
    Own {
        timeout_ms: Option<u64>,
        grace_ms: u64,
    },
}

/// What the host remembers of the files of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileMemory<'a> {
    Nothing,
    /// What its result shows.
    Shown,
    /// What it changes; this is known of those files.
    Changed(Option<&'a Known>),
    /// The same for the project's instructions, which it does not name.
    Instructions(Option<&'a Known>),
}

/// A call in an error: `write a.txt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallVerb<'a> {
    Plain(&'static str),
    /// `None`: files that the call does not name.
    Path(&'static str, Option<&'a BytesPath>),
    /// A verb, a path, a preposition, a path.
    Paths(&'static str, &'a BytesPath, &'static str, &'a BytesPath),
    Pattern(&'static str, &'a str),
    CommandLine(&'static str, &'a str),
    /// `None`: the shell.
    Program(&'static str, Option<&'a BytesPath>),
}

impl CallEffect {
    /// Returns whether it leaves everything but the session's working directory as it is.
    pub fn is_read_only(self) -> bool {
        match self {
            Self::Nothing | Self::Directory | Self::Requests => true,
            Self::SessionGit | Self::Files | Self::AddsFiles => false,
        }
    }

    /// Returns whether it may change files of the project.
    pub fn changes_files(self) -> bool {
        match self {
            Self::Nothing | Self::Directory | Self::Requests | Self::SessionGit => false,
            Self::Files | Self::AddsFiles => true,
        }
    }
}

impl<'a> PathFact<'a> {
    pub(super) fn new(path: &'a BytesPath, access: PathAccess, usage: PathUse) -> Self {
        Self {
            path,
            access,
            usage,
        }
    }

    /// A file or folder that must exist, whose contents are not revealed.
    pub(super) fn named(path: &'a BytesPath) -> Self {
        Self::new(path, PathAccess::Names, PathUse::Finds)
    }

    /// A file or folder that is read.
    pub(super) fn read(path: &'a BytesPath) -> Self {
        Self::new(path, PathAccess::Reads, PathUse::Finds)
    }

    /// A file that is changed and must exist.
    pub(super) fn changed(path: &'a BytesPath) -> Self {
        Self::new(path, PathAccess::Writes, PathUse::Finds)
    }

    /// A file that is written, whether or not it exists.
    pub(super) fn written(path: &'a BytesPath) -> Self {
        Self::new(path, PathAccess::Writes, PathUse::Writes)
    }

    /// A new name.
    pub(super) fn made(path: &'a BytesPath) -> Self {
        Self::new(path, PathAccess::Writes, PathUse::Makes)
    }

    pub(super) fn working_directory(path: &'a BytesPath) -> Self {
        Self::new(path, PathAccess::WorkingDirectory, PathUse::Finds)
    }
}

impl<'a> CallFields<'a> {
    /// The fields of a call with these paths and no others.
    pub(super) fn of(paths: Vec<&'a mut BytesPath>) -> Self {
        Self {
            paths,
            protected: None,
            known: None,
        }
    }
}

/// Returns the names of those that are set.
pub(super) fn flags(all: &[(bool, &'static str)]) -> Vec<Cow<'static, str>> {
    let set = all.iter().filter(|(is_set, _)| *is_set);
    set.map(|(_, name)| Cow::Borrowed(*name)).collect()
}
