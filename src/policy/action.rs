use super::command::Reading;
use crate::event::Capability;
use crate::wire::ApplyPatch;
use crate::wire::BytesPath;
use crate::wire::Call;
use crate::wire::Hook;
use crate::wire::PatchAction;
use crate::wire::protected_name;

/// One thing to carry out: in the box, or by the host.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Box(Call),
    Host(HostCall),
}

/// What does not run in the box.
#[derive(Clone, Debug, PartialEq)]
pub enum HostCall {
    /// Reads lines of a result that was too long to show.
    ReadArtifact {
        id: String,
        /// First line, from 1.
        offset: u64,
        limit: u64,
    },
    /// Runs a command of the person's own settings on their machine.
    Hook(Hook),
}

impl Action {
    /// Returns whether it changes nothing, so that several may run at once and a denial blocks nothing.
    pub fn is_read_only(&self) -> bool {
        match self {
            Self::Box(Call::ReadFile(_) | Call::ListDirectory(_) | Call::Tree(_) | Call::Glob(_) | Call::Grep(_))
            | Self::Host(HostCall::ReadArtifact { .. }) => true,
            Self::Box(
                Call::WriteFile(_)
                | Call::EditFile(_)
                | Call::MultiEdit(_)
                | Call::ApplyPatch(_)
                | Call::EditLines(_)
                | Call::DeleteFile(_)
                | Call::CopyFile(_)
                | Call::MoveFile(_)
                | Call::Mkdir(_)
                | Call::Bash(_)
                | Call::Exec(_)
                | Call::Hook(_),
            )
            | Self::Host(HostCall::Hook(_)) => false,
        }
    }
}

/// Returns what carrying out an action needs.
pub fn capabilities(action: &Action) -> Vec<Capability> {
    match action {
        Action::Host(HostCall::ReadArtifact { .. }) => vec![Capability::ReadFiles],
        Action::Host(HostCall::Hook(_)) => {
            let mut needed = reading_of(action).map_or_else(Vec::new, |reading| reading.capabilities);
            needed.push(Capability::ChangeOutsideBox);
            needed
        }
        Action::Box(call) => match call {
            Call::ReadFile(read) => reading(read.path.as_ref()),
            Call::Grep(grep) => reading(Some(&grep.path)),
            Call::ListDirectory(_) | Call::Tree(_) | Call::Glob(_) => vec![Capability::ReadFiles],
            Call::WriteFile(write) => writing([&write.path]),
            Call::EditFile(edit) => writing([&edit.path]),
            Call::MultiEdit(multi) => writing(multi.edits.iter().map(|edit| &edit.path)),
            Call::ApplyPatch(patch) => writing(patch_paths(patch)),
            Call::EditLines(edit) => writing([&edit.path]),
            Call::DeleteFile(delete) => writing([&delete.path]),
            Call::MoveFile(moved) => writing([&moved.source, &moved.destination]),
            Call::Mkdir(made) => writing([&made.path]),
            Call::CopyFile(copy) => {
                let mut needed = reading(Some(&copy.source));
                needed
                    .extend(writing([&copy.destination]).into_iter().filter(|capability| !needed.contains(capability)).collect::<Vec<_>>());
                needed
            }
            Call::Bash(_) | Call::Hook(_) => reading_of(action).map_or_else(|| vec![Capability::RunInBox], |reading| reading.capabilities),
            Call::Exec(_) => vec![Capability::RunInBox],
        },
    }
}

/// Reads the command of the shell that an action is, if it is one.
pub(super) fn reading_of(action: &Action) -> Option<Reading> {
    match action {
        Action::Box(Call::Bash(bash)) => {
            let directory = bash.working_directory.as_ref().map(BytesPath::to_text);
            Some(Reading::new(&bash.command, directory.as_deref()))
        }
        Action::Box(Call::Hook(hook)) | Action::Host(HostCall::Hook(hook)) => Some(Reading::new(&hook.command, None)),
        _ => None,
    }
}

/// Returns every path that a patch names.
pub(super) fn patch_paths(patch: &ApplyPatch) -> impl Iterator<Item = &BytesPath> {
    patch.files.iter().flat_map(|file| {
        let to = match &file.action {
            PatchAction::Update { to, .. } => to.as_ref(),
            PatchAction::Add { .. } | PatchAction::Delete { .. } => None,
        };
        [&file.path].into_iter().chain(to)
    })
}

fn reading(path: Option<&BytesPath>) -> Vec<Capability> {
    let secret = path.and_then(protected_name).filter(|protected| protected.is_secret);
    match secret {
        Some(protected) => vec![Capability::ReadFiles, Capability::ProtectedName { name: protected.name }],
        None => vec![Capability::ReadFiles],
    }
}

fn writing<'a>(paths: impl IntoIterator<Item = &'a BytesPath>) -> Vec<Capability> {
    let mut needed = vec![Capability::WriteFiles];
    for protected in paths.into_iter().filter_map(protected_name) {
        let capability = Capability::ProtectedName { name: protected.name };
        if !needed.contains(&capability) {
            needed.push(capability);
        }
    }
    needed
}
