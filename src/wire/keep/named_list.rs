use serde::Deserialize;
use serde::Serialize;

/// Most entries that one list of an answer names.
pub const MOST_NAMED: usize = 200;

/// A truncated list: the total count, and the first entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedList<T> {
    pub n: u64,
    pub first: Vec<T>,
}

impl<T> NamedList<T> {
    /// Counts one more, and adds it if there is room.
    pub fn add(&mut self, item: T) {
        self.n += 1;
        if self.first.len() < MOST_NAMED {
            self.first.push(item);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.n == 0
    }
}

impl<T> Default for NamedList<T> {
    fn default() -> Self {
        Self {
            n: 0,
            first: Vec::new(),
        }
    }
}

impl<T> Extend<T> for NamedList<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        items.into_iter().for_each(|item| self.add(item));
    }
}

impl<T> FromIterator<T> for NamedList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut named = Self::default();
        named.extend(items);
        named
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_counted_and_the_first_are_named() {
        let named: NamedList<usize> = (0..MOST_NAMED + 5).collect();
        assert_eq!((named.n, named.first.len()), (205, MOST_NAMED));
        assert_eq!(named.first[..3], [0, 1, 2]);
        assert!(!named.is_empty() && NamedList::<u8>::default().is_empty());
    }
}
