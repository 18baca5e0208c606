//! What the tips of a session hold, asked of git.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::time::Instant;

use super::super::git_command::Git;
use super::super::git_command::MAX_LISTED;
use super::super::import::RepositoryImport;
use super::super::import::UnreadRef;
use super::super::index::Index;
use super::super::index::IndexEntry;
use super::super::refs::Head;
use super::super::session_changes::SessionChanges;
use super::super::staging;
use super::super::stash;
use super::ALONE;
use super::Blob;
use super::LATE;
use super::MAX_STARTS;
use super::ObeyedFiles;
use super::PARTS;
use super::TOGETHER;
use super::UNKNOWN;
use super::broken;
use super::links::ABBREV;
use super::links::Link;
use super::links::listed;
use super::obeyed_reason;
use crate::keep::bare_repository::NewRepositoryParts;
use crate::keep::bare_repository::RepositoryPart;
use crate::keep::bare_repository::is_bare;
use crate::keep::bare_repository::parts_of;
use crate::root::split;
use podbay_wire::BytesPath;
use podbay_wire::Fault;

/// Paths that a session's commits and its index change.
#[derive(Default)]
pub(super) struct CommittedPaths {
    pub(super) paths: BTreeSet<BytesPath>,
    /// Those that are links, with their targets.
    pub(super) links: Vec<(BytesPath, Option<Vec<u8>>)>,
    /// Those that would turn folders into repositories.
    pub(super) made: NewRepositoryParts,
    /// References that could not be examined.
    pub(super) unseen: Vec<UnreadRef>,
}

/// The contents of some tips.
#[derive(Default)]
pub(super) struct TipContents {
    pub(super) paths: BTreeSet<BytesPath>,
    pub(super) links: BTreeSet<Link>,
    /// The commits among them, and the trees, which git can reference as well, each with the number
    /// of its tip.
    pub(super) trees: Vec<(usize, String)>,
}

/// A tip that could not be examined.
pub(super) struct UnreadTip {
    pub(super) tip: usize,
    pub(super) why: String,
    pub(super) is_late: bool,
    pub(super) is_broken: bool,
}

impl RepositoryImport<'_> {
    /// Returns every path that the session's own commits change, or its index does. `here` returns
    /// the content of the user's working tree, `obeyed` are paths that no import may change, except
    /// to what the user has.
    pub(super) fn changed(
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
            if let Some(path) = self.first_not_of_user(&git, &staged, obeyed) {
                let (what, object, why) = ("index".into(), String::new(), obeyed_reason(&path));
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
    pub(super) fn obeyed(
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
                    (
                        obeyed_reason(&self.first_not_of_user(git, &blobs, obeyed)?),
                        false,
                    )
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
    pub(super) fn first_not_of_user(
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
    pub(super) fn blob(&self, git: &Git, commit: &str, path: &BytesPath) -> Option<String> {
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
    pub(super) fn in_groups(
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

    pub(super) fn too_much(&self) -> String {
        if Instant::now() >= self.end {
            LATE.to_owned()
        } else {
            UNKNOWN.to_owned()
        }
    }

    /// Returns the new contents of tips, compared with the start; `None`: too many.
    pub(super) fn held(&self, git: &Git, tips: &[&str]) -> Result<Option<TipContents>, Fault> {
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
    pub(super) fn start_commit(&self) -> Option<String> {
        match &self.started.head {
            Head::Commit { object } => Some(object.clone()),
            Head::Branch { name } => self.started.refs.get(name).cloned(),
        }
    }

    /// Finds parts that turn folders into repositories, in any of the commits, and tips that could
    /// not be examined; `None`: the state before holds too many.
    pub(super) fn made(
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
    pub(in crate::keep::git) fn said<S: AsRef<OsStr>>(
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
