//! What the host orders about repositories, put together from what can be done with them.

use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use super::aside::Bounds;
use super::aside::aside;
use super::find::closed;
use super::find::find;
use super::folder::Folder;
use super::folder::failed;
use super::import::Import;
use super::import::Unlooked;
use super::import::Unseen;
use super::import::import;
use super::import::left_out;
use super::prepare::Source;
use super::prepare::prepare;
use super::record::Late;
use super::record::Start;
use super::record::Started;
use super::record::check_id;
use super::repository::linked;
use super::touched::Holding;
use super::touched::Touched;
use super::touched::touched;
use crate::keep::review;
use crate::root::split;
use podbay_wire::BytesPath;
use podbay_wire::Fault;
use podbay_wire::keep::FoundGit;
use podbay_wire::keep::FoundRepository;
use podbay_wire::keep::GitAnswer;
use podbay_wire::keep::GitKind;
use podbay_wire::keep::GitOrder;
use podbay_wire::keep::GitRefusal;
use podbay_wire::keep::GitSource;
use podbay_wire::keep::ImportedGit;
use podbay_wire::keep::ImportedRepository;
use podbay_wire::keep::MayRun;
use podbay_wire::keep::Named;
use podbay_wire::keep::PreparedGit;
use podbay_wire::keep::PreparedRepository;
use podbay_wire::keep::ReviewedGit;
use podbay_wire::keep::SettledGit;
use podbay_wire::keep::When;
use podbay_wire::keep::name_of_review;

/// How long the project is looked through for repositories, and how long git may work on an import.
const LOOK: Duration = Duration::from_secs(20);
const IMPORT: Duration = Duration::from_mins(2);

/// How many folders are named that could not be looked into.
const MOST_CLOSED: usize = 20;

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
        state
            .descend(name)
            .map_err(|errno| failed("open", name, &errno.into()))
    }
}

/// Carries out one order.
pub fn carry_out(folders: &Folders<'_>, order: &GitOrder) -> Result<GitAnswer, Fault> {
    carry_out_within(folders, order, Bounds::default(), IMPORT)
}

/// `bounds`: of what is moved out of the project; `import`: how long git may work on what is taken
/// over.
pub(super) fn carry_out_within(
    folders: &Folders<'_>,
    order: &GitOrder,
    bounds: Bounds,
    import: Duration,
) -> Result<GitAnswer, Fault> {
    let project = open(folders.project)?;
    let starts = folders.kept(b"git")?;
    match order {
        GitOrder::Prepare {
            id,
            sources,
            hidden,
            person,
            review,
            place,
            outside,
        } => {
            check_id(id)?;
            Start::forget_settled(&starts)?;
            // Where nothing was made for it before, it may be by now.
            let has_folder = |source: &GitSource| {
                open(source.session.as_path())
                    .is_ok_and(|folder| !folder.names(b"").unwrap_or_default().is_empty())
            };
            if review
                .as_ref()
                .is_some_and(|name| review::is_on_record(folders.state, name))
                && (sources.is_empty() || sources.iter().any(has_folder))
                && let Some(start) = Start::read(&starts, id)?
            {
                let prepared = start.goes_on(&project, sources);
                write_pointers(sources, &prepared)?;
                return Ok(GitAnswer::Prepared(prepared));
            }
            // Nothing has run in what an earlier preparation of it made.
            Start::forget(&starts, id)?;
            let mut refused = Vec::new();
            let mut opened = Vec::new();
            for source in sources {
                match open_both(&project, source) {
                    Ok((real, session)) => opened.push((source, real, session)),
                    Err(fault) if source.path.as_bytes() == TOP => return Err(fault),
                    Err(fault) => {
                        let broken = GitRefusal::Broken {
                            path: source.path.clone(),
                            problem: fault.to_string(),
                        };
                        refused.push(PreparedRepository::refused(&source.path, broken));
                    }
                }
            }
            let taken: Vec<Source<'_>> = opened
                .iter()
                .map(|(source, real, session)| taken(source, real, session))
                .collect();
            let found = find(&project, LOOK);
            if !sources.is_empty() {
                refused.extend(worktrees_below(&found));
            }
            let mut prepared = prepare(
                &project,
                found,
                &taken,
                hidden,
                person,
                (place.as_bytes(), outside),
                (&starts, id),
            )?;
            write_pointers(sources, &prepared)?;
            prepared.repositories.extend(refused);
            Ok(GitAnswer::Prepared(prepared))
        }
        GitOrder::Settle {
            id,
            top,
            below,
            no_import,
            tries_again,
            is_top_theirs,
            review,
            auto_run,
            place,
            file_size,
        } => {
            let left = Left {
                id,
                top: top.as_ref(),
                below: below.as_ref(),
                no_import: no_import.as_deref(),
                is_top_theirs: *is_top_theirs,
                review: review.as_ref(),
                auto_run,
                place: place.as_bytes(),
                file_size: *file_size,
                bounds,
                import,
            };
            let mut settled = settle(folders, &project, &starts, &left)?;
            if !settled.imported.is_whole() {
                let has_come = settled
                    .imported
                    .repositories
                    .iter()
                    .any(|one| !one.moved.is_empty() || !one.stashes.is_empty());
                settled.goes_on = *tries_again
                    || settled.imported.is_late() && Start::tries_again(&starts, id, has_come)?;
                if !settled.goes_on {
                    Start::keep(&starts, id)?;
                }
            }
            Ok(GitAnswer::Settled(settled))
        }
    }
}

