//! What the model has last seen of files, so that what somebody else did to one since is not lost under what it does next.
//!
//! A file counts as seen when it was read, and when one of the file tools changed it. What a command changed does not: the model was not
//! shown it. Only those changes ask that go by a line's number or put a whole new text there; a change that names the text which it
//! replaces finds it, or does not.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use nix::sys::stat::FileStat;

use super::save::is_same;

/// Files that are remembered; of more, the one that was seen longest ago is forgotten.
const MOST: usize = 4096;

/// Files by where they lie from the project's folder, whatever links they are named through.
#[derive(Debug, Default)]
pub(super) struct Seen(Mutex<Files>);

#[derive(Debug, Default)]
struct Files {
    by_path: HashMap<Vec<u8>, (FileStat, u64)>,
    n_seen: u64,
}

impl Seen {
    /// Notes that the model was shown a file, or wrote all of it.
    pub(super) fn note(&self, real: Vec<u8>, stat: FileStat) {
        let mut files = self.lock();
        files.n_seen += 1;
        let number = files.n_seen;
        files.by_path.insert(real, (stat, number));
        if files.by_path.len() > MOST
            && let Some(oldest) = files.by_path.iter().min_by_key(|(_, (_, number))| *number).map(|(path, _)| path.clone())
        {
            files.by_path.remove(&oldest);
        }
    }

    /// Notes what became of a file by a change of a part of it. What somebody else had done to it before stays unseen.
    pub(super) fn note_change(&self, real: Vec<u8>, before: &FileStat, after: FileStat) {
        if !self.is_stale(&real, before) {
            self.note(real, after);
        }
    }

    /// Returns what the file was like when it was last seen; `None`: it never was.
    pub(super) fn last(&self, real: &[u8]) -> Option<FileStat> {
        self.lock().by_path.get(real).map(|(stat, _)| *stat)
    }

    /// Returns whether a file that was seen is another now.
    pub(super) fn is_stale(&self, real: &[u8], now: &FileStat) -> bool {
        self.last(real).is_some_and(|last| !is_same(&last, now))
    }

    /// Forgets what stood there, and below it: the model itself had it taken away or replaced.
    pub(super) fn forget(&self, real: &[u8]) {
        self.lock().by_path.retain(|path, _| below(path, real).is_none());
    }

    /// Lets a file, or what lies below a folder, be known by its new place.
    pub(super) fn move_to(&self, from: &[u8], to: &[u8]) {
        self.forget(to);
        let mut files = self.lock();
        for (path, seen) in std::mem::take(&mut files.by_path) {
            let path = below(&path, from).map(|rest| [to, rest].concat()).unwrap_or(path);
            files.by_path.insert(path, seen);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns what follows in a path after a file or folder that it is or lies in.
fn below<'a>(path: &'a [u8], top: &[u8]) -> Option<&'a [u8]> {
    path.strip_prefix(top).filter(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_size(size: i64) -> FileStat {
        let mut stat = nix::sys::stat::stat("/").expect("is there");
        stat.st_size = size;
        stat
    }

    #[test]
    fn what_somebody_else_did_stays_unseen_until_it_is_shown() {
        let seen = Seen::default();
        assert!(!seen.is_stale(b"a", &of_size(1)), "never seen");
        seen.note(b"a".to_vec(), of_size(1));
        assert!(!seen.is_stale(b"a", &of_size(1)) && seen.is_stale(b"a", &of_size(2)));
        seen.note_change(b"a".to_vec(), &of_size(2), of_size(3));
        assert!(seen.is_stale(b"a", &of_size(3)), "a part of it was changed, and another part not seen");
        seen.note(b"a".to_vec(), of_size(3));
        seen.note_change(b"a".to_vec(), &of_size(3), of_size(4));
        assert!(!seen.is_stale(b"a", &of_size(4)));
    }

    #[test]
    fn a_new_place_keeps_what_was_seen() {
        let seen = Seen::default();
        for path in ["a/b", "a/c/d", "ab", "z"] {
            seen.note(path.into(), of_size(1));
        }
        seen.move_to(b"a", b"z");
        let known = |path: &str| seen.last(path.as_bytes()).is_some();
        assert!(known("z/b") && known("z/c/d") && known("ab") && !known("a/b") && !known("z"));
        seen.forget(b"z");
        assert!(!known("z/b") && known("ab"));
    }

    #[test]
    fn the_one_seen_longest_ago_is_forgotten() {
        let seen = Seen::default();
        for number in 0..=MOST {
            seen.note(number.to_string().into(), of_size(1));
        }
        assert!(seen.last(b"0").is_none() && seen.last(b"1").is_some());
    }
}
