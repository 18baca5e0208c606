mod broken;
mod here;
mod index;
mod names;

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use super::folder::Folder;
use super::folder::failed;
use super::index::Index;
use super::left::Left;
use super::leftover::Under;
use super::record::Start;
use super::record::Started;
use super::record::check_id;
use super::refs;
use super::refs::Head;
use super::run::Git;
use super::stage;
use super::stash;
use crate::wire::BytesPath;
use crate::wire::Fault;
use crate::wire::keep::ImportedGit;
use crate::wire::keep::ImportedRepository;
use crate::wire::keep::IndexImport;
use crate::wire::keep::NotImported;

const NOTHING: &str = "0000000000000000000000000000000000000000";

/// What a session left, and where it goes.
#[derive(Debug)]
pub struct Import<'a> {
    pub id: &'a str,
    /// Where the session's start is on record.
    pub state: &'a Folder,
    /// A folder of ours, for what is needed meanwhile.
    pub scratch: &'a Path,
    /// For each `.git` of the project that was prepared the real repository and the session's folder, or why nothing is to be taken over.
    pub places: &'a BTreeMap<BytesPath, Result<(PathBuf, PathBuf), String>>,
    /// How long git may take for all of it.
    pub budget: Duration,
    /// What is to stay because nobody could look through it.
    pub(super) unlooked: &'a Unlooked,
}

/// What could not be looked through, of each repository by its number.
pub(super) type Unlooked = BTreeMap<usize, Unseen>;

/// What could not be looked through of a repository.
#[derive(Debug)]
pub(super) enum Unseen {
    /// Nothing could.
    All(Fault),
    Names(Vec<UnseenName>),
}

/// Something that a session left under a name; `what` as in [`NotImported`]. What is staged is no object.
#[derive(Debug)]
pub(super) struct UnseenName {
    pub what: BytesPath,
    pub object: String,
    pub why: String,
}

/// Brings back what a session committed, stashed and staged, as far as nobody else moved it meanwhile.
///
/// It can be killed at any time and begun again. The session's folder is only read.
pub fn import(import: &Import<'_>) -> Result<ImportedGit, Fault> {
    check_id(import.id)?;
    let Some(start) = Start::read(import.state, import.id)? else { return Ok(ImportedGit::default()) };
    let end = Instant::now() + import.budget;
    let mut imported = ImportedGit::default();
    let mut all_taken = Vec::new();
    for (at, started) in start.repositories.iter().enumerate() {
        let git = BytesPath::from_bytes(started.git());
        let unknown = || format!("where {git} is was not said");
        let place = match import.places.get(&git) {
            Some(Ok(place)) => place,
            other => {
                let why = other.and_then(|place| place.as_ref().err().cloned()).unwrap_or_else(unknown);
                imported.repositories.push(left_out(&started.path, &why));
                continue;
            }
        };
        if let Some(Unseen::All(fault)) = import.unlooked.get(&at) {
            imported.repositories.push(left_out(&started.path, &fault.to_string()));
            continue;
        }
        let index = start.index(import.state, import.id, at)?;
        let repository = match One::open(import, place, (at, index), end, started) {
            Ok(one) => one.import(),
            Err(fault) => Err(fault),
        };
        match repository {
            Ok((repository, taken)) => {
                imported.repositories.push(repository);
                all_taken.push((at, taken));
            }
            Err(fault) => imported.repositories.push(left_out(&started.path, &fault.to_string())),
        }
    }
    // It is tried again, and nothing is to come twice then. What is whole is never asked for again.
    for (at, taken) in all_taken.iter().filter(|_| !imported.is_whole()) {
        Start::note_taken(import.state, import.id, *at, &taken.now, taken.index.as_ref())?;
    }
    Ok(imported)
}

/// Says of a repository that all of it stays in the session's folder.
pub(crate) fn left_out(path: &BytesPath, why: &str) -> ImportedRepository {
    ImportedRepository {
        path: path.clone(),
        index: IndexImport::Kept,
        not_imported: vec![NotImported { what: path.clone(), why: why.to_owned() }],
        ..ImportedRepository::default()
    }
}

