use super::HostCall;
use super::parsed_command::ParsedCommand;
use podbay_event::Capability;
use podbay_wire::ApplyPatch;
use podbay_wire::Archive;
use podbay_wire::ArchiveAction;
use podbay_wire::BytesPath;
use podbay_wire::Call;
use podbay_wire::GitQuery;
use podbay_wire::PatchAction;
use podbay_wire::Processes;
use podbay_wire::protected_name;

/// One action to execute: in the sandbox, or on the host.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Box(Call),
    Host(HostCall),
}

impl Action {
    /// Returns whether it changes nothing, so that several may run concurrently and a denial blocks
    /// nothing.
    pub fn is_read_only(&self) -> bool {
        match self {
            // The task list is the model's own, and a question changes nothing either.
            Self::Host(call) => !matches!(call, HostCall::Hook(_)),
            Self::Box(call) => reads_only(call),
        }
    }

    /// Returns whether it may run concurrently with others like it: questions to the user come one
    /// at a time, and changes of the session happen in order.
    pub fn runs_beside_others(&self) -> bool {
        self.is_read_only()
            && !matches!(
                self,
                Self::Host(HostCall::Tasks(_) | HostCall::AskUser { .. }) | Self::Box(Call::Cd(_))
            )
    }
}

fn reads_only(call: &Call) -> bool {
    match call {
        Call::ByName { call } => reads_only(call),
        Call::ReadFile(_)
        | Call::ListDirectory(_)
        | Call::Tree(_)
        | Call::Glob(_)
        | Call::Grep(_)
        | Call::Env(_)
        // The working directory of commands is state of the session.
        | Call::Cd(_)
        | Call::Processes(Processes::List | Processes::Output { .. })
        | Call::Archive(Archive { action: ArchiveAction::List, .. }) => true,
        Call::Git(git) => git.query.is_read_only(),
        Call::WriteFile(_)
        | Call::EditFile(_)
        | Call::MultiEdit(_)
        | Call::ApplyPatch(_)
        | Call::EditLines(_)
        | Call::DeleteFile(_)
        | Call::CopyFile(_)
        | Call::MoveFile(_)
        | Call::Mkdir(_)
        | Call::Archive(_)
        | Call::UpdateConfig(_)
        | Call::Processes(Processes::Stop { .. })
        | Call::Bash(_)
        | Call::Exec(_)
        | Call::Hook(_) => false,
    }
}

/// Returns the capabilities that an action needs.
pub fn capabilities(action: &Action) -> Vec<Capability> {
    match action {
        Action::Host(HostCall::ReadArtifact { .. }) => vec![Capability::ReadFiles],
        Action::Host(HostCall::Hook(_)) => {
            let mut needed =
                ParsedCommand::of(action).map_or_else(Vec::new, |reading| reading.capabilities());
            needed.push(Capability::ChangeOutsideSandbox);
            needed
        }
        // Only the conversation is affected.
        Action::Host(
            HostCall::Think { .. }
            | HostCall::Tasks(_)
            | HostCall::AskUser { .. }
            | HostCall::FindTools(_),
        ) => Vec::new(),
        Action::Box(call) => match call {
            Call::ByName { call } => capabilities(&Action::Box(call.as_ref().clone())),
            Call::ReadFile(read) => reading(read.path.as_ref()),
            Call::Grep(grep) => reading(Some(&grep.path)),
            Call::ListDirectory(_)
            | Call::Tree(_)
            | Call::Glob(_)
            | Call::Cd(_)
            | Call::Env(_)
            | Call::Processes(Processes::List | Processes::Output { .. }) => {
                vec![Capability::ReadFiles]
            }
            Call::Git(git) if git.query.is_read_only() => {
                reading(git.query.file().or(Some(&git.path)))
            }
            Call::Git(git) => {
                let mut needed = vec![Capability::ChangeSessionGit];
                if git.query.writes_files() {
                    needed.push(Capability::WriteFiles);
                }
                if let GitQuery::Commit { files, .. } = &git.query {
                    needed = files
                        .iter()
                        .fold(needed, |needed, file| both(needed, reading(Some(file))));
                }
                needed
            }
            Call::Archive(archive) => archiving(archive),
            Call::UpdateConfig(update) if update.beside => vec![Capability::AddInstructions],
            Call::UpdateConfig(_) => vec![Capability::UpdateInstructions],
            Call::WriteFile(write) => writing([&write.path]),
            Call::EditFile(edit) => writing([&edit.path]),
            Call::MultiEdit(multi) => writing(multi.edits.iter().map(|edit| &edit.path)),
            // Its result reveals what is in the files, as reading them would.
            Call::ApplyPatch(patch) if patch.dry_run => patch_paths(patch)
                .fold(reading(None), |needed, path| {
                    both(needed, reading(Some(path)))
                }),
            Call::ApplyPatch(patch) => writing(patch_paths(patch)),
            Call::EditLines(edit) => writing([&edit.path]),
            Call::DeleteFile(delete) => writing([&delete.path]),
            Call::MoveFile(moved) => writing([&moved.source, &moved.destination]),
            Call::Mkdir(made) => writing([&made.path]),
            Call::CopyFile(copy) => both(reading(Some(&copy.source)), writing([&copy.destination])),
            Call::Bash(_) | Call::Hook(_) => {
                ParsedCommand::of(action).map_or_else(Vec::new, |reading| reading.capabilities())
            }
            Call::Exec(_) | Call::Processes(Processes::Stop { .. }) => {
                vec![Capability::RunInSandbox]
            }
        },
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

fn archiving(archive: &Archive) -> Vec<Capability> {
    match &archive.action {
        ArchiveAction::List => reading(Some(&archive.archive)),
        ArchiveAction::Extract { into } => both(reading(Some(&archive.archive)), writing([into])),
        ArchiveAction::Create { source } => {
            both(reading(Some(source)), writing([&archive.archive]))
        }
    }
}

fn both(mut needed: Vec<Capability>, others: Vec<Capability>) -> Vec<Capability> {
    for other in others {
        if !needed.contains(&other) {
            needed.push(other);
        }
    }
    needed
}

fn reading(path: Option<&BytesPath>) -> Vec<Capability> {
    let secret = path
        .and_then(protected_name)
        .filter(|protected| protected.is_secret);
    match secret {
        Some(protected) => vec![
            Capability::ReadFiles,
            Capability::ProtectedName {
                name: protected.name,
            },
        ],
        None => vec![Capability::ReadFiles],
    }
}

fn writing<'a>(paths: impl IntoIterator<Item = &'a BytesPath>) -> Vec<Capability> {
    let mut needed = vec![Capability::WriteFiles];
    for protected in paths.into_iter().filter_map(protected_name) {
        let capability = Capability::ProtectedName {
            name: protected.name,
        };
        if !needed.contains(&capability) {
            needed.push(capability);
        }
    }
    needed
}
