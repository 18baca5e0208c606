//! Files that may run on the user's machine in a session's commits, which its working tree may not
//! show: on a branch that is not checked out, or in an older commit.

mod folders;
mod links;
mod tips;

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::time::Duration;
use std::time::Instant;

use self::tips::CommittedPaths;
use super::hooks::HUSKYS;
use super::hooks::work_tree_of;
use super::import::Import;
use super::import::RepositoryImport;
use super::import::UnreadContents;
use super::import::UnreadRef;
use super::import::UnreadRepositories;
use super::import::share;
use super::session_start::SessionStart;
use super::untrusted_folder::UntrustedFolder;
use crate::keep::auto_run::AutoRun;
use crate::keep::auto_run::AutoRunSources;
use crate::keep::auto_run::Ranking;
use crate::keep::bare_repository::RepositoryPart;
use crate::keep::forbidden::refusal_of_link;
use crate::root::join;
use crate::root::split;
use podbay_wire::BytesPath;
use podbay_wire::Fault;
use podbay_wire::keep::MayRun;
use podbay_wire::keep::NamedList;
use podbay_wire::keep::RunTrigger;

/// The reason for a folder that would be a repository once it is checked out.
const BARE: &str = "git treats its folder as a repository and obeys it";

/// The reason for a branch with too many paths to examine.
const UNKNOWN: &str = "it holds too much to examine";
const LATE: &str = "there was no time left to examine it";

/// The reason for one that git fails to read. A session borrows the objects that existed when it
/// began.
const BROKEN: &str = "it cannot be read; if its parents are gone from the repository, such as by \
    `git gc`, it is imported when they are there again";

/// Time for examining all references of a repository's session together, and for a single one where
/// that was too short: a few trees, each named ten times in the next, are a page of objects and
/// more paths than can be listed.
const TOGETHER: Duration = Duration::from_secs(8);
const ALONE: Duration = Duration::from_secs(4);

/// The number of parts that a failed group is divided into, so that one among very many is found
/// soon.
const PARTS: usize = 16;

/// The reason for a link whose target cannot be read.
const UNREAD: &str = "a link whose target cannot be read";

/// Longest file that git obeys which is compared with its committed versions, in bytes, and most
/// references at the start that it is compared with.
const MAX_OBEYED: u64 = 1 << 20;
const MAX_STARTS: usize = 50;

/// Paths that git obeys, and the content of the user's files there.
type ObeyedFiles<'o> = (
    &'o dyn Fn(&BytesPath) -> bool,
    &'o dyn Fn(&BytesPath) -> Option<Vec<u8>>,
);

/// The result of the examination.
#[derive(Debug, Default)]
pub(super) struct CommittedAutoRun {
    pub(super) may_run: NamedList<MayRun>,
    /// Those that run without being asked for.
    by_itself: NamedList<MayRun>,
    pub(super) unexamined: UnreadRepositories,
}

/// What holds a session's commits back.
#[derive(Debug, Default)]
pub(super) struct HeldCommits {
    /// Files that run without being asked for, and what could not be examined.
    pub(super) held: NamedList<MayRun>,
    /// All files that may run, and what could not be examined.
    pub(super) may_run: NamedList<MayRun>,
    /// What cannot be imported at all.
    pub(super) broken: UnreadRepositories,
}