/// A session that is over, and how it is settled.
struct Left<'a> {
    id: &'a str,
    top: Option<&'a GitSource>,
    below: Option<&'a BytesPath>,
    no_import: Option<&'a str>,
    is_top_theirs: Option<bool>,
    review: Option<&'a ReviewedGit>,
    auto_run: &'a [String],
    place: &'a [u8],
    file_size: u64,
    bounds: Bounds,
    import: Duration,
}

fn settle(
    folders: &Folders<'_>,
    project: &Folder,
    starts: &Folder,
    left: &Left<'_>,
) -> Result<SettledGit, Fault> {
    let id = left.id;
    let Some(start) = Start::read(starts, id)? else {
        return Ok(unknown(left));
    };
    if Start::is_settled(starts, id) {
        return Ok(SettledGit {
            is_settled: true,
            ..SettledGit::default()
        });
    }
    let (is_kept, late) = (Start::is_kept(starts, id), Start::late(starts, id));
    if is_kept && late.is_none() {
        return Ok(SettledGit::default());
    }
    let places = places(folders, project, &start, left);
    let mut asked_for = Named::default();
    let (mut broken, mut unread) = (Unlooked::default(), Unlooked::default());
    if let Some(ReviewedGit {
        auto_run,
        with_auto_run,
    }) = left.review
    {
        let place = review::place_of(folders.state, name_of_review(id));
        let held = staged(folders, starts, left, &places, |import| {
            touched(import, project, (auto_run, place.as_bytes()), true)?.holding()
        });
        let held = match held {
            Err(fault) if *with_auto_run => Holding {
                may_run: Named::from_iter([unlooked(&fault)]),
                ..Holding::default()
            },
            held => held?,
        };
        asked_for = held.may_run;
        if *with_auto_run {
            unread = held.broken;
        } else if !held.held.is_empty() {
            return Ok(SettledGit {
                held: held.held,
                ..SettledGit::default()
            });
        } else {
            broken = held.broken;
        }
    }
    // What came, or was told not to come, is not looked at again for what is still to be moved.
    let is_done = is_kept || late == Some(Late::AllTaken);
    let (may_run, mut imported) = match left.review {
        _ if is_done => (Named::default(), ImportedGit::default()),
        Some(_) => (
            Named::default(),
            staged(folders, starts, left, &places, |all| {
                import(&Import {
                    unlooked: &broken,
                    ..*all
                })
            })?,
        ),
        None => staged(folders, starts, left, &places, |all| {
            let Touched {
                may_run, unlooked, ..
            } = touched(all, project, (left.auto_run, left.place), false)?;
            Ok((
                may_run,
                import(&Import {
                    unlooked: &unlooked,
                    ..*all
                })?,
            ))
        })?,
    };
    let are_all_taken = !is_kept && imported.is_whole();
    if left.review.is_some() {
        asked_for.extend(came_unread(unread, &mut imported));
        // Whatever appeared in the project meanwhile is not the session's.
        if are_all_taken {
            Start::settle(starts, id)?;
        }
        return Ok(SettledGit {
            imported,
            is_settled: are_all_taken,
            may_run: asked_for,
            ..SettledGit::default()
        });
    }
    let mut before = start.found_still(project);
    if let Some(is_theirs) = left.is_top_theirs {
        before.repositories.retain(|one| one.path.as_bytes() != TOP);
        if is_theirs {
            before.repositories.extend(find_top(project));
        } else {
            before.repositories.extend(
                start
                    .found
                    .repositories
                    .iter()
                    .filter(|one| is_pointer_at_top(one))
                    .cloned(),
            );
        }
    }
    let kept = if folders.aside.is_dir() {
        open(folders.aside)?
    } else {
        folders.kept(b"aside")?
    };
    // What was taken over is to be told all the same.
    let aside = aside(project, &before, (&kept, id), left.bounds).unwrap_or_default();
    let late = aside.is_late.then_some(if are_all_taken {
        Late::AllTaken
    } else {
        Late::SomeLeft
    });
    Start::note_late(starts, id, late)?;
    let is_settled = are_all_taken && late.is_none();
    if is_settled {
        Start::settle(starts, id)?;
    }
    if !aside.whole {
        let warned = warned_of(&closed(project, LOOK));
        imported.repositories.extend(warned.or_else(|| {
            aside
                .moved
                .is_empty()
                .then(|| top_with(UNLOOKED.to_owned()))
        }));
    }
    Ok(SettledGit {
        imported,
        aside,
        is_settled,
        may_run,
        ..SettledGit::default()
    })
}

