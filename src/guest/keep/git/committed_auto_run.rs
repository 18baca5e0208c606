//! Files that may run on the user's machine in a session's commits, which its working tree may not
//! show: on a branch that is not checked out, or in an older commit.

mod folders;
mod links;

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;
use std::time::Instant;

use self::links::ABBREV;
use self::links::Link;
use self::links::listed;
use super::git_command::Git;
use super::git_command::MAX_LISTED;
use super::hooks::HUSKYS;
use super::hooks::work_tree_of;
use super::import::Import;
use super::import::RepositoryImport;
use super::import::UnreadContents;
use super::import::UnreadRef;
use super::import::UnreadRepositories;
use super::import::share;
use super::index::Index;
use super::index::IndexEntry;
use super::refs::Head;
use super::session_changes::SessionChanges;
use super::session_start::SessionStart;
use super::staging;
use super::stash;
use super::untrusted_folder::UntrustedFolder;
use crate::keep::auto_run::AutoRun;
use crate::keep::auto_run::AutoRunSources;
use crate::keep::auto_run::Ranking;
use crate::keep::bare_repository::NewRepositoryParts;
use crate::keep::bare_repository::RepositoryPart;
use crate::keep::bare_repository::is_bare;
use crate::keep::bare_repository::parts_of;
use crate::keep::forbidden::refusal_of_link;
use crate::root::join;
use crate::root::split;
use podbay_wire::BytesPath;
use podbay_wire::Fault;
use podbay_wire::keep::MayRun;
use podbay_wire::keep::NamedList;
use podbay_wire::keep::RunTrigger;

/// The reason for a folder that would be a repository once it is checked out.
const BARE: &str = "git takes the folder that it is in for a repository and obeys it";

/// The reason for a branch with too many paths to examine.
const UNKNOWN: &str = "it holds more than can be looked through";
const LATE: &str = "there was no more time to look through it";

/// The reason for one that git fails to read. A session borrows the objects that existed when it
/// began.
const BROKEN: &str = "it cannot be read; if what it stands on is gone from the repository, such as by `git gc`, it comes when that is there again";

/// Time for examining all references of a repository's session together, and for a single one where
/// that was too short: a few trees, each named ten times in the next, are a page of objects and
/// more paths than can be listed.
const TOGETHER: Duration = Duration::from_secs(8);
const ALONE: Duration = Duration::from_secs(4);

/// The number of parts that a failed group is divided into, so that one among very many is found
/// soon.
const PARTS: usize = 16;

/// The reason for a link whose target cannot be read.
const UNREAD: &str = "a link, and where it leads cannot be read";

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
    pub(super) unlooked: UnreadRepositories,
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
                touched.unlooked.insert(
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
            touched.unlooked.insert(at, UnreadContents::Names(unseen));
        }
    }
    (touched.may_run, touched.by_itself) = (foremost.named(), by_itself.named());
    Ok(touched)
}