/// Finds each such file that is new or changed in a commit, a stash or the index of a session;
/// `patterns` are the user's, `place` is the path of the project on their machine. Unless
/// `all_may_come`, changes of a file that git obeys, which is read-only in the sandbox, count as
/// not examined: a command must not change such a file by a commit either.
pub(super) fn committed_auto_run(
    import: &Import<'_>,
    project: &UntrustedFolder,
    (patterns, place): (&[String], &[u8]),
    all_may_come: bool,
) -> Result<CommittedAutoRun, Fault> {
    let mut touched = CommittedAutoRun::default();
    let Some(start) = SessionStart::read(import.state, import.id)? else {
        return Ok(touched);
    };
    let auto_run = AutoRun::of(
        project,
        AutoRunSources {
            patterns,
            place,
            obeyed: &start.prepared.obeyed.said,
        },
    );
    let auto_run = auto_run.map_err(|error| Fault::Invalid {
        field: "sandbox.auto_run".to_owned(),
        problem: error.to_string(),
    })?;
    let end = Instant::now() + import.budget;
    let (mut foremost, mut by_itself) = (Ranking::default(), Ranking::default());
    let n_all = start.repositories.len();
    for (at, started) in start.repositories.iter().enumerate() {
        // Paths in a commit are relative to its working tree.
        let tree = work_tree_of(project, place, started.path.as_bytes()).unwrap_or_default();
        let git = BytesPath::from_bytes(started.git());
        // Nothing is imported into a repository that is refused.
        let Some(Ok(place)) = import.places.get(&git) else {
            continue;
        };
        let until = share(end, n_all - at);
        let changed = start.index(import.state, import.id, at).and_then(|index| {
            let one = RepositoryImport::open(import, place, (at, index), until, started)?;
            let obeyed = if all_may_come {
                &[][..]
            } else {
                &start.prepared.obeyed.paths
            };
            let full = |path: &BytesPath| join(&tree, path.as_bytes());
            let is_obeyed = |path: &BytesPath| {
                obeyed
                    .iter()
                    .any(|kept| is_obeyed_by(&full(path), kept.as_bytes()))
            };
            let own = |path: &BytesPath| project.read(&full(path), MAX_OBEYED).ok().flatten();
            one.changed(
                |folder| parts_in(project, &join(&tree, folder)),
                (&is_obeyed, &own),
            )
        });
        let CommittedPaths {
            paths,
            links,
            made,
            unseen,
        } = match changed {
            Ok(changed) => changed,
            Err(fault) => {
                touched.unexamined.insert(
                    at,
                    UnreadContents::All {
                        fault,
                        is_late: Instant::now() >= until,
                    },
                );
                continue;
            }
        };
        let mut straying: BTreeMap<BytesPath, &str> = BTreeMap::new();
        for (path, target) in links {
            let full = join(&tree, path.as_bytes());
            let why = target.map_or(Some(UNREAD), |target| refusal_of_link(&full, &target));
            straying.extend(why.map(|why| (path, why)));
        }
        for path in paths {
            let full = BytesPath::from_bytes(join(&tree, path.as_bytes()));
            let runs = auto_run.runs_at(&full).map(|runs| runs.of(&full));
            let gits = || {
                let why = if made.has(path.as_bytes()) {
                    Some(BARE)
                } else {
                    straying.get(&path).copied()
                };
                why.map(|why| MayRun {
                    path: full.clone(),
                    why: why.to_owned(),
                    when: RunTrigger::ByItself,
                })
            };
            let sooner = runs
                .clone()
                .filter(|runs| runs.when == RunTrigger::ByItself)
                .or_else(gits);
            let is_there = project.kind(full.as_bytes()).is_some();
            if let Some(file) = &sooner {
                by_itself.add(file.clone(), is_there);
            }
            if let Some(file) = sooner.or(runs) {
                foremost.add(file, is_there);
            }
        }
        if !unseen.is_empty() {
            touched.unexamined.insert(at, UnreadContents::Names(unseen));
        }
    }
    (touched.may_run, touched.by_itself) = (foremost.named(), by_itself.named());
    Ok(touched)
}

impl CommittedAutoRun {
    /// Returns what holds the commits back.
    pub(super) fn held_commits(self) -> Result<HeldCommits, Fault> {
        let Self {
            by_itself: mut held,
            mut may_run,
            ..
        } = self;
        let mut broken = UnreadRepositories::new();
        for (at, unseen) in self.unexamined {
            let names = match unseen {
                UnreadContents::All { fault, .. } => return Err(fault),
                UnreadContents::Names(names) => names,
            };
            let (lost, names): (Vec<UnreadRef>, Vec<UnreadRef>) =
                names.into_iter().partition(|one| one.is_broken);
            for one in names {
                let file = MayRun {
                    path: one.what,
                    why: one.why,
                    when: RunTrigger::ByItself,
                };
                held.add(file.clone());
                may_run.add(file);
            }
            if !lost.is_empty() {
                broken.insert(at, UnreadContents::Names(lost));
            }
        }
        Ok(HeldCommits {
            held,
            may_run,
            broken,
        })
    }
}

fn broken(fault: &Fault) -> String {
    format!("{BROKEN} ({fault})")
}

/// A path with the blob of a commit or of the index there, and at the start.
type Blob = (BytesPath, String);

/// Returns why a commit or the index stays in the session.
fn obeyed_reason(path: &BytesPath) -> String {
    format!(
        "it changes {path}, which git on your machine obeys and which is read-only in the sandbox"
    )
}

/// Returns whether git obeys a file of this path because it obeys `kept`: the same path, one below
/// it, or one that replaces a folder above. The hooks that husky runs lie beside its folder of
/// hooks.
fn is_obeyed_by(path: &[u8], kept: &[u8]) -> bool {
    let is_within = |path: &[u8], folder: &[u8]| {
        path.strip_prefix(folder)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    };
    let (above, name) = split(kept);
    is_within(path, kept)
        || is_within(kept, path)
        || name == HUSKYS && !above.is_empty() && is_within(path, above)
}

fn parts_in(project: &UntrustedFolder, folder: &[u8]) -> BTreeSet<RepositoryPart> {
    project
        .names(folder)
        .unwrap_or_default()
        .iter()
        .filter_map(|(name, _)| RepositoryPart::of(name))
        .collect()
}