/// Says of commits that were asked for why nobody knows what they hold.
fn unlooked(fault: &Fault) -> MayRun {
    let why = format!("its commits could not be looked through: {fault}");
    MayRun {
        path: BytesPath::from_bytes(TOP),
        why,
        when: When::ByItself,
    }
}

/// Returns what of that which nobody could read, and which was asked for, came all the same; of the
/// rest it is said that it cannot be read.
fn came_unread(unread: Unlooked, imported: &mut ImportedGit) -> Vec<MayRun> {
    let mut came = Vec::new();
    for (at, unseen) in unread {
        let Unseen::Names(names) = unseen else {
            continue;
        };
        for name in names {
            let left = imported.repositories.get_mut(at).and_then(|one| {
                one.not_imported
                    .iter_mut()
                    .find(|left| left.what == name.what)
            });
            match left {
                Some(left) => left.why = format!("{}; {}", left.why, name.why),
                None => came.push(MayRun {
                    path: name.what,
                    why: name.why,
                    when: When::ByItself,
                }),
            }
        }
    }
    came
}

/// Says which folders may hold a repository that nobody was able to look for.
pub(super) fn warned_of(closed: &[BytesPath]) -> Option<ImportedRepository> {
    let named: Vec<String> = closed
        .iter()
        .take(MOST_CLOSED)
        .map(|path| format!("`{path}`"))
        .collect();
    let more = closed
        .len()
        .checked_sub(MOST_CLOSED + 1)
        .map(|n| format!(" and {} more", n + 1))
        .unwrap_or_default();
    let note = format!(
        "{}{more} could not be looked into: if the session made a repository in there, git on your machine runs what its settings say",
        named.join(", ")
    );
    (!closed.is_empty()).then(|| top_with(note))
}

/// What is said where there was not even time to find one.
const UNLOOKED: &str =
    "not every folder of the project was looked into for repositories that this session made";

/// The repository at the top, of which there is nothing to say but this.
fn top_with(note: String) -> ImportedRepository {
    ImportedRepository {
        path: BytesPath::from_bytes(TOP),
        notes: vec![note],
        ..ImportedRepository::default()
    }
}

/// A session that is not on record was never prepared to its end, or its record is gone, and with
/// it the way to take over what it did.
fn unknown(left: &Left<'_>) -> SettledGit {
    let has_work = |folder: &Path| folder.join("HEAD").is_file();
    let why = "how the repository was when the session began is not on record any more";
    let mut repositories: Vec<ImportedRepository> = left
        .top
        .iter()
        .filter(|top| has_work(top.session.as_path()))
        .map(|top| left_out(&top.path, why))
        .collect();
    if let Some(below) = left.below {
        let folders = std::fs::read_dir(below.as_path())
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path());
        repositories.extend(
            folders
                .filter(|folder| has_work(folder))
                .map(|folder| left_out(&BytesPath::from(folder), why)),
        );
    }
    SettledGit {
        is_settled: repositories.is_empty(),
        imported: ImportedGit {
            repositories,
            ..ImportedGit::default()
        },
        ..SettledGit::default()
    }
}

