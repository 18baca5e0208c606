//! Paths of the repositories that an order concerns.

use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;

use super::super::find::find;
use super::super::import::Import;
use super::super::import::UnreadRepositories;
use super::super::repository_layout::linked;
use super::super::session_start::SessionStart;
use super::super::session_start::StartedRepository;
use super::super::untrusted_folder::UntrustedFolder;
use super::super::untrusted_folder::failed;
use super::EndedSession;
use super::FIND_TIME;
use super::KeeperFolders;
use super::TOP;
use crate::root::split;
use podbay_wire::BytesPath;
use podbay_wire::Fault;
use podbay_wire::keep::FoundGit;
use podbay_wire::keep::FoundRepository;
use podbay_wire::keep::GitKind;
use podbay_wire::keep::GitRefusal;
use podbay_wire::keep::GitSource;
use podbay_wire::keep::PreparedGit;
use podbay_wire::keep::PreparedRepository;

pub(super) type RepositoryPlaces = BTreeMap<BytesPath, Result<(PathBuf, PathBuf), String>>;

/// Returns the paths of each repository that the session had a folder for, or why nothing of it can
/// be imported.
pub(super) fn places(
    folders: &KeeperFolders<'_>,
    project: &UntrustedFolder,
    start: &SessionStart,
    left: &EndedSession<'_>,
) -> RepositoryPlaces {
    let place = |started: &StartedRepository| {
        let git = started.git();
        let shown = BytesPath::from_bytes(git);
        if let Some(why) = left.no_import {
            return Err(why.to_owned());
        }
        // Below the top also what is a file now, or lies behind a link.
        if !start.is_still(project, git) || git != TOP && project.descend(git).is_err() {
            return Err(format!(
                "`{shown}` of the project was replaced since the session began"
            ));
        }
        if git != TOP {
            return Ok((
                folders.project.join(shown.as_path()),
                started.session.as_path().to_owned(),
            ));
        }
        let top = left.top.ok_or("the project has no `.git` any more")?;
        Ok((
            top.real.as_path().to_owned(),
            top.session.as_path().to_owned(),
        ))
    };
    start
        .repositories
        .iter()
        .map(|started| (BytesPath::from_bytes(started.git()), place(started)))
        .collect()
}

/// Runs something on what a session left, with a scratch folder for it.
pub(super) fn staged<T>(
    folders: &KeeperFolders<'_>,
    starts: &UntrustedFolder,
    left: &EndedSession<'_>,
    places: &RepositoryPlaces,
    work: impl FnOnce(&Import<'_>) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let id = left.id;
    let scratch = folders.scratch.join(format!("podbay-git-{id}"));
    let above = open(folders.scratch)?;
    let name = format!("podbay-git-{id}");
    above.make(name.as_bytes())?;
    let done = work(&Import {
        id,
        state: starts,
        scratch: &scratch,
        places,
        budget: left.import,
        file_size: left.file_size,
        unexamined: &UnreadRepositories::default(),
    });
    above.remove(name.as_bytes())?;
    done
}

/// Returns the repository at the top as it is now.
pub(super) fn find_top(project: &UntrustedFolder) -> impl Iterator<Item = FoundRepository> {
    find(project, FIND_TIME)
        .repositories
        .into_iter()
        .filter(|one| one.path.as_bytes() == TOP)
}

/// A `.git` file is recognized by its content.
pub(super) fn is_pointer_at_top(one: &FoundRepository) -> bool {
    one.path.as_bytes() == TOP && matches!(one.kind, GitKind::Pointer { .. })
}

/// Writes the files that lead linked worktrees to the session's folder.
pub(super) fn write_pointers(sources: &[GitSource], prepared: &PreparedGit) -> Result<(), Fault> {
    for source in sources {
        let repository = prepared
            .repositories
            .iter()
            .find(|one| one.path == source.path && one.refused.is_none());
        if let (Some(pointer), Some(at)) = (
            repository.and_then(|one| one.pointer.as_ref()),
            &source.pointer,
        ) {
            let (folder, name) = split(at.as_bytes());
            open(BytesPath::from_bytes(folder).as_path())?.replace(name, pointer.as_bytes())?;
        }
    }
    Ok(())
}

/// Returns the linked worktrees below the top of the project.
pub(super) fn worktrees_below(found: &FoundGit) -> impl Iterator<Item = PreparedRepository> {
    found
        .repositories
        .iter()
        .filter(|one| is_worktree_below(one))
        .map(|one| PreparedRepository::refused(&one.path, GitRefusal::WorktreeBelow))
}

/// A linked worktree in the project, of any repository.
pub(super) fn is_worktree_below(one: &FoundRepository) -> bool {
    one.path.as_bytes() != TOP
        && matches!(&one.kind, GitKind::Pointer { to } if linked(to).is_some())
}

/// Opens a repository and the session's folder for it, which is made for one below the top; no link
/// on the way to the real one is followed.
pub(super) fn open_both(
    project: &UntrustedFolder,
    source: &GitSource,
) -> Result<(UntrustedFolder, UntrustedFolder), Fault> {
    if source.path.as_bytes() == TOP {
        return Ok((
            open(source.real.as_path())?,
            open(source.session.as_path())?,
        ));
    }
    let real = project
        .descend(source.path.as_bytes())
        .map_err(|errno| failed("open", source.path.as_bytes(), &errno.into()))?;
    let (above, name) = split(source.session.as_bytes());
    let above = open(BytesPath::from_bytes(above).as_path())?;
    above.make(name)?;
    let session = above
        .descend(name)
        .map_err(|errno| failed("open", source.session.as_bytes(), &errno.into()))?;
    Ok((real, session))
}

pub(super) fn open(path: &Path) -> Result<UntrustedFolder, Fault> {
    use std::os::unix::ffi::OsStrExt;
    UntrustedFolder::open(path).map_err(|error| failed("open", path.as_os_str().as_bytes(), &error))
}
