//! What the host orders about repositories, put together from what can be done with them.

use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use super::aside::aside;
use super::find::find;
use super::folder::Folder;
use super::folder::failed;
use super::import::Import;
use super::import::import;
use super::prepare::Source;
use super::prepare::prepare;
use super::record::Start;
use super::record::check_id;
use super::touched::touched;
use crate::guest::keep::review;
use crate::wire::BytesPath;
use crate::wire::Fault;
use crate::wire::keep::AsideGit;
use crate::wire::keep::FoundRepository;
use crate::wire::keep::GitAnswer;
use crate::wire::keep::GitKind;
use crate::wire::keep::GitOrder;
use crate::wire::keep::GitRefusal;
use crate::wire::keep::GitSource;
use crate::wire::keep::ImportedGit;
use crate::wire::keep::ImportedRepository;
use crate::wire::keep::IndexImport;
use crate::wire::keep::NotImported;
use crate::wire::keep::PreparedGit;
use crate::wire::keep::ReviewedGit;
use crate::wire::keep::SettledGit;

/// How long the project is looked through for repositories, and how long git may work on an import.
const LOOK: Duration = Duration::from_secs(20);
const IMPORT: Duration = Duration::from_mins(2);

/// The file in a session's folder that leads a linked worktree there.
pub const POINTER: &[u8] = b"podbay-pointer";

/// The `.git` of the project itself.
const TOP: &[u8] = b".git";

/// Where the keeper has what.
#[derive(Debug)]
pub struct Folders<'a> {
    pub project: &'a Path,
    /// Our own state, out of every session's reach.
    pub state: &'a Path,
    /// Where repositories go that a session made; where there is no such folder, into the state.
    pub aside: &'a Path,
    /// For what is needed meanwhile.
    pub scratch: &'a Path,
}

impl Folders<'_> {
    /// Opens a folder of the state, made where it is missing.
    fn kept(&self, name: &[u8]) -> Result<Folder, Fault> {
        let state = open(self.state)?;
        state.make(name)?;
        state.descend(name).map_err(|errno| failed("open", name, &errno.into()))
    }
}

/// Carries out one order.
pub fn carry_out(folders: &Folders<'_>, order: &GitOrder) -> Result<GitAnswer, Fault> {
    let project = open(folders.project)?;
    let starts = folders.kept(b"git")?;
    match order {
        GitOrder::Prepare { id, sources, hidden, identity, review } => {
            check_id(id)?;
            Start::forget_settled(&starts)?;
            // Where nothing was made for it before, it may be by now.
            let has_folder =
                |source: &GitSource| open(source.session.as_path()).is_ok_and(|folder| !folder.names(b"").unwrap_or_default().is_empty());
            if review.as_ref().is_some_and(|name| review::is_on_record(folders.state, name))
                && (sources.is_empty() || sources.iter().any(has_folder))
                && let Some(start) = Start::read(&starts, id)?
            {
                return Ok(GitAnswer::Prepared(start.goes_on(&project, sources)));
            }
            // Nothing has run in what an earlier preparation of it made.
            Start::forget(&starts, id)?;
            let opened: Vec<(Folder, Folder)> = sources
                .iter()
                .map(|source| Ok((open(source.real.as_path())?, open(source.session.as_path())?)))
                .collect::<Result<_, Fault>>()?;
            let sources: Vec<Source<'_>> =
                sources.iter().zip(&opened).map(|(source, (real, session))| taken(source, real, session)).collect();
            let found = find(&project, LOOK);
            let prepared = prepare(&project, found, &sources, hidden, identity.as_ref(), (&starts, id))?;
            for (source, repository) in sources.iter().filter_map(|source| {
                Some((source, prepared.repositories.iter().find(|one| one.path == source.path && one.refused.is_none())?))
            }) {
                if let Some(pointer) = &repository.pointer {
                    source.session.write(POINTER, pointer.as_bytes())?;
                }
            }
            Ok(GitAnswer::Prepared(prepared))
        }
        GitOrder::Settle { id, sources, no_import, tries_again, is_top_theirs, review } => {
            let how = How { no_import: no_import.as_deref(), is_top_theirs: *is_top_theirs, review: review.as_ref() };
            let settled = settle(folders, &project, &starts, (id, sources), how)?;
            if !settled.is_settled && !tries_again {
                Start::keep(&starts, id)?;
            }
            Ok(GitAnswer::Settled(settled))
        }
    }
}

/// How a session is settled.
#[derive(Clone, Copy)]
struct How<'a> {
    no_import: Option<&'a str>,
    is_top_theirs: Option<bool>,
    review: Option<&'a ReviewedGit>,
}

