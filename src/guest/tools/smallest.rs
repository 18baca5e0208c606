use std::collections::BinaryHeap;

/// Keeps the `n` smallest of many items and counts the rest.
#[derive(Debug)]
pub(super) struct Smallest<T> {
    kept: BinaryHeap<T>,
    n_seen: u64,
}

impl<T: Ord> Default for Smallest<T> {
    fn default() -> Self {
        Self {
            kept: BinaryHeap::new(),
            n_seen: 0,
        }
    }
}

impl<T: Ord> Smallest<T> {
    /// Counts an item. It is built only if it belongs to the `n` smallest, which `is_smaller`
    /// decides against the largest of them.
    pub(super) fn offer(
        &mut self,
        n: usize,
        is_smaller: impl FnOnce(&T) -> bool,
        item: impl FnOnce() -> Option<T>,
    ) {
        if self.kept.len() >= n {
            if !self.kept.peek().is_some_and(is_smaller) {
                self.n_seen += 1;
                return;
            }
            let Some(item) = item() else { return };
            self.kept.pop();
            self.kept.push(item);
        } else {
            let Some(item) = item() else { return };
            self.kept.push(item);
        }
        self.n_seen += 1;
    }

    /// Returns the `n` smallest of all, sorted, and how many there were.
    pub(super) fn merge(all: impl IntoIterator<Item = Self>, n: usize) -> (Vec<T>, u64) {
        let mut items = Vec::new();
        let mut n_seen = 0;
        for part in all {
            n_seen += part.n_seen;
            items.extend(part.kept);
        }
        items.sort_unstable();
        items.truncate(n);
        (items, n_seen)
    }
}

/// Turns a path into bytes that sort component by component: `a/b` comes before `a.b`.
pub(super) fn path_key(path: &[u8]) -> Vec<u8> {
    path.iter()
        .map(|byte| if *byte == b'/' { 0 } else { *byte })
        .collect()
}

/// Reverses [`path_key`]; no name contains a NUL byte.
pub(super) fn key_path(mut key: Vec<u8>) -> Vec<u8> {
    for byte in &mut key {
        if *byte == 0 {
            *byte = b'/';
        }
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_of_all_parts_are_kept_and_all_are_counted() {
        let mut parts = [Smallest::default(), Smallest::default()];
        for number in [5, 1, 9, 3, 7, 2] {
            parts[number % 2].offer(2, |largest| number < *largest, || Some(number));
        }
        assert_eq!(Smallest::merge(parts, 2), (vec![1, 2], 6));
    }

    #[test]
    fn paths_sort_by_their_names() {
        let mut paths = ["a.b", "a/b", "a", "a/b/c", "a b"].map(|path| path_key(path.as_bytes()));
        paths.sort();
        let paths = paths.map(|key| String::from_utf8(key_path(key)).expect("text"));
        assert_eq!(paths, ["a", "a/b", "a/b/c", "a b", "a.b"]);
    }
}
