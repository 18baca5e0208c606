mod broken_refs;
mod checked_out;
mod fetch;
mod incoming_packs;
mod index;
mod oversized_objects;
mod ref_updates;

use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use self::fetch::Fetched;
pub(super) use self::incoming_packs::place as place_of_incoming;
use self::ref_updates::RefUpdates;
use super::git_command::Git;
use super::import_marker::ImportMarker;
use super::index::Index;
use super::index_merge::LOCKED;
use super::refs;
use super::refs::Head;
use super::session_changes::SessionChanges;
use super::session_start::SessionStart;
use super::session_start::StartedRepository;
use super::session_start::check_id;
use super::untrusted_folder::UntrustedFolder;
use super::untrusted_folder::failed;
use crate::root::join;
use podbay_wire::BytesPath;
use podbay_wire::Fault;
use podbay_wire::keep::ImportedGit;
use podbay_wire::keep::ImportedRepository;
use podbay_wire::keep::IndexImport;
use podbay_wire::keep::MovedRef;
use podbay_wire::keep::NotImported;

/// Extra time, when the time for all is over, for git to finish moving references that it has
/// started to move.
const STEADY: Duration = Duration::from_secs(30);

/// Messages of a full disk: git's, ours, and git's where only the user's file system is full.
const NO_ROOM: [&str; 3] = [
    "No space left on device",
    "no space left on the device",
    "Disk quota exceeded",
];

const NOTHING: &str = "0000000000000000000000000000000000000000";

/// The input of an import: the session's folders, and the real repositories.
#[derive(Debug)]
pub struct Import<'a> {
    pub id: &'a str,
    /// Where the session's start is recorded.
    pub state: &'a UntrustedFolder,
    /// A scratch folder of ours.
    pub scratch: &'a Path,
    /// For each prepared `.git` of the project the real repository and the session's folder, or why
    /// nothing is to be imported.
    pub places: &'a BTreeMap<BytesPath, Result<(PathBuf, PathBuf), String>>,
    /// Time limit of git for all of it.
    pub budget: Duration,
    /// Size limit of a file.
    pub file_size: u64,
    /// What is to stay because it could not be examined.
    pub(super) unexamined: &'a UnreadRepositories,
}

/// What could not be examined, by the number of the repository.
pub(super) type UnreadRepositories = BTreeMap<usize, UnreadContents>;

/// What could not be examined in a repository.
#[derive(Debug)]
pub(super) enum UnreadContents {
    /// Everything; `is_late`: for lack of time.
    All {
        fault: Fault,
        is_late: bool,
    },
    Names(Vec<UnreadRef>),
}

/// A reference of the session; `what` as in [`NotImported`]. What is staged is no object.
#[derive(Debug)]
pub(super) struct UnreadRef {
    pub what: BytesPath,
    pub object: String,
    pub why: String,
    /// Whether only time was lacking.
    pub is_late: bool,
    /// Whether git failed to read it: it can never be imported then.
    pub is_broken: bool,
}

/// Imports what a session committed, stashed and staged, as far as the user has not moved it
/// meanwhile and there is time: what is checked out first.
///
/// It can be killed at any time and started again. The session's folder is only read.
pub fn import(import: &Import<'_>) -> Result<ImportedGit, Fault> {
    check_id(import.id)?;
    let Some(start) = SessionStart::read(import.state, import.id)? else {
        return Ok(ImportedGit::default());
    };
    let end = Instant::now() + import.budget;
    let mut imported = ImportedGit::default();
    let mut all_taken = Vec::new();
    for (at, started) in start.repositories.iter().enumerate() {
        let git = BytesPath::from_bytes(started.git());
        let unknown = || format!("no path was given for {git}");
        let place = match import.places.get(&git) {
            Some(Ok(place)) => place,
            other => {
                let why = other
                    .and_then(|place| place.as_ref().err().cloned())
                    .unwrap_or_else(unknown);
                imported.repositories.push(left_out(&started.path, &why));
                continue;
            }
        };
        if let Some(UnreadContents::All { fault, is_late }) = import.unexamined.get(&at) {
            imported.repositories.push(ImportedRepository {
                is_late: *is_late,
                ..left_out(&started.path, &fault.to_string())
            });
            continue;
        }
        let index = start.index(import.state, import.id, at)?;
        let mut is_late = false;
        let repository =
            RepositoryImport::open(import, place, (at, index), end, started).and_then(|one| {
                let repository = one.import(share(end, start.repositories.len() - at));
                is_late = one.git.is_late();
                repository
            });
        imported.repositories.push(match repository {
            Ok((repository, taken)) => {
                all_taken.push((at, taken));
                repository
            }
            Err(fault) => ImportedRepository {
                is_late,
                ..left_out(&started.path, &fault.to_string())
            },
        });
    }
    for one in &mut imported.repositories {
        // Another git releases its locks sooner or later.
        let passes = |one: &NotImported| {
            NO_ROOM
                .iter()
                .chain([&LOCKED])
                .any(|words| one.why.contains(words))
        };
        one.is_late |= one.not_imported.iter().any(passes);
    }
    // It is tried again, and nothing must be imported twice then. A complete import is not
    // repeated.
    for (at, taken) in all_taken.iter().filter(|_| !imported.is_whole()) {
        SessionStart::note_taken(
            import.state,
            import.id,
            *at,
            &taken.now,
            taken.index.as_ref(),
        )?;
    }
    Ok(imported)
}

