use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use super::smallest::key_path;
use super::smallest::path_key;
use podbay_wire::BytesPath;
use podbay_wire::MatchedFile;
use podbay_wire::MatchedLine;

/// The matches in one file.
#[derive(Debug, Default)]
pub(super) struct FileMatches {
    pub(super) count: u64,
    pub(super) lines: Vec<MatchedLine>,
    pub(super) binary: bool,
    /// Some of its lines are not valid UTF-8.
    pub(super) broken: bool,
}

/// Keeps the first matches by path, in whatever order they are found.
///
/// Once there are enough, files behind the last of them need not be searched. So a search for
/// something common ends early, and still gives the same answer each time.
#[derive(Debug)]
pub(super) struct Collector {
    max_matches: u64,
    max_bytes: usize,
    is_full: AtomicBool,
    kept: Mutex<KeptMatches>,
}

#[derive(Debug, Default)]
struct KeptMatches {
    files: BTreeMap<Vec<u8>, FileMatches>,
    n_matches: u64,
    n_bytes: usize,
    truncated: bool,
}

impl Collector {
    pub(super) fn new(max_matches: u64, max_bytes: usize) -> Self {
        Self {
            max_matches,
            max_bytes,
            is_full: AtomicBool::new(false),
            kept: Mutex::default(),
        }
    }

    /// Returns whether a file or folder can still contain a match that would be kept.
    pub(super) fn wants(&self, path: &[u8]) -> bool {
        if !self.is_full.load(Ordering::Relaxed) {
            return true;
        }
        let key = path_key(path);
        let mut kept = self.lock();
        let wanted = kept
            .files
            .last_key_value()
            .is_none_or(|(last, _)| key < *last);
        kept.truncated |= !wanted;
        wanted
    }

    pub(super) fn add(&self, path: &[u8], hit: FileMatches) {
        let mut kept = self.lock();
        kept.n_matches += weight(&hit);
        kept.n_bytes += size(path, &hit);
        kept.files.insert(path_key(path), hit);
        // The last file is dropped when the others are enough without it.
        while let Some((key, last)) = kept.files.last_key_value() {
            let (weight, size) = (weight(last), size(key, last));
            if kept.n_matches - weight < self.max_matches && kept.n_bytes - size < self.max_bytes {
                break;
            }
            kept.files.pop_last();
            kept.n_matches -= weight;
            kept.n_bytes -= size;
            kept.truncated = true;
        }
        if kept.n_matches >= self.max_matches || kept.n_bytes >= self.max_bytes {
            self.is_full.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the files in order, and whether there are or may be more.
    pub(super) fn finish(self) -> (Vec<MatchedFile>, bool) {
        let kept = self
            .kept
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let mut truncated = kept.truncated;
        let mut left = self.max_matches;
        let mut files = Vec::with_capacity(kept.files.len());
        for (key, mut hit) in kept.files {
            if !hit.lines.is_empty() {
                truncated |= shorten(&mut hit.lines, left);
                let n_shown = hit.lines.iter().filter(|line| line.matched).count() as u64;
                truncated |= n_shown < hit.count;
            }
            left = left.saturating_sub(weight(&hit));
            files.push(MatchedFile {
                path: BytesPath::from_bytes(key_path(key)),
                count: hit.count,
                lines: hit.lines,
                binary: hit.binary,
            });
        }
        (files, truncated)
    }

    fn lock(&self) -> MutexGuard<'_, KeptMatches> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Weight of a file towards the bound: its matching lines, or one where no lines are shown.
fn weight(hit: &FileMatches) -> u64 {
    (hit.lines.iter().filter(|line| line.matched).count() as u64).max(1)
}

fn size(path: &[u8], hit: &FileMatches) -> usize {
    path.len()
        + 64
        + hit
            .lines
            .iter()
            .map(|line| line.text.len() + 64)
            .sum::<usize>()
}

/// Drops everything behind the last match to show; returns whether any match was dropped.
fn shorten(lines: &mut Vec<MatchedLine>, n_matches: u64) -> bool {
    let mut n = 0;
    let end = lines.iter().position(|line| {
        n += u64::from(line.matched);
        n > n_matches
    });
    let Some(end) = end else { return false };
    // Context before the dropped match is dropped too, up to the last match shown.
    let last = lines[..end]
        .iter()
        .rposition(|line| line.matched)
        .map_or(0, |at| at + 1);
    lines.truncate(last);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(n: u64) -> FileMatches {
        let line = |number| MatchedLine {
            number,
            text: "x".into(),
            cut: false,
            matched: true,
        };
        FileMatches {
            count: n,
            lines: (1..=n).map(line).collect(),
            binary: false,
            broken: false,
        }
    }

    #[track_caller]
    fn check(order: &[(&str, u64)], expected: &[(&str, usize)], truncated: bool) {
        let collector = Collector::new(4, 100_000);
        for (path, n) in order {
            if collector.wants(path.as_bytes()) {
                collector.add(path.as_bytes(), hit(*n));
            }
        }
        let (files, is_truncated) = collector.finish();
        let found: Vec<(String, usize)> = files
            .iter()
            .map(|file| (file.path.to_text(), file.lines.len()))
            .collect();
        let found: Vec<(&str, usize)> = found.iter().map(|(path, n)| (path.as_str(), *n)).collect();
        assert_eq!((found.as_slice(), is_truncated), (expected, truncated));
    }

    #[test]
    fn the_result_does_not_depend_on_the_order_of_finding() {
        check(
            &[("a", 1), ("b", 1), ("c", 1)],
            &[("a", 1), ("b", 1), ("c", 1)],
            false,
        );
        check(
            &[("c", 1), ("b", 1), ("a", 1)],
            &[("a", 1), ("b", 1), ("c", 1)],
            false,
        );
        check(&[("a", 3), ("b", 3), ("c", 3)], &[("a", 3), ("b", 1)], true);
        check(&[("c", 3), ("b", 3), ("a", 3)], &[("a", 3), ("b", 1)], true);
        check(&[("b", 9), ("c", 1), ("a", 2)], &[("a", 2), ("b", 2)], true);
    }
}
