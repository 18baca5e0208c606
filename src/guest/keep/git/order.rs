//! Executes the host's orders about repositories.

mod places;

use std::path::Path;
use std::time::Duration;

use self::places::find_top;
use self::places::is_pointer_at_top;
use self::places::open;
use self::places::open_both;
use self::places::places;
use self::places::staged;
use self::places::worktrees_below;
use self::places::write_pointers;
use super::committed_auto_run::CommittedAutoRun;
use super::committed_auto_run::HeldCommits;
use super::committed_auto_run::committed_auto_run;
use super::find::closed;
use super::find::find;
use super::import::Import;
use super::import::UnreadContents;
use super::import::UnreadRepositories;
use super::import::import;
use super::import::left_out;
use super::new_repositories::MoveOutBounds;
use super::new_repositories::move_out_new;
use super::pending;
use super::prepare::PrepareSource;
use super::prepare::prepare;
use super::session_start::PendingMoveOut;
use super::session_start::SessionStart;
use super::session_start::check_id;
use super::untrusted_folder::UntrustedFolder;
use super::untrusted_folder::failed;
use crate::keep::review;
use podbay_wire::BytesPath;
use podbay_wire::Fault;
use podbay_wire::keep::GitAnswer;
use podbay_wire::keep::GitOrder;
use podbay_wire::keep::GitRefusal;
use podbay_wire::keep::GitSource;
use podbay_wire::keep::ImportedGit;
use podbay_wire::keep::ImportedRepository;
use podbay_wire::keep::MayRun;
use podbay_wire::keep::NamedList;
use podbay_wire::keep::PreparedGit;
use podbay_wire::keep::PreparedRepository;
use podbay_wire::keep::ReviewedGit;
use podbay_wire::keep::RunTrigger;
use podbay_wire::keep::SettledGit;
use podbay_wire::keep::name_of_review;

/// Time limits of the search for repositories, and of git for an import.
const FIND_TIME: Duration = Duration::from_secs(20);
const IMPORT_TIME: Duration = Duration::from_mins(2);

/// Most unsearched folders that are named.
const MOST_CLOSED: usize = 20;

/// The `.git` of the project itself.
const TOP: &[u8] = b".git";

/// The keeper's folders.
#[derive(Debug)]
pub struct KeeperFolders<'a> {
    pub project: &'a Path,
    /// Our own state, out of every session's reach.
    pub state: &'a Path,
    /// Where a session's repositories are moved to; into the state if it does not exist.
    pub aside: &'a Path,
    /// A scratch folder.
    pub scratch: &'a Path,
}

impl KeeperFolders<'_> {
    /// Opens a folder of the state; makes it if it is missing.
    fn kept(&self, name: &[u8]) -> Result<UntrustedFolder, Fault> {
        let state = open(self.state)?;
        state.make(name)?;
        state
            .descend(name)
            .map_err(|errno| failed("open", name, &errno.into()))
    }
}

/// Executes one order.
pub fn execute(folders: &KeeperFolders<'_>, order: &GitOrder) -> Result<GitAnswer, Fault> {
    execute_within(folders, order, MoveOutBounds::default(), IMPORT_TIME)
}

