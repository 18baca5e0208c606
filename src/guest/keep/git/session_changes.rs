//! What a session left in its git folder, compared with the start. Nothing is changed here.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use super::commits::Commits;
use super::import::UnreadRef;
use super::index::Index;
use super::index::MAX_INDEX;
use super::index::UnsupportedIndex;
use super::prepare::UNDER_WAY;
use super::ref_aliases::RefAliases;
use super::reflogs;
use super::refs;
use super::refs::Head;
use super::session_start::StartedRepository;
use super::stash;
use super::stash::Stash;
use super::untrusted_folder::UntrustedFolder;
use crate::root::join;
use podbay_wire::BytesPath;
use podbay_wire::Fault;
use podbay_wire::keep::NotImported;

/// The reason for any other reference.
const OTHER: &str = "is neither a branch nor a tag, and only those are imported";

/// The reason for a worktree's commits that no reference leads to.
const DETACHED: &str = "is a detached HEAD there, and only branches and tags are imported";

/// Most references that are reported one by one.
const MAX_TOLD: usize = 100;

/// What is to be imported.
#[derive(Debug, Default)]
pub(crate) struct SessionChanges {
    /// Branches and new tags with their targets.
    pub(crate) names: BTreeMap<BytesPath, String>,
    /// All branches of the session with their targets, moved or not.
    pub(crate) bound: BTreeMap<BytesPath, String>,
    /// The aliases of names that are not kept.
    pub(super) given: RefAliases,
    /// New ones, the oldest first.
    pub(crate) stashes: Vec<Stash>,
    pub(crate) head: Option<Head>,
    /// The session's index, if it differs from the start.
    pub(crate) index: Option<Index>,
    /// Whether the session's index cannot be used.
    pub(crate) is_index_lost: bool,
    /// Whether a merge, a rebase or the like was not finished.
    pub(crate) is_under_way: bool,
    pub(crate) not_imported: Vec<NotImported>,
    pub(crate) notes: Vec<String>,
}

/// The names that git resolves, at the start and in the session.
struct KnownNames<'a> {
    bound: &'a BTreeMap<BytesPath, String>,
    started: &'a StartedRepository,
    /// Sorted, so that each is compared only with its neighbours.
    ids: BTreeSet<&'a str>,
}

impl<'a> KnownNames<'a> {
    fn of(bound: &'a BTreeMap<BytesPath, String>, started: &'a StartedRepository) -> Self {
        Self {
            bound,
            started,
            ids: started
                .refs
                .values()
                .chain(bound.values())
                .map(String::as_str)
                .collect(),
        }
    }

    /// Returns whether a known id begins like this.
    fn begin_id(&self, short: &[u8]) -> bool {
        let short = String::from_utf8_lossy(short).to_ascii_lowercase();
        self.ids
            .range(short.as_str()..)
            .next()
            .is_some_and(|id| id.starts_with(&short))
    }

    fn is_remote(&self, short: &[u8]) -> bool {
        let above = BytesPath::from_bytes([b"refs/remotes/", short, b"/"].concat());
        let is_below = |name: Option<&BytesPath>| {
            name.is_some_and(|name| name.as_bytes().starts_with(above.as_bytes()))
        };
        let next = self
            .started
            .refs
            .range(&above..)
            .next()
            .map(|(name, _)| name);
        is_below(next)
            || is_below(
                self.started
                    .symbolic
                    .range(&above..)
                    .next()
                    .map(|(name, _)| name),
            )
    }

    /// Returns why a new branch or tag would be ambiguous to git: a name that `git branch` and `git
    /// tag` do not make, or that of another thing.
    fn ambiguity(&self, name: &[u8]) -> Option<&'static str> {
        let (short, others): (&[u8], &[&[u8]]) = match (
            name.strip_prefix(b"refs/heads/"),
            name.strip_prefix(b"refs/tags/"),
        ) {
            (Some(short), _) => (short, &[b"refs/tags/", b"refs/remotes/"]),
            (_, Some(short)) => (short, &[b"refs/heads/", b"refs/remotes/"]),
            _ => return None,
        };
        // Git reads `origin` as `refs/remotes/origin/HEAD` and `heads/x` as `refs/heads/x`, and
        // prefers a tag or branch of such a name to those, as it does one that looks like an
        // abbreviated commit id.
        let begins = |start: &[u8]| short.starts_with(start);
        // A date is no such id, unless a known id begins with it.
        let has = |of: fn(&u8) -> bool| short.iter().any(of);
        let is_id = (4..=64).contains(&short.len())
            && short.iter().all(u8::is_ascii_hexdigit)
            && (self.begin_id(short)
                || short.len() >= 7 && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic));
        let is_path = [&b"refs/"[..], b"heads/", b"tags/", b"remotes/"]
            .iter()
            .any(|start| begins(start));
        if matches!(short, b"HEAD" | b"@")
            || begins(b"-")
            || is_path
            || is_id
            || self.is_remote(short)
        {
            return Some("has a name that is ambiguous to git");
        }
        let is_there = |other: &&[u8]| {
            let other = BytesPath::from_bytes([other, short].concat());
            self.started.refs.contains_key(&other) || self.bound.contains_key(&other)
        };
        others
            .iter()
            .any(is_there)
            .then_some("has the name of another branch or tag, which makes it ambiguous")
    }
}