/// Returns the deadline for one of `n` parts, so that the others get as much time.
pub(super) fn share(end: Instant, n: usize) -> Instant {
    let now = Instant::now();
    now + end.saturating_duration_since(now) / u32::try_from(n).unwrap_or(u32::MAX).max(1)
}

/// Reports that all of a repository stays in the session's folder.
pub(crate) fn left_out(path: &BytesPath, why: &str) -> ImportedRepository {
    ImportedRepository {
        path: path.clone(),
        index: IndexImport::Kept,
        not_imported: vec![NotImported {
            what: path.clone(),
            why: why.to_owned(),
        }],
        ..ImportedRepository::default()
    }
}

/// The import of one repository.
pub(super) struct RepositoryImport<'a> {
    pub(super) id: &'a str,
    pub(super) at: usize,
    pub(super) state: &'a UntrustedFolder,
    pub(super) scratch: &'a Path,
    pub(super) started: &'a StartedRepository,
    pub(super) start_index: Option<Vec<u8>>,
    pub(super) real_path: PathBuf,
    pub(super) session_path: PathBuf,
    pub(super) real: UntrustedFolder,
    pub(super) session: UntrustedFolder,
    /// Below both: the private folder of a worktree.
    pub(super) private: Vec<u8>,
    pub(super) git: Git,
    /// Git with more time for moving references: a started move is finished, however late, since it
    /// would leave its locks behind.
    steady: Git,
    pub(super) end: Instant,
    file_size: u64,
    unseen: &'a [UnreadRef],
}

type RefTargets = BTreeMap<BytesPath, String>;

/// What was imported, as a new start for the rest.
pub(super) struct ImportedState {
    pub(super) now: StartedRepository,
    pub(super) index: Option<Index>,
}

impl<'a> RepositoryImport<'a> {
    pub(super) fn open(
        import: &'a Import<'a>,
        (real, session): &'a (PathBuf, PathBuf),
        (at, start_index): (usize, Option<Vec<u8>>),
        end: Instant,
        started: &'a StartedRepository,
    ) -> Result<Self, Fault> {
        let inside = started.inside.as_path();
        // Joining an empty path would add a slash.
        let join_path = |path: &Path| {
            if started.inside.is_empty() {
                path.to_owned()
            } else {
                path.join(inside)
            }
        };
        let open = |path: &Path| {
            let whole = UntrustedFolder::open(path)
                .map_err(|error| failed("open", b"the repository", &error))?;
            let inner = if started.inside.is_empty() {
                b".".as_slice()
            } else {
                started.inside.as_bytes()
            };
            whole
                .descend(inner)
                .map_err(|errno| failed("open", inner, &errno.into()))
        };
        let folder = UntrustedFolder::open(import.scratch)
            .map_err(|error| failed("open", b"the scratch folder", &error))?;
        folder.make(b"empty")?;
        let real_path = join_path(real);
        Ok(Self {
            id: import.id,
            at,
            state: import.state,
            scratch: import.scratch,
            started,
            start_index,
            real: open(real)?,
            session: open(session)?,
            session_path: join_path(session),
            private: started.private(),
            git: Git::new(&real_path, &import.scratch.join("empty"), end),
            steady: Git::new(
                &real_path,
                &import.scratch.join("empty"),
                end.max(Instant::now()) + STEADY,
            ),
            real_path,
            end,
            file_size: import.file_size,
            unseen: match import.unexamined.get(&at) {
                Some(UnreadContents::Names(names)) => names,
                _ => &[],
            },
        })
    }