/// One repository on its way.
pub(super) struct One<'a> {
    pub(super) id: &'a str,
    pub(super) at: usize,
    pub(super) state: &'a Folder,
    pub(super) scratch: &'a Path,
    pub(super) started: &'a Started,
    pub(super) start_index: Option<Vec<u8>>,
    pub(super) real_path: PathBuf,
    pub(super) session_path: PathBuf,
    pub(super) real: Folder,
    pub(super) session: Folder,
    /// Below both: what a worktree has of its own.
    pub(super) private: Vec<u8>,
    pub(super) git: Git,
    pub(super) end: Instant,
    unseen: &'a [UnseenName],
}

type Bound = BTreeMap<BytesPath, String>;

/// What was taken over, as a start from which the rest goes on.
struct Taken {
    now: Started,
    index: Option<Index>,
}

/// What is in the real repository now.
#[derive(Debug, Default)]
struct Fetched {
    objects: BTreeSet<String>,
    /// The commit that the session's index was made.
    index: Option<String>,
}

/// Something to fetch, under a number.
#[derive(Debug)]
enum Tip<'a> {
    Name(&'a BytesPath),
    Stash,
    Head,
    Index,
}

impl Tip<'_> {
    fn what(&self) -> BytesPath {
        match self {
            Self::Name(name) => (*name).clone(),
            Self::Stash => BytesPath::from_bytes(stash::NAME),
            Self::Head => "HEAD".into(),
            Self::Index => "index".into(),
        }
    }
}