/// Whether the name itself matters, whatever its target.
fn has_meaningful_name(name: &[u8]) -> bool {
    name.starts_with(b"refs/notes/") || name.starts_with(b"refs/replace/")
}

fn is_branch_or_tag(name: &BytesPath) -> bool {
    name.as_bytes().starts_with(b"refs/heads/") || name.as_bytes().starts_with(b"refs/tags/")
}

/// Returns the private folders of worktrees that the session added.
fn other_worktrees(session: &UntrustedFolder, private: &[u8]) -> Vec<Vec<u8>> {
    let added = session.names(b"worktrees").unwrap_or_default();
    added
        .iter()
        .map(|(name, _)| join(b"worktrees", name))
        .filter(|path| path != private)
        .take(MAX_TOLD)
        .collect()
}

/// Returns the detached HEAD of such a worktree, and its private references.
fn of_other_worktree(session: &UntrustedFolder, path: &[u8]) -> Vec<(BytesPath, String)> {
    let mut found = Vec::new();
    let head_path = join(path, b"HEAD");
    if let Ok(Some(Head::Commit { object })) = Head::read(session, &head_path) {
        found.push((BytesPath::from_bytes(head_path), object));
    }
    let own = session
        .descend(path)
        .ok()
        .and_then(|folder| refs::read(&folder).ok());
    let own = own.into_iter().flat_map(|refs| refs.bound);
    found.extend(
        own.map(|(name, object)| (BytesPath::from_bytes(join(path, name.as_bytes())), object)),
    );
    found
}

/// The reason for a commit of a detached HEAD that was left.
fn left_detached_commit(object: &str) -> String {
    let short = object.get(..12).unwrap_or(object);
    format!(
        "was moved away from {short}, which no branch or tag includes, and only those are imported"
    )
}

impl SessionChanges {
    /// Reads the git folder of the session `id`; `private` is the private folder of its worktree
    /// there. Names are those after renaming.
    pub(crate) fn read(
        session: &UntrustedFolder,
        private: &[u8],
        id: &str,
        started: &StartedRepository,
        start_index: Option<&[u8]>,
    ) -> Result<Self, Fault> {
        let mut left = Self::default();
        let found = refs::read(session)?;
        for (name, why) in found.odd.into_iter().take(MAX_TOLD) {
            left.refuse(&name, why);
        }
        let new = found
            .symbolic
            .iter()
            .filter(|(name, to)| is_branch_or_tag(name) && started.symbolic.get(name) != Some(to));
        for (name, to) in new.take(MAX_TOLD) {
            left.refuse(
                name,
                format!("is a symbolic reference to {to}, which is not imported"),
            );
        }
        left.compare_names(found.bound, started, id);
        left.compare_stashes(session, started)?;
        let head_path = join(private, b"HEAD");
        match session
            .read(&head_path, 4096)
            .ok()
            .flatten()
            .and_then(|text| Head::parse(&text))
        {
            Some(head) => left.head = Some(left.given.head(head)),
            None => left.refuse(
                &"HEAD".into(),
                "names neither a branch nor a commit".to_owned(),
            ),
        }
        let under_way = UNDER_WAY
            .iter()
            .find(|(name, _)| session.kind(&join(private, name)).is_some());
        if let Some((name, what)) = under_way {
            left.refuse(
                &BytesPath::from_bytes(*name),
                format!("{what} was left unfinished in the session"),
            );
        }
        left.is_under_way = under_way.is_some();
        left.report_others(session, private, started);
        left.read_index(session, &join(private, b"index"), start_index);
        Ok(left)
    }

    pub(crate) fn refuse(&mut self, what: &BytesPath, why: String) {
        self.not_imported.push(NotImported {
            what: what.clone(),
            why,
        });
    }