fn settle(
    folders: &Folders<'_>,
    project: &Folder,
    starts: &Folder,
    (id, sources): (&str, &[GitSource]),
    how: How<'_>,
) -> Result<SettledGit, Fault> {
    let How { no_import, is_top_theirs, review } = how;
    let Some(start) = Start::read(starts, id)? else {
        return Ok(unknown(sources));
    };
    if Start::is_settled(starts, id) {
        return Ok(SettledGit { is_settled: true, ..SettledGit::default() });
    }
    if Start::is_kept(starts, id) {
        return Ok(SettledGit::default());
    }
    let refused = no_import.map(str::to_owned).or_else(|| {
        let is_another = sources.iter().any(|source| !start.is_still(project, source.path.as_bytes()));
        is_another.then(|| "`.git` of the project is another one than when the session began".to_owned())
    });
    if let (None, Some(ReviewedGit { unless_it_may_run: Some(auto_run) })) = (&refused, review) {
        let held = staged(folders, starts, id, sources, |import| touched(import, auto_run))?;
        if !held.is_empty() {
            return Ok(SettledGit { held, ..SettledGit::default() });
        }
    }
    let imported = match refused {
        None => staged(folders, starts, id, sources, import)?,
        Some(why) => ImportedGit { repositories: start.repositories.iter().map(|started| left_out(&started.path, &why)).collect() },
    };
    let is_settled = imported.is_whole();
    if review.is_some() {
        // Whatever appeared in the project meanwhile is not the session's.
        if is_settled {
            Start::settle(starts, id)?;
        }
        return Ok(SettledGit { imported, is_settled, ..SettledGit::default() });
    }
    let mut before = start.found_still(project);
    if let Some(is_theirs) = is_top_theirs {
        before.repositories.retain(|one| one.path.as_bytes() != TOP);
        if is_theirs {
            before.repositories.extend(find_top(project));
        } else {
            before.repositories.extend(start.found.repositories.iter().filter(|one| is_pointer_at_top(one)).cloned());
        }
    }
    let kept = if folders.aside.is_dir() { open(folders.aside)? } else { folders.kept(b"aside")? };
    // What was taken over is to be told all the same.
    let aside = aside(project, &before, (&kept, id), LOOK).unwrap_or_else(|_| AsideGit { moved: Vec::new(), whole: false });
    if is_settled {
        Start::settle(starts, id)?;
    }
    Ok(SettledGit { imported, aside, is_settled, ..SettledGit::default() })
}

/// A session that is not on record was never prepared to its end, or its record is gone, and with it the way to take over what it did.
fn unknown(sources: &[GitSource]) -> SettledGit {
    let has_work = |source: &&GitSource| source.session.as_path().join("HEAD").is_file();
    let why = "how the repository was when the session began is not on record any more";
    let repositories: Vec<ImportedRepository> = sources.iter().filter(has_work).map(|source| left_out(&source.path, why)).collect();
    SettledGit { is_settled: repositories.is_empty(), imported: ImportedGit { repositories }, ..SettledGit::default() }
}

/// Has something done with what a session left, for which there is a folder meanwhile.
fn staged<T>(
    folders: &Folders<'_>,
    starts: &Folder,
    id: &str,
    sources: &[GitSource],
    work: impl FnOnce(&Import<'_>) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let scratch = folders.scratch.join(format!("podbay-git-{id}"));
    let above = open(folders.scratch)?;
    let name = format!("podbay-git-{id}");
    above.make(name.as_bytes())?;
    let places: Vec<(PathBuf, PathBuf)> =
        sources.iter().map(|source| (source.real.as_path().to_owned(), source.session.as_path().to_owned())).collect();
    let done = work(&Import { id, state: starts, scratch: &scratch, places: &places, budget: IMPORT });
    above.remove(name.as_bytes())?;
    done
}

impl Start {
    /// Returns what a session gets that goes on in its own folders. In another repository's place they are of no use.
    fn goes_on(&self, project: &Folder, sources: &[GitSource]) -> PreparedGit {
        let mut prepared = self.prepared.clone();
        let is_another = |path: &BytesPath| sources.iter().any(|source| source.path == *path && !self.is_still(project, path.as_bytes()));
        for one in prepared.repositories.iter_mut().filter(|one| is_another(&one.path)) {
            one.refused = Some(GitRefusal::Replaced);
        }
        prepared
    }
}

fn left_out(path: &BytesPath, why: &str) -> ImportedRepository {
    ImportedRepository {
        path: path.clone(),
        index: IndexImport::Kept,
        not_imported: vec![NotImported { what: path.clone(), why: why.to_owned() }],
        ..ImportedRepository::default()
    }
}

/// Returns what stands at the top now.
fn find_top(project: &Folder) -> impl Iterator<Item = FoundRepository> {
    find(project, LOOK).repositories.into_iter().filter(|one| one.path.as_bytes() == TOP)
}

/// A file is known by what it says, whoever put it there.
fn is_pointer_at_top(one: &FoundRepository) -> bool {
    one.path.as_bytes() == TOP && matches!(one.kind, GitKind::Pointer { .. })
}

fn taken<'a>(source: &GitSource, real: &'a Folder, session: &'a Folder) -> Source<'a> {
    Source {
        path: source.path.clone(),
        real,
        worktree: source.worktree.clone(),
        session,
        real_in_box: source.real_in_box.clone(),
        session_in_box: source.session_in_box.clone(),
    }
}

fn open(path: &Path) -> Result<Folder, Fault> {
    use std::os::unix::ffi::OsStrExt;
    Folder::open(path).map_err(|error| failed("open", path.as_os_str().as_bytes(), &error))
}