impl CommittedAutoRun {
    /// Returns what holds the commits back.
    pub(super) fn holding(self) -> Result<HeldCommits, Fault> {
        let Self {
            by_itself: mut held,
            mut may_run,
            ..
        } = self;
        let mut broken = UnreadRepositories::new();
        for (at, unseen) in self.unlooked {
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
fn obeyed_by_git(path: &BytesPath) -> String {
    format!(
        "it changes {path}, which git on your machine obeys and nothing in the sandbox may change"
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

/// Paths that a session's commits and its index change.
#[derive(Default)]
struct CommittedPaths {
    paths: BTreeSet<BytesPath>,
    /// Those that are links, with their targets.
    links: Vec<(BytesPath, Option<Vec<u8>>)>,
    /// Those that would turn folders into repositories.
    made: NewRepositoryParts,
    /// References that could not be examined.
    unseen: Vec<UnreadRef>,
}

/// The contents of some tips.
#[derive(Default)]
struct TipContents {
    paths: BTreeSet<BytesPath>,
    links: BTreeSet<Link>,
    /// The commits among them, and the trees, which git can reference as well, each with the number
    /// of its tip.
    trees: Vec<(usize, String)>,
}

/// A tip that could not be examined.
struct UnreadTip {
    tip: usize,
    why: String,
    is_late: bool,
    is_broken: bool,
}

impl RepositoryImport<'_> {
    /// Returns every path that the session's own commits change, or its index does. `here` returns
    /// the content of the user's working tree, `obeyed` are paths that no import may change, except
    /// to what the user has.
    fn changed(
        &self,
        here: impl Fn(&[u8]) -> BTreeSet<RepositoryPart>,
        obeyed: ObeyedFiles<'_>,
    ) -> Result<CommittedPaths, Fault> {
        let (is_obeyed, _) = obeyed;
        let mut staged: Vec<Blob> = Vec::new();
        let left = SessionChanges::read(
            &self.session,
            &self.private,
            self.id,
            self.started,
            self.start_index.as_deref(),
        )?;
        let mut changed = CommittedPaths::default();
        let mut links: BTreeSet<Link> = BTreeSet::new();
        if let Some(index) = &left.index {
            let start = self
                .start_index
                .as_deref()
                .and_then(|bytes| Index::parse(bytes).ok())
                .unwrap_or_default();
            let start: BTreeMap<&[u8], &IndexEntry> = start
                .entries
                .iter()
                .map(|entry| (entry.name.as_slice(), entry))
                .collect();
            let is_new = |entry: &&IndexEntry| {
                !start
                    .get(entry.name.as_slice())
                    .is_some_and(|before| before.is_same(entry))
            };
            for entry in index.entries.iter().filter(is_new) {
                let path = BytesPath::from_bytes(entry.name.as_slice());
                let object = entry.id();
                if is_obeyed(&path) {
                    staged.push((path.clone(), object.clone()));
                }
                if entry.mode() & libc::S_IFMT == libc::S_IFLNK {
                    links.insert((path.clone(), object));
                }
                changed.paths.insert(path);
            }
        }
        // What is checked out comes first.
        let (first, rest) = self.in_order(&left)?;
        let named = first.iter().chain(&rest);
        let mut tips: Vec<(BytesPath, &str)> = named
            .map(|(name, object)| ((*name).clone(), object.as_str()))
            .collect();
        match &left.head {
            Some(Head::Branch { name: branch }) => tips.sort_by_key(|(name, _)| name != branch),
            Some(head @ Head::Commit { object }) if *head != self.started.head => {
                tips.insert(0, ("HEAD".into(), object));
            }
            _ => {}
        }
        tips.extend(
            left.stashes
                .iter()
                .map(|stash| (BytesPath::from_bytes(stash::NAME), stash.object.as_str())),
        );
        if tips.is_empty() && changed.paths.is_empty() {
            return Ok(changed);
        }
        let stage = staging::make(
            self.scratch,
            &staging::ObjectFolders {
                real: &self.real_path,
                session: &self.session_path,
                session_folder: &self.session,
                real_folder: &self.real,
            },
        )?;
        let git = Git::new(&stage, &self.scratch.join("empty"), self.end);
        let mut held = TipContents::default();
        let mut refused = self.in_groups(&git, tips.len(), |git, some| {
            let objects: Vec<&str> = tips[some.clone()]
                .iter()
                .map(|(_, object)| *object)
                .collect();
            let Some(one) = self.held(git, &objects)? else {
                return Ok(false);
            };
            held.paths.extend(one.paths);
            held.links.extend(one.links);
            held.trees.extend(
                one.trees
                    .into_iter()
                    .map(|(at, tree)| (some.start + at, tree)),
            );
            Ok(true)
        });
        changed.paths.extend(held.paths);
        links.extend(held.links);
        changed.links = self.targets(&git.bounded(ALONE), &links);
        if let Some((made, more)) = self.made(&git, &changed.paths, &held.trees, here)? {
            changed.made = made;
            refused.extend(more);
            let unseen = |UnreadTip {
                              tip,
                              why,
                              is_late,
                              is_broken,
                          }| {
                let (what, object) = &tips[tip];
                UnreadRef {
                    what: what.clone(),
                    object: (*object).to_owned(),
                    why,
                    is_late,
                    is_broken,
                }
            };
            if let Some(path) = self.not_theirs(&git, &staged, obeyed) {
                let (what, object, why) = ("index".into(), String::new(), obeyed_by_git(&path));
                changed.unseen.push(UnreadRef {
                    what,
                    object,
                    why,
                    is_late: false,
                    is_broken: false,
                });
            }
            if changed.paths.iter().any(is_obeyed) {
                changed.unseen.extend(self.obeyed(&git, &tips, obeyed));
            }
            changed.unseen.extend(refused.into_iter().map(unseen));
        } else {
            let staged = left.index.is_some().then(|| ("index".into(), ""));
            let (why, is_late) = (self.too_much(), self.git.is_late());
            let unseen = |(what, object): (BytesPath, &str)| {
                let (object, why) = (object.to_owned(), why.clone());
                UnreadRef {
                    what,
                    object,
                    why,
                    is_late,
                    is_broken: false,
                }
            };
            changed.unseen = tips.into_iter().chain(staged).map(unseen).collect();
        }
        Ok(changed)
    }

    /// Returns those of the tips that change a path which git obeys.
    fn obeyed(
        &self,
        git: &Git,
        tips: &[(BytesPath, &str)],
        obeyed: ObeyedFiles<'_>,
    ) -> Vec<UnreadRef> {
        let one = |(what, object): &(BytesPath, &str)| {
            let (why, is_broken) = match self.held(&git.bounded(ALONE), &[object]) {
                Ok(Some(held)) => {
                    let paths = held.paths.into_iter().filter(|path| (obeyed.0)(path));
                    let blobs: Vec<Blob> = paths
                        .map(|path| {
                            (
                                path.clone(),
                                self.blob(git, object, &path).unwrap_or_default(),
                            )
                        })
                        .collect();
                    (obeyed_by_git(&self.not_theirs(git, &blobs, obeyed)?), false)
                }
                Ok(None) => (self.too_much(), false),
                Err(fault) => (broken(&fault), true),
            };
            Some(UnreadRef {
                what: what.clone(),
                object: (*object).to_owned(),
                why,
                is_late: git.is_late(),
                is_broken,
            })
        };
        tips.iter().filter_map(one).collect()
    }

    /// Returns the first of these that the user does not have there, in their files or in what was
    /// committed or staged at the start: what they have may be committed.
    fn not_theirs(
        &self,
        git: &Git,
        blobs: &[Blob],
        (_, own): ObeyedFiles<'_>,
    ) -> Option<BytesPath> {
        let start = self
            .start_index
            .as_deref()
            .and_then(|bytes| Index::parse(bytes).ok())
            .unwrap_or_default();
        let is_staged = |(path, object): &Blob| {
            start
                .entries
                .iter()
                .any(|entry| entry.name.as_slice() == path.as_bytes() && entry.id() == *object)
        };
        let is_own = |(path, object): &Blob| {
            let content = own(path);
            let id = content.and_then(|content| {
                self.said(git, &["hash-object", "--stdin"], &content)
                    .ok()
                    .flatten()
            });
            id.is_some_and(|id| String::from_utf8_lossy(&id).trim() == object)
        };
        let is_committed = |(path, object): &Blob| {
            self.started
                .refs
                .values()
                .take(MAX_STARTS)
                .any(|tip| self.blob(git, tip, path).as_ref() == Some(object))
        };
        blobs
            .iter()
            .find(|blob| !(is_staged(blob) || is_own(blob) || is_committed(blob)))
            .map(|(path, _)| path.clone())
    }

    /// Returns the blob of a commit at a path.
    fn blob(&self, git: &Git, commit: &str, path: &BytesPath) -> Option<String> {
        let said = self.said(
            git,
            &[
                OsStr::new("ls-tree"),
                OsStr::new("-z"),
                OsStr::new("--full-tree"),
                OsStr::new(commit),
                OsStr::new("--"),
                OsStr::from_bytes(path.as_bytes()),
            ],
            b"",
        );
        let line = String::from_utf8_lossy(&said.ok().flatten()?).into_owned();
        line.split_whitespace().nth(2).map(str::to_owned)
    }

    /// Examines things in groups, all at once if possible; a broken or expensive one must not keep
    /// the others from being examined. `look` returns whether it finished.
    fn in_groups(
        &self,
        git: &Git,
        n: usize,
        mut look: impl FnMut(&Git, Range<usize>) -> Result<bool, Fault>,
    ) -> Vec<UnreadTip> {
        let mut refused = Vec::new();
        if n == 0 || matches!(look(&git.bounded(TOGETHER), 0..n), Ok(true)) {
            return refused;
        }
        let parts = |some: Range<usize>| {
            let step = some.len().div_ceil(PARTS).max(1);
            some.clone()
                .step_by(step)
                .map(move |begin| begin..some.end.min(begin + step))
                .rev()
        };
        // The first one is the checkout.
        let mut waiting: Vec<Range<usize>> = parts(1..n).collect();
        waiting.push(0..1);
        while let Some(some) = waiting.pop() {
            if git.is_late() {
                refused.extend(some.map(|tip| UnreadTip {
                    tip,
                    why: LATE.to_owned(),
                    is_late: true,
                    is_broken: false,
                }));
                continue;
            }
            let (why, is_broken) = match look(&git.bounded(ALONE), some.clone()) {
                Ok(true) => continue,
                Ok(false) => (self.too_much(), false),
                Err(fault) => (broken(&fault), true),
            };
            if some.len() == 1 {
                refused.push(UnreadTip {
                    tip: some.start,
                    why,
                    is_late: git.is_late(),
                    is_broken,
                });
            } else {
                waiting.extend(parts(some));
            }
        }
        refused
    }

    fn too_much(&self) -> String {
        if Instant::now() >= self.end {
            LATE.to_owned()
        } else {
            UNKNOWN.to_owned()
        }
    }

    /// Returns the new contents of tips, compared with the start; `None`: too many.
    fn held(&self, git: &Git, tips: &[&str]) -> Result<Option<TipContents>, Fault> {
        let mut held = TipContents::default();
        // A tag may point to a tag, a tree or a blob.
        let asked: String = tips.iter().map(|tip| format!("{tip}^{{}}\n")).collect();
        let Some(kinds) = self.said(
            git,
            &["cat-file", "--batch-check=%(objecttype) %(objectname)"],
            asked.as_bytes(),
        )?
        else {
            return Ok(None);
        };
        let kinds = String::from_utf8_lossy(&kinds);
        let of = |kind: &str| -> Vec<(usize, &str)> {
            kinds
                .lines()
                .enumerate()
                .filter_map(|(at, line)| Some((at, line.strip_prefix(kind)?.strip_prefix(' ')?)))
                .collect()
        };
        let (commits, trees) = (of("commit"), of("tree"));
        let mut said = Vec::new();
        if !commits.is_empty() {
            let head = if let Head::Commit { object } = &self.started.head {
                Some(object)
            } else {
                None
            };
            let before = self
                .started
                .refs
                .values()
                .chain(self.started.stashes.iter().map(|stash| &stash.object))
                .chain(head);
            let asked: String = commits
                .iter()
                .map(|(_, tip)| format!("{tip}\n"))
                .chain(before.map(|object| format!("^{object}\n")))
                .collect();
            let Some(new) = self.said(
                git,
                &["rev-list", "--ignore-missing", "--stdin"],
                asked.as_bytes(),
            )?
            else {
                return Ok(None);
            };
            // Of a merge only what differs from all parents.
            let words = [
                "diff-tree",
                "--stdin",
                "--root",
                "-r",
                "-c",
                "-z",
                "--raw",
                ABBREV,
                "--no-commit-id",
                "--no-renames",
                "--diff-filter=d",
            ];
            let Some(paths) = self.said(git, &words, &new)? else {
                return Ok(None);
            };
            said.extend(paths);
        }
        // No commit has such a tree, so all of it is new except for the checkout at the start.
        for (_, tree) in &trees {
            let paths = match self.start_commit() {
                Some(start) => {
                    let words = [
                        "diff-tree",
                        "-r",
                        "-z",
                        "--raw",
                        ABBREV,
                        "--no-renames",
                        "--diff-filter=d",
                        &start,
                        tree,
                    ];
                    self.said(git, &words, b"")?
                }
                None => self.said(
                    git,
                    &["ls-tree", "-r", "-z", ABBREV, "--full-tree", tree],
                    b"",
                )?,
            };
            let Some(paths) = paths else { return Ok(None) };
            said.extend(paths);
        }
        let (paths, links) = listed(&said);
        held.paths.extend(paths);
        held.links.extend(links);
        held.trees.extend(
            commits
                .into_iter()
                .chain(trees)
                .map(|(at, tree)| (at, tree.to_owned())),
        );
        Ok(Some(held))
    }

    /// Returns the commit that was checked out at the start.
    fn start_commit(&self) -> Option<String> {
        match &self.started.head {
            Head::Commit { object } => Some(object.clone()),
            Head::Branch { name } => self.started.refs.get(name).cloned(),
        }
    }

    /// Finds parts that turn folders into repositories, in any of the commits, and tips that could
    /// not be examined; `None`: the state before holds too many.
    fn made(
        &self,
        git: &Git,
        changed: &BTreeSet<BytesPath>,
        trees: &[(usize, String)],
        here: impl Fn(&[u8]) -> BTreeSet<RepositoryPart>,
    ) -> Result<Option<(NewRepositoryParts, Vec<UnreadTip>)>, Fault> {
        let folders: BTreeSet<&[u8]> = changed
            .iter()
            .flat_map(|path| parts_of(path.as_bytes()))
            .map(|(folder, _)| folder)
            .collect();
        let folders: Vec<&[u8]> = folders.into_iter().collect();
        if folders.is_empty() {
            return Ok(Some((NewRepositoryParts::default(), Vec::new())));
        }
        let start = self.start_commit();
        let start: Vec<&str> = start.iter().map(String::as_str).collect();
        let Some(at_start) = self.parts_within(&git.bounded(TOGETHER), &start, &folders)? else {
            return Ok(None);
        };
        let mut there: BTreeSet<BytesPath> = changed.clone();
        there.extend(at_start.iter().cloned());
        let mut refused = self.in_groups(git, trees.len(), |git, some| {
            let some: Vec<&str> = trees[some].iter().map(|(_, tree)| tree.as_str()).collect();
            let Some(parts) = self.parts_within(git, &some, &folders)? else {
                return Ok(false);
            };
            there.extend(parts);
            Ok(true)
        });
        for one in &mut refused {
            one.tip = trees[one.tip].0;
        }
        let mut before: BTreeMap<&[u8], BTreeSet<RepositoryPart>> = BTreeMap::new();
        for (folder, name) in at_start.iter().map(|path| split(path.as_bytes())) {
            before
                .entry(folder)
                .or_default()
                .extend(RepositoryPart::of(name));
        }
        // Parts in the present checkout count like committed ones.
        let made = NewRepositoryParts::among(there.iter().map(BytesPath::as_bytes), |folder| {
            before
                .get(folder)
                .filter(|parts| is_bare(parts))
                .cloned()
                .unwrap_or_else(|| here(folder))
        });
        Ok(Some((made, refused)))
    }

    /// Runs git; `None`: the output is too long or takes too long.
    pub(super) fn said<S: AsRef<OsStr>>(
        &self,
        git: &Git,
        words: &[S],
        asked: &[u8],
    ) -> Result<Option<Vec<u8>>, Fault> {
        let answer = match git.run(words, asked) {
            Err(_) if git.is_late() => return Ok(None),
            answer => answer?,
        };
        if answer.stdout.len() as u64 >= MAX_LISTED || git.is_late() {
            return Ok(None);
        }
        if answer.is_good {
            return Ok(Some(answer.stdout));
        }
        Err(Fault::Io {
            doing: format!("look through the commits of {}", self.started.path),
            problem: answer.problem(),
        })
    }
}