    /// Removes what could not be examined, and what depends on it.
    pub(crate) fn leave_out(&mut self, unseen: &[UnreadRef], started: &Head) {
        if unseen.is_empty() {
            return;
        }
        let whys: BTreeMap<&str, &str> = unseen
            .iter()
            .map(|one| (one.object.as_str(), one.why.as_str()))
            .collect();
        let why = |object: &str| whys.get(object).map(|why| (*why).to_owned());
        for (name, object) in std::mem::take(&mut self.names) {
            match why(&object) {
                Some(why) => self.refuse(&name, why),
                None => drop(self.names.insert(name, object)),
            }
        }
        let (stay, come): (Vec<Stash>, Vec<Stash>) = std::mem::take(&mut self.stashes)
            .into_iter()
            .partition(|one| why(&one.object).is_some());
        self.stashes = come;
        for stash in stay {
            self.refuse(
                &BytesPath::from_bytes(stash::NAME),
                why(&stash.object).unwrap_or_default(),
            );
        }
        let commit = self
            .head
            .as_ref()
            .and_then(|head| head.commit(&self.bound))
            .cloned();
        let commit_why = commit.and_then(|object| why(&object));
        if let Some(why) = commit_why
            .clone()
            .filter(|_| matches!(&self.head, Some(head @ Head::Commit { .. }) if head != started))
        {
            self.refuse(&"HEAD".into(), why);
        }
        // It is fetched with its parent.
        let staged = unseen
            .iter()
            .find(|one| one.object.is_empty())
            .map(|one| one.why.clone());
        let staged = staged
            .or_else(|| commit_why.map(|_| "is based on a commit that stays there".to_owned()));
        if let Some(why) = staged.filter(|_| self.index.take().is_some()) {
            self.lose_index(&why);
        }
    }

    fn compare_names(
        &mut self,
        bound: BTreeMap<BytesPath, String>,
        started: &StartedRepository,
        id: &str,
    ) {
        let words = KnownNames::of(&bound, started);
        let misleading = |name: &BytesPath| {
            if started.refs.contains_key(name) {
                None
            } else {
                words.ambiguity(name.as_bytes())
            }
        };
        let new = bound
            .keys()
            .filter(|name| !started.refs.contains_key(name) && misleading(name).is_none());
        let given = RefAliases::of(new, &bound, id);
        for (name, object) in &bound {
            let name = &given.name(name);
            let before = started.refs.get(name);
            if before == Some(object) {
                continue;
            }
            let bytes = name.as_bytes();
            if let Some(called) = given.called(name).filter(|_| self.notes.len() < MAX_TOLD) {
                self.notes.push(format!(
                    "{called} is imported as {name}: a shell would expand the \
                    name, or it could be mistaken for another one"
                ));
            }
            if let Some(why) = misleading(name) {
                self.refuse(name, why.to_owned());
            } else if bytes.starts_with(b"refs/heads/")
                || (bytes.starts_with(b"refs/tags/") && before.is_none())
            {
                self.names.insert(name.clone(), object.clone());
            } else if bytes.starts_with(b"refs/tags/") {
                self.refuse(
                    name,
                    "is a tag that pointed to something else before; delete the old \
                    one to import it"
                        .to_owned(),
                );
            } else if has_meaningful_name(bytes) {
                self.refuse(name, OTHER.to_owned());
            }
        }
        self.bound = bound
            .into_iter()
            .map(|(name, object)| (given.name(&name), object))
            .collect();
        self.given = given;
        for name in started.refs.keys() {
            if is_branch_or_tag(name)
                && !self.bound.contains_key(name)
                && self.notes.len() < MAX_TOLD
            {
                self.notes.push(format!(
                    "{name} was deleted in the session and is kept here"
                ));
            }
        }
    }

