//! What a session's commits hold that may run on the person's machine, though the files that it
//! left may not show it: it may stand on a branch that is not checked out, or in an older commit.

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
use super::folder::Folder;
use super::hooks::HUSKYS;
use super::hooks::work_tree_of;
use super::import::Import;
use super::import::One;
use super::import::Unlooked;
use super::import::Unseen;
use super::import::UnseenName;
use super::import::share;
use super::index::Entry;
use super::index::Index;
use super::left::Left;
use super::record::Start;
use super::refs::Head;
use super::run::Git;
use super::run::MAX_LISTED;
use super::stage;
use super::stash;
use crate::keep::auto_run::AutoRun;
use crate::keep::auto_run::Foremost;
use crate::keep::auto_run::Known;
use crate::keep::bare::NewParts;
use crate::keep::bare::Part;
use crate::keep::bare::is_bare;
use crate::keep::bare::parts_of;
use crate::keep::forbidden::why_no_link;
use crate::root::join;
use crate::root::split;
use podbay_wire::BytesPath;
use podbay_wire::Fault;
use podbay_wire::keep::MayRun;
use podbay_wire::keep::Named;
use podbay_wire::keep::When;

/// What is said of a folder that would be a repository once it is checked out.
const BARE: &str = "git takes the folder that it is in for a repository and obeys it";

/// What is said of a branch whose commits cannot be looked through.
const UNKNOWN: &str = "it holds more than can be looked through";
const LATE: &str = "there was no more time to look through it";

/// What is said of one that git fails over. A session borrows the objects that were there when it
/// began.
const BROKEN: &str = "it cannot be read; if what it stands on is gone from the repository, such as by `git gc`, it comes when that is there again";

/// How long all that a repository's session left is looked through together, and how long one name
/// of it where that was too short: a few trees, each named ten times in the next, are a page of
/// objects and more paths than anybody can list.
const TOGETHER: Duration = Duration::from_secs(8);
const ALONE: Duration = Duration::from_secs(4);

/// In how many parts those are looked through that were too much together, so that one among very
/// many is found soon.
const PARTS: usize = 16;

/// What is said of a link whose target cannot be read.
const UNREAD: &str = "a link, and where it leads cannot be read";

/// Longest file that git obeys which is compared with what was committed of it, in bytes, and with
/// how many of the names at the start.
const MAX_OBEYED: u64 = 1 << 20;
const MAX_STARTS: usize = 50;

/// Which paths git obeys, and what a file of the person's holds.
type Obeyed<'o> = (
    &'o dyn Fn(&BytesPath) -> bool,
    &'o dyn Fn(&BytesPath) -> Option<Vec<u8>>,
);

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Touched {
    pub(super) may_run: Named<MayRun>,
    /// Which of it runs by itself.
    by_itself: Named<MayRun>,
    pub(super) unlooked: Unlooked,
}

/// What keeps a session's commits from coming unasked, and what is said of them.
#[derive(Debug, Default)]
pub(super) struct Holding {
    /// What runs by itself, and what could not be looked through.
    pub(super) held: Named<MayRun>,
    /// All that may run, and what could not be looked through.
    pub(super) may_run: Named<MayRun>,
    /// What cannot come whoever asks.
    pub(super) broken: Unlooked,
}

