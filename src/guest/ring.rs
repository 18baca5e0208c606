//! A ring buffer of the last bytes of an output.

use std::collections::VecDeque;

/// Keeps at most so many bytes, the newest ones.
#[derive(Debug)]
pub(super) struct Ring {
    bytes: VecDeque<u8>,
    limit: usize,
    n_dropped: u64,
    n_dropped_lines: u64,
}

impl Ring {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            bytes: VecDeque::new(),
            limit,
            n_dropped: 0,
            n_dropped_lines: 0,
        }
    }

    pub(super) fn push(&mut self, data: &[u8]) {
        let (passed, kept) = data.split_at(data.len().saturating_sub(self.limit));
        let n_leaving = (self.bytes.len() + kept.len()).saturating_sub(self.limit);
        self.drop_oldest(n_leaving);
        self.bytes.extend(kept);
        self.n_dropped += passed.len() as u64;
        self.n_dropped_lines += memchr::memchr_iter(b'\n', passed).count() as u64;
    }

    /// Takes up to `limit` of the oldest bytes kept.
    pub(super) fn take(&mut self, limit: usize) -> Vec<u8> {
        let n_taken = limit.min(self.bytes.len());
        self.bytes.drain(..n_taken).collect()
    }

    /// Discards what is still kept.
    pub(super) fn clear(&mut self) {
        self.drop_oldest(self.bytes.len());
    }

    fn drop_oldest(&mut self, n_bytes: usize) {
        let (first, second) = self.bytes.as_slices();
        let n_first = n_bytes.min(first.len());
        let n_lines = |bytes: &[u8]| memchr::memchr_iter(b'\n', bytes).count() as u64;
        self.n_dropped_lines += n_lines(&first[..n_first]) + n_lines(&second[..n_bytes - n_first]);
        self.n_dropped += n_bytes as u64;
        self.bytes.drain(..n_bytes);
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn n_dropped(&self) -> u64 {
        self.n_dropped
    }

    /// Returns how many line feeds were among the dropped bytes.
    pub(super) fn n_dropped_lines(&self) -> u64 {
        self.n_dropped_lines
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_ring_keeps_exactly_the_end(pieces in proptest::collection::vec(proptest::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..40), 0..20), limit in 0_usize..50) {
            let mut ring = Ring::new(limit);
            for piece in &pieces {
                ring.push(piece);
            }
            let all = pieces.concat();
            let (dropped, n_lines) = (ring.n_dropped() as usize, ring.n_dropped_lines() as usize);
            prop_assert_eq!(n_lines, memchr::memchr_iter(b'\n', &all[..dropped]).count());
            prop_assert_eq!(ring.take(usize::MAX), &all[all.len().saturating_sub(limit)..]);
            prop_assert_eq!(dropped, all.len().saturating_sub(limit));
        }
    }
}
