//! Repositories deep in ignored folders: checkouts of package managers, and others of the user's.
//!
//! Such folders hold many names, so only repositories are searched for.

use std::time::Duration;
use std::time::Instant;

use super::Finder;
use super::PartialResult;
use crate::beneath::Beneath;
use crate::tools::walk::Entry;
use crate::tools::walk::Kind;
use crate::tools::walk::Visitor;
use crate::tools::walk::Walk;

/// The repositories in ignored folders.
pub(super) struct IgnoredRepositories {
    pub(super) parts: Vec<PartialResult>,
    /// Whether there was time for all of them.
    pub(super) is_whole: bool,
}

/// Searches these folders, given by their paths from the project's, each with a leading slash.
pub(super) fn repositories(
    finder: &Finder<'_>,
    base: &Beneath,
    folders: Vec<Vec<u8>>,
    within: Duration,
) -> IgnoredRepositories {
    if folders.is_empty() {
        return IgnoredRepositories {
            parts: Vec::new(),
            is_whole: true,
        };
    }
    let stop = finder.stop.until(Instant::now() + within);
    let walk = Walk {
        base,
        prefix: b"",
        rules: None,
        hidden: true,
        max_depth: usize::MAX,
        in_breadth: true,
        stop: &stop,
    };
    let walked = walk.run_in(folders, &RepositoryFinder { finder });
    IgnoredRepositories {
        parts: walked.states,
        is_whole: !stop.is_late(),
    }
}

struct RepositoryFinder<'a> {
    finder: &'a Finder<'a>,
}

impl Visitor for RepositoryFinder<'_> {
    type State = PartialResult;

    fn select(&self, entry: &Entry<'_>) -> Option<bool> {
        Some(entry.kind == Kind::Folder)
    }

    fn visit(&self, _part: &mut PartialResult, _entry: &Entry<'_>) {}

    fn repository(&self, part: &mut PartialResult, entry: &Entry<'_>) {
        self.finder.repository(part, entry);
    }
}