/// Names each such file that is new or changed in a commit, a stash or the index of a session;
/// `patterns` are those of the person's, `place` is where the project is on their machine. Unless
/// `all_may_come`, what changes a file that git obeys, which the sandbox has read-only, counts as
/// not looked through: such a file is no command's to change, by a commit as little as by hand.
pub(super) fn touched(
    import: &Import<'_>,
    project: &Folder,
    (patterns, place): (&[String], &[u8]),
    all_may_come: bool,
) -> Result<Touched, Fault> {
    let mut touched = Touched::default();
    let Some(start) = Start::read(import.state, import.id)? else {
        return Ok(touched);
    };
    let auto_run = AutoRun::of(
        project,
        Known {
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
    let (mut foremost, mut by_itself) = (Foremost::default(), Foremost::default());
    let n_all = start.repositories.len();
    for (at, started) in start.repositories.iter().enumerate() {
        // A commit says where a file is in its own working tree.
        let tree = work_tree_of(project, place, started.path.as_bytes()).unwrap_or_default();
        let git = BytesPath::from_bytes(started.git());
        // Of one that is not to be taken over nothing comes.
        let Some(Ok(place)) = import.places.get(&git) else {
            continue;
        };
        let until = share(end, n_all - at);
        let changed = start.index(import.state, import.id, at).and_then(|index| {
            let one = One::open(import, place, (at, index), until, started)?;
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
        let Changed {
            paths,
            links,
            made,
            unseen,
        } = match changed {
            Ok(changed) => changed,
            Err(fault) => {
                touched.unlooked.insert(
                    at,
                    Unseen::All {
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
            let why = target.map_or(Some(UNREAD), |target| why_no_link(&full, &target));
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
                    when: When::ByItself,
                })
            };
            let sooner = runs
                .clone()
                .filter(|runs| runs.when == When::ByItself)
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
            touched.unlooked.insert(at, Unseen::Names(unseen));
        }
    }
    (touched.may_run, touched.by_itself) = (foremost.named(), by_itself.named());
    Ok(touched)
}

impl Touched {
    /// Returns what keeps it from coming unasked.
    pub(super) fn holding(self) -> Result<Holding, Fault> {
        let Self {
            by_itself: mut held,
            mut may_run,
            ..
        } = self;
        let mut broken = Unlooked::new();
        for (at, unseen) in self.unlooked {
            let names = match unseen {
                Unseen::All { fault, .. } => return Err(fault),
                Unseen::Names(names) => names,
            };
            let (lost, names): (Vec<UnseenName>, Vec<UnseenName>) =
                names.into_iter().partition(|one| one.is_broken);
            for one in names {
                let file = MayRun {
                    path: one.what,
                    why: one.why,
                    when: When::ByItself,
                };
                held.add(file.clone());
                may_run.add(file);
            }
            if !lost.is_empty() {
                broken.insert(at, Unseen::Names(lost));
            }
        }
        Ok(Holding {
            held,
            may_run,
            broken,
        })
    }
}

fn broken(fault: &Fault) -> String {
    format!("{BROKEN} ({fault})")
}

/// What a commit or the index has at a path, and at the start.
type Blob = (BytesPath, String);

/// Says why something that was committed or staged stays in the session.
fn obeyed_by_git(path: &BytesPath) -> String {
    format!(
        "it changes {path}, which git on your machine obeys and nothing in the sandbox may change"
    )
}

/// Returns whether git obeys a file of this path because it obeys `kept`: it is that one or lies
/// below it, or takes the place of a folder above. Of husky's folder of hooks the ones that it runs
/// lie beside it.
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

fn parts_in(project: &Folder, folder: &[u8]) -> BTreeSet<Part> {
    project
        .names(folder)
        .unwrap_or_default()
        .iter()
        .filter_map(|(name, _)| Part::of(name))
        .collect()
}

/// What a session's commits and its index change.
#[derive(Default)]
struct Changed {
    paths: BTreeSet<BytesPath>,
    /// Which of them are links, with where those lead.
    links: Vec<(BytesPath, Option<Vec<u8>>)>,
    /// Which of them would make folders repositories.
    made: NewParts,
    /// Branches and the like that could not be looked through.
    unseen: Vec<UnseenName>,
}

/// What some tips hold.
#[derive(Default)]
struct Held {
    paths: BTreeSet<BytesPath>,
    links: BTreeSet<Link>,
    /// The commits among them, and the trees: git names a tree as well as a commit. With which tip
    /// it is.
    trees: Vec<(usize, String)>,
}

/// A tip that could not be looked through.
struct Refused {
    tip: usize,
    why: String,
    is_late: bool,
    is_broken: bool,
}

impl One<'_> {
    /// Returns every path that the session's own commits change, or its index does. `here` says
    /// what is in the person's working tree, `obeyed` which paths nothing that comes may change,
    /// but to what is theirs.
    fn changed(
        &self,
        here: impl Fn(&[u8]) -> BTreeSet<Part>,
        obeyed: Obeyed<'_>,
    ) -> Result<Changed, Fault> {
        let (is_obeyed, _) = obeyed;
        let mut staged: Vec<Blob> = Vec::new();
        let left = Left::read(
            &self.session,
            &self.private,
            self.id,
            self.started,
            self.start_index.as_deref(),
        )?;
        let mut changed = Changed::default();
        let mut links: BTreeSet<Link> = BTreeSet::new();
        if let Some(index) = &left.index {
            let start = self
                .start_index
                .as_deref()
                .and_then(|bytes| Index::parse(bytes).ok())
                .unwrap_or_default();
            let start: BTreeMap<&[u8], &Entry> = start
                .entries
                .iter()
                .map(|entry| (entry.name.as_slice(), entry))
                .collect();
            let is_new = |entry: &&Entry| {
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
        // What is checked out comes before all else.
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
        let stage = stage::make(
            self.scratch,
            &stage::Objects {
                real: &self.real_path,
                session: &self.session_path,
                session_folder: &self.session,
                real_folder: &self.real,
            },
        )?;
        let git = Git::new(&stage, &self.scratch.join("empty"), self.end);
        let mut held = Held::default();
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
            let unseen = |Refused {
                              tip,
                              why,
                              is_late,
                              is_broken,
                          }| {
                let (what, object) = &tips[tip];
                UnseenName {
                    what: what.clone(),
                    object: (*object).to_owned(),
                    why,
                    is_late,
                    is_broken,
                }
            };
            if let Some(path) = self.not_theirs(&git, &staged, obeyed) {
                let (what, object, why) = ("index".into(), String::new(), obeyed_by_git(&path));
                changed.unseen.push(UnseenName {
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
                UnseenName {
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
    fn obeyed(&self, git: &Git, tips: &[(BytesPath, &str)], obeyed: Obeyed<'_>) -> Vec<UnseenName> {
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
            Some(UnseenName {
                what: what.clone(),
                object: (*object).to_owned(),
                why,
                is_late: git.is_late(),
                is_broken,
            })
        };
        tips.iter().filter_map(one).collect()
    }

    /// Returns the first of these that the person does not have there, in their files or in what
    /// was committed or staged at the start: what is theirs may be committed.
    fn not_theirs(&self, git: &Git, blobs: &[Blob], (_, own): Obeyed<'_>) -> Option<BytesPath> {
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

    /// Returns the name of what a commit has at a path.
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

    /// Looks through so many things, all at once if that can be; one that is a burden, or broken,
    /// must not keep the others from being looked at. `look` returns whether it came to an end.
    fn in_groups(
        &self,
        git: &Git,
        n: usize,
        mut look: impl FnMut(&Git, Range<usize>) -> Result<bool, Fault>,
    ) -> Vec<Refused> {
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
        // The first one is what is checked out.
        let mut waiting: Vec<Range<usize>> = parts(1..n).collect();
        waiting.push(0..1);
        while let Some(some) = waiting.pop() {
            if git.is_late() {
                refused.extend(some.map(|tip| Refused {
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
                refused.push(Refused {
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

    /// Returns what tips change that were not there at the start; `None`: there is too much of it.
    fn held(&self, git: &Git, tips: &[&str]) -> Result<Option<Held>, Fault> {
        let mut held = Held::default();
        // A tag may stand for a tag, a tree or a file.
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
            // Of a merge only what is in none of those that it joins.
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
        // Such a one is no commit's, so all of it is new but for what was checked out.
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

    /// Returns what was checked out at the start.
    fn start_commit(&self) -> Option<String> {
        match &self.started.head {
            Head::Commit { object } => Some(object.clone()),
            Head::Branch { name } => self.started.refs.get(name).cloned(),
        }
    }

    /// Finds what makes folders repositories that were none, in whichever of the commits; `None`:
    /// there is too much in what was there before. With those that could not be looked through.
    fn made(
        &self,
        git: &Git,
        changed: &BTreeSet<BytesPath>,
        trees: &[(usize, String)],
        here: impl Fn(&[u8]) -> BTreeSet<Part>,
    ) -> Result<Option<(NewParts, Vec<Refused>)>, Fault> {
        let folders: BTreeSet<&[u8]> = changed
            .iter()
            .flat_map(|path| parts_of(path.as_bytes()))
            .map(|(folder, _)| folder)
            .collect();
        let folders: Vec<&[u8]> = folders.into_iter().collect();
        if folders.is_empty() {
            return Ok(Some((NewParts::default(), Vec::new())));
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
        let mut before: BTreeMap<&[u8], BTreeSet<Part>> = BTreeMap::new();
        for (folder, name) in at_start.iter().map(|path| split(path.as_bytes())) {
            before.entry(folder).or_default().extend(Part::of(name));
        }
        // What is checked out now is as good as what was committed.
        let made = NewParts::among(there.iter().map(BytesPath::as_bytes), |folder| {
            before
                .get(folder)
                .filter(|parts| is_bare(parts))
                .cloned()
                .unwrap_or_else(|| here(folder))
        });
        Ok(Some((made, refused)))
    }

    /// Asks git; `None`: the answer is longer than anybody waits for or keeps.
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