/// `bounds`: limits of what is moved out of the project; `import`: time limit of git for an import.
pub(super) fn execute_within(
    folders: &KeeperFolders<'_>,
    order: &GitOrder,
    bounds: MoveOutBounds,
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
            SessionStart::forget_settled(&starts)?;
            // Where nothing was made for it before, it may be now.
            let has_folder = |source: &GitSource| {
                open(source.session.as_path())
                    .is_ok_and(|folder| !folder.names(b"").unwrap_or_default().is_empty())
            };
            if review
                .as_ref()
                .is_some_and(|name| review::is_on_record(folders.state, name))
                && (sources.is_empty() || sources.iter().any(has_folder))
                && let Some(start) = SessionStart::read(&starts, id)?
            {
                let prepared = start.resumed_folders(&project, sources);
                write_pointers(sources, &prepared)?;
                return Ok(GitAnswer::Prepared(prepared));
            }
            // No command has run in what an earlier preparation of it made.
            SessionStart::forget(&starts, id)?;
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
            let taken: Vec<PrepareSource<'_>> = opened
                .iter()
                .map(|(source, real, session)| taken(source, real, session))
                .collect();
            let found = find(&project, FIND_TIME);
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
            let left = EndedSession {
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
                    || settled.imported.is_late()
                        && SessionStart::tries_again(&starts, id, has_come)?;
                if !settled.goes_on {
                    SessionStart::keep(&starts, id)?;
                }
            }
            Ok(GitAnswer::Settled(settled))
        }
        GitOrder::Forget {
            id,
            has_run,
            session,
        } => {
            check_id(id)?;
            let session = session.as_ref().map(BytesPath::as_path);
            let is_forgotten = !has_run || is_unused(&project, &starts, id, session)?;
            if is_forgotten {
                SessionStart::forget(&starts, id)?;
            }
            Ok(GitAnswer::Forgotten { is_forgotten })
        }
    }
}

/// Whether a session did nothing with git, and the repositories of the project are those that were
/// there when it began.
fn is_unused(
    project: &UntrustedFolder,
    starts: &UntrustedFolder,
    id: &str,
    session: Option<&Path>,
) -> Result<bool, Fault> {
    let Some(start) = SessionStart::read(starts, id)? else {
        return Ok(false);
    };
    let is_same = start.found.whole
        && find(project, FIND_TIME) == start.found
        && start.found_still(project) == start.found;
    Ok(is_same && pending::is_untouched(starts, session, id, &start)?)
}

/// A session that has ended, and how it is to be settled.
struct EndedSession<'a> {
    id: &'a str,
    top: Option<&'a GitSource>,
    below: Option<&'a BytesPath>,
    no_import: Option<&'a str>,
    is_top_theirs: Option<bool>,
    review: Option<&'a ReviewedGit>,
    auto_run: &'a [String],
    place: &'a [u8],
    file_size: u64,
    bounds: MoveOutBounds,
    import: Duration,
}