    /// Reports other references, and commits without one, that hold work of the session which
    /// nothing imported leads to: it is in the session's folder alone.
    fn report_others(
        &mut self,
        session: &UntrustedFolder,
        private: &[u8],
        started: &StartedRepository,
    ) {
        let is_other = |name: &BytesPath| {
            let bytes = name.as_bytes();
            !is_branch_or_tag(name) && bytes != stash::NAME && !has_meaningful_name(bytes)
        };
        let new = self
            .bound
            .iter()
            .filter(|(name, object)| is_other(name) && started.refs.get(*name) != Some(*object));
        let new = new.map(|(name, object)| (name.clone(), object.clone(), OTHER));
        let added = other_worktrees(session, private);
        let detached = added
            .iter()
            .flat_map(|path| of_other_worktree(session, path));
        let detached = detached.map(|(name, object)| (name, object, DETACHED));
        let new: Vec<(BytesPath, String, &str)> = new.chain(detached).collect();
        // Git warns when these are left, and has them in the log of `HEAD` alone.
        let with_head = |path: &[u8]| {
            let what = if path == private {
                BytesPath::from("HEAD")
            } else {
                BytesPath::from_bytes(join(path, b"HEAD"))
            };
            let log = join(path, reflogs::HEAD);
            reflogs::left_behind(session, &log)
                .into_iter()
                .map(move |object| (what.clone(), object))
        };
        let left_behind: Vec<(BytesPath, String)> = std::iter::once(private)
            .chain(added.iter().map(Vec::as_slice))
            .flat_map(with_head)
            .collect();
        if new.is_empty() && left_behind.is_empty() {
            return;
        }
        let head = self.head.as_ref().and_then(|head| head.commit(&self.bound));
        let taken = self
            .names
            .values()
            .chain(self.stashes.iter().map(|stash| &stash.object))
            .chain(head);
        let commits = Commits::new(session, started);
        let mut reached = commits.reached(taken.map(String::as_str));
        let is_lost = |object: &String, reached: &BTreeSet<String>| {
            !reached.contains(object) && commits.may_hold(object)
        };
        let mut said = Vec::new();
        for (name, object, why) in new {
            if is_lost(&object, &reached) {
                self.refuse(&name, why.to_owned());
                said.push(object);
            }
        }
        // A commit that another one leads to is reported with it.
        reached.extend(commits.reached(said.iter().map(String::as_str)));
        let mut n_told = 0;
        let once = if left_behind.is_empty() {
            BTreeSet::new()
        } else {
            reflogs::once_on_branches(session)
        };
        for (name, object) in left_behind {
            if n_told < MAX_TOLD && !once.contains(&object) && is_lost(&object, &reached) {
                self.refuse(&name, left_detached_commit(&object));
                reached.extend(commits.reached(std::iter::once(object.as_str())));
                n_told += 1;
            }
        }
    }

    fn compare_stashes(
        &mut self,
        session: &UntrustedFolder,
        started: &StartedRepository,
    ) -> Result<(), Fault> {
        let mut stashes = stash::read(session)?;
        match self.bound.get(&BytesPath::from_bytes(stash::NAME)) {
            // The last stash is the one that is not in the log.
            Some(object) if stashes.last().map(|stash| &stash.object) != Some(object) => {
                stashes.push(Stash {
                    object: object.clone(),
                    message: String::new(),
                });
            }
            Some(_) => {}
            None => stashes.clear(),
        }
        let before: BTreeSet<&String> = started.stashes.iter().map(|stash| &stash.object).collect();
        let now: BTreeSet<&String> = stashes.iter().map(|stash| &stash.object).collect();
        let taken_up = before.difference(&now).count();
        if taken_up > 0 {
            self.notes.push(format!(
                "{taken_up} stash(es) that the session popped or dropped are kept here"
            ));
        }
        let new: Vec<Stash> = stashes
            .iter()
            .filter(|stash| !before.contains(&stash.object))
            .take(MAX_TOLD)
            .cloned()
            .collect();
        self.stashes = new;
        Ok(())
    }

    fn read_index(&mut self, session: &UntrustedFolder, path: &[u8], start: Option<&[u8]>) {
        let index = match session.read(path, MAX_INDEX) {
            Ok(Some(bytes)) => Index::parse(&bytes),
            Ok(None) => {
                self.is_index_lost = true;
                return;
            }
            Err(fault) => return self.lose_index(&fault.to_string()),
        };
        let index = match index {
            Ok(index) if index.is_unmerged() => {
                return self.lose_index("holds a merge with conflicts");
            }
            Ok(index) => index,
            Err(UnsupportedIndex::Split) => return self.lose_index("is split"),
            Err(UnsupportedIndex::Sparse) => return self.lose_index("is sparse"),
            Err(UnsupportedIndex::Broken(why)) => return self.lose_index(why),
        };
        // The index of a merge is of no use without it.
        self.is_index_lost = self.is_under_way;
        let before = start
            .map(Index::parse)
            .and_then(Result::ok)
            .unwrap_or_default();
        let is_same = before.entries.len() == index.entries.len()
            && before
                .entries
                .iter()
                .zip(&index.entries)
                .all(|(left, right)| left.name == right.name && left.is_same(right));
        if !is_same && !self.is_under_way {
            self.index = Some(index);
        }
    }

    fn lose_index(&mut self, why: &str) {
        self.is_index_lost = true;
        self.refuse(
            &"index".into(),
            format!("{why}, so the session's staged changes are not imported"),
        );
    }
}
