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
use crate::wire::BytesPath;
use crate::wire::Fault;
use crate::wire::keep::AsideGit;
use crate::wire::keep::FoundRepository;
use crate::wire::keep::GitAnswer;
use crate::wire::keep::GitKind;
use crate::wire::keep::GitOrder;
use crate::wire::keep::GitSource;
use crate::wire::keep::ImportedGit;
use crate::wire::keep::ImportedRepository;
use crate::wire::keep::IndexImport;
use crate::wire::keep::NotImported;
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
        GitOrder::Prepare { id, sources, hidden, identity } => {
            check_id(id)?;
            Start::forget_settled(&starts)?;
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
        GitOrder::Settle { id, sources, no_import, tries_again, is_top_theirs } => {
            let settled = settle(folders, &project, &starts, (id, sources), no_import.as_deref(), *is_top_theirs)?;
            if !settled.is_settled && !tries_again {
                Start::keep(&starts, id)?;
            }
            Ok(GitAnswer::Settled(settled))
        }
    }
}

fn settle(
    folders: &Folders<'_>,
    project: &Folder,
    starts: &Folder,
    (id, sources): (&str, &[GitSource]),
    no_import: Option<&str>,
    is_top_theirs: Option<bool>,
) -> Result<SettledGit, Fault> {
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
    let imported = match refused {
        None => take_over(folders, starts, id, sources)?,
        Some(why) => ImportedGit { repositories: start.repositories.iter().map(|started| left_out(&started.path, &why)).collect() },
    };
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
    let is_settled = imported.is_whole();
    if is_settled {
        Start::settle(starts, id)?;
    }
    Ok(SettledGit { imported, aside, is_settled })
}

/// A session that is not on record was never prepared to its end, or its record is gone, and with it the way to take over what it did.
fn unknown(sources: &[GitSource]) -> SettledGit {
    let has_work = |source: &&GitSource| source.session.as_path().join("HEAD").is_file();
    let why = "how the repository was when the session began is not on record any more";
    let repositories: Vec<ImportedRepository> = sources.iter().filter(has_work).map(|source| left_out(&source.path, why)).collect();
    SettledGit { is_settled: repositories.is_empty(), imported: ImportedGit { repositories }, ..SettledGit::default() }
}

