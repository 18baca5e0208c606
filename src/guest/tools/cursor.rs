use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use super::invalid;
use podbay_wire::BytesPath;
use podbay_wire::Fault;

/// Most cursors kept; a new one drops the least recently used.
const MAX_CURSORS: usize = 16;

/// The files that searches found and that were not read yet, by cursor name.
#[derive(Debug, Default)]
pub(super) struct Cursors(Mutex<CursorList>);

#[derive(Debug, Default)]
struct CursorList {
    n_given: u64,
    /// The most recently used is last.
    cursors: VecDeque<(String, VecDeque<BytesPath>)>,
}

impl Cursors {
    /// Stores what a search found; an empty result gets no cursor.
    pub(super) fn keep(
        &self,
        tool: &str,
        paths: impl IntoIterator<Item = BytesPath>,
    ) -> Option<String> {
        let paths: VecDeque<BytesPath> = paths.into_iter().collect();
        if paths.is_empty() {
            return None;
        }
        let mut kept = self.lock();
        kept.n_given += 1;
        let name = format!("{tool}-{}", kept.n_given);
        if kept.cursors.len() == MAX_CURSORS {
            kept.cursors.pop_front();
        }
        kept.cursors.push_back((name.clone(), paths));
        Some(name)
    }

    /// Takes the next files; an exhausted cursor stays known and returns none.
    pub(super) fn take(&self, name: &str, n: usize) -> Result<Vec<BytesPath>, Fault> {
        let mut kept = self.lock();
        let at = kept.cursors.iter().position(|(other, _)| other == name);
        let Some(mut cursor) = at.and_then(|at| kept.cursors.remove(at)) else {
            return Err(invalid(
                "from_cursor",
                format!("`{name}` is unknown or expired; run the search again for a new one"),
            ));
        };
        let n = n.min(cursor.1.len());
        let taken = cursor.1.drain(..n).collect();
        kept.cursors.push_back(cursor);
        Ok(taken)
    }

    /// Returns files that were taken but not read to the cursor; returns how many it now has.
    pub(super) fn give_back(&self, name: &str, unread: Vec<BytesPath>) -> usize {
        let mut kept = self.lock();
        let Some((_, paths)) = kept.cursors.iter_mut().find(|(other, _)| other == name) else {
            return 0;
        };
        for path in unread.into_iter().rev() {
            paths.push_front(path);
        }
        paths.len()
    }

    fn lock(&self) -> MutexGuard<'_, CursorList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(names: &[&str]) -> Vec<BytesPath> {
        names.iter().map(|name| BytesPath::from(*name)).collect()
    }

    #[test]
    fn a_cursor_returns_its_files_once_and_in_order() {
        let cursors = Cursors::default();
        let name = cursors
            .keep("grep", paths(&["a", "b", "c"]))
            .expect("found some");
        assert_eq!(cursors.take(&name, 2), Ok(paths(&["a", "b"])));
        assert_eq!(cursors.give_back(&name, paths(&["b"])), 2);
        assert_eq!(cursors.take(&name, 9), Ok(paths(&["b", "c"])));
        assert_eq!(cursors.take(&name, 9), Ok(paths(&[])));
    }

    #[test]
    fn an_empty_search_gets_no_cursor() {
        assert_eq!(Cursors::default().keep("glob", paths(&[])), None);
    }

    #[test]
    fn expired_cursors_say_to_search_again() {
        let cursors = Cursors::default();
        let first = cursors.keep("glob", paths(&["a"])).expect("found some");
        for _ in 0..MAX_CURSORS {
            cursors.keep("glob", paths(&["b"]));
        }
        let fault = cursors.take(&first, 1).expect_err("it was dropped");
        let told = fault.to_string();
        assert!(
            told.starts_with("`from_cursor`: ") && told.contains("run the search again"),
            "{told}"
        );
    }
}