    /// `share`: the deadline for what is not checked out.
    pub(super) fn import(
        &self,
        share: Instant,
    ) -> Result<(ImportedRepository, ImportedState), Fault> {
        let under = ImportMarker {
            real: &self.real,
            private: &self.private,
            state: self.state,
            id: self.id,
            at: self.at,
        };
        under.clear()?;
        let imported = self.import_in(&under, share);
        let tidied = self.remove_own_refs(&under);
        let (mut done, taken) = imported?;
        match tidied {
            Ok(()) => under.done()?,
            Err(fault) => {
                done.is_late = true;
                done.not_imported.push(NotImported {
                    what: BytesPath::from_bytes(self.own_refs()),
                    why: fault.to_string(),
                });
            }
        }
        Ok((done, taken))
    }

    fn import_in(
        &self,
        under: &ImportMarker<'_>,
        share: Instant,
    ) -> Result<(ImportedRepository, ImportedState), Fault> {
        self.check_head()?;
        let mut left = SessionChanges::read(
            &self.session,
            &self.private,
            self.id,
            self.started,
            self.start_index.as_deref(),
        )?;
        left.leave_out(self.unseen, &self.started.head);
        let too_large = self.too_large(&left)?;
        left.leave_out(&too_large, &self.started.head);
        let is_late = self.unseen.iter().any(|one| one.is_late);
        let mut done = ImportedRepository {
            path: self.started.path.clone(),
            is_late,
            ..ImportedRepository::default()
        };
        under.begin(left.names.keys())?;
        let (first, rest) = self.in_order(&left)?;
        let mut staging = self.staging(&left)?;
        let mut fetched = Fetched::default();
        if let Some(staging) = &mut staging {
            self.fetch_first(staging, &first, &left, &mut fetched, &mut done)?;
        }
        let mut real = refs::read(&self.real)?.bound;
        let mut plan = self.plan((&left, &first), &fetched, &real, &mut done)?;
        self.move_names(&plan.names, &mut real, &mut done)?;
        plan.keep_without_branch(&left, &real, &mut done);
        let index = self.move_here(&plan, &left, &fetched, &mut real, &mut done)?;
        let mut stashes = Vec::new();
        if let Some(staging) = &mut staging {
            stashes = self.import_rest(
                staging,
                (&left, &rest),
                fetched,
                &mut real,
                &mut done,
                share,
            );
        }
        // Not all of very many are named: what is checked out is, and then what existed before.
        let place = |moved: &MovedRef| (!first.contains_key(&&moved.name), moved.old.is_none());
        done.moved
            .sort_by(|one, other| (place(one), &one.name).cmp(&(place(other), &other.name)));
        self.note_lost_commits(&mut done);
        let mut now = self.started.clone();
        now.refs.extend(
            done.moved
                .iter()
                .map(|moved| (moved.name.clone(), moved.new.clone())),
        );
        now.stashes.extend(stashes);
        now.has_index |= index.is_some();
        if let Some(head) = left
            .head
            .as_ref()
            .filter(|_| done.head.is_some() || plan.is_head_told)
        {
            now.head.clone_from(head);
        }
        done.not_imported.extend(left.not_imported);
        done.notes.extend(left.notes);
        Ok((done, ImportedState { now, index }))
    }

    /// Returns the references that concern what is checked out, here or in the session, and all
    /// others.
    pub(super) fn in_order<'l>(
        &self,
        left: &'l SessionChanges,
    ) -> Result<(RefUpdates<'l>, RefUpdates<'l>), Fault> {
        let here = Head::read(&self.real, &join(&self.private, b"HEAD"))?;
        let heads = [here.as_ref(), Some(&self.started.head), left.head.as_ref()];
        let is_first = |name: &BytesPath| {
            heads
                .iter()
                .flatten()
                .any(|head| matches!(head, Head::Branch { name: branch } if branch == name))
        };
        Ok(left.names.iter().partition(|(name, _)| is_first(name)))
    }

    /// The prefix of the references that hold objects during the import.
    fn own_refs(&self) -> Vec<u8> {
        format!("refs/podbay/{}", self.id).into_bytes()
    }

    /// Removes the references that held objects during the import.
    fn remove_own_refs(&self, under: &ImportMarker<'_>) -> Result<(), Fault> {
        let own = self.own_refs();
        // Locks of a git that was killed because its time was over.
        under.clear_own()?;
        let mut order = Vec::new();
        for name in refs::read_below(&self.real, &own)?.bound.keys() {
            order.extend_from_slice(&[b"delete ", name.as_bytes(), b"\0\0"].concat());
        }
        if !order.is_empty() {
            let answer = self.steady.run(&["update-ref", "--stdin", "-z"], &order)?;
            if !answer.is_good {
                return Err(Fault::Io {
                    doing: "remove names of our own".into(),
                    problem: answer.problem(),
                });
            }
        }
        self.real.remove(&own)?;
        self.real.remove_if_empty(b"refs/podbay");
        Ok(())
    }
}
