use std::cell::Cell;
use std::collections::BTreeSet;
use std::io::Read;

use flate2::read::ZlibDecoder;

use super::refs::Head;
use super::refs::object;
use super::session_start::StartedRepository;
use super::untrusted_folder::UntrustedFolder;
use crate::root::join;

/// Most bytes that are read of a commit: all that is needed is at its beginning.
const MAX_COMMIT: u64 = 64 << 10;
const MAX_OBJECT: u64 = 16 << 20;
const MAX_COMMITS: usize = 2000;
const MAX_SUBJECT: usize = 100;
/// Most commits that are read in all: with very many branches each may have as many as are counted.
const MOST_READ: u32 = 50_000;

/// The commits of a session that are loose objects: those are in its folder, borrowed ones are not.
pub(super) struct Commits<'a> {
    session: &'a UntrustedFolder,
    /// Commits from before the session.
    known: BTreeSet<&'a str>,
    /// Whether some may be packed, where they are not searched for.
    are_packed: bool,
    n_read: Cell<u32>,
}

struct Commit {
    tree: Option<String>,
    parents: Vec<String>,
    subject: String,
}

impl<'a> Commits<'a> {
    pub(super) fn new(session: &'a UntrustedFolder, started: &'a StartedRepository) -> Self {
        let packs = session.names(b"objects/pack").unwrap_or_default();
        let are_packed = packs.iter().any(|(name, _)| name.ends_with(b".pack"));
        let head = if let Head::Commit { object } = &started.head {
            Some(object)
        } else {
            None
        };
        let known = started
            .refs
            .values()
            .chain(head)
            .chain(&started.left_behind)
            .map(String::as_str)
            .collect();
        Self {
            session,
            known,
            are_packed,
            n_read: Cell::new(0),
        }
    }

    /// Counts the session's commits reachable from a tip, itself included, and returns its subject;
    /// `None`: they cannot be counted.
    pub(super) fn count_since_start(&self, tip: &str) -> (Option<u64>, Option<String>) {
        let mut waiting = vec![tip.to_owned()];
        let mut seen = BTreeSet::new();
        let mut subject = None;
        while let Some(name) = waiting.pop() {
            if self.known.contains(name.as_str()) || seen.contains(&name) {
                continue;
            }
            if self.n_read.get() >= MOST_READ {
                return (None, subject);
            }
            match self.read(&name) {
                Some(commit) => {
                    subject.get_or_insert(commit.subject);
                    waiting.extend(commit.parents);
                }
                None if self.are_packed || seen.is_empty() => return (None, subject),
                // Borrowed.
                None => continue,
            }
            seen.insert(name);
            if seen.len() > MAX_COMMITS {
                return (None, subject);
            }
        }
        (Some(seen.len() as u64), subject)
    }

    /// Returns the session's commits that are reachable from some tips, those included, as far as
    /// they are loose.
    pub(super) fn reached<'t>(&self, tips: impl Iterator<Item = &'t str>) -> BTreeSet<String> {
        let mut waiting: Vec<String> = tips.map(str::to_owned).collect();
        let mut reached = BTreeSet::new();
        while let Some(name) = waiting.pop() {
            if self.known.contains(name.as_str())
                || !reached.insert(name.clone())
                || self.n_read.get() >= MOST_READ
            {
                continue;
            }
            waiting.extend(
                self.read(&name)
                    .into_iter()
                    .flat_map(|commit| commit.parents),
            );
        }
        reached
    }

    /// Returns whether all history of `tip` is the session's: it is based on nothing from before.
    pub(super) fn has_new_history(&self, tip: &str) -> bool {
        let mut waiting = vec![tip.to_owned()];
        let mut seen = BTreeSet::new();
        while let Some(name) = waiting.pop() {
            if self.known.contains(name.as_str()) || self.n_read.get() >= MOST_READ {
                return false;
            }
            if seen.insert(name.clone()) {
                // A borrowed commit was there before.
                let Some(commit) = self.read(&name) else {
                    return false;
                };
                waiting.extend(commit.parents);
            }
        }
        true
    }

    /// Whether an object may be in the session's folder alone. One from before the session, or a
    /// borrowed one, is known not to be.
    pub(super) fn may_hold(&self, name: &str) -> bool {
        let is_file = |path: Vec<u8>| self.session.kind(&path).is_some();
        !self.known.contains(name) && (self.are_packed || place(name).is_some_and(is_file))
    }

    /// Returns the tree of a commit of the session, as the commit says.
    pub(super) fn tree(&self, name: &str) -> Option<String> {
        self.read(name)?.tree
    }

    /// Reads a loose commit; it is not verified.
    fn read(&self, name: &str) -> Option<Commit> {
        self.n_read.set(self.n_read.get() + 1);
        let packed = self.session.read(&place(name)?, MAX_OBJECT).ok()??;
        let mut text = Vec::new();
        // Errors after the beginning do not matter.
        let _ = ZlibDecoder::new(packed.as_slice())
            .take(MAX_COMMIT)
            .read_to_end(&mut text);
        let start = text.iter().position(|byte| *byte == 0)?;
        if !text.starts_with(b"commit ") {
            return None;
        }
        let mut lines = text[start + 1..].split(|byte| *byte == b'\n');
        let tree = lines
            .clone()
            .next()
            .and_then(|line| object(line.strip_prefix(b"tree ")?));
        let parents = lines
            .by_ref()
            .take_while(|line| !line.is_empty())
            .filter_map(|line| object(line.strip_prefix(b"parent ")?))
            .collect();
        let subject = String::from_utf8_lossy(lines.next().unwrap_or_default());
        let is_shown =
            |character: &char| !character.is_control() && !podbay_wire::is_hidden(*character);
        Some(Commit {
            tree,
            parents,
            subject: subject.chars().filter(is_shown).take(MAX_SUBJECT).collect(),
        })
    }
}

/// Returns the path of a loose object.
fn place(name: &str) -> Option<Vec<u8>> {
    let (folder, rest) = name.split_at_checked(2)?;
    Some(join(&join(b"objects", folder.as_bytes()), rest.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::super::sample::ID;
    use super::super::sample::Sample;
    use super::super::sample::SampleSession;
    use super::super::session_start::SessionStart;
    use super::*;

    #[test]
    fn commits_are_not_counted_beyond_a_limit() {
        let sample = Sample::new();
        sample.commit("a", "1");
        let session = SampleSession::of(sample);
        session.sample.commit("b", "1");
        let tip = session.sample.commit("c", "1");
        let start = SessionStart::read(
            &UntrustedFolder::open(&session.sample.beside("state")).expect("opens"),
            ID,
        )
        .expect("read")
        .expect("on record");
        let folder = UntrustedFolder::open(&session.sample.path(".git")).expect("opens");
        let mut commits = Commits::new(&folder, &start.repositories[0]);
        assert_eq!(
            commits.count_since_start(&tip),
            (Some(2), Some("c".to_owned()))
        );
        commits.n_read = Cell::new(MOST_READ - 1);
        assert_eq!(
            commits.count_since_start(&tip),
            (None, Some("c".to_owned()))
        );
        assert_eq!(commits.count_since_start(&tip), (None, None));
    }
}