fn take_over(folders: &Folders<'_>, starts: &Folder, id: &str, sources: &[GitSource]) -> Result<ImportedGit, Fault> {
    let scratch = folders.scratch.join(format!("podbay-git-{id}"));
    let above = open(folders.scratch)?;
    let name = format!("podbay-git-{id}");
    above.make(name.as_bytes())?;
    let places: Vec<(PathBuf, PathBuf)> =
        sources.iter().map(|source| (source.real.as_path().to_owned(), source.session.as_path().to_owned())).collect();
    let imported = import(&Import { id, state: starts, scratch: &scratch, places: &places, budget: IMPORT });
    above.remove(name.as_bytes())?;
    imported
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::sample::Sample;
    use super::super::sample::run_git;
    use super::*;

    /// A project, and beside it what the keeper of its session has.
    struct Case {
        sample: Sample,
    }

    impl Case {
        fn of(sample: Sample) -> Self {
            for name in ["state", "aside", "scratch", "session"] {
                fs::create_dir(sample.beside(name)).expect("made");
            }
            Self { sample }
        }

        fn order(&self, order: &GitOrder) -> GitAnswer {
            let at = |name: &str| self.sample.beside(name);
            let (project, state, aside, scratch) = (self.sample.path(""), at("state"), at("aside"), at("scratch"));
            carry_out(&Folders { project: &project, state: &state, aside: &aside, scratch: &scratch }, order).expect("done")
        }

        fn sources(&self) -> Vec<GitSource> {
            let real = BytesPath::from(self.sample.path(".git"));
            let session = BytesPath::from(self.sample.beside("session"));
            let (real_in_box, session_in_box) = (real.clone(), session.clone());
            vec![GitSource { path: ".git".into(), real, worktree: None, session, real_in_box, session_in_box }]
        }

        fn prepare(&self) {
            let order = GitOrder::Prepare { id: "s-1".to_owned(), sources: self.sources(), hidden: Vec::new(), identity: None };
            let GitAnswer::Prepared(prepared) = self.order(&order) else { panic!("another answer") };
            assert_eq!(prepared.repositories[0].refused, None);
        }

        /// Commits as a command in the box does.
        fn commit(&self, path: &str) {
            self.sample.write(path, "1");
            let folder = format!("--git-dir={}", self.sample.beside("session").display());
            for words in [vec!["add", path], vec!["commit", "-q", "-m", path]] {
                let (text, is_good) = run_git(&self.sample.path(""), &[vec![folder.as_str(), "--work-tree=."], words].concat());
                assert!(is_good, "{text}");
            }
        }

        fn settle(&self, no_import: Option<&str>, is_top_theirs: Option<bool>) -> SettledGit {
            let no_import = no_import.map(str::to_owned);
            let order = GitOrder::Settle { id: "s-1".to_owned(), sources: self.sources(), no_import, tries_again: false, is_top_theirs };
            let GitAnswer::Settled(settled) = self.order(&order) else { panic!("another answer") };
            settled
        }

        fn subjects(&self) -> String {
            self.sample.git(&["log", "--format=%s"])
        }
    }

    fn names(folder: &Path) -> usize {
        fs::read_dir(folder).expect("a folder").count()
    }

    fn committed() -> Sample {
        let sample = Sample::new();
        sample.commit("a", "1");
        sample
    }

    #[test]
    fn what_was_committed_is_taken_over_once_and_nothing_of_it_stays() {
        let case = Case::of(committed());
        case.prepare();
        // Somebody else was made to wait meanwhile, and it is begun anew.
        case.prepare();
        case.commit("b");
        case.sample.git(&["init", "-q", "new"]);
        assert_eq!(case.subjects(), "a\n");
        let settled = case.settle(None, Some(true));
        assert!(settled.is_settled && settled.aside.moved.len() == 1, "{settled:?}");
        assert_eq!(settled.imported.repositories[0].moved.len(), 1);
        assert_eq!(case.subjects(), "b\na\n");
        assert!(!case.sample.path("new/.git").exists() && names(&case.sample.beside("aside")) == 1);
        assert_eq!(names(&case.sample.beside("scratch")), 0);
        assert_eq!(case.settle(None, None), SettledGit { is_settled: true, ..SettledGit::default() });
        // Its record goes with the next one's preparation, and without a record nobody says that there is nothing.
        let order = GitOrder::Prepare { id: "s-2".to_owned(), sources: Vec::new(), hidden: Vec::new(), identity: None };
        case.order(&order);
        assert_eq!(names(&case.sample.beside("state/git")), 1);
        let unknown = case.settle(None, None);
        assert!(!unknown.is_settled && unknown.imported.repositories[0].not_imported[0].why.contains("not on record"), "{unknown:?}");
    }

    #[test]
    fn what_cannot_be_taken_over_is_told_once_and_stays() {
        let case = Case::of(committed());
        case.prepare();
        case.commit("b");
        let settled = case.settle(Some("no git here"), None);
        assert_eq!(settled.imported.repositories[0].not_imported[0].why, "no git here");
        assert!(!settled.is_settled);
        assert_eq!(case.settle(None, None), SettledGit::default());
        assert_eq!(case.subjects(), "a\n");
    }

    #[test]
    fn what_could_not_be_taken_over_for_now_is_when_it_is_tried_again() {
        let case = Case::of(committed());
        case.prepare();
        case.commit("b");
        let (id, no_import) = ("s-1".to_owned(), Some("no image".to_owned()));
        let order = GitOrder::Settle { id, sources: case.sources(), no_import, tries_again: true, is_top_theirs: None };
        for _ in 0..2 {
            let GitAnswer::Settled(settled) = case.order(&order) else { panic!("another answer") };
            assert!(!settled.is_settled && settled.imported.repositories[0].not_imported[0].why == "no image", "{settled:?}");
        }
        assert!(case.settle(None, None).is_settled);
        assert_eq!(case.subjects(), "b\na\n");
    }

    #[test]
    fn nothing_goes_to_a_repository_that_took_the_place_of_the_first() {
        for is_top_theirs in [None, Some(false), Some(true)] {
            let case = Case::of(committed());
            case.prepare();
            case.commit("b");
            fs::remove_dir_all(case.sample.path(".git")).expect("removed");
            case.sample.git(&["init", "-q"]);
            let settled = case.settle(None, is_top_theirs);
            assert!(settled.imported.repositories[0].not_imported[0].why.contains("another one"), "{settled:?}");
            let is_there = case.sample.path(".git").exists();
            assert_eq!((is_there, settled.aside.moved.len()), if is_top_theirs == Some(true) { (true, 0) } else { (false, 1) });
        }
    }
}