fn settle(
    folders: &KeeperFolders<'_>,
    project: &UntrustedFolder,
    starts: &UntrustedFolder,
    left: &EndedSession<'_>,
) -> Result<SettledGit, Fault> {
    let id = left.id;
    let Some(start) = SessionStart::read(starts, id)? else {
        return Ok(unknown(left));
    };
    if SessionStart::is_settled(starts, id) {
        return Ok(SettledGit {
            is_settled: true,
            ..SettledGit::default()
        });
    }
    let (is_kept, late) = (
        SessionStart::is_kept(starts, id),
        SessionStart::late(starts, id),
    );
    if is_kept && late.is_none() {
        return Ok(SettledGit::default());
    }
    let places = places(folders, project, &start, left);
    let mut asked_for = NamedList::default();
    let (mut broken, mut unread) = (UnreadRepositories::default(), UnreadRepositories::default());
    if let Some(ReviewedGit {
        auto_run,
        with_auto_run,
    }) = left.review
    {
        let place = review::place_of(folders.state, name_of_review(id));
        let held = staged(folders, starts, left, &places, |import| {
            committed_auto_run(import, project, (auto_run, place.as_bytes()), true)?.held_commits()
        });
        let held = match held {
            Err(fault) if *with_auto_run => HeldCommits {
                may_run: NamedList::from_iter([unexamined(&fault)]),
                ..HeldCommits::default()
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
    // What was imported, or refused for good, is not examined again when only repositories are
    // still to be moved out.
    let is_done = is_kept || late == Some(PendingMoveOut::AllTaken);
    let (may_run, mut imported) = match left.review {
        _ if is_done => (NamedList::default(), ImportedGit::default()),
        Some(_) => (
            NamedList::default(),
            staged(folders, starts, left, &places, |all| {
                import(&Import {
                    unexamined: &broken,
                    ..*all
                })
            })?,
        ),
        None => staged(folders, starts, left, &places, |all| {
            let CommittedAutoRun {
                may_run,
                unexamined,
                ..
            } = committed_auto_run(all, project, (left.auto_run, left.place), false)?;
            Ok((
                may_run,
                import(&Import {
                    unexamined: &unexamined,
                    ..*all
                })?,
            ))
        })?,
    };
    let are_all_taken = !is_kept && imported.is_whole();
    if left.review.is_some() {
        asked_for.extend(imported_unread(unread, &mut imported));
        // What appeared in the project meanwhile is not the session's.
        if are_all_taken {
            SessionStart::settle(starts, id)?;
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
    // The import is reported in any case.
    let aside = move_out_new(project, &before, (&kept, id), left.bounds).unwrap_or_default();
    let late = aside.is_late.then_some(if are_all_taken {
        PendingMoveOut::AllTaken
    } else {
        PendingMoveOut::SomeLeft
    });
    SessionStart::note_late(starts, id, late)?;
    let is_settled = are_all_taken && late.is_none();
    if is_settled {
        SessionStart::settle(starts, id)?;
    }
    if !aside.whole {
        let warned = warn_unsearched(&closed(project, FIND_TIME));
        imported.repositories.extend(warned.or_else(|| {
            aside
                .moved
                .is_empty()
                .then(|| top_with_note(UNLOOKED.to_owned()))
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

/// Reports requested commits whose contents could not be examined.
fn unexamined(fault: &Fault) -> MayRun {
    let why = format!("its commits could not be examined: {fault}");
    MayRun {
        path: BytesPath::from_bytes(TOP),
        why,
        when: RunTrigger::ByItself,
    }
}

/// Returns requested references that were imported unexamined; for the rest it reports that they
/// cannot be read.
fn imported_unread(unread: UnreadRepositories, imported: &mut ImportedGit) -> Vec<MayRun> {
    let mut came = Vec::new();
    for (at, unseen) in unread {
        let UnreadContents::Names(names) = unseen else {
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
                    when: RunTrigger::ByItself,
                }),
            }
        }
    }
    came
}

/// Reports folders that could not be searched for repositories.
pub(super) fn warn_unsearched(closed: &[BytesPath]) -> Option<ImportedRepository> {
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
        "{}{more} could not be searched: if the session made a repository in there, git on your \
        machine obeys its config",
        named.join(", ")
    );
    (!closed.is_empty()).then(|| top_with_note(note))
}

/// The note when there was no time to find any repository.
const UNLOOKED: &str =
    "not every folder of the project was searched for repositories that this session made";

/// A report on the top repository with only a note.
fn top_with_note(note: String) -> ImportedRepository {
    ImportedRepository {
        path: BytesPath::from_bytes(TOP),
        notes: vec![note],
        ..ImportedRepository::default()
    }
}

/// A session without a record: it was never prepared completely, or its record is lost, and with it
/// the means to import its work.
fn unknown(left: &EndedSession<'_>) -> SettledGit {
    let has_work = |folder: &Path| folder.join("HEAD").is_file();
    let why = "the record of the repository at the session's start is gone";
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

impl SessionStart {
    /// Returns the folders of a session that resumes. In a repository that was replaced they are of
    /// no use.
    fn resumed_folders(&self, project: &UntrustedFolder, sources: &[GitSource]) -> PreparedGit {
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

fn taken<'a>(
    source: &GitSource,
    real: &'a UntrustedFolder,
    session: &'a UntrustedFolder,
) -> PrepareSource<'a> {
    PrepareSource {
        path: source.path.clone(),
        real,
        worktree: source.worktree.clone(),
        session,
        session_at: source.session.clone(),
        real_in_box: source.real_in_box.clone(),
        session_in_box: source.session_in_box.clone(),
    }
}