impl<'a> One<'a> {
    pub(super) fn open(
        import: &'a Import<'a>,
        (real, session): &'a (PathBuf, PathBuf),
        (at, start_index): (usize, Option<Vec<u8>>),
        end: Instant,
        started: &'a Started,
    ) -> Result<Self, Fault> {
        let inside = started.inside.as_path();
        // Joining nothing would add a slash.
        let join_path = |path: &Path| if started.inside.is_empty() { path.to_owned() } else { path.join(inside) };
        let open = |path: &Path| {
            let whole = Folder::open(path).map_err(|error| failed("open", b"the repository", &error))?;
            let inner = if started.inside.is_empty() { b".".as_slice() } else { started.inside.as_bytes() };
            whole.descend(inner).map_err(|errno| failed("open", inner, &errno.into()))
        };
        let folder = Folder::open(import.scratch).map_err(|error| failed("open", b"the scratch folder", &error))?;
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
            real_path,
            end,
            unseen: match import.unlooked.get(&at) {
                Some(Unseen::Names(names)) => names,
                _ => &[],
            },
        })
    }

    fn import(&self) -> Result<(ImportedRepository, Taken), Fault> {
        let under = Under { real: &self.real, private: &self.private, state: self.state, id: self.id, at: self.at };
        under.clear()?;
        self.check_head()?;
        let mut left = Left::read(&self.session, &self.private, self.started, self.start_index.as_deref())?;
        left.leave_out(self.unseen, &self.started.head);
        let mut done = ImportedRepository { path: self.started.path.clone(), ..ImportedRepository::default() };
        under.begin(left.names.keys())?;
        let fetched = self.fetch(&left, &mut done)?;
        let mut real = refs::read(&self.real)?.bound;
        let course = self.course(&left, &fetched, &real, &mut done)?;
        self.move_names(&course.names, &mut real, &mut done)?;
        let stashes = self.put_stashes(&left, &fetched, &mut real, &mut done)?;
        let index = self.move_here(&course, &left, &fetched, &mut real, &mut done)?;
        self.remove_own_names()?;
        under.done()?;
        done.moved.sort_by(|one, other| one.name.cmp(&other.name));
        let mut now = self.started.clone();
        now.refs.extend(done.moved.iter().map(|moved| (moved.name.clone(), moved.new.clone())));
        now.stashes.extend(stashes);
        now.has_index |= index.is_some();
        if let Some(head) = left.head.as_ref().filter(|_| done.head.is_some() || course.is_head_told) {
            now.head.clone_from(head);
        }
        done.not_imported.extend(left.not_imported);
        done.notes.extend(left.notes);
        Ok((done, Taken { now, index }))
    }

    /// Brings objects over, checked; returns which are there then.
    fn fetch(&self, left: &Left, done: &mut ImportedRepository) -> Result<Fetched, Fault> {
        let mut tips: Vec<(Tip<'_>, String)> = left.names.iter().map(|(name, object)| (Tip::Name(name), object.clone())).collect();
        tips.extend(left.stashes.iter().map(|stash| (Tip::Stash, stash.object.clone())));
        if let Some(head @ Head::Commit { object }) = &left.head
            && *head != self.started.head
            && !self.unseen.iter().any(|one| one.object == *object)
        {
            tips.push((Tip::Head, object.clone()));
        }
        let mut fetched = Fetched::default();
        if tips.is_empty() && left.index.is_none() {
            return Ok(fetched);
        }
        let stage = stage::make(
            self.scratch,
            &stage::Objects { real: &self.real_path, session: &self.session_path, session_folder: &self.session, real_folder: &self.real },
        )?;
        if let Some(index) = &left.index {
            match self.commit_index(&stage, index, left)? {
                Ok(object) => tips.push((Tip::Index, object)),
                Err(why) => done.not_imported.push(NotImported { what: "index".into(), why }),
            }
        }
        let named = tips.iter().enumerate().map(|(at, (_, object))| (BytesPath::from_bytes(format!("refs/import/{at}")), object.clone()));
        stage::name(self.scratch, named)?;
        let all: Vec<usize> = (0..tips.len()).collect();
        let mut git = self.git.clone();
        let mut are_all_good = self.fetch_some(&git, &stage, &all)?.is_ok();
        // Git takes nothing over where it cannot follow each name that there is.
        if !are_all_good && let Some(view) = self.without_broken_names(done)? {
            git = view;
            are_all_good = self.fetch_some(&git, &stage, &all)?.is_ok();
        }
        for (at, (tip, object)) in tips.into_iter().enumerate() {
            // One that is bad must not keep the others out.
            if !are_all_good && let Err(why) = self.fetch_some(&git, &stage, &[at])? {
                done.not_imported.push(NotImported { what: tip.what(), why });
                continue;
            }
            if matches!(tip, Tip::Index) {
                fetched.index = Some(object.clone());
            }
            fetched.objects.insert(object);
        }
        Ok(fetched)
    }

    fn fetch_some(&self, git: &Git, stage: &Path, numbers: &[usize]) -> Result<Result<(), String>, Fault> {
        let id = self.id;
        let wanted: String = numbers.iter().map(|at| format!("+refs/import/{at}:refs/podbay/{id}/{at}\n")).collect();
        let words = ["fetch", "-q", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules", "--no-prune"];
        let mut words: Vec<&std::ffi::OsStr> = words.iter().map(std::ffi::OsStr::new).collect();
        words.extend([std::ffi::OsStr::new("--stdin"), stage.as_os_str()]);
        let answer = git.run(&words, wanted.as_bytes())?;
        Ok(if answer.is_good { Ok(()) } else { Err(answer.problem()) })
    }

    /// Removes what objects were held by on their way.
    fn remove_own_names(&self) -> Result<(), Fault> {
        let own = format!("refs/podbay/{}", self.id).into_bytes();
        let mut order = Vec::new();
        for name in refs::read_below(&self.real, &own)?.bound.keys() {
            order.extend_from_slice(&[b"delete ", name.as_bytes(), b"\0\0"].concat());
        }
        if !order.is_empty() {
            let answer = self.git.run(&["update-ref", "--stdin", "-z"], &order)?;
            if !answer.is_good {
                return Err(Fault::Io { doing: "remove names of our own".into(), problem: answer.problem() });
            }
        }
        self.real.remove(&own)?;
        self.real.remove_if_empty(b"refs/podbay");
        Ok(())
    }
}
