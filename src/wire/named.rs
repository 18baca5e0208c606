use super::ArchiveAction;
use super::BytesPath;
use super::Call;
use super::GitQuery;
use super::PatchAction;

impl Call {
    /// Returns all paths that a call names, so that they can be corrected before policy decides
    /// about it.
    pub fn paths_mut(&mut self) -> Vec<&mut BytesPath> {
        match self {
            Self::ReadFile(call) => call.path.iter_mut().collect(),
            Self::WriteFile(call) => vec![&mut call.path],
            Self::EditFile(call) => vec![&mut call.path],
            Self::MultiEdit(call) => call.edits.iter_mut().map(|edit| &mut edit.path).collect(),
            Self::ApplyPatch(call) => {
                let named = call.files.iter_mut().flat_map(|file| {
                    let to = match &mut file.action {
                        PatchAction::Update { to, .. } => to.as_mut(),
                        PatchAction::Add { .. } | PatchAction::Delete { .. } => None,
                    };
                    [Some(&mut file.path), to]
                });
                named.flatten().collect()
            }
            Self::EditLines(call) => vec![&mut call.path],
            Self::DeleteFile(call) => vec![&mut call.path],
            Self::CopyFile(call) => vec![&mut call.source, &mut call.destination],
            Self::MoveFile(call) => vec![&mut call.source, &mut call.destination],
            Self::Mkdir(call) => vec![&mut call.path],
            Self::Tree(call) => vec![&mut call.path],
            Self::ListDirectory(call) => vec![&mut call.path],
            Self::Glob(call) => vec![&mut call.path],
            Self::Grep(call) => vec![&mut call.path],
            Self::Archive(call) => {
                let other = match &mut call.action {
                    ArchiveAction::List => None,
                    ArchiveAction::Create { source: other }
                    | ArchiveAction::Extract { into: other } => Some(other),
                };
                [Some(&mut call.archive), other]
                    .into_iter()
                    .flatten()
                    .collect()
            }
            Self::Git(call) => {
                let files: Vec<&mut BytesPath> = match &mut call.query {
                    GitQuery::Diff { file, .. } | GitQuery::Log { file, .. } => {
                        file.iter_mut().collect()
                    }
                    GitQuery::Commit { files, .. } => files.iter_mut().collect(),
                    GitQuery::Status
                    | GitQuery::Branch(_)
                    | GitQuery::Checkout { .. }
                    | GitQuery::Stash(_) => Vec::new(),
                };
                std::iter::once(&mut call.path).chain(files).collect()
            }
            Self::Cd(call) => vec![&mut call.path],
            Self::Bash(call) => call.working_directory.iter_mut().collect(),
            Self::ByName { call } => call.paths_mut(),
            Self::UpdateConfig(_)
            | Self::Env(_)
            | Self::Processes(_)
            | Self::Exec(_)
            | Self::Hook(_) => Vec::new(),
        }
    }
}