type Places = BTreeMap<BytesPath, Result<(PathBuf, PathBuf), String>>;

/// Says where each repository is that the session had a folder for, or why nothing of it can be
/// taken over.
fn places(folders: &Folders<'_>, project: &Folder, start: &Start, left: &Left<'_>) -> Places {
    let place = |started: &Started| {
        let git = started.git();
        let shown = BytesPath::from_bytes(git);
        if let Some(why) = left.no_import {
            return Err(why.to_owned());
        }
        // Below the top also what is a file by now, or lies behind a link.
        if !start.is_still(project, git) || git != TOP && project.descend(git).is_err() {
            return Err(format!(
                "`{shown}` of the project is another one than when the session began"
            ));
        }
        if git != TOP {
            return Ok((
                folders.project.join(shown.as_path()),
                started.session.as_path().to_owned(),
            ));
        }
        let top = left
            .top
            .ok_or("the project has no `.git` any more that it could go to")?;
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

/// Has something done with what a session left, for which there is a folder meanwhile.
fn staged<T>(
    folders: &Folders<'_>,
    starts: &Folder,
    left: &Left<'_>,
    places: &Places,
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
        unlooked: &Unlooked::default(),
    });
    above.remove(name.as_bytes())?;
    done
}

impl Start {
    /// Returns what a session gets that goes on in its own folders. In another repository's place
    /// they are of no use.
    fn goes_on(&self, project: &Folder, sources: &[GitSource]) -> PreparedGit {
        let mut prepared = self.prepared.clone();
        let is_another = |path: &BytesPath| {
            sources
                .iter()
                .any(|source| source.path == *path && !self.is_still(project, path.as_bytes()))
        };
        for one in prepared
            .repositories
            .iter_mut()
            .filter(|one| is_another(&one.path))
        {
            one.refused = Some(GitRefusal::Replaced);
        }
        if !sources.is_empty() {
            prepared.repositories.extend(worktrees_below(&self.found));
        }
        prepared
    }
}

/// Returns what stands at the top now.
fn find_top(project: &Folder) -> impl Iterator<Item = FoundRepository> {
    find(project, LOOK)
        .repositories
        .into_iter()
        .filter(|one| one.path.as_bytes() == TOP)
}

/// A file is known by what it says, whoever put it there.
fn is_pointer_at_top(one: &FoundRepository) -> bool {
    one.path.as_bytes() == TOP && matches!(one.kind, GitKind::Pointer { .. })
}

/// Writes what leads linked worktrees to the session's folder.
fn write_pointers(sources: &[GitSource], prepared: &PreparedGit) -> Result<(), Fault> {
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

/// Names the linked worktrees in the project below its top.
fn worktrees_below(found: &FoundGit) -> impl Iterator<Item = PreparedRepository> {
    found
        .repositories
        .iter()
        .filter(|one| is_worktree_below(one))
        .map(|one| PreparedRepository::refused(&one.path, GitRefusal::WorktreeBelow))
}

/// A linked worktree in the project, of whichever repository.
fn is_worktree_below(one: &FoundRepository) -> bool {
    one.path.as_bytes() != TOP
        && matches!(&one.kind, GitKind::Pointer { to } if linked(to).is_some())
}

/// Opens a repository and the session's folder for it. That of one below the top is made; on the
/// way to the real one no link is followed.
fn open_both(project: &Folder, source: &GitSource) -> Result<(Folder, Folder), Fault> {
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

fn taken<'a>(source: &GitSource, real: &'a Folder, session: &'a Folder) -> Source<'a> {
    Source {
        path: source.path.clone(),
        real,
        worktree: source.worktree.clone(),
        session,
        session_at: source.session.clone(),
        real_in_box: source.real_in_box.clone(),
        session_in_box: source.session_in_box.clone(),
    }
}

fn open(path: &Path) -> Result<Folder, Fault> {
    use std::os::unix::ffi::OsStrExt;
    Folder::open(path).map_err(|error| failed("open", path.as_os_str().as_bytes(), &error))
}
